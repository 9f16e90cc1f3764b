"""The displays draw the numbers of the model, and say clearly what they cannot draw."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from pursuit import (
    BoundDisplay,
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
    PursuitPathDisplay,
    SparseKernelPCA,
)

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402 the back end is chosen first
from matplotlib.colors import to_hex  # noqa: E402


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


# The path


def test_path_shows_training_and_leave_one_out(cancer):
    model = KernelMatchingPursuitClassifier(15, early_stopping="loo").fit(*cancer)
    display = PursuitPathDisplay.from_estimator(model)
    assert list(display.lines_) == ["train_loss", "leave_one_out_loss"]
    for name in ("train_loss", "leave_one_out_loss"):
        steps, losses = display.lines_[name].get_data()
        path = getattr(model, f"{name}_path_")
        assert_array_equal(steps, np.arange(1, len(path) + 1))
        assert_array_equal(losses, path)
    assert display.ax_.get_yscale() == "log"
    assert display.ax_.get_title() == "KernelMatchingPursuitClassifier"
    assert display.ax_.get_xlabel() == "Number of kernel functions"
    assert display.marker_.get_xdata()[0] == model.n_iter_
    assert legend_of(display) == [
        "Training",
        "Leave-one-out",
        f"Model: {model.n_components_} kernel functions",
    ]


def test_path_shows_held_out_and_test_losses(cancer):
    X, y = cancer
    model = KernelMatchingPursuitClassifier(15, early_stopping=True, random_state=0)
    model.fit(X[:400], y[:400])
    display = PursuitPathDisplay.from_estimator(model, X[400:], y[400:], name="Cancer")
    assert list(display.lines_) == ["train_loss", "validation_loss", "test_loss"]
    assert_array_equal(display.validation_loss, model.validation_loss_path_)
    signs = np.where(y[400:] == model.classes_[1], 1.0, -1.0)
    final = np.mean((signs - model.decision_function(X[400:])) ** 2)
    assert len(display.test_loss) == model.n_iter_
    assert_allclose(display.test_loss[-1], final, rtol=1e-10)
    assert display.ax_.get_title() == "Cancer"


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multi_class", ["shared", "ovr"])
def test_loss_on_the_training_rows_is_the_training_loss(n_classes, multi_class):
    X, y = make_blobs(90, centers=n_classes, cluster_std=4.0, random_state=0)
    model = KernelMatchingPursuitClassifier(9, multi_class=multi_class).fit(X, y)
    display = PursuitPathDisplay.from_estimator(model, X, y)
    assert_allclose(display.test_loss, model.train_loss_path_[: model.n_iter_], rtol=1e-8)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_loss_of_a_regressor_on_its_training_rows(waves, n_targets):
    X, y = waves
    Y = y if n_targets == 1 else np.column_stack([y, 3.0 * y + X[:, 0]])
    model = KernelMatchingPursuitRegressor(9).fit(X, Y)
    display = PursuitPathDisplay.from_estimator(model, X, Y)
    assert_allclose(display.test_loss, model.train_loss_path_, rtol=1e-8)
    if n_targets == 1:
        column = PursuitPathDisplay.from_estimator(model, X, Y[:, None])
        assert_array_equal(column.test_loss, display.test_loss)


@pytest.mark.parametrize(
    "estimator", [KernelMatchingPursuitClassifierCV, KernelMatchingPursuitRegressorCV]
)
def test_path_of_cross_validation_is_that_of_the_chosen_gamma(moons, estimator):
    model = estimator(8, gammas=[0.1, 1.0, 5.0], cv=3).fit(*moons)
    folds = model.cv_loss_path_[list(model.gammas_).index(model.gamma_)]
    display = PursuitPathDisplay.from_estimator(model)
    assert_array_equal(display.lines_["fold_losses"].get_ydata(), folds.mean(axis=0))
    corners = display.band_.get_paths()[0].vertices
    assert corners[:, 1].min() == folds.min()
    assert corners[:, 1].max() == folds.max()
    assert "Range of 3 folds" in legend_of(display)


def test_steps_that_are_not_functions_are_called_steps(moons):
    model = KernelMatchingPursuitClassifier(60, fitting="basic", gamma=0.5).fit(*moons)
    assert model.n_components_ < model.n_iter_
    display = PursuitPathDisplay.from_estimator(model)
    assert display.ax_.get_xlabel() == "Step"
    assert legend_of(display)[-1] == f"Model: {model.n_components_} kernel functions"


def test_scale_of_the_losses():
    positive, zero = [3.0, 1.0], [3.0, 0.0]
    assert PursuitPathDisplay(train_loss=positive).plot().ax_.get_yscale() == "log"
    assert PursuitPathDisplay(train_loss=zero).plot().ax_.get_yscale() == "linear"
    assert PursuitPathDisplay(train_loss=positive).plot(log=False).ax_.get_yscale() == "linear"
    mixed = PursuitPathDisplay(train_loss=zero, validation_loss=positive)
    assert mixed.plot().ax_.get_yscale() == "linear"
    assert mixed.plot(log=True).ax_.get_yscale() == "log"


def test_tick_labels_are_plain_numbers():
    display = PursuitPathDisplay(train_loss=np.geomspace(0.4, 0.02, 30)).plot()
    display.figure_.canvas.draw()
    labels = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert {"0.02", "0.05", "0.1", "0.2"} <= set(labels)


def test_path_on_given_axes_with_given_looks():
    _, ax = plt.subplots()
    display = PursuitPathDisplay(train_loss=[2.0, 1.0], n_iter=1, n_components=1)
    assert display.plot(ax, linewidth=5) is display
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.lines_["train_loss"].get_linewidth() == 5
    assert legend_of(display)[-1] == "Model: 1 kernel function"
    assert PursuitPathDisplay(train_loss=[2.0, 1.0]).plot(ax).marker_ is None


def test_lines_differ_in_colour():
    names = ("train_loss", "validation_loss", "leave_one_out_loss", "test_loss")
    display = PursuitPathDisplay(**{name: [2.0, 1.0] for name in names}).plot()
    assert len({to_hex(line.get_color()) for line in display.lines_.values()}) == 4


def test_path_refuses_what_has_none(moons):
    X, y = moons
    with pytest.raises(NotFittedError):
        PursuitPathDisplay.from_estimator(KernelMatchingPursuitClassifier())
    with pytest.raises(ValueError, match="LinearRegression, which has no path of losses"):
        PursuitPathDisplay.from_estimator(LinearRegression().fit(X, y))
    model = KernelMatchingPursuitClassifier(3).fit(X, y)
    with pytest.raises(ValueError, match="X and y must be given together"):
        PursuitPathDisplay.from_estimator(model, X)
    with pytest.raises(ValueError, match="y has the label 7, which the model does not know"):
        PursuitPathDisplay.from_estimator(model, X, y + 7)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PursuitPathDisplay.from_estimator(model, X, y[:5])


# The bound


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((150, 4))


def test_bound_of_a_subspace_with_the_residuals(rows):
    model = SparseKernelPCA(30, gamma=0.05).fit(rows[:100])
    display = BoundDisplay.from_estimator(model, rows[100:])
    assert_array_equal(display.lines_["bound"].get_ydata(), model.bound_path_)
    assert_array_equal(display.lines_["train_loss"].get_ydata(), model.residual_path_)
    means = [model.truncate(n).residual(rows[100:]).mean() for n in range(1, 31)]
    assert_allclose(display.lines_["test_loss"].get_ydata(), means, rtol=1e-8)
    assert_array_equal(display.lines_["test_loss"].get_xdata(), np.arange(1, 31))
    lowest = int(np.argmin(model.bound_path_)) + 1
    assert 1 < lowest < 30
    assert display.marker_.get_xdata()[0] == lowest
    assert legend_of(display) == ["Bound", "Training", "Test", f"Lowest bound: {lowest} vectors"]
    assert display.ax_.get_xlabel() == "Number of vectors"
    assert display.ax_.get_ylabel() == "Squared distance to the span"
    assert display.ax_.get_title() == "SparseKernelPCA"


def test_bound_without_further_rows_on_given_axes(rows):
    model = SparseKernelPCA(10, gamma=0.05).fit(rows)
    _, ax = plt.subplots()
    display = BoundDisplay.from_estimator(model, name="Noise", ax=ax, log="auto", linewidth=5)
    assert list(display.lines_) == ["bound", "train_loss"]
    assert display.ax_ is ax
    assert (ax.get_title(), ax.get_yscale()) == ("Noise", "log")
    assert display.lines_["bound"].get_linewidth() == 5


def test_bound_of_a_number_chosen_by_it_is_lowest_there(rows):
    model = SparseKernelPCA("bound", gamma=0.05).fit(rows)
    display = BoundDisplay.from_estimator(model)
    assert display.marker_.get_xdata()[0] == model.n_components_
    assert len(display.bound) > model.n_components_


def test_bound_of_a_classifier_with_its_errors(moons):
    X, y = moons
    names = np.array(["left", "right"])[y]
    model = KernelMatchingPursuitClassifier(20, early_stopping="bound", gamma=2.0)
    model.fit(X[:80], names[:80])
    display = BoundDisplay.from_estimator(model, X[80:], names[80:])
    assert list(display.lines_) == ["bound", "test_loss"]
    shares = [1 - model.truncate(n).score(X[80:], names[80:]) for n in range(1, model.n_iter_ + 1)]
    assert_allclose(display.test_loss, shares, atol=1e-15)
    assert_array_equal(display.bound, model.bound_path_)
    assert display.marker_.get_xdata()[0] == model.n_iter_
    assert display.ax_.get_ylabel() == "Share of errors"


def test_a_bound_on_a_share_is_not_drawn_above_one():
    display = BoundDisplay(bound=[1.5, 0.75, np.inf, 1.0], test_loss=[0.1] * 4)
    display.is_share = True
    display.plot()
    assert_array_equal(display.lines_["bound"].get_ydata(), [np.nan, 0.75, np.nan, 1.0])
    assert legend_of(display)[0] == "Bound: above 1, vacuous, at 2 of 4"
    assert display.marker_.get_xdata()[0] == 2
    assert_array_equal(display.bound, [1.5, 0.75, np.inf, 1.0])
    display.bound = [0.5, 0.6]
    assert legend_of(display.plot())[0] == "Bound"


@pytest.mark.parametrize("n_targets", [1, 2])
def test_bound_of_a_regressor_with_the_share_beyond_the_tolerance(waves, n_targets):
    X, y = waves
    Y = y if n_targets == 1 else np.column_stack([y, X[:, 0]])
    model = KernelMatchingPursuitRegressor(10, early_stopping="bound").fit(X[:80], Y[:80])
    display = BoundDisplay.from_estimator(model, X[80:], Y[80:])
    tolerance = 0.5 * np.sqrt(Y[:80].var(axis=0).mean())
    for n, share in enumerate(display.test_loss, 1):
        misses = np.abs(model.truncate(n).predict(X[80:]) - Y[80:]).reshape(40, n_targets)
        assert share == np.mean([any(miss > tolerance) for miss in misses])
    assert len(display.test_loss) == model.n_iter_
    assert len(set(display.test_loss)) > 1
    if n_targets == 1:
        column = BoundDisplay.from_estimator(model, X[80:], Y[80:, None])
        assert_array_equal(column.test_loss, display.test_loss)


def test_bound_of_steps_that_are_no_vectors(waves):
    X, y = waves
    model = KernelMatchingPursuitRegressor(60, fitting="basic", early_stopping="bound").fit(X, y)
    assert model.n_components_ < model.n_iter_
    display = BoundDisplay.from_estimator(model)
    assert display.ax_.get_xlabel() == "Step"
    assert legend_of(display)[-1] == f"Lowest bound: step {model.n_iter_}"


def test_bound_that_is_nowhere_or_not_everywhere_defined():
    display = BoundDisplay(bound=[np.inf, 2.0, 3.0], test_loss=[1.0]).plot()
    assert display.marker_.get_xdata()[0] == 2
    assert legend_of(display) == ["Bound", "Test", "Lowest bound: 2 vectors"]
    display = BoundDisplay(bound=[2.0, np.inf]).plot()
    assert legend_of(display)[-1] == "Lowest bound: 1 vector"
    assert BoundDisplay(bound=[np.inf, np.inf]).plot().marker_ is None


def test_lines_of_the_bound_differ_in_colour():
    display = BoundDisplay(bound=[2.0], train_loss=[1.0], test_loss=[1.0]).plot()
    assert len({to_hex(line.get_color()) for line in display.lines_.values()}) == 3
    assert display.ax_.get_ylabel() == "Loss"


def test_bound_refuses_what_has_none(moons, rows):
    X, y = moons
    with pytest.raises(NotFittedError):
        BoundDisplay.from_estimator(SparseKernelPCA())
    with pytest.raises(ValueError, match="SparseKernelPCA that was fitted without a bound"):
        BoundDisplay.from_estimator(SparseKernelPCA(3, selection="kmeans").fit(rows))
    model = KernelMatchingPursuitClassifier(3).fit(X, y)
    with pytest.raises(ValueError, match="Classifier that was fitted without a bound"):
        BoundDisplay.from_estimator(model)
    model = KernelMatchingPursuitClassifier(3, early_stopping="bound").fit(X, y)
    with pytest.raises(ValueError, match="X and y must be given together"):
        BoundDisplay.from_estimator(model, X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        BoundDisplay.from_estimator(model, X, y[:5])


# Without matplotlib


def test_missing_matplotlib_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "pursuit\[plot\]"'):
        PursuitPathDisplay(train_loss=[1.0]).plot()


def test_importing_the_displays_does_not_import_matplotlib():
    code = "import sys, pursuit.displays; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
