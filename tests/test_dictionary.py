"""The dictionary: which atoms there are, and where they come from."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from pursuit.dictionary import (
    DEFAULT_CANDIDATES,
    LARGEST_COMPLETE,
    Atoms,
    Dictionary,
    draw_candidates,
    given_centres,
    n_candidate_rows,
    training_rows,
)
from pursuit.kernels import RBF, Precomputed


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


def test_taking_atoms(X):
    atoms = Atoms(RBF(1.0), X)
    few = atoms.take(np.array([4, 0, 4]))
    assert len(few) == 3
    assert_array_equal(few.centres, X[[4, 0, 4]])
    assert atoms.take(np.array([], dtype=int)).functions(X).shape == (20, 0)


@pytest.mark.parametrize("kernel", [RBF(1.0), Precomputed()])
def test_no_atoms(kernel, X):
    none = Atoms(kernel, np.empty((0, 3)) if isinstance(kernel, RBF) else np.array([], dtype=int))
    assert len(none) == 0
    assert none.functions(X).shape == (20, 0)


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
        ([["a", "b", "c"]], "could not convert|dtype"),
        (X[0], "Expected 2D array"),
    ):
        with pytest.raises(ValueError, match=message):
            given_centres(RBF(1.0), centres, 3)
    with pytest.raises(ValueError, match="dictionary: centres cannot be given for a precomputed"):
        given_centres(Precomputed(), X, 3)
