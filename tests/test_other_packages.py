"""Packages that take any estimator of scikit-learn's take ours: skore, MAPIE and shapiq.

They are no part of the tests' own extra, and each test is skipped where its package is missing:
``pip install -e ".[test,interop]"`` installs them.
"""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pursuit

pytestmark = [
    pytest.mark.filterwarnings("default"),  # those of the packages are theirs
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

CLASSIFIERS = [
    pursuit.KernelMatchingPursuitClassifier(15),
    pursuit.SparseKernelClassifier(8, max_iter=30, random_state=0),
    pursuit.SparseLargeMarginClassifier(6, max_iter=5, random_state=0),
    pursuit.ReducedSupportVectorClassifier(10, random_state=0),
    pursuit.RelevanceVectorClassifier(10),
    pursuit.ConvexNetworkClassifier(kernel="rbf", n_components=20),
    pursuit.HyperplaneKNeighborsClassifier(10),
    pursuit.DensityClassifier(),
]
REGRESSORS = [
    pursuit.KernelMatchingPursuitRegressor(25),
    pursuit.SparseKernelRegressor(8, max_iter=30, random_state=0),
    pursuit.RelevanceVectorRegressor(25),
    pursuit.HyperplaneKNeighborsRegressor(),
    pursuit.NadarayaWatsonRegressor(),
]
by_name = {"ids": lambda model: type(model).__name__}


@pytest.fixture(scope="module")
def classes():
    """Two classes, 200 rows to learn from and 200 others."""
    X, y = make_classification(400, 6, n_informative=4, class_sep=1.5, random_state=0)
    return X[:200], X[200:], y[:200], y[200:]


@pytest.fixture(scope="module")
def numbers():
    """A smooth function with noise, 400 rows to learn from and 600 others."""
    X, y = make_friedman1(1000, 5, noise=1.0, random_state=0)
    return X[:400], X[400:], y[:400], y[400:]


@pytest.mark.parametrize("model", CLASSIFIERS, **by_name)
def test_a_report_of_skore_has_every_metric_and_finds_no_fault(model, classes):
    """Its checks look for over- and underfitting beside a dummy and gradient boosting."""
    skore = pytest.importorskip("skore")
    X, X_test, y, y_test = classes
    report = skore.EstimatorReport(model, X_train=X, y_train=y, X_test=X_test, y_test=y_test)
    found = report.metrics.summarize().frame().squeeze().to_dict()
    assert found["accuracy"] == model.fit(X, y).score(X_test, y_test) > 0.8
    if hasattr(model, "predict_proba"):
        assert 0.0 < found["log_loss"] < np.log(2.0)
        assert found["roc_auc"] > 0.85
    assert "0 issue(s)" in repr(report.checks.summarize())


@pytest.mark.parametrize("model", REGRESSORS, **by_name)
def test_a_cross_validated_report_of_skore(model, numbers):
    skore = pytest.importorskip("skore")
    X, _, y, _ = numbers
    report = skore.CrossValidationReport(make_pipeline(StandardScaler(), model), X, y, splitter=3)
    frame = report.metrics.summarize().frame()
    assert frame.iloc[:, 0]["r2"] > 0.5


@pytest.mark.parametrize("model", REGRESSORS, **by_name)
def test_intervals_of_mapie_cover(model, numbers):
    mapie = pytest.importorskip("mapie.regression")
    X, X_test, y, y_test = numbers
    conformal = mapie.SplitConformalRegressor(model, confidence_level=0.9, prefit=False)
    conformal.fit(X[:250], y[:250]).conformalize(X[250:], y[250:])
    predicted, intervals = conformal.predict_interval(X_test)
    assert_allclose(predicted, model.fit(X[:250], y[:250]).predict(X_test))
    low, high = intervals[:, 0, 0], intervals[:, 1, 0]
    covered = np.mean((low <= y_test) & (y_test <= high))
    # 0.9 on average over calibration sets; 150 and 600 rows leave a deviation of 0.028.
    assert 0.9 - 4 * 0.028 < covered < 0.9 + 4 * 0.024
    assert np.median(high - low) < 3.3 * y_test.std()  # what a constant would need


@pytest.mark.parametrize(
    "model", [each for each in CLASSIFIERS if hasattr(each, "predict_proba")], **by_name
)
def test_sets_of_mapie_cover(model, classes):
    mapie = pytest.importorskip("mapie.classification")
    X, X_test, y, y_test = classes
    conformal = mapie.SplitConformalClassifier(model, confidence_level=0.9, prefit=False)
    conformal.fit(X[:100], y[:100]).conformalize(X[100:], y[100:])
    _, sets = conformal.predict_set(X_test)
    covered = np.mean(sets[np.arange(len(y_test)), y_test, 0])
    assert covered > 0.9 - 4 * 0.037  # 100 and 200 rows


@pytest.mark.parametrize("model", REGRESSORS[:2], **by_name)
def test_shapley_values_of_shapiq_add_up(model, numbers):
    """To the prediction less the mean over the rows; all 2^5 sets of features are looked at."""
    shapiq = pytest.importorskip("shapiq")
    X, X_test, y, _ = numbers
    fitted = model.fit(X, y)
    explainer = shapiq.TabularExplainer(
        fitted, X[:50], index="SV", max_order=1, imputer="marginal", sample_size=50, random_state=0
    )
    found = explainer.explain(X_test[0], budget=2**5)
    values = found.get_n_order_values(1)
    assert_allclose(
        values.sum() + found.baseline_value, fitted.predict(X_test[:1])[0], rtol=1e-6, atol=1e-6
    )


def test_shapley_values_of_a_linear_machine_are_its_terms(numbers):
    """w_j (x_j - mean of x_j over the background), whatever the other features are."""
    shapiq = pytest.importorskip("shapiq")
    X, X_test, y, _ = numbers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = pursuit.KernelMatchingPursuitRegressor(10, kernel="linear").fit(X, y)
    explainer = shapiq.TabularExplainer(
        model, X[:50], index="SV", max_order=1, imputer="marginal", sample_size=50, random_state=0
    )
    values = explainer.explain(X_test[0], budget=2**5).get_n_order_values(1)
    weights = model.dual_coef_.ravel() @ model.support_vectors_
    assert_allclose(values, weights * (X_test[0] - X[:50].mean(axis=0)), atol=1e-6)
