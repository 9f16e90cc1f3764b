"""The figures of a report, each with what it shows in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pursuit._typing import Array
from pursuit.displays import (
    FeatureRelevanceDisplay,
    FrontierDisplay,
    PursuitPathDisplay,
    VectorImageDisplay,
)
from pursuit.reports.measures import Answers, confusion
from pursuit.reports.parts import Picture
from pursuit.reports.subject import Subject

__all__ = [
    "MOST_CLASSES",
    "calibration",
    "confusion_matrix",
    "error_against_vectors",
    "relevances",
    "residuals",
    "vector_images",
]

# Of more classes the matrix of what was taken for what is a table of the worst pairs.
MOST_CLASSES = 20
FIRM = "#0072B2"


def _picture(name: str, alt: str, draw: Callable[[Any], Any], size: tuple[float, float]) -> Picture:
    """A picture on axes of its own, in the report's look."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"font.size": 10.0}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots())
    return _settled(Picture(name, figure, alt))


def _settled(picture: Picture) -> Picture:
    """The picture with its layout as it is now: each further drawing would move it a little."""
    picture.figure.draw_without_rendering()
    picture.figure.set_layout_engine("none")
    return picture


def error_against_vectors(subject: Subject) -> Picture | None:
    """What each further vector buys: the path of a fit, or smaller models of vectors that move."""
    estimator = subject.estimator
    if hasattr(estimator, "train_loss_path_"):
        alt = f"Loss of {type(estimator).__name__} after 1 to {estimator.n_iter_} steps"
        return _picture("path", alt, lambda ax: _draw_path(subject, ax), (6.4, 4.0))
    known = getattr(estimator, "frontier_", None) is not None or subject.train is not None
    if not (hasattr(estimator, "energy_path_") and known):
        return None
    alt = f"Error of {type(estimator).__name__} with fewer and fewer vectors"
    return _picture("frontier", alt, lambda ax: _draw_frontier(subject, ax), (6.4, 4.0))


def _draw_path(subject: Subject, ax: Any) -> None:
    """The path, on the measured rows too where the model holds all its steps (files may not)."""
    estimator, (X, y) = subject.estimator, subject.measured
    rows: tuple[Any, ...] = ()
    if estimator.path_ is not None:
        known = np.isin(y, estimator.classes_) if subject.task == "classification" else slice(None)
        rows = X[known], y[known]
    PursuitPathDisplay.from_estimator(estimator, *rows, name="", ax=ax)


def _draw_frontier(subject: Subject, ax: Any) -> None:
    """The smaller models that a search made, or some made now from the training rows."""
    found = getattr(subject.estimator, "frontier_", None)
    if found is not None:
        FrontierDisplay.from_frontier(found, name="", ax=ax)
    elif subject.train is not None:
        rows = (*subject.train, *subject.measured)
        FrontierDisplay.from_estimator(subject.estimator, *rows, name="", ax=ax)


def confusion_matrix(answers: Answers) -> Picture:
    """How many rows of each class were taken for each class."""
    from sklearn.metrics import ConfusionMatrixDisplay

    labels, counts = confusion(answers)
    matrix, side = np.array(counts), 2.4 + 0.42 * len(labels)
    turned = max(len(str(label)) for label in labels) * len(labels) > 40

    def draw(ax: Any) -> None:
        display = ConfusionMatrixDisplay(matrix, display_labels=labels)
        display.plot(ax=ax, cmap="Blues", colorbar=False, xticks_rotation=90 if turned else 0)
        ax.set(xlabel="Taken for", ylabel="Is")

    right = int(np.trace(matrix))
    alt = f"Matrix of {len(labels)} classes: {right} of {matrix.sum()} rows on its diagonal"
    return _picture("confusion", alt, draw, (side, side))


def residuals(answers: Answers) -> Picture:
    """Targets less predictions against predictions."""
    from sklearn.metrics import PredictionErrorDisplay

    def draw(ax: Any) -> None:
        PredictionErrorDisplay(y_true=answers.truth, y_pred=answers.predicted).plot(
            ax=ax, scatter_kwargs={"alpha": 0.5, "s": 12, "color": FIRM, "linewidths": 0}
        )
        ax.set(xlabel="Prediction", ylabel="Target less prediction")

    spread = float(np.std(answers.truth - answers.predicted))
    alt = f"{len(answers.truth)} residuals with a standard deviation of {spread:.3g}"
    return _picture("residuals", alt, draw, (6.4, 4.0))


def calibration(answers: Answers) -> Picture:
    """Share of right labels against the probability of the predicted label."""
    from sklearn.calibration import CalibrationDisplay

    truth, probabilities = answers.known()
    confidence = probabilities.max(axis=1)
    right = answers.classes[probabilities.argmax(axis=1)] == truth

    def draw(ax: Any) -> None:
        CalibrationDisplay.from_predictions(
            right, confidence, n_bins=10, strategy="quantile", pos_label=True, ax=ax, color=FIRM,
            name="Predicted class",
        )  # fmt: skip
        low = min(float(confidence.min()), float(right.mean()), 0.95)
        ax.set(
            xlabel="Mean probability of the predicted class, tenths of the rows",
            ylabel="Share of right predictions",
            xlim=(max(0.0, low - 0.05), 1.02),
            ylim=(max(0.0, low - 0.25), 1.02),
        )

    alt = f"Mean probability {confidence.mean():.3f}, share of right predictions {right.mean():.3f}"
    return _picture("calibration", alt, draw, (4.6, 4.0))


def vector_images(estimator: Any, shape: tuple[int, int]) -> Picture:
    """The vectors as images."""
    from matplotlib.figure import Figure

    n = min(40, estimator.n_components_)
    columns = min(n, 8)
    size = (1.1 * columns, 1.3 * -(-n // columns) + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    VectorImageDisplay.from_estimator(estimator, shape, name="", figure=figure)
    return _settled(Picture("vectors", figure, f"{n} vectors of the model as images"))


def relevances(shares: Array, names: list[str]) -> Picture:
    """What each feature counts for."""
    n = min(len(shares), 20)
    display = FeatureRelevanceDisplay(
        relevances=shares,
        feature_names=names,
        quantity="Share of the function's mean squared slope",
    )
    first = names[int(np.argmax(shares))]
    alt = f"Shares of {len(shares)} features; the largest is {first}'s, {100 * shares.max():.1f} %"
    return _picture("relevances", alt, display.plot, (6.4, 0.27 * n + 1.4))
