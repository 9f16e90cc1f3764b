"""Losses and bounds against the number of vectors, in the form of scikit-learn's displays.

`PursuitPathDisplay` shows what each further kernel function buys; `BoundDisplay` a bound on the
expected loss beside the losses. A display stores what it draws, so it can be drawn again on other
axes. matplotlib is imported when something is drawn.

The colours are those of Okabe and Ito, which people with any kind of colour vision can tell
apart; lines also differ in dashes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from pursuit._typing import Array
from pursuit._validation import signed_targets
from pursuit.base.cross_validation import chosen_place
from pursuit.displays import _axes as drawing
from pursuit.displays._axes import GREY
from pursuit.greedy.path_losses import row_losses
from pursuit.losses import Loss, SquaredError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BoundDisplay", "PursuitPathDisplay"]

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


@dataclass(eq=False, repr=False)
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
    <pursuit.displays.paths.PursuitPathDisplay object at ...>
    >>> plt.show()
    """

    loss_name = "Mean squared error"

    train_loss: Any = field(kw_only=True, default=None)
    validation_loss: Any = field(kw_only=True, default=None)
    leave_one_out_loss: Any = field(kw_only=True, default=None)
    test_loss: Any = field(kw_only=True, default=None)
    fold_losses: Any = field(kw_only=True, default=None)
    n_iter: int | None = field(kw_only=True, default=None)
    n_components: int | None = field(kw_only=True, default=None)
    name: str | None = field(kw_only=True, default=None)

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
        log : bool or "auto", default="auto"
            See `plot`.
        **line_kw : dict
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


@dataclass(eq=False, repr=False)
class BoundDisplay:
    """A bound on the expected loss, and losses, against the number of vectors.

    A bound on a share of errors says nothing where it is above 1. It is not drawn there, and the
    legend says so.

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
    is_share : bool
        Whether the loss is a share, so that a bound above 1 says nothing; False unless it is set.

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
    <pursuit.displays.paths.BoundDisplay object at ...>
    >>> plt.show()
    """

    loss_name, step_name, is_share = "Loss", "Number of vectors", False

    bound: Any = field(kw_only=True)
    train_loss: Any = field(kw_only=True, default=None)
    test_loss: Any = field(kw_only=True, default=None)
    name: str | None = field(kw_only=True, default=None)

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
        log : bool or "auto", default=False
            See `plot`.
        **line_kw : dict
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
        display.is_share = predicts
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
        paths, looks = _given(self, BOUND_LINES), dict(BOUND_LINES)
        if self.is_share:
            vacuous = ~(paths["bound"] <= 1.0)
            paths["bound"] = np.where(vacuous, np.nan, paths["bound"])
            looks["bound"] = (_told(vacuous), *BOUND_LINES["bound"][1:])
        self.lines_ = drawing.draw_paths(self.ax_, paths, looks, line_kw)
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


def _told(vacuous: Array) -> str:
    """What the legend says of a bound that is above 1 at some steps."""
    n = int(vacuous.sum())
    return f"Bound: above 1, vacuous, at {n} of {len(vacuous)}" if n else "Bound"


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
    chosen = chosen_place(estimator.gammas_, estimator.gamma_)
    return np.asarray(estimator.cv_loss_path_[chosen])
