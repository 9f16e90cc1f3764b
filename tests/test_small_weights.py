"""Weights whose sum is below one sample: a fit as with equal weights, no bound, no error."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import PredefinedSplit

import pursuit

WEIGHTS = np.full(20, 0.01)


def test_no_bound_for_less_than_one_sample(rng):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    model = pursuit.KernelMatchingPursuitRegressor(3, early_stopping="bound")
    model.fit(X, y, WEIGHTS)
    assert model.bound_path_.tolist() == [np.inf] * 3
    whole = pursuit.KernelMatchingPursuitRegressor(1).fit(X, y)
    assert_allclose(model.predict(X), whole.predict(X), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["SparseKernelPCA", "SparseKernelCCA", "GreedyNystroem"])
def test_subspaces_of_small_weights(name, rng):
    X = rng.normal(size=(20, 2))
    estimator = getattr(pursuit, name)(n_components=3, random_state=0)
    arguments = (X, X[:, :1]) if name.endswith("CCA") else (X,)
    values = estimator.fit(*arguments, sample_weight=WEIGHTS).transform(X)
    assert np.isfinite(values).all()


CV_CLASSES = ["KernelMatchingPursuitRegressorCV", "KernelMatchingPursuitClassifierCV"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CV_CLASSES)
def test_cross_validation_with_small_weights(name, rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    estimator = getattr(pursuit, name)
    model, whole = estimator(3).fit(X, y, WEIGHTS), estimator(3).fit(X, y)
    assert_allclose(model.cv_loss_path_, whole.cv_loss_path_, rtol=1e-7)
    assert model.n_components_ == whole.n_components_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CV_CLASSES)
def test_predefined_folds_with_rows_of_weight_zero(name, rng):
    X, y, fold = rng.normal(size=(20, 2)), np.arange(20) % 2, np.arange(20) // 2 % 3
    weights = np.where(np.arange(20) % 5 == 0, 0.0, 1.0)
    used = np.flatnonzero(weights)
    estimator = getattr(pursuit, name)
    model = estimator(3, cv=PredefinedSplit(fold)).fit(X, y, weights)
    fewer = estimator(3, cv=PredefinedSplit(fold[used])).fit(X[used], y[used])
    assert_allclose(model.cv_loss_path_, fewer.cv_loss_path_, rtol=1e-7)


SIX = np.array([0, 1, 0, 1, 1, 0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("early_stopping", [True, "loo", "bound"])
def test_six_rows(early_stopping, rng):
    """A few rows end early and calibrate; too few are one error that says what to change."""
    X = rng.normal(size=(6, 2))
    model = pursuit.KernelMatchingPursuitClassifier(3, early_stopping=early_stopping)
    assert np.isfinite(model.fit(X, SIX).predict_proba(X)).all()
    calibrated = CalibratedClassifierCV(pursuit.KernelMatchingPursuitClassifier(3), cv=3)
    assert np.isfinite(calibrated.fit(X, SIX).predict_proba(X)).all()
    with pytest.raises(ValueError, match="^cv=5: "):
        pursuit.KernelMatchingPursuitClassifierCV(3).fit(X, SIX)
    held_out = pursuit.KernelMatchingPursuitClassifier(3, early_stopping=True)
    with pytest.raises(ValueError, match="change early_stopping or validation_fraction"):
        held_out.fit(X, np.arange(6) == 0)
