"""predict_interval and calibrate_interval of the regressors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward
from sklearn.model_selection import KFold, cross_val_predict

from pursuit import (
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
    SparseKernelRegressor,
    load,
    save,
)
from pursuit.expansion.intervals import ALPHAS, error_quantiles

P = awkward(80)
MODELS = [
    KernelMatchingPursuitRegressor(8),
    KernelMatchingPursuitRegressorCV(8, gammas=[0.1]),
    SparseKernelRegressor(6, max_iter=10, random_state=0),
]


def left_out_errors(model, X, Y, weights):
    """Fit the coefficients of given vectors again without one copy of each row in turn."""
    errors = np.empty(Y.shape)
    for i in range(len(X)):
        fewer = weights.copy()
        fewer[i] -= min(1.0, weights[i])
        fit = model.fit(X, Y, fewer)
        errors[i] = np.abs(Y[i] - fit.predict(X[i : i + 1])[0])
    return errors


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_errors_of_a_path_are_those_of_fits_without_each_row(alpha, weighted):
    weights = P.weights if weighted else np.ones(len(P.X))
    seen = (weights > 0) & (np.arange(len(weights)) < 40)
    X, Y, weights = P.X[seen], P.Y[seen], weights[seen]
    vectors = X[[0, 9, 20, 35]]
    model = KernelMatchingPursuitRegressor(4, gamma=0.1, dictionary=vectors, alpha=alpha)
    found = model.fit(X, Y, weights).error_quantiles_
    errors = left_out_errors(KernelMatchingPursuitRegressor(**model.get_params()), X, Y, weights)
    assert_allclose(found, error_quantiles(errors, weights, np.minimum(weights, 1.0)), rtol=1e-7)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_intervals_are_symmetric_and_nested(model):
    model.fit(P.X, P.Y, P.weights)
    middle = model.predict(P.X)
    widths = []
    for alpha in (0.02, 0.1, 0.5):
        lower, upper = model.predict_interval(P.X, alpha)
        assert lower.shape == P.Y.shape
        assert_allclose(lower + upper, 2 * middle)
        widths.append(upper - lower)
        assert_allclose(np.ptp(widths[-1], axis=0), 0.0, atol=1e-9)
    assert (widths[0] > widths[1]).all() and (widths[1] > widths[2]).all()
    one = model.fit(P.X, P.Y[:, 0]).predict_interval(P.X[:5])
    assert [part.shape for part in one] == [(5,), (5,)]


@pytest.mark.parametrize(
    "options",
    [{}, {"loss": "huber"}, {"loss": "quantile"}, {"fitting": "basic"}, {"fit_intercept": False}],
    ids=str,
)
def test_a_cut_path_has_the_errors_of_a_small_fit(options):
    model = KernelMatchingPursuitRegressor(12, gamma=0.1, **options).fit(P.X, P.Y[:, 0])
    small = KernelMatchingPursuitRegressor(5, gamma=0.1, **options).fit(P.X, P.Y[:, 0])
    assert np.isfinite(model.error_quantiles_[5:]).all()
    # Under the other losses fits of different length are refitted along different ways.
    rtol = 1e-7 if "loss" not in options else 1e-2
    assert_allclose(model.truncate(5).error_quantiles_, small.error_quantiles_, rtol=rtol)


def test_a_file_keeps_the_errors_and_its_size(tmp_path):
    model = KernelMatchingPursuitRegressor(12, gamma=0.1).fit(P.X, P.Y[:, 0])
    save(model, tmp_path / "m")
    save(model, tmp_path / "staged", staged=True)
    for name in ("m", "staged"):
        lower, upper = load(tmp_path / name).predict_interval(P.X)
        assert_array_equal([lower, upper], model.predict_interval(P.X))
    staged = load(tmp_path / "staged").truncate(4)
    assert_array_equal(staged.error_quantiles_, model.truncate(4).error_quantiles_)
    bare = KernelMatchingPursuitRegressor(12, gamma=0.1).fit(P.X, P.Y[:, 0])
    bare.error_quantiles_ = bare._error_quantile_path = None
    save(bare, tmp_path / "bare")
    grown = (tmp_path / "m").stat().st_size - (tmp_path / "bare").stat().st_size
    assert len(ALPHAS) * 8 / 4 < grown < len(ALPHAS) * 8 + 700


def test_calibration_takes_the_errors_of_new_rows():
    model = KernelMatchingPursuitRegressor(6).fit(P.X[:40], P.Y[:40])
    small = model.calibrate_interval(P.X[40:], P.Y[40:], P.weights[40:]).truncate(3)
    seen = P.weights[40:] > 0
    errors = np.abs(P.Y[40:] - model.predict(P.X[40:]))[seen]
    weights = P.weights[40:][seen]
    assert_array_equal(
        model.error_quantiles_, error_quantiles(errors, weights, np.minimum(weights, 1.0))
    )
    with pytest.raises(ValueError, match="knows nothing of its errors; calibrate_interval"):
        small.predict_interval(P.X)


def test_calibration_by_folds_fits_anew():
    X, y, folds = P.X, P.Y[:, 0], KFold(4, shuffle=True, random_state=1)
    model = SparseKernelRegressor(5, max_iter=5, random_state=0).fit(X, y)
    model.calibrate_interval(X, y, cv=folds)
    again = SparseKernelRegressor(**model.get_params())
    errors = np.abs(y - cross_val_predict(again, X, y, cv=folds))
    assert_allclose(model.error_quantiles_, error_quantiles(errors[:, None], np.ones(80)))
    weights = np.ones(80)
    weights[:20] = 0
    model.calibrate_interval(X, y, weights, cv=folds)
    assert np.isinf(model.error_quantiles_[3]) and np.isfinite(model.error_quantiles_[4])


def test_what_cannot_be_is_told():
    model = KernelMatchingPursuitRegressor(3).fit(P.X, P.Y)
    for alpha in (0.0, 1.0, "a"):
        with pytest.raises(ValueError, match="^alpha must be a finite number of at least 0.001"):
            model.predict_interval(P.X, alpha)
    with pytest.raises(ValueError, match=r"y has shape \(80,\), predictions have \(80, 2\)"):
        model.calibrate_interval(P.X, P.Y[:, 0])
    few = KernelMatchingPursuitRegressor(2).fit(P.X[:6], P.Y[:6])
    assert np.isinf(few.predict_interval(P.X, 0.05)[1]).all()
