"""Relevances drawn as bars: which, in which order, of what length and with which texts."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes

from pursuit import (
    FeatureRelevanceDisplay,
    KernelMatchingPursuitRegressor,
    KernelMetric,
    SparseKernelRegressor,
)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X[:150], y[:150]


def texts_of(display):
    return [text.get_text() for text in display.ax_.texts]


def test_the_largest_stand_alone_and_the_rest_together(diabetes):
    X, y = diabetes
    model = SparseKernelRegressor(5, metric="diagonal", max_iter=5, random_state=0).fit(X, y)
    display = FeatureRelevanceDisplay.from_estimator(model, max_features=4)
    shares = np.sort(100 * model.feature_relevances_)[::-1]
    drawn = [bar.get_width() for bar in display.bars_]
    assert_allclose(drawn, [*shares[:4], shares[4:].sum()])
    assert_allclose(sum(drawn), 100)
    names = X.columns[np.argsort(-model.feature_relevances_)[:4]]
    assert display.labels_ == [*names, "6 others"]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == display.labels_
    assert texts_of(display) == [f"{share:.1f}" for share in drawn]
    assert display.ax_.get_xlabel() == "Share of the function's mean squared slope (%)"
    assert display.ax_.get_title() == "SparseKernelRegressor"
    # From zero on, the first on top, no bar cut off.
    assert display.ax_.get_xlim()[0] == 0 and display.ax_.get_xlim()[1] > max(drawn)
    assert display.ax_.transData.transform((0, 0))[1] > display.ax_.transData.transform((0, 4))[1]
    colours = [bar.get_facecolor() for bar in display.bars_]
    assert len(set(colours[:4])) == 1 and colours[4] != colours[0]


def test_a_metric_has_its_own_quantity_and_all_features_fit(diabetes):
    X, y = diabetes
    metric = KernelMetric(metric=2, n_components=5, random_state=0).fit(X.to_numpy(), y)
    _, ax = plt.subplots()
    display = FeatureRelevanceDisplay.from_estimator(
        metric, ax=ax, name="Ten", color="black", max_features=10
    )
    order = np.argsort(-metric.feature_relevances_)
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert display.labels_ == [f"x{k}" for k in order]
    assert ax.get_xlabel() == "Share of the variance after the metric (%)"
    assert ax.get_title() == "Ten"
    assert_array_equal(display.bars_[0].get_facecolor(), (0, 0, 0, 1))


def test_numbers_at_the_bars():
    display = FeatureRelevanceDisplay(
        relevances=[0.0, 0.0004, 0.9996], feature_names=["a", "b", "c"]
    ).plot()
    assert display.labels_ == ["c", "b", "a"]
    assert texts_of(display) == ["100.0", "<0.05", "0.0"]
    assert display.ax_.get_xlabel() == "Share (%)"
    assert FeatureRelevanceDisplay(relevances=[0.0, 0.0]).plot().ax_.get_xlim() == (0.0, 1.0)
    one_more = FeatureRelevanceDisplay(relevances=[0.5, 0.5], max_features=1).plot()
    assert one_more.labels_ == ["x0", "1 other"]


def test_errors(diabetes):
    X, y = diabetes
    model = KernelMatchingPursuitRegressor(3).fit(X, y)
    with pytest.raises(ValueError, match="KernelMatchingPursuitRegressor without feature_rel"):
        FeatureRelevanceDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="feature_names has 1 names, but there are 2 features"):
        FeatureRelevanceDisplay(relevances=[0.5, 0.5], feature_names=["a"]).plot()
    with pytest.raises(ValueError, match="max_features must be an integer of at least 1"):
        FeatureRelevanceDisplay(relevances=[0.5, 0.5], max_features=0).plot()
