"""Local neighbour methods as plainly as the chapter states them (equations 11.1 to 11.5).

Slow and independent of the library: one query and one class at a time, `numpy.linalg.lstsq` and a
general solver for the two problems.
"""

from itertools import combinations

import numpy as np
from scipy.optimize import minimize, nnls


def neighbors(rows, x, k):
    """The K nearest rows, ties by the lowest index."""
    return rows[np.argsort(((rows - x) ** 2).sum(axis=1), kind="stable")[:k]]


def hyperplane_distance(N, x, alpha=0.0, n_components=None):
    """d^2 of eq. 11.5 for the neighbours N, one a row."""
    centroid = N.mean(axis=0)
    V, r = (N - centroid).T, x - centroid
    if n_components is not None:  # footnote 8
        U, s, Wt = np.linalg.svd(V, full_matrices=False)
        V = (U[:, :n_components] * s[:n_components]) @ Wt[:n_components]
    k = V.shape[1]
    system = np.vstack([V, np.sqrt(alpha) * np.eye(k)])
    a = np.linalg.lstsq(system, np.append(r, np.zeros(k)), rcond=None)[0]
    return np.sum((r - V @ a) ** 2) + alpha * np.sum(a**2)


def tangent_distance(N, x, tangents, alpha=0.0, n_components=None):
    """d^2 of eq. 11.5 with the tangents at the centroid as further columns of V."""
    centroid = N.mean(axis=0)
    V, r = (N - centroid).T, x - centroid
    if n_components is not None:
        U, s, _ = np.linalg.svd(V, full_matrices=False)
        V = U[:, :n_components] * s[:n_components]
    W = np.column_stack([V, tangents(centroid[None])[0].T])
    q = W.shape[1]
    system = np.vstack([W, np.sqrt(alpha) * np.eye(q)])
    a = np.linalg.lstsq(system, np.append(r, np.zeros(q)), rcond=None)[0]
    return np.sum((r - W @ a) ** 2) + alpha * np.sum(a**2)


def line_distance(N, x):
    """d^2 to the nearest of the lines through two rows of N, one line at a time."""
    best = np.min(np.sum((N - x) ** 2, axis=1))
    for a, b in combinations(N, 2):
        t = np.linalg.lstsq((b - a)[:, None], x - a, rcond=None)[0]
        best = min(best, np.sum((x - a - t * (b - a)) ** 2))
    return best


def hull_distance(N, x):
    """d^2 to the convex hull by a general solver for quadratic programs, refined.

    Sequential quadratic programming finds which weights are not zero; on these the nearest point
    of the affine hull is a least squares problem.
    """
    P = N - x
    G = P @ P.T
    k, scale = len(P), max(np.abs(G).max(), 1e-300)
    best = minimize(
        lambda w: w @ G @ w / scale,
        np.full(k, 1 / k),
        jac=lambda w: 2 * G @ w / scale,
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(k)},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    w = np.maximum(best.x, 0)
    return np.sum((w @ P / w.sum()) ** 2)


def hull_distance_by_least_squares(N, x):
    """The same by non-negative least squares, whose conditions are those of the hull but for scale.

    min |P'v|^2 + t^2 (1 - sum v)^2 over v >= 0, and w = v / sum v.
    """
    P = N - x
    t = max(np.abs(P).max(), 1e-300)
    v, _ = nnls(np.vstack([P.T, t * np.ones(len(P))]), np.append(0 * x, t), maxiter=10_000)
    return np.sum((v @ P / v.sum()) ** 2)


def table(X, y, Q, k, distance, **options):
    """Squared distance of each query to each class."""
    return np.array(
        [[distance(neighbors(X[y == c], q, k), q, **options) for c in np.unique(y)] for q in Q]
    )
