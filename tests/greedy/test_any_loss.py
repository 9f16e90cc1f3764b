"""Pursuits under any loss against figure 4 as it stands and against the closed form."""

import warnings
from functools import cache, partial

import numpy as np
import pytest
import reference
import sklearn
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from problems import as_targets, awkward, pairwise
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from pursuit import KernelMatchingPursuitClassifier, KernelMatchingPursuitRegressor
from pursuit._validation import Samples
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.design_matrix import DesignMatrix, PlainFunctions
from pursuit.greedy import any_loss as gradient_pursuit
from pursuit.greedy.any_loss import GradientPursuits, LossRule, warn_unconverged
from pursuit.greedy.normal_equations import WeightedValues, gather, normal_equations
from pursuit.greedy.squared_error import SquaredErrorPursuit
from pursuit.kernels import RBF
from pursuit.losses import (
    CrossEntropy,
    Exponential,
    Huber,
    LogLoss,
    Poisson,
    SquaredError,
    SquaredErrorTanh,
    SquaredHinge,
)
from pursuit.optimize import newton

GAMMA = 0.3
P = awkward()
USED = np.flatnonzero(P.weights > 0)
FITTINGS = ("prefit", "backfit", "basic")
ATOMS = Atoms(RBF(GAMMA), P.X[USED])
D = reference.rbf(P.X[USED], P.X[USED], GAMMA)
W = P.weights[USED]

THREE = as_targets(P.labels[USED])
TWO = THREE[:, [0]]
NUMBERS = P.Y[USED]
COUNTS = np.round(np.abs(P.Y[USED, :1] - 7.0) * 3.0)

# Loss, targets, ridge.
CASES = {
    "squared_error": (SquaredError(), NUMBERS, 0.0),
    "squared_error_tanh": (SquaredErrorTanh(), TWO, 0.05),
    "exponential": (Exponential(), TWO, 0.1),
    "squared_hinge": (SquaredHinge(), THREE, 0.02),
    "log_loss": (LogLoss(), THREE, 0.1),
    "cross_entropy": (CrossEntropy(), THREE, 0.1),
    "huber": (Huber(1.0), NUMBERS, 0.0),
    "poisson": (Poisson(), COUNTS, 0.02),
}


def small_memory(n_bytes=3_000):
    """Neither Q nor the dictionary is kept; blocks of a few rows."""
    return sklearn.config_context(working_memory=n_bytes / 2**20)


def problem(Y, alpha=0.0, intercept=True, complete=True, rows=None):
    """The dictionary on the rows, and its normal equations."""
    rows = np.arange(len(USED)) if rows is None else rows
    samples = Samples(P.X[USED][rows], Y[rows], W[rows])
    values = WeightedValues(
        ATOMS.functions, samples, len(ATOMS), centred=intercept, keep=True, subset=ATOMS.subset
    )
    return values, normal_equations(gather(values, complete=complete), values, alpha=alpha)


def searched(loss, Y, budgets, fitting="backfit", *, every=1, selection="loss", **options):
    values, equations = problem(Y, **options)
    rule = LossRule(loss, every, selection)
    search = GradientPursuits(values, equations, fitting, list(budgets), rule)
    search.extend(sum(budgets))
    return search


def outputs_of(path, support, n):
    coefficients, b = path.coefficients(n)
    return D[:, support[: path.n_vectors(n)]] @ coefficients.T + b


def objective(loss, Y, path, support, n, alpha):
    """J after n steps."""
    values = loss.value(Y, outputs_of(path, support, n)).reshape(len(Y), -1)
    return W @ values.sum(axis=1) + alpha * np.sum(path.coefficients(n)[0] ** 2)


def reference_objective(name, model, Y, alpha):
    """J of a model of the reference."""
    values = reference.LOSSES[name][0](Y, model.values(D)).reshape(len(Y), -1)
    return W @ values.sum(axis=1) + alpha * np.sum(model.coefficients**2)


def assert_same_outputs(loss, ours, theirs):
    """To a thousandth; a softmax does not see what all outputs of a row share."""
    if loss.coupled:
        ours, theirs = (f - f.mean(axis=1, keepdims=True) for f in (ours, theirs))
    assert_allclose(ours, theirs, atol=1e-3 * np.abs(theirs).max())


@pytest.fixture
def exactly(monkeypatch):
    """Minima to rounding: what one leaves, the next line search inherits to first order."""
    monkeypatch.setattr(newton, "SMALL_DECREMENT", 1e-14)
    monkeypatch.setattr(gradient_pursuit, "LINE_ACCURACY", 0.0)
    monkeypatch.setattr(gradient_pursuit, "COUPLED_LINE_STEPS", 200)


# Squared error: the closed form.


@pytest.mark.parametrize(
    ("fitting", "ridge", "selection", "complete", "memory"),
    pairwise(
        FITTINGS,
        [(0.0, True), (0.2, True), (0.2, False)],
        ["loss", "squared_error"],
        [True, False],
        ["small", "large"],
    ),
)
def test_squared_error_equals_the_closed_form(fitting, ridge, selection, complete, memory):
    alpha, intercept = ridge
    options = {"alpha": alpha, "intercept": intercept, "complete": complete}
    _, equations = problem(NUMBERS, **options)
    closed = SquaredErrorPursuit(equations, fitting, [9])
    closed.extend(9)
    with small_memory(3_000 if memory == "small" else 2**30):
        search = searched(SquaredError(), NUMBERS, [9], fitting, selection=selection, **options)
        assert (search.bases[0].matrix is None) == (memory == "small" or fitting == "basic")
    (path, support), (expected, chosen) = search.path(), closed.path()
    assert_array_equal(support, chosen)
    assert_array_equal(path.bases[0].picks, expected.bases[0].picks)
    for n in range(10):
        for ours, theirs in zip(path.coefficients(n), expected.coefficients(n), strict=True):
            assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max(initial=1.0))
    assert_allclose(search.training_losses(path), closed.training_losses(expected), rtol=1e-7)


@pytest.mark.parametrize("fitting", FITTINGS)
def test_one_basis_an_output_equals_the_closed_form(fitting):
    _, equations = problem(THREE, 0.1)
    closed = SquaredErrorPursuit(equations, fitting, [4, 2, 3])
    closed.extend(9)
    search = searched(SquaredError(), THREE, [4, 2, 3], fitting, alpha=0.1)
    (path, support), (expected, chosen) = search.path(), closed.path()
    assert_array_equal(support, chosen)
    assert_array_equal(path.order, expected.order)
    for n in range(10):
        for ours, theirs in zip(path.coefficients(n), expected.coefficients(n), strict=True):
            assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)
    assert_allclose(search.training_losses(path), closed.training_losses(expected), rtol=1e-7)


# Other losses: figure 4.


@cache
def figure_4(name, every, intercept, fitting, n_steps=6):
    loss, Y, alpha = CASES[name]
    return reference.gradient_pursuit(
        reference.LOSSES[name], D, Y, W, n_steps, every, alpha, intercept, fitting, loss.convex
    )


REFITS = [
    ("backfit", 1),
    ("backfit", 3),
    ("backfit", 5),
    ("prefit", 1),
    ("prefit", 3),
    ("basic", 1),
]


@pytest.mark.parametrize(
    ("name", "refit", "intercept"), pairwise(list(CASES), REFITS, [True, False])
)
def test_pursuit_equals_figure_4(name, refit, intercept, exactly):
    loss, Y, alpha = CASES[name]
    fitting, every = refit
    models = figure_4(name, every, intercept, fitting)
    search = searched(loss, Y, [6], fitting, every=every, alpha=alpha, intercept=intercept)
    path, support = search.path()
    assert_array_equal(support, models[-1].support)
    losses = []
    for n, model in enumerate(models, start=1):
        assert path.n_vectors(n) == len(model.support)
        assert_same_outputs(loss, outputs_of(path, support, n), model.values(D))
        losses.append(reference_objective(name, model, Y, alpha))
        ours = objective(loss, Y, path, support, n, alpha)
        assert_allclose(ours, losses[-1], rtol=1e-7)
    if not alpha:
        weight = W.sum() * Y.shape[1]
        assert_allclose(search.training_losses(path), np.array(losses) / weight, rtol=1e-7)
    if fitting != "basic":
        refits = [n for n in range(1, 7) if n % every == 0 or n == 6]
        assert_array_equal(path.bases[0].refits, refits)


@pytest.mark.parametrize(
    ("name", "refit", "complete"),
    pairwise(
        ["log_loss", "cross_entropy", "squared_error_tanh"],
        [("prefit", 1), ("backfit", 3), ("basic", 1)],
        [True, False],
    ),
)
def test_small_memory_changes_nothing(name, refit, complete):
    loss, Y, alpha = CASES[name]
    fitting, every = refit
    options = {"every": every, "alpha": alpha, "complete": complete}
    (path, support) = searched(loss, Y, [5], fitting, **options).path()
    with small_memory():
        (blocked, chosen) = searched(loss, Y, [5], fitting, **options).path()
    assert_array_equal(support, chosen)
    for n in range(6):
        theirs = outputs_of(path, support, n)
        assert_allclose(outputs_of(blocked, support, n), theirs, atol=1e-4 * np.abs(theirs).max())


@pytest.mark.parametrize("name", ["log_loss", "exponential", "huber", "squared_error_tanh"])
def test_the_line_search_ends_at_a_share_of_its_first_gain(name, monkeypatch):
    """What it leaves of the objective is next to nothing of what it gains."""
    loss, Y, alpha = CASES[name]
    path, support = searched(loss, Y, [1], "basic", alpha=alpha).path()
    before, roughly = (objective(loss, Y, path, support, n, alpha) for n in (0, 1))
    monkeypatch.setattr(gradient_pursuit, "LINE_ACCURACY", 0.0)
    path, support = searched(loss, Y, [1], "basic", alpha=alpha).path()
    exactly = objective(loss, Y, path, support, 1, alpha)
    assert 0.0 <= roughly - exactly <= 1e-6 * (before - exactly)


@pytest.mark.parametrize(("selection", "n_steps"), [("squared_error", 1), ("loss", 3)])
def test_the_line_search_of_coupled_outputs_is_a_few_newton_steps(selection, n_steps):
    loss, Y, alpha = CASES["cross_entropy"]
    path, support = searched(loss, Y, [1], "basic", selection=selection, alpha=alpha).path()
    d = D[:, support[0]] - np.average(D[:, support[0]], axis=0, weights=W)
    step = np.zeros(3)
    for _ in range(n_steps):
        F = path.target_mean + np.outer(d, step)
        slope = (W * d) @ loss.gradient(Y, F) + 2.0 * alpha * step
        hessian = np.einsum("i,ist->st", W * d * d, loss.curvature(Y, F)) + 2.0 * alpha * np.eye(3)
        step = step - np.linalg.solve(hessian, slope)
    assert_allclose(path.coefficients(1)[0][:, 0], step, rtol=1e-8)


@pytest.mark.parametrize(("name", "fitting", "every"), pairwise(list(CASES), FITTINGS, [1, 3]))
def test_each_step_lowers_the_objective(name, fitting, every):
    loss, Y, alpha = CASES[name]
    path, support = searched(loss, Y, [12], fitting, every=every, alpha=alpha).path()
    values = [objective(loss, Y, path, support, n, alpha) for n in range(path.n_steps + 1)]
    assert path.n_steps == 12
    assert_array_less(np.diff(values), 0.0)


# Squared error chooses, the loss fits.


@pytest.mark.parametrize(
    ("name", "fitting", "memory"),
    pairwise(["log_loss", "cross_entropy", "huber", "poisson"], FITTINGS, ["small", "large"]),
)
def test_functions_of_squared_error_refitted(name, fitting, memory, monkeypatch):
    loss, Y, alpha = CASES[name]
    # Four columns in a quarter of the large memory, one of the small.
    monkeypatch.setattr(gradient_pursuit, "ENTRY_BYTES", 2.0**26 / len(Y))
    _, equations = problem(Y, alpha)
    closed = SquaredErrorPursuit(equations, fitting, [9])
    closed.extend(9)
    with small_memory(3_000 if memory == "small" else 2**30):
        search = searched(loss, Y, [9], fitting, selection="squared_error", alpha=alpha)
    path, support = search.path()
    assert_array_equal(path.bases[0].picks, closed.path()[0].bases[0].picks)
    assert_array_equal(support, closed.path()[1])
    if fitting != "basic":
        for n in (1, 5, 9):
            chosen = support[:n]
            level = np.zeros((1, Y.shape[1]))
            E = D[:, chosen] - np.average(D[:, chosen], axis=0, weights=W)
            start = np.vstack([np.zeros((n, Y.shape[1])), level])
            a, b = reference._minimum(
                reference.LOSSES[name], E, Y, W, 0.0, 0.0, alpha, True, [start]
            )
            assert_same_outputs(loss, outputs_of(path, support, n), E @ a + b)
    values = [objective(loss, Y, path, support, n, alpha) for n in range(10)]
    assert_array_less(np.diff(values), 0.0)


# Growing.


@pytest.mark.parametrize(
    ("budget", "fitting", "selection"),
    pairwise([([9], 1), ([9], 4), ([3, 2, 4], 1)], FITTINGS, ["loss", "squared_error"]),
)
def test_growing_in_parts_is_growing_at_once(budget, fitting, selection):
    budgets, every = budget
    every = 1 if fitting == "basic" else every
    options = {"every": every, "selection": selection, "alpha": 0.1}
    whole = searched(LogLoss(), THREE, budgets, fitting, **options)
    values, equations = problem(THREE, 0.1)
    parts = GradientPursuits(
        values, equations, fitting, budgets, LossRule(LogLoss(), every, selection)
    )
    for n in (1, 2, 6, 9):
        parts.extend(n)
        assert len(parts.steps()) == n
    (path, support), (expected, chosen) = parts.path(), whole.path()
    assert_array_equal(support, chosen)
    for n in range(10):
        assert_allclose(path.coefficients(n)[0], expected.coefficients(n)[0], rtol=1e-12)
        assert_allclose(path.coefficients(n)[1], expected.coefficients(n)[1], rtol=1e-12)
    assert parts.reason() == "n_components"


@pytest.mark.parametrize("selection", ["loss", "squared_error"])
@pytest.mark.parametrize("fitting", ["prefit", "backfit"])
def test_a_prefix_is_what_a_smaller_budget_gives(fitting, selection):
    for every in (1, 3):
        options = {"every": every, "selection": selection, "alpha": 0.1}
        path, support = searched(LogLoss(), THREE, [9], fitting, **options).path()
        for n in range(every, 9, every):
            short, chosen = searched(LogLoss(), THREE, [n], fitting, **options).path()
            assert_array_equal(chosen, support[:n])
            for ours, theirs in zip(path.coefficients(n), short.coefficients(n), strict=True):
                assert_allclose(ours, theirs, rtol=1e-12)


def test_a_path_that_ends_early_is_refitted():
    """Six atoms and a re-fit every 4 steps."""
    few = [1, 4, 9, 14, 20, 26]
    excluded = np.ones(len(USED), dtype=bool)
    excluded[few] = False
    values, equations = problem(TWO, 0.1)
    search = GradientPursuits(values, equations, "backfit", [50], LossRule(LogLoss(), 4), excluded)
    search.extend(50)
    path, support = search.path()
    assert search.reason() in ("rank", "no_gain")
    assert sorted(support) == few
    assert_array_equal(path.bases[0].refits, [4, 6])
    every = GradientPursuits(values, equations, "backfit", [6], LossRule(LogLoss(), 4), excluded)
    every.extend(6)
    assert_allclose(path.coefficients(6)[0], every.path()[0].coefficients(6)[0], rtol=1e-6)
    assert_allclose(search.training_losses(path), every.training_losses(every.path()[0]), rtol=1e-9)


def test_excluded_atoms_are_not_chosen():
    first = searched(LogLoss(), TWO, [5], alpha=0.1).path()[1]
    values, equations = problem(TWO, 0.1)
    excluded = np.isin(np.arange(len(USED)), first)
    for fitting in FITTINGS:
        for selection in ("loss", "squared_error"):
            rule = LossRule(LogLoss(), 1, selection)
            search = GradientPursuits(values, equations, fitting, [5], rule, excluded)
            search.extend(5)
            assert not excluded[search.path()[1]].any()


def test_targets_that_are_explained_end_the_path():
    Y = D[:, [3, 11]] @ np.array([[1.0], [-2.0]]) + 5.0
    search = searched(SquaredError(), Y, [20], "prefit")
    assert search.reason() == "zero_residual"
    assert 2 <= search.path()[0].n_steps < 20
    constant = searched(Huber(1.0), np.full_like(Y, 3.0), [5])
    assert constant.path()[0].n_steps == 0
    assert_allclose(constant.start, 3.0)


# Columns.


@pytest.mark.parametrize("n_bytes", [1_000, 2**30])
def test_computed_columns_are_their_matrix(n_bytes, rng):
    K = ATOMS.take(np.arange(6))
    means = rng.normal(size=6)
    R = np.triu(rng.uniform(1.0, 2.0, size=(6, 6)))
    Q = (K.functions(P.X) - means) @ np.linalg.inv(R)
    columns = DesignMatrix(
        PlainFunctions(K.functions, len(means)), P.X, shift=means, factor=R, keep=False
    )
    assert columns.shape == (60, 6)
    theta, values, weights = rng.normal(size=(6, 2)), rng.normal(size=(60, 2)), rng.normal(size=60)
    with sklearn.config_context(working_memory=n_bytes / 2**20):
        assert_allclose(columns.matvec(theta), Q @ theta, rtol=1e-10, atol=1e-10)
        assert_allclose(columns.rmatvec(values), Q.T @ values, rtol=1e-10, atol=1e-10)
        assert_allclose(columns.gram(weights), Q.T @ np.diag(weights) @ Q, rtol=1e-9, atol=1e-10)


def test_refits_without_a_minimum_are_counted(monkeypatch):
    few = partial(newton.minimise, max_iter=1)
    monkeypatch.setattr(gradient_pursuit, "minimise", few)
    search = searched(Exponential(), TWO, [3], alpha=1e-3)
    assert search.n_unconverged == 3
    with pytest.warns(ConvergenceWarning, match="3 re-fits under Exponential"):
        warn_unconverged(search)
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_unconverged(searched(Exponential(), TWO, [3], alpha=0.1))


def test_a_dictionary_that_is_used_up_is_said_to_be():
    """As under squared error: the others are combinations of those chosen."""
    X = np.linspace(0.0, 6.0, 200)[:, None]
    y = np.sin(X[:, 0]) + 0.1 * np.cos(40.0 * X[:, 0])
    reasons = []
    for loss in ("squared_error", "huber"):
        model = KernelMatchingPursuitRegressor(20, gamma=0.05, loss=loss)
        with pytest.warns(ConvergenceWarning, match="combinations of those chosen"):
            reasons.append(model.fit(X, y).stop_reason_)
    assert reasons == ["rank", "rank"]


def test_a_loss_that_is_not_convex_starts_from_least_squares_too():
    """From the mean alone Doom II ends where its slope is lost, at 78 % of these rows."""
    X, y = make_blobs(n_samples=300, random_state=0)
    assert KernelMatchingPursuitClassifier(20, loss="doom2").fit(X, y).score(X, y) > 0.9


def test_separated_rows_end_a_basis_that_is_known_beforehand():
    """Nothing of the log-loss is left before squared error has used up its budget."""
    X = np.concatenate([np.linspace(-2.0, -1.0, 30), np.linspace(1.0, 2.0, 30)])[:, None]
    model = KernelMatchingPursuitClassifier(
        12, gamma=5.0, loss="log_loss", alpha=0.0, selection="squared_error"
    )
    with pytest.warns(ConvergenceWarning, match="explained to rounding"):
        model.fit(X, X[:, 0] > 0)
    assert model.stop_reason_ == "zero_residual"
    assert model.n_iter_ < 12


@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_a_basis_that_ends_is_fitted_again_once(every):
    """After its last step, unless that was a step with a re-fit anyway."""
    X = np.linspace(0.0, 6.0, 200)[:, None]
    y = np.sin(X[:, 0]) + 0.1 * np.cos(40.0 * X[:, 0])
    model = KernelMatchingPursuitRegressor(20, gamma=0.05, loss="huber", refit_every=every)
    with pytest.warns(ConvergenceWarning, match="combinations of those chosen"):
        model.fit(X, y)
    refits = model.path_.bases[0].refits
    assert refits[-1] == model.n_iter_
    assert (np.diff(refits) > 0).all()


def test_the_lower_of_two_minima_is_kept(monkeypatch):
    """A second start that ends higher changes nothing."""
    X, y = make_blobs(n_samples=100, centers=2, random_state=0)
    found = KernelMatchingPursuitClassifier(5, loss="doom2").fit(X, y)
    minimise, starts = gradient_pursuit.minimise, []

    def second_start_ends_higher(problem, start=None, outputs=None, *options, **named):
        minimum = minimise(problem, start, outputs, *options, **named)
        if start is None or outputs is not None:
            return minimum
        starts.append(start)
        return minimum._replace(point=0.0 * minimum.point, data_loss=1e9)

    monkeypatch.setattr(gradient_pursuit, "minimise", second_start_ends_higher)
    model = KernelMatchingPursuitClassifier(5, loss="doom2").fit(X, y)
    assert len(starts) == 5
    assert (np.diff(model.train_loss_path_) <= 0).all()
    assert model.train_loss_path_[-1] < 2.0 * found.train_loss_path_[-1]
