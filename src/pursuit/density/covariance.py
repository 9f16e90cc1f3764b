"""Windows of one shape: spheres in the coordinates where their covariance is the identity.

Vincent, "Modeles a noyaux a structure locale" (2003): section 5.1 for spherical, diagonal and full
Gaussians, section 6.2 and chapter 13 (paper, section 1) for what follows here, that a full Gaussian
is a spherical one on normalised data.

Problem. Gaussians N(x; x_i, sigma^2 S) on rows x_i, where S is the identity, the variances of the
features, the covariance of the rows, or given. With S = L L' and u = L^-1 (x - c),

    N(x; x_i, sigma^2 S) = N(u; u_i, sigma^2 I) / det L                                    (1)

=========  ===================  ==================================================
symbol     name in code         shape
=========  ===================  ==================================================
c          ``centre``           (n,) weighted mean of the rows
L          ``root``             (n,) standard deviations, or (n, n) lower triangular
log det L  ``log_volume``       a number
=========  ===================  ==================================================

Steps. S from the rows, of total weight W: sums of squares over W - 1, as numpy's ``cov`` divides
them (over W / 2 where W is below 2); L; and everything else is that of spheres.

Directions in which the rows do not vary, a constant feature or one that others determine, would
make every density infinite or zero: they get the smallest of the other variances (of the
standardised features, where the covariance is full), and a warning says so.

Cost. n^2 operations a row for the covariance and for each query; n^3 once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from sklearn.exceptions import ConvergenceWarning

from pursuit._typing import Array
from pursuit._validation import check_choice, finite_numbers
from pursuit._warnings import warn
from pursuit.density.compact_windows import POWERS, window_variance
from pursuit.geometry.linear_maps import SYMMETRY

__all__ = ["WINDOW_ENTRIES", "Shaped", "Whitening", "coordinates", "whitening_of"]

FORMS = ("spherical", "diagonal", "full")
# A direction does not vary if its variance is below this share of the largest one of standardised
# features; a feature, if its deviation is below so many units of rounding of its numbers.
SMALLEST_SHARE, ROUNDING = 1e-13, 4.0

# Entries of the docstrings of estimators with windows.
WINDOW_ENTRIES = {
    "kernel": """
kernel : {"gaussian", "tophat", "epanechnikov", "biweight", "triweight"}, default="gaussian"
    What falls with the distance u, in units of the bandwidth: the Gaussian of deviation 1, or
    (1 - u^2)^p inside a ball of radius 1, p = 0, 1, 2, 3, which is zero outside.""",
    "covariance": """
covariance : {"spherical", "diagonal", "full"} or array-like, default="spherical"
    S: a Gaussian window has the covariance sigma^2 S, others end at u'S^-1 u = sigma^2.
    ``"spherical"``: the identity; ``"diagonal"``: the variances of the features; ``"full"``: the
    covariance of the rows; or S itself, of shape (n_features,) if it is diagonal, or (n_features,
    n_features). Where the rows do not vary, the smallest other variance is taken, with a
    warning.""",
    "covariance_": """
covariance_ : float or ndarray of shape (n_features,) or (n_features, n_features)
    That of a window: sigma^2 S, over n_features + 2 p + 2 where the window ends.""",
    "whitening_": """
whitening_ : Whitening or None
    The coordinates in which S is the identity; None for spheres.""",
}


@dataclass(frozen=True)
class Whitening:
    """The coordinates u = L^-1 (x - c).

    Attributes
    ----------
    centre : ndarray of shape (n_features,)
        c.
    root : ndarray of shape (n_features,) or (n_features, n_features)
        L: its diagonal, or lower triangular.
    """

    centre: Array
    root: Array

    @np.errstate(over="ignore", invalid="ignore")  # rows beyond all numbers
    def __call__(self, X: Array) -> Array:
        """Coordinates u of rows, in float64."""
        shifted = np.asarray(X, dtype=np.float64) - self.centre
        if self.root.ndim == 1:
            return np.asarray(shifted / self.root)
        U = solve_triangular(self.root, shifted.T, lower=True, check_finite=False)
        return np.ascontiguousarray(U.T)

    def back(self, U: Array) -> Array:
        """Rows x from their coordinates."""
        return np.asarray(self.centre + (U * self.root if self.root.ndim == 1 else U @ self.root.T))

    @property
    def log_volume(self) -> float:
        """Log det L."""
        diagonal = self.root if self.root.ndim == 1 else self.root.diagonal()
        return float(np.log(diagonal).sum())

    @property
    def covariance(self) -> Array:
        """S: its diagonal, or the matrix."""
        return self.root**2 if self.root.ndim == 1 else self.root @ self.root.T


class Shaped:
    """What estimators share whose windows have a kernel, a bandwidth and a covariance."""

    covariance: Any
    kernel: str
    n_features_in_: int
    bandwidth_: float
    whitening_: Whitening | None = None

    @property
    def covariance_(self) -> Any:
        """Covariance of a window: a number, the variances of the features, or a matrix."""
        variance = self.bandwidth_**2 * window_variance(self.kernel, self.n_features_in_)
        return variance if self.whitening_ is None else variance * self.whitening_.covariance

    def _check_kernel(self) -> None:
        """Raise an error if there is no such window."""
        check_choice("kernel", self.kernel, ("gaussian", *POWERS))


def coordinates(whitening: Whitening | None, X: Array) -> Array:
    """Coordinates of rows; the rows themselves where windows are spheres."""
    return X if whitening is None else whitening(X)


def whitening_of(covariance: Any, X: Array, weights: Array) -> Whitening | None:
    """The coordinates in which windows are spheres; None for those of X.

    Parameters
    ----------
    covariance : {"spherical", "diagonal", "full"} or array-like
        S, by name, as its diagonal (n_features,), or as a matrix (n_features, n_features).
    X : ndarray of shape (n_rows, n_features)
        Different rows.
    weights : ndarray of shape (n_rows,)
        A weight of 2 counts as the row twice.

    Raises
    ------
    ValueError
        If a matrix is not one of this size, symmetric and positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.density.covariance import whitening_of
    >>> whitening = whitening_of("diagonal", np.array([[0.0, 0.0], [2.0, 6.0]]), np.ones(2))
    >>> whitening.covariance, whitening(np.array([[1.0, 3.0]]))
    (array([ 2., 18.]), array([[0., 0.]]))
    """
    named = isinstance(covariance, str)
    if named:
        check_choice("covariance", covariance, FORMS)
    if named and covariance == "spherical":
        return None
    shares = weights / weights.sum()
    rows = np.asarray(X, dtype=np.float64)
    centre = rows[0] + shares @ (rows - rows[0])
    if not named:
        return Whitening(centre, _root_of_given(covariance, len(centre)))
    total = float(weights.sum())
    deviations = np.sqrt(weights / max(total - 1.0, total / 2.0))[:, None] * (rows - centre)
    if covariance == "diagonal":
        return Whitening(centre, _deviations(deviations, rows, covariance))
    return Whitening(centre, _root(deviations, rows))


def _deviations(deviations: Array, rows: Array, covariance: str) -> Array:
    """Standard deviations of the features; constant ones get the smallest of the others."""
    found = np.sqrt(np.einsum("ij,ij->j", deviations, deviations))
    constant = found <= ROUNDING * np.finfo(np.float64).eps * np.abs(rows).max(axis=0)
    if constant.any():
        least = float(found[~constant].min(initial=np.inf))
        found[constant] = least if np.isfinite(least) else 1.0
        _warn(covariance, int(constant.sum()), len(found))
    return np.asarray(found)


def _root(deviations: Array, rows: Array) -> Array:
    """L of the covariance of the rows, by way of their correlations."""
    lengths = _deviations(deviations, rows, "full")
    standard = deviations / lengths
    correlations = standard.T @ standard
    np.fill_diagonal(correlations, 1.0)
    values, axes = np.linalg.eigh(correlations)
    flat = values <= SMALLEST_SHARE * len(values) * values[-1]
    if flat.any():
        values[flat] = values[~flat].min()
        correlations = (axes * values) @ axes.T
        _warn("full", int(flat.sum()), len(values))
    return np.asarray(lengths[:, None] * cholesky(correlations, lower=True))


def _warn(covariance: str, n_flat: int, n_features: int) -> None:
    """Say what was done for directions in which the rows do not vary."""
    what = "features" if covariance == "diagonal" else "directions"
    warn(
        f"covariance={covariance!r}: the rows do not vary in {n_flat} of {n_features} {what}, "
        "which get the smallest variance of the others (1 if there is none)",
        ConvergenceWarning,
    )


def _root_of_given(covariance: Any, n_features: int) -> Array:
    """L of a covariance that the user gives."""
    given = finite_numbers("covariance", covariance, 1 if np.ndim(covariance) == 1 else 2)
    if given.shape != (n_features,) * given.ndim:
        raise ValueError(
            f"covariance must be one of {list(FORMS)} or have shape ({n_features},) or "
            f"({n_features}, {n_features}), got shape {given.shape}"
        )
    if given.ndim == 1:
        if not (given > 0.0).all():
            raise ValueError("covariance must be positive definite")
        return np.sqrt(given)
    if np.abs(given - given.T).max() > SYMMETRY * np.abs(given).max():
        raise ValueError("covariance must be symmetric")
    try:
        return np.asarray(cholesky(0.5 * (given + given.T), lower=True))
    except np.linalg.LinAlgError:
        raise ValueError("covariance must be positive definite") from None
