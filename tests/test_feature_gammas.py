"""Kernels with one gamma a feature or a matrix, in themselves and in every estimator."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import pursuit
from pursuit.base.cross_validation import gamma_grid, search_results
from pursuit.kernels import RBF, ChiSquared, Laplacian, Mahalanobis, resolve_kernel, split
from pursuit.model_file import describe

RNG = np.random.default_rng(0)
GAMMA = np.array([1.0, 0.3, 0.05])
ROOT = RNG.normal(size=(3, 3)) * 0.7
MATRIX = ROOT @ ROOT.T
X, Z = RNG.normal(size=(9, 3)), RNG.normal(size=(5, 3))
X[2], X[:, 1] = Z[1], np.where(X[:, 1] > 0, X[:, 1], 0.0)

# Kernel, and its value at two rows as it is defined.
KERNELS = {
    "rbf": (RBF(GAMMA), lambda x, z: np.exp(-np.sum(GAMMA * (x - z) ** 2))),
    "laplacian": (Laplacian(GAMMA), lambda x, z: np.exp(-np.sum(GAMMA * abs(x - z)))),
    "matrix": (Mahalanobis(MATRIX), lambda x, z: np.exp(-(x - z) @ MATRIX @ (x - z))),
    "factor": (
        Mahalanobis(factor=ROOT[:, :2]),
        lambda x, z: np.exp(-np.sum((ROOT[:, :2].T @ (x - z)) ** 2)),
    ),
}
FORMS = [np.asarray, sparse.csr_matrix, sparse.csr_array]


# The kernels.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KERNELS)
def test_the_definition(name, form):
    kernel, value = KERNELS[name]
    expected = np.array([[value(x, z) for z in Z] for x in X])
    assert_allclose(kernel(form(X), Z), expected, rtol=1e-12)
    assert_allclose(kernel(form(X), form(Z)), expected, rtol=1e-12)
    single = kernel(form(X.astype(np.float32)), Z.astype(np.float32))
    assert_allclose(single, expected, rtol=1e-5)
    assert_array_equal(np.diag(kernel(X, X)), np.ones(9))
    assert_array_equal(kernel.diagonal(form(X)), np.ones(9))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KERNELS)
def test_gradients_by_finite_differences(name, form):
    kernel, A = KERNELS[name][0], RNG.normal(size=(5, 9))
    centres, slopes = Z + 0.01, np.empty(Z.shape)
    for entry in np.ndindex(Z.shape):
        step = np.zeros(Z.shape)
        step[entry] = 1e-5
        up, down = (np.sum(A * kernel(centres + h, X)) for h in (step, -step))
        slopes[entry] = (up - down) / 2e-5
    found = kernel.weighted_gradient(centres, form(X), A)
    assert_allclose(found, slopes, rtol=1e-6, atol=1e-8)


def test_scikit_learn_on_scaled_columns():
    root = np.sqrt(GAMMA)
    assert_allclose(RBF(GAMMA)(X, Z), rbf_kernel(X * root, Z * root, gamma=1.0), rtol=1e-12)
    expected = laplacian_kernel(X * GAMMA, Z * GAMMA, gamma=1.0)
    assert_allclose(Laplacian(GAMMA)(X, Z), expected, rtol=1e-12)


@pytest.mark.parametrize("cls", [RBF, Laplacian, ChiSquared])
def test_equal_numbers_are_one_number(cls):
    rows, centres = np.abs(X), np.abs(Z)
    assert_allclose(cls([0.4] * 3)(rows, centres), cls(0.4)(rows, centres), rtol=1e-13)
    if cls is not ChiSquared:
        A = RNG.normal(size=(5, 9))
        found, expected = (cls(g).weighted_gradient(Z, X, A) for g in ([0.4] * 3, 0.4))
        assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_chi_squared_weighs_its_terms():
    rows, centres = np.abs(X), np.abs(Z)
    terms = (rows[:, None] - centres) ** 2 / (rows[:, None] + centres)
    assert_allclose(ChiSquared(GAMMA)(rows, centres), np.exp(-terms @ GAMMA), rtol=1e-12)


def test_a_diagonal_matrix_is_one_gamma_a_feature():
    assert_array_equal(Mahalanobis(np.diag(GAMMA))(X, Z), RBF(GAMMA)(X, Z))
    whole = Mahalanobis(factor=np.diag(np.sqrt(GAMMA)))
    assert_allclose(whole(X, Z), RBF(GAMMA)(X, Z), rtol=1e-12)


def test_far_offsets_and_scales_cost_no_digits():
    near = RBF(GAMMA)(X, Z)
    assert_allclose(RBF(GAMMA)(X + 1e6, Z + 1e6), near, rtol=1e-8)
    units = np.array([1e-40, 1.0, 1e40])
    assert_allclose(RBF(GAMMA / units**2)(X * units, Z * units), near, rtol=1e-12)
    tiny = np.array([[0.0], [1e-30], [1e-20]], dtype=np.float32)
    # Roots of gamma beyond single precision.
    assert_array_equal(RBF([1e80])(tiny, tiny), np.eye(3))


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_of_mapped_rows_in_one_gamma(name):
    kernel = KERNELS[name][0]
    (plain, U), (_, V) = split(kernel, X), split(kernel, Z)
    assert np.ndim(plain.gamma) == 0
    assert_allclose(plain(U, V), kernel(X, Z), rtol=1e-12)


def test_they_are_values():
    for kernel, _ in KERNELS.values():
        same = pickle.loads(pickle.dumps(kernel))
        assert same == kernel and hash(same) == hash(kernel)
        assert_array_equal(same(X, Z), kernel(X, Z))
    assert RBF(GAMMA) != RBF(2 * GAMMA) and RBF(GAMMA) != Laplacian(GAMMA) and RBF(1) == RBF(1.0)
    assert repr(RBF([0.5, 2.0])) == "RBF(gamma=array([0.5, 2. ]))"
    given = GAMMA.copy()
    kernel = RBF(given)
    given[0] = 9.0
    assert_array_equal(kernel.gamma, GAMMA)
    with pytest.raises(ValueError, match="read-only"):
        kernel.gamma[0] = 9.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RBF([1.0, -1.0]), r"gamma must be positive, got -1.0 for feature 1"),
        (lambda: RBF([1.0, np.nan]), "gamma must be an array .* of finite numbers"),
        (lambda: RBF([[1.0]]), "gamma must be an array"),
        (lambda: Laplacian([]), "gamma must be an array"),
        (lambda: Laplacian(["wide"]), "gamma must hold numbers"),
        (lambda: RBF(GAMMA)(X[:, :2], Z[:, :2]), "gamma is for 3 features, but the rows have 2"),
        (lambda: RBF(GAMMA)(X, Z[:, :2]), "gamma is for 3 features, but the rows have 2"),
        (lambda: Mahalanobis(MATRIX)(X[:, :2], Z), "Mahalanobis is for 3 features"),
        (lambda: Mahalanobis(), "a matrix or a factor"),
        (lambda: Mahalanobis(MATRIX, ROOT), "a matrix or a factor"),
        (lambda: Mahalanobis(ROOT), "matrix must be symmetric"),
        (lambda: Mahalanobis(-MATRIX), "matrix must be positive semidefinite"),
        (lambda: Mahalanobis(MATRIX[:2]), "matrix must be square"),
        (lambda: Mahalanobis(GAMMA), "matrix must be an array"),
        (lambda: Mahalanobis(factor=np.zeros((3, 1))), "factor must not be zero"),
        (lambda: resolve_kernel("rbf", X, gamma=GAMMA[:2]), "gamma is for 2 features"),
        (lambda: resolve_kernel("poly", X, gamma=GAMMA), "gamma must be 'scale'.*kernel='poly'"),
        (lambda: resolve_kernel("rbf", X, gamma="wide"), "gamma must be 'scale'"),
    ],
)
def test_bad_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Every estimator: what it gives is what it gives with gamma 1 on scaled columns.

ROWS = RNG.normal(size=(40, 3))
NUMBERS = np.sin(2 * ROWS[:, 0]) + ROWS[:, 1]
LABELS = (NUMBERS > 0).astype(int)
PAIRS = np.column_stack([NUMBERS, ROWS[:, 2], ROWS[:, 0]])
FEW = {"n_components": 6}
MOVED = {**FEW, "random_state": 0, "max_iter": 5}

# Estimator, targets, and how far rounding may take the outputs apart.
ESTIMATORS = [
    (pursuit.KernelMatchingPursuitClassifier(6), LABELS, 1e-9),
    (pursuit.KernelMatchingPursuitRegressor(6), NUMBERS, 1e-9),
    (pursuit.KernelMatchingPursuitClassifierCV(6, cv=2), LABELS, 1e-9),
    (pursuit.KernelMatchingPursuitRegressorCV(6, cv=2), NUMBERS, 1e-9),
    (pursuit.GreedyNystroem(n_components=6), NUMBERS, 1e-9),
    (pursuit.SparseKernelPCA(6), NUMBERS, 1e-9),
    (pursuit.SparseKernelCCA(2, n_basis=10), PAIRS, 1e-8),
    (pursuit.RelevanceVectorClassifier(6), LABELS, 1e-6),
    (pursuit.RelevanceVectorRegressor(6), NUMBERS, 1e-6),
    (pursuit.ConvexNetworkClassifier(kernel="rbf"), LABELS, 1e-8),
    (pursuit.KernelCentroidClassifier(), LABELS, 1e-9),
    (pursuit.ReducedSetClassifier(6), LABELS, 1e-5),
    (pursuit.ReducedSupportVectorClassifier(6, random_state=0), LABELS, 1e-6),
    (pursuit.SparseLargeMarginClassifier(4, max_iter=0, random_state=0), LABELS, 1e-5),
    (pursuit.SparseKernelClassifier(**MOVED), LABELS, 1e-6),
    (pursuit.SparseKernelRegressor(**MOVED), NUMBERS, 1e-6),
    (pursuit.SparseKernelRegressor(**MOVED, learn_gamma=True, metric=2), NUMBERS, 1e-5),
    (pursuit.SparseKernelClassifierCV(**MOVED, cv=2, Cs=[1.0]), LABELS, 1e-6),
    (pursuit.SparseKernelRegressorCV(**MOVED, cv=2, Cs=[1.0]), NUMBERS, 1e-6),
    (pursuit.SparseOneClass(**MOVED), NUMBERS, 1e-6),
    (pursuit.KernelMetric(**FEW, n_rounds=1, random_state=0), NUMBERS, 1e-6),
]
NAMES = [f"{type(model).__name__}{i}" for i, (model, *_) in enumerate(ESTIMATORS)]


def outputs(model, rows):
    methods = ("decision_function", "score_samples", "transform", "predict")
    return getattr(model, next(name for name in methods if hasattr(model, name)))(rows)


def with_gamma(model, gamma, **changes):
    """The CCA's second view keeps what the test does not scale."""
    gamma = (gamma, GAMMA) if type(model).__name__ == "SparseKernelCCA" else gamma
    return clone(model).set_params(gamma=gamma, **changes)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "y", "precision"), ESTIMATORS, ids=NAMES)
def test_every_estimator(model, y, precision, tmp_path):
    scaled = ROWS * np.sqrt(GAMMA)
    expected = outputs(with_gamma(model, 1.0).fit(scaled, y), scaled)
    size = np.abs(expected).max()
    fitted = with_gamma(model, GAMMA).fit(ROWS, y)
    found = outputs(fitted, ROWS)
    assert_allclose(found, expected, rtol=0, atol=precision * size)
    matrix = clone(model).set_params(kernel=Mahalanobis(np.diag(GAMMA)))
    if type(model).__name__ != "SparseKernelCCA":
        assert_allclose(outputs(matrix.fit(ROWS, y), ROWS), expected, atol=precision * size)

    pursuit.save(fitted, tmp_path / "model.pursuit")
    again = pursuit.load(tmp_path / "model.pursuit")
    assert_array_equal(outputs(again, ROWS), found)
    assert "array of shape (3,)" in str(describe(tmp_path / "model.pursuit")["params"]["gamma"])
    assert_array_equal(
        np.array(again.gamma, dtype=object)[-1], GAMMA[-1] if y is not PAIRS else GAMMA
    )


@pytest.mark.parametrize(("model", "y", "precision"), ESTIMATORS, ids=NAMES)
def test_every_estimator_names_gamma(model, y, precision):
    for gamma in (GAMMA[:2], -GAMMA, [np.inf, 1.0, 1.0]):
        with pytest.raises(ValueError, match="gamma"):
            with_gamma(model, gamma).fit(ROWS, y)


@pytest.mark.parametrize("kernel", [RBF(GAMMA), Mahalanobis(MATRIX)])
def test_sparse_and_single_precision_rows(kernel):
    model = pursuit.KernelMatchingPursuitRegressor(6, kernel=kernel).fit(ROWS, NUMBERS)
    expected = model.predict(ROWS)
    for form in (sparse.csr_matrix, sparse.csr_array):
        assert_allclose(model.predict(form(ROWS)), expected, rtol=1e-10)
        assert_allclose(clone(model).fit(form(ROWS), NUMBERS).predict(ROWS), expected, rtol=1e-8)
    assert_allclose(model.predict(ROWS.astype(np.float32)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_the_numbers_of_a_kernel_are_not_rounded(dtype, tmp_path):
    model = pursuit.KernelMatchingPursuitRegressor(6, kernel=Mahalanobis(MATRIX))
    path = tmp_path / "model.pursuit"
    pursuit.save(model.fit(ROWS, NUMBERS), path)
    pursuit.save(pursuit.load(path), path, dtype=dtype)
    again = pursuit.load(path)
    assert again.kernel_ == model.kernel_ == again.expansion_.kernel
    assert np.abs(again.predict(ROWS) - model.predict(ROWS)).max() < (
        0.2 if dtype == "int8" else 1e-5
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["KernelMatchingPursuit", "SparseKernel"])
def test_searches_try_several(name, tmp_path):
    few = {"max_iter": 2, "random_state": 0, "Cs": [1.0]} if name == "SparseKernel" else {}
    model = getattr(pursuit, f"{name}RegressorCV")(5, gammas=[50 * GAMMA, GAMMA], cv=2, **few)
    model.fit(ROWS, NUMBERS)
    assert_array_equal(model.best_params_["gamma"], GAMMA)
    pursuit.save(model, tmp_path / "model.pursuit")
    again = pursuit.load(tmp_path / "model.pursuit")
    assert_array_equal(again.predict(ROWS), model.predict(ROWS))
    with pytest.raises(ValueError, match="gamma"):
        clone(model).set_params(gammas=[GAMMA, [1.0, -1.0, 1.0]]).fit(ROWS, NUMBERS)


def test_grids_keep_what_is_given():
    samples = pursuit._validation.Samples(ROWS, NUMBERS[:, None], np.ones(40))
    assert gamma_grid(None, "rbf", GAMMA, samples)[0] is GAMMA
    table = search_results([{"gamma": GAMMA}, {"gamma": 2 * GAMMA}], np.zeros((2, 2)))
    assert table["param_gamma"].shape == (2,) and table["param_gamma"][0] is GAMMA
