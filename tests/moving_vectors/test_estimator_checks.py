"""scikit-learn's checks of the estimators whose vectors move."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pursuit import (
    KernelMetric,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
    SparseKernelRegressor,
    SparseKernelRegressorCV,
    SparseOneClass,
)

ESTIMATORS = [
    SparseKernelClassifier(5, max_iter=5, random_state=0),
    SparseKernelClassifier(3, metric=2, early_stopping=True, max_iter=5, random_state=0),
    SparseKernelRegressor(5, max_iter=5, random_state=0),
    SparseKernelClassifierCV(4, max_iter=3, gammas=[0.1], Cs=[10.0], cv=2, random_state=0),
    SparseKernelRegressorCV(
        4, max_iter=3, gammas=[0.1, 1.0], Cs=[1.0], cv=2, rule="one_se", random_state=0
    ),
    KernelMetric(n_components=2, n_rounds=0, random_state=0),
    SparseOneClass(3, max_iter=3, random_state=0),
]
WEIGHTED = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)


def drawn_starts(estimator):
    """The vectors start at rows that are drawn, and the check shuffles and repeats the rows.

    That a weight counts rows is in test_estimators.py, from a given start.
    """
    without_rounds = isinstance(estimator, KernelMetric)
    return {} if without_rounds else dict.fromkeys(WEIGHTED, drawn_starts.__doc__)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=drawn_starts)
def test_scikit_learn_check(estimator, check):
    check(estimator)
