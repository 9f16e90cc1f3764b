"""A density of two features drawn with its points (figure 13.2 of the thesis).

matplotlib is imported when something is drawn.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from pursuit._validation import check_integer, check_real
from pursuit.displays import _axes as drawing
from pursuit.displays._axes import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DensityDisplay"]

# Shades of the logarithm, and how far below the largest they reach.
N_SHADES, REACH = 24, 12.0


@dataclass(eq=False, repr=False)
class DensityDisplay:
    """The density of two features and the points it comes from.

    It is recommended to use `from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (grid_resolution, grid_resolution)
        Grid of the two features.
    log_density : ndarray of the same shape
        Logarithm of the density there.
    X : array-like of shape (n_samples, 2)
        Points to show.
    name : str, default=None
        Title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure of these axes.
    surface_ : matplotlib contour set
        The shades.
    points_ : matplotlib PathCollection
        The points.

    See Also
    --------
    SupportDisplay : The fitted function of a classifier or regressor of two features.

    References
    ----------
    P. Vincent and Y. Bengio, "Manifold Parzen windows", NIPS 15, 2003.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import make_moons
    >>> from pursuit import DensityDisplay, ManifoldParzenDensity
    >>> X, _ = make_moons(200, noise=0.05, random_state=0)
    >>> density = ManifoldParzenDensity(noise_variance=0.05**2).fit(X)
    >>> DensityDisplay.from_estimator(density, X, threshold=0.2)
    <pursuit.displays.density.DensityDisplay object at ...>
    >>> plt.show()
    """

    xx0: Any = field(kw_only=True)
    xx1: Any = field(kw_only=True)
    log_density: Any = field(kw_only=True)
    X: Any = field(kw_only=True)
    name: str | None = field(kw_only=True, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        grid_resolution: int = 200,
        margin: float = 0.08,
        name: str | None = None,
        ax: Axes | None = None,
        **plot_kw: Any,
    ) -> Self:
        """Draw a fitted density with its points.

        Parameters
        ----------
        estimator : estimator
            A fitted density of two features, with ``score_samples``.
        X : array-like of shape (n_samples, 2)
            Points to show, as a rule the training rows.
        grid_resolution : int, default=200
            Number of grid points along each feature.
        margin : float, default=0.08
            How far the grid reaches beyond the points, as a share of their range.
        name : str, default=None
            Title; the estimator's class name if None.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **plot_kw : dict
            See `plot`.

        Returns
        -------
        display : DensityDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator is no density, or `X` does not have two features.
        """
        check_is_fitted(estimator)
        check_integer("grid_resolution", grid_resolution, 2)
        check_real("margin", margin)
        kind = type(estimator).__name__
        if not hasattr(estimator, "score_samples"):
            raise ValueError(f"estimator is a {kind} without score_samples")
        points = check_array(X, dtype=np.float64)
        if points.shape[1] != 2:
            raise ValueError(f"a picture needs two features, X has {points.shape[1]}")
        xx0, xx1 = drawing.grid_over(points, grid_resolution, margin)
        grid = np.column_stack([xx0.ravel(), xx1.ravel()])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            values = estimator.score_samples(grid)
        display = cls(
            xx0=xx0,
            xx1=xx1,
            log_density=np.reshape(values, xx0.shape),
            X=X,
            name=kind if name is None else name,
        )
        return display.plot(ax, **plot_kw)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        threshold: float | None = None,
        point_size: float = 6.0,
        colorbar: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        threshold : float, default=None
            Shade the area where the density is above this, as figure 13.2 does with 1. None:
            shades of the logarithm, down to 12 below the largest.
        point_size : float, default=6.0
            Area of a point, in square points.
        colorbar : bool, default=True
            Whether to explain the shades of the logarithm with a scale.

        Returns
        -------
        display : DensityDisplay
            The display itself.
        """
        self.ax_, self.figure_ = drawing.axes_of(ax)
        if threshold is None:
            self._draw_shades(colorbar)
        else:
            check_real("threshold", threshold, above=True)
            self._draw_area(threshold)
        points = check_array(self.X, dtype=np.float64)
        look = {"s": point_size, "color": INK, "linewidths": 0, "label": f"{len(points)} rows"}
        self.points_ = self.ax_.scatter(*points.T, **look)
        names = getattr(self.X, "columns", ("Feature 0", "Feature 1"))
        self.ax_.set(xlabel=str(names[0]), ylabel=str(names[1]), title=self.name or "")
        below = {"loc": "best", "framealpha": 0.8, "edgecolor": "none", "fontsize": "small"}
        self.ax_.legend(**below)
        return self

    def _draw_shades(self, colorbar: bool) -> None:
        """Shades of the logarithm."""
        top = float(np.max(self.log_density))
        shown = np.maximum(self.log_density, top - REACH)
        self.surface_ = self.ax_.contourf(
            self.xx0, self.xx1, shown, levels=np.linspace(top - REACH, top, N_SHADES), cmap="Blues"
        )
        if colorbar:
            drawing.colour_scale(self.figure_, self.surface_, self.ax_, "Log-density")

    def _draw_area(self, threshold: float) -> None:
        """The area above the threshold."""
        lowest, shade = float(np.log(threshold)), drawing.pale(INK, 0.3)
        levels = [lowest, max(float(np.max(self.log_density)), lowest) + 1.0]
        self.surface_ = self.ax_.contourf(
            self.xx0, self.xx1, self.log_density, levels=levels, colors=[shade]
        )
        self.ax_.fill([], [], color=shade, label=f"density above {threshold:g}")
