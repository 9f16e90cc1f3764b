"""Kernels: their formulas, and what rounding must not do to them."""

import dataclasses
import pickle

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics import pairwise

from pursuit import kernels
from pursuit.kernels import (
    RBF,
    ChiSquared,
    Cosine,
    CosinePolynomial,
    FunctionKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    resolve_kernel,
    scale_gamma,
)

# Kernel, the plain statement, and scikit-learn's function where it has one.
CASES = {
    "linear": (Linear(), reference.linear, pairwise.linear_kernel),
    "polynomial": (
        Polynomial(0.3, 3, 1.5),
        lambda X, Z: reference.polynomial(X, Z, 0.3, 3, 1.5),
        lambda X, Z: pairwise.polynomial_kernel(X, Z, degree=3, gamma=0.3, coef0=1.5),
    ),
    "rbf": (
        RBF(0.7),
        lambda X, Z: reference.rbf(X, Z, 0.7),
        lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.7),
    ),
    "laplacian": (
        Laplacian(0.2),
        lambda X, Z: reference.laplacian(X, Z, 0.2),
        lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.2),
    ),
    "sigmoid": (
        Sigmoid(0.1, -0.4),
        lambda X, Z: reference.sigmoid(X, Z, 0.1, -0.4),
        lambda X, Z: pairwise.sigmoid_kernel(X, Z, gamma=0.1, coef0=-0.4),
    ),
    "cosine": (Cosine(), reference.cosine, pairwise.cosine_similarity),
    "cosine_polynomial": (
        CosinePolynomial(4, 0.5),
        lambda X, Z: reference.cosine_polynomial(X, Z, 4, 0.5),
        lambda X, Z: (pairwise.cosine_similarity(X, Z) + 0.5) ** 4,
    ),
}


@pytest.fixture
def rows(rng):
    """Rows and centres, with zeros, a zero row, and some centres among the rows."""
    X = np.where(rng.uniform(size=(13, 6)) < 0.5, rng.normal(size=(13, 6)), 0.0)
    X[4] = 0.0
    Z = np.vstack([rng.normal(size=(7, 6)), X[[2, 4, 4]]])
    return X, Z


@pytest.mark.parametrize("name", CASES)
def test_formula(name, rows):
    kernel, plain, other = CASES[name]
    X, Z = rows
    K = kernel(X, Z)
    assert K.shape == (13, 10)
    assert_allclose(K, plain(X, Z), rtol=1e-12, atol=1e-14)
    assert_allclose(K, other(X, Z), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dense_centres", [True, False])
@pytest.mark.parametrize("dense_rows", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_dense_and_csr_rows_and_centres(name, dense_rows, dense_centres, rows):
    kernel, plain, _ = CASES[name]
    X, Z = rows
    given = X if dense_rows else sparse.csr_matrix(X)
    centres = Z if dense_centres else sparse.csr_array(Z)
    K = kernel(given, centres)
    assert type(K) is np.ndarray
    assert_allclose(K, plain(X, Z), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_csr_rows_with_long_indices(name, rows):
    kernel, plain, _ = CASES[name]
    X, Z = rows
    given = sparse.csr_matrix(X)
    given.indices, given.indptr = given.indices.astype("i8"), given.indptr.astype("i8")
    for centres in (Z, given):
        table = Z if centres is Z else X
        assert_allclose(kernel(given, centres), plain(X, table), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_single_precision_rows(name, rows):
    kernel, plain, _ = CASES[name]
    X, Z = (part.astype(np.float32) for part in rows)
    assert_allclose(kernel(X, Z), plain(X, Z), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_rows_and_centres_stay_as_they_are(name, rows):
    kernel = CASES[name][0]
    X, Z = rows
    X_before, Z_before = X.copy(), Z.copy()
    prepared = kernel.prepare(Z)
    first = kernel.evaluate(X, prepared).copy()
    assert_array_equal(kernel.evaluate(X, prepared), first)
    assert_array_equal(X, X_before)
    assert_array_equal(Z, Z_before)
    for compressed in (sparse.csr_matrix(X),):
        kernel(compressed, compressed)
        assert_array_equal(compressed.toarray(), X_before)


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 5, 8, 9, 2.5, 0.5])
def test_degrees(degree, rows):
    X, Z = (np.abs(part) for part in rows)
    expected = (0.5 * (X @ Z.T) + 2.0) ** degree
    assert_allclose(Polynomial(0.5, degree, 2.0)(X, Z), expected, rtol=1e-12)
    expected = (pairwise.cosine_similarity(X, Z) + 2.0) ** degree
    assert_allclose(CosinePolynomial(degree, 2.0)(X, Z), expected, rtol=1e-12)


def test_whole_degrees_of_negative_values_keep_their_sign():
    X, Z = np.array([[2.0], [3.0]]), np.array([[-1.0]])
    assert_array_equal(Polynomial(1.0, 3, 0.0)(X, Z), [[-8.0], [-27.0]])
    assert_array_equal(Polynomial(1.0, 2.0, 0.0)(X, Z), [[4.0], [9.0]])


def test_cosine_polynomial_is_equation_19():
    x, z = np.array([[3.0, 4.0]]), np.array([[0.0, 2.0], [-3.0, -4.0]])
    assert_allclose(CosinePolynomial(2, 1.0)(x, z), [[1.8**2, 0.0]], atol=1e-15)
    assert_allclose(CosinePolynomial(3, 0.0)(7.0 * x, z / 9.0), [[0.8**3, -1.0]], rtol=1e-14)


def test_cosine_of_a_zero_row_is_zero():
    assert_array_equal(Cosine()(np.zeros((1, 2)), np.ones((1, 2))), [[0.0]])
    assert_array_equal(CosinePolynomial(2, 3.0)(np.zeros((1, 2)), np.ones((1, 2))), [[9.0]])


# Distances.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", [RBF(1e8), Laplacian(1e8), RBF(1e300)])
def test_equal_rows_give_exactly_one(kernel, form, dtype, rng):
    """Wherever in a block they are, and at every block size."""
    spread = 3 if dtype == np.float64 else 0
    scales = 10.0 ** rng.integers(-spread, spread + 1, size=(40, 1))
    X = (scales * rng.normal(size=(40, 9))).astype(dtype)
    X[31], X[8] = X[5], X[5]
    prepared = kernel.prepare(form(X))
    twins = np.eye(40)
    twins[np.ix_([5, 8, 31], [5, 8, 31])] = 1.0
    for size in (1, 3, 7, 16, 40):
        for start in range(0, 40, size):
            K = kernel.evaluate(form(X)[start : start + size], prepared)
            assert_array_equal(K == 1.0, twins[start : start + size] == 1.0)


def test_near_rows_are_not_taken_for_equal():
    X = np.array([[0.0, 1.0], [1e-4, 1.0], [30.0, -2.0]])
    assert_allclose(RBF(1e8)(X, X)[0, 1], np.exp(-1.0), rtol=1e-5)
    assert_allclose(Laplacian(1e4)(X, X)[0, 1], np.exp(-1.0), rtol=1e-8)


def test_far_offset_costs_no_digits(rng):
    """scikit-learn's kernel gives exactly 1 here where exp(-1) is right."""
    X = rng.integers(-4, 5, size=(20, 3)) / 4.0
    for kernel in (RBF(0.5), Laplacian(0.5)):
        assert_allclose(kernel(X + 1e6, X[:9] + 1e6), kernel(X, X[:9]), rtol=1e-9)
    tiny = np.array([[1e6], [1e6 + 2.0**-10]])
    assert_allclose(RBF(2.0**20)(tiny, tiny)[0, 1], np.exp(-1.0), rtol=1e-9)
    assert pairwise.rbf_kernel(tiny, gamma=2.0**20)[0, 1] in (0.0, 1.0)


def test_one_far_row_costs_no_digits(rng):
    X = rng.normal(size=(60, 2))
    X[0] = 1e8
    assert_allclose(RBF(0.5)(X, X), reference.rbf(X, X, 0.5), rtol=1e-9)
    assert_allclose(RBF(0.5)(X, X[:5]), reference.rbf(X, X[:5], 0.5), rtol=1e-9)


def test_gaussian_is_never_above_one(rng):
    X = rng.normal(size=(200, 30))
    K = RBF(1e-9)(X, X)
    assert K.max() == 1.0
    assert_array_equal(K.diagonal(), np.ones(200))


@pytest.mark.parametrize("kernel", [RBF, Laplacian])
def test_values_below_1e_30_become_zero(kernel):
    X, origin = np.array([[0.0], [1.0], [0.0]]), np.array([[0.0]])
    just_above, just_below = -np.log(1.01e-30), -np.log(0.99e-30)
    assert_allclose(kernel(just_above)(X, origin)[:, 0], [1.0, 1.01e-30, 1.0], rtol=1e-9)
    assert_array_equal(kernel(just_below)(X, origin)[:, 0], [1.0, 0.0, 1.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", [RBF, Laplacian])
def test_extreme_gammas(kernel, form, dtype, rng):
    X = rng.normal(size=(10, 3)).astype(dtype)
    with np.errstate(all="raise", under="ignore"):
        assert_array_equal(kernel(1e300)(form(X), form(X)), np.eye(10))
        assert_array_equal(kernel(1e-300)(form(X), form(X)), np.ones((10, 10)))


@pytest.mark.parametrize("name", CASES)
def test_no_centres_and_no_rows(name, rows):
    kernel = CASES[name][0]
    X, Z = rows
    prepared = kernel.prepare(Z)
    if name not in ("cosine", "cosine_polynomial"):  # scikit-learn's normalize wants a row
        assert kernel.evaluate(X[:0], prepared).shape == (0, 10)


# K(x, x)


class Products(kernels.Kernel):
    """A kernel that has no diagonal of its own."""

    def evaluate(self, X, Z):
        return kernels.inner(X, Z) ** 2


DIAGONALS = [*(case[0] for case in CASES.values()), Products()]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", DIAGONALS, ids=lambda kernel: type(kernel).__name__)
def test_diagonal(kernel, dtype, form, rng):
    """In float64 also of float32 rows; 150 rows are more than are looked at together."""
    X = rng.normal(size=(150, 4)).astype(dtype)
    X[7] = 0.0
    values = kernel.diagonal(form(X))
    assert values.shape == (150,) and values.dtype == np.float64
    wide = X.astype(np.float64)
    assert_allclose(values, np.diag(kernel(wide, wide)), rtol=1e-12)


def test_diagonal_of_given_values_and_of_functions(rng):
    values = rng.normal(size=(6, 6))
    for form in (np.asarray, sparse.csr_matrix, sparse.csr_array):
        diagonal = Precomputed().diagonal(form(values))
        assert_array_equal(diagonal, np.diag(values))
        assert diagonal.dtype == np.float64
        with pytest.raises(ValueError, match=r"kernel='precomputed' needs a square X"):
            Precomputed().diagonal(form(values[:, :5]))
    own = Precomputed().diagonal(values)
    own[0] = 99.0
    assert values[0, 0] != 99.0
    X = rng.normal(size=(70, 3))
    kernel = FunctionKernel(pairwise.polynomial_kernel)
    assert_allclose(kernel.diagonal(X), np.diag(pairwise.polynomial_kernel(X)), rtol=1e-12)


# Derivatives in the first argument.

DIFFERENTIABLE = {
    **{name: case[0] for name, case in CASES.items()},
    "degree 1": Polynomial(0.3, 1, 1.5),
    "degree 2.5": Polynomial(0.1, 2.5, 9.0),
    "cosine of degree 1": CosinePolynomial(1, 0.5),
}


def finite_differences(function, Z, step=1e-5):
    """Slope of a number in each entry of Z."""
    slopes = np.empty(Z.shape)
    for entry in np.ndindex(Z.shape):
        shift = np.zeros(Z.shape)
        shift[entry] = step
        slopes[entry] = (function(Z + shift) - function(Z - shift)) / (2 * step)
    return slopes


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_weighted_gradient(name, form, rng):
    """The rows have zeros and a zero row; the centres lie elsewhere, at any sign."""
    kernel = DIFFERENTIABLE[name]
    X = np.where(rng.uniform(size=(9, 4)) < 0.5, rng.normal(size=(9, 4)), 0.0)
    X[4] = 0.0
    Z, A = rng.normal(size=(5, 4)), rng.normal(size=(5, 9))
    expected = finite_differences(lambda Z: np.sum(A * kernel(Z, X)), Z)
    gradient = kernel.weighted_gradient(Z, form(X), A)
    assert gradient.shape == Z.shape and gradient.dtype == np.float64
    assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)
    single = kernel.weighted_gradient(Z, form(X.astype(np.float32)), A)
    assert single.dtype == np.float64
    assert_allclose(single, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_weighted_gradient_of_zero_weights(name, rng):
    kernel = DIFFERENTIABLE[name]
    X, Z = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    assert_array_equal(kernel.weighted_gradient(Z, X, np.zeros((4, 6))), np.zeros((4, 3)))


def test_degree_zero_has_no_slope(rng):
    X, Z, A = rng.normal(size=(6, 3)), rng.normal(size=(4, 3)), np.ones((4, 6))
    for kernel in (Polynomial(0.5, 0, 0.0), CosinePolynomial(0, 0.0)):
        assert_array_equal(kernel.weighted_gradient(Z, X, A), np.zeros((4, 3)))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_laplacian_counts_an_equal_coordinate_as_zero(form):
    X, Z = np.array([[1.0, 0.0]]), np.array([[1.0, -2.0], [0.0, 0.0]])
    gradient = Laplacian(0.5).weighted_gradient(Z, form(X), np.ones((2, 1)))
    expected = [[0.0, 0.5 * np.exp(-1.0)], [0.5 * np.exp(-0.5), 0.0]]
    assert_allclose(gradient, expected, rtol=1e-14, atol=0)


def test_cosine_of_a_zero_centre_has_no_slope(rng):
    X = rng.normal(size=(6, 3))
    for kernel in (Cosine(), CosinePolynomial(3, 1.0)):
        gradient = kernel.weighted_gradient(np.zeros((1, 3)), X, np.ones((1, 6)))
        assert_array_equal(gradient, np.zeros((1, 3)))


def test_gaussian_slope_far_from_the_origin(rng):
    X, Z = rng.integers(-4, 5, size=(20, 3)) / 4.0, rng.integers(-4, 5, size=(5, 3)) / 4.0
    A = rng.normal(size=(5, 20))
    near = RBF(0.5).weighted_gradient(Z, X, A)
    assert_allclose(RBF(0.5).weighted_gradient(Z + 1e6, X + 1e6, A), near, rtol=1e-8)


def test_kernels_without_a_derivative(rng):
    X = rng.uniform(size=(3, 3))
    for kernel in (ChiSquared(1.0), Precomputed(), FunctionKernel(pairwise.linear_kernel)):
        with pytest.raises(NotImplementedError, match=f"{type(kernel).__name__} has no derivat"):
            kernel.weighted_gradient(X, X, np.eye(3))


# Given values and functions.


def test_precomputed_takes_columns(rng):
    values = rng.normal(size=(6, 8))
    columns = np.array([5, 0, 5])
    assert_array_equal(Precomputed()(values, columns), values[:, [5, 0, 5]])
    assert_array_equal(Precomputed()(sparse.csr_matrix(values), columns), values[:, [5, 0, 5]])


def test_function_kernel_passes_its_parameters(rows):
    def scaled(X, Z, *, factor, shift=0.0):
        return factor * (X @ Z.T) + shift

    X, Z = rows
    kernel = FunctionKernel(scaled, {"factor": 3.0, "shift": 1.0})
    assert_array_equal(kernel(X, Z), 3.0 * (X @ Z.T) + 1.0)
    assert_allclose(FunctionKernel(pairwise.linear_kernel)(X, Z), X @ Z.T, rtol=1e-12)


@pytest.mark.parametrize(
    "values", [np.ones((10, 13)), np.ones(13), np.ones((13, 9)), 3.0, np.ones((13, 10, 1))]
)
def test_function_kernel_checks_the_shape(values, rows):
    kernel = FunctionKernel(lambda X, Z: values)
    with pytest.raises(
        ValueError, match=r"kernel: .* for 13 rows and 10 centres; expected \(13, 10"
    ):
        kernel(*rows)


# From names to values.


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("linear", Linear()),
        ("polynomial", Polynomial(0.25, 2, 3.0)),
        ("poly", Polynomial(0.25, 2, 3.0)),
        ("rbf", RBF(0.25)),
        ("laplacian", Laplacian(0.25)),
        ("sigmoid", Sigmoid(0.25, 3.0)),
        ("cosine", Cosine()),
        ("cosine_polynomial", CosinePolynomial(2, 3.0)),
        ("precomputed", Precomputed()),
    ],
)
def test_names(name, expected):
    assert resolve_kernel(name, np.eye(3), gamma=0.25, degree=2, coef0=3) == expected


def test_chi_squared(rows):
    X, Z = np.abs(rows[0]), np.abs(rows[1])
    K = ChiSquared(0.7)(X, Z)
    assert_allclose(K, reference.chi2(X, Z, 0.7), rtol=1e-12)
    assert_allclose(K, pairwise.chi2_kernel(X, Z, gamma=0.7), rtol=1e-12)
    assert_allclose(ChiSquared(0.7).diagonal(X), np.diag(ChiSquared(0.7)(X, X)), rtol=1e-15)
    with pytest.raises(ValueError, match="negative"):
        ChiSquared(0.7)(-X, Z)
    with pytest.raises(ValueError, match="kernel='chi2' needs dense rows"):
        ChiSquared(0.7)(sparse.csr_matrix(X), Z)


def test_every_exported_kernel_has_a_name():
    listed = {getattr(kernels, name) for name in kernels.__all__}
    values = {c for c in listed if isinstance(c, type) and issubclass(c, kernels.Kernel)}
    named = {type(resolve_kernel(name, np.eye(3))) for name in (*CASES, "chi2", "precomputed")}
    assert named == values - {kernels.Kernel, FunctionKernel, kernels.Mahalanobis}


def test_objects_and_functions():
    assert resolve_kernel(RBF(3.0), np.eye(3), gamma=7.0) == RBF(3.0)
    kernel = resolve_kernel(pairwise.rbf_kernel, np.eye(3), kernel_params={"gamma": 2.0})
    assert_allclose(kernel(np.eye(3), np.eye(3)), pairwise.rbf_kernel(np.eye(3), gamma=2.0))


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        ("gauss", {}, r"kernel must be one of \['chi2', .*got 'gauss'"),
        (None, {}, "kernel must be one of"),
        ("rbf", {"kernel_params": {"a": 1}}, "kernel_params is only for a callable kernel"),
        ("rbf", {"gamma": -2.0}, "gamma must be .*got -2.0"),
        ("rbf", {"gamma": "tiny"}, "gamma must be 'scale', 'auto' or a positive number"),
        ("sigmoid", {"gamma": np.inf}, "gamma"),
    ],
)
def test_bad_arguments(kernel, options, message):
    with pytest.raises(ValueError, match=message):
        resolve_kernel(kernel, np.eye(3), **options)


def test_kernels_are_values():
    assert repr(RBF(gamma=0.5)) == "RBF(gamma=0.5)"
    assert hash(Polynomial(1.0, 2, 3.0)) == hash(Polynomial(1.0, 2, 3.0))
    assert RBF(1.0) != Laplacian(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        RBF(1.0).gamma = 2.0
    for kernel, *_ in CASES.values():
        assert pickle.loads(pickle.dumps(kernel)) == kernel


# gamma="scale" and "auto".


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scale_is_that_of_scikit_learn(form, dtype, rng):
    X = (rng.normal(size=(50, 4)) + [0, 1, 2, 9]).astype(dtype)
    expected = 1.0 / (4 * X.astype(np.float64).var())
    assert_allclose(scale_gamma(form(X)), expected, rtol=1e-5 if dtype == np.float32 else 1e-12)
    assert resolve_kernel("rbf", form(X)) == RBF(scale_gamma(form(X)))
    assert resolve_kernel("rbf", form(X), gamma="auto") == RBF(0.25)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_scale_counts_weights(form, rng):
    X = rng.normal(size=(30, 3))
    weights = np.arange(30) % 3
    repeated = np.repeat(X, weights, axis=0)
    assert_allclose(scale_gamma(form(X), weights), 1.0 / (3 * repeated.var()), rtol=1e-12)


def test_scale_of_many_rows_and_of_a_far_offset(rng):
    X = rng.integers(-8, 9, size=(9000, 2)) / 8.0
    assert_allclose(scale_gamma(X + 1e6), 1.0 / (2 * X.var()), rtol=1e-9)
    assert scale_gamma(np.full((5, 2), 0.1)) == 1.0
    assert scale_gamma(sparse.csr_matrix((5, 2))) == 1.0


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_cosines_of_rows_of_any_length(form, rng):
    """Also where squares of the entries vanish or overflow, and rows have lengths of their own."""
    X = rng.normal(size=(12, 3))
    lengths = np.array([1e-310, 1e-200, 1e-20, 1.0, 1e20, 1e200, 1e300, 0.0] + 4 * [1.0])[:, None]
    scaled = np.maximum(np.abs(X), 0.1) * np.sign(X) * lengths
    unit = np.sign(X) * np.maximum(np.abs(X), 0.1) * (lengths > 0)
    expected = Cosine()(unit, unit)
    assert_allclose(Cosine()(form(scaled), form(scaled)), expected, rtol=1e-12, atol=1e-12)
