"""Weights whose sum is below one sample: a fit as with equal weights, no bound, no error."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

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
