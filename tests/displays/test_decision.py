"""The display of a fitted function draws the numbers of the model."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    SupportDisplay,
)

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402 the back end is chosen first
from matplotlib.colors import to_hex  # noqa: E402


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


# The support


def test_support_of_two_classes(moons):
    X, y = moons
    model = KernelMatchingPursuitClassifier(10, gamma=2.0).fit(X, y)
    display = SupportDisplay.from_estimator(model, X, y, grid_resolution=20)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    assert_array_equal(display.response.ravel(), model.decision_function(grid))
    assert display.xx0.min() < X[:, 0].min()
    assert display.xx1.max() > X[:, 1].max()
    assert_array_equal(display.support_.get_offsets(), X[model.support_])
    for label, points in enumerate(display.points_):
        assert_array_equal(points.get_offsets(), X[y == label])
    assert legend_of(display) == ["0", "1", "negative", "10 kernel functions, by |coefficient|"]
    assert display.ax_.get_xlabel() == "Feature 0"


def test_support_of_a_float32_model(moons):
    X, y = moons
    model = KernelMatchingPursuitClassifier(10, gamma=2.0).fit(X.astype(np.float32), y)
    display = SupportDisplay.from_estimator(model, X, y, grid_resolution=20)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    assert_array_equal(display.response.ravel(), model.decision_function(grid))


def test_circles_grow_with_the_coefficient(moons):
    X, y = moons
    model = KernelMatchingPursuitClassifier(10, gamma=2.0).fit(X, y)
    display = SupportDisplay.from_estimator(
        model, X, y, grid_resolution=20, circle_size=500.0, point_size=10.0
    )
    areas, strength = display.support_.get_sizes(), np.abs(model.dual_coef_[0])
    assert_array_equal(np.argsort(areas), np.argsort(strength))
    assert_allclose(areas.max(), 500.0)
    assert areas.min() > 30.0


def test_support_of_several_classes_with_labels_and_names():
    X, y = make_blobs(150, centers=10, cluster_std=1.0, random_state=0)
    labels = np.array(list("zyxwvutsrq"))[y]
    table = pd.DataFrame(X, columns=["length", "width"])
    model = KernelMatchingPursuitClassifier(20, gamma=0.1).fit(table, labels)
    display = SupportDisplay.from_estimator(model, table, labels, grid_resolution=20)
    grid = pd.DataFrame(
        np.column_stack([display.xx0.ravel(), display.xx1.ravel()]), columns=table.columns
    )
    shown = model.classes_[display.response.argmax(axis=0).ravel()]
    assert_array_equal(shown, model.predict(grid))
    assert legend_of(display) == [*sorted("zyxwvutsrq"), "20 kernel functions, by |coefficient|"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("length", "width")
    looks = {
        (to_hex(points.get_facecolor()[0]), len(points.get_paths()[0].vertices))
        for points in display.points_
    }
    assert len(looks) > len({colour for colour, _ in looks}) == 8


def test_circles_of_negative_coefficients_are_dashed(moons):
    X, y = moons
    model = KernelMatchingPursuitClassifier(10, gamma=2.0).fit(X, y)
    display = SupportDisplay.from_estimator(model, X, y, grid_resolution=20)
    dashed = [pattern is not None for _, pattern in display.support_.get_linestyle()]
    assert_array_equal(dashed, model.dual_coef_[0] < 0)
    assert 0 < sum(dashed) < 10


def test_one_feature_is_a_line():
    x = np.linspace(-3, 3, 40)[:, None]
    model = KernelMatchingPursuitRegressor(6, gamma=1.0).fit(x, np.sin(2 * x[:, 0]))
    display = SupportDisplay.from_estimator(model, x, np.sin(2 * x[:, 0]), grid_resolution=50)
    places, values = display.surface_[0].get_data()
    assert_allclose(values, model.predict(places[:, None]), rtol=1e-12, atol=1e-14)
    circles = display.support_.get_offsets()
    assert_array_equal(circles[:, 0], x[model.support_, 0])
    assert_allclose(circles[:, 1], model.predict(x[model.support_]), atol=0.05)
    assert (display.xx1, display.ax_.get_ylabel()) == (None, "Prediction")


def test_classes_of_one_feature_lie_below_their_lines():
    x = np.linspace(-3, 3, 40)[:, None]
    labels = np.array(["a", "b", "c"])[np.digitize(x[:, 0], [-1, 1])]
    model = KernelMatchingPursuitClassifier(6, gamma=1.0).fit(x, labels)
    display = SupportDisplay.from_estimator(model, x, labels, grid_resolution=50)
    grid = display.xx0[:, None]
    for line, layer in zip(display.surface_, model.decision_function(grid).T, strict=True):
        assert_allclose(line.get_ydata(), layer, rtol=1e-12, atol=1e-14)
    for label, points in zip(model.classes_, display.points_, strict=True):
        assert_array_equal(points.get_offsets()[:, 0], x[labels == label, 0])
        assert points.get_offsets()[:, 1].max() < display.response.min()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_support_of_a_regressor(waves, kind):
    X, y = waves
    model = KernelMatchingPursuitRegressor(10, gamma=0.5).fit(kind(X), y)
    display = SupportDisplay.from_estimator(model, kind(X), y, grid_resolution=20)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    assert_allclose(display.response.ravel(), model.predict(grid), rtol=1e-12, atol=1e-14)
    assert_array_equal(display.points_[0].get_array(), y)
    assert_array_equal(display.support_.get_offsets(), X[model.support_])
    bar = display.figure_.axes[1]
    assert bar.get_ylabel() == "Prediction"


def test_support_on_given_centres_and_axes(moons):
    X, y = moons
    centres = np.array([[5.0, 5.0], [0.0, 0.0], [1.0, 0.5]])
    model = KernelMatchingPursuitClassifier(3, dictionary=centres).fit(X, y)
    _, ax = plt.subplots()
    display = SupportDisplay.from_estimator(model, X, y, grid_resolution=20, ax=ax, colorbar=False)
    assert display.ax_ is ax
    assert len(display.figure_.axes) == 1
    assert_array_equal(display.support_.get_offsets(), model.support_vectors_)
    assert display.xx0.max() > 5.0


def test_constant_target_is_drawn(waves):
    X, _ = waves
    with pytest.warns(UserWarning):
        model = KernelMatchingPursuitRegressor(5).fit(X, np.zeros(len(X)))
    display = SupportDisplay.from_estimator(model, X, np.zeros(len(X)), grid_resolution=5)
    assert_array_equal(display.response, np.zeros((5, 5)))


def test_support_refuses_other_numbers_of_features_and_targets(cancer, waves, moons):
    X, y = waves
    model = KernelMatchingPursuitClassifier(3).fit(*cancer)
    with pytest.raises(ValueError, match=r"two features; this .*Classifier was trained on 30$"):
        SupportDisplay.from_estimator(model, *cancer)
    model = KernelMatchingPursuitRegressor(3).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=r"draws one target; this .*Regressor has 2"):
        SupportDisplay.from_estimator(model, X, y)
    model = KernelMatchingPursuitRegressor(1, kernel="precomputed").fit(np.eye(2), [0.0, 1.0])
    with pytest.raises(ValueError, match="2 precomputed kernel values"):
        SupportDisplay.from_estimator(model, np.eye(2), [0.0, 1.0])
    model = KernelMatchingPursuitRegressor(3).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 columns"):
        SupportDisplay.from_estimator(model, np.zeros((4, 3)), np.zeros(4))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SupportDisplay.from_estimator(model, X, y[:5])
    with pytest.raises(NotFittedError):
        SupportDisplay.from_estimator(KernelMatchingPursuitRegressor(), X, y)
