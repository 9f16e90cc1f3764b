"""What is measured on rows whose targets are known: a name, the task, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

__all__ = ["MEASURES", "Answers", "Measure", "confusion", "names_for"]


class Answers(NamedTuple):
    """Targets and predictions, and the probabilities of the classes, where there are some."""

    truth: NDArray[Any]
    predicted: NDArray[Any]
    classes: NDArray[Any]
    probabilities: Callable[[], NDArray[np.float64]]

    @classmethod
    def of(cls, estimator: Any, X: Any, truth: NDArray[Any], predicted: Any = None) -> Answers:
        """Return the answers of an estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier or regressor.
        X : array of shape (n_rows, n_features)
            The rows.
        truth : ndarray of shape (n_rows,)
            Their targets.
        predicted : ndarray of shape (n_rows,), default=None
            Predictions, if they are not those of ``predict``.
        """
        classes = getattr(estimator, "classes_", np.array([]))
        predicted = estimator.predict(X) if predicted is None else predicted
        return cls(truth, predicted, classes, cache(lambda: estimator.predict_proba(X)))

    def known(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return the labels that the model knows, and the probabilities of these rows."""
        rows = np.isin(self.truth, self.classes)
        return self.truth[rows], self.probabilities()[rows]


class Measure(NamedTuple):
    """A measure of classes or of numbers."""

    title: str
    task: str
    compute: Callable[[Answers], float]


def _f1(answers: Answers) -> float:
    """F1 of the second of two classes, of more than two the mean of all."""
    truth, predicted, classes = answers[:3]
    found = []
    for label in classes[1:] if len(classes) == 2 else classes:
        right = np.sum((truth == label) & (predicted == label))
        found.append(2.0 * right / max(np.sum(truth == label) + np.sum(predicted == label), 1))
    return float(np.mean(found))


def _roc_auc(answers: Answers) -> float:
    """Area under the curve, of more than two classes the mean of each against the rest."""
    truth, probabilities = answers.known()
    classes = answers.classes
    shares = [float(np.mean(truth == label)) for label in classes]
    if not all(0 < share < 1 for share in shares):
        raise ValueError("roc_auc: there is not a row of each class")
    columns = [1] if len(classes) == 2 else range(len(classes))
    areas = [metrics.roc_auc_score(truth == classes[t], probabilities[:, t]) for t in columns]
    return float(np.mean(areas))


def _log_loss(answers: Answers) -> float:
    """Mean negative logarithm of the probability of the right class."""
    truth, probabilities = answers.known()
    column = np.searchsorted(answers.classes, truth)
    found = probabilities[np.arange(len(truth)), column]
    return float(-np.log(np.maximum(found, np.finfo(float).tiny)).mean())


def _balanced(answers: Answers) -> float:
    """Mean over the classes of the share of their rows that are right."""
    right = answers.truth == answers.predicted
    return float(np.mean([right[answers.truth == label].mean() for label in set(answers.truth)]))


def _errors(answers: Answers) -> NDArray[np.float64]:
    """Targets less predictions."""
    errors: NDArray[np.float64] = answers.truth - answers.predicted
    return errors


_CLASSES, _NUMBERS = "classification", "regression"
MEASURES: dict[str, Measure] = {
    "accuracy": Measure("accuracy", _CLASSES, lambda a: float(np.mean(a.truth == a.predicted))),
    "balanced_accuracy": Measure("balanced accuracy", _CLASSES, _balanced),
    "f1": Measure("F1", _CLASSES, _f1),
    "roc_auc": Measure("ROC AUC", _CLASSES, _roc_auc),
    "log_loss": Measure("log-loss", _CLASSES, _log_loss),
    "r2": Measure("R2", _NUMBERS, lambda a: float(metrics.r2_score(a.truth, a.predicted))),
    "mae": Measure("mean absolute error", _NUMBERS, lambda a: float(np.abs(_errors(a)).mean())),
    "rmse": Measure(
        "root mean squared error", _NUMBERS, lambda a: float(np.sqrt((_errors(a) ** 2).mean()))
    ),
}


def names_for(task: str) -> list[str]:
    """Return the names of the measures of a task."""
    return [name for name, measure in MEASURES.items() if measure.task == task]


def confusion(answers: Answers) -> tuple[list[Any], list[list[int]]]:
    """Return the labels, and how many rows of each (down) were taken for each (across)."""
    labels = np.union1d(answers.truth, answers.classes)
    counts = np.zeros((len(labels),) * 2, dtype=int)
    places = (np.searchsorted(labels, part) for part in (answers.truth, answers.predicted))
    np.add.at(counts, tuple(places), 1)
    return labels.tolist(), counts.tolist()
