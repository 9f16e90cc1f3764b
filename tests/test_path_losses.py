"""What each prefix is worth: against predictions and refits, in blocks and at once."""

import numpy as np
import pytest
import reference
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from problems import as_targets, awkward, equations_of

from pursuit import path_losses
from pursuit.dictionary import Atoms
from pursuit.gram import Samples
from pursuit.kernels import RBF
from pursuit.path_losses import (
    calibration_steps,
    held_out_losses,
    inverse_temperatures,
    leave_one_out_losses,
    training_losses,
)
from pursuit.search import Search

P = awkward()
USED = np.flatnonzero(P.weights > 0)
KERNEL = RBF(0.4)


def fitted(fitting="prefit", budgets=(8,), alpha=0.0, intercept=True, Y=P.Y):
    """Training rows, their equations, the path and its atoms."""
    samples = Samples(P.X[USED], Y[USED], P.weights[USED])
    atoms = Atoms(KERNEL, samples.X)
    equations = equations_of(atoms.functions, samples, len(atoms), centred=intercept, alpha=alpha)
    search = Search(equations, fitting, list(budgets))
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
        losses = leave_one_out_losses(path, atoms, samples, intercept)
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


def test_paths_without_steps():
    samples, equations, path, atoms = fitted()
    none, no_atoms = path.first(0), atoms.take(np.array([], dtype=int))
    constant = np.average(
        ((P.Y[USED] - path.target_mean) ** 2).mean(axis=1), weights=samples.weights
    )
    assert_allclose(training_losses(none, equations), [constant])
    assert held_out_losses(none, no_atoms, samples).shape == (0,)
    assert leave_one_out_losses(none, no_atoms, samples, True).shape == (0,)
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
