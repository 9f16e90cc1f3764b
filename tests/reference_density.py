"""Densities as plainly as their definitions: one Gaussian after the other, by full matrices.

Slow and independent of the library: nothing here imports `pursuit`. Equations are those of Vincent,
"Modeles a noyaux a structure locale" (2003).
"""

import numpy as np
from scipy.special import logsumexp


def log_normal(x, mean, C):
    """log N(x; mean, C), eq. 13.2."""
    difference = x - mean
    log_volume = len(x) * np.log(2 * np.pi) + np.linalg.slogdet(C)[1]
    return -0.5 * (log_volume + difference @ np.linalg.solve(C, difference))


def neighbors(X, i, k):
    """The k rows nearest to row i that differ from it."""
    distances = ((X - X[i]) ** 2).sum(axis=1)
    order = np.argsort(distances, kind="stable")
    return [j for j in order if distances[j] > 0][:k]


def local_covariance(X, weights, i, k, d, noise, kernel=None, tangents=None, tangent_variance=0.0):
    """Eq. 13.3, its d leading eigenpairs, and sigma^2 in every direction.

    With tangents (section 13.5) tau^2 sum_j t_j t_j' is added to eq. 13.3.
    """
    near = neighbors(X, i, k)
    n = X.shape[1]
    w = np.array([weights[j] * (1.0 if kernel is None else kernel(X[j], X[i])) for j in near])
    C = np.zeros((n, n))
    if w.sum() > 0:
        for w_j, j in zip(w, near, strict=True):
            C += w_j / w.sum() * np.outer(X[j] - X[i], X[j] - X[i])
    for t in [] if tangents is None else tangents(X[i : i + 1])[0]:
        C += tangent_variance * np.outer(t, t)
    values, vectors = np.linalg.eigh(C)
    leading = vectors[:, ::-1][:, :d]
    return leading @ np.diag(values[::-1][:d]) @ leading.T + noise * np.eye(n)


def manifold_parzen(X, weights, k, d, noise, queries, kernel=None, **known):
    """Logarithm of eq. 13.1 at the queries; `known` are tangents and their variance."""
    covariances = [
        local_covariance(X, weights, i, k, d, noise, kernel, **known) for i in range(len(X))
    ]
    share = np.log(weights / weights.sum())
    return np.array(
        [
            logsumexp(
                [w + log_normal(x, z, C) for w, z, C in zip(share, X, covariances, strict=True)]
            )
            for x in queries
        ]
    )


def parzen(X, weights, sigma, queries):
    """Parzen windows by differences."""
    n = X.shape[1]
    share = np.log(weights / weights.sum())
    squared = np.array([((X - x) ** 2).sum(axis=1) for x in queries])
    terms = share - 0.5 * (squared / sigma**2 + n * np.log(2 * np.pi * sigma**2))
    return logsumexp(terms, axis=1)


def flat_manifold_parzen(X, weights, k, d, noise, queries):
    """The same as `manifold_parzen` in many dimensions, by eq. 13.2 with given eigenpairs."""
    terms = np.empty((len(queries), len(X)))
    share = np.log(weights / weights.sum())
    n = X.shape[1]
    for i in range(len(X)):
        near = neighbors(X, i, k)
        scale = np.sqrt(weights[near] / weights[near].sum())
        _, s, axes = np.linalg.svd(scale[:, None] * (X[near] - X[i]), full_matrices=False)
        spread = noise + s[:d] ** 2
        differences = queries - X[i]
        along = differences @ axes[:d].T
        outside = ((differences - along @ axes[:d]) ** 2).sum(axis=1)
        form = (along**2 / spread).sum(axis=1) + outside / noise
        volume = n * np.log(2 * np.pi) + np.log(spread).sum() + (n - len(spread)) * np.log(noise)
        terms[:, i] = share[i] - 0.5 * (volume + form)
    return logsumexp(terms, axis=1)


def leave_one_out(X, weights, fit):
    """Log-density of each row under `fit(X, weights)(query)` without that row."""
    keep = [np.arange(len(X)) != r for r in range(len(X))]
    return np.array([fit(X[rest], weights[rest], X[r : r + 1])[0] for r, rest in enumerate(keep)])


def kernel_regression(X, Y, weights, sigma, queries):
    """Nadaraya-Watson (section 5.2.2)."""
    squared = np.array([((X - x) ** 2).sum(axis=1) for x in queries])
    K = weights * np.exp(-squared / (2 * sigma**2))
    return K @ Y / K.sum(axis=1, keepdims=True)


def local_gaussian(X, weights, width, d, noise, x):
    """Section 14.3 at one row: log h(x) + log Z - log K_x(x)."""
    K = weights * np.exp(-((X - x) ** 2).sum(axis=1) / (2 * width**2))
    mean = K @ X / K.sum()
    V = (X * K[:, None]).T @ X / K.sum() - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(V)
    leading = vectors[:, ::-1][:, :d]
    C = leading @ np.diag(np.maximum(values[::-1][:d], 0)) @ leading.T + noise * np.eye(len(x))
    return log_normal(x, mean, C) + np.log(K.sum() / weights.sum())
