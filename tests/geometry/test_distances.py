"""Squared distances against differences in exact arithmetic, where products lose their digits."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist

from pursuit.geometry import distances
from pursuit.geometry.distances import (
    feature_variance,
    pair_distances,
    shifted_centres,
    squared_distances,
)
from pursuit.kernels import RBF

FORMS = [np.asarray, sparse.csr_matrix, sparse.csr_array]
CLUSTERS = np.array([[0.0], [1e-4], [1e6], [1e6 + 1e-4], [-1e6], [-1e6 + 1e-4]])


def exact(X, Z):
    """Rational arithmetic, rounded once."""
    return np.array(
        [
            [float(sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, z, strict=True)))
             for z in Z.astype(float).tolist()]
            for x in X.astype(float).tolist()
        ]
    )  # fmt: skip


def far_clusters(rng, dtype, offset, n=60, d=3):
    X = rng.normal(size=(n, d)) + offset * rng.integers(-1, 2, size=(n, 1))
    return X.astype(dtype)


@pytest.mark.parametrize("form_Z", FORMS[:2])
@pytest.mark.parametrize("form_X", FORMS)
def test_pairs_in_clusters_that_are_far_from_each_other(form_X, form_Z):
    K = RBF(1e8)(form_X(CLUSTERS), form_Z(CLUSTERS))
    pairs = [(0, 1), (2, 3), (4, 5)]
    expected = np.eye(6)
    for i, j in pairs:
        d = Fraction(CLUSTERS[i, 0]) - Fraction(CLUSTERS[j, 0])
        expected[i, j] = expected[j, i] = np.exp(-float(Fraction(10**8) * d * d))
    assert_allclose(K, expected, rtol=1e-12)
    assert_allclose([K[i, j] for i, j in pairs], 0.3679, rtol=2e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("dtype", "offset", "rtol"),
    [
        (np.float64, 1e3, 1e-7),
        (np.float64, 1e7, 1e-7),
        (np.float32, 30.0, 2e-2),
        (np.float32, 1e4, 2e-2),
    ],
)
def test_unit_spread_in_far_clusters(form, dtype, offset, rtol, rng):
    X = far_clusters(rng, dtype, offset)
    X[7] = X[3]
    found = squared_distances(form(X[:40]), shifted_centres(form(X)))
    assert found.dtype == dtype
    assert_allclose(found, exact(X[:40], X), rtol=rtol)
    assert_array_equal(found == 0.0, exact(X[:40], X) == 0.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_are_at_distance_zero_and_no_others(form, dtype, rng):
    X = (10.0 ** rng.integers(-3, 4, size=(40, 1)) * rng.normal(size=(40, 5))).astype(dtype)
    X[11], X[30] = X[2], X[2]
    near = np.nextafter(X[2], np.inf, dtype=dtype)
    X = np.vstack([X, near])
    found = squared_distances(form(X), shifted_centres(form(X)))
    assert_array_equal(found == 0.0, exact(X, X) == 0.0)
    assert_allclose(found[2, -1], exact(X[2:3], near[None])[0, 0], rtol=1e-6)


@pytest.mark.parametrize("power", [-480, -60, 0, 60, 480])
def test_scale_of_the_data_does_not_matter(power, rng):
    X = far_clusters(rng, np.float64, 1e7)
    scaled = squared_distances(np.ldexp(X[:20], power), shifted_centres(np.ldexp(X, power)))
    assert_array_equal(np.ldexp(scaled, -2 * power), squared_distances(X[:20], shifted_centres(X)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e20, 1e30])
def test_single_precision_whose_squares_leave_its_range(form, scale, rng):
    X = (scale * rng.normal(size=(12, 3))).astype(np.float32)
    found = squared_distances(form(X), shifted_centres(form(X)))
    assert_allclose(found, exact(X, X), rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("dtype", "far"), [(np.float32, 1e30), (np.float64, 1e200)])
def test_a_row_whose_square_overflows_is_infinitely_far(form, dtype, far):
    Z = np.array([[0.0, 1.0], [1.0, 2.0], [3.0, -1.0]], dtype=dtype)
    X = np.array([[far, -far], [0.0, 1.0]], dtype=dtype)
    found = squared_distances(form(X), shifted_centres(form(Z)))
    assert_array_equal(found[0], np.inf)
    assert_allclose(found[1], [0.0, 2.0, 13.0])


def test_a_far_centre_or_row_hides_no_others(rng):
    X = rng.normal(size=(50, 2))
    X[0] = 1e8
    assert_allclose(squared_distances(X, shifted_centres(X)), exact(X, X), rtol=1e-7)


def test_rows_of_one_form_and_centres_of_the_other(rng):
    X, Z = rng.normal(size=(20, 4)) + 3.0, rng.normal(size=(7, 4)) + 3.0
    Z[2] = X[4]
    for form_X in FORMS:
        for form_Z in FORMS:
            found = squared_distances(form_X(X), shifted_centres(form_Z(Z)))
            assert_allclose(found, cdist(X, Z, "sqeuclidean"), rtol=1e-11, atol=1e-30)


def test_pairs_and_whole_rows_agree(rng, monkeypatch):
    """Whichever way costs less: the numbers are those of the differences."""
    X = far_clusters(rng, np.float64, 1e9, n=50)
    whole = squared_distances(X, shifted_centres(X))
    monkeypatch.setattr(distances, "WHOLE_ROWS_SHARE", 2.0)
    monkeypatch.setattr(distances, "DIFFERENCE_BYTES", 100)
    assert_allclose(squared_distances(X, shifted_centres(X)), whole, rtol=1e-14)
    rows, columns = np.array([3, 0, 3]), np.array([1, 0, 49])
    expected = exact(X, X)[rows, columns]
    for form in FORMS:
        assert_allclose(pair_distances(form(X), form(X), rows, columns), expected, rtol=1e-14)


def test_ordinary_rows_are_not_formed_twice(rng, monkeypatch):
    """Only equal rows are looked at again, so the repair costs nothing."""
    looked = []
    real = distances.pair_distances
    monkeypatch.setattr(
        distances, "pair_distances", lambda *args: looked.append(len(args[2])) or real(*args)
    )
    for dtype in (np.float32, np.float64):
        X = np.hstack([rng.normal(size=(500, 10)), rng.random((500, 44)) < 0.05]).astype(dtype)
        squared_distances(X, shifted_centres(X))
    assert looked == [500, 500]


@pytest.mark.parametrize("form", FORMS)
def test_mean_variance_of_the_features(form, rng):
    X, weights = rng.normal(size=(40, 3)) * [1.0, 2.0, 3.0] + 5.0, rng.integers(0, 3, 40)
    assert_allclose(feature_variance(form(X)), X.var(axis=0).mean())
    repeated = np.repeat(X, weights, axis=0).var(axis=0).mean()
    assert_allclose(feature_variance(form(X), weights), repeated)


def test_variance_far_from_the_origin():
    assert_allclose(feature_variance(np.array([[1e9], [1e9 + 1.0]])), 0.25)
