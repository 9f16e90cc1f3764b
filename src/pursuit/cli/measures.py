"""The measures of the command line: by name, with faults that name the option."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from pursuit.cli.options import UsageFault
from pursuit.reports.measures import MEASURES, Answers, names_for

__all__ = ["labels_at", "measured"]


def measured(names: list[str], task: str, answers: Answers) -> dict[str, float]:
    """Return measures by name; a `UsageFault` for one that is not for the task, or the rows."""
    fitting = names_for(task)
    for name in names:
        if name not in fitting:
            raise UsageFault(f"--metric {name}: for a {task} there are {', '.join(fitting)}")
    try:
        return {name: MEASURES[name].compute(answers) for name in names}
    except ValueError as fault:
        raise UsageFault(f"--metric {fault}") from None


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
