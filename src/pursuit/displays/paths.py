"""Pictures of fitted models, in the form of scikit-learn's displays.

`PursuitPathDisplay` shows what each further kernel function buys; `BoundDisplay` a bound on the
expected loss beside the losses; `SupportDisplay` a problem with two features, the fitted function
and the chosen points. A display stores what it draws, so it can be drawn again on other axes.
matplotlib is imported when something is drawn.

The colours are those of Okabe and Ito, which people with any kind of colour vision can tell
apart; lines and classes also differ in dashes and markers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from pursuit._typing import Array
from pursuit._validation import signed_targets
from pursuit.displays import _axes as drawing
from pursuit.displays._axes import GREY, INK
from pursuit.greedy.path_losses import row_losses
from pursuit.losses import Loss, SquaredError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BoundDisplay", "PursuitPathDisplay", "SupportDisplay"]

# What a line shows: label, colour, dashes.
LINES = {
    "train_loss": ("Training", GREY, "-"),
    "validation_loss": ("Held-out", "#0072B2", "-"),
    "leave_one_out_loss": ("Leave-one-out", "#D55E00", "-."),
    "fold_losses": ("Cross-validation", "#0072B2", "-"),
    "test_loss": ("Test", "#009E73", "--"),
}
BOUND_LINES = {
    "bound": ("Bound", "#D55E00", "-"),
    "train_loss": LINES["train_loss"],
    "test_loss": LINES["test_loss"],
}
CLASS_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", GREY)
CLASS_MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # fewer than colours: 56 different pairs


class PursuitPathDisplay:
    """Loss against the number of kernel functions.

    It is recommended to use `from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    train_loss, validation_loss, leave_one_out_loss, test_loss : array-like, default=None
        Loss after 1, 2, ... steps, each of shape (n_steps,). What is None is not drawn.
    fold_losses : array-like of shape (n_folds, n_steps), default=None
        Cross-validation losses; drawn as their mean and a band from the lowest to the highest.
    n_iter : int, default=None
        Number of steps of the fitted model, where the marker stands.
    n_components : int, default=None
        Number of kernel functions of the fitted model, which the marker names.
    name : str, default=None
        Title.

    Attributes
    ----------
    loss_name : str
        What the vertical axis shows, "Mean squared error" unless it is set.
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure of these axes.
    lines_ : dict of str to matplotlib Line2D
        The lines, by the name of the parameter they show.
    band_ : matplotlib artist or None
        The band over the folds.
    marker_ : matplotlib Line2D or None
        The vertical line at the fitted model.

    See Also
    --------
    SupportDisplay : The fitted function of two features.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from pursuit import KernelMatchingPursuitClassifier, PursuitPathDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelMatchingPursuitClassifier(n_components=40, early_stopping="loo")
    >>> PursuitPathDisplay.from_estimator(model.fit(scale(X), y))
    <pursuit.displays.PursuitPathDisplay object at ...>
    >>> plt.show()
    """

    loss_name = "Mean squared error"

    def __init__(
        self,
        *,
        train_loss: Any = None,
        validation_loss: Any = None,
        leave_one_out_loss: Any = None,
        test_loss: Any = None,
        fold_losses: Any = None,
        n_iter: int | None = None,
        n_components: int | None = None,
        name: str | None = None,
    ) -> None:
        self.train_loss = train_loss
        self.validation_loss = validation_loss
        self.leave_one_out_loss = leave_one_out_loss
        self.test_loss = test_loss
        self.fold_losses = fold_losses
        self.n_iter = n_iter
        self.n_components = n_components
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        log: bool | str = "auto",
        **line_kw: Any,
    ) -> Self:
        """Draw the path of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with a ``train_loss_path_``.
        X : array-like of shape (n_samples, n_features), default=None
            Further rows, on which the loss is computed step by step.
        y : array-like, default=None
            Their targets or labels.
        name : str, default=None
            Title; the estimator's class name if None.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        log, **line_kw
            See `plot`.

        Returns
        -------
        display : PursuitPathDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator has no path, only one of `X` and `y` is given, or `y` holds a
            label that the classifier does not know.
        """
        check_is_fitted(estimator)
        kind = type(estimator).__name__
        if not hasattr(estimator, "train_loss_path_"):
            raise ValueError(f"estimator is a {kind}, which has no path of losses")
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together")
        display = cls(
            train_loss=estimator.train_loss_path_,
            validation_loss=getattr(estimator, "validation_loss_path_", None),
            leave_one_out_loss=getattr(estimator, "leave_one_out_loss_path_", None),
            test_loss=None if X is None else _staged_loss(estimator, X, y),
            fold_losses=_fold_losses(estimator),
            n_iter=estimator.n_iter_,
            n_components=estimator.n_components_,
            name=kind if name is None else name,
        )
        display.loss_name = _loss_name(estimator.loss_)
        return display.plot(ax, log=log, **line_kw)

    def plot(self, ax: Axes | None = None, *, log: bool | str = "auto", **line_kw: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        log : bool or "auto", default="auto"
            Whether the losses have a logarithmic axis; "auto": if all are positive.
        **line_kw : dict
            Passed to matplotlib's ``plot`` for every line.

        Returns
        -------
        display : PursuitPathDisplay
            The display itself.
        """
        self.ax_, self.figure_ = drawing.axes_of(ax)
        self.lines_ = drawing.draw_paths(self.ax_, self._paths(), LINES, line_kw)
        self.band_ = self._draw_band()
        self.marker_ = self._draw_marker()
        same = self.n_iter is None or self.n_iter == self.n_components
        drawing.finish_paths(
            self.ax_,
            self.lines_,
            log,
            xlabel="Number of kernel functions" if same else "Step",
            ylabel=self.loss_name,
            title=self.name or "",
        )
        return self

    def _paths(self) -> dict[str, Array]:
        """The lines to draw, by name; the folds as their mean."""
        paths = _given(self, LINES)
        if "fold_losses" in paths:
            paths["fold_losses"] = paths["fold_losses"].mean(axis=0)
        return paths

    def _draw_band(self) -> Any:
        if self.fold_losses is None:
            return None
        folds = np.asarray(self.fold_losses, dtype=float)
        return self.ax_.fill_between(
            np.arange(1, folds.shape[1] + 1),
            folds.min(axis=0),
            folds.max(axis=0),
            color=LINES["fold_losses"][1],
            alpha=0.18,
            linewidth=0,
            label=f"Range of {len(folds)} folds",
        )

    def _draw_marker(self) -> Any:
        """A vertical line at the fitted model, and a dot where it meets each of the lines."""
        if not self.n_iter:
            return None
        count = self.n_iter if self.n_components is None else self.n_components
        return drawing.mark_step(
            self.ax_, self.n_iter, self.lines_, f"Model: {drawing.counted(count)}"
        )


class BoundDisplay:
    """A bound on the expected loss, and losses, against the number of vectors.

    It is recommended to use `from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    bound : array-like of shape (n_steps,)
        The bound after 1, 2, ... steps, infinite where it is not defined.
    train_loss, test_loss : array-like, default=None
        Mean loss of the training rows and of others, after as many steps. What is None is not
        drawn.
    name : str, default=None
        Title.

    Attributes
    ----------
    loss_name : str
        What the vertical axis shows, "Loss" unless it is set.
    step_name : str
        What the horizontal axis shows, "Number of vectors" unless it is set.
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure of these axes.
    lines_ : dict of str to matplotlib Line2D
        The lines, by the name of the parameter they show.
    marker_ : matplotlib Line2D or None
        The vertical line where the bound is lowest; None if it is defined nowhere.

    See Also
    --------
    PursuitPathDisplay : Loss against the number of kernel functions.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_digits
    >>> from pursuit import BoundDisplay, SparseKernelPCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = SparseKernelPCA(n_components=200, gamma=1e-4).fit(X[:1000])
    >>> BoundDisplay.from_estimator(model, X[1000:])
    <pursuit.displays.BoundDisplay object at ...>
    >>> plt.show()
    """

    loss_name, step_name = "Loss", "Number of vectors"

    def __init__(
        self, *, bound: Any, train_loss: Any = None, test_loss: Any = None, name: str | None = None
    ) -> None:
        self.bound = bound
        self.train_loss = train_loss
        self.test_loss = test_loss
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        log: bool | str = False,
        **line_kw: Any,
    ) -> Self:
        """Draw the bound of a fitted estimator.

        For `SparseKernelPCA` the loss is the squared distance to the span of the vectors. For a
        model of kernel matching pursuit with ``early_stopping="bound"`` it is 1 for an error and
        0 else: for a wrong label, or for a prediction further than ``error_tolerance`` from its
        target; its training rows are not drawn.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with a ``bound_path_``.
        X : array-like of shape (n_samples, n_features), default=None
            Further rows, on which the loss is computed step by step.
        y : array-like, default=None
            Their targets or labels; not used for `SparseKernelPCA`.
        name : str, default=None
            Title; the estimator's class name if None.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        log, **line_kw
            See `plot`.

        Returns
        -------
        display : BoundDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator has no bound, or `X` is given to a model that predicts without `y`.
        """
        check_is_fitted(estimator)
        kind = type(estimator).__name__
        if not hasattr(estimator, "bound_path_"):
            raise ValueError(f"estimator is a {kind} that was fitted without a bound")
        predicts = is_classifier(estimator) or is_regressor(estimator)
        if predicts and (X is None) != (y is None):
            raise ValueError("X and y must be given together")
        losses = _staged_errors(estimator, X, y) if predicts else _staged_residuals(estimator, X)
        display = cls(
            bound=estimator.bound_path_,
            train_loss=getattr(estimator, "residual_path_", None),
            test_loss=losses,
            name=kind if name is None else name,
        )
        display.loss_name = "Share of errors" if predicts else "Squared distance to the span"
        if predicts and estimator.n_iter_ != estimator.n_components_:
            display.step_name = "Step"
        return display.plot(ax, log=log, **line_kw)

    def plot(self, ax: Axes | None = None, *, log: bool | str = False, **line_kw: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        log : bool or "auto", default=False
            Whether the losses have a logarithmic axis; "auto": if all are positive.
        **line_kw : dict
            Passed to matplotlib's ``plot`` for every line.

        Returns
        -------
        display : BoundDisplay
            The display itself.
        """
        self.ax_, self.figure_ = drawing.axes_of(ax)
        self.lines_ = drawing.draw_paths(self.ax_, _given(self, BOUND_LINES), BOUND_LINES, line_kw)
        self.marker_ = self._draw_marker()
        drawing.finish_paths(
            self.ax_,
            self.lines_,
            log,
            xlabel=self.step_name,
            ylabel=self.loss_name,
            title=self.name or "",
        )
        return self

    def _draw_marker(self) -> Any:
        """A vertical line where the bound is lowest, with a dot on each of the lines."""
        if not np.isfinite(self.bound).any():
            return None
        lowest = int(np.argmin(self.bound)) + 1
        words = f"step {lowest}" if self.step_name == "Step" else drawing.counted(lowest, "vector")
        return drawing.mark_step(self.ax_, lowest, self.lines_, f"Lowest bound: {words}")


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
    <pursuit.displays.SupportDisplay object at ...>
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


def _staged_loss(estimator: Any, X: Any, y: Any) -> Array:
    """Mean loss on some rows after 1, 2, ... steps, as the estimator's own losses."""
    check_consistent_length(X, y)
    targets = _signs(estimator, y) if is_classifier(estimator) else np.asarray(y, dtype=float)
    stages = estimator.staged_outputs(X)
    targets = targets.reshape(len(targets), -1)
    return np.array([row_losses(estimator.loss_, targets, stage).mean() for stage in stages])


def _given(display: Any, names: Iterable[str]) -> dict[str, Array]:
    """The paths that a display was given, by name."""
    given = {name: getattr(display, name) for name in names}
    return {name: np.asarray(path, float) for name, path in given.items() if path is not None}


def _staged_residuals(estimator: Any, X: Any) -> Array | None:
    """Mean squared distance of some rows to the span of 1, 2, ... vectors."""
    if X is None:
        return None
    return np.array([residuals.mean() for residuals in estimator.staged_residual(X)])


def _staged_errors(estimator: Any, X: Any, y: Any) -> Array | None:
    """Share of errors of theorem 3 among some rows after 1, 2, ... steps."""
    if X is None:
        return None
    check_consistent_length(X, y)
    stages = estimator.staged_predict(X)
    if is_classifier(estimator):
        return np.array([np.mean(labels != np.asarray(y)) for labels in stages])
    targets = np.asarray(y, dtype=float)
    targets = targets.reshape(len(targets), -1)
    misses = (np.abs(outputs.reshape(targets.shape) - targets) for outputs in stages)
    return np.array([np.mean((miss > estimator.error_tolerance_).any(axis=1)) for miss in misses])


def _loss_name(loss: Loss) -> str:
    """What the vertical axis shows."""
    return "Mean squared error" if isinstance(loss, SquaredError) else f"Mean loss, {loss}"


def _signs(classifier: Any, y: Any) -> Array:
    """The targets +1 and -1 of some labels."""
    labels, classes = np.asarray(y), classifier.classes_
    unknown = ~np.isin(labels, classes)
    if unknown.any():
        raise ValueError(f"y has the label {labels[unknown][0]}, which the model does not know")
    return signed_targets(np.searchsorted(classes, labels), len(classes))


def _fold_losses(estimator: Any) -> Array | None:
    """The cross-validation losses (n_folds, n_steps) of the chosen gamma, or None."""
    if not hasattr(estimator, "cv_loss_path_"):
        return None
    chosen = int(np.argmin(np.abs(np.asarray(estimator.gammas_) - estimator.gamma_)))
    losses: Array = estimator.cv_loss_path_[chosen]
    return losses


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
