"""Class weights beside sample weights: a weight of 2 is the row twice, whatever its class."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from pursuit import (
    ConvexNetworkClassifier,
    KernelMatchingPursuitClassifier,
    ReducedSetClassifier,
    ReducedSupportVectorClassifier,
    RelevanceVectorClassifier,
    SparseKernelClassifier,
)

RNG = np.random.default_rng(5)
X, NEW = RNG.normal(size=(60, 3)), RNG.normal(size=(30, 3))
Y = (X[:, 0] + 0.7 * RNG.normal(size=60) > 0.6).astype(int)
WEIGHTS = RNG.integers(1, 4, size=60)
ROWS = np.repeat(np.arange(60), WEIGHTS)

# Classifiers, and how far their solvers leave probabilities from the optimum.
CLASSIFIERS = [
    (KernelMatchingPursuitClassifier(15, gamma=0.3), 1e-8),
    (ConvexNetworkClassifier(kernel="rbf", alpha=0.1), 1e-8),
    (ConvexNetworkClassifier(kernel="rbf", alpha=0.1, loss="squared_error"), 1e-8),
    (RelevanceVectorClassifier(gamma=0.3), 1e-8),
    (SparseKernelClassifier(3, gamma=0.3, init=X[:3], tol=1e-14, max_iter=2000), 1e-4),
    (ReducedSupportVectorClassifier(60, gamma=0.3, random_state=0), 1e-3),
    (ReducedSetClassifier(3, gamma=0.3), 2e-2),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.4, 1: 3.0}])
@pytest.mark.parametrize(("model", "atol"), CLASSIFIERS)
def test_weight_two_is_the_row_twice(model, atol, class_weight):
    model = clone(model).set_params(class_weight=class_weight)
    weighted = clone(model).fit(X, Y, sample_weight=WEIGHTS.astype(float)).predict_proba(NEW)
    repeated = clone(model).fit(X[ROWS], Y[ROWS]).predict_proba(NEW)
    assert_allclose(weighted, repeated, atol=atol)
