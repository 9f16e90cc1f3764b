"""What `pursuit score` measures: a name, what it is for, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from pursuit.cli.options import UsageFault

__all__ = ["MEASURES", "Answers", "confusion", "labels_at", "measured"]


class Answers(NamedTuple):
    """Targets, predictions, and what gives probabilities and their classes."""

    truth: NDArray[Any]
    predicted: NDArray[Any]
    estimator: Any
    X: Any

    def known(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return the labels that the model knows, and the probabilities of these rows."""
        rows = np.isin(self.truth, self.estimator.classes_)
        return self.truth[rows], self.estimator.predict_proba(self.X[rows])


class Measure(NamedTuple):
    """A measure of classes or of numbers."""

    title: str
    task: str
    compute: Callable[[Answers], float]


def _f1(answers: Answers) -> float:
    """F1 of the second of two classes, of more than two the mean of all."""
    truth, predicted, classes = *answers[:2], answers.estimator.classes_
    found = []
    for label in classes[1:] if len(classes) == 2 else classes:
        right = np.sum((truth == label) & (predicted == label))
        found.append(2.0 * right / max(np.sum(truth == label) + np.sum(predicted == label), 1))
    return float(np.mean(found))


def _roc_auc(answers: Answers) -> float:
    """Area under the curve, of more than two classes the mean of each against the rest."""
    truth, probabilities = answers.known()
    classes = answers.estimator.classes_
    shares = [float(np.mean(truth == label)) for label in classes]
    if not all(0 < share < 1 for share in shares):
        raise UsageFault("--metric roc_auc: the file has not a row of each class")
    columns = [1] if len(classes) == 2 else range(len(classes))
    areas = [metrics.roc_auc_score(truth == classes[t], probabilities[:, t]) for t in columns]
    return float(np.mean(areas))


def _log_loss(answers: Answers) -> float:
    """Mean negative logarithm of the probability of the right class."""
    truth, probabilities = answers.known()
    column = np.searchsorted(answers.estimator.classes_, truth)
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


def measured(names: list[str], task: str, answers: Answers) -> dict[str, float]:
    """Return measures by name; a `UsageFault` for one that is not for the task."""
    fitting = [name for name, measure in MEASURES.items() if measure.task == task]
    for name in names:
        if name not in fitting:
            raise UsageFault(f"--metric {name}: for a {task} there are {', '.join(fitting)}")
    return {name: MEASURES[name].compute(answers) for name in names}


def confusion(answers: Answers) -> tuple[list[Any], list[list[int]]]:
    """Return the labels, and how many rows of each (down) were taken for each (across)."""
    labels = np.union1d(answers.truth, answers.estimator.classes_)
    counts = np.zeros((len(labels),) * 2, dtype=int)
    places = (np.searchsorted(labels, part) for part in (answers.truth, answers.predicted))
    np.add.at(counts, tuple(places), 1)
    return labels.tolist(), counts.tolist()


def labels_at(estimator: Any, X: Any, threshold: float | None) -> NDArray[Any]:
    """Return predictions, of two classes the second from a probability of `threshold` on."""
    if threshold is None:
        predicted: NDArray[Any] = estimator.predict(X)
        return predicted
    classes = getattr(estimator, "classes_", ())
    if len(classes) != 2:
        raise UsageFault(f"--threshold needs two classes, and the model has {len(classes)}")
    labels: NDArray[Any] = classes[(estimator.predict_proba(X)[:, 1] >= threshold).astype(int)]
    return labels
