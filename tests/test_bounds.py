"""Bounds on the expected loss: values by hand, limits, guards, and coverage in a simulation."""

from math import comb, e, log, log2, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less

from pursuit import KernelMatchingPursuitRegressor, SparseKernelPCA
from pursuit.bounds import (
    cca_bound,
    compression_bound,
    kernel_pca_bound,
    matching_pursuit_bound,
    matching_pursuit_bound_path,
)

# Theorem 2


def test_compression_bound_by_hand():
    terms = compression_bound([0.5, 0.25], 10, delta=0.1)
    # t = 1: (1 ln(10 e) + ln 200) / 18;  t = 2: (2 ln(5 e) + ln 200) / 16
    by_hand = [
        0.5 + sqrt((3.3025850929940455 + 5.298317366548036) / 18),
        0.25 + sqrt((5.218875824868201 + 5.298317366548036) / 16),
    ]
    assert_allclose(terms, by_hand, rtol=1e-14)


def test_compression_bound_scales_with_the_loss():
    residuals = np.array([0.5, 0.25, 0.2])
    one = compression_bound(residuals, 50)
    assert_allclose(compression_bound(4 * residuals, 50, largest_loss=4.0), 4 * one, rtol=1e-14)


def test_compression_bound_pays_for_every_choice_of_rows():
    m, delta = 40, 0.05
    terms = compression_bound(np.zeros(m - 1), m, delta=delta)
    for t in range(1, m):
        exact = (log(comb(m, t)) + log(2 * m / delta)) / (2 * (m - t))
        assert exact < terms[t - 1] ** 2 < exact + (0.5 * log(8 * t) + t) / (m - t)


def test_compression_bound_suggests_where_the_residual_becomes_flat():
    t = np.arange(1, 200)
    residuals = np.maximum(1 - t / 30, 0.0) + 0.1 * (1 - t / 200)
    assert compression_bound(residuals, 2000).argmin() + 1 == 30


def test_no_residuals_no_terms():
    assert compression_bound([], 5).shape == (0,)


# Kernel PCA


def test_kernel_pca_bound_by_hand():
    terms = kernel_pca_bound([3.0, 2.0], [1.0, 2.0, 1.0, 2.0], delta=0.5)
    # trace 6, sum of squares 10, R^2 = 2, m = 4
    last = 2 * sqrt(18 / 4 * log(16))
    by_hand = [
        (6 - 3) / 4 + (1 + 1) / 2 * sqrt(5) + last,
        (6 - 5) / 4 + (1 + sqrt(2)) / 2 * sqrt(5) + last,
    ]
    assert_allclose(terms, by_hand, rtol=1e-14)


def test_kernel_pca_bound_of_another_radius():
    given = kernel_pca_bound([3.0], [1.0, 2.0, 1.0, 2.0], squared_radius=5.0)
    own = kernel_pca_bound([3.0], [1.0, 2.0, 1.0, 2.0])
    assert_allclose(given - own, 3 * sqrt(18 / 4 * log(8 / 0.05)), rtol=1e-12)


def test_kernel_pca_bound_of_all_eigenvalues_has_no_negative_rest(rng):
    features = rng.normal(size=(30, 4))
    K = features @ features.T
    values = np.linalg.eigvalsh(K)[::-1]
    terms = kernel_pca_bound(values, np.diag(K), squared_radius=0.0)
    spread = (1 + np.sqrt(np.arange(1, 31))) / 30 * sqrt(2 * (np.diag(K) ** 2).sum())
    rest = terms - spread
    assert_allclose(rest[:4], [values[t:].sum() / 30 for t in (1, 2, 3, 4)], atol=1e-12)
    assert_allclose(rest[4:], 0.0, atol=1e-12)


def test_eigenvalues_that_rounding_puts_above_the_trace_leave_no_negative_rest():
    terms = kernel_pca_bound([3.5], [1.0, 1.0, 1.0], squared_radius=0.0)
    assert_allclose(terms, [2 / sqrt(3) * sqrt(2)], rtol=1e-14)


# Theorems 3 and 4


def test_matching_pursuit_bound_by_hand():
    # m = 32, k = 3, t = 1: n = 28
    by_hand = 2 / 28 * (
        4 * log2(4 * e * 28 / 4) + 3 * log2(e * 32 / 3) + log2(e * 29) + log2(2 * 1024 / 0.125)
    )  # fmt: skip
    assert_allclose(matching_pursuit_bound(32, 3, 1, delta=0.125), by_hand, rtol=1e-14)
    # The same in figures: 4 * 6.25008 + 3 * 4.85773 + 6.30068 + 14.
    assert matching_pursuit_bound(32, 3, 1, delta=0.125) == pytest.approx(4.276, abs=1e-3)


@pytest.mark.parametrize("k", [0, 3])
def test_terms_without_a_count_are_zero(k):
    n = 32 - k
    basis = k * log2(e * 32 / k) if k else 0.0
    by_hand = 2 / n * ((k + 1) * log2(4 * e * n / (k + 1)) + basis + log2(2 * 32**2 / 0.05))
    bound = matching_pursuit_bound(32, k, 0)
    assert isinstance(bound, float)
    assert bound == pytest.approx(by_hand, rel=1e-13)


def test_bound_solves_equation_6():
    """m^2 times the right-hand side of equation 6, with its counts bounded, is delta."""
    m, k, t, delta = 400, 5, 7, 0.03
    n = m - k - t
    epsilon = matching_pursuit_bound(m, k, t, delta=delta)
    choices = (e * m / k) ** k * (e * (m - k) / t) ** t
    assert choices >= comb(m, k) * comb(m - k, t)
    probability = choices * 2 * (4 * e * n / (k + 1)) ** (k + 1) * 2 ** (-epsilon * n / 2)
    assert m**2 * probability == pytest.approx(delta, rel=1e-9)


def test_counts_broadcast():
    k, t = np.array([[1], [4]]), np.array([0, 3, 9])
    bounds = matching_pursuit_bound(50, k, t)
    assert bounds.shape == (2, 3)
    single = [[matching_pursuit_bound(50, int(a), int(b)) for b in t] for a in k[:, 0]]
    assert_array_equal(bounds, single)
    assert_array_equal(cca_bound(50, k, t, delta=0.2), matching_pursuit_bound(50, k, t, delta=0.2))


def test_more_vectors_or_errors_are_never_better():
    """Also where the printed expression falls below zero: near k = m."""
    m = 300
    along_k = matching_pursuit_bound(m, np.arange(m), 0)
    assert (np.diff(along_k) > 0).all()
    along_t = matching_pursuit_bound(m, 10, np.arange(m - 10))
    assert (np.diff(along_t) > 0).all()
    assert (2 * (m * log2(4 * e / m) + (m - 1) * log2(e * m / (m - 1))) < 0) and along_k[-1] > 11


def test_more_rows_and_less_confidence_are_better():
    rows = [matching_pursuit_bound(m, 10, m // 50) for m in (100, 1000, 10_000, 10**9)]
    assert (np.diff(rows) < 0).all()
    deltas = [matching_pursuit_bound(1000, 10, 20, delta=delta) for delta in (0.01, 0.1, 0.9)]
    assert (np.diff(deltas) < 0).all()


def test_path_is_infinite_where_no_row_is_left():
    path = matching_pursuit_bound_path(10, [0, 2, 5, 9, 10, 12], [10, 3, 5, 0, 0, 0], delta=0.1)
    expected = [np.inf, matching_pursuit_bound(10, 2, 3, delta=0.1), np.inf,
                matching_pursuit_bound(10, 9, 0, delta=0.1), np.inf, np.inf]  # fmt: skip
    assert_array_equal(path, expected)
    assert matching_pursuit_bound_path(10, [], []).shape == (0,)


# Guards


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, np.nan, "0.1", None])
@pytest.mark.parametrize(
    "bound",
    [
        lambda delta: compression_bound([0.1], 5, delta=delta),
        lambda delta: kernel_pca_bound([0.1], [1.0, 1.0], delta=delta),
        lambda delta: matching_pursuit_bound(5, 1, 1, delta=delta),
        lambda delta: matching_pursuit_bound_path(5, [1], [1], delta=delta),
        lambda delta: cca_bound(5, 1, 1, delta=delta),
    ],
)
def test_delta_is_a_probability(bound, delta):
    with pytest.raises(ValueError, match="delta must be"):
        bound(delta)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: matching_pursuit_bound(5, 5, 0), "n_vectors must be below n_samples = 5, got 5"),
        (lambda: matching_pursuit_bound(5, [1, 7], 0), "n_vectors must be below .* got 7"),
        (lambda: matching_pursuit_bound(5, 2, 3), "n_errors must leave .* is 0, with n_samples"),
        (lambda: cca_bound(5, 2, [1, 4]), "n_errors must leave at least one row: .* is -1"),
        (lambda: matching_pursuit_bound(5, -1, 0), "n_vectors must hold whole .* got -1"),
        (lambda: matching_pursuit_bound(5, 1, [0.5]), "n_errors must hold whole .* got 0.5"),
        (lambda: matching_pursuit_bound_path(5, [1], [np.nan]), "n_errors must hold .* got nan"),
        (lambda: matching_pursuit_bound(0, 0, 0), "n_samples must be an integer"),
        (lambda: matching_pursuit_bound(5.5, 0, 0), "n_samples must be an integer"),
        (lambda: compression_bound([0.1, 0.1], 2), "mean_residuals must be 1-d and shorter"),
        (lambda: compression_bound([[0.1]], 5), "mean_residuals must be 1-d"),
        (lambda: compression_bound([0.1], 5, largest_loss=0), "largest_loss must be"),
        (lambda: kernel_pca_bound([1.0, 1.0], [1.0]), "eigenvalues must be 1-d and no longer"),
        (lambda: kernel_pca_bound([1.0], []), "diagonal must be an integer of at least 1, got 0"),
        (lambda: kernel_pca_bound([1.0], [1.0], squared_radius=-1.0), "squared_radius must be"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Coverage


def gaussian(X, Z, width=0.15):
    return np.exp(-((X[:, None] - Z) ** 2) / (2 * width**2))


def mean_residual(X, Z):
    """Mean of K(x, x) - |P(x)|^2 for the subspace of the centres Z."""
    G = gaussian(Z, Z) + 1e-10 * np.eye(len(Z))
    k = gaussian(X, Z)
    return (1 - np.einsum("it,ti->i", k, np.linalg.solve(G, k.T))).mean()


def test_compression_bound_covers_the_expected_residual(rng):
    """Residual on fresh points, of centres chosen so that it looks small on the others.

    Three centres, the best of thirty triples on 24 points: the mean residual alone is below the
    expected one in most of the draws, the bound never is.
    """
    delta, draws, m = 0.2, 100, 24
    fresh = np.linspace(0, 1, 400)
    below = bound_below = 0
    for _ in range(draws):
        X = rng.random(m)
        triples = [rng.permutation(m)[:3] for _ in range(30)]
        observed = [mean_residual(np.delete(X, rows), X[rows]) for rows in triples]
        best = int(np.argmin(observed))
        expected = mean_residual(fresh, X[triples[best]])
        below += observed[best] < expected
        terms = compression_bound([1.0, 1.0, observed[best]], m, delta=delta)
        bound_below += terms[2] < expected
    assert below > draws / 2
    assert bound_below <= delta * draws


def test_matching_pursuit_bound_covers_the_probability_of_an_error(rng):
    """Least squares on k chosen kernels; targets with outliers that the fit cannot follow."""
    delta, alpha, m, k = 0.2, 0.5, 2000, 4
    below = uncovered = 0
    fresh = rng.random(4000)
    for _ in range(40):
        X = rng.random(m)
        outliers = 2 * (rng.random(m) < 0.01)
        y = np.sin(6 * X) + outliers
        chosen = rng.permutation(m)[:k]
        coefficients = np.linalg.lstsq(gaussian(X, X[chosen]), y, rcond=None)[0]
        outside = np.delete(np.arange(m), chosen)
        values = gaussian(X[outside], X[chosen]) @ coefficients
        t = int((abs(values - y[outside]) > alpha).sum())
        bad = abs(gaussian(fresh, X[chosen]) @ coefficients - np.sin(6 * fresh)) > alpha
        good_after_outlier = (
            abs(gaussian(fresh, X[chosen]) @ coefficients - np.sin(6 * fresh) - 2) > alpha
        )
        probability = 0.99 * bad.mean() + 0.01 * good_after_outlier.mean()
        below += t / (m - k) < probability
        uncovered += matching_pursuit_bound(m, k, t, delta=delta) < probability
    assert below >= 5
    assert uncovered <= delta * 40


# Coverage of what the estimators report: at delta = 0.05 at most 10 of 200 draws may fail.


def rows_of_two_kinds(rng, m):
    """Most rows near the origin, few far from each other: a small sample misses many of those."""
    far = rng.random(m) < 0.15
    return np.where(far[:, None], 12.0 * rng.random((m, 2)), 0.3 * rng.normal(size=(m, 2)))


@pytest.mark.parametrize("selection", ["rayleigh", "residual"])
def test_coverage_of_compression_bound(rng, selection):
    fresh = rows_of_two_kinds(rng, 4000)
    failures = optimistic = 0
    for _ in range(100):
        X = rows_of_two_kinds(rng, 60)
        model = SparseKernelPCA(15, gamma=1.0, selection=selection).fit(X)
        expected = [residual.mean() for residual in model.staged_residual(fresh)]
        terms = model.bound_path_
        failures += (np.minimum.accumulate(terms) < expected).any()
        means = model.residual_path_ * 60 / (60 - np.arange(1, 16))
        optimistic += (means < expected).any()
    assert failures <= 5
    assert optimistic > 50  # The mean over the other rows alone is no bound.


def directions(rng, m):
    """Unit vectors in 30 dimensions, of which the first few hold most."""
    X = rng.normal(size=(m, 30)) * 0.8 ** np.arange(30)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def test_coverage_of_kernel_pca_bound(rng):
    """The linear kernel, whose principal axes are those of X'X."""
    many = directions(rng, 50_000)
    second = many.T @ many / len(many)
    failures = optimistic = 0
    for _ in range(200):
        X = directions(rng, 1000)
        values, axes = np.linalg.eigh(X.T @ X)
        values, axes = values[::-1][:20], axes[:, ::-1][:, :20]
        expected = 1.0 - np.cumsum(((second @ axes) * axes).sum(axis=0))
        terms = kernel_pca_bound(values, np.ones(1000))
        failures += (terms < expected).any()
        optimistic += (1.0 - np.cumsum(values) / 1000 < expected).any()
    assert terms.min() < 1
    assert failures <= 10
    assert optimistic > 100


def count_failures(draw, bound, m, k, alpha):
    """Draws in which the bound, and the frequency itself, lie below the probability of an error.

    `draw` gives chosen rows, and the sizes of the errors on m rows and on fresh ones.
    """
    failures = optimistic = 0
    for _ in range(200):
        chosen, sizes, fresh_sizes = draw()
        t = int((np.delete(sizes, chosen) > alpha).sum())
        probability = (fresh_sizes > alpha).mean()
        value = bound(m, k, t)
        assert value < 1
        failures += value < probability
        optimistic += t / (m - k) < probability
    return failures, optimistic


def test_coverage_of_matching_pursuit_bound(rng):
    """Regression by kernel matching pursuit."""

    def rows(m):
        X = rng.random((m, 1))
        return X, np.sin(8 * X[:, 0]) + 0.4 * rng.normal(size=m)

    def draw():
        X, y = rows(3000)
        model = KernelMatchingPursuitRegressor(5, gamma=20.0, n_candidates=20, random_state=0)
        model.fit(X, y)
        X_fresh, y_fresh = rows(3000)
        errors = np.abs(model.predict(X) - y), np.abs(model.predict(X_fresh) - y_fresh)
        return model.support_, *errors

    failures, optimistic = count_failures(draw, matching_pursuit_bound, 3000, 5, 1.0)
    assert failures <= 10
    assert 50 < optimistic


def test_coverage_of_cca_bound(rng):
    """First canonical variables of two views, each in the span of three Gaussians."""

    def views(m):
        angle = rng.random(m)
        return angle, angle + 0.05 * rng.normal(size=m)

    def draw():
        both, fresh = views(3000), views(3000)
        chosen = rng.permutation(3000)[:3]
        features = [gaussian(view, view[chosen]) for view in both]
        factors = [np.linalg.qr(F - F.mean(axis=0)) for F in features]
        U, _, Vt = np.linalg.svd(factors[0][0].T @ factors[1][0])
        scale = np.sqrt(3000)
        axes = [
            scale * np.linalg.solve(factors[0][1], U[:, 0]),
            scale * np.linalg.solve(factors[1][1], Vt[0]),
        ]
        means = [F.mean(axis=0) for F in features]
        sizes = []
        for pair in (both, fresh):
            values = [
                (gaussian(view, own[chosen]) - mean) @ axis
                for view, own, mean, axis in zip(pair, both, means, axes, strict=True)
            ]
            sizes.append(np.abs(values[0] - values[1]))
        return chosen, *sizes

    failures, optimistic = count_failures(draw, cca_bound, 3000, 3, 1.0)
    assert failures <= 10
    assert optimistic > 50


def test_theorem_4_as_printed_and_as_derived():
    """Printed: that of theorem 3. Derived: 2 k coefficients and a constant (see bounds.py)."""
    m, k, t, delta = 5000, 7, 40, 0.1
    n = m - k - t

    def plain(d):
        count = d * np.log2(4 * np.e * n / d) + k * np.log2(np.e * m / k)
        return 2 / n * (count + t * np.log2(np.e * (m - k) / t) + np.log2(2 * m**2 / delta))

    assert_allclose(cca_bound(m, k, t, delta=delta), plain(k + 1))
    assert_allclose(cca_bound(m, k, t, delta=delta, form="derived"), plain(2 * k + 1))
    # What it costs: k log2(4 e n / k) / n or so, little for the few pairs that it is made for.
    assert_array_less(cca_bound(m, k, t), cca_bound(m, k, t, form="derived"))
    assert cca_bound(m, 0, t, form="derived") == cca_bound(m, 0, t)
    with pytest.raises(ValueError, match="form"):
        cca_bound(m, k, t, form="other")
