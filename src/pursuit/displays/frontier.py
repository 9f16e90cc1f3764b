"""Errors against the size of a model: a frontier of models that shrink, and others as dots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring

from pursuit._validation import check_choice
from pursuit.displays import _axes as drawing
from pursuit.displays._axes import GREY
from pursuit.moving_vectors.frontier import Frontier, expansion_bytes, frontier

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FrontierDisplay"]

# Looks of the line, of the models beside it, and of the dots in turn.
LINE = "#0072B2"
PALE = {"color": GREY, "marker": "o", "markersize": 4, "linestyle": "none", "alpha": 0.5}
DOTS = (
    {"color": "#D55E00", "marker": "s"},
    {"color": "#009E73", "marker": "^"},
    {"color": "#CC79A7", "marker": "D"},
    {"color": "#E69F00", "marker": "v"},
)
AXES = {"vectors": "Number of vectors", "bytes": "Bytes in single precision"}


@dataclass(eq=False, repr=False)
class FrontierDisplay:
    """Error against the number of vectors, or of bytes.

    It is recommended to use `from_frontier` or `from_estimator`. All parameters are stored as
    attributes.

    Parameters
    ----------
    errors : array-like of shape (n_models,)
        Errors of the models.
    n_components : array-like of shape (n_models,)
        Their numbers of vectors.
    nbytes : array-like of shape (n_models,)
        Their numbers of bytes.
    pareto : array-like of int, default=None
        Indices of the models that none smaller equals; they are joined by the line, the others are
        pale. All, if None.
    dots : mapping of str to tuple of float, default=None
        Other models by name: error, number of vectors, number of bytes.
    error_name : str, default="Error"
        What the vertical axis shows.
    name : str, default=None
        Title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure of these axes.
    line_ : matplotlib Line2D
        The models that none smaller equals.
    others_ : matplotlib Line2D
        The models that a smaller one equals.
    dots_ : dict of str to matplotlib Line2D
        The other models by name.

    See Also
    --------
    frontier : Models of falling size.
    PursuitPathDisplay : Loss against the number of chosen kernel functions.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from sklearn.svm import SVC
    >>> from pursuit import FrontierDisplay, SparseKernelClassifier, frontier
    >>> X, y = load_wine(return_X_y=True)
    >>> X, X_val, y, y_val = scale(X[::2]), scale(X[1::2]), y[::2], y[1::2]
    >>> model = SparseKernelClassifier(8, random_state=0)
    >>> path = frontier(model, X, y, X_val=X_val, y_val=y_val)
    >>> FrontierDisplay.from_frontier(path, {"SVC": SVC().fit(X, y)}, X_val, y_val)
    <pursuit.displays.frontier.FrontierDisplay object at ...>
    >>> plt.show()
    """

    errors: Any = field(kw_only=True)
    n_components: Any = field(kw_only=True)
    nbytes: Any = field(kw_only=True)
    pareto: Any = field(kw_only=True, default=None)
    dots: Mapping[str, tuple[float, float, float]] | None = field(kw_only=True, default=None)
    error_name: str = field(kw_only=True, default="Error")
    name: str | None = field(kw_only=True, default=None)

    @classmethod
    def from_frontier(
        cls,
        frontier: Frontier,
        models: Mapping[str, Any] | None = None,
        X: Any = None,
        y: Any = None,
        *,
        against: str = "vectors",
        name: str | None = None,
        ax: Axes | None = None,
        **line_kw: Any,
    ) -> Self:
        """Draw a frontier.

        The error is one less the score, and of a score with a negative sign the rest.

        Parameters
        ----------
        frontier : Frontier
            What `pursuit.frontier` found.
        models : mapping of str to estimator, default=None
            Other fitted models by name, with ``support_vectors_``, ``dual_coef_`` and
            ``intercept_``, such as an `SVC`.
        X, y : array-like, default=None
            Rows on which these are scored: those on which the frontier was.
        against : {"vectors", "bytes"}, default="vectors"
            The horizontal axis.
        name : str, default=None
            Title; the class name of the models if None.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **line_kw
            See `plot`.

        Returns
        -------
        display : FrontierDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If models are given without rows.
        """
        if models and (X is None or y is None):
            raise ValueError("models need X and y, on which they are scored")
        largest, scoring = frontier.models[0], frontier.scoring
        dots = {label: _dot(model, X, y, scoring) for label, model in (models or {}).items()}
        display = cls(
            errors=np.array([_error(score, scoring) for score in frontier.scores]),
            n_components=frontier.n_components,
            nbytes=frontier.nbytes,
            pareto=frontier.pareto(),
            dots=dots,
            error_name=_error_name(largest, scoring),
            name=type(largest).__name__ if name is None else name,
        )
        return display.plot(ax, against=against, **line_kw)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        *,
        sizes: Any = None,
        scoring: Any = None,
        max_iter: int = 20,
        models: Mapping[str, Any] | None = None,
        against: str = "vectors",
        ax: Axes | None = None,
        **line_kw: Any,
    ) -> Self:
        """Draw the ``frontier_`` of a search, or shrink a model by `pursuit.frontier` for it.

        Parameters
        ----------
        estimator : estimator
            A fitted `SparseKernelClassifierCV` or `SparseKernelRegressorCV` whose `sizes` were
            given; or a `SparseKernelClassifier` or `SparseKernelRegressor`, the largest model,
            fitted or not.
        X, y : array-like, default=None
            Training rows; of a search rows for the errors of `models`.
        X_val, y_val : array-like, default=None
            Rows for the errors; X and y if None.
        sizes : sequence of int, default=None
            See `pursuit.frontier`; not for a search, which has them.
        scoring : str or callable, default=None
            See `pursuit.frontier`; not for a search, which has it.
        max_iter : int, default=20
            See `pursuit.frontier`; not for a search, which has it.
        models : mapping of str to estimator, default=None
            Other fitted models by name, drawn as dots.
        against : {"vectors", "bytes"}, default="vectors"
            The horizontal axis.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **line_kw
            See `plot`.

        Returns
        -------
        display : FrontierDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If an argument is invalid, or does not go with the estimator.
        """
        path = getattr(estimator, "frontier_", None)
        if path is None:
            path = frontier(
                estimator, X, y, sizes, X_val=X_val, y_val=y_val, scoring=scoring, max_iter=max_iter
            )
        elif sizes is not None or scoring is not None or max_iter != 20:
            raise ValueError("sizes, scoring and max_iter do not go with an estimator's frontier_")
        held = (X, y) if X_val is None else (X_val, y_val)
        return cls.from_frontier(path, models, *held, against=against, ax=ax, **line_kw)

    def plot(self, ax: Axes | None = None, *, against: str = "vectors", **line_kw: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        against : {"vectors", "bytes"}, default="vectors"
            The horizontal axis, which is logarithmic.
        **line_kw : dict
            Passed to matplotlib's ``plot`` for the line.

        Returns
        -------
        display : FrontierDisplay
            The display itself.
        """
        check_choice("against", against, tuple(AXES))
        self.ax_, self.figure_ = drawing.axes_of(ax)
        self.line_, self.others_ = self._draw_models(against, line_kw)
        self.dots_ = self._draw_dots(against)
        self.ax_.set_xscale("log")
        self.ax_.set(xlabel=AXES[against], ylabel=self.error_name, title=self.name or "")
        self.ax_.legend(framealpha=0.8, edgecolor="none", fontsize="small")
        return self

    def _draw_models(self, against: str, line_kw: Mapping[str, Any]) -> tuple[Any, Any]:
        """The models: a line through those that no smaller one equals, and the others."""
        errors = np.asarray(self.errors, float)
        sizes = np.asarray(self.n_components if against == "vectors" else self.nbytes, float)
        best = np.arange(len(errors)) if self.pareto is None else np.asarray(self.pareto)
        rest = np.setdiff1d(np.arange(len(errors)), best)
        style = {"color": LINE, "marker": "o", "markersize": 5, "linewidth": 1.8, **line_kw}
        line = self.ax_.plot(sizes[best], errors[best], label="Moved vectors", **style)[0]
        return line, self.ax_.plot(sizes[rest], errors[rest], **PALE)[0]

    def _draw_dots(self, against: str) -> dict[str, Any]:
        """The other models."""
        dots = {}
        for i, (label, (error, *sizes)) in enumerate((self.dots or {}).items()):
            style = {"linestyle": "none", "markersize": 7, **DOTS[i % len(DOTS)]}
            size = [sizes[list(AXES).index(against)]]
            dots[label] = self.ax_.plot(size, [error], label=label, **style)[0]
        return dots


def _dot(model: Any, X: Any, y: Any, scoring: Any) -> tuple[float, float, float]:
    """Error, vectors and bytes of a model."""
    score = float(check_scoring(model, scoring=scoring)(model, X, y))
    n_vectors = model.support_vectors_.shape[0]
    return _error(score, scoring), float(n_vectors), float(expansion_bytes(model))


def _is_loss(scoring: Any) -> bool:
    """Whether the score is a loss with a negative sign."""
    return isinstance(scoring, str) and scoring.startswith("neg_")


def _error(score: float, scoring: Any) -> float:
    """The error of a score."""
    return -score if _is_loss(scoring) else 1.0 - score


def _error_name(model: Any, scoring: Any) -> str:
    """What the vertical axis shows."""
    if scoring is None:
        return "Share of errors" if is_classifier(model) else "1 - R2"
    if _is_loss(scoring):
        return str(scoring).removeprefix("neg_").replace("_", " ").capitalize()
    return f"1 - {scoring}" if isinstance(scoring, str) else "1 - score"
