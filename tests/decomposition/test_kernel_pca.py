"""Sparse kernel PCA: against kernel PCA, the paper's equations, and rows that are no good."""

import warnings

import numpy as np
import pandas as pd
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from pursuit import SparseKernelPCA, load, save
from pursuit.bounds import compression_bound
from pursuit.decomposition.kernel_pca import bound_terms, sparse_kernel_pca
from pursuit.greedy.deflation import Deflation, selection_rule
from pursuit.kernels import RBF

RULES = ["rayleigh", "residual", "rpcholesky", "random"]
LISTED = [17, 3, 44, 8, 29, 61, 5, 70]
ALL_RULES = [*RULES, "kmeans", LISTED]
KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "gamma": 0.2, "degree": 2, "coef0": 1},
}


@pytest.fixture
def X(rng):
    return rng.normal(size=(80, 5)) * [3.0, 2.0, 1.0, 1.0, 0.5] + [0, 1, 0, -1, 2]


@pytest.fixture
def fresh(rng):
    return np.random.default_rng(1).normal(size=(30, 5)) * 2


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:500] / 16


@pytest.fixture(scope="module")
def clusters():
    """Clusters of ever fewer rows: with their number the residual falls ever slower."""
    rng = np.random.default_rng(2)
    labels = np.minimum(rng.geometric(0.08, size=500), 60) - 1
    return 10 * rng.random((60, 3))[labels] + 0.15 * rng.normal(size=(500, 3))


def quiet(model, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **options)


def same_up_to_sign(ours, theirs, atol):
    assert_allclose(np.abs(ours), np.abs(theirs), atol=atol)
    assert_allclose(ours * np.sign((ours * theirs).sum(axis=0)), theirs, atol=atol)


# Kernel PCA


@pytest.mark.parametrize("selection", ["rayleigh", "residual", "random"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_rows_are_kernel_pca(X, fresh, kernel, selection):
    options = KERNELS[kernel]
    theirs = KernelPCA(10 if kernel != "linear" else 5, **options).fit(X)
    ours = SparseKernelPCA(80, center=True, selection=selection, random_state=0, **options)
    quiet(ours, X)
    n = theirs.eigenvalues_.size
    scale = np.sqrt(theirs.eigenvalues_[0])
    assert_allclose(ours.explained_variance_[:n], theirs.eigenvalues_ / 80, rtol=1e-6)
    same_up_to_sign(ours.transform(X)[:, :n], theirs.transform(X), 1e-6 * scale)
    same_up_to_sign(ours.transform(fresh)[:, :n], theirs.transform(fresh), 1e-6 * scale)


def test_all_rows_and_all_components(X, fresh):
    """Of 80 centred rows 79 components have a variance, down to 1e-6 of the largest here."""
    theirs = KernelPCA(79, kernel="rbf", gamma=0.3).fit(X)
    ours = SparseKernelPCA(80, gamma=0.3, center=True).fit(X)
    assert ours.explained_variance_[79] < 1e-12
    same_up_to_sign(ours.transform(fresh)[:, :79], theirs.transform(fresh), 1e-6)


def test_weights_are_kernel_pca_of_repeated_rows(X, fresh, rng):
    weights = rng.integers(0, 4, size=80)
    theirs = KernelPCA(6, kernel="rbf", gamma=0.1).fit(np.repeat(X, weights, axis=0))
    ours = SparseKernelPCA(80, gamma=0.1, center=True)
    quiet(ours, X, sample_weight=weights)
    same_up_to_sign(ours.transform(fresh)[:, :6], theirs.transform(fresh), 1e-6)
    assert_allclose(ours.explained_variance_[:6], theirs.eigenvalues_ / weights.sum(), rtol=1e-8)


# The paper's equations


def projection(model, A, B):
    """Equation 5 between rows A and B."""
    kernel, Z = model.kernel_, model.support_vectors_
    return kernel(A, Z) @ np.linalg.solve(kernel(Z, Z), kernel(Z, B))


@pytest.mark.parametrize("selection", ALL_RULES, ids=str)
@pytest.mark.parametrize("kernel", KERNELS)
def test_inner_products_are_those_of_the_projections(X, fresh, kernel, selection):
    n = 4 if kernel == "linear" else 8
    if selection is LISTED:
        selection = LISTED[:n]
    model = SparseKernelPCA(n, selection=selection, random_state=0, **KERNELS[kernel]).fit(X)
    Z = model.transform(fresh)
    assert Z.shape == (30, n) and Z.dtype == np.float64
    K = model.kernel_(fresh, fresh)
    assert_allclose(Z @ Z.T, projection(model, fresh, fresh), atol=1e-8 * K.max())
    explicit = np.diag(K) - np.diag(projection(model, fresh, fresh))
    residual = model.residual(fresh)
    assert (residual >= 0).all()
    assert_allclose(residual, explicit, atol=1e-8 * K.max())
    inside = model.residual(model.support_vectors_)
    assert (inside >= 0).all()
    assert_allclose(inside, 0.0, atol=1e-9 * K.max())
    assert len(model.residual_path_) == n
    assert_allclose(model.residual_path_[-1], model.residual(X).mean(), rtol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("selection", ALL_RULES, ids=str)
def test_columns_are_principal_axes(X, rng, selection, center, weighted):
    weights = rng.integers(1, 4, size=80) if weighted else np.ones(80)
    model = SparseKernelPCA(8, gamma=0.1, selection=selection, center=center, random_state=0)
    Z = model.fit(X, sample_weight=weights).transform(X)
    second = (Z.T * weights) @ Z / weights.sum()
    assert_allclose(second, np.diag(model.explained_variance_), atol=1e-10)
    assert (np.diff(model.explained_variance_) < 0).all()
    assert (model.explained_variance_ >= 0).all()
    mean = np.average(Z, axis=0, weights=weights)
    if center:
        assert_allclose(mean, 0.0, atol=1e-10)
    else:
        assert np.abs(mean).max() > 0.1
    total = model.explained_variance_.sum() + model.residual_path_[-1]
    if not center:
        assert_allclose(total, 1.0, rtol=1e-9)


@pytest.mark.parametrize("selection", ALL_RULES, ids=str)
@pytest.mark.parametrize("center", [False, True])
def test_residual_path(X, rng, center, selection):
    weights = rng.integers(1, 4, size=80)
    options = {"selection": selection, "center": center, "random_state": 0}
    model = SparseKernelPCA(8, gamma=0.1, **options)
    model.fit(X, sample_weight=weights)
    staged = list(model.staged_residual(X))
    assert len(staged) == 8
    for n, residual in enumerate(staged, start=1):
        shorter = model.truncate(n).residual(X)
        assert_allclose(residual, shorter, atol=1e-10)
        assert_allclose(model.residual_path_[n - 1], np.average(shorter, weights=weights))
    assert (np.diff(model.residual_path_) < 0).all()
    inside = np.array(list(model.staged_residual(model.support_vectors_)))
    assert (inside >= 0).all()
    assert_allclose(inside.T[np.triu_indices(8)], 0.0, atol=1e-10)


def test_the_sign_of_an_axis_is_that_of_its_largest_entry(X):
    model = SparseKernelPCA(8, gamma=0.1).fit(X)
    axes = model._rotation
    assert (axes[np.abs(axes).argmax(axis=0), np.arange(8)] > 0).all()


# Selections


def test_rayleigh_is_algorithm_1(X, rng):
    weights = rng.uniform(0.5, 2.0, size=80)
    naive = reference.deflation(RBF(0.1)(X, X), weights, 12)
    model = SparseKernelPCA(12, gamma=0.1).fit(X, sample_weight=weights)
    assert_array_equal(model.support_, naive.picks)
    assert_allclose(model.residual_path_, naive.traces / weights.sum(), rtol=1e-9)
    assert_array_equal(model.support_vectors_, X[naive.picks])


@pytest.mark.parametrize("selection", RULES)
def test_each_rule_is_that_of_the_engine(X, selection):
    model = SparseKernelPCA(10, gamma=0.1, selection=selection, random_state=4).fit(X)
    deflation = Deflation(RBF(0.1), X, np.ones(80))
    rule = selection_rule(deflation, selection, np.random.RandomState(4))
    subspace = sparse_kernel_pca(deflation, 10, rule)
    assert_array_equal(model.support_, subspace.picks)
    assert_allclose(subspace.factor.T @ subspace.factor, RBF(0.1)(*[X[subspace.picks]] * 2))
    assert_array_equal(np.tril(subspace.factor, -1), np.zeros((10, 10)))


def test_candidates(X):
    """They are drawn if given, and 59 if the kernel matrix does not fit."""

    def support(**options):
        return SparseKernelPCA(10, gamma=0.1, random_state=3, **options).fit(X).support_.tolist()

    assert support(n_candidates=10) != support()
    assert support(n_candidates=80) == support()
    with config_context(working_memory=0.04):
        assert support() == support(n_candidates=59)
    assert support() != support(n_candidates=59)


def test_listed_rows(X):
    model = SparseKernelPCA(6, gamma=0.1, selection=LISTED).fit(X)
    assert_array_equal(model.support_, LISTED[:6])
    with pytest.warns(ConvergenceWarning, match="n_components=100, but 8 centres"):
        model = SparseKernelPCA(gamma=0.1, selection=np.array(LISTED)).fit(X)
    assert_array_equal(model.support_, LISTED)
    assert model.bound_path_.shape == (8,)


def test_kmeans_centres(X):
    model = SparseKernelPCA(7, gamma=0.1, selection="kmeans", random_state=0).fit(X)
    centres = KMeans(7, n_init=1, random_state=0).fit(X).cluster_centers_
    assert_allclose(model.support_vectors_, centres)
    assert not hasattr(model, "support_") and not hasattr(model, "bound_path_")
    assert model.residual_path_.shape == (7,)
    refitted = model.set_params(selection="residual").fit(X)
    assert refitted.bound_path_.shape == (7,)
    again = refitted.set_params(selection="kmeans").fit(X)
    assert not hasattr(again, "support_") and not hasattr(again, "bound_path_")


@pytest.mark.parametrize("selection", ["rpcholesky", "random", "kmeans"])
def test_seeds(X, selection):
    def vectors(seed):
        model = SparseKernelPCA(8, gamma=0.1, selection=selection, random_state=seed)
        return model.fit(X).support_vectors_

    assert_array_equal(vectors(0), vectors(0))
    assert_array_equal(vectors(0), vectors(np.random.RandomState(0)))
    assert not np.array_equal(vectors(0), vectors(1))


# Fewer components, and the bound


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("selection", [*RULES, LISTED], ids=str)
def test_a_truncated_model_is_a_smaller_fit(X, fresh, selection, center):
    model = SparseKernelPCA(8, gamma=0.1, selection=selection, center=center, random_state=0)
    model.fit(X)
    for n in (1, 5, 8):
        short, fitted = model.truncate(n), clone(model).set_params(n_components=n).fit(X)
        assert short.get_params() == fitted.get_params()
        assert_array_equal(short.support_, fitted.support_)
        assert_allclose(short.transform(fresh), fitted.transform(fresh), atol=1e-10)
        assert_allclose(short.residual(fresh), fitted.residual(fresh), atol=1e-10)
        for name in ("explained_variance_", "residual_path_", "bound_path_", "support_vectors_"):
            assert_allclose(getattr(short, name), getattr(fitted, name), atol=1e-12)
        assert short.n_components_ == n == len(short.get_feature_names_out())
    assert model.n_components_ == 8 and model.transform(fresh).shape == (30, 8)


def test_a_truncated_model_has_no_inverse(X):
    model = SparseKernelPCA(8, gamma=0.1, fit_inverse_transform=True).fit(X)
    before = model.inverse_transform(model.transform(X))
    short = model.truncate(3)
    assert short.fit_inverse_transform is False and model.fit_inverse_transform
    assert not hasattr(short, "inverse_transform") and not hasattr(
        SparseKernelPCA(), "inverse_transform"
    )
    assert_array_equal(model.inverse_transform(model.transform(X)), before)
    kmeans = SparseKernelPCA(8, gamma=0.1, selection="kmeans", random_state=0).fit(X)
    assert_array_equal(kmeans.truncate(3).support_vectors_, kmeans.support_vectors_[:3])


def test_bound_path_by_hand(X):
    """Corollary 1: the mean distance of the m - t rows that are not chosen."""
    for options, largest in (
        ({"gamma": 0.1}, 1.0),
        ({"kernel": "linear"}, (X**2).sum(axis=1).max()),
    ):
        model = SparseKernelPCA(4, delta=0.1, **options).fit(X)
        means = []
        for t in range(1, 5):
            others = np.delete(X, model.support_[:t], axis=0)
            means.append(model.truncate(t).residual(others).mean())
        expected = compression_bound(means, 80, delta=0.1, largest_loss=largest)
        assert_allclose(model.bound_path_, expected, rtol=1e-8)


def test_bound_path_counts_weights(X):
    weights = np.repeat([0, 1, 2, 3], 20)
    model = SparseKernelPCA(5, gamma=0.1).fit(X, sample_weight=weights)
    plain = SparseKernelPCA(5, gamma=0.1).fit(np.repeat(X, weights, axis=0))
    assert_allclose(model.bound_path_, plain.bound_path_, rtol=1e-9)


def test_bound_path_of_all_rows_ends_before_the_last():
    X = np.arange(6.0)[:, None]
    model = SparseKernelPCA(6, gamma=1.0).fit(X)
    assert model.residual_path_.shape == (6,) and model.bound_path_.shape == (5,)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("selection", RULES)
def test_the_bound_chooses_its_lowest_point(clusters, selection, center):
    options = {"gamma": 1.0, "selection": selection, "center": center, "random_state": 0}
    model = SparseKernelPCA("bound", **options).fit(clusters)
    full = SparseKernelPCA(250, **options).fit(clusters)
    n = int(full.bound_path_.argmin()) + 1
    assert model.n_components_ == n
    assert 20 < n < 200
    assert_array_equal(model.support_, full.support_[:n])
    looked = len(model.bound_path_)
    assert n <= looked < 250 and len(model.residual_path_) == looked
    assert_allclose(model.bound_path_, full.bound_path_[:looked], rtol=1e-9)
    assert_allclose(model.transform(clusters), full.truncate(n).transform(clusters), atol=1e-8)
    assert len(model.truncate(1).bound_path_) == 1


def test_the_bound_depends_on_delta(digits):
    bounds = [
        SparseKernelPCA("bound", gamma=0.01, delta=delta).fit(digits).bound_path_.min()
        for delta in (1e-9, 0.05, 0.9)
    ]
    assert bounds[0] > bounds[1] > bounds[2]


def test_the_bound_with_few_rows():
    for n in (1, 2, 3):
        model = SparseKernelPCA("bound", gamma=1.0).fit(np.arange(float(n))[:, None])
        assert model.n_components_ == 1
        assert np.isfinite(model.transform(np.ones((2, 1)))).all()
    assert quiet(SparseKernelPCA("bound", kernel="linear"), np.zeros((5, 2))).n_components_ == 0


def test_the_bound_looks_at_one_row_less_than_all():
    model = SparseKernelPCA("bound", gamma=1.0).fit(np.arange(10.0)[:, None])
    assert model.residual_path_.shape == model.bound_path_.shape == (9,)


def test_the_search_ends_no_earlier_than_it_may():
    """After 32 of 34 equal directions the second term is 0.87 of the lowest bound so far."""
    X = np.eye(34)[np.arange(408) % 34]
    model = SparseKernelPCA("bound", kernel="linear").fit(X)
    assert model.n_components_ == 34
    assert model.bound_path_[31] == model.bound_path_[:32].min() > model.bound_path_[33]


def test_the_bound_chooses_as_on_repeated_rows(clusters):
    weights = np.arange(500) % 4
    model = SparseKernelPCA("bound", gamma=1.0).fit(clusters, sample_weight=weights)
    plain = SparseKernelPCA("bound", gamma=1.0).fit(np.repeat(clusters, weights, axis=0))
    few = SparseKernelPCA("bound", gamma=1.0).fit(clusters[weights > 0])
    assert model.n_components_ == plain.n_components_ > few.n_components_
    assert_allclose(model.bound_path_, plain.bound_path_, rtol=1e-9)


def test_the_loss_of_the_bound_is_not_zero():
    terms = bound_terms(np.zeros(3), 10, np.zeros(10), 0.05)
    assert_allclose(terms, compression_bound(np.zeros(3), 10))


# The inverse


def test_the_inverse_is_that_of_kernel_pca(X, fresh):
    theirs = KernelPCA(kernel="rbf", gamma=0.3, fit_inverse_transform=True, alpha=0.1).fit(
        X - X.mean(axis=0)
    )
    ours = SparseKernelPCA(80, gamma=0.3, center=True, fit_inverse_transform=True, alpha=0.1)
    ours.fit(X)
    Z = ours.transform(fresh)
    # The last axis, along which the training rows do not vary, is none of kernel PCA's.
    Z[:, -1] = 0.0
    expected = X.mean(axis=0) + theirs.inverse_transform(theirs.transform(fresh - X.mean(axis=0)))
    assert_allclose(ours.inverse_transform(Z), expected, atol=1e-6)
    back = ours.inverse_transform(ours.transform(X))
    expected = theirs.inverse_transform(theirs.transform(X - X.mean(axis=0)))
    assert_allclose(back, X.mean(axis=0) + expected, atol=1e-6)


@pytest.mark.parametrize("options", [{"gamma": 0.3}, {"kernel": "poly", "degree": 2}])
def test_the_inverse_is_about_the_mean_of_the_rows(X, options):
    shift = 1000.0
    model = SparseKernelPCA(20, fit_inverse_transform=True, alpha=0.1, **options).fit(X)
    back = model.inverse_transform(model.transform(X))
    assert ((back - X) ** 2).sum() < ((X - X.mean(axis=0)) ** 2).sum()
    if "kernel" not in options:
        far = SparseKernelPCA(20, fit_inverse_transform=True, alpha=0.1, **options).fit(X + shift)
        assert_allclose(far.inverse_transform(far.transform(X + shift)), back + shift, atol=1e-5)
        heavy = SparseKernelPCA(20, fit_inverse_transform=True, alpha=1e9, **options)
        heavy.fit(sparse.csr_array(X))
        mean = np.broadcast_to(X.mean(axis=0), X.shape)
        assert_allclose(heavy.inverse_transform(model.transform(X)), mean, atol=1e-5)


@pytest.mark.parametrize("selection", ["rayleigh", "residual", "random", "kmeans"])
def test_an_indefinite_kernel_is_an_error(selection):
    X = np.random.default_rng(0).normal(size=(6, 3))
    model = SparseKernelPCA(
        6, kernel="sigmoid", gamma=4.0, coef0=0.0, selection=selection, random_state=0
    )
    with pytest.raises(ValueError, match=r"kernel: Sigmoid.*not positive semidefinite.* -\d"):
        model.fit(X)


def test_the_inverse_solves_its_ridge_regression(X, rng):
    weights = rng.integers(0, 3, size=80)
    model = SparseKernelPCA(9, gamma=0.1, fit_inverse_transform=True, alpha=0.3)
    model.fit(X, sample_weight=weights)
    Z = model.transform(X)
    Zc = model.transform(model.support_vectors_)
    K, Kc = RBF(0.1)(Z, Zc), RBF(0.1)(Zc, Zc)
    mean = np.average(X, axis=0, weights=weights)
    A = np.linalg.solve((K.T * weights) @ K + 0.3 * Kc, (K.T * weights) @ (X - mean))
    assert_allclose(model.inverse_transform(Z[:7]), mean + K[:7] @ A, atol=1e-7)


@pytest.mark.parametrize("selection", ["rayleigh", "kmeans"])
def test_the_inverse_reconstructs_digits(selection):
    digits = load_digits().data / 16
    train, test = digits[:1200], digits[1200:]
    model = SparseKernelPCA(100, gamma=0.02, selection=selection, random_state=0, center=True,
                            fit_inverse_transform=True).fit(train)  # fmt: skip
    error = ((model.inverse_transform(model.transform(test)) - test) ** 2).mean()
    assert error < 0.3 * ((test - train.mean(axis=0)) ** 2).mean()
    noise = np.random.default_rng(0).normal(scale=0.3, size=test.shape)
    denoised = model.inverse_transform(model.transform(test + noise))
    assert ((denoised - test) ** 2).mean() < 0.6 * (noise**2).mean()


def test_a_refit_without_inverse_has_none(X):
    model = SparseKernelPCA(5, gamma=0.1, fit_inverse_transform=True).fit(X)
    model.set_params(fit_inverse_transform=False).fit(X)
    assert not hasattr(model, "inverse_transform")


# Rows


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("selection", ["rayleigh", "residual"])
def test_weights(X, fresh, selection, center):
    weights = np.arange(80) % 3
    model = SparseKernelPCA(10, selection=selection, center=center, fit_inverse_transform=True)
    weighted = clone(model).fit(X, sample_weight=weights)
    plain = clone(model).fit(np.repeat(X, weights, axis=0))
    assert_array_equal(weighted.support_vectors_, plain.support_vectors_)
    assert_array_equal(X[weighted.support_], weighted.support_vectors_)
    assert weighted.kernel_.gamma == pytest.approx(plain.kernel_.gamma, rel=1e-12)
    for name in ("explained_variance_", "residual_path_", "bound_path_"):
        assert_allclose(getattr(weighted, name), getattr(plain, name), rtol=1e-7)
    Z = plain.transform(fresh)
    assert_allclose(weighted.transform(fresh), Z, atol=1e-8)
    assert_allclose(weighted.inverse_transform(Z), plain.inverse_transform(Z), atol=1e-6)


def test_weights_of_clusters(X, fresh):
    """A weight of zero removes a row from the clusters too."""
    weights = np.repeat([0.0, 2.0], 40)
    model = SparseKernelPCA(6, gamma=0.1, selection="kmeans", random_state=0)
    removed = clone(model).fit(X, sample_weight=weights)
    plain = clone(model).fit(X[40:])
    assert_allclose(removed.transform(fresh), plain.transform(fresh), atol=1e-8)
    assert_allclose(removed.residual_path_, plain.residual_path_, rtol=1e-9)


@pytest.mark.parametrize("selection", ALL_RULES, ids=str)
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_rows_give_the_same(X, selection, form):
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    model = SparseKernelPCA(8, selection=selection, random_state=0, fit_inverse_transform=True)
    dense, given = clone(model).fit(X), clone(model).fit(form(X))
    Z = dense.transform(X)
    assert_allclose(given.transform(form(X)), Z, atol=1e-8)
    assert_allclose(given.residual(form(X)), dense.residual(X), atol=1e-8)
    assert_allclose(given.inverse_transform(Z), dense.inverse_transform(Z), atol=1e-5)
    assert sparse.issparse(given.support_vectors_)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", KERNELS)
def test_single_precision_rows(X, kernel, form):
    single = X.astype(np.float32)
    model = SparseKernelPCA(5, fit_inverse_transform=True, **KERNELS[kernel])
    double = clone(model).fit(single.astype(np.float64))
    ours = clone(model).fit(form(single))
    Z = double.transform(single.astype(np.float64))
    scale = np.abs(Z).max()
    assert_array_equal(ours.support_, double.support_)
    assert ours.transform(form(single)).dtype == np.float64
    assert ours.support_vectors_.dtype == np.float64
    assert_allclose(ours.transform(form(single)), Z, atol=1e-8 * scale)
    residual = double.residual(single.astype(np.float64))
    assert_allclose(ours.residual(form(single)), residual, atol=1e-8 * scale**2)
    inverse = double.inverse_transform(Z)
    assert_allclose(ours.inverse_transform(Z), inverse, atol=1e-3 * np.abs(inverse).max())


@pytest.mark.parametrize("selection", RULES)
def test_block_size_changes_nothing(digits, selection):
    model = SparseKernelPCA(30, gamma=0.02, selection=selection, random_state=0,
                            fit_inverse_transform=True,
                            n_candidates=59 if selection == "rayleigh" else None)  # fmt: skip
    whole = clone(model).fit(digits)
    Z, residual = whole.transform(digits), whole.residual(digits)
    back = whole.inverse_transform(Z)
    for megabytes in (1, 0.02):
        with config_context(working_memory=megabytes):
            parts = clone(model).fit(digits)
            assert_array_equal(parts.support_, whole.support_)
            assert_allclose(parts.transform(digits), Z, atol=1e-9)
            assert_allclose(parts.residual(digits), residual, atol=1e-9)
            assert_allclose(parts.inverse_transform(Z), back, atol=1e-7)


@pytest.mark.parametrize("selection", RULES)
def test_a_far_offset_changes_nothing(rng, selection):
    X = rng.integers(-4, 5, size=(80, 4)) / 4.0
    model = SparseKernelPCA(15, gamma=0.4, selection=selection, random_state=0, center=True)
    near, far = clone(model).fit(X), clone(model).fit(X + 1e6)
    assert_array_equal(far.support_, near.support_)
    assert_allclose(far.transform(X + 1e6), near.transform(X), atol=1e-8)
    assert_allclose(far.residual(X + 1e6), near.residual(X), atol=1e-8)


def test_precomputed_kernel(X, fresh):
    kernel = RBF(0.1)
    for weights in (None, np.arange(80) % 3):
        by_rows = SparseKernelPCA(9, gamma=0.1, center=True).fit(X, sample_weight=weights)
        given = SparseKernelPCA(9, kernel="precomputed", center=True)
        given.fit(kernel(X, X), sample_weight=weights)
        assert_array_equal(given.support_, by_rows.support_)
        assert_allclose(given.transform(kernel(fresh, X)), by_rows.transform(fresh), atol=1e-9)
        assert_allclose(given.residual(kernel(X, X)), by_rows.residual(X), atol=1e-9)
        staged = zip(given.staged_residual(kernel(X, X)), by_rows.staged_residual(X), strict=True)
        for ours, theirs in staged:
            assert_allclose(ours, theirs, atol=1e-9)
        assert not hasattr(given, "support_vectors_")
        assert_allclose(given.truncate(4).transform(kernel(fresh, X)),
                        by_rows.truncate(4).transform(fresh), atol=1e-9)  # fmt: skip
    with pytest.raises(ValueError, match="square X, got shape"):
        given.residual(kernel(fresh, X))


def test_a_kernel_of_the_user(X):
    def scaled(A, B, *, factor):
        return factor * np.exp(-0.1 * ((A[:, None] - B) ** 2).sum(axis=2))

    model = SparseKernelPCA(6, kernel=scaled, kernel_params={"factor": 4.0}).fit(X)
    plain = SparseKernelPCA(6, kernel=RBF(0.1)).fit(X)
    assert_array_equal(model.support_, plain.support_)
    assert_allclose(model.transform(X), 2 * plain.transform(X), atol=1e-9)
    assert_allclose(model.bound_path_, 4 * plain.bound_path_, rtol=1e-9)


# Degenerate rows


def is_ordered_and_finite(model, X):
    Z = model.transform(X)
    assert np.isfinite(Z).all() and Z.shape == (len(X), model.n_components_)
    assert (np.diff(model.explained_variance_) <= 0).all()
    assert (model.explained_variance_ >= 0).all()
    assert (np.diff(model.residual_path_) <= 0).all()
    for path in (model.residual_path_, model.bound_path_, model.residual(X)):
        assert np.isfinite(path).all() and (path >= 0).all()
    assert np.isfinite(model.inverse_transform(Z)).all()


@pytest.mark.parametrize("selection", RULES)
@pytest.mark.parametrize(
    ("X", "options", "n"),
    [
        (np.random.default_rng(0).normal(size=(40, 3)), {"kernel": "linear"}, 3),
        (np.repeat(np.arange(5.0), 8)[:, None], {"gamma": 1.0}, 5),
        (np.array([[1.0, 2.0]]), {"gamma": 1.0}, 1),
        (np.array([[1.0, 2.0]]), {"kernel": "linear"}, 1),
        (np.full((12, 3), 7.0), {}, 1),
        (np.full((12, 3), 7.0), {"kernel": "linear"}, 1),
        (np.zeros((12, 3)), {"kernel": "linear"}, 0),
        (np.arange(12.0)[:, None], {"gamma": 2.0}, 12),
        (np.arange(12.0)[:, None], {"gamma": 1e300}, 12),
        (np.arange(12.0)[:, None], {"gamma": 1e-300}, 1),
    ],
    ids=["rank", "duplicates", "one", "one linear", "constant", "constant linear", "zero",
         "few rows", "identity", "ones"],
)  # fmt: skip
@pytest.mark.parametrize("center", [False, True])
def test_degenerate_rows(X, options, n, selection, center):
    model = SparseKernelPCA(20, selection=selection, center=center, random_state=0,
                            fit_inverse_transform=True, **options)  # fmt: skip
    message = f"n_components=20, but {n} centres were chosen"
    with pytest.warns(ConvergenceWarning, match=message), np.errstate(all="raise", under="ignore"):
        model.fit(X)
    assert model.n_components_ == n == len(model.support_)
    is_ordered_and_finite(model, X)
    if n:
        assert_allclose(model.residual(X), 0.0, atol=1e-9)


def test_no_variance_is_below_zero_by_rounding(rng):
    """Of all rows, centred, the last column is constant."""
    for _ in range(20):
        model = SparseKernelPCA(6, gamma=0.5, center=True).fit(rng.normal(size=(6, 2)))
        assert 0 <= model.explained_variance_[-1] < 1e-12


def test_more_clusters_than_distinct_rows(X):
    with pytest.warns(ConvergenceWarning, match="but 5 centres"):
        model = SparseKernelPCA(20, gamma=0.5, selection="kmeans", random_state=0)
        model.fit(np.repeat(np.arange(5.0), 8)[:, None])
    with pytest.warns(ConvergenceWarning, match="n_components=20, but 3 centres"):
        SparseKernelPCA(20, gamma=0.5, selection="kmeans").fit(np.arange(3.0)[:, None])


def test_no_warning_where_all_were_found(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseKernelPCA(10).fit(X)
        SparseKernelPCA("bound").fit(X)


# scikit-learn's customs


def test_pandas(X):
    frame = pd.DataFrame(X, columns=list("abcde"), index=np.arange(80) + 7)
    model = SparseKernelPCA(3).set_output(transform="pandas").fit(frame)
    Z = model.transform(frame)
    names = ["sparsekernelpca0", "sparsekernelpca1", "sparsekernelpca2"]
    assert list(Z.columns) == list(model.get_feature_names_out()) == names
    assert_array_equal(Z.index, frame.index)
    assert_array_equal(model.feature_names_in_, list("abcde"))
    assert model.n_features_in_ == 5
    plain = SparseKernelPCA(3).fit(X)
    assert_allclose(Z.to_numpy(), plain.transform(X))
    assert_allclose(model.residual(frame), plain.residual(X), atol=1e-12)
    assert_allclose(next(model.staged_residual(frame)), next(plain.staged_residual(X)), atol=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame[list("edcba")])


@pytest.mark.parametrize(
    "options",
    [
        {"center": True, "fit_inverse_transform": True},
        {"selection": "kmeans", "random_state": 0},
        {"selection": LISTED},
        {"n_components": "bound"},
        {"kernel": "precomputed"},
    ],
    ids=str,
)
def test_save_and_load(X, tmp_path, options):
    rows = RBF(0.1)(X, X) if options.get("kernel") == "precomputed" else X
    model = SparseKernelPCA(**{"n_components": 6, **options}).fit(rows)
    save(model, tmp_path / "model", staged=True)
    again = load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert_array_equal(again.transform(rows), model.transform(rows))
    assert_array_equal(again.residual(rows), model.residual(rows))
    assert_array_equal(again.residual_path_, model.residual_path_)
    assert_array_equal(again.truncate(2).transform(rows), model.truncate(2).transform(rows))
    if model.fit_inverse_transform:
        Z = model.transform(rows)
        assert_array_equal(again.inverse_transform(Z), model.inverse_transform(Z))


def test_a_fit_leaves_the_input_as_it_is(X):
    given, weights = X.copy(), np.arange(80.0) % 4
    kept = weights.copy()
    model = SparseKernelPCA(10, center=True, fit_inverse_transform=True)
    model.fit(given, sample_weight=weights)
    Z = model.transform(given)
    model.inverse_transform(Z)
    model.residual(given)
    list(model.staged_residual(given))
    assert_array_equal(given, X)
    assert_array_equal(weights, kept)


# Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
        ({"n_components": 2.5}, "n_components must be an integer"),
        ({"n_components": "all"}, "n_components must be an integer"),
        ({"n_components": None}, "n_components must be an integer"),
        ({"n_components": "bound", "selection": "kmeans"}, "n_components='bound' needs rows"),
        ({"n_components": "bound", "selection": [1, 2]}, "n_components='bound' needs rows"),
        ({"selection": "best"}, "selection must be one of .*'rayleigh', .*got 'best'"),
        ({"selection": None}, "selection must be one of"),
        ({"selection": [0.5, 1.0]}, "selection must be one of .* or list as integers"),
        ({"selection": [[1, 2]]}, "selection must be one of .* or list as integers"),
        ({"selection": [1, 80]}, "selection .* from 0 to 79"),
        ({"selection": [-1]}, "selection .* from 0 to 79"),
        ({"selection": [True, False]}, "selection must be one of"),
        ({"n_candidates": 0}, "n_candidates must be an integer of at least 1"),
        ({"n_candidates": 0.5}, "n_candidates must be an integer of at least 1"),
        ({"n_candidates": 5, "selection": "residual"}, "n_candidates has no meaning for sel"),
        ({"n_candidates": 5, "selection": [1, 2]}, "n_candidates has no meaning for sel"),
        ({"center": 1}, r"center must be one of \[True, False\]"),
        ({"fit_inverse_transform": "yes"}, "fit_inverse_transform must be one of"),
        ({"alpha": -1.0}, "alpha must be a finite number of at least 0"),
        ({"delta": 0.0}, "delta must be a finite number above 0 and below 1"),
        ({"delta": 1.0}, "delta must be a finite number above 0 and below 1"),
        ({"kernel": "gauss"}, "kernel must be one of"),
        ({"gamma": 0.0}, "gamma must be"),
        ({"degree": -1, "kernel": "poly"}, "degree must be"),
        ({"coef0": np.nan, "kernel": "poly"}, "coef0 must be"),
        ({"kernel_params": {"a": 1}}, "kernel_params is only for a callable kernel"),
        ({"kernel": "precomputed", "fit_inverse_transform": True}, "fit_inverse_transform needs"),
        ({"kernel": "precomputed", "selection": "kmeans"}, "selection='kmeans' needs the rows"),
        ({"kernel": "precomputed"}, r"kernel='precomputed' needs a square X, got shape \(80, 5\)"),
        ({"kernel": "sigmoid", "coef0": -9}, "kernel must be positive semidefinite"),
        ({"random_state": "x"}, "cannot be used to seed"),
    ],
    ids=str,
)
def test_errors_name_the_parameter(X, options, message):
    with pytest.raises(ValueError, match=message):
        SparseKernelPCA(**{"n_components": 5, **options}).fit(X)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(80), "sample_weight is negative at row 0"),
        (np.zeros(80), "sample_weight is zero for every row"),
        (np.ones(79), "sample_weight has shape"),
        (np.full(80, np.nan), "sample_weight contains NaN"),
    ],
)
def test_errors_of_weights(X, weights, message):
    with pytest.raises(ValueError, match=message):
        SparseKernelPCA(5).fit(X, sample_weight=weights)


def test_a_listed_row_must_have_a_weight(X):
    with pytest.raises(ValueError, match="rows of positive weight"):
        SparseKernelPCA(2, selection=[3, 4]).fit(X, sample_weight=np.arange(80) % 2)


@pytest.mark.parametrize("n", [0, 9, 2.0, "bound", None])
def test_errors_of_truncate(X, n):
    with pytest.raises(ValueError, match="n_components must be an integer from 1 to 8, got"):
        SparseKernelPCA(8).fit(X).truncate(n)


def test_errors_of_a_fitted_model(X):
    model = SparseKernelPCA(8, fit_inverse_transform=True)
    for method in ("transform", "residual", "inverse_transform", "truncate"):
        with pytest.raises(NotFittedError):
            getattr(model, method)(3 if method == "truncate" else X)
    with pytest.raises(NotFittedError):
        next(model.staged_residual(X))
    model.fit(X)
    with pytest.raises(ValueError, match="Z has 7 columns, expected 8"):
        model.inverse_transform(np.ones((3, 7)))
    with pytest.raises(ValueError, match="Z contains NaN"):
        model.inverse_transform(np.full((3, 8), np.nan))
    for method in (model.transform, model.residual):
        with pytest.raises(ValueError, match="has 4 features"):
            method(X[:, :4])


@pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
def test_theorem_1_it_is_the_algorithm_of_smola_and_schoelkopf(kernel):
    """Their algorithm 2, stated by approximations of functions, makes the same choices."""
    X = np.random.default_rng(8).normal(size=(30, 3))
    gamma = 0.4
    K = (
        reference.rbf(X, X, gamma)
        if kernel == "rbf"
        else reference.polynomial(X, X, gamma, degree=2, coef0=1.0)
    )
    basis, errors = reference.sparse_greedy_matrix_approximation(K, 7)
    model = SparseKernelPCA(7, kernel=kernel, gamma=gamma, degree=2).fit(X)
    assert_array_equal(model.support_, basis)
    assert_allclose(model.residual_path_ * 30, errors, rtol=1e-6, atol=1e-9)
