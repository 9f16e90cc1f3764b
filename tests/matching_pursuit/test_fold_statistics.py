"""Cross-validation from sums over the folds equals that on the rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward
from sklearn.model_selection import PredefinedSplit

from pursuit import (
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressorCV,
    KernelStatistics,
)

P = awkward()
VECTORS = P.X[:20]
FOLD = np.arange(60) % 3
GAMMAS = [0.1, 0.3]


def sums(gamma, fold, classes=None):
    y = P.Y if classes is None else P.labels
    rows = fold == FOLD
    part = KernelStatistics(VECTORS, classes=classes, gamma=gamma)
    return part.update(P.X[rows], y[rows], P.weights[rows])


def folds(classes=None):
    return [[sums(gamma, fold, classes) for fold in range(3)] for gamma in GAMMAS]


@pytest.mark.parametrize(
    "options", [{}, {"fitting": "basic"}, {"fit_intercept": False}, {"alpha": 0.2}]
)
def test_numbers(options):
    found = KernelMatchingPursuitRegressorCV(6, **options).fit_statistics(folds())
    expected = KernelMatchingPursuitRegressorCV(
        6, dictionary=VECTORS, gammas=GAMMAS, cv=PredefinedSplit(FOLD), **options
    ).fit(P.X, P.Y, P.weights)
    assert_same(found, expected)


@pytest.mark.parametrize("multi_class", ["shared", "ovr"])
def test_classes(multi_class):
    options = {"multi_class": multi_class, "rule": "one_se"}
    found = KernelMatchingPursuitClassifierCV(6, **options)
    found.fit_statistics(folds(np.unique(P.labels)))
    expected = KernelMatchingPursuitClassifierCV(
        6, dictionary=VECTORS, gammas=GAMMAS, cv=PredefinedSplit(FOLD), **options
    ).fit(P.X, P.labels, P.weights)
    assert_same(found, expected)
    assert_array_equal(found.predict(P.X), expected.predict(P.X))


def assert_same(found, expected):
    assert_allclose(found.cv_loss_path_, expected.cv_loss_path_, rtol=1e-7)
    assert found.gamma_ == expected.gamma_
    assert found.n_components_ == expected.n_components_
    assert_allclose(found.dual_coef_, expected.dual_coef_, rtol=1e-7, atol=1e-8)
    assert_allclose(found.intercept_, expected.intercept_, rtol=1e-7, atol=1e-8)


def test_one_kernel_leaves_the_folds_as_they_were():
    table = folds()[0]
    before = table[0].moments_.gram.copy()
    model = KernelMatchingPursuitRegressorCV(4).fit_statistics(table)
    assert model.cv_loss_path_.shape == (1, 3, 4)
    assert_array_equal(table[0].moments_.gram, before)
    assert table[0].n_samples_ == (P.weights[FOLD == 0] > 0).sum()


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        ({}, lambda: folds()[0][:1], "at least two folds"),
        ({}, lambda: [folds()[0], folds()[1][:2]], "as many for each"),
        ({"scoring": "r2"}, folds, "scoring must be None"),
        ({"loss": "huber"}, folds, "loss='squared_error'"),
        ({}, lambda: [sums(0.3, 0), KernelStatistics(VECTORS)], "holds no rows"),
        ({}, lambda: [3, 4], "not iterable"),
    ],
)
def test_bad_calls_name_what_is_wrong(options, given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        KernelMatchingPursuitRegressorCV(3, **options).fit_statistics(given())
