"""The dictionary: which atoms there are, and where they come from."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import pursuit
from pursuit.dictionary import (
    DEFAULT_CANDIDATES,
    LARGEST_COMPLETE,
    Dictionary,
    OrientedGaussians,
    class_kernels,
    draw_candidates,
    given_centres,
    n_candidate_rows,
    oriented_gaussians,
    resolve_dictionary,
    training_rows,
    user_functions,
)
from pursuit.geometry.local_covariance import local_covariances
from pursuit.kernels import RBF, FunctionKernel, Laplacian, Linear, Precomputed


@pytest.fixture
def X(rng):
    return rng.normal(size=(20, 3))


@pytest.mark.parametrize(
    ("n_candidates", "n_rows", "budget", "expected"),
    [
        (None, 50, 10, 50),
        (None, LARGEST_COMPLETE, 10, LARGEST_COMPLETE),
        (None, LARGEST_COMPLETE + 1, 10, DEFAULT_CANDIDATES),
        (None, LARGEST_COMPLETE + 1, 1000, 5000),
        (None, LARGEST_COMPLETE + 1, 9000, LARGEST_COMPLETE + 1),
        (7, 50, 10, 7),
        (np.int64(7), 50, 10, 7),
        (70, 50, 10, 50),
        (1, 50, 10, 1),
        (0.5, 50, 10, 25),
        (1.0, 50, 10, 50),
        (1e-9, 50, 10, 1),
        (np.float32(0.5), 50, 10, 25),
    ],
)
def test_number_of_candidates(n_candidates, n_rows, budget, expected):
    assert n_candidate_rows(n_candidates, n_rows, budget) == expected


@pytest.mark.parametrize("bad", [0, -1, 0.0, 1.01, -0.5, np.nan, "all", True, [3]])
def test_bad_number_of_candidates(bad):
    with pytest.raises(ValueError, match="n_candidates must be None, a positive integer or a fr"):
        n_candidate_rows(bad, 50, 10)


def test_all_training_rows_in_their_order(X):
    rows = np.array([2, 5, 6, 11])
    dictionary = training_rows(RBF(1.0), X, draw_candidates(rows, 4, None))
    assert len(dictionary) == 4
    assert_array_equal(dictionary.rows, rows)
    assert_allclose(dictionary.atoms.functions(X), reference.rbf(X, X[rows], 1.0), rtol=1e-12)


def test_random_training_rows(X):
    rows = np.arange(0, 20, 2)
    drawn = [draw_candidates(rows, 4, seed) for seed in (0, 0, 1)]
    assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    for found in drawn:
        assert_array_equal(found, np.unique(found))  # in row order, none twice
        assert len(found) == 4
        assert np.isin(found, rows).all()
    # Every row has its chance.
    counts = sum(np.bincount(draw_candidates(rows, 4, seed), minlength=20) for seed in range(300))
    assert_array_equal(counts[1::2], 0)
    assert (np.abs(counts[::2] / 300 - 0.4) < 4 * np.sqrt(0.24 / 300)).all()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_draw_is_over_distinct_rows(form, X):
    distinct = X[:8]
    copies = form(np.repeat(distinct, [1, 90, 1, 1, 50, 1, 1, 1], axis=0))
    rows = np.arange(copies.shape[0])
    assert_allclose(form(distinct).sum(), copies[draw_candidates(rows, 8, 0, copies)].sum())
    few = draw_candidates(rows, 4, 1, copies)
    assert len(np.unique(np.asarray(copies[few].sum(axis=1)).ravel())) == 4
    # Where all rows differ the draw is that without a look at them.
    assert_array_equal(
        draw_candidates(np.arange(20), 5, 3, form(X)), draw_candidates(np.arange(20), 5, 3)
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(5))
def test_estimators_draw_distinct_rows(seed, X):
    copies = np.repeat(X[:8], [1, 90, 1, 1, 50, 1, 1, 1], axis=0)
    y = np.repeat(np.arange(8.0), [1, 90, 1, 1, 50, 1, 1, 1])
    model = pursuit.KernelMatchingPursuitRegressor(
        8, gamma=1.0, n_candidates=8, random_state=seed
    ).fit(copies, y)
    assert model.n_components_ == 8 or model.stop_reason_ == "zero_residual"
    assert model.n_components_ >= 7
    classifier = pursuit.ReducedSupportVectorClassifier(8, gamma=1.0, random_state=seed)
    vectors = classifier.fit(copies, y > 3).support_vectors_
    assert len(np.unique(vectors, axis=0)) == len(vectors) == 8


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_atoms_are_copies_of_the_rows(form, X):
    given = form(X.copy())
    dictionary = training_rows(RBF(1.0), given, np.arange(20))
    before = dictionary.atoms.functions(X).copy()
    (given.data if sparse.issparse(given) else given)[:] = 0.0
    assert_array_equal(dictionary.atoms.functions(X), before)


def test_a_precomputed_kernel_has_columns_for_centres(X):
    K = reference.rbf(X, X, 1.0)
    dictionary = training_rows(Precomputed(), K, np.array([3, 8]))
    assert_array_equal(dictionary.atoms.centres, [3, 8])
    assert_array_equal(dictionary.atoms.functions(K[:5]), K[:5, [3, 8]])


@pytest.mark.parametrize("form", [np.asarray, list, sparse.csr_matrix, sparse.csc_matrix])
def test_given_centres(form, X):
    centres = form(X[:6] + 1.0)
    dictionary = given_centres(RBF(1.0), centres, 3)
    assert isinstance(dictionary, Dictionary)
    assert dictionary.rows is None
    assert len(dictionary) == 6
    assert_allclose(
        dictionary.atoms.functions(X), reference.rbf(X, X[:6] + 1.0, 1.0), rtol=1e-12, atol=1e-15
    )


def test_bad_centres(X):
    for centres, message in (
        (X[:, :2], "dictionary has 2 features, but X has 3"),
        (np.full((2, 3), np.inf), "dictionary contains infinity"),
        ([["a", "b", "c"]], "dictionary: .*(could not convert|dtype)"),
        (X[0], "dictionary: Expected 2D array"),
    ):
        with pytest.raises(ValueError, match=message):
            given_centres(RBF(1.0), centres, 3)
    with pytest.raises(ValueError, match="dictionary: centres cannot be given for a precomputed"):
        given_centres(Precomputed(), X, 3)


# A kernel for each class


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_kernel_for_each_class(form, X):
    codes = np.arange(20) % 3
    kernels = {0: RBF(1.0), 1: Laplacian(0.5), 2: RBF(0.1), 3: Linear()}
    rows = np.array([3, 4, 5, 6, 13])
    dictionary = class_kernels(kernels, form(X), rows, codes)
    assert_array_equal(dictionary.rows, rows)
    columns = [kernels[codes[i]](X, X[[i]]) for i in rows]
    assert_allclose(dictionary.atoms.functions(form(X)), np.hstack(columns), rtol=1e-10, atol=1e-14)
    assert dictionary.atoms.names == [repr(kernels[codes[i]]) for i in rows]


def test_classes_without_a_kernel_and_kernels_without_classes(X):
    rows, codes = np.arange(20), np.arange(20) % 3
    with pytest.raises(ValueError, match="kernel has no entry for the class number 2"):
        class_kernels({0: RBF(1.0), 1: RBF(1.0)}, X, rows, codes)
    assert len(class_kernels({0: RBF(1.0)}, X, rows[::3], codes)) == 7
    with pytest.raises(ValueError, match="kernel: a kernel for each class cannot be precomputed"):
        class_kernels({0: Precomputed()}, X, rows[::3], codes)
    with pytest.raises(ValueError, match="kernel: a kernel for each class needs class labels"):
        class_kernels({0: RBF(1.0)}, X, rows, None)


# Oriented Gaussians


def test_oriented_gaussians_follow_the_local_covariances(X):
    spec = OrientedGaussians(n_neighbors=5, n_components=2, noise_variance=0.3)
    candidates = np.array([2, 7, 19])
    dictionary = oriented_gaussians(spec, X, candidates)
    assert_array_equal(dictionary.rows, candidates)
    found, _ = local_covariances(X, candidates, 5, 2)
    values = dictionary.atoms.functions(X)
    for k, i in enumerate(candidates):
        C = 0.3 * np.eye(3) + (found.axes[k].T * found.variances[k]) @ found.axes[k]
        differences = X - X[i]
        exponent = np.sum(differences @ np.linalg.inv(C) * differences, axis=1)
        assert_allclose(values[:, k], np.exp(-0.5 * exponent), rtol=1e-11)


def test_neighbours_are_training_rows_of_positive_weight(X):
    spec = OrientedGaussians(5, 2, 0.3)
    training = np.array([0, 1, 3, 4, 5, 8, 9, 12, 14, 15, 16, 18])
    weights = np.where(np.arange(20) % 4 == 0, 0.0, 1.0 + np.arange(20) % 3)
    used = training[weights[training] > 0]
    candidates = used[[1, 4, 5]]
    found = oriented_gaussians(spec, X, candidates, training, weights).atoms
    alone = oriented_gaussians(spec, X[used], np.array([1, 4, 5]), weights=weights[used]).atoms
    assert_allclose(found.functions(X), alone.functions(X), rtol=1e-11)
    everywhere = oriented_gaussians(spec, X, candidates).atoms
    assert np.abs(found.functions(X) - everywhere.functions(X)).max() > 0.01


def test_weight_two_is_the_row_twice_for_oriented_gaussians(X):
    weights = np.where(np.arange(20) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(20), weights.astype(int))
    spec = OrientedGaussians(4, 2)
    weighted = oriented_gaussians(spec, X, np.arange(20), weights=weights).atoms
    repeated = oriented_gaussians(spec, X[twice], np.arange(len(twice))).atoms
    assert_allclose(repeated.noise_variance, weighted.noise_variance, rtol=1e-12)
    assert_allclose(repeated.functions(X), weighted.functions(X)[:, twice], rtol=1e-9, atol=1e-14)


def test_noise_on_the_scale_of_the_neighbourhoods(X):
    """Twice the median, over the candidates, of the mean squared distance to 4 neighbours."""
    candidates = np.array([2, 7, 19, 11, 5])
    distances = np.sort(((X[candidates, None] - X) ** 2).sum(axis=2), axis=1)[:, 1:5]
    found = oriented_gaussians(OrientedGaussians(4), X, candidates).atoms
    assert_allclose(found.noise_variance, 2 * np.median(distances.mean(axis=1)), rtol=1e-12)
    scaled = oriented_gaussians(OrientedGaussians(4), 1e3 * X - 1e5, candidates).atoms
    assert_allclose(scaled.functions(1e3 * X - 1e5), found.functions(X), rtol=1e-6)


def test_weights_of_neighbours_and_of_centres_in_the_scale(X):
    """Rows 0 to 4 decide: the trace of the covariance around each, and a median with weights."""
    weights = np.array([5.0, 1.0, 2.0, 1.0, 1.0, *(np.arange(15) + 0.5)])
    traces = []
    for i in range(5):
        distances = ((X - X[i]) ** 2).sum(axis=1)
        near = np.argsort(distances)[1:5]
        traces.append(np.average(distances[near], weights=weights[near]))
    found = oriented_gaussians(OrientedGaussians(4), X, np.arange(5), weights=weights).atoms
    assert_allclose(found.noise_variance, 2 * traces[0], rtol=1e-12)  # half of the weight, or more
    assert np.median(traces) > traces[0]


def test_noise_where_there_is_no_scale():
    tiny = np.array([[0.0], [1e-200]])
    for X in (np.ones((3, 2)), tiny):
        with pytest.warns(UserWarning, match="n_neighbors=10 is more than"):
            found = oriented_gaussians(OrientedGaussians(), X, np.arange(len(X))).atoms
        assert found.noise_variance == 1.0
        assert_array_equal(found.functions(X), 1.0)


def test_oriented_gaussians_without_axes_are_those_of_one_width(X):
    found = oriented_gaussians(OrientedGaussians(5, 0, 0.25), X, np.arange(20)).atoms
    assert_allclose(found.functions(X), reference.rbf(X, X, 2.0), rtol=1e-12)


def test_centres_of_oriented_gaussians_are_copies_in_float64(X):
    given = X.astype(np.float32)
    atoms = oriented_gaussians(OrientedGaussians(5), given, np.arange(20)).atoms
    assert atoms.centres.dtype == atoms.axes.dtype == np.float64
    before = atoms.functions(X)
    given[:] = 0.0
    assert_array_equal(atoms.functions(X), before)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (OrientedGaussians(0), "n_neighbors must be an integer of at least 1, got 0"),
        (OrientedGaussians(5, -1), "n_components must be an integer of at least 0, got -1"),
        (OrientedGaussians(5, 1.0), "n_components must be an integer"),
        (OrientedGaussians(5, 1, 0.0), "noise_variance must be a finite number above 0, got 0.0"),
        (OrientedGaussians(5, 1, np.inf), "noise_variance must be a finite number above 0"),
        (OrientedGaussians(5, 1, "auto"), r"noise_variance must be one of \['scale'\], got 'auto'"),
    ],
)
def test_bad_parameters_of_oriented_gaussians(spec, message, X):
    with pytest.raises(ValueError, match=message):
        oriented_gaussians(spec, X, np.arange(20))


def test_oriented_gaussians_of_sparse_rows_are_refused(X):
    with pytest.raises(ValueError, match="OrientedGaussians need a dense X, got a sparse matrix"):
        oriented_gaussians(OrientedGaussians(), sparse.csr_matrix(X), np.arange(20))


# User functions


def first(X):
    return X[:, 0]


def second(X):
    return X[:, 1]


def test_user_functions(X):
    dictionary = user_functions({"b": second, "a": first})
    assert dictionary.rows is None
    assert dictionary.atoms.names == ["b", "a"]
    assert_array_equal(dictionary.atoms.functions(X), X[:, [1, 0]])


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({}, "dictionary: a mapping of functions must not be empty"),
        ({1: first}, "dictionary: the name of a function must be text, got 1"),
        ({"a": first, "b": 3.0}, "dictionary: 'b' must be a function, got 3.0"),
    ],
)
def test_bad_user_functions(functions, message):
    with pytest.raises(ValueError, match=message):
        user_functions(functions)


# What the user may ask for


ROWS = np.array([1, 4, 6])


def matrix(dictionary, X):
    return dictionary.atoms.functions(X)


def test_parts_alone(X):
    own = resolve_dictionary(None, RBF(1.0), X, ROWS)
    assert_allclose(matrix(own, X), reference.rbf(X, X[ROWS], 1.0), rtol=1e-12)
    assert_array_equal(own.rows, ROWS)
    other = resolve_dictionary(Laplacian(2.0), RBF(1.0), X, ROWS)
    assert_allclose(matrix(other, X), Laplacian(2.0)(X, X[ROWS]), rtol=1e-12)
    assert_array_equal(other.rows, ROWS)
    turned = resolve_dictionary(OrientedGaussians(5), RBF(1.0), X, ROWS)
    expected = oriented_gaussians(OrientedGaussians(5), X, ROWS)
    assert_array_equal(matrix(turned, X), matrix(expected, X))
    assert_array_equal(turned.rows, ROWS)
    named = resolve_dictionary({"a": first}, RBF(1.0), X, ROWS)
    assert_array_equal(matrix(named, X), X[:, [0]])
    assert named.rows is None


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        list,
        tuple,
        np.ndarray.tolist,
        sparse.csr_matrix,
        sparse.csc_array,
        pd.DataFrame,
        pl.from_numpy,
        lambda table: [tuple(row) for row in table],
    ],
)
def test_a_table_of_numbers_is_centres(form, X):
    centres = X[:6] + 1.0
    alone = resolve_dictionary(form(centres), RBF(1.0), X, ROWS)
    both = resolve_dictionary([form(centres), {"a": first}], RBF(1.0), X, ROWS)
    assert (len(alone), len(both)) == (6, 7)
    for dictionary in (alone, both):
        assert dictionary.rows is None
        expected = reference.rbf(X, centres, 1.0)
        assert_allclose(matrix(dictionary, X)[:, :6], expected, rtol=1e-12, atol=1e-15)


def test_one_centre_in_a_list(X):
    dictionary = resolve_dictionary([[0.0, 1.0, 2.0]], RBF(1.0), X, ROWS)
    assert_array_equal(dictionary.atoms.centres, [[0.0, 1.0, 2.0]])
    several = resolve_dictionary([np.zeros((2, 3)), np.ones((1, 3))], RBF(1.0), X, ROWS)
    assert_array_equal(several.atoms.centres, [[0.0] * 3, [0.0] * 3, [1.0] * 3])
    assert several.atoms.kernel == RBF(1.0)


@pytest.mark.parametrize("form", [list, tuple])
def test_a_union_of_all_kinds(form, X):
    asymmetric = FunctionKernel(lambda X, Z: np.maximum(X[:, [0]] - Z[:, 0], 0.0))
    parts = [None, {"a": first}, Linear(), X[:2] + 1.0, OrientedGaussians(5), asymmetric]
    dictionary = resolve_dictionary(form(parts), RBF(1.0), X, ROWS)
    expected = [matrix(resolve_dictionary(part, RBF(1.0), X, ROWS), X) for part in parts]
    assert_array_equal(matrix(dictionary, X), np.hstack(expected))
    rows = [*ROWS, -1, *ROWS, -1, -1, *ROWS, *ROWS]
    assert_array_equal(dictionary.rows, rows)
    assert dictionary.rows.dtype.kind == "i"
    assert dictionary.atoms.names[3] == "a"


def test_several_widths_at_each_row(X):
    dictionary = resolve_dictionary([RBF(0.1), RBF(1.0), RBF(10.0)], Linear(), X, ROWS)
    assert_array_equal(dictionary.rows, np.tile(ROWS, 3))
    expected = [reference.rbf(X, X[ROWS], gamma) for gamma in (0.1, 1.0, 10.0)]
    assert_allclose(matrix(dictionary, X), np.hstack(expected), rtol=1e-12, atol=1e-15)
    assert_array_equal(dictionary.atoms.centres, X[np.tile(ROWS, 3)])


def test_a_union_without_rows_has_none(X):
    assert resolve_dictionary([{"a": first}, X[:2]], RBF(1.0), X, ROWS).rows is None


def test_a_kernel_for_each_class_in_a_union(X):
    codes = np.arange(20) % 2
    kernels = {0: RBF(1.0), 1: Linear()}
    dictionary = resolve_dictionary([None, {"a": first}], kernels, X, ROWS, codes=codes)
    assert dictionary.atoms.names == ["Linear()", "RBF(gamma=1.0)", "RBF(gamma=1.0)", "a"]
    assert_array_equal(dictionary.rows, [*ROWS, -1])
    with pytest.raises(ValueError, match="given centres need one kernel, not one for each class"):
        resolve_dictionary(X[:2], kernels, X, ROWS, codes=codes)
    with pytest.raises(ValueError, match="needs class labels"):
        resolve_dictionary(None, kernels, X, ROWS)


def test_training_rows_and_weights_reach_the_oriented_gaussians(X):
    training, weights = np.arange(0, 20, 2), np.where(np.arange(20) == 4, 0.0, 1.0)
    rows = np.array([0, 6, 8])
    spec = OrientedGaussians(4, 2)
    expected = oriented_gaussians(spec, X, rows, training, weights)
    for given in (spec, [spec], [[spec]]):
        found = resolve_dictionary(given, RBF(1.0), X, rows, training=training, weights=weights)
        assert_array_equal(matrix(found, X), matrix(expected, X))


def test_precomputed_kernels(X):
    K = reference.rbf(X, X, 1.0)
    parts = [None, Precomputed(), {"a": first}]
    dictionary = resolve_dictionary(parts, Precomputed(), K, ROWS)
    assert_array_equal(matrix(dictionary, K), K[:, [*ROWS, *ROWS, 0]])
    for part, message in (
        (RBF(1.0), r"RBF\(gamma=1.0\) does not go with kernel=Precomputed\(\)"),
        (OrientedGaussians(), "OrientedGaussians need rows, not a precomputed kernel"),
        (K[:2], "centres cannot be given for a precomputed kernel"),
    ):
        with pytest.raises(ValueError, match=f"dictionary: {message}"):
            resolve_dictionary([None, part], Precomputed(), K, ROWS)
    with pytest.raises(
        ValueError, match=r"dictionary: Precomputed\(\) does not go with kernel=RBF"
    ):
        resolve_dictionary(Precomputed(), RBF(1.0), X, ROWS)


@pytest.mark.parametrize("bad", ["rbf", first, 3, 2.5, object()])
def test_what_is_no_part(bad, X):
    message = "dictionary must be None, a table of centres, a kernel, .*, got "
    for spec in (bad, [None, bad]):
        with pytest.raises(ValueError, match=message):
            resolve_dictionary(spec, RBF(1.0), X, ROWS)


@pytest.mark.parametrize(
    "bad", [[], (), [[]], ["a", "b"], [[object()]], [[1.0], [2.0, 3.0]], [[[0.0, 1.0, 2.0]]]]
)
def test_what_is_no_table(bad, X):
    with pytest.raises(ValueError, match="dictionary: "):
        resolve_dictionary(bad, RBF(1.0), X, ROWS)
