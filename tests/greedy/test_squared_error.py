"""Bases that grow together, and the prefix that is kept."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import as_targets, awkward, equations_of
from sklearn.exceptions import ConvergenceWarning

from pursuit._validation import Samples
from pursuit.dictionary import Atoms
from pursuit.greedy.multi_output import round_robin
from pursuit.greedy.path_losses import training_losses
from pursuit.greedy.squared_error import SquaredErrorPursuit
from pursuit.greedy.stopping import FIRST_EXAMINED, Stopping, choose_prefix, warn_short
from pursuit.kernels import RBF

P = awkward(90)
Y = as_targets(P.labels)
ATOMS = Atoms(RBF(3.0), P.X)


def equations(targets=Y, complete=True, atoms=ATOMS):
    samples = Samples(P.X, targets, np.ones(len(P.X)))
    return equations_of(atoms.functions, samples, len(atoms), complete=complete)


def coefficients(search):
    path, support = search.path()
    table = np.zeros((path.target_mean.size, len(ATOMS)))
    table[:, support] = path.coefficients(path.n_steps)[0]
    return table


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        ([3], [0, 0, 0]),
        ([2, 2], [0, 1, 0, 1]),
        ([1, 3, 2], [0, 1, 2, 1, 2, 1]),
        ([0, 2], [1, 1]),
        ([0, 0], []),
    ],
)
def test_round_robin(budgets, expected):
    assert round_robin(budgets).tolist() == expected


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("fitting", ["prefit", "backfit", "basic"])
@pytest.mark.parametrize("budgets", [[20], [8, 3, 9]])
def test_growing_in_parts_is_growing_at_once(budgets, fitting, complete):
    problem = equations(complete=complete)
    parts, whole = (SquaredErrorPursuit(problem, fitting, budgets) for _ in range(2))
    for n in (1, 2, 11, 20):
        parts.extend(n)
        assert len(parts.steps()) == n
        assert_array_equal(parts.steps(), round_robin(budgets)[:n])
    whole.extend(20)
    assert_array_equal(parts.path()[1], whole.path()[1])
    assert_allclose(coefficients(parts), coefficients(whole), rtol=1e-12)
    assert parts.reason() == "n_components"


@pytest.mark.parametrize("fitting", ["prefit", "backfit", "basic"])
def test_each_output_has_the_basis_it_would_have_alone(fitting):
    together = SquaredErrorPursuit(equations(), fitting, [5, 7, 4])
    together.extend(16)
    for t, n in enumerate([5, 7, 4]):
        alone = SquaredErrorPursuit(equations(Y[:, [t]]), fitting, [n])
        alone.extend(n)
        assert together.pursuits[t].pivots == alone.pursuits[0].pivots
        assert_allclose(coefficients(together)[t], coefficients(alone)[0], rtol=1e-9, atol=1e-12)


def test_support_lists_each_atom_once_in_order_of_first_choice():
    wide = Atoms(RBF(0.1), P.X)
    search = SquaredErrorPursuit(equations(atoms=wide), "basic", [10, 10, 10])
    search.extend(30)
    path, support = search.path()
    seen = []
    taken = [0, 0, 0]
    for b in search.steps():
        atom = search.pursuits[b].pivots[taken[b]]
        taken[b] += 1
        if atom not in seen:
            seen.append(atom)
    assert support.tolist() == seen
    assert len(seen) < 30
    for basis, pursuit in zip(path.bases, search.pursuits, strict=True):
        assert_array_equal(support[basis.picks], pursuit.pivots)


def test_excluded_atoms_and_a_basis_that_ends():
    excluded = np.ones(90, dtype=bool)
    excluded[[4, 9]] = False
    search = SquaredErrorPursuit(equations(), "prefit", [3, 1, 2], excluded)
    search.extend(6)
    assert set(search.path()[1]) == {4, 9}
    # The first basis wanted three atoms; its last turn falls out.
    assert search.steps().tolist() == [0, 1, 2, 0, 2]
    assert search.reason() == "rank"


def test_a_basis_that_rounding_ends_says_so():
    search = SquaredErrorPursuit(equations(), "prefit", [4, 4, 4])
    search.extend(12)
    entries = search.pursuits[1].gram_entries
    entries[2] = entries[2] * [1.0, 1.0, 0.0]  # no longer positive definite
    path, support = search.path()
    # The turns of the basis that ended are nobody's.
    assert search.steps().tolist() == [0, 1, 2, 0, 1, 2, 0, -1, 2, 0, -1, 2]
    assert path.n_steps == 12
    assert path.lengths(12) == [4, 2, 4]
    assert len(support) == path.n_vectors(12)
    assert search.reason() == "rank"


# The prefix.


def kept(budget=60, **options):
    search = SquaredErrorPursuit(equations(), "prefit", [budget])
    return choose_prefix(search, ATOMS, Stopping(**options))


def scripted(losses, seen=None):
    """Losses that do not depend on the model; `seen` records how far each look went."""

    def watched(path, atoms, support):
        assert len(atoms) == path.n_steps
        if seen is not None:
            seen.append(path.n_steps)
        return np.array(losses[: path.n_steps])

    return watched


def test_without_a_rule_the_budget_is_spent():
    fit = kept(12)
    assert (fit.path.n_steps, len(fit.support), fit.reason) == (12, 12, "n_components")
    assert fit.watched_losses is None
    assert fit.train_losses.shape == (12,)


def test_threshold_on_the_training_loss():
    whole = kept(40)
    fit = kept(40, tol=whole.train_losses[9])
    assert (fit.path.n_steps, fit.reason) == (10, "tol")
    assert_array_equal(fit.train_losses, whole.train_losses[:10])
    assert_array_equal(fit.support, whole.support[:10])
    assert kept(40, tol=whole.train_losses[-1] / 2).reason == "n_components"
    assert kept(40, tol=1e9).path.n_steps == 1


def test_the_lowest_loss_is_kept():
    losses = np.abs(np.arange(60) - 17.0)
    fit = kept(losses=scripted(losses))
    assert (fit.path.n_steps, fit.reason) == (18, "early_stopping")
    assert_array_equal(fit.watched_losses, losses)
    assert len(fit.train_losses) == 60
    falling = kept(losses=scripted(np.arange(60.0)[::-1]))
    assert (falling.path.n_steps, falling.reason) == (60, "n_components")


@pytest.mark.parametrize("best", [1, 5, 27, 31, 32, 33, 50, 60])
@pytest.mark.parametrize("patience", [1, 6, 40])
def test_patience_looks_no_further_than_it_says(patience, best):
    """Whatever the chunks of steps in which the path grows."""
    losses = np.abs(np.arange(1, 61) - best) + 1.0
    seen = []
    fit = kept(losses=scripted(losses, seen), patience=patience)
    assert fit.path.n_steps == best
    assert len(fit.watched_losses) == len(fit.train_losses) == min(best + patience, 60)
    assert fit.reason == ("n_components" if best == 60 else "early_stopping")
    assert seen == [32] if best + patience <= FIRST_EXAMINED else seen == [32, 60]


def test_the_path_is_doubled_from_look_to_look():
    seen = []
    search = SquaredErrorPursuit(equations(), "basic", [150])

    def falling(path, atoms, support):
        seen.append(path.n_steps)
        return -np.arange(path.n_steps)

    choose_prefix(search, ATOMS, Stopping(falling, patience=1))
    assert seen == [32, 64, 128, 150]


def test_a_path_that_ends_before_the_look_is_not_waited_for():
    atoms = ATOMS.take(np.arange(7))
    search = SquaredErrorPursuit(equations(atoms=atoms), "prefit", [60])
    seen = []
    fit = choose_prefix(search, atoms, Stopping(scripted(np.arange(60.0)[::-1], seen), patience=50))
    assert seen == [7]
    assert (fit.path.n_steps, fit.reason) == (7, "rank")


def test_training_losses_of_the_prefix_are_those_of_the_search():
    search = SquaredErrorPursuit(equations(), "prefit", [10])
    fit = choose_prefix(search, ATOMS, Stopping())
    assert_allclose(fit.train_losses, training_losses(fit.path, search.equations)[1:], rtol=1e-12)


def test_warning_names_the_number_and_the_reason():
    atoms = ATOMS.take(np.arange(7))
    search = SquaredErrorPursuit(equations(atoms=atoms), "prefit", [60])
    fit = choose_prefix(search, atoms, Stopping())
    with pytest.warns(
        ConvergenceWarning,
        match="n_components=60, but the path ended after 7 steps: the other candidates are num",
    ):
        warn_short(fit, 60)
    for quiet in (kept(5), kept(40, tol=0.3)):
        warn_short(quiet, len(quiet.support))  # a warning would be an error
