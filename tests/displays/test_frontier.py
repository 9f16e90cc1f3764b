"""The display of a frontier draws its numbers."""

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from pursuit import (
    Frontier,
    FrontierDisplay,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
    SparseKernelRegressor,
)

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402 the back end is chosen first


@pytest.fixture
def data():
    return make_moons(120, noise=0.2, random_state=0)


@pytest.fixture
def path():
    models = [SparseKernelClassifier(n) for n in (8, 4, 2, 1)]
    sizes, scores = np.array([8, 4, 2, 1]), np.array([0.9, 0.95, 0.8, 0.7])
    return Frontier(models, sizes, 10 * sizes, scores, np.zeros(4))


@pytest.mark.parametrize(
    ("against", "unit", "words"),
    [("vectors", 1, "Number of vectors"), ("bytes", 10, "Bytes in single precision")],
)
def test_the_line_is_the_pareto_front(against, unit, words, path):
    display = FrontierDisplay.from_frontier(path, against=against)
    assert_array_equal(display.line_.get_xdata(), unit * np.array([4, 2, 1]))
    assert_allclose(display.line_.get_ydata(), [0.05, 0.2, 0.3])
    assert_array_equal(display.others_.get_xdata(), [8 * unit])
    assert (display.ax_.get_xscale(), display.ax_.get_xlabel()) == ("log", words)
    assert display.ax_.get_ylabel() == "Share of errors"
    assert display.ax_.get_title() == "SparseKernelClassifier"
    assert display.dots_ == {}


def test_other_models_are_dots(path, data):
    svc = SVC().fit(*data)
    display = FrontierDisplay.from_frontier(path, {"SVC": svc}, *data, name="Moons")
    assert_allclose(display.dots_["SVC"].get_ydata(), [1 - svc.score(*data)])
    assert_array_equal(display.dots_["SVC"].get_xdata(), [len(svc.support_)])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["Moved vectors", "SVC"]
    assert display.ax_.get_title() == "Moons"
    figure, ax = plt.subplots()
    again = display.plot(ax, against="bytes", color="black")
    assert again.ax_ is ax and again.figure_ is figure
    assert_array_equal(again.dots_["SVC"].get_xdata(), [4 * (3 * len(svc.support_) + 1)])
    assert again.line_.get_color() == "black"
    with pytest.raises(ValueError, match="models need X and y"):
        FrontierDisplay.from_frontier(path, {"SVC": svc})
    with pytest.raises(ValueError, match="against must be one of"):
        display.plot(against="time")


def test_from_an_estimator(data):
    X, y = data
    model = SparseKernelClassifier(6, max_iter=5, random_state=0)
    display = FrontierDisplay.from_estimator(
        model, X[:60], y[:60], X[60:], y[60:], sizes=[6, 3], max_iter=3
    )
    assert_array_equal(display.n_components, [6, 3])
    fitted = model.fit(X[:60], y[:60])
    assert_allclose(display.errors[0], 1 - fitted.score(X[60:], y[60:]))


def test_the_frontier_of_a_search_is_drawn_as_it_is(data, path):
    search = SparseKernelClassifierCV()
    search.frontier_ = path
    svc = SVC().fit(*data)
    display = FrontierDisplay.from_estimator(search, *data, models={"SVC": svc})
    assert_array_equal(display.errors, 1 - path.scores)
    assert_allclose(display.dots_["SVC"].get_ydata(), [1 - svc.score(*data)])
    assert_array_equal(FrontierDisplay.from_estimator(search).pareto, [1, 2, 3])
    with pytest.raises(ValueError, match="sizes, scoring and max_iter do not go with"):
        FrontierDisplay.from_estimator(search, sizes=[2])


@pytest.mark.parametrize(
    ("scoring", "words"),
    [(None, "1 - R2"), ("neg_mean_absolute_error", "Mean absolute error"), ("r2", "1 - r2")],
)
def test_errors_of_numbers(scoring, words, data):
    X, y = data
    model = SparseKernelRegressor(4, max_iter=5, random_state=0)
    display = FrontierDisplay.from_estimator(model, X, y, sizes=[4, 2], scoring=scoring)
    assert display.ax_.get_ylabel() == words
    fitted = model.fit(X, y)
    expected = 1 - fitted.score(X, y)
    if scoring == "neg_mean_absolute_error":
        expected = np.mean(np.abs(fitted.predict(X) - y))
    assert_allclose(display.errors[0], expected)
