"""Atoms: what each kind of function is worth, and that taking some of them changes no value."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from pursuit.atoms import Atoms, FunctionAtoms, OrientedAtoms, unite
from pursuit.kernels import RBF, Linear, Precomputed


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
    assert atoms.take(np.array([], dtype=int)).functions(X).shape == (20, 0)


@pytest.mark.parametrize("kernel", [RBF(1.0), Precomputed()])
def test_no_atoms(kernel, X):
    none = Atoms(kernel, np.empty((0, 4)) if isinstance(kernel, RBF) else np.array([], dtype=int))
    assert len(none) == 0
    assert none.names == []
    assert none.functions(X).shape == (20, 0)


# Oriented Gaussians


@pytest.mark.parametrize("n_axes", [1, 2, 3, 4])
def test_oriented_gaussians_are_those_of_the_full_covariance(n_axes, rng, X):
    atoms = oriented(rng, n_axes=n_axes)
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


# User functions


FUNCTIONS = {"first": lambda X: X[:, 0], "energy": lambda X: (X**2).sum(axis=1)}


def test_functions_of_the_user(X):
    atoms = FunctionAtoms(FUNCTIONS)
    expected = np.column_stack([X[:, 0], (X**2).sum(axis=1)])
    assert_array_equal(atoms.functions(X), expected)
    assert atoms.names == ["first", "energy"]
    taken = atoms.take(np.array([1, 0, 1]))
    assert_array_equal(taken.functions(X), expected[:, [1, 0, 1]])


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


def test_taking_from_a_union_keeps_order_and_values(rng, X):
    atoms, expected = mixed(rng, X)
    for size in (1, 4, 11, 15):
        indices = rng.integers(len(atoms), size=size)
        taken = atoms.take(indices)
        assert len(taken) == size
        assert_allclose(taken.functions(X), expected[:, indices], rtol=1e-13, atol=1e-15)
        assert taken.names == [atoms.names[k] for k in indices]
        again = rng.integers(size, size=3)
        assert_allclose(
            taken.take(again).functions(X), expected[:, indices[again]], rtol=1e-13, atol=1e-15
        )
