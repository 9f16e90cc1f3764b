"""The tracker against Gaussian processes written out."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from pursuit.kernels import RBF
from pursuit.online.tracker import fresh


def drawn(rng, n=40):
    X = rng.standard_normal((n, 2))
    return X, np.stack([np.sin(X[:, 0]), X[:, 1] + 2.0], axis=1)


def run(X, Y, weights=None, *, n_components=100, forgetting=1.0, tol=1e-6, noise=0.3, gamma=5.0):
    """Take all rows; return the tracker and the rows that are points."""
    kernel, points = RBF(gamma), []
    tracker = fresh(
        n_components, Y.shape[1], noise=noise, forgetting=forgetting, tol=tol, constant=0.0
    )
    for t, y in enumerate(Y):
        k = kernel(X[[t]], X[points])[0] if points else np.empty(0)
        joined, removed, _ = tracker.absorb(k, 1.0, y, 1.0 if weights is None else weights[t])
        points += [t] * joined
        if removed is not None:
            del points[removed]
    return tracker, points


def posterior(X, Y, noise, gamma=5.0):
    """Mean and covariance of a Gaussian process at the rows themselves."""
    K = RBF(gamma)(X, X)
    gain = np.linalg.solve(K + np.diag(noise), K).T
    return gain @ Y, K - gain @ K


def test_with_all_rows_it_is_gaussian_process_regression(rng):
    X, Y = drawn(rng)
    w = rng.uniform(0.5, 2.0, 40)
    tracker, points = run(X, Y, w)
    mean, covariance = posterior(X, Y, 0.3 / w)
    assert_array_equal(points, np.arange(40))
    assert_allclose(tracker.mean, mean, atol=1e-9)
    assert_allclose(tracker.covariance, covariance, atol=1e-9)
    K = RBF(5.0)(X, X)
    assert_allclose(tracker.coefficients, np.linalg.solve(K + np.diag(0.3 / w), Y), atol=1e-8)
    # The scale: that of the highest marginal likelihood, y'(K + noise)^{-1}y / n.
    likely = np.einsum("it,it->t", Y, tracker.coefficients) / w.sum()
    assert_allclose(tracker.scale, likely, rtol=1e-9)


def test_variances_are_those_of_the_process(rng):
    X, Y = drawn(rng)
    tracker, _ = run(X, Y)
    queries = rng.standard_normal((7, 2))
    k = RBF(5.0)(queries, X)
    expected = 1.0 - np.einsum(
        "ij,ij->i", k, np.linalg.solve(RBF(5.0)(X, X) + 0.3 * np.eye(40), k.T).T
    )
    assert_allclose(tracker.variances(k, np.ones(7)), expected, atol=1e-9)


def test_a_row_of_weight_two_is_the_row_twice(rng):
    X, Y = drawn(rng, 20)
    twice = np.repeat(np.arange(20), 2)
    weighted, points = run(X, Y, np.full(20, 2.0))
    repeated, others = run(X[twice], Y[twice])
    assert_array_equal(X[points], X[twice][others])
    assert_allclose(repeated.mean, weighted.mean, atol=1e-9)
    assert_allclose(repeated.covariance, weighted.covariance, atol=1e-9)
    assert_allclose(repeated.scale, weighted.scale, rtol=1e-9)


def test_forgetting_goes_back_to_the_prior(rng):
    X, Y = drawn(rng, 10)
    tracker, _ = run(X, Y)
    mean, covariance = tracker.mean, tracker.covariance
    tracker.forgetting = 0.9
    tracker._forget()
    assert_allclose(tracker.mean, np.sqrt(0.9) * mean)
    assert_allclose(tracker.covariance, 0.9 * covariance + 0.1 * RBF(5.0)(X, X), atol=1e-12)


def test_rows_in_the_span_do_not_join(rng):
    X, Y = drawn(rng, 10)
    again = np.vstack([X, X + 1e-7])
    tracker, points = run(again, np.vstack([Y, Y]))
    assert_array_equal(points, np.arange(10))
    mean, _ = posterior(X, Y, np.full(10, 0.15))
    assert_allclose(tracker.mean, mean, atol=1e-5)


def test_the_point_that_matters_least_goes(rng):
    X, Y = drawn(rng, 12)
    before, _ = run(X, Y)
    a, Q = before.coefficients, np.linalg.inv(RBF(5.0)(X, X))
    losses = ((a / Q.diagonal()[:, None]) ** 2 / before.scale).sum(axis=1)
    # What f loses where the point stood is what its projection on the others leaves there.
    i = int(losses.argmin())
    others = np.delete(np.arange(12), i)
    K = RBF(5.0)(X, X)
    projected = K[i, others] @ np.linalg.solve(K[np.ix_(others, others)], before.mean[others])
    assert_allclose((before.mean[i] - projected) ** 2, (a[i] / Q[i, i]) ** 2, rtol=1e-6)
    after, points = run(X, Y, n_components=11)
    assert_array_equal(points, others)
    assert_allclose(after.mean, before.mean[others], atol=1e-10)
    assert_allclose(after.covariance, before.covariance[np.ix_(others, others)], atol=1e-10)
    assert_allclose(after.factor, np.linalg.cholesky(K[np.ix_(others, others)]).T, atol=1e-12)
    assert_allclose(after.gram, K[np.ix_(others, others)])


def test_rows_that_resemble_each_other_cost_no_digits(rng):
    """Where the explicit inverse of the papers has an error of millions."""
    X = rng.uniform(-2, 2, size=(3000, 1))
    tracker, points = run(X, np.sin(X), n_components=15, forgetting=0.99, gamma=1.0, tol=1e-4)
    assert_allclose(tracker.gram, RBF(1.0)(X[points], X[points]), atol=1e-12)
    assert_allclose(tracker.factor.T @ tracker.factor, tracker.gram, atol=1e-12)
    assert_array_equal(tracker.factor, np.triu(tracker.factor))
    assert (tracker.factor.diagonal() > 0).all()
