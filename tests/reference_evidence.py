"""Marginal likelihoods by full matrices, as Tipping (2001) defines them.

Slow and independent of the library: nothing here imports `pursuit`. Phi is (n, M), `c` are
weights of rows.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


def normal_evidence(Phi, t, c, alpha, noise):
    """log of the integral over w of prod_i N(t_i | Phi_i w, noise)^c_i N(w | 0, A^{-1})."""
    C = np.diag(noise / c) + (Phi / alpha) @ Phi.T
    log_normal = -0.5 * (
        len(t) * np.log(2 * np.pi) + np.linalg.slogdet(C)[1] + t @ np.linalg.solve(C, t)
    )
    # N(t | f, noise)^c is this many times N(t | f, noise / c).
    factors = 0.5 * (1 - c) * np.log(2 * np.pi * noise) - 0.5 * np.log(c)
    return log_normal + factors.sum()


def logistic_height(w, Phi, t, c, alpha):
    return -c @ np.logaddexp(0, -t * (Phi @ w)) - 0.5 * alpha @ w**2


def logistic_mode(Phi, t, c, alpha):
    def slope(w):
        return -(Phi.T @ (c * t * expit(-t * (Phi @ w))) - alpha * w)

    found = minimize(
        lambda w: -logistic_height(w, Phi, t, c, alpha),
        np.zeros(len(alpha)),
        jac=slope,
        method="BFGS",
        options={"gtol": 1e-10},
    )
    return found.x


def logistic_evidence(Phi, t, c, alpha):
    """Laplace: the height at the mode + log det A / 2 - log det (-Hessian) / 2."""
    w = logistic_mode(Phi, t, c, alpha)
    p = expit(Phi @ w)
    H = Phi.T @ ((c * p * (1 - p))[:, None] * Phi) + np.diag(alpha)
    half = 0.5 * (np.log(alpha).sum() - np.linalg.slogdet(H)[1])
    return logistic_height(w, Phi, t, c, alpha) + half


def evidence_covariance(Phi, B, alpha):
    """C of the (working) targets."""
    return np.diag(1 / B) + (Phi / alpha) @ Phi.T
