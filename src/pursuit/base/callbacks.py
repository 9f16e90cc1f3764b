"""Fits that can be watched and stopped: the one place that knows scikit-learn's callbacks.

scikit-learn 1.9 has ``sklearn.callback``: an estimator that derives from ``CallbackSupportMixin``
takes callbacks by ``set_callbacks``, and tells them of the tasks of a fit as a tree of contexts.
Here the tree has two levels, the fit and its steps:

    fit                      begin, end: the fitted model
      step 0, 1, ...         begin, end: the model as if the fit had ended here, and whether to stop

A search knows nothing of this: it is given a `pursuit._typing.Watch`, which it calls with where it
has come to after each step, and ends where that gives a reason. Without a callback there is no
watch, and a fit is what it was.

To make a model from the state of a search costs as much as the end of a fit. So a step comes with
a function that makes it, which runs where a callback asks for the model: one that takes
``fitted_estimator`` (scikit-learn's convention), or one that calls `fitted_so_far`.

Before scikit-learn 1.9 `Support` and `Task` stand in: the same hooks are called with the same
arguments, for estimators that are fitted by themselves; meta-estimators know nothing of them.
"""

from __future__ import annotations

import copy
import inspect
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any, Self

__all__ = ["CALLBACK_STATE", "CallbackSupport", "Watcher", "fitted_so_far", "interruptible"]

# Attributes of an estimator that belong to its callbacks, not to its model.
CALLBACK_STATE = (
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
    "_parent_callback_ctx",
    "_watched_by",
)
HOOKS = ("setup", "on_fit_task_begin", "on_fit_task_end", "teardown")

Store = Callable[[Any], object]


class Task:
    """A task of a fit, in place of scikit-learn's ``CallbackContext`` where there is none."""

    source_estimator_name = source_task_name = None

    def __init__(
        self, estimator: Any, task_name: str, max_subtasks: int | None, parent: Task | None = None
    ) -> None:
        self.callbacks = getattr(estimator, "_skl_callbacks", [])
        self.estimator, self.estimator_name = estimator, type(estimator).__name__
        self.task_name, self.max_subtasks, self.parent = task_name, max_subtasks, parent
        self.n_subtasks = 0
        self.task_id = 0 if parent is None else parent.n_subtasks
        self.sequential_subtasks = True

    def subcontext(self, task_name: str = "") -> Task:
        """The next step."""
        task = Task(self.estimator, task_name, 0, self)
        self.n_subtasks += 1
        return task

    def call_on_fit_task_begin(self, *, estimator: Any, **values: Any) -> None:
        """Tell the callbacks that the task begins."""
        self._call("on_fit_task_begin", estimator, values)

    def call_on_fit_task_end(self, *, estimator: Any, **values: Any) -> bool:
        """Tell the callbacks that the task has ended; whether one of them wants the fit to end."""
        return self._call("on_fit_task_end", estimator, values)

    def _call(self, name: str, estimator: Any, values: dict[str, Any]) -> bool:
        """Call a hook of all callbacks with the values that it names."""

        @cache
        def value(wanted: str) -> Any:
            found = values.get(
                "reconstruction_attributes" if wanted == "fitted_estimator" else wanted
            )
            found = found() if callable(found) else found
            if wanted != "fitted_estimator" or found is None:
                return found
            model = copy.copy(estimator)
            vars(model).update(found)
            return model

        stop = False
        for callback in self.callbacks:
            hook = getattr(callback, name)
            parameters = inspect.signature(hook).parameters.values()
            names = [p.name for p in parameters if p.kind == p.KEYWORD_ONLY]
            stop |= bool(hook(estimator, self, **{wanted: value(wanted) for wanted in names}))
        return stop


class Support:
    """Takes callbacks, in place of scikit-learn's ``CallbackSupportMixin`` where there is none."""

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set callbacks for the estimator.

        Parameters
        ----------
        *callbacks : callback instances
            They replace those set before.

        Returns
        -------
        self : estimator instance
            The estimator instance itself.
        """
        for callback in callbacks:
            if isinstance(callback, type) or not all(hasattr(callback, hook) for hook in HOOKS):
                raise TypeError("callbacks must be instances following the FitCallback protocol.")
        vars(self).pop("_skl_callbacks", None)
        if callbacks:
            self._skl_callbacks = list(callbacks)
        return self

    def _init_callback_context(self, max_subtasks: int | None = 0) -> Task:
        """The task of the whole fit."""
        self._callback_fit_ctx = Task(self, "fit", max_subtasks)
        for callback in self._skl_callbacks:
            callback.setup(estimator=self, context=self._callback_fit_ctx)
        return self._callback_fit_ctx


def _tear_down(estimator: Any) -> None:
    """Tell the callbacks that the fit is over, whether or not it came to its end."""
    context = vars(estimator).pop("_callback_fit_ctx", None)
    for callback in estimator._skl_callbacks if context is not None else []:
        callback.teardown(estimator=estimator, context=context)


try:
    from sklearn.callback import CallbackSupportMixin as _Support
    from sklearn.callback import with_callbacks
except ImportError:  # scikit-learn 1.8 and older
    _Support, _end = Support, _tear_down
else:
    # `with_callbacks` tears down, behind what it is given, what a fit has set up.
    _end = with_callbacks(lambda estimator: None)


class CallbackSupport(_Support):
    """An estimator whose fit takes steps that callbacks are told of."""

    @contextmanager
    def _watching(
        self, X: Any, y: Any, sample_weight: Any = None, *, n_steps: int | None = None
    ) -> Iterator[Watcher | None]:
        """Around a fit: what is told of its steps, or None where nobody wants to know.

        Parameters
        ----------
        X, y, sample_weight : array-like
            As the user gave them; callbacks may look at them.
        n_steps : int, optional
            Largest number of steps, if it is known.
        """
        outer = vars(self).get("_watched_by")
        if outer is not None:  # the fit is part of that of another estimator
            yield outer
            return
        watched = bool(getattr(self, "_skl_callbacks", None))
        if not watched and not _interrupts.deferred:
            yield None
            return
        data = {"X": X, "y": y}
        data["metadata"] = None if sample_weight is None else {"sample_weight": sample_weight}
        try:
            task = self._init_callback_context(max_subtasks=n_steps) if watched else None
            with _interrupts.during_fit():
                watcher = Watcher(self, task, data)
                yield watcher
                watcher.close()
        finally:
            if watched:
                _end(self)

    @contextmanager
    def _inner_fit(self, watcher: Watcher | None) -> Iterator[None]:
        """Within: a ``fit`` of this estimator tells the watcher of another one's fit."""
        self._watched_by = watcher
        try:
            yield
        finally:
            del self._watched_by


class Watcher:
    """Tells the callbacks of one fit of its steps.

    Parameters
    ----------
    estimator : estimator
        What is fitted.
    task : CallbackContext, Task or None
        The fit; None: there are no callbacks, and only an interrupt can end it.
    data : dict
        What the hooks may ask for: ``X``, ``y`` and ``metadata``.
    """

    def __init__(self, estimator: Any, task: Any, data: dict[str, Any]) -> None:
        self.estimator, self.task, self.data = estimator, task, data
        self.reason: str | None = None
        self.n_steps = 0
        self._lock = threading.RLock()
        self._step: Any = None
        if task is not None:
            task.call_on_fit_task_begin(estimator=estimator, **data)
            self._begin()

    def __call__(self, store: Store | None) -> str | None:
        """Tell of the end of a step; return why the fit shall end, or None.

        Parameters
        ----------
        store : callable or None
            Sets the fitted attributes as of this step on the estimator that it is given; called
            now or never. None: there is no model yet.
        """
        with self._lock:
            if self.reason is None:
                stop = self._step is not None and self._ended(store)
                self.reason = "callback" if stop else _interrupts.reason()
                self.n_steps += 1
                if self.reason is None:
                    self._begin()
            return self.reason

    def close(self) -> None:
        """Tell of the end of the fit, whose fitted attributes are set."""
        if self.task is None:
            return
        if self._step is not None:  # it never came to its end
            self._step.call_on_fit_task_end(estimator=self.estimator, **self.data)
        self._tell(self.task, lambda: _bare_copy(self.estimator), {})

    def _begin(self) -> None:
        """Tell of the beginning of a step, if there may be one."""
        most = None if self.task is None else self.task.max_subtasks
        if self.task is None or (most is not None and self.n_steps >= most):
            return
        self._step = self.task.subcontext(task_name="step")
        self._step.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def _ended(self, store: Store | None) -> bool:
        """Tell of the end of a step; whether a callback wants the fit to end."""
        step, self._step = self._step, None
        made: list[Any] = []

        def fitted() -> Any:
            if store is not None and not made:
                made.append(_bare_copy(self.estimator))
                store(made[0])
            return made[0] if made else None

        def attributes() -> dict[str, Any] | None:
            model = fitted()
            return None if model is None else dict(vars(model))

        return self._tell(step, fitted, attributes)

    def _tell(self, task: Any, fitted: Callable[[], Any], attributes: Any) -> bool:
        """Tell of the end of a task whose model `fitted` makes."""
        task.fitted_so_far = fitted
        stop = task.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=attributes, **self.data
        )
        del task.fitted_so_far  # the task stays in the tree, the model need not
        return bool(stop)


def fitted_so_far(context: Any) -> Any:
    """The model as if the fit had ended with this task; None where there is none.

    A callback that needs the model at some steps alone asks here: scikit-learn makes the argument
    ``fitted_estimator`` at every step.

    Parameters
    ----------
    context : CallbackContext
        What ``on_fit_task_end`` of a callback is given.
    """
    make = getattr(context, "fitted_so_far", None)
    return None if make is None else make()


def _bare_copy(estimator: Any) -> Any:
    """A copy without callbacks."""
    model = copy.copy(estimator)
    for name in CALLBACK_STATE:
        vars(model).pop(name, None)
    return model


class _Interrupts:
    """Whether an interrupt waits for the end of a step."""

    def __init__(self) -> None:
        self.deferred = self.pending = self.used = False
        self.n_fits = 0

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The first interrupt in a fit waits; any other one is raised at once."""
        if self.n_fits and not self.pending and not self.used:
            self.pending = True
            return
        raise KeyboardInterrupt

    def reason(self) -> str | None:
        """Why a fit shall end at this step; an interrupt ends one fit alone."""
        if not self.pending:
            return None
        self.pending, self.used = False, True
        return "interrupt"

    @contextmanager
    def during_fit(self) -> Iterator[None]:
        """Within: interrupts wait. One that no step has seen is raised at the end."""
        self.n_fits += 1
        try:
            yield
        finally:
            self.n_fits -= 1
        if self.pending and not self.n_fits:
            self.pending = False
            raise KeyboardInterrupt


_interrupts = _Interrupts()


@contextmanager
def interruptible() -> Iterator[None]:
    """Within: an interrupt (Ctrl-C) ends a fit at its next step, and the model is kept.

    The estimator is fitted as far as it has come, and its ``stop_reason_`` is ``"interrupt"``. A
    second interrupt is raised at once, and so is one outside of a fit. An interrupt that comes
    when the last step is over is raised at the end of the fit. Fits that take no steps are
    interrupted as ever.

    Yields
    ------
    None

    Raises
    ------
    ValueError
        Outside of the main thread, the only one that interrupts reach.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import KernelMatchingPursuitClassifier, interruptible
    >>> model = KernelMatchingPursuitClassifier(20)
    >>> with interruptible():  # Ctrl-C would keep the vectors chosen so far
    ...     model.fit(*load_iris(return_X_y=True)).n_components_
    20
    """
    before = signal.signal(signal.SIGINT, _interrupts.handle)
    _interrupts.deferred, _interrupts.used = True, False
    try:
        yield
    finally:
        _interrupts.deferred = _interrupts.pending = False
        signal.signal(signal.SIGINT, before)
