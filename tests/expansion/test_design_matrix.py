"""The matrix of functions on rows: in memory and computed anew, against plain products."""

import numpy as np
import pytest
import sklearn
from scipy import sparse

from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.design_matrix import DesignMatrix
from pursuit.kernels import RBF, Kernel


@pytest.fixture
def rows(rng):
    return rng.normal(size=(23, 3))


@pytest.fixture(params=["kept", "computed", "computed in small blocks"])
def matrix(request, rows):
    """Each kind, and what it stands for."""
    atoms = Atoms(RBF(0.5), rows[4:15])
    values = RBF(0.5)(rows, rows[4:15])
    if request.param == "kept":
        yield DesignMatrix(None, values), values
        return
    memory = 1024 if request.param == "computed" else 0.003
    with sklearn.config_context(working_memory=memory):
        yield DesignMatrix(atoms, rows, keep=False), values


def test_products(matrix, rng):
    found, Phi = matrix
    b, v = rng.normal(size=11), rng.normal(size=23)
    np.testing.assert_allclose(found.matvec(b), Phi @ b)
    np.testing.assert_allclose(found.rmatvec(v), Phi.T @ v)
    np.testing.assert_allclose(found.absolute_sums(np.abs(v)), np.abs(v) @ np.abs(Phi))
    assert found.shape == Phi.shape


@pytest.mark.parametrize("chosen", [np.arange(11), np.array([7, 2, 9])], ids=["all", "some"])
def test_parts(matrix, rng, chosen):
    found, Phi = matrix
    weights = rng.uniform(size=23)
    weights[::4] = 0.0
    part = Phi[:, chosen]
    np.testing.assert_allclose(found.gram(weights, chosen), part.T @ (weights[:, None] * part))
    np.testing.assert_allclose(found.diagonal(weights, chosen), weights @ part**2)
    columns = list(found.each_column(chosen))
    assert [j for j, _ in columns] == chosen.tolist()
    for (_, column), expected in zip(columns, part.T, strict=True):
        np.testing.assert_allclose(column, expected)
        assert column.flags.c_contiguous


def test_blocks_stay_within_the_budget(rows):
    with sklearn.config_context(working_memory=0.003):
        sizes = [
            len(block)
            for _, block in DesignMatrix(Atoms(RBF(0.5), rows), rows, keep=False).row_blocks()
        ]
    assert max(sizes) * 24 * 23 <= 0.25 * 0.003 * 2**20
    assert sum(sizes) == 23


def test_what_fits_is_kept(rows):
    atoms = Atoms(RBF(0.5), rows)
    assert DesignMatrix(atoms, rows).kept
    np.testing.assert_allclose(
        DesignMatrix(atoms, sparse.csr_matrix(rows)).values, RBF(0.5)(rows, rows)
    )
    with sklearn.config_context(working_memory=0.003):
        assert not DesignMatrix(atoms, rows).kept


def test_a_value_that_is_not_finite_names_its_row(rows):
    class Broken(Kernel):
        def evaluate(self, X, Z):
            values = np.ones((len(X), len(Z)))
            values[X[:, 0] == rows[17, 0]] = np.nan
            return values

    with pytest.raises(ValueError, match="training row 17"):
        DesignMatrix(Atoms(Broken(), rows[:3]), rows)


def test_absolute_sums_heed_no_sign():
    matrix = DesignMatrix(None, np.array([[1.0, -2.0], [-3.0, 4.0]]))
    np.testing.assert_array_equal(matrix.absolute_sums(np.array([1.0, 2.0])), [7.0, 10.0])


@pytest.mark.parametrize("options", [{}, {"keep": False}, {"order": "C"}], ids=str)
@pytest.mark.parametrize("factor", ["none", "divisors", "triangular"])
def test_weights_shift_and_factor(options, factor, rows, rng):
    atoms = Atoms(RBF(0.5), rows[4:15])
    roots, shift = rng.uniform(size=23), rng.normal(size=11)
    divisors = rng.uniform(1.0, 2.0, size=11)
    R = {"none": np.eye(11), "divisors": np.diag(divisors), "triangular": np.triu(np.eye(11) + 0.1)}
    given = {"none": None, "divisors": divisors, "triangular": R["triangular"]}[factor]
    Phi = roots[:, None] * (RBF(0.5)(rows, rows[4:15]) - shift) @ np.linalg.inv(R[factor])
    weights, chosen = rng.normal(size=23), np.array([7, 2, 9])
    B, V = rng.normal(size=(11, 2)), rng.normal(size=(23, 2))
    with sklearn.config_context(working_memory=0.003 if "keep" in options else 1024):
        found = DesignMatrix(atoms, rows, roots=roots, shift=shift, factor=given, **options)
        np.testing.assert_allclose(found.matvec(B), Phi @ B)
        np.testing.assert_allclose(found.rmatvec(V), Phi.T @ V)
        np.testing.assert_allclose(found.toarray(), Phi)
        np.testing.assert_allclose(found.columns(chosen), Phi[:, chosen])
        np.testing.assert_allclose(found.gram(), Phi.T @ Phi)
        expected = (Phi.T @ (weights[:, None] * Phi))[np.ix_(chosen, chosen)]
        np.testing.assert_allclose(found.gram(weights, chosen), expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.diagonal(), (Phi**2).sum(axis=0))
        stacked = np.hstack([block for _, block in found.column_blocks(4)])
        np.testing.assert_allclose(stacked, Phi)


def test_a_symmetric_matrix_and_the_callers_array(rows, rng):
    K, v = RBF(0.5)(rows, rows), rng.normal(size=23)
    found = DesignMatrix(Atoms(RBF(0.5), rows), rows, symmetric=True)
    np.testing.assert_allclose(found.matvec(v), K @ v)
    np.testing.assert_allclose(found.rmatvec(v), K @ v)
    before = K.copy()
    DesignMatrix(None, K, shift=np.ones(23))
    np.testing.assert_array_equal(K, before)
