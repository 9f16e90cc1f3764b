"""How often do intervals of 90 % hold a new target, and how wide are they?

Half of the rows of each set fit, the other half are new; mean of several splits. Beside the errors
of leave-one-out stand those of five folds, for which everything is fitted anew (`cv=5`), and of the
fit's own residuals. The width is relative to that which would have held exactly 90 % of the new
targets. california and kin40k need the folder PURSUIT_DATA and are left out without it.

    python benchmarks/speed/intervals.py [splits]
"""

from __future__ import annotations

import os
import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.preprocessing import StandardScaler

from pursuit import KernelMatchingPursuitRegressor, SparseKernelRegressor, datasets
from pursuit.expansion.intervals import error_quantiles, stored_quantile

ALPHA = 0.1


def uneven_noise():
    """Noise whose size depends on the second of two features."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (500, 2))
    return X, np.sin(X[:, 0]) + (0.1 + 0.3 * np.abs(X[:, 1])) * rng.normal(size=500)


def some_rows(name, n=1000):
    """Random rows of a real set."""
    X, y = datasets.load(name)
    rows = np.random.default_rng(0).choice(len(y), n, replace=False)
    return X[rows], np.asarray(y, dtype=float)[rows]


SETS = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "friedman": lambda: make_friedman1(600, noise=1.0, random_state=0),
    "uneven noise": uneven_noise,
}
if os.environ.get("PURSUIT_DATA"):
    SETS |= {name: lambda name=name: some_rows(name) for name in ("california", "kin40k")}
MODELS = {
    "selected, 15": KernelMatchingPursuitRegressor(15),
    "selected, 50": KernelMatchingPursuitRegressor(50),
    "moved, 15": SparseKernelRegressor(15, random_state=0),
    "moved, 50": SparseKernelRegressor(50, random_state=0),
}


def split(X, y, seed):
    """Standardised rows and targets of two halves."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    X = StandardScaler().fit(X[train]).transform(X)
    return X[train], y[train], X[test], y[test]


def held(model, X, y, X_new, y_new):
    """Coverage and relative width of the three kinds, and the seconds of the first."""
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    errors = np.abs(y_new - model.predict(X_new))
    exact = np.quantile(errors, 1 - ALPHA)
    own = error_quantiles(np.abs(y - model.predict(X))[:, None], np.ones(len(y)))
    tables = [own, model.error_quantiles_, model.calibrate_interval(X, y, cv=5).error_quantiles_]
    radii = [float(stored_quantile(table, ALPHA)[0]) for table in tables]
    return [part for r in radii for part in (np.mean(errors <= r), r / exact)] + [seconds]


def main(n_splits=5):
    """Print a row a set and a model."""
    warnings.simplefilter("ignore")
    print("set            model          residuals      leave-one-out  five folds     s")
    for name, data in SETS.items():
        X, y = data()
        for label, model in MODELS.items():
            found = [held(model, *split(X, y, seed)) for seed in range(n_splits)]
            numbers = np.mean(found, axis=0)
            cells = "".join(f"{c:8.3f} {w:5.2f} " for c, w in numbers[:6].reshape(3, 2))
            print(f"{name:14} {label:14}{cells}{numbers[6]:6.2f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
