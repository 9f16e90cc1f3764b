"""The matrix of functions on rows: in memory and computed anew, against plain products."""

import numpy as np
import pytest
import sklearn
from scipy import sparse

from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.design_matrix import ComputedMatrix, KeptMatrix, basis_matrix
from pursuit.kernels import RBF, FunctionKernel


@pytest.fixture
def rows(rng):
    return rng.normal(size=(23, 3))


@pytest.fixture(params=["kept", "computed", "computed in small blocks"])
def matrix(request, rows):
    """Each kind, and what it stands for."""
    atoms = Atoms(RBF(0.5), rows[4:15])
    values = RBF(0.5)(rows, rows[4:15])
    if request.param == "kept":
        yield KeptMatrix(values), values
        return
    memory = 1024 if request.param == "computed" else 0.003
    with sklearn.config_context(working_memory=memory):
        yield ComputedMatrix(atoms, rows), values


def test_products(matrix, rng):
    found, Phi = matrix
    b, v = rng.normal(size=11), rng.normal(size=23)
    np.testing.assert_allclose(found.times(b), Phi @ b)
    np.testing.assert_allclose(found.transposed_times(v), Phi.T @ v)
    np.testing.assert_allclose(found.absolute_sums(np.abs(v)), np.abs(v) @ np.abs(Phi))
    assert found.shape == Phi.shape


@pytest.mark.parametrize("chosen", [np.arange(11), np.array([7, 2, 9])], ids=["all", "some"])
def test_parts(matrix, rng, chosen):
    found, Phi = matrix
    weights = rng.uniform(size=23)
    weights[::4] = 0.0
    part = Phi[:, chosen]
    np.testing.assert_allclose(found.gram(weights, chosen), part.T @ (weights[:, None] * part))
    np.testing.assert_allclose(found.squares(weights, chosen), weights @ part**2)
    columns = list(found.columns(chosen))
    assert [j for j, _ in columns] == chosen.tolist()
    for (_, column), expected in zip(columns, part.T, strict=True):
        np.testing.assert_allclose(column, expected)
        assert column.flags.c_contiguous


def test_blocks_stay_within_the_budget(rows):
    with sklearn.config_context(working_memory=0.003):
        sizes = [
            len(block) for _, block in ComputedMatrix(Atoms(RBF(0.5), rows), rows).row_blocks()
        ]
    assert max(sizes) * 24 * 23 <= 0.25 * 0.003 * 2**20
    assert sum(sizes) == 23


def test_what_fits_is_kept(rows):
    atoms = Atoms(RBF(0.5), rows)
    assert isinstance(basis_matrix(atoms, rows), KeptMatrix)
    np.testing.assert_allclose(
        basis_matrix(atoms, sparse.csr_matrix(rows)).values, RBF(0.5)(rows, rows)
    )
    with sklearn.config_context(working_memory=0.003):
        assert isinstance(basis_matrix(atoms, rows), ComputedMatrix)


def test_a_value_that_is_not_finite_names_its_row(rows):
    def broken(X, Z):
        values = np.ones((len(X), len(Z)))
        values[X[:, 0] == rows[17, 0]] = np.nan
        return values

    with pytest.raises(ValueError, match="training row 17"):
        basis_matrix(Atoms(FunctionKernel(broken), rows[:3]), rows)


def test_absolute_sums_heed_no_sign():
    matrix = KeptMatrix(np.array([[1.0, -2.0], [-3.0, 4.0]]))
    np.testing.assert_array_equal(matrix.absolute_sums(np.array([1.0, 2.0])), [7.0, 10.0])
