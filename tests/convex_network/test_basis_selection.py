"""The rules that choose functions: against QR with pivots and the plain text of the paper."""

import numpy as np
import pytest
import reference
import sklearn
from problems import as_targets, awkward
from scipy.linalg import qr
from scipy.optimize import minimize

from pursuit._validation import Samples
from pursuit.convex_network.basis_selection import (
    GREEDY_RULES,
    IntegralGram,
    by_correlation,
    by_gram_schmidt,
    by_objective,
    chosen_functions,
    n_chosen,
    random_draws,
)
from pursuit.dictionary import resolve_dictionary
from pursuit.greedy.gram_rows import SmallGram
from pursuit.kernels import RBF, CosinePolynomial, Mahalanobis
from pursuit.losses import LOSSES

RULES = {
    "gram_schmidt": reference.gram_schmidt,
    "correlation": reference.correlation,
    "cosine": reference.correlation,
}


def small_gram(F):
    return SmallGram(F.T @ F)


@pytest.fixture
def columns(rng):
    """Correlated columns of different lengths; some equal, one zero."""
    F = rng.normal(size=(25, 14)) @ np.diag(rng.uniform(0.3, 3.0, size=14))
    F += 2.0 * rng.normal(size=(25, 1))
    F[:, 9] = F[:, 4]
    F[:, 11] = 0.0
    return F


@pytest.fixture
def network():
    """Rows with weights, and their kernel functions."""
    problem = awkward(50)
    X, weights = (problem.X - problem.X.mean(axis=0)) / problem.X.std(axis=0), problem.weights
    rows = np.flatnonzero(weights > 0)
    samples = Samples(X[rows], as_targets(problem.labels)[rows], weights[rows])
    return resolve_dictionary(None, RBF(0.4), samples.X, np.arange(len(rows))), samples


def test_gram_schmidt_takes_the_pivots_of_a_qr_factorisation(columns):
    _, _, pivots = qr(columns, pivoting=True, mode="economic")
    np.testing.assert_array_equal(by_gram_schmidt(small_gram(columns), 12), pivots[:12])


def test_gram_schmidt_on_kernel_functions_is_qr(network):
    dictionary, samples = network
    F = np.sqrt(samples.weights)[:, None] * dictionary.atoms.functions(samples.X)
    _, _, pivots = qr(F, pivoting=True, mode="economic")
    found = chosen_functions("gram_schmidt", dictionary, samples, 15, LOSSES["log_loss"], 1.0)
    np.testing.assert_array_equal(found, pivots[:15])


KERNELS = {
    "one width": (RBF(0.7), [[0.7, 0.0], [0.0, 0.7]]),
    "a width a feature": (RBF([0.7, 2.0]), [[0.7, 0.0], [0.0, 2.0]]),
    "a matrix": (Mahalanobis([[0.7, 0.3], [0.3, 1.0]]), [[0.7, 0.3], [0.3, 1.0]]),
    "a factor": (Mahalanobis(factor=[[0.8, 0.1], [0.2, 0.9]]), [[0.65, 0.25], [0.25, 0.85]]),
}


@pytest.mark.parametrize("rule", ["gram_schmidt", "cosine"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_products_by_the_integral(kernel, rule, rng):
    """Against sums over a fine grid of the plane, which are the integral but for a factor."""
    kernel, M = KERNELS[kernel]
    centres = rng.normal(size=(15, 2))
    axis = np.linspace(-6, 6, 81)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    differences = grid[:, None] - centres
    F = np.exp(-np.einsum("gci,ij,gcj->gc", differences, M, differences))
    few = Samples(centres[:3], np.ones((3, 1)), np.ones(3))  # the rows have no part in it
    dictionary = resolve_dictionary(centres, kernel, few.X, np.arange(3))
    lengths = (F**2).sum(axis=0)
    np.testing.assert_allclose(IntegralGram(dictionary).row(4), F[:, 4] @ F / lengths[4], atol=1e-9)
    args = dictionary, few, 10, LOSSES["log_loss"], 1.0
    found = chosen_functions(rule, *args, integral=True)
    # All functions are equally long: the first is the first, in exact numbers.
    np.testing.assert_array_equal(found, RULES[rule](np.linalg.cholesky(gram_of(F)).T, 10))
    part = IntegralGram(dictionary).among(np.array([3, 8]))
    np.testing.assert_allclose(part.row(1), F[:, 8] @ F[:, [3, 8]] / lengths[8], atol=1e-9)


def gram_of(F):
    """Their products, over the one length, whose rounding would decide the first choice."""
    G = F.T @ F
    G /= G.diagonal().mean()
    np.fill_diagonal(G, 1.0)
    return G


def test_no_closed_form_for_other_functions(rng):
    centres = rng.normal(size=(5, 2))
    few = Samples(centres, np.ones((5, 1)), np.ones(5))
    others = [CosinePolynomial(3, 1.0), [RBF(0.5), RBF(1.0)]]
    for functions in others:
        kernel = None if isinstance(functions, list) else functions
        given = functions if isinstance(functions, list) else None
        dictionary = resolve_dictionary(given, kernel, centres, np.arange(5))
        with pytest.raises(ValueError, match="inner_product='integral' has a closed form"):
            chosen_functions("cosine", dictionary, few, 2, LOSSES["log_loss"], 1.0, integral=True)


@pytest.mark.parametrize("rule", RULES)
def test_the_rules_are_those_of_the_paper(network, rule):
    dictionary, samples = network
    F = dictionary.atoms.functions(samples.X)
    if rule == "correlation":
        F = F - np.average(F, axis=0, weights=samples.weights)
    F = np.sqrt(samples.weights)[:, None] * F
    found = chosen_functions(rule, dictionary, samples, 20, LOSSES["log_loss"], 1.0)
    np.testing.assert_array_equal(found, RULES[rule](F, 20))


def test_correlations_do_not_heed_lengths_but_for_the_first(columns):
    names = np.delete(np.arange(14), 11)
    found = by_correlation(small_gram(columns), 13)
    np.testing.assert_array_equal(found, names[reference.correlation(columns[:, names], 13)])
    scales = np.ones(14)
    scales[found[1:]] = np.linspace(0.3, 0.9, 12)
    np.testing.assert_array_equal(by_correlation(small_gram(columns * scales), 13), found)


@pytest.mark.parametrize("rule", [by_gram_schmidt, by_correlation])
def test_zero_functions_are_never_chosen_and_all_others_can_be(columns, rule):
    found = rule(small_gram(columns), 14)
    assert sorted(found) == [j for j in range(14) if j != 11]


@pytest.mark.parametrize("rule", GREEDY_RULES)
def test_the_budget_of_memory_changes_nothing(network, rule):
    arguments = (*network, 12, LOSSES["log_loss"], 0.5)
    expected = chosen_functions(rule, *arguments)
    with sklearn.config_context(working_memory=0.01):
        np.testing.assert_array_equal(chosen_functions(rule, *arguments), expected)


def test_a_weight_of_two_is_the_row_twice(network):
    dictionary, samples = network
    counts = 1 + np.arange(len(samples.weights)) % 2
    weighted = samples._replace(weights=counts.astype(float))
    twice = Samples(
        np.repeat(samples.X, counts, axis=0),
        np.repeat(samples.Y, counts, axis=0),
        np.ones(counts.sum()),
    )
    for rule in GREEDY_RULES:
        found = [
            chosen_functions(rule, dictionary, s, 8, LOSSES["log_loss"], 1.0)
            for s in (weighted, twice)
        ]
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_the_objective_chooses_what_falls_most_steeply(network, loss):
    dictionary, samples = network
    # With this alpha another function comes first than without.
    value, alpha = LOSSES[loss], 20.0
    found = by_objective(dictionary, samples, 5, value, alpha)
    F = dictionary.atoms.functions(samples.X)
    slopes = F.T @ (samples.weights[:, None] * value.gradient(samples.Y, np.zeros_like(samples.Y)))
    lengths = samples.weights @ F**2 + alpha
    assert found[0] == ((slopes**2).sum(axis=1) / lengths).argmax()
    assert len(set(found)) == 5


def test_correlation_does_not_heed_a_constant(network):
    dictionary, samples = network
    plain = {f"f{j}": lambda X, j=j: dictionary.atoms.functions(X)[:, j] for j in range(12)}
    moved = {name: lambda X, f=f: f(X) - 3.0 for name, f in plain.items()}
    dictionaries = [
        resolve_dictionary(functions, RBF(), samples.X, np.arange(1))
        for functions in (plain, moved)
    ]
    arguments = (samples, 8, LOSSES["log_loss"], 1.0)
    found = [chosen_functions("correlation", these, *arguments) for these in dictionaries]
    np.testing.assert_array_equal(*found)


def test_cosines_are_those_of_functions_with_their_means():
    """Two opposite ones resemble each other fully, as correlations; by cosines not at all."""
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    values = np.array([[5.0, 0, 1, 3], [5, 0, 1, 3], [0, 2, 3, 3], [0, 2, 3, 4]])
    functions = {f"f{j}": lambda X, j=j: values[X[:, 0].astype(int) - 1, j] for j in range(4)}
    dictionary = resolve_dictionary(functions, RBF(), X, np.arange(1))
    arguments = (Samples(X, np.ones((4, 1)), np.ones(4)), 2, LOSSES["log_loss"], 1.0)
    np.testing.assert_array_equal(chosen_functions("cosine", dictionary, *arguments), [0, 1])
    np.testing.assert_array_equal(chosen_functions("correlation", dictionary, *arguments), [0, 3])


def test_random_draws_are_sets_and_differ():
    draws = random_draws(np.random.RandomState(0), 30, 7, 5)
    assert len(draws) == 5
    for chosen in draws:
        assert len(set(chosen.tolist())) == 7
        assert (np.diff(chosen) > 0).all()
        assert chosen[-1] < 30
    assert len({tuple(chosen) for chosen in draws}) == 5


@pytest.mark.parametrize("wrong", [0, -3, 0.0, 1.5, True, "half", None])
def test_a_wrong_number_is_named(wrong):
    with pytest.raises(ValueError, match="n_components must be"):
        n_chosen(wrong, 10)


def test_a_number_is_a_number_and_a_fraction_a_fraction():
    assert n_chosen(1, 50) == 1
    assert n_chosen(1.0, 50) == 50
    assert n_chosen(np.float64(0.5), 50) == 25
    assert n_chosen(0.001, 50) == 1
    assert n_chosen(np.int64(70), 50) == 50


def test_functions_in_the_span_of_the_others_follow_in_order():
    X = np.random.default_rng(0).normal(size=(40, 2))
    F = CosinePolynomial()(X, X)
    rank = np.linalg.matrix_rank(F)
    found = by_gram_schmidt(small_gram(F), 30)
    assert rank == 7
    assert len(set(found)) == 30
    rest = np.setdiff1d(np.arange(40), found[:rank])
    np.testing.assert_array_equal(found[rank:], rest[: 30 - rank])


def test_the_objective_measures_functions_by_their_whole_length(network):
    """Not by what is outside the span of those chosen: back-fitting with the penalty."""
    dictionary, samples = network
    value, alpha, found = LOSSES["log_loss"], 0.5, []
    F, Y, weights = dictionary.atoms.functions(samples.X), samples.Y[:, :1], samples.weights
    samples = samples._replace(Y=Y)

    def objective(a, G):
        slope = G.T @ (weights[:, None] * value.gradient(Y, (G @ a)[:, None]))[:, 0]
        return weights @ value.value(Y, (G @ a)[:, None])[:, 0] + alpha * a @ a, (
            slope + 2 * alpha * a
        )

    outputs = np.zeros_like(Y)
    for _ in range(8):
        slopes = F.T @ (weights[:, None] * value.gradient(Y, outputs))
        gains = (slopes**2)[:, 0] / (weights @ F**2 + alpha)
        gains[found] = -np.inf
        found.append(int(gains.argmax()))
        G = F[:, found]
        fit = minimize(objective, np.zeros(len(found)), (G,), jac=True, tol=1e-10)
        outputs = (G @ fit.x)[:, None]
    np.testing.assert_array_equal(by_objective(dictionary, samples, 8, value, alpha), found)
