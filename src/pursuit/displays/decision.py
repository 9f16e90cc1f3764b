"""A fitted function of one or two features with the training points and the vectors.

A display stores what it draws, so it can be drawn again on other axes. matplotlib is imported when
something is drawn. The colours are those of Okabe and Ito, which people with any kind of colour
vision can tell apart; classes also differ in markers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from pursuit._typing import Array
from pursuit.displays import _axes as drawing
from pursuit.displays._axes import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SupportDisplay"]

CLASS_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", GREY)
CLASS_MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # fewer than colours: 56 different pairs


@dataclass(eq=False, repr=False)
class SupportDisplay:
    """A fitted function of one or two features, the training points and the chosen ones.

    The chosen points are circled; the area of a circle is proportional to the size of the
    coefficient (with several outputs, to the norm of the coefficients), and the circle of a
    negative one is dashed. Of two features, the shade is for two classes the decision value and the
    line is where it is zero; for more classes the shade is the predicted class; for a regressor it
    is the prediction, and the points show the targets. Of one feature, a line is the function, one
    a class if there are more than two; points lie at their targets, labels below the lines.

    It is recommended to use `from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (n, n)
        Grid of the first and the second feature, as `numpy.meshgrid` gives it; of one feature
        places of shape (n,), and None.
    response : ndarray of shape (n, n) or (n_classes, n, n); (n,) or (n_classes, n)
        Prediction or decision value on that grid; one layer a class if there are more than two.
    X : array-like of shape (n_samples, 2) or (n_samples, 1)
        The points.
    y : array-like of shape (n_samples,)
        Their labels or targets.
    support_vectors : ndarray of shape (n_vectors, 2) or (n_vectors, 1)
        The chosen points.
    dual_coef : ndarray of shape (n_outputs, n_vectors)
        Their coefficients.
    classes : ndarray of shape (n_classes,), default=None
        Labels of a classifier; None for a regressor.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure of these axes.
    surface_ : matplotlib QuadContourSet, or list of matplotlib Line2D
        The shades; the lines of one feature.
    points_ : list of matplotlib PathCollection
        The points, one collection a class.
    support_ : matplotlib PathCollection
        The circles.

    See Also
    --------
    PursuitPathDisplay : Loss against the number of kernel functions.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import make_moons
    >>> from pursuit import KernelMatchingPursuitClassifier, SupportDisplay
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = KernelMatchingPursuitClassifier(n_components=10, gamma=2.0).fit(X, y)
    >>> SupportDisplay.from_estimator(model, X, y)
    <pursuit.displays.decision.SupportDisplay object at ...>
    >>> plt.show()
    """

    xx0: Any = field(kw_only=True)
    xx1: Any = field(kw_only=True, default=None)
    response: Any = field(kw_only=True)
    X: Any = field(kw_only=True)
    y: Any = field(kw_only=True)
    support_vectors: Any = field(kw_only=True)
    dual_coef: Any = field(kw_only=True)
    classes: Any = field(kw_only=True, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        grid_resolution: int = 200,
        margin: float = 0.08,
        ax: Axes | None = None,
        **plot_kw: Any,
    ) -> Self:
        """Draw a fitted estimator with its data.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier, or a regressor of one target, trained on one or two features.
        X : array-like of shape (n_samples, 2) or (n_samples, 1)
            Points to show, as a rule the training rows.
        y : array-like of shape (n_samples,)
            Their labels or targets.
        grid_resolution : int, default=200
            Number of grid points along each feature.
        margin : float, default=0.08
            How far the grid reaches beyond the points, as a share of their range.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **plot_kw : dict
            See `plot`.

        Returns
        -------
        display : SupportDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator was trained on more than two features or has several targets.
        """
        check_is_fitted(estimator)
        points = _few_features(estimator, X)
        check_consistent_length(points, y)
        vectors = _dense(estimator.support_vectors_)
        xx0, xx1 = _grid(np.vstack([points, vectors]), grid_resolution, margin)
        classes = estimator.classes_ if is_classifier(estimator) else None
        display = cls(
            xx0=xx0,
            xx1=xx1,
            response=_response(estimator, xx0, xx1),
            X=X,
            y=y,
            support_vectors=vectors,
            dual_coef=estimator.dual_coef_,
            classes=classes,
        )
        return display.plot(ax, **plot_kw)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        point_size: float = 18.0,
        circle_size: float = 260.0,
        colorbar: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        point_size : float, default=18.0
            Area of a point, in square points.
        circle_size : float, default=260.0
            Area of the largest circle, in square points.
        colorbar : bool, default=True
            Whether to explain the shades of a regressor or of two classes with a scale.

        Returns
        -------
        display : SupportDisplay
            The display itself.
        """
        self.ax_, self.figure_ = drawing.axes_of(ax)
        names = [str(name) for name in getattr(self.X, "columns", ("Feature 0", "Feature 1"))]
        value = "Prediction" if self.classes is None else "Decision value"
        if self.xx1 is None:
            self._draw_lines(point_size)
            names[1:] = [value]
        else:
            self._draw_shades(point_size)
            if colorbar and (self.classes is None or len(self.classes) == 2):
                drawing.colour_scale(self.figure_, self.surface_, self.ax_, value)
        self.support_ = self._draw_circles(point_size, circle_size)
        self.ax_.set(xlabel=names[0], ylabel=names[1])
        above = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 4}
        self.ax_.legend(**above, frameon=False, fontsize="small", handletextpad=0.2)
        return self

    def _draw_lines(self, point_size: float) -> None:
        """The function of one feature, and the points at their targets or below it."""
        layers = np.atleast_2d(self.response)
        many = len(layers) > 1
        looks = [{"color": CLASS_COLOURS[c % 8]} if many else {"color": INK}
                 for c in range(len(layers))]  # fmt: skip
        self.surface_ = [
            self.ax_.plot(self.xx0, layer, linewidth=1.6, zorder=1, **look)[0]
            for layer, look in zip(layers, looks, strict=True)
        ]
        if self.classes is None:
            x, y = _dense(self.X)[:, 0], np.asarray(self.y, dtype=float)
            look = {"s": point_size, "color": GREY, "linewidths": 0, "label": "Targets"}
            self.points_ = [self.ax_.scatter(x, y, **look)]
            return
        self.ax_.axhline(0.0, color=INK, linewidth=0.8, linestyle=":", zorder=0)
        low, reach = float(layers.min()), max(float(np.ptp(layers)), 1.0)
        heights = low - reach * (0.1 + 0.06 * np.arange(len(self.classes)))
        self.points_ = self._draw_labels(point_size, heights)

    def _draw_shades(self, point_size: float) -> None:
        """The function of two features, and the points."""
        if self.classes is None:
            self._draw_regression(point_size)
            return
        if len(self.classes) == 2:
            self._draw_two_classes()
        else:
            self._draw_classes()
        self.points_ = self._draw_labels(point_size)

    def _draw_regression(self, point_size: float) -> None:
        """Shades of the prediction; points in the same shades by their target."""
        targets = np.asarray(self.y, dtype=float)
        low = float(min(self.response.min(), targets.min()))
        high = float(max(self.response.max(), targets.max()))
        levels = np.linspace(low, high if high > low else low + 1.0, 25)
        self.surface_ = self.ax_.contourf(
            self.xx0, self.xx1, self.response, levels=levels, cmap="cividis"
        )
        self.points_ = [
            self.ax_.scatter(
                *_dense(self.X).T,
                c=targets,
                s=point_size,
                cmap="cividis",
                vmin=levels[0],
                vmax=levels[-1],
                edgecolors="white",
                linewidths=0.5,
                label="Targets",
            )
        ]

    def _draw_two_classes(self) -> None:
        """Shades of the decision value, white at zero, and the line where it is zero."""
        from matplotlib.colors import LinearSegmentedColormap

        reach = max(1.0, float(np.abs(self.response).max()))
        low, high = (drawing.pale(colour, 0.6) for colour in CLASS_COLOURS[:2])
        shades = ((0.0, low), (0.5, "white"), (1.0, high))
        self.surface_ = self.ax_.contourf(
            self.xx0,
            self.xx1,
            self.response,
            levels=np.linspace(-reach, reach, 26),
            cmap=LinearSegmentedColormap.from_list("two classes", shades),
        )
        self._draw_border(self.response)

    def _draw_classes(self) -> None:
        """A light shade of its colour where each class is predicted, lines between them."""
        for c in range(len(self.classes)):
            # Positive where the class has the largest decision value.
            lead = self.response[c] - np.delete(self.response, c, axis=0).max(axis=0)
            if lead.max() > 0.0:
                shade = drawing.pale(CLASS_COLOURS[c % len(CLASS_COLOURS)], 0.3)
                levels = [0.0, float(lead.max())]
                self.surface_ = self.ax_.contourf(
                    self.xx0, self.xx1, lead, levels=levels, colors=[shade]
                )
                self._draw_border(lead)

    def _draw_border(self, values: Array) -> None:
        """The line where some values are zero, if there is one."""
        if values.min() < 0.0 < values.max():
            look = {"levels": [0.0], "colors": INK, "linewidths": 1.2}
            self.ax_.contour(self.xx0, self.xx1, values, **look)

    def _draw_labels(self, point_size: float, heights: Array | None = None) -> list[Any]:
        """The points, with a colour and a marker of its own for each class.

        Of one feature each class lies at a height of its own.
        """
        points, labels = _dense(self.X), np.asarray(self.y)
        if heights is not None:
            places = np.asarray(heights)[np.searchsorted(self.classes, labels)]
            points = np.column_stack([points, places])
        return [
            self.ax_.scatter(
                *points[labels == label].T,
                s=point_size,
                color=CLASS_COLOURS[c % len(CLASS_COLOURS)],
                marker=CLASS_MARKERS[c % len(CLASS_MARKERS)],
                edgecolors="white",
                linewidths=0.5,
                label=str(label),
            )
            for c, label in enumerate(self.classes)
        ]

    def _draw_circles(self, point_size: float, circle_size: float) -> Any:
        """Circles around the chosen points, with a white rim; the area shows the coefficient."""
        from matplotlib.patheffects import withStroke

        coefficients = np.atleast_2d(self.dual_coef)
        strength = np.linalg.norm(coefficients, axis=0)
        share = strength / max(float(strength.max(initial=0.0)), np.finfo(float).tiny)
        least = 3.0 * point_size
        negative = coefficients[0] < 0 if len(coefficients) == 1 else np.zeros(len(share), bool)
        look = {"facecolors": "none", "edgecolors": INK, "linewidths": 1.4}
        if negative.any():
            self.ax_.scatter([], [], linestyles="--", label="negative", **look)
        return self.ax_.scatter(
            *self._places().T,
            s=least + share * max(circle_size - least, 0.0),
            linestyles=["--" if below else "-" for below in negative] or "-",
            path_effects=[withStroke(linewidth=3.0, foreground="white")],
            label=f"{drawing.counted(len(share))}, by |coefficient|",
            **look,
        )

    def _places(self) -> Array:
        """Where the circles are: at the vectors, of one feature on the (first) line."""
        vectors = np.asarray(self.support_vectors, dtype=float)
        if self.xx1 is not None:
            return vectors
        heights = np.interp(vectors[:, 0], self.xx0, np.atleast_2d(self.response)[0])
        return np.column_stack([vectors, heights])


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def _few_features(estimator: Any, X: Any) -> Array:
    """The points as an array, or an error that says what is wrong."""
    width = estimator.n_features_in_
    if width > 2 or not hasattr(estimator, "support_vectors_"):
        raise ValueError(
            f"SupportDisplay draws models of one or two features; this {type(estimator).__name__} "
            f"was trained on {width}"
            + ("" if hasattr(estimator, "support_vectors_") else " precomputed kernel values")
        )
    if not is_classifier(estimator) and len(estimator.dual_coef_) != 1:
        raise ValueError(
            f"SupportDisplay draws one target; this {type(estimator).__name__} has "
            f"{len(estimator.dual_coef_)}"
        )
    points = _dense(check_array(X, accept_sparse="csr", dtype=float))
    if points.shape[1] != width:
        raise ValueError(f"X has {points.shape[1]} columns, the model has {width} features")
    return points


def _grid(points: Array, resolution: int, margin: float) -> tuple[Array, Array | None]:
    """A grid over two features, or places along one."""
    if points.shape[1] == 2:
        return drawing.grid_over(points, resolution, margin)
    flat = np.column_stack([points, np.zeros(len(points))])
    return drawing.grid_over(flat, resolution, margin)[0][0], None


def _response(estimator: Any, xx0: Array, xx1: Array | None) -> Array:
    """Outputs on a grid: one layer, or one for each of three and more classes."""
    rows = np.column_stack([xx0.ravel()] if xx1 is None else [xx0.ravel(), xx1.ravel()])
    outputs: Array = estimator.expansion_(rows.astype(estimator.support_vectors_.dtype))
    layers = outputs.T.reshape(-1, *xx0.shape)
    return layers[0] if len(layers) == 1 else layers
