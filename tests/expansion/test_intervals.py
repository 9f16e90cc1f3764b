"""Quantiles of errors, and what intervals made of them hold."""

import os

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.preprocessing import StandardScaler

from pursuit import (
    KernelMatchingPursuitRegressor,
    SparseKernelRegressor,
    datasets,
)
from pursuit.expansion.intervals import ALPHAS, error_quantiles, stored_quantile

# Set before the runs: mean coverage over all sets and splits of intervals of 90 %, that of one set.
MEAN, ONE = (0.85, 0.95), (0.79, 0.97)


def jackknife_quantile(errors, alpha):
    """The ceil((1 - alpha)(n + 1))-th smallest."""
    k = int(np.ceil(np.round((1 - alpha) * (len(errors) + 1), 9)))
    return np.sort(errors)[k - 1] if k <= len(errors) else np.inf


@pytest.mark.parametrize("n", [1, 9, 19, 57, 400])
def test_quantiles_are_those_of_the_jackknife(n):
    errors = np.abs(np.random.default_rng(n).normal(size=(n, 2)))
    table = error_quantiles(errors, np.ones(n))
    expected = [[jackknife_quantile(column, alpha) for column in errors.T] for alpha in ALPHAS]
    assert_array_equal(table, expected)


def test_a_weight_is_a_number_of_copies_and_less_than_one_a_share():
    rng = np.random.default_rng(0)
    errors, copies = np.abs(rng.normal(size=(40, 2))), rng.integers(1, 4, 40)
    table = error_quantiles(errors, copies.astype(float))
    repeated = np.repeat(errors, copies, axis=0)
    assert_array_equal(table, error_quantiles(repeated, np.ones(len(repeated))))
    small = error_quantiles(errors, np.full(40, 0.025), np.full(40, 0.025))
    assert_array_equal(small, error_quantiles(errors, np.ones(40)))


def test_a_level_in_between_takes_the_wider_interval():
    table = np.arange(len(ALPHAS), 0.0, -1.0)[:, None]
    for alpha in (*ALPHAS, 0.1, 0.3):
        assert_array_equal(stored_quantile(table, alpha), table[np.isclose(ALPHAS, alpha)][0])
    assert_array_equal(stored_quantile(table, 0.17999), stored_quantile(table, 0.17))
    assert_array_equal(stored_quantile(table, 0.0005), [np.inf])


# --- coverage ---------------------------------------------------------------------------


def uneven(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    return X, np.sin(X[:, 0]) + (0.1 + 0.3 * np.abs(X[:, 1])) * rng.normal(size=n)


def real(name):
    if not os.environ.get("PURSUIT_DATA"):
        pytest.skip("needs the folder PURSUIT_DATA")
    X, y = datasets.load(name)
    rows = np.random.default_rng(0).choice(len(y), 800, replace=False)
    return X[rows], np.asarray(y, dtype=float)[rows]


SETS = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "friedman": lambda: make_friedman1(600, noise=1.0, random_state=0),
    "uneven noise": uneven,
    "california": lambda: real("california"),
    "kin40k": lambda: real("kin40k"),
}
MODELS = [
    KernelMatchingPursuitRegressor(15),
    SparseKernelRegressor(15, random_state=0),
]


def coverage(model, X, y, seed):
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    X = StandardScaler().fit(X[train]).transform(X)
    lower, upper = model.fit(X[train], y[train]).predict_interval(X[test])
    return np.mean((lower <= y[test]) & (y[test] <= upper))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_intervals_hold_nine_of_ten_targets_of_rows_that_are_new(model):
    found = {}
    for name, data in SETS.items():
        if name in ("california", "kin40k") and not os.environ.get("PURSUIT_DATA"):
            continue
        X, y = data()
        found[name] = np.mean([coverage(model, X, y, seed) for seed in range(3)])
    assert all(ONE[0] <= value <= ONE[1] for value in found.values()), found
    assert MEAN[0] <= np.mean(list(found.values())) <= MEAN[1], found
