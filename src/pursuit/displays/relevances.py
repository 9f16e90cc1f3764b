"""What each feature counts for in a fitted model, as bars.

matplotlib is imported when something is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pursuit._typing import Array
from pursuit._validation import check_integer
from pursuit.displays import _axes as drawing
from pursuit.displays._axes import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FeatureRelevanceDisplay"]

# Colour of the bars, and the height of one with its gap in inches.
BAR, INCHES = "#0072B2", 0.27


@dataclass(eq=False, repr=False)
class FeatureRelevanceDisplay:
    """Relevances of the features as bars, the largest first, and those of all others as one.

    It is recommended to use `from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    relevances : array-like of shape (n_features,)
        Share of each feature in the whole, none negative.
    feature_names : sequence of str, default=None
        Their names; ``x0``, ``x1``, ... if None.
    max_features : int, default=20
        Draw no more than so many by themselves, and what the others have together.
    quantity : str, default="Share"
        What the shares are of; the axis says it, with its unit.
    name : str, default=None
        Title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure of these axes.
    bars_ : matplotlib BarContainer
        The bars, the largest first.
    labels_ : list of str
        What stands beside each.

    See Also
    --------
    VectorImageDisplay : The vectors of a model as images.
    KernelMetric : A learned metric, which has relevances too.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_diabetes
    >>> from pursuit import FeatureRelevanceDisplay, SparseKernelRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SparseKernelRegressor(10, metric="diagonal", max_iter=10, random_state=0)
    >>> FeatureRelevanceDisplay.from_estimator(model.fit(X, y), max_features=6)
    <pursuit.displays.relevances.FeatureRelevanceDisplay object at ...>
    >>> plt.show()
    """

    relevances: Any = field(kw_only=True)
    feature_names: Any = field(kw_only=True, default=None)
    max_features: int = field(kw_only=True, default=20)
    quantity: str = field(kw_only=True, default="Share")
    name: str | None = field(kw_only=True, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Any = None,
        max_features: int = 20,
        name: str | None = None,
        ax: Axes | None = None,
        **bar_kw: Any,
    ) -> Self:
        """Draw the relevances of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted model with ``feature_relevances_``.
        feature_names : sequence of str, default=None
            Names of the features; those that the estimator saw, else ``x0``, ``x1``, ..., if None.
        max_features : int, default=20
            Draw no more than so many by themselves.
        name : str, default=None
            Title; the estimator's class name if None.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **bar_kw
            See `plot`.

        Returns
        -------
        display : FeatureRelevanceDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator has no relevances, or not as many as there are names.
        """
        check_is_fitted(estimator)
        kind = type(estimator).__name__
        relevances = getattr(estimator, "feature_relevances_", None)
        if relevances is None:
            raise ValueError(f"estimator is a {kind} without feature_relevances_")
        if feature_names is None:
            feature_names = getattr(estimator, "feature_names_in_", None)
        display = cls(
            relevances=relevances,
            feature_names=feature_names,
            max_features=max_features,
            quantity=f"Share of the {_quantity(estimator)}",
            name=kind if name is None else name,
        )
        return display.plot(ax, **bar_kw)

    def plot(self, ax: Axes | None = None, **bar_kw: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **bar_kw : dict
            Passed to matplotlib's ``barh``.

        Returns
        -------
        display : FeatureRelevanceDisplay
            The display itself.
        """
        check_integer("max_features", self.max_features)
        relevances, names = np.asarray(self.relevances, dtype=float), self._names()
        order = np.argsort(-relevances, kind="stable")
        own, others = order[: self.max_features], order[self.max_features :]
        rest = [float(relevances[others].sum())] if len(others) else []
        shares = 100.0 * np.append(relevances[own], rest)
        self.labels_ = [names[k] for k in own] + [_together(len(others))] * len(rest)
        self.ax_, self.figure_ = drawing.axes_of(ax, (6.4, INCHES * len(shares) + 1.1))
        colours = [BAR] * len(own) + [GREY] * len(rest)
        places = np.arange(len(shares))
        self.bars_ = self.ax_.barh(places, shares, **{"color": colours, "height": 0.75, **bar_kw})
        self.ax_.set_yticks(places, self.labels_)
        self.ax_.bar_label(self.bars_, _written(shares), padding=3, color=INK, fontsize="small")
        self._finish(shares)
        return self

    def _names(self) -> list[str]:
        """The names, one a feature."""
        n = len(self.relevances)
        if self.feature_names is None:
            return [f"x{k}" for k in range(n)]
        names = [str(name) for name in self.feature_names]
        if len(names) != n:
            raise ValueError(f"feature_names has {len(names)} names, but there are {n} features")
        return names

    def _finish(self, shares: Array) -> None:
        """The first bar on top, the axis from zero with room for the numbers, the texts."""
        longest = float(shares.max(initial=0.0))
        self.ax_.set(
            xlim=(0.0, 1.12 * longest if longest > 0 else 1.0),
            ylim=(len(shares) - 0.4, -0.6),
            xlabel=f"{self.quantity} (%)",
            title=self.name or "",
        )
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.spines[["top", "right"]].set_visible(False)


def _quantity(estimator: Any) -> str:
    """What an estimator's relevances are shares of."""
    predicts = hasattr(estimator, "predict")
    return "function's mean squared slope" if predicts else "variance after the metric"


def _together(count: int) -> str:
    """The label of the bar of all other features."""
    return drawing.counted(count, "other")


def _written(shares: Array) -> list[str]:
    """The numbers at the bars, with the digits that tell them apart from nothing."""
    return [f"{share:.1f}" if share >= 0.05 or share == 0 else "<0.05" for share in shares]
