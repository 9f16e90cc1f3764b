"""The fitted function, on vectors written out by hand."""

import copy
import pickle

import numpy as np
import pytest
import reference
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from pursuit.dictionary import Atoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.kernels import RBF
from pursuit.linalg import blocks


@pytest.fixture
def expansion(rng):
    atoms = Atoms(RBF(0.5), rng.normal(size=(6, 3)))
    return KernelExpansion(atoms, rng.normal(size=(2, 6)), np.array([3.0, -1.0]))


def plain(expansion, X):
    K = reference.rbf(X, expansion.vectors, 0.5)
    return K @ expansion.coefficients.T + expansion.intercept


def test_expansion_is_its_formula(expansion, rng):
    X = rng.normal(size=(9, 3))
    assert_allclose(expansion(X), plain(expansion, X), rtol=1e-12)
    assert_allclose(expansion(X[:1]), plain(expansion, X[:1]), rtol=1e-12)
    assert_allclose(expansion(sparse.csr_matrix(X)), plain(expansion, X), rtol=1e-12)
    assert expansion.kernel == RBF(0.5)
    assert expansion.vectors is expansion.atoms.centres


def test_expansion_of_many_rows_goes_in_blocks(expansion, rng, monkeypatch):
    monkeypatch.setattr(blocks, "SMALLEST_PARALLEL_SIZE", 10)
    monkeypatch.setattr(blocks, "CHUNK_BYTES", 1)
    X = rng.normal(size=(100, 3))
    with sklearn.config_context(working_memory=7 * 6 * 8 / 0.25 / 2**20):
        assert_allclose(expansion(X), plain(expansion, X), rtol=1e-12)


def test_expansion_without_vectors_is_the_intercept():
    atoms = Atoms(RBF(0.5), np.empty((0, 3)))
    constant = KernelExpansion(atoms, np.zeros((2, 0)), np.array([3.0, -1.0]))
    assert_array_equal(constant(np.ones((4, 3))), np.tile([3.0, -1.0], (4, 1)))


def test_copies_of_an_expansion_are_equal(expansion, rng):
    X = rng.normal(size=(5, 3))
    for other in (pickle.loads(pickle.dumps(expansion)), copy.deepcopy(expansion)):
        assert_array_equal(other(X), expansion(X))
        assert other.kernel == expansion.kernel
    # The state holds the defining values alone, not what is prepared from them.
    assert set(expansion.__getstate__()) == {"atoms", "coefficients", "intercept"}


# Paths.
