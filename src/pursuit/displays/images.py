"""The vectors of a model drawn as images, for rows that are images.

matplotlib is imported when something is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pursuit._validation import check_integer
from pursuit.displays import _axes as drawing
from pursuit.displays._axes import GREY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["VectorImageDisplay"]


@dataclass(eq=False, repr=False)
class VectorImageDisplay:
    """Expansion vectors as images with their coefficients (figure 1 of Wu et al. 2005).

    It is recommended to use `from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    images : array-like of shape (n_vectors, height, width)
        The vectors in the order in which they are drawn.
    titles : sequence of str
        What stands above each.
    name : str, default=None
        Title of the figure.
    legend : str, default=None
        What the titles say, below the images.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    axes_ : list of matplotlib Axes
        The axes of the images.

    See Also
    --------
    SupportDisplay : The fitted function and the vectors of a problem with two features.
    FeatureRelevanceDisplay : Which features a model listens to.

    References
    ----------
    M. Wu, B. Schoelkopf and G. Bakir, "Building sparse large margin classifiers", ICML 2005.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_digits
    >>> from pursuit import SparseLargeMarginClassifier, VectorImageDisplay
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> model = SparseLargeMarginClassifier(6, random_state=0).fit(X, y)
    >>> VectorImageDisplay.from_estimator(model, (8, 8))
    <pursuit.displays.images.VectorImageDisplay object at ...>
    >>> plt.show()
    """

    images: Any = field(kw_only=True)
    titles: Any = field(kw_only=True)
    name: str | None = field(kw_only=True, default=None)
    legend: str | None = field(kw_only=True, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        shape: tuple[int, int],
        *,
        max_images: int = 40,
        name: str | None = None,
        figure: Figure | None = None,
        **image_kw: Any,
    ) -> Self:
        """Draw the vectors of a fitted model.

        Parameters
        ----------
        estimator : estimator
            A fitted model with ``support_vectors_`` and ``dual_coef_``.
        shape : tuple of int
            Height and width; their product is the number of features.
        max_images : int, default=40
            Draw no more than so many, those of the largest coefficients.
        name : str, default=None
            Title; the estimator's class name if None.
        figure : matplotlib Figure, default=None
            Where to draw; a new figure if None.
        **image_kw
            See `plot`.

        Returns
        -------
        display : VectorImageDisplay
            The display, drawn. For one output the vectors stand in the order of their
            coefficients, for several by the output in which their coefficient is largest.

        Raises
        ------
        ValueError
            If the model has no vectors, or `shape` does not fit them.
        """
        check_is_fitted(estimator)
        check_integer("max_images", max_images)
        kind = type(estimator).__name__
        vectors = getattr(estimator, "support_vectors_", None)
        if vectors is None or not vectors.shape[0]:
            raise ValueError(f"estimator is a {kind} without support_vectors_")
        rows = np.asarray(vectors.toarray() if sparse.issparse(vectors) else vectors)
        if len(shape) != 2 or shape[0] * shape[1] != rows.shape[1]:
            raise ValueError(f"shape is {shape}, but the vectors have {rows.shape[1]} features")
        order, titles = _order(np.atleast_2d(estimator.dual_coef_), estimator, max_images)
        display = cls(
            images=rows[order].reshape(-1, *shape),
            titles=titles,
            name=kind if name is None else name,
            legend=_legend(estimator),
        )
        return display.plot(figure, **image_kw)

    def plot(self, figure: Figure | None = None, **image_kw: Any) -> Self:
        """Draw.

        Parameters
        ----------
        figure : matplotlib Figure, default=None
            Where to draw; a new figure if None.
        **image_kw : dict
            Passed to matplotlib's ``imshow`` for every image. All images have one contrast, from
            the lowest to the highest value of any, unless ``vmin`` and ``vmax`` say otherwise.

        Returns
        -------
        display : VectorImageDisplay
            The display itself.
        """
        n = len(self.images)
        contrast = {"vmin": np.min(self.images), "vmax": np.max(self.images)}
        n_columns = min(n, 8)
        n_rows = -(-n // n_columns)
        self.figure_ = _figure(figure, n_columns, n_rows)
        places = np.ravel(self.figure_.subplots(n_rows, n_columns, squeeze=False))
        self.axes_ = list(places[:n])
        for ax, image, title in zip(self.axes_, self.images, self.titles, strict=True):
            ax.imshow(image, **{"cmap": "gray_r", **contrast, **image_kw})
            ax.set_title(title, fontsize="small")
        for ax in places:
            ax.set_axis_off()
        if self.name:
            self.figure_.suptitle(self.name)
        if self.legend:
            self.figure_.supxlabel(self.legend, fontsize="small", color=GREY)
        return self


def _legend(estimator: Any) -> str:
    """What stands above the images."""
    if len(np.atleast_2d(estimator.dual_coef_)) == 1:
        return "Above each vector: its coefficient"
    what = "class" if hasattr(estimator, "classes_") else "output"
    return f"Above each vector: the {what} to which it counts most, and its coefficient there"


def _figure(figure: Figure | None, n_columns: int, n_rows: int) -> Any:
    """The figure given, or a new one with room for the images."""
    if figure is not None:
        return figure
    return drawing.pyplot().figure(
        figsize=(1.1 * n_columns, 1.3 * n_rows + 0.7), layout="constrained"
    )


def _order(coefficients: Any, estimator: Any, max_images: int) -> tuple[Any, list[str]]:
    """The vectors to draw in order, and their titles."""
    size = np.abs(coefficients).max(axis=0)
    shown = np.sort(np.argsort(-size, kind="stable")[:max_images])
    own = np.abs(coefficients).argmax(axis=0)
    value = coefficients[own, np.arange(len(own))]
    order = shown[np.lexsort((value[shown], own[shown]))]
    if len(coefficients) == 1:
        return order, [f"{value[k]:+.2g}" for k in order]
    labels = getattr(estimator, "classes_", np.arange(len(coefficients)))
    return order, [f"{labels[own[k]]}: {value[k]:+.2g}" for k in order]
