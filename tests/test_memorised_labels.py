"""Random labels learned by heart: no classifier is sure of anything elsewhere."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

from pursuit import (
    KernelMatchingPursuitClassifier,
    ReducedSetClassifier,
    ReducedSupportVectorClassifier,
    RelevanceVectorClassifier,
    SparseKernelClassifier,
    SparseLargeMarginClassifier,
)

CLASSIFIERS = [
    KernelMatchingPursuitClassifier(50),
    KernelMatchingPursuitClassifier(50, fitting="basic"),
    KernelMatchingPursuitClassifier(50, loss="log_loss"),
    KernelMatchingPursuitClassifier(50, loss="log_loss", fitting="basic"),
    ReducedSetClassifier(50, max_iter=1),
    ReducedSetClassifier(50, coefficients="margin", max_iter=1),
    ReducedSupportVectorClassifier(50, random_state=0),
    ReducedSupportVectorClassifier(50, regularizer="margin", random_state=0),
    RelevanceVectorClassifier(50),
    SparseKernelClassifier(50, max_iter=2, random_state=0),
    SparseLargeMarginClassifier(50, max_iter=2, random_state=0),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)
def test_fresh_rows_are_anyones_guess(model):
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(2, 100, 3))
        labels, others = rng.integers(0, 2, size=(2, 100))
        probabilities = clone(model).set_params(gamma=1e4).fit(X, labels).predict_proba(new)
        assert log_loss(others, probabilities, labels=[0, 1]) < 0.75
