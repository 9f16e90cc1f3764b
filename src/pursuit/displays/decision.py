"""A fitted function of two features with the training points and the vectors.

A display stores what it draws, so it can be drawn again on other axes. matplotlib is imported when
something is drawn. The colours are those of Okabe and Ito, which people with any kind of colour
vision can tell apart; classes also differ in markers.
"""

from __future__ import annotations

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


class SupportDisplay:
    """A fitted function of two features, the training points and the chosen ones.

    The chosen points are circled; the area of a circle is proportional to the size of the
    coefficient (with several outputs, to the norm of the coefficients). For two classes the
    shade is the decision value and the line is where it is zero; for more classes the shade is
    the predicted class; for a regressor it is the prediction, and the points show the targets.

    It is recommended to use `from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (n, n)
        Grid of the first and the second feature, as `numpy.meshgrid` gives it.
    response : ndarray of shape (n, n) or (n_classes, n, n)
        Prediction or decision value on that grid; one layer a class if there are more than two.
    X : array-like of shape (n_samples, 2)
        The points.
    y : array-like of shape (n_samples,)
        Their labels or targets.
    support_vectors : ndarray of shape (n_vectors, 2)
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
    surface_ : matplotlib QuadContourSet
        The shades.
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

    def __init__(
        self,
        *,
        xx0: Any,
        xx1: Any,
        response: Any,
        X: Any,
        y: Any,
        support_vectors: Any,
        dual_coef: Any,
        classes: Any = None,
    ) -> None:
        self.xx0 = xx0
        self.xx1 = xx1
        self.response = response
        self.X = X
        self.y = y
        self.support_vectors = support_vectors
        self.dual_coef = dual_coef
        self.classes = classes

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
            A fitted classifier, or a regressor of one target, trained on two features.
        X : array-like of shape (n_samples, 2)
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
            If the estimator was not trained on two features or has several targets.
        """
        check_is_fitted(estimator)
        points = _two_features(estimator, X)
        check_consistent_length(points, y)
        vectors = _dense(estimator.support_vectors_)
        xx0, xx1 = drawing.grid_over(np.vstack([points, vectors]), grid_resolution, margin)
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
        if self.classes is None:
            self._draw_regression(point_size)
        elif len(self.classes) == 2:
            self._draw_two_classes()
        else:
            self._draw_classes()
        if self.classes is not None:
            self.points_ = self._draw_labels(point_size)
        self.support_ = self._draw_circles(point_size, circle_size)
        if colorbar and (self.classes is None or len(self.classes) == 2):
            label = "Prediction" if self.classes is None else "Decision value"
            drawing.colour_scale(self.figure_, self.surface_, self.ax_, label)
        names = getattr(self.X, "columns", ("Feature 0", "Feature 1"))
        self.ax_.set(xlabel=str(names[0]), ylabel=str(names[1]))
        above = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 4}
        self.ax_.legend(**above, frameon=False, fontsize="small", handletextpad=0.2)
        return self

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

    def _draw_labels(self, point_size: float) -> list[Any]:
        """The points, with a colour and a marker of its own for each class."""
        points, labels = _dense(self.X), np.asarray(self.y)
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

        strength = np.linalg.norm(np.atleast_2d(self.dual_coef), axis=0)
        share = strength / max(float(strength.max(initial=0.0)), np.finfo(float).tiny)
        least = 3.0 * point_size
        return self.ax_.scatter(
            *np.asarray(self.support_vectors, dtype=float).T,
            s=least + share * max(circle_size - least, 0.0),
            facecolors="none",
            edgecolors=INK,
            linewidths=1.4,
            path_effects=[withStroke(linewidth=3.0, foreground="white")],
            label=drawing.counted(len(share)),
        )


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def _two_features(estimator: Any, X: Any) -> Array:
    """The points as an array (n_samples, 2), or an error that says what is wrong."""
    if estimator.n_features_in_ != 2 or not hasattr(estimator, "support_vectors_"):
        raise ValueError(
            f"SupportDisplay draws models of 2 features; this {type(estimator).__name__} was "
            f"trained on {estimator.n_features_in_}"
            + ("" if hasattr(estimator, "support_vectors_") else " precomputed kernel values")
        )
    if not is_classifier(estimator) and len(estimator.dual_coef_) != 1:
        raise ValueError(
            f"SupportDisplay draws one target; this {type(estimator).__name__} has "
            f"{len(estimator.dual_coef_)}"
        )
    points = _dense(check_array(X, accept_sparse="csr", dtype=float))
    if points.shape[1] != 2:
        raise ValueError(f"X has {points.shape[1]} columns, the model has 2 features")
    return points


def _response(estimator: Any, xx0: Array, xx1: Array) -> Array:
    """Outputs on a grid: one layer, or one for each of three and more classes."""
    rows = np.column_stack([xx0.ravel(), xx1.ravel()])
    outputs: Array = estimator.expansion_(rows.astype(estimator.support_vectors_.dtype))
    layers = outputs.T.reshape(-1, *xx0.shape)
    return layers[0] if len(layers) == 1 else layers
