"""Sparse kernel CCA equals its plain statement, and linear CCA where that is a special case."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward
from scipy import sparse
from scipy.linalg import eigh
from sklearn import config_context
from sklearn.cross_decomposition import CCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from pursuit import load, save
from pursuit.bounds import cca_bound
from pursuit.decomposition.kernel_cca import AllScores, SparseKernelCCA, choose_pairs
from pursuit.greedy.deflation import Deflation
from pursuit.kernels import RBF, Linear


def two_views(m=150, seed=0, n_x=4, n_y=3):
    """Two nonlinear views of two signals, with noise and means far from zero."""
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=(m, 2))
    X = np.hstack([np.sin(2 * signal), signal]) @ rng.normal(size=(4, n_x))
    Y = np.hstack([signal, np.cos(signal)]) @ rng.normal(size=(4, n_y))
    X += 0.3 * rng.normal(size=X.shape) + 5.0
    Y += 0.3 * rng.normal(size=Y.shape) - 40.0
    return X, Y


def plain_choice(K_x, K_y, weights, k):
    """Step 1 on whole matrices; the pairs at which both views could be deflated."""
    K_x, K_y, picks = K_x.copy(), K_y.copy(), []
    for _ in range(k):
        weighted = weights[:, None]
        c = np.sum(weighted * K_x * K_y, axis=0)
        a, b = np.sum(weighted * K_x**2, axis=0), np.sum(weighted * K_y**2, axis=0)
        quotients = np.full(len(weights), -np.inf)
        open_pairs = np.minimum(np.diag(K_x), np.diag(K_y)) > 1e-9
        quotients[open_pairs] = c[open_pairs] / np.sqrt(a * b)[open_pairs]
        i = int(np.argmax(quotients))
        picks.append(i)
        K_x -= np.outer(K_x[:, i], K_x[:, i]) / K_x[i, i]
        K_y -= np.outer(K_y[:, i], K_y[:, i]) / K_y[i, i]
    return picks


def plain_correlations(K_x, K_y, weights, picks, alpha):
    """Step 2 as a generalised eigenproblem, in coordinates from the root of K[i, i]."""
    w = weights / weights.sum()
    sides = []
    for K in (K_x, K_y):
        values, vectors = np.linalg.eigh(K[np.ix_(picks, picks)])
        Z = K[:, picks] @ vectors / np.sqrt(values)
        sides.append(Z - w @ Z)
    (Z_x, Z_y), k = sides, len(picks)
    C = Z_x.T @ (w[:, None] * Z_y)
    left = np.block([[np.zeros((k, k)), C], [C.T, np.zeros((k, k))]])
    right = np.zeros((2 * k, 2 * k))
    right[:k, :k] = Z_x.T @ (w[:, None] * Z_x) + alpha * np.eye(k)
    right[k:, k:] = Z_y.T @ (w[:, None] * Z_y) + alpha * np.eye(k)
    return eigh(left, right, eigvals_only=True)[::-1][:k]


def classical_correlations(X, Y):
    """Canonical correlations by orthonormal bases of the centred columns."""
    Q_x, Q_y = (np.linalg.qr(Z - Z.mean(axis=0))[0] for Z in (X, Y))
    return np.linalg.svd(Q_x.T @ Q_y, compute_uv=False)


# The plain statement


@pytest.mark.parametrize("weighted", [False, True])
def test_it_equals_the_plain_statement(weighted):
    X, Y = two_views()
    X[20], Y[20] = X[3], Y[3]
    weights = np.random.default_rng(1).uniform(0.3, 3.0, len(X)) if weighted else np.ones(len(X))
    K_x, K_y = rbf_kernel(X, gamma=0.05), polynomial_kernel(Y / 40, degree=2, gamma=1.0, coef0=1.0)
    picks = plain_choice(K_x, K_y, weights, 8)
    cca = SparseKernelCCA(
        8, n_basis=8, kernel=("rbf", "poly"), gamma=[0.05, 1 / 1600], degree=2, alpha=0.02
    ).fit(X, Y, weights)
    assert_array_equal(cca.support_, picks)
    assert_array_equal(cca.x_support_, picks)
    assert_array_equal(cca.y_support_, picks)
    expected = plain_correlations(K_x, K_y, weights, picks, 0.02)
    assert_allclose(cca.correlations_, expected, atol=1e-8)


def test_many_steps_equal_the_plain_statement():
    X, Y = two_views(300, n_x=8, n_y=8)
    K_x, K_y = rbf_kernel(X, gamma=0.1), rbf_kernel(Y, gamma=0.1)
    cca = SparseKernelCCA(5, n_basis=60, gamma=0.1).fit(X, Y)
    picks = plain_choice(K_x, K_y, np.ones(300), 60)
    assert_array_equal(cca.support_, picks)
    expected = plain_correlations(K_x, K_y, np.ones(300), picks, 1e-3)
    assert_allclose(cca.correlations_, expected[:5], atol=1e-7)


def test_the_largest_quotient_is_taken_and_not_the_largest_magnitude():
    # The first row's columns are opposite in the two views, -0.6; those of the others agree, 0.45.
    x = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [1.0, -1.0]])
    y = np.array([[1.0], [-1.0], [-1.0], [-1.0], [-1.0]])
    K_x, K_y = x @ x.T, y @ y.T
    c = np.sum(K_x * K_y, axis=0) / np.sqrt(np.sum(K_x**2, axis=0) * np.sum(K_y**2, axis=0))
    assert (np.argmax(c), np.argmax(np.abs(c))) == (1, 0)
    for n_candidates in (None, 5):
        cca = SparseKernelCCA(1, n_basis=1, kernel="linear", n_candidates=n_candidates).fit(x, y)
        assert cca.support_ == [1]


def test_kept_scores_stay_exact_while_columns_shrink():
    X, Y = two_views(80)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 80)
    views = tuple(Deflation(RBF(gamma), Z, weights) for gamma, Z in ((1e-3, X), (1e-4, Y)))
    scores = AllScores(views)
    for k in range(1, 13):
        picks, _ = choose_pairs(views, scores, 1)
        assert len(picks) == 1
        both = np.flatnonzero(views[0].usable & views[1].usable)
        points, products, (a, b) = scores.of(both)
        A, B = (view.columns(points) for view in views)
        exact = weights @ (A * B) / np.sqrt((weights @ A**2) * (weights @ B**2))
        assert_allclose(products / np.sqrt(a * b), exact, atol=2e-3, err_msg=f"step {k}")
    # The columns have become so small that their norms would be rounding without computing anew.
    assert a.max() < 1e-8 * scores.weights.sum()


def test_few_columns_are_computed_anew(monkeypatch):
    computed = []

    def counting(scores, points, compute=AllScores._compute):
        computed.extend(points)
        compute(scores, points)

    monkeypatch.setattr(AllScores, "_compute", counting)
    SparseKernelCCA(2, n_basis=15, gamma=1e-3).fit(*two_views(200))
    assert 200 < len(computed) < 800


def test_a_tie_goes_to_the_lowest_index():
    for seed in range(8):
        # The same distances for each row and its mirror image.
        X, Y = (np.vstack([Z, Z[:, ::-1]]) for Z in two_views(50, seed))
        assert SparseKernelCCA(1, n_basis=1, n_candidates=None).fit(X, Y).support_[0] < 50


def test_candidates_that_are_all_rows_give_the_same_answer():
    X, Y = two_views()
    one = SparseKernelCCA(3, n_basis=10).fit(X, Y)
    other = SparseKernelCCA(3, n_basis=10, n_candidates=len(X), random_state=5).fit(X, Y)
    assert_array_equal(one.support_, other.support_)
    assert_allclose(one.correlations_, other.correlations_, rtol=1e-10)


def test_a_seed_gives_the_same_answer_and_another_seed_another():
    X, Y = two_views(400)

    def support(seed):
        return SparseKernelCCA(3, n_basis=10, n_candidates=59, random_state=seed).fit(X, Y).support_

    assert_array_equal(support(0), support(0))
    assert support(0).tolist() != support(1).tolist()


def test_59_candidates_are_drawn_where_the_matrices_do_not_fit():
    X, Y = two_views(400)
    # One of the two matrices would fit.
    with config_context(working_memory=2):
        drawn = SparseKernelCCA(3, n_basis=10, random_state=0).fit(X, Y)
    asked = SparseKernelCCA(3, n_basis=10, n_candidates=59, random_state=0).fit(X, Y)
    assert_array_equal(drawn.support_, asked.support_)
    assert drawn.support_.tolist() != SparseKernelCCA(3, n_basis=10).fit(X, Y).support_.tolist()


def test_block_size_changes_nothing():
    X, Y = two_views(100)
    cca = SparseKernelCCA(3, n_basis=10, n_candidates=90, random_state=0)
    scores = cca.fit(X, Y).transform(X, Y)
    with config_context(working_memory=0.02):
        small = cca.fit(X, Y).transform(X, Y)
    assert_allclose(small, scores, atol=1e-10)


# Linear CCA


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1.0, 1e-10])
@pytest.mark.parametrize(("n_x", "n_y"), [(4, 4), (3, 6), (6, 2), (5, 1)])
def test_a_linear_kernel_without_ridge_is_classical_cca(n_x, n_y, scale):
    X, Y = two_views(n_x=n_x, n_y=n_y)
    X, Y = scale * (X - X.mean(axis=0) + 1.0), Y - Y.mean(axis=0) - 2.0
    cca = SparseKernelCCA(6, n_basis=len(X), kernel="linear", alpha=0).fit(X, Y)
    expected = classical_correlations(X, Y)
    assert_allclose(cca.correlations_, expected, atol=1e-6)
    assert (cca.x_support_.size, cca.y_support_.size) == (n_x, n_y)
    assert_allclose(cca.score(X, Y), expected.mean(), atol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_its_scores_are_those_of_scikit_learn():
    X, Y = two_views()
    X, Y = X - 5.0, Y + 40.0
    theirs = CCA(n_components=3, tol=1e-14, max_iter=10000).fit(X, Y)
    ours = SparseKernelCCA(3, n_basis=len(X), kernel="linear", alpha=0).fit(X, Y)
    for mine, other in zip(ours.transform(X, Y), theirs.transform(X, Y), strict=True):
        other = other / other.std(axis=0)
        signs = np.sign(np.sum(mine * other, axis=0))
        assert_allclose(mine, other * signs, atol=1e-4)
    correlations = [
        np.corrcoef(*pair)[0, 1]
        for pair in zip(*np.transpose(theirs.transform(X, Y), (0, 2, 1)), strict=True)
    ]
    assert_allclose(ours.correlations_, correlations, atol=1e-6)


def test_one_column_of_targets_may_be_flat():
    X, Y = two_views()
    with pytest.warns(ConvergenceWarning, match="n_components=2, but 1 canonical"):
        flat = SparseKernelCCA(2, n_basis=4, kernel=("rbf", "linear")).fit(X, Y[:, 0])
    with pytest.warns(ConvergenceWarning):
        column = SparseKernelCCA(2, n_basis=4, kernel=("rbf", "linear")).fit(X, Y[:, :1])
    assert_array_equal(flat.transform(X, Y[:, 0]), column.transform(X, Y[:, :1]))
    # One vector spans the second view; the others are chosen for the first alone.
    assert (len(flat.x_support_), len(flat.y_support_)) == (4, 1)


def test_what_one_view_still_needs_is_chosen_by_its_rayleigh_quotient():
    X, Y = two_views()
    K = rbf_kernel(X, gamma=0.05)
    cca = SparseKernelCCA(1, n_basis=4, kernel=("rbf", "linear"), gamma=0.05).fit(X, Y[:, 0])
    mirrored = SparseKernelCCA(1, n_basis=4, kernel=("linear", "rbf"), gamma=0.05).fit(Y[:, :1], X)
    picks = [cca.support_[0]]
    for _ in range(3):
        left = K - K[:, picks] @ np.linalg.solve(K[np.ix_(picks, picks)], K[picks])
        quotients = np.sum(left**2, axis=0) / np.maximum(np.diag(left), 1e-12)
        picks.append(int(np.argmax(quotients)))
    assert_array_equal(cca.x_support_, picks)
    assert_array_equal(mirrored.y_support_, picks)


# Scores and what is kept


def test_scores_have_unit_regularised_variance_and_the_correlations():
    X, Y = two_views()
    weights = np.random.default_rng(3).uniform(0.5, 2.0, len(X))
    cca = SparseKernelCCA(4, n_basis=20, alpha=1e-9).fit(X, Y, weights)
    w = weights / weights.sum()
    f, g = cca.transform(X, Y)
    assert_allclose(w @ f, 0, atol=1e-8)
    assert_allclose(w @ g, 0, atol=1e-8)
    assert_allclose(f.T @ (w[:, None] * f), np.eye(4), atol=1e-5)
    assert_allclose(g.T @ (w[:, None] * g), np.eye(4), atol=1e-5)
    assert_allclose(f.T @ (w[:, None] * g), np.diag(cca.correlations_), atol=1e-6)
    assert (np.diff(cca.correlations_) <= 0).all()


def test_the_ridge_shrinks():
    X, Y = two_views()
    by_alpha = [
        SparseKernelCCA(3, n_basis=20, alpha=alpha).fit(X, Y).correlations_
        for alpha in (0, 1e-3, 1e-1, 10.0)
    ]
    assert (np.diff(by_alpha, axis=0) < 0).all()
    assert by_alpha[-1].max() < 0.1


def test_new_rows_need_the_chosen_ones_alone():
    X, Y = two_views()
    cca = SparseKernelCCA(3, n_basis=12).fit(X, Y)
    for Z, side in ((X, "x"), (Y, "y")):
        assert_array_equal(getattr(cca, f"{side}_support_vectors_"), Z[cca.support_])
    rows = slice(40, 60)
    f, g = cca.transform(X, Y)
    assert_allclose(cca.transform(X[rows]), f[rows], atol=1e-12)
    assert_allclose(cca.transform(X[rows], Y[rows])[1], g[rows], atol=1e-12)
    K = rbf_kernel(Y, Y[cca.support_], gamma=cca.y_kernel_.gamma)
    assert_allclose(K @ cca.y_dual_coef_ + cca.y_intercept_, g, atol=1e-8)


def test_it_finds_what_the_views_share():
    X, Y = two_views(600, n_x=6, n_y=6)
    train, test = slice(0, 400), slice(400, 600)
    cca = SparseKernelCCA(2, n_basis=60, alpha=1e-2).fit(X[train], Y[train])
    linear = CCA(n_components=2).fit(X[train], Y[train])
    f, g = linear.transform(X[test], Y[test])
    theirs = np.mean([np.corrcoef(f[:, j], g[:, j])[0, 1] for j in range(2)])
    assert cca.score(X[test], Y[test]) > max(0.8, theirs)


def test_score_is_the_mean_correlation_and_counts_constants_as_zero():
    X, Y = two_views()
    weights = np.arange(1.0, len(X) + 1)
    cca = SparseKernelCCA(2, n_basis=10).fit(X, Y)
    f, g = cca.transform(X, Y)
    expected = [np.cov(f[:, j], g[:, j], aweights=weights) for j in range(2)]
    expected = [C[0, 1] / np.sqrt(C[0, 0] * C[1, 1]) for C in expected]
    assert_allclose(cca.score(X, Y, weights), np.mean(expected))
    assert cca.score(X[:1], Y[:1]) == 0
    assert cca.score(np.repeat(X[:1], 7, axis=0), Y[:7]) == 0
    assert cca.score(X[:7], np.repeat(Y[:1], 7, axis=0)) == 0
    assert cca.set_output(transform="pandas").score(X, Y) == cca.set_output().score(X, Y)


def test_fit_transform_gives_both_views():
    X, Y = two_views()
    weights = np.arange(1.0, len(X) + 1)
    cca = SparseKernelCCA(2, n_basis=10)
    one = cca.fit_transform(X, Y, sample_weight=weights)
    assert_array_equal(one, cca.fit(X, Y, weights).transform(X, Y))
    assert [scores.shape for scores in one] == [(len(X), 2)] * 2


def test_a_grid_search_finds_alpha():
    X, Y = two_views()
    search = GridSearchCV(SparseKernelCCA(2, n_basis=20), {"alpha": [1e-3, 1e-2, 1.0]}, cv=3)
    search.fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ == search.cv_results_["mean_test_score"].max() > 0.5


def test_signs_do_not_depend_on_those_of_the_views():
    X, Y = two_views()
    cca = SparseKernelCCA(3, n_basis=10).fit(X, Y)
    largest = np.abs(cca.x_dual_coef_).argmax(axis=0)
    assert (cca.x_dual_coef_[largest, np.arange(3)] > 0).all()
    assert_allclose(SparseKernelCCA(3, n_basis=10).fit(X, -Y).transform(X), cca.transform(X))


# The bound


def test_the_bound_is_theorem_4():
    X, Y = two_views(400)
    cca = SparseKernelCCA(2, n_basis=5, error_tolerance=0.2, delta=0.1).fit(X, Y)
    f, g = cca.transform(X, Y)
    wrong = np.abs(f[:, 0] - g[:, 0]) > 0.2
    assert wrong[cca.support_].any()
    t = np.delete(wrong, cca.support_).sum()
    assert 0 < t < 395
    assert_allclose(cca.bound_, cca_bound(400, 5, t, delta=0.1))


def test_the_bound_is_infinite_where_it_is_not_defined():
    X, Y = two_views(10)
    assert SparseKernelCCA(2, n_basis=10, gamma=10.0).fit(X, Y).bound_ == np.inf
    with pytest.warns(ConvergenceWarning):
        constant = SparseKernelCCA(1, n_basis=2).fit(X, np.ones(10))
    assert constant.bound_ == np.inf


# Kinds of input


@pytest.mark.parametrize("n_candidates", [None, 1000])
def test_weights_count_rows(n_candidates):
    X, Y, _, _ = awkward(60)
    weights = np.random.default_rng(0).integers(0, 3, 60).astype(float)
    repeated = np.repeat(np.arange(60), weights.astype(int))
    cca = SparseKernelCCA(3, n_basis=12, n_candidates=n_candidates)
    one = cca.fit(X, Y, weights)
    results = one.transform(X, Y), one.bound_, one.correlations_, X[one.support_]
    other = cca.fit(X[repeated], Y[repeated])
    assert_array_equal(X[repeated][other.support_], results[3])
    assert_allclose(other.correlations_, results[2], atol=1e-9)
    assert_allclose(other.transform(X, Y), results[0], atol=1e-6)
    assert_allclose(other.bound_, results[1])


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_csr_is_dense(kernel):
    rng = np.random.default_rng(0)
    X = sparse.random(120, 30, 0.2, format="csr", random_state=0)
    Y = sparse.csr_matrix(X[:, :20] + 0.1 * sparse.random(120, 20, 0.3, random_state=1))
    weights = rng.integers(0, 3, 120)
    cca = SparseKernelCCA(3, n_basis=10, kernel=kernel)
    dense = cca.fit(X.toarray(), Y.toarray(), weights)
    scores, support = dense.transform(X.toarray(), Y.toarray()), dense.support_
    thin = cca.fit(X, Y, weights)
    assert_array_equal(thin.support_, support)
    assert sparse.issparse(thin.y_support_vectors_)
    assert_allclose(thin.transform(X, Y), scores, atol=1e-8)
    assert_allclose(thin.transform(X.toarray(), Y), scores, atol=1e-8)


def test_float32_rows():
    X, Y = two_views()
    X32, Y32 = X.astype(np.float32), Y.astype(np.float32)
    cca = SparseKernelCCA(3, n_basis=10, gamma=0.05)
    single = cca.fit(X32, Y32)
    scores, correlations, support = (
        single.transform(X32, Y32),
        single.correlations_,
        single.support_,
    )
    double = cca.fit(X32.astype(np.float64), Y32.astype(np.float64))
    assert_array_equal(double.support_, support)
    assert_allclose(double.correlations_, correlations, rtol=1e-9)
    assert_allclose(double.transform(X32, Y32), scores, atol=1e-7)
    assert scores[0].dtype == correlations.dtype == np.float64


def test_rows_far_from_the_origin():
    X, Y = two_views()
    cca = SparseKernelCCA(3, n_basis=10)
    near = cca.fit(X, Y).transform(X, Y)
    far = cca.fit(X + 1e6, Y - 1e6).transform(X + 1e6, Y - 1e6)
    assert_allclose(far, near, atol=1e-6)


def test_gamma_is_that_of_each_view():
    X, Y = two_views()
    cca = SparseKernelCCA(2, n_basis=5).fit(X, Y)
    for kernel, Z in ((cca.x_kernel_, X), (cca.y_kernel_, Y)):
        assert_allclose(kernel.gamma, 1 / (Z.shape[1] * Z.var()))


def test_arguments_of_the_kernels_may_be_pairs():
    X, Y = two_views()

    def scaled(A, B, factor):
        return factor * A @ B.T

    cca = SparseKernelCCA(
        2, n_basis=3, kernel=(scaled, Linear()), kernel_params=({"factor": 2.0}, None)
    ).fit(X, Y)
    assert cca.x_kernel_.params == {"factor": 2.0}
    assert cca.y_kernel_ == Linear()
    plain = SparseKernelCCA(
        2, n_basis=3, kernel=[scaled, "linear"], kernel_params=[{"factor": 2.0}, None]
    )
    assert_array_equal(plain.fit(X, Y).correlations_, cca.correlations_)


@pytest.mark.parametrize("csr", [False, True])
def test_precomputed_kernels_of_either_view(csr):
    X, Y = two_views(80)
    weights = np.random.default_rng(0).integers(0, 3, 80)
    K_x, K_y = RBF(0.05)(X, X), RBF(0.1)(Y, Y)
    if csr:
        K_x = sparse.csr_matrix(K_x)
    cca = SparseKernelCCA(2, n_basis=8, kernel=(RBF(0.05), RBF(0.1))).fit(X, Y, weights)
    for kernel, data in (
        ("precomputed", (K_x, K_y)),
        (("precomputed", RBF(0.1)), (K_x, Y)),
        ((RBF(0.05), "precomputed"), (X, K_y)),
    ):
        given = SparseKernelCCA(2, n_basis=8, kernel=kernel).fit(*data, weights)
        assert_array_equal(given.support_, cca.support_)
        few = [Z[:7] for Z in data]
        assert_allclose(given.transform(*few), cca.transform(X[:7], Y[:7]), atol=1e-9)
        assert hasattr(given, "x_support_vectors_") is (kernel[0] == RBF(0.05))
    with pytest.raises(ValueError, match="square y"):
        SparseKernelCCA(kernel=("rbf", "precomputed")).fit(X, Y)


def test_names_of_features():
    X, Y = two_views()
    cca = SparseKernelCCA(2, n_basis=5).set_output(transform="pandas")
    cca.fit(pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(Y))
    assert cca.feature_names_in_.tolist() == list("abcd")
    names = ["sparsekernelcca0", "sparsekernelcca1"]
    assert cca.get_feature_names_out().tolist() == names
    assert cca.transform(pd.DataFrame(X, columns=list("abcd"))).columns.tolist() == names


def test_a_saved_model_gives_the_same_scores(tmp_path):
    X, Y = two_views()
    for cca in (
        SparseKernelCCA(2, n_basis=5, kernel=("rbf", "linear"), gamma=("scale", 1.0)),
        SparseKernelCCA(2, n_basis=3, kernel=[Linear(), "precomputed"]),
    ):
        views = (X, Y @ Y.T) if cca.n_basis == 3 else (X, Y)
        cca.fit(*views)
        save(cca, tmp_path / "model.pursuit")
        again = load(tmp_path / "model.pursuit")
        assert_array_equal(again.transform(*views), cca.transform(*views))
        assert again.get_params() == cca.get_params()


# Degenerate views


def fitted(cca, X, Y):
    """Fit, with a warning; the answer is finite and ordered."""
    with pytest.warns(ConvergenceWarning):
        cca.fit(X, Y)
    for scores in cca.transform(X, Y):
        assert scores.shape == (len(X), cca.n_components_)
        assert np.isfinite(scores).all()
    assert np.isfinite(cca.correlations_).all()
    assert (np.diff(cca.correlations_) <= 0).all()
    assert np.isfinite(cca.score(X, Y))
    return cca


def test_identical_views_are_fully_correlated():
    X, _ = two_views()
    cca = SparseKernelCCA(3, n_basis=20, alpha=1e-6).fit(X, X)
    assert_allclose(cca.correlations_, 1.0, atol=1e-3)
    f, g = cca.transform(X, X)
    assert_allclose(f, g, atol=1e-6)
    assert_array_equal(cca.x_support_, cca.y_support_)
    assert_allclose(cca.score(X, X), 1.0)
    for kernel in ("rbf", "linear"):
        cca = SparseKernelCCA(3, n_basis=4, alpha=0, kernel=kernel).fit(X, X)
        assert 1 - 1e-12 < cca.correlations_.min() <= cca.correlations_.max() <= 1


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("n_candidates", [None, 59])
def test_a_constant_view_has_nothing_in_common(kernel, n_candidates):
    X, _ = two_views()
    constant = np.full((len(X), 2), 3.0)
    for views in ((X, constant), (constant, X), (constant, constant)):
        cca = fitted(
            SparseKernelCCA(2, n_basis=4, kernel=kernel, n_candidates=n_candidates), *views
        )
        assert cca.n_components_ == 0
        assert cca.score(*views) == 0


def test_a_view_of_zeros():
    X, _ = two_views()
    cca = fitted(SparseKernelCCA(2, n_basis=4, kernel="linear"), X, np.zeros((len(X), 2)))
    assert (len(cca.y_support_), cca.n_components_) == (0, 0)


@pytest.mark.parametrize("alpha", [0, 1e-3])
@pytest.mark.parametrize("n_candidates", [None, 59])
def test_fewer_distinct_rows_than_points(alpha, n_candidates):
    X, Y = two_views(7)
    X, Y = np.repeat(X, 20, axis=0), np.repeat(Y, 20, axis=0)
    cca = SparseKernelCCA(10, n_basis=30, alpha=alpha, n_candidates=n_candidates, gamma=0.05)
    cca = fitted(cca, X, Y)
    assert cca.n_basis_ == len(cca.x_support_) == len(cca.y_support_) == 7
    assert cca.n_components_ == 6


def test_views_that_see_different_rows_take_turns_whatever_their_scale():
    X, Y = two_views(60)
    X[30:], Y[:30] = 0.0, 0.0
    supports = []
    for scale in (1.0, 1e4, 1e-4):
        cca = SparseKernelCCA(1, n_basis=5, kernel="linear").fit(X, scale * Y)
        assert len(cca.x_support_) + len(cca.y_support_) == cca.n_basis_ == 5
        supports.append(cca.support_)
    assert_array_equal(supports[1], supports[0])
    assert_array_equal(supports[2], supports[0])


def test_duplicates_in_one_view_alone():
    X, Y = two_views(140)
    X = np.repeat(X[:7], 20, axis=0)
    cca = fitted(SparseKernelCCA(10, n_basis=30, gamma=0.05), X, Y)
    assert (len(cca.x_support_), len(cca.y_support_)) == (7, 30)
    assert cca.n_components_ == 6


@pytest.mark.parametrize("alpha", [0, 1e-3])
def test_a_kernel_of_low_rank(alpha):
    X, Y = two_views(n_x=3, n_y=5)
    cca = fitted(SparseKernelCCA(20, n_basis=50, kernel="linear", alpha=alpha), X, Y)
    assert (len(cca.x_support_), len(cca.y_support_)) == (3, 5)
    assert cca.n_components_ == 3
    assert set(cca.support_) == {*cca.x_support_, *cca.y_support_}
    assert cca.n_basis_ == len(cca.support_) == len(set(cca.support_))


@pytest.mark.parametrize("n_candidates", [None, 59])
def test_a_wide_kernel(n_candidates):
    X, Y = two_views(400)
    cca = SparseKernelCCA(5, n_basis=100, gamma=1e-5, n_candidates=n_candidates, random_state=0)
    cca = fitted(cca, X, Y)
    assert 5 < cca.n_basis_ < 100


def test_a_kernel_that_is_the_identity():
    X, Y = two_views()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cca = SparseKernelCCA(3, n_basis=10, gamma=1e6).fit(X, Y)
    assert cca.support_.tolist() == list(range(10))
    assert np.isfinite(cca.transform(X, Y)).all()


def test_one_row():
    cca = fitted(SparseKernelCCA(), np.ones((1, 2)), np.ones((1, 1)))
    assert (cca.n_basis_, cca.n_components_) == (1, 0)


# Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1"),
        ({"n_basis": 2.5}, "n_basis must be an integer of at least 1"),
        ({"n_candidates": 0}, "n_candidates must be an integer of at least 1"),
        ({"alpha": -1.0}, "alpha must be a finite number of at least 0"),
        ({"error_tolerance": 0.0}, "error_tolerance must be a finite number above 0"),
        ({"delta": 1.0}, "delta must be a finite number above 0 and below 1"),
        ({"gamma": (1.0, 2.0, 3.0)}, r"gamma must be one value or a pair \(x, y\)"),
        ({"kernel": []}, "kernel must be one value or a pair"),
        ({"gamma": (1.0, "wide")}, "gamma must be 'scale', 'auto' or a positive number"),
        ({"kernel": ("rbf", "round")}, "kernel must be one of"),
    ],
)
def test_a_parameter_out_of_range_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        SparseKernelCCA(**options).fit(*two_views(20))


def test_data_that_do_not_fit_are_named():
    X, Y = two_views(20)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SparseKernelCCA().fit(X, Y[:10])
    with pytest.raises(ValueError, match="y contains NaN"):
        SparseKernelCCA().fit(X, np.where(Y == Y[0, 0], np.nan, Y))
    with pytest.raises(ValueError, match="sample_weight is negative at row 3"):
        SparseKernelCCA().fit(X, Y, np.where(np.arange(20) == 3, -1, 1))
    cca = SparseKernelCCA(2, n_basis=5).fit(X, Y)
    with pytest.raises(ValueError, match="y has 2 columns, but 3 in fit"):
        cca.transform(X, Y[:, :2])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        cca.transform(X, Y[:10])


# scikit-learn's checks


def excused(estimator):
    """``fit_transform`` gives the scores of both views, ``transform(X)`` those of one.

    So do scikit-learn's own CCA and PLS, which these checks know by name and treat apart.
    """
    checks = ("check_transformer_general", "check_transformer_data_not_an_array")
    return dict.fromkeys(checks, excused.__doc__)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        SparseKernelCCA(),
        SparseKernelCCA(2, n_basis=10, kernel=("linear", "rbf"), alpha=0.1),
    ],
    expected_failed_checks=excused,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_an_indefinite_kernel_is_an_error():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
    model = SparseKernelCCA(1, n_basis=6, kernel=("sigmoid", "rbf"), gamma=4.0, coef0=0.0)
    with pytest.raises(ValueError, match=r"kernel of X: Sigmoid.*not positive semidefinite.* -\d"):
        model.fit(X, Y)
