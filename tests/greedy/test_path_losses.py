"""What each prefix is worth: against predictions and refits, in blocks and at once."""

import numpy as np
import pytest
import reference
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from problems import as_targets, awkward, equations_of

from pursuit import KernelMatchingPursuitClassifier
from pursuit._validation import Samples
from pursuit.bounds import matching_pursuit_bound
from pursuit.dictionary import Atoms
from pursuit.expansion.leave_one_out import (
    FULL_LEVERAGE,
    HeldOut,
    leave_one_out,
    orthonormal,
)
from pursuit.greedy import path_losses
from pursuit.greedy.any_loss import GradientPursuits, LossRule
from pursuit.greedy.normal_equations import WeightedValues, gather, normal_equations
from pursuit.greedy.path_losses import (
    Objective,
    bound_path,
    calibration_steps,
    held_out_losses,
    inverse_temperatures,
    leave_one_out_losses,
    training_losses,
)
from pursuit.greedy.squared_error import SquaredErrorPursuit
from pursuit.kernels import RBF
from pursuit.losses import CrossEntropy, LogLoss, SmoothHinge, SquaredError, SquaredErrorTanh

P = awkward()
USED = np.flatnonzero(P.weights > 0)
KERNEL = RBF(0.4)


def fitted(fitting="prefit", budgets=(8,), alpha=0.0, intercept=True, Y=P.Y):
    """Training rows, their equations, the path and its atoms."""
    samples = Samples(P.X[USED], Y[USED], P.weights[USED])
    atoms = Atoms(KERNEL, samples.X)
    equations = equations_of(atoms.functions, samples, len(atoms), centred=intercept, alpha=alpha)
    search = SquaredErrorPursuit(equations, fitting, list(budgets))
    search.extend(sum(budgets))
    path, support = search.path()
    return samples, equations, path, atoms.take(support)


def outputs_of(path, atoms, X, n):
    coefficients, b = path.coefficients(n)
    K = reference.rbf(X, atoms.centres[: path.n_vectors(n)], 0.4)
    return K @ coefficients.T + b


CASES = [
    ("prefit", (8,), 0.0, True),
    ("prefit", (4, 3), 0.3, True),
    ("backfit", (8,), 0.3, False),
    ("basic", (12,), 0.0, True),
    ("basic", (12,), 0.3, True),
    ("basic", (9, 5), 0.3, False),
]


@pytest.mark.parametrize("case", CASES)
def test_training_losses_are_those_of_the_predictions(case):
    samples, equations, path, atoms = fitted(*case)
    losses = training_losses(path, equations)
    assert len(losses) == path.n_steps + 1
    for n, loss in enumerate(losses):
        errors = (samples.Y - outputs_of(path, atoms, samples.X, n)) ** 2
        assert_allclose(loss, np.average(errors.mean(axis=1), weights=samples.weights), rtol=1e-9)


@pytest.mark.parametrize("block_rows", [7, 1000])
@pytest.mark.parametrize("case", CASES)
def test_held_out_losses_are_those_of_the_predictions(case, block_rows, rng):
    _, _, path, atoms = fitted(*case)
    other = Samples(P.X[:30] + 0.1, P.Y[:30], rng.uniform(0.5, 2.0, size=30))
    with sklearn.config_context(working_memory=block_rows * 16.0 * len(atoms) / 0.25 / 2**20):
        losses = held_out_losses(path, atoms, other)
    for n, loss in enumerate(losses, start=1):
        errors = (other.Y - outputs_of(path, atoms, other.X, n)) ** 2
        assert_allclose(loss, np.average(errors.mean(axis=1), weights=other.weights), rtol=1e-9)


@pytest.mark.parametrize("block_rows", [7, 1000])
@pytest.mark.parametrize("case", [case for case in CASES if case[0] != "basic"])
def test_leave_one_out_losses_are_those_of_refits(case, block_rows):
    samples, _, path, atoms = fitted(*case)
    _, _, alpha, intercept = case
    with sklearn.config_context(working_memory=block_rows * 16.0 * len(atoms) / 0.25 / 2**20):
        losses = leave_one_out_losses(path, atoms, samples, intercept, alpha)
    D = reference.rbf(samples.X, atoms.centres, 0.4)
    for n, loss in enumerate(losses, start=1):
        held_out = np.empty(samples.Y.shape)
        for basis, m in zip(path.bases, path.lengths(n), strict=True):
            held_out[:, basis.outputs] = reference.leave_one_out(
                D, samples.Y[:, basis.outputs], samples.weights, basis.picks[:m], alpha, intercept
            )
        errors = (samples.Y - held_out) ** 2
        expected = np.average(errors.mean(axis=1), weights=samples.weights)
        assert_allclose(loss, expected, rtol=1e-7)


@pytest.mark.parametrize("budgets", [(8,), (4, 3)])
@pytest.mark.parametrize("intercept", [True, False])
def test_one_copy_of_a_row_weighs_what_its_class_does(budgets, intercept, rng):
    scales = np.where(P.labels == "ant", 3.0, 0.4)
    copies = np.array([0.5, 1.0, 3.0])[np.arange(60) % 3]
    samples = Samples(P.X, P.Y, copies * scales, scales)
    atoms = Atoms(KERNEL, P.X)
    search = SquaredErrorPursuit(
        equations_of(atoms.functions, samples, 60, centred=intercept), "prefit", list(budgets)
    )
    search.extend(sum(budgets))
    path, support = search.path()
    losses = leave_one_out_losses(path, atoms.take(support), samples, intercept, 0.0)
    D, held_out = reference.rbf(P.X, P.X[support], 0.4), np.empty(P.Y.shape)
    for basis in path.bases:
        held_out[:, basis.outputs] = reference.leave_one_out(
            D, P.Y[:, basis.outputs], samples.weights, basis.picks, 0.0, intercept, scales
        )
    errors = ((P.Y - held_out) ** 2).mean(axis=1)
    assert_allclose(losses[-1], np.average(errors, weights=samples.weights), rtol=1e-8)


def left_out(D, Y, weights, support, i, intercept, dropped):
    """The output at row `i` of a fit without the row and without the vector `dropped`."""
    left = weights.copy()
    left[i] -= min(left[i], 1.0)
    columns = D[:, support[support != dropped]]
    if intercept:
        columns = np.hstack([columns, np.ones((len(D), 1))])
    root = np.sqrt(left)[:, None]
    return columns[i] @ np.linalg.lstsq(root * columns, root * Y, rcond=None)[0]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("budgets", [(12,), (8, 7)])
def test_a_row_with_a_vector_of_its_own_is_left_out_with_it(budgets, weighted, intercept, rng):
    """Leverage 1: half of the rows are far from all others, half are close together."""
    X = np.vstack([1e3 * rng.normal(size=(15, 2)), rng.normal(size=(15, 2))])
    Y = rng.normal(size=(30, 2))
    weights = rng.uniform(0.4, 1.0, size=30) if weighted else np.ones(30)
    samples = Samples(X, Y, weights)
    dictionary = Atoms(RBF(0.5), X)
    equations = equations_of(dictionary.functions, samples, 30, centred=intercept)
    search = SquaredErrorPursuit(equations, "prefit", list(budgets))
    search.extend(sum(budgets))
    path, support = search.path()
    losses = leave_one_out_losses(path, dictionary.take(support), samples, intercept, 0.0)
    D, n_alone = reference.rbf(X, X, 0.5), 0
    for n, loss in enumerate(losses, start=1):
        held_out = np.empty(Y.shape)
        for basis, m in zip(path.bases, path.lengths(n), strict=True):
            chosen = support[basis.picks[:m]]
            n_alone += np.sum(chosen < 15)
            for i in range(30):
                dropped = i if i < 15 else -1
                held_out[i, basis.outputs] = left_out(
                    D, Y[:, basis.outputs], weights, chosen, i, intercept, dropped
                )
        expected = np.average(((Y - held_out) ** 2).mean(axis=1), weights=weights)
        assert_allclose(loss, expected, rtol=1e-8)
    assert n_alone > 10


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("gamma", [0.3, 3.0, 30.0])
def test_left_out_outputs_keep_their_digits_at_every_leverage(gamma, intercept):
    """Functions that are nearly combinations of each other, and leverages up to 1."""
    rng = np.random.default_rng(5)
    X, Y, weights = rng.normal(size=(30, 2)), rng.normal(size=(30, 1)), np.ones(30)
    samples, dictionary = Samples(X, Y, weights), Atoms(RBF(gamma), X)
    equations = equations_of(dictionary.functions, samples, 30, centred=intercept)
    search = SquaredErrorPursuit(equations, "prefit", [20])
    search.extend(20)
    path, support = search.path()
    D = reference.rbf(X, X, gamma)
    losses = leave_one_out_losses(path, dictionary.take(support), samples, intercept, 0.0)
    path = orthonormal(path, [(D[:, support], Y, weights)], 0.0)
    stages = leave_one_out(path, D[:, support], Y, weights, 30.0 * intercept)
    for n, stage in enumerate(stages, start=1):
        expected = np.empty((30, 1))
        for i in range(30):
            dropped = i if stage.leverage[i, 0] > 1.0 - FULL_LEVERAGE else -1
            expected[i] = left_out(D, Y, weights, support[:n], i, intercept, dropped)
        assert_allclose(stage.values(), expected, rtol=1e-8, atol=1e-8)
        assert_allclose(losses[n - 1], np.mean((Y - expected) ** 2), rtol=1e-8)


@pytest.mark.parametrize("fitting", ["prefit", "basic"])
@pytest.mark.parametrize("loss", ["squared_error", "squared_hinge", "log_loss", "logit_boost"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_memorised_labels_leave_no_confidence(loss, n_classes, fitting, rng):
    """Random labels and a kernel that reaches no other row: nothing is known elsewhere."""
    X, labels = rng.normal(size=(100, 3)), rng.integers(0, n_classes, size=100)
    model = KernelMatchingPursuitClassifier(40, gamma=1e4, loss=loss, fitting=fitting)
    model.fit(X, labels)
    largest = model.predict_proba(X).max()
    assert largest < 1.3 * np.bincount(labels).max() / 100


def test_paths_without_steps():
    samples, equations, path, atoms = fitted()
    none, no_atoms = path.first(0), atoms.take(np.array([], dtype=int))
    constant = np.average(
        ((P.Y[USED] - path.target_mean) ** 2).mean(axis=1), weights=samples.weights
    )
    assert_allclose(training_losses(none, equations), [constant])
    assert held_out_losses(none, no_atoms, samples).shape == (0,)
    assert leave_one_out_losses(none, no_atoms, samples, True, 0.0).shape == (0,)
    temperatures = inverse_temperatures(none, no_atoms, samples, fit_intercept=True, basic=False)
    assert temperatures.shape == (0, 2)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("fitting", ["prefit", "basic"])
def test_temperatures_are_the_best_on_leave_one_out_values(fitting, classes):
    labels = P.labels if classes == 3 else np.where(P.labels == "ant", "ant", "rest")
    Y = as_targets(labels)
    samples, _, path, atoms = fitted(fitting, (7,), Y=Y)
    basic = fitting == "basic"
    found = inverse_temperatures(path, atoms, samples, fit_intercept=True, basic=basic)
    assert_array_equal(found[:, 0], np.arange(1, 8))
    codes = np.unique(labels[USED], return_inverse=True)[1]
    D = reference.rbf(samples.X, atoms.centres, 0.4)
    for n, scale in found:
        if basic:
            decisions = outputs_of(path, atoms, samples.X, int(n))
        else:
            decisions = reference.leave_one_out(D, samples.Y, samples.weights, range(int(n)))
        expected = reference.temperature(decisions, codes, samples.weights)
        assert_allclose(1.0 / scale, expected, rtol=1e-5)


def test_temperatures_of_many_rows_use_evenly_spaced_ones(monkeypatch):
    Y = as_targets(P.labels)
    samples, _, path, atoms = fitted(Y=Y)
    monkeypatch.setattr(path_losses, "CALIBRATION_ROWS", 20)
    found = inverse_temperatures(path, atoms, samples, fit_intercept=True, basic=False)
    few = np.linspace(0, len(USED) - 1, 20).astype(int)
    D = reference.rbf(samples.X, atoms.centres, 0.4)
    held_out = reference.leave_one_out(D, samples.Y, samples.weights, range(8))
    codes = np.unique(P.labels[USED], return_inverse=True)[1]
    expected = reference.temperature(held_out[few], codes[few], samples.weights[few])
    assert_allclose(1.0 / found[-1, 1], expected, rtol=1e-5)


@pytest.mark.parametrize("n_steps", [1, 5, 31, 32, 33, 34, 35, 36, 100, 1000])
def test_calibration_steps_of_a_longer_path_begin_alike(n_steps):
    """So that a truncated model has the temperature of the shorter fit."""
    steps = calibration_steps(n_steps)
    longer = calibration_steps(2 * n_steps + 50)
    assert_array_equal(longer[: len(steps)], steps)
    assert len(longer) == len(steps) or longer[len(steps)] > n_steps
    assert (np.diff(steps) > 0).all()
    assert steps[-1] <= n_steps < 1.1 * steps[-1] + 1


# Under other losses.


def followed(loss, fitting="prefit", budgets=(6,), alpha=0.2, intercept=True, Y=None, every=1):
    """Training rows, the path of a loss and its atoms."""
    Y = as_targets(P.labels) if Y is None else Y
    samples = Samples(P.X[USED], Y[USED], P.weights[USED])
    atoms = Atoms(KERNEL, samples.X)
    values = WeightedValues(
        atoms.functions, samples, len(atoms), centred=intercept, keep=True, subset=atoms.subset
    )
    equations = normal_equations(gather(values, complete=True), values, alpha=alpha)
    search = GradientPursuits(values, equations, fitting, list(budgets), LossRule(loss, every))
    search.extend(sum(budgets))
    path, support = search.path()
    return samples, path, atoms.take(support)


@pytest.mark.parametrize("block_rows", [7, 1000])
@pytest.mark.parametrize("budgets", [(7,), (3, 2, 3)])
@pytest.mark.parametrize("loss", [LogLoss(), CrossEntropy(), SquaredErrorTanh()])
def test_held_out_losses_under_any_loss(loss, budgets, block_rows, rng):
    if loss.coupled and len(budgets) > 1:
        return
    _, path, atoms = followed(loss, budgets=budgets, every=3)
    other = Samples(P.X[:30] + 0.1, as_targets(P.labels[:30]), rng.uniform(0.5, 2.0, size=30))
    with sklearn.config_context(working_memory=block_rows * 16.0 * len(atoms) / 0.25 / 2**20):
        losses = held_out_losses(path, atoms, other, loss)
    for n, found in enumerate(losses, start=1):
        values = loss.value(other.Y, outputs_of(path, atoms, other.X, n)).reshape(30, -1)
        assert_allclose(found, np.average(values.mean(axis=1), weights=other.weights), rtol=1e-9)


def approximately(samples, path, atoms, steps, loss, alpha, intercept, few=None):
    few = np.arange(len(samples.Y)) if few is None else few
    objective = Objective(loss, alpha, intercept)
    stages = path_losses._approximately_left_out(
        path, atoms, samples, few, np.array(steps), objective
    )
    return list(stages)


@pytest.mark.parametrize("block_rows", [7, 1000])
@pytest.mark.parametrize("budgets", [(6,), (4, 3, 2)])
@pytest.mark.parametrize(("alpha", "intercept"), [(0.0, True), (0.3, True), (0.3, False)])
def test_approximate_leave_one_out_is_exact_for_squared_error(
    alpha, intercept, budgets, block_rows
):
    samples, path, atoms = followed(SquaredError(), "prefit", budgets, alpha, intercept)
    D = reference.rbf(samples.X, atoms.centres, 0.4)
    steps = [1, 4, path.n_steps]
    with sklearn.config_context(working_memory=block_rows * 32.0 * len(atoms) / 0.25 / 2**20):
        stages = approximately(samples, path, atoms, steps, SquaredError(), alpha, intercept)
    for n, outputs in zip(steps, stages, strict=True):
        for basis, m in zip(path.bases, path.lengths(n), strict=True):
            expected = reference.leave_one_out(
                D, samples.Y[:, basis.outputs], samples.weights, basis.picks[:m], alpha, intercept
            )
            assert_allclose(outputs[:, basis.outputs], expected, rtol=1e-8, atol=1e-8)
    few = np.array([3, 20, 41])
    some = approximately(samples, path, atoms, steps, SquaredError(), alpha, intercept, few)
    assert_allclose(some[-1], stages[-1][few], rtol=1e-9)


def test_approximate_leave_one_out_at_leverage_one_is_that_of_the_closed_form(rng):
    X = np.vstack([1e3 * rng.normal(size=(10, 2)), rng.normal(size=(20, 2))])
    samples = Samples(X, rng.normal(size=(30, 1)), np.ones(30))
    dictionary = Atoms(RBF(0.5), X)
    values = WeightedValues(dictionary.functions, samples, 30, centred=True, keep=True)
    equations = normal_equations(gather(values, complete=True), values, alpha=0.0)
    search = GradientPursuits(values, equations, "prefit", [12], LossRule(SquaredError(), 1))
    search.extend(12)
    path, support = search.path()
    assert (support < 10).any()
    atoms = dictionary.take(support)
    (outputs,) = approximately(samples, path, atoms, [12], SquaredError(), 0.0, True)
    D = reference.rbf(X, X, 0.5)
    for i in support[support < 10]:
        expected = left_out(D, samples.Y, samples.weights, support, i, True, i)
        assert_allclose(outputs[i], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", ["log_loss", "squared_error_tanh", "squared_hinge"])
def test_approximate_leave_one_out_is_near_to_refits(name, intercept):
    loss = path_losses.LOSSES[name]
    alpha, n = 0.5, 5
    Y = as_targets(np.where(P.labels == "ant", "ant", "rest"))
    samples, path, atoms = followed(loss, "prefit", (n,), alpha, intercept, Y=Y)
    D = reference.rbf(samples.X, atoms.centres, 0.4)
    E = D - path.atom_mean
    coefficients, b = path.coefficients(n)
    start = coefficients.T
    if intercept:
        start = np.vstack([start, b + coefficients @ path.atom_mean])
    exact = np.empty((len(E), 1))
    for i in range(len(E)):
        weights = samples.weights.copy()
        weights[i] -= min(weights[i], 1.0)
        a, level = reference._minimum(
            reference.LOSSES[name], E, samples.Y, weights, 0.0, 0.0, alpha, intercept, [start]
        )
        exact[i] = E[i] @ a + level
    (left_out,) = approximately(samples, path, atoms, [n], loss, alpha, intercept)
    complete = outputs_of(path, atoms, samples.X, n)
    moved = np.abs(exact - complete).max()
    assert np.abs(left_out - exact).max() < 0.2 * moved
    assert np.abs(left_out - exact).mean() < 0.06 * np.abs(exact - complete).mean()


def test_a_row_without_which_nothing_is_known_gets_the_constant():
    """One row alone bends the loss: its leverage is full."""
    X = np.array([[0.0], [50.0], [51.0], [52.0]])
    Y = np.array([[1.0], [1.0], [-1.0], [1.0]])
    samples = Samples(X, Y, np.ones(4))
    atoms = Atoms(RBF(1.0), X[:1])
    values = WeightedValues(atoms.functions, samples, 1, centred=False, keep=True)
    equations = normal_equations(gather(values, complete=True), values, alpha=0.0)
    search = GradientPursuits(values, equations, "prefit", [1], LossRule(SquaredErrorTanh(), 1))
    search.extend(1)
    path, _ = search.path()
    (outputs,) = approximately(samples, path, atoms, [1], SquaredErrorTanh(), 0.0, False)
    assert_allclose(outputs, 0.0, atol=1e-9)


@pytest.mark.parametrize("loss", [SmoothHinge(), SquaredErrorTanh()])
@pytest.mark.parametrize("budgets", [(6,), (2, 2, 3)])
def test_temperatures_are_the_best_on_approximate_leave_one_out_values(loss, budgets):
    samples, path, atoms = followed(loss, budgets=budgets)
    found = inverse_temperatures(
        path, atoms, samples, fit_intercept=True, basic=False, loss=loss, alpha=0.2
    )
    codes = np.unique(P.labels[USED], return_inverse=True)[1]
    steps = found[:, 0].astype(int)
    assert_array_equal(steps, np.arange(1, path.n_steps + 1))
    stages = approximately(samples, path, atoms, steps, loss, 0.2, True)
    for (_, scale), decisions in zip(found, stages, strict=True):
        expected = reference.temperature(decisions, codes, samples.weights)
        assert_allclose(1.0 / scale, expected, rtol=1e-5)


def test_temperatures_of_basic_and_coupled_losses_are_the_best_on_training_values():
    class Own(CrossEntropy):
        inverse_temperature = None

    codes = np.unique(P.labels[USED], return_inverse=True)[1]
    for loss, fitting in ((SmoothHinge(), "basic"), (Own(), "prefit")):
        samples, path, atoms = followed(loss, fitting)
        found = inverse_temperatures(
            path, atoms, samples, fit_intercept=True, basic=fitting == "basic", loss=loss, alpha=0.2
        )
        for n, scale in found:
            decisions = outputs_of(path, atoms, samples.X, int(n))
            expected = reference.temperature(decisions, codes, samples.weights)
            assert_allclose(1.0 / scale, expected, rtol=1e-5)


def test_own_temperatures():
    two = as_targets(np.where(P.labels == "ant", "ant", "rest"))
    options = {"fit_intercept": True, "basic": False}
    for loss, Y, own in ((LogLoss(), two, 1.0), (CrossEntropy(), None, 1.0)):
        samples, path, atoms = followed(loss, budgets=(2,), Y=Y)
        found = inverse_temperatures(path, atoms, samples, loss=loss, alpha=0.2, **options)
        assert_array_equal(found, [[1.0, own]])
    # One-vs-rest outputs are no log-odds of one softmax.
    samples, path, atoms = followed(LogLoss(), budgets=(2, 2, 2))
    found = inverse_temperatures(path, atoms, samples, loss=LogLoss(), alpha=0.2, **options)
    assert len(found) == 6


# The bound.


@pytest.mark.parametrize("block_rows", [7, 1000])
@pytest.mark.parametrize("tolerance", [None, 0.8])
@pytest.mark.parametrize(
    ("fitting", "budgets"), [("prefit", (9,)), ("basic", (20,)), ("prefit", (4, 2, 5))]
)
def test_bound_path_counts_rows(fitting, budgets, tolerance, block_rows):
    """Rows that carry a chosen function are left out of the errors, once."""
    weights = np.where(np.arange(60) % 4 == 0, 2.0, 1.0)
    Y = as_targets(P.labels)
    samples = Samples(P.X, Y, weights)
    atoms = Atoms(RBF(3.0), P.X)
    equations = equations_of(atoms.functions, samples, 60)
    search = SquaredErrorPursuit(equations, fitting, list(budgets))
    search.extend(sum(budgets))
    path, support = search.path()
    chosen = atoms.take(support)
    with sklearn.config_context(working_memory=block_rows * 16.0 * len(chosen) / 0.25 / 2**20):
        found = bound_path(path, chosen, samples, support, tolerance)
    assert len(found) == path.n_steps
    for n, bound in enumerate(found, start=1):
        k = path.n_vectors(n)
        coefficients, b = path.coefficients(n)
        outputs = reference.rbf(P.X, P.X[support[:k]], 3.0) @ coefficients.T + b
        if tolerance is None:
            wrong = outputs.argmax(axis=1) != Y.argmax(axis=1)
        else:
            wrong = (np.abs(outputs - Y) > tolerance).any(axis=1)
        copies = weights.copy()
        copies[support[:k]] -= 1.0
        t = int(copies[wrong].sum())
        expected = matching_pursuit_bound(75, k, t) if k + t < 75 else np.inf
        assert_allclose(bound, expected, rtol=1e-12)


class Shifted(SquaredError):
    """Predictions that are not the outputs."""

    def mean(self, F):
        return F + 0.7


def test_bound_looks_at_predictions_and_at_the_largest_output():
    Y = as_targets(np.where(P.labels == "ant", "ant", "rest"))
    samples = Samples(P.X, Y, np.full(60, 0.1))
    atoms = Atoms(RBF(3.0), P.X)
    search = SquaredErrorPursuit(equations_of(atoms.functions, samples, 60), "prefit", [3])
    search.extend(3)
    path, support = search.path()
    nowhere = np.full(3, -1)
    options = (path, atoms.take(support), samples, nowhere)
    outputs = outputs_of_rbf(path, support, 3)
    # Sixty rows of weight 0.1 are six.
    for tolerance, wrong in ((0.8, np.abs(outputs + 0.7 - Y) > 0.8), (None, outputs * Y <= 0)):
        found = bound_path(*options, tolerance, Shifted())
        t = -(-wrong.sum() // 10)
        assert_allclose(found[-1], matching_pursuit_bound(6, 3, t) if t < 3 else np.inf)


def test_weights_of_errors_add_up_to_whole_numbers():
    """Ten times 0.1 is 1, also where floating-point numbers say a little more."""
    Y = as_targets(np.where(P.labels == "ant", "ant", "rest"))
    samples = Samples(P.X, Y, np.full(60, 0.1))
    _, path, atoms = followed(SquaredError(), budgets=(1,), Y=Y)
    residual = np.sort(np.abs(outputs_of(path, atoms, P.X, 1) - Y)[:, 0])
    counts = [n for n in (10, 20, 30, 40) if residual[-n] > residual[-n - 1]]
    assert counts
    for n in counts:
        tolerance = 0.5 * (residual[-n] + residual[-n - 1])
        (found,) = bound_path(path, atoms, samples, np.array([-1]), tolerance)
        assert_allclose(found, matching_pursuit_bound(6, 1, n // 10))


def outputs_of_rbf(path, support, n):
    coefficients, b = path.coefficients(n)
    return reference.rbf(P.X, P.X[support[: path.n_vectors(n)]], 3.0) @ coefficients.T + b


def test_bound_of_two_classes_looks_at_the_sign():
    Y = as_targets(np.where(P.labels == "ant", "ant", "rest"))
    samples = Samples(P.X, Y, np.ones(60))
    atoms = Atoms(RBF(3.0), P.X)
    search = SquaredErrorPursuit(equations_of(atoms.functions, samples, 60), "prefit", [3])
    search.extend(3)
    path, support = search.path()
    found = bound_path(path, atoms.take(support), samples, support, None)
    coefficients, b = path.coefficients(3)
    outputs = reference.rbf(P.X, P.X[support], 3.0) @ coefficients.T + b
    outside = ~np.isin(np.arange(60), support)
    t = int(((outputs * Y)[outside] <= 0).sum())
    assert_allclose(found[-1], matching_pursuit_bound(60, 3, t), rtol=1e-12)


def test_a_row_is_explained_by_itself_alone_only_near_leverage_one():
    asked = []

    def without(rows, t):
        asked.append(rows.tolist())
        return np.full(len(rows), 0.25), np.zeros(len(rows))

    leverage = 1.0 - np.array([[0.5], [1e-5], [1e-7]])
    targets = np.ones((3, 1))
    outputs = targets - 2.0 * (1.0 - leverage)
    held_out = HeldOut(outputs, leverage, targets, np.zeros(1), without).values()
    assert_allclose(held_out, [[-1.0], [-1.0], [0.25]], rtol=1e-6)
    assert asked == [[2]]
