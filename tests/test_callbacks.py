"""Fits that are watched and stopped: what callbacks see is what the fit would give."""

import os
import signal
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris

import pursuit
from pursuit import (
    Checkpoint,
    ConvexNetworkClassifier,
    GreedyNystroem,
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressor,
    KernelMetric,
    ReducedSetClassifier,
    RelevanceVectorClassifier,
    RelevanceVectorRegressor,
    SparseKernelCCA,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
    SparseKernelPCA,
    SparseKernelRegressor,
    SparseLargeMarginClassifier,
    SparseOneClass,
    TargetScore,
    TimeBudget,
    interruptible,
)
from pursuit.base import callbacks as base

X, y = load_iris(return_X_y=True)


class Steps:
    """Keeps the model of every step, and ends the fit after `last` of them."""

    def __init__(self, last=None):
        self.last, self.calls, self.models = last, [], []

    def setup(self, estimator, context):
        self.calls.append("setup")
        self.most = context.max_subtasks

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.calls.append(f"end {context.task_name}")
        if context.task_name == "step" and fitted_estimator is not None:
            self.models.append(fitted_estimator)
        return context.task_name == "step" and context.task_id + 1 == self.last


class Clock:
    """A second passes each time that it is looked at."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


class Interrupting:
    """Sends this process an interrupt at the end of one step."""

    def __init__(self, step, n_signals=1):
        self.step, self.n_signals = step, n_signals

    def setup(self, estimator, context):
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "step" and context.task_id + 1 == self.step:
            for _ in range(self.n_signals):
                os.kill(os.getpid(), signal.SIGINT)


PATHS = [
    {},
    {"multi_class": "ovr"},
    {"fitting": "basic"},
    {"loss": "log_loss", "refit_every": 3},
    {"early_stopping": "loo"},
]


@pytest.mark.parametrize("parameters", PATHS, ids=str)
def test_the_model_of_each_step_is_that_of_the_staged_predictions(parameters):
    steps = Steps()
    model = KernelMatchingPursuitClassifier(8, **parameters).set_callbacks(steps).fit(X, y)
    plain = KernelMatchingPursuitClassifier(8, **parameters).fit(X, y)
    assert_array_equal(model.dual_coef_, plain.dual_coef_)
    staged = list(plain.staged_decision_function(X))
    assert len(steps.models) == 8 >= len(staged) > 0
    for stage, values in zip(steps.models, staged, strict=False):
        # Rounding, times the condition of eight kernel functions.
        assert_allclose(stage.decision_function(X), values, rtol=0, atol=1e-10)
    if "loss" not in parameters:
        short = plain.truncate(3)
        assert_allclose(steps.models[2].predict_proba(X), short.predict_proba(X), atol=1e-6)


NARROW = {"gamma": 0.5}
WATCHED = [
    KernelMatchingPursuitClassifierCV(6, gammas=[0.1, 1.0]),
    SparseKernelClassifier(4, max_iter=8, random_state=0),
    SparseKernelClassifier(3, metric=2, n_init=2, max_iter=6, loss="log_loss", random_state=0),
    SparseKernelClassifier(4, early_stopping=True, max_iter=12, random_state=0),
    SparseKernelRegressor(4, precision="float16", max_iter=5, random_state=0),
    SparseKernelClassifierCV(3, gammas=[0.5], Cs=[10.0], max_iter=6, random_state=0),
    SparseOneClass(4, max_iter=6, random_state=0),
    KernelMetric("rbf", metric=1, n_components=4, random_state=0),
    SparseKernelPCA(5),
    SparseKernelPCA("bound", fit_inverse_transform=True, gamma=0.01),
    GreedyNystroem(n_components=5),
    GreedyNystroem(n_components=5, selection="supervised"),
    SparseKernelCCA(2, n_basis=5),
    SparseLargeMarginClassifier(4, multi_class="shared", max_iter=5, random_state=0),
    SparseLargeMarginClassifier(3, n_init=2, max_iter=4, random_state=0),
    ReducedSetClassifier(3, max_iter=3, **NARROW),
    ReducedSetClassifier(2, multi_class="shared", coefficients="margin", **NARROW),
    RelevanceVectorClassifier(4, **NARROW),
    RelevanceVectorRegressor(),
    ConvexNetworkClassifier(alpha=10.0),
    ConvexNetworkClassifier(selection="random", n_components=5, n_draws=2, random_state=0),
]
# Where classes or starts are fitted one after another, the last step is not the best one of all.
LAST_IS_BEST = {"SparseKernelClassifierCV", "SparseKernelPCA", "GreedyNystroem", "SparseOneClass"}


def answer(model):
    """What a model says of the rows."""
    name = next(n for n in ("decision_function", "predict", "transform") if hasattr(model, n))
    return getattr(model, name)(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", WATCHED, ids=lambda estimator: str(estimator)[:60])
def test_every_iterative_fit_is_watched(estimator):
    plain = clone(estimator).fit(X, y)
    steps = Steps()
    watched = clone(estimator).set_callbacks(steps).fit(X, y)
    assert_array_equal(answer(watched), answer(plain))
    begun = steps.calls.count("begin step")
    assert begun == steps.calls.count("end step")
    assert steps.calls[0] == "setup" and steps.calls[-1] == "teardown"
    assert steps.most is None or begun <= steps.most
    assert len(steps.models) > 1
    for model in (steps.models[0], steps.models[-1]):
        assert np.isfinite(answer(model)).all()
    if type(estimator).__name__ in LAST_IS_BEST and steps.most is not None:
        assert_allclose(answer(steps.models[-1]), answer(plain), atol=1e-10)

    stopped = clone(estimator).set_callbacks(Steps(last=2)).fit(X, y)
    assert np.isfinite(answer(stopped)).all()
    reasons = getattr(stopped, "stop_reasons_", [getattr(stopped, "stop_reason_", None)])
    if not isinstance(estimator, KernelMetric):
        assert set(reasons) == {"callback"}


def test_a_metric_that_is_learned_is_watched_and_stopped():
    for estimator in (
        KernelMetric("rbf", metric="diagonal", n_components=4, random_state=0),
        SparseKernelClassifier(3, metric="full", max_iter=4, random_state=0),
    ):
        steps = Steps()
        estimator.set_callbacks(steps).fit(X, y)
        assert len(steps.models) > 30  # of the first round and the later ones
        assert np.isfinite(answer(steps.models[0])).all()
        estimator.set_callbacks(Steps(last=2)).fit(X, y)
        assert np.isfinite(answer(estimator)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_steps_on_parts_of_the_rows_and_in_few_coordinates_are_models_too(monkeypatch):
    monkeypatch.setattr("pursuit.optimize.moving.REDUCED_WORK", 0.0)
    monkeypatch.setattr("pursuit.optimize.moving.FIRST_PART", 40)
    wide = X @ np.random.default_rng(0).normal(size=(4, 12))
    steps = Steps()
    model = SparseKernelClassifier(4, gamma=0.01, max_iter=10, random_state=0)
    model.set_callbacks(steps).fit(wide, y)
    assert model.n_iter_ == 1  # the others were in the principal axes
    assert 10 < len(steps.models) <= steps.most
    for stage in steps.models:
        assert stage.support_vectors_.shape == (4, 12)
        assert stage.score(wide, y) > 0.8
    model.set_callbacks(Steps(last=3)).fit(wide, y)
    assert (model.stop_reason_, model.n_iter_) == ("callback", 0)
    assert model.score(wide, y) > 0.8


def test_the_monitor_of_scikit_learn_logs_the_scores_of_the_stages():
    monitor = pytest.importorskip("sklearn.callback").ScoringMonitor(scoring="accuracy")
    model = KernelMatchingPursuitClassifier(8, multi_class="ovr").set_callbacks(monitor).fit(X, y)
    log = monitor.get_logs().data
    assert log[0]["task_name"] == "fit"
    assert log[0]["accuracy"] == model.score(X, y)
    scores = [row["accuracy"] for row in log[1:]]
    assert_allclose(scores, [np.mean(labels == y) for labels in model.staged_predict(X)])


def test_the_hooks_are_called_in_their_order():
    steps = Steps(last=2)
    model = KernelMatchingPursuitClassifier(9).set_callbacks(steps).fit(X, y)
    one = ["begin step", "end step"]
    begin, end = ["setup", "begin fit"], ["end fit", "teardown"]
    assert steps.calls == [*begin, *one, *one, *end]
    assert (model.n_components_, model.stop_reason_) == (2, "callback")
    assert not {*base.CALLBACK_STATE} - {"_skl_callbacks"} & vars(model).keys()


def test_a_step_that_never_ends_has_no_model():
    duplicates = np.repeat(X[::50], 5, axis=0)
    steps = Steps()
    with pytest.warns(match="path ended after"):
        model = KernelMatchingPursuitRegressor(9).set_callbacks(steps)
        model.fit(duplicates, duplicates[:, 0])
    assert steps.calls.count("begin step") == steps.calls.count("end step")
    assert len(steps.models) == model.n_iter_ < 9


def test_a_fit_that_fails_is_torn_down():
    steps = Steps()
    model = KernelMatchingPursuitClassifier(3, early_stopping=True).set_callbacks(steps)
    with pytest.raises(ValueError, match="validation_fraction"):
        model.fit(X[[0, 50, 100]], y[[0, 50, 100]])
    assert steps.calls == ["setup", "begin fit", "begin step", "teardown"]


def test_without_a_callback_nothing_is_watched(monkeypatch):
    def watched(*_):
        raise AssertionError

    monkeypatch.setattr(base, "Watcher", watched)
    assert KernelMatchingPursuitClassifier(3).fit(X, y).n_components_ == 3


def test_what_is_stopped_is_what_a_smaller_budget_gives():
    model = KernelMatchingPursuitClassifierCV(20, gammas=[0.1, 1.0]).set_callbacks(Steps(4))
    model.fit(X, y)
    plain = KernelMatchingPursuitClassifierCV(20, gammas=[0.1, 1.0]).fit(X, y)
    assert plain.n_iter_ > 4
    assert_allclose(model.dual_coef_, plain.truncate(4).dual_coef_, rtol=1e-10)
    # With re-fits now and then the end brings one.
    rare = {"loss": "log_loss", "refit_every": 5}
    model = KernelMatchingPursuitClassifier(9, **rare).set_callbacks(Steps(7)).fit(X, y)
    small = KernelMatchingPursuitClassifier(7, **rare).fit(X, y)
    assert_allclose(model.dual_coef_, small.dual_coef_, rtol=1e-3)


def test_a_budget_of_time_ends_the_fit_at_a_step():
    # The clock is looked at once at the beginning and once after each step.
    budget = TimeBudget(3.0, clock=Clock())
    model = KernelMatchingPursuitClassifier(9).set_callbacks(budget).fit(X, y)
    assert (model.n_components_, model.stop_reason_) == (3, "callback")
    assert clone(model).fit(X, y).n_components_ == 3
    assert not budget._ends
    assert model.set_callbacks(TimeBudget(1e9)).fit(X, y).stop_reason_ == "n_components"


def test_a_checkpoint_is_the_model_so_far(tmp_path):
    file, sizes = tmp_path / "model.pursuit", []

    class Looking(Steps):
        def on_fit_task_end(self, estimator, context):
            sizes.append(pursuit.load(file).n_components_ if file.exists() else 0)

    checkpoint = Checkpoint(file, 3)
    model = KernelMatchingPursuitClassifier(8).set_callbacks(checkpoint, Looking()).fit(X, y)
    assert sizes == [0, 0, 3, 3, 3, 6, 6, 6, 8]
    assert_array_equal(pursuit.load(file).decision_function(X), model.decision_function(X))
    assert [path.name for path in tmp_path.iterdir()] == ["model.pursuit"]

    sizes.clear()
    file.unlink()
    checkpoint = Checkpoint(file, seconds=2.0, clock=Clock())
    model.set_callbacks(checkpoint, Looking(last=5)).fit(X, y)
    assert sizes[:4] == [0, 2, 2, 4]


def test_a_score_that_is_enough_ends_the_fit():
    model = KernelMatchingPursuitClassifier(20).fit(X[::2], y[::2])
    scores = [np.mean(labels == y[1::2]) for labels in model.staged_predict(X[1::2])]
    needed = 1 + next(n for n, score in enumerate(scores) if score >= 0.9)
    enough = TargetScore(0.9, X[1::2], y[1::2])
    assert model.set_callbacks(enough).fit(X[::2], y[::2]).n_components_ == needed
    assert_allclose(enough.scores_, scores[:needed])
    rarely = TargetScore(-0.5, X[1::2], y[1::2], scoring="neg_log_loss", every=4)
    assert model.set_callbacks(rarely).fit(X[::2], y[::2]).n_components_ % 4 == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TimeBudget(0), "seconds must be"),
        (lambda: Checkpoint("x"), "give every"),
        (lambda: Checkpoint("x", 0), "every must be"),
        (lambda: Checkpoint("x", seconds=-1), "seconds must be"),
        (lambda: TargetScore("high", X, y), "score must be"),
        (lambda: TargetScore(1.0, X, y, every=0), "every must be"),
    ],
)
def test_parameters_out_of_range_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_interrupt_keeps_the_path_so_far():
    model = KernelMatchingPursuitClassifier(9).set_callbacks(Interrupting(4))
    before = signal.getsignal(signal.SIGINT)
    with interruptible():
        model.fit(X, y)
        assert (model.n_components_, model.stop_reason_) == (4, "interrupt")
        with pytest.raises(KeyboardInterrupt):  # the next one is raised
            model.fit(X, y)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("callback", "context"),
    [(Interrupting(4, 2), interruptible), (Interrupting(4), nullcontext)],
)
def test_two_interrupts_are_one_too_many_and_one_is_without_the_context(callback, context):
    model = KernelMatchingPursuitClassifier(9).set_callbacks(callback)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs of a shell ignore it
    try:
        with pytest.raises(KeyboardInterrupt), context():
            model.fit(X, y)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not hasattr(model, "dual_coef_")


def test_an_interrupt_outside_of_a_step_is_not_lost():
    with interruptible(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)

    class AtTheEnd(Interrupting):
        def on_fit_task_end(self, estimator, context):
            if context.task_name == "fit":
                os.kill(os.getpid(), signal.SIGINT)

    model = KernelMatchingPursuitClassifier(3).set_callbacks(AtTheEnd(0))
    with interruptible(), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.n_components_ == 3


def test_interrupts_alone_are_watched_without_callbacks(monkeypatch):
    model = KernelMatchingPursuitClassifier(9)
    monkeypatch.setattr(base._interrupts, "reason", lambda: "interrupt")
    with interruptible():
        assert model.fit(X, y).n_components_ == 1


def test_before_scikit_learn_has_callbacks_the_same_hooks_are_called():
    class Model(base.Support):
        pass

    model, steps = Model().set_callbacks(first := Steps(2)), []
    task = model._init_callback_context(max_subtasks=5)
    watcher = base.Watcher(model, task, {"X": X, "y": y, "metadata": None})
    for n in range(3):
        steps.append(watcher(lambda copy, n=n: setattr(copy, "n_", n)))
    watcher.close()
    base._tear_down(model)
    one = ["begin step", "end step"]
    assert first.calls == ["setup", "begin fit", *one, *one, "end fit", "teardown"]
    assert steps == [None, "callback", "callback"]
    assert [copy.n_ for copy in first.models] == [0, 1]
    assert not hasattr(model, "n_") and not hasattr(model, "_callback_fit_ctx")
    assert not hasattr(model.set_callbacks(), "_skl_callbacks")
    with pytest.raises(TypeError, match="FitCallback"):
        model.set_callbacks(Steps)
