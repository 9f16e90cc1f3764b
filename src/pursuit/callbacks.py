"""Callbacks for fits that take steps: a time limit, files on the way, a score that is enough.

They are set as those of scikit-learn are, and like these one serves any number of fits and
estimators: ``model.set_callbacks(TimeBudget(60)).fit(X, y)``. Inside of a pipeline or a search they
are set on the estimator itself; each of its fits is then watched by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.metrics import check_scoring

from pursuit._validation import check_integer, check_real
from pursuit.base.callbacks import fitted_so_far
from pursuit.model_file import save

__all__ = ["Checkpoint", "TargetScore", "TimeBudget"]


class _Callback:
    """The hooks that every callback must have; a step is a task within another one."""

    def setup(self, estimator: Any, context: Any) -> None:
        """Called at the beginning of a fit.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            The fit.
        """

    def teardown(self, estimator: Any, context: Any) -> None:
        """Called at the end of a fit, also of one that failed.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            The fit.
        """

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Called at the beginning of a fit and of each step.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            The fit or the step.
        """

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Called at the end of each step and of the fit.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            The step or the fit.

        Returns
        -------
        stop : bool
            Whether the fit shall end.
        """
        if context.task_name == "step":
            return self._after_step(estimator, context)
        self._after_fit(estimator, context)
        return False

    def _after_step(self, estimator: Any, context: Any) -> bool:
        """Whether the fit shall end after this step."""
        raise NotImplementedError

    def _after_fit(self, estimator: Any, context: Any) -> None:
        """What is to be done when the fit has come to its end."""


class TimeBudget(_Callback):
    """Ends a fit at the first step that is over when the time is.

    The model is that of the steps taken, and its ``stop_reason_`` is ``"callback"``. The time runs
    from the beginning of the fit; what comes before the first step (a pass over the rows, say, and
    a search by cross-validation) counts but cannot be cut short, and neither can the step that is
    under way. What comes after the last step (temperatures, error bands) is not counted.

    Parameters
    ----------
    seconds : float
        How long each fit may take, above 0.
    clock : callable, default=time.monotonic
        What tells the time, in seconds.

    See Also
    --------
    pursuit.interruptible : To end a fit by hand.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from pursuit import KernelMatchingPursuitClassifier, TimeBudget
    >>> model = KernelMatchingPursuitClassifier(50).set_callbacks(TimeBudget(0.001))
    >>> model.fit(*load_digits(return_X_y=True)).stop_reason_
    'callback'
    >>> model.n_components_
    1
    """

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        check_real("seconds", seconds, above=True)
        self.seconds, self.clock = float(seconds), clock
        self._ends: dict[int, float] = {}

    def setup(self, estimator: Any, context: Any) -> None:
        """Start the clock of a fit.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            The fit.
        """
        self._ends[id(estimator)] = self.clock() + self.seconds

    def teardown(self, estimator: Any, context: Any) -> None:
        """Forget a fit.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            The fit.
        """
        self._ends.pop(id(estimator), None)

    def _after_step(self, estimator: Any, context: Any) -> bool:
        return self.clock() >= self._ends[id(estimator)]


class Checkpoint(_Callback):
    """Writes the model as it stands into a file, again and again.

    The file is that of `pursuit.save`, and is replaced in one move: whatever happens, there is a
    whole one. At the end of the fit it holds the fitted model. `pursuit.load` gives a model that
    predicts, and with ``warm_start=True`` its ``fit`` goes on from there where the method allows:
    vectors that move do.

    Parameters
    ----------
    path : str or path-like
        The file. Of several fits each replaces that of the last one.
    every : int, optional
        Steps between two writes. None: no such limit.
    seconds : float, optional
        Seconds between two writes, above 0. None: no such limit.
    clock : callable, default=time.monotonic
        What tells the time, in seconds.

    Raises
    ------
    ValueError
        If neither `every` nor `seconds` is given, or one is out of range.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import Checkpoint, KernelMatchingPursuitClassifier, load
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name) / "on_the_way.pursuit"
    >>> model = KernelMatchingPursuitClassifier(10).set_callbacks(Checkpoint(file, every=4))
    >>> model.fit(*load_iris(return_X_y=True)).n_components_, load(file).n_components_
    (10, 10)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: Any,
        every: int | None = None,
        *,
        seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_integer("every", every, optional=True)
        if seconds is not None:
            check_real("seconds", seconds, above=True)
        if every is None and seconds is None:
            raise ValueError("give every, a number of steps, or seconds")
        self.path, self.every, self.seconds = Path(path), every, seconds
        self.clock = clock
        self._last: dict[int, float] = {}

    def setup(self, estimator: Any, context: Any) -> None:
        """Start the clock of a fit.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            The fit.
        """
        self._last[id(estimator)] = self.clock()

    def teardown(self, estimator: Any, context: Any) -> None:
        """Forget a fit.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            The fit.
        """
        self._last.pop(id(estimator), None)

    def _after_step(self, estimator: Any, context: Any) -> bool:
        """Write the model where that is due."""
        if self._due(self._last[id(estimator)], context.task_id + 1):
            self._write(estimator, context)
        return False

    def _after_fit(self, estimator: Any, context: Any) -> None:
        """Write the fitted model."""
        self._write(estimator, context)

    def _write(self, estimator: Any, context: Any) -> None:
        """Write the model as it stands, if there is one."""
        model = fitted_so_far(context)
        if model is not None:
            save(model, self.path)
            self._last[id(estimator)] = self.clock()

    def _due(self, last: float, n_steps: int) -> bool:
        """Whether enough steps were taken, or enough time has gone."""
        if self.every is not None and n_steps % self.every == 0:
            return True
        return self.seconds is not None and self.clock() >= last + self.seconds


class TargetScore(_Callback):
    """Ends a fit as soon as the model scores well enough on rows of its own.

    Parameters
    ----------
    score : float
        What is enough; larger is better.
    X_val : {array-like, CSR matrix} of shape (n_samples, n_features)
        Rows that the fit does not see.
    y_val : array-like of shape (n_samples,) or (n_samples, n_targets)
        Their labels or targets.
    scoring : str or callable, optional
        What scores, as in scikit-learn. None: the estimator's ``score``.
    every : int, default=1
        Steps between two looks.

    Attributes
    ----------
    scores_ : list of float
        Those of the last fit, one a look.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from pursuit import KernelMatchingPursuitClassifier, TargetScore
    >>> X, y = load_digits(return_X_y=True)
    >>> enough = TargetScore(0.9, X[900:], y[900:], every=5)
    >>> model = KernelMatchingPursuitClassifier(100).set_callbacks(enough).fit(X[:900], y[:900])
    >>> model.n_components_ < 100, model.score(X[900:], y[900:]) >= 0.9
    (True, True)
    """

    def __init__(
        self, score: float, X_val: Any, y_val: Any, *, scoring: Any = None, every: int = 1
    ) -> None:
        check_real("score", score, -float("inf"))
        check_integer("every", every)
        self.score, self.X_val, self.y_val = float(score), X_val, y_val
        self.scoring, self.every = scoring, every
        self.scores_: list[float] = []

    def setup(self, estimator: Any, context: Any) -> None:
        """Forget the scores of the last fit.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            The fit.
        """
        self.scores_ = []

    def _after_step(self, estimator: Any, context: Any) -> bool:
        """Whether the score is high enough."""
        if (context.task_id + 1) % self.every:
            return False
        model = fitted_so_far(context)
        if model is None:
            return False
        scorer = check_scoring(estimator, scoring=self.scoring)
        self.scores_.append(float(scorer(model, self.X_val, self.y_val)))
        return self.scores_[-1] >= self.score
