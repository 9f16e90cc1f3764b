"""Atoms: what each kind of function is worth, and that taking some of them changes no value."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import multivariate_normal

from pursuit.expansion.basis_functions import Atoms, FunctionAtoms, MixedAtoms, OrientedAtoms, unite
from pursuit.kernels import RBF, FunctionKernel, Laplacian, Linear, Precomputed
from pursuit.linalg import blocks

NONE = np.array([], dtype=int)


@pytest.fixture
def X(rng):
    return rng.normal(size=(20, 4))


def oriented(rng, n_atoms=6, n_axes=2, n_features=4, noise_variance=0.3):
    centres = rng.normal(size=(n_atoms, n_features))
    frames = np.linalg.qr(rng.normal(size=(n_atoms, n_features, n_axes)))[0]
    variances = rng.uniform(0.1, 5.0, size=(n_atoms, n_axes))
    return OrientedAtoms(centres, frames.transpose(0, 2, 1).copy(), variances, noise_variance)


def covariances(atoms):
    """C of each atom, formed in full."""
    identity = atoms.noise_variance * np.eye(atoms.centres.shape[1])
    return [
        identity + sum(v * np.outer(u, u) for u, v in zip(axes, variances, strict=True))
        for axes, variances in zip(atoms.axes, atoms.variances, strict=True)
    ]


def by_inverse(atoms, X):
    values = np.empty((len(X), len(atoms)))
    for k, (centre, C) in enumerate(zip(atoms.centres, covariances(atoms), strict=True)):
        differences = X - centre
        values[:, k] = np.exp(-0.5 * np.sum(differences @ np.linalg.inv(C) * differences, axis=1))
    return values


# Kernels


def test_taking_atoms(X):
    atoms = Atoms(RBF(1.0), X)
    few = atoms.take(np.array([4, 0, 4]))
    assert len(few) == 3
    assert_array_equal(few.centres, X[[4, 0, 4]])
    assert_allclose(atoms.subset(np.array([4, 0]))(X), few.functions(X)[:, :2], rtol=1e-13)
    assert atoms.take(NONE).functions(X).shape == (20, 0)


@pytest.mark.parametrize("kernel", [RBF(1.0), Precomputed()])
def test_no_atoms(kernel, X):
    none = Atoms(kernel, np.empty((0, 4)) if isinstance(kernel, RBF) else NONE)
    assert len(none) == 0
    assert none.names == []
    assert none.functions(X).shape == (20, 0)


def my_kernel(X, Z):
    return X @ Z.T


class Scaled:
    def __call__(self, X, Z):
        return 2.0 * X @ Z.T


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (RBF(0.5), "RBF(gamma=0.5)"),
        (FunctionKernel(my_kernel), "my_kernel"),
        (FunctionKernel(Scaled()), "Scaled"),
    ],
)
def test_names_of_kernel_atoms(kernel, name, X):
    assert Atoms(kernel, X[:3]).names == [name] * 3


# Oriented Gaussians


@pytest.mark.parametrize("n_axes", [1, 2, 3, 4])
def test_oriented_gaussians_are_those_of_the_full_covariance(n_axes, rng, X):
    atoms = oriented(rng, n_axes=n_axes)
    assert len(atoms) == 6
    assert atoms.names == ["OrientedGaussian"] * 6
    assert_allclose(atoms.functions(X), by_inverse(atoms, X), rtol=1e-11)


def test_oriented_gaussians_have_the_shape_of_the_normal_density(rng, X):
    atoms = oriented(rng)
    for k, C in enumerate(covariances(atoms)):
        density = multivariate_normal(atoms.centres[k], C)
        shape = density.pdf(X) / density.pdf(atoms.centres[k])
        assert_allclose(atoms.functions(X)[:, k], shape, rtol=1e-11)


def test_without_axes_they_are_the_gaussian_kernel(rng, X):
    centres = rng.normal(size=(6, 4))
    atoms = OrientedAtoms(centres, np.empty((6, 0, 4)), np.empty((6, 0)), 0.4)
    assert_allclose(atoms.functions(X), RBF(1 / 0.8)(X, centres), rtol=1e-13)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_value_one_at_the_centre_and_never_more(offset, rng):
    atoms = oriented(rng, n_atoms=50, noise_variance=1e-3)
    far = OrientedAtoms(atoms.centres + offset, atoms.axes, atoms.variances, 1e-3)
    values = far.functions(far.centres)
    assert_array_equal(np.diag(values), 1.0)
    assert values.max() == 1.0
    assert_allclose(values, by_inverse(far, far.centres), rtol=1e-6, atol=1e-15)


def test_a_point_in_the_plane_of_the_axes_is_at_no_distance_from_it(rng):
    """Rounding leaves a small negative rest there, which 1 / sigma^2 would blow up."""
    atoms = oriented(rng, n_atoms=40, noise_variance=1e-14)
    along = np.einsum("kj,kjd->kd", rng.normal(size=(40, 2)), atoms.axes)
    values = np.diag(atoms.functions(atoms.centres + along))
    projections = np.einsum("kjd,kd->kj", atoms.axes, along)
    limit = np.exp(-0.5 * (projections**2 / atoms.variances).sum(axis=1))
    assert (values <= limit * (1 + 1e-9)).all()
    assert values.max() > 0.1


def test_extreme_noise_is_finite(rng, X):
    atoms = oriented(rng)
    thin = OrientedAtoms(atoms.centres, atoms.axes, atoms.variances, 1e-320)
    wide = OrientedAtoms(atoms.centres, atoms.axes, atoms.variances, 1e300)
    rows = np.vstack([X, atoms.centres])
    assert_array_equal(thin.functions(rows)[:20], 0.0)
    assert_array_equal(np.diag(thin.functions(rows)[20:]), 1.0)
    assert_array_equal(wide.functions(rows), 1.0)


def test_tiny_values_are_zero(rng):
    atoms = oriented(rng)
    # exp(-r^2 / 2 lambda) with lambda <= 5.3 is below 1e-30 from r = 28 on.
    assert_array_equal(atoms.functions(np.full((1, 4), 30.0)), 0.0)


def test_float32_rows_give_float64_values(rng, X):
    atoms, rows = oriented(rng), X.astype(np.float32)
    values = atoms.functions(rows)
    assert values.dtype == np.float64
    assert_array_equal(values, atoms.functions(rows.astype(np.float64)))


def test_sparse_rows_are_refused(rng, X):
    with pytest.raises(ValueError, match="dictionary: oriented Gaussians need dense rows"):
        oriented(rng).functions(sparse.csr_matrix(X))


def test_taking_oriented_gaussians(rng, X):
    atoms = oriented(rng)
    indices = np.array([4, 0, 4])
    few = atoms.take(indices)
    assert_allclose(few.functions(X), atoms.functions(X)[:, indices], rtol=1e-11)
    for name in ("centres", "axes", "variances"):
        assert len(getattr(few, name)) == 3
        assert getattr(few, name).base is None  # nothing holds on to those not taken
    none = atoms.take(NONE)
    assert none.functions(X).shape == (20, 0)
    assert none.names == []


# User functions


FUNCTIONS = {"first": lambda X: X[:, 0], "energy": lambda X: (X**2).sum(axis=1)}


def test_functions_of_the_user(X):
    atoms = FunctionAtoms(FUNCTIONS)
    expected = np.column_stack([X[:, 0], (X**2).sum(axis=1)])
    assert_array_equal(atoms.functions(X), expected)
    assert atoms.names == ["first", "energy"]
    assert (len(atoms), atoms.kernel, atoms.centres) == (2, None, None)
    taken = atoms.take(np.array([1, 0, 1]))
    assert taken.names == ["energy", "first", "energy"]
    assert_array_equal(taken.functions(X), expected[:, [1, 0, 1]])
    assert atoms.take(np.array([1])).callables.keys() == {"energy"}
    assert atoms.take(NONE).functions(X).shape == (20, 0)


def test_the_mapping_is_copied(X):
    given = dict(FUNCTIONS)
    atoms = FunctionAtoms(given)
    given["first"] = given["energy"]
    assert_array_equal(atoms.functions(X)[:, 0], X[:, 0])


def test_what_a_function_may_return(X):
    atoms = FunctionAtoms(
        {
            "column": lambda X: X[:, [1]],
            "list": lambda X: X[:, 2].tolist(),
            "truth": lambda X: X[:, 3] > 0,
        }
    )
    expected = np.column_stack([X[:, 1], X[:, 2], X[:, 3] > 0])
    assert_array_equal(atoms.functions(X), expected)
    assert atoms.functions(X[:1]).shape == (1, 3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X: X, r"'odd' returned an array of shape \(20, 4\) for 20 rows; expected \(20,\)"),
        (lambda X: 1.0, r"'odd' returned an array of shape \(\)"),
        (lambda X: X[1:, 0], r"'odd' returned an array of shape \(19,\)"),
        (lambda X: X[:, 0] / 0.0, "'odd' returned NaN or infinity"),
        (lambda X: X[:, 0] * np.nan, "'odd' returned NaN or infinity"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_a_function_may_not_return(function, message, X):
    atoms = FunctionAtoms({"first": lambda X: X[:, 0], "odd": function})
    with pytest.raises(ValueError, match=f"dictionary: the function {message}"):
        atoms.functions(X)


# Mixtures


def mixed(rng, X):
    parts = [
        Atoms(RBF(0.5), X[:3]),
        FunctionAtoms(FUNCTIONS),
        oriented(rng, n_atoms=2),
        Atoms(Linear(), X[5:9]),
    ]
    return unite(parts), np.hstack([part.functions(X) for part in parts])


def test_a_union_has_the_functions_of_its_parts_in_order(rng, X):
    atoms, expected = mixed(rng, X)
    assert len(atoms) == 11
    assert_array_equal(atoms.functions(X), expected)
    assert atoms.names == (
        ["RBF(gamma=0.5)"] * 3 + ["first", "energy"] + ["OrientedGaussian"] * 2 + ["Linear()"] * 4
    )


def test_parts_may_be_interleaved(X):
    members = np.array([1, 0, 0, 1, 1, 0])
    atoms = MixedAtoms((Atoms(RBF(0.5), X[:3]), Atoms(Linear(), X[3:6])), members)
    expected = np.empty((20, 6))
    expected[:, members == 0] = RBF(0.5)(X, X[:3])
    expected[:, members == 1] = Linear()(X, X[3:6])
    assert_array_equal(atoms.functions(X), expected)
    assert_array_equal(atoms.centres, X[[3, 0, 1, 4, 5, 2]])
    short = {0: "RBF(gamma=0.5)", 1: "Linear()"}
    assert atoms.names == [short[m] for m in members]


def test_taking_from_a_union_keeps_order_and_values(rng, X):
    atoms, expected = mixed(rng, X)
    for size in (1, 4, 11, 15):
        indices = rng.integers(len(atoms), size=size)
        taken = atoms.take(indices)
        assert len(taken) == size
        assert_allclose(taken.functions(X), expected[:, indices], rtol=1e-12, atol=1e-15)
        assert taken.names == [atoms.names[k] for k in indices]
        again = rng.integers(size, size=3)
        assert_allclose(taken.subset(again)(X), expected[:, indices[again]], rtol=1e-12, atol=1e-15)


def test_only_parts_with_an_atom_are_kept(rng, X):
    atoms, _ = mixed(rng, X)
    two = atoms.take(np.array([10, 1, 7]))
    assert [type(part) for part in two.parts] == [Atoms, Atoms]
    assert_array_equal(two.members, [1, 0, 1])
    assert_array_equal(two.centres, [X[8], X[1], X[5]])
    one = atoms.take(np.array([8, 7]))
    assert isinstance(one, Atoms)
    assert one.kernel == Linear()
    assert_array_equal(one.centres, X[[6, 5]])
    none = atoms.take(NONE)
    assert (len(none), none.kernel) == (0, RBF(0.5))
    assert none.functions(X).shape == (20, 0)


def test_union_of_one_is_that_one(X):
    atoms = Atoms(RBF(0.5), X)
    assert unite([atoms]) is atoms


def test_kernel_of_a_union(X):
    def kernel_of(*kernels):
        return unite([Atoms(kernel, X) for kernel in kernels]).kernel

    assert kernel_of(RBF(0.5), RBF(0.5)) == RBF(0.5)
    assert kernel_of(RBF(0.5), RBF(0.6)) is None
    assert kernel_of(RBF(0.5), Laplacian(0.5)) is None
    # The parameters of a function may be arrays, whose equality is no truth value.
    one, other = (FunctionKernel(my_kernel, {"a": np.arange(2.0) + k}) for k in range(2))
    assert kernel_of(one, other) is None
    assert kernel_of(one, one) is one
    assert unite([Atoms(RBF(0.5), X), FunctionAtoms(FUNCTIONS)]).kernel is None


def test_centres_of_a_union(rng, X):
    atoms = Atoms(RBF(0.5), X[:3])
    turned = oriented(rng, n_atoms=2)
    both = unite([atoms, turned])
    assert_array_equal(both.centres, np.vstack([X[:3], turned.centres]))
    assert unite([atoms, FunctionAtoms(FUNCTIONS)]).centres is None
    assert unite([atoms, Atoms(RBF(0.5), X[:3, :2])]).centres is None
    columns = Atoms(Precomputed(), np.array([3, 4]))
    assert unite([columns, columns]).centres is None


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_sparse_centres_of_a_union(form, X):
    parts = (Atoms(RBF(0.5), sparse.csr_matrix(X[:3])), Atoms(Linear(), form(X[3:5])))
    centres = MixedAtoms(parts, np.array([0, 1, 0, 1, 0])).centres
    assert centres.format == "csr"
    assert_array_equal(centres.toarray(), X[[0, 3, 1, 4, 2]])


def test_each_part_is_prepared_and_evaluated_once(X):
    calls = []
    functions = {"slow": lambda X: calls.append(len(X)) or X[:, 0]}
    atoms = unite([FunctionAtoms(functions), Atoms(RBF(0.5), X)])
    values = atoms.functions
    values(X)
    values(X[:5])
    assert calls == [20, 5]


def test_threads_and_chunks_change_nothing(rng, monkeypatch):
    X = rng.normal(size=(500, 4))
    atoms, expected = mixed(rng, X)
    monkeypatch.setattr(blocks, "SMALLEST_PARALLEL_SIZE", 1)
    monkeypatch.setattr(blocks, "CHUNK_BYTES", 8 * 11 * 40)
    monkeypatch.setattr(blocks, "n_threads", lambda: 3)
    threads = set()
    functions = atoms.functions

    def watched(rows):
        threads.add(threading.get_ident())
        return functions(rows)

    assert_allclose(blocks.evaluate(watched, X, 11), expected, rtol=1e-12, atol=1e-15)
    assert len(threads) > 1
