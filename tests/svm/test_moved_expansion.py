"""Vectors that move to where a machine's values are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits, make_moons
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, OneClassSVM

from pursuit import CompressedClassifier, CompressedRegressor, compress, load, save
from pursuit._validation import Samples
from pursuit.kernels import RBF
from pursuit.optimize import moving
from pursuit.svm import compression, moved_expansion
from pursuit.svm.from_sklearn import KernelModel, read_kernel_model
from pursuit.svm.moved_expansion import drawn_rows, move_expansion


def crescents(seed, n=300):
    """Two classes of the form of a banana, in units of their own."""
    X, y = make_moons(n, noise=0.25, random_state=seed)
    return 3.0 * X + 10.0, np.where(y, "in", "out")


@pytest.fixture(scope="module")
def moons():
    X, y = crescents(0)
    return SVC(gamma=0.4, C=100.0).fit(X, y), X, y, crescents(1)[0]


def change(small, original, fresh):
    """Root mean square change of the values on fresh rows."""
    return np.sqrt(
        np.mean((small.decision_function(fresh) - original.decision_function(fresh)) ** 2)
    )


@pytest.mark.parametrize("n_components", [6, 10])
def test_moved_vectors_are_nearest_on_fresh_rows(n_components, moons):
    svc, X, _, fresh = moons
    plain, refitted, moved = (
        compress(svc, n_components, X, refit=refit) for refit in (None, "least_squares", "move")
    )
    assert moved.n_components_ == n_components
    assert change(moved, svc, fresh) < 0.8 * change(refitted, svc, fresh)
    assert change(moved, svc, fresh) < 0.6 * change(plain, svc, fresh)
    assert 0 < moved.n_iter_ <= 100


@pytest.mark.parametrize("n_components", [10])
def test_rows_drawn_around_the_vectors_serve_where_none_are_given(n_components, moons):
    svc, _, _, fresh = moons
    plain, drawn = compress(svc, n_components), compress(svc, n_components, refit="move")
    assert change(drawn, svc, fresh) < 0.8 * change(plain, svc, fresh)
    assert not hasattr(drawn, "prediction_change_")


def test_drawn_rows_lie_around_the_rows():
    X = np.zeros((4, 50))
    X[1, 0], X[2, 0], X[3, 1] = 0.1, 100.0, 300.0
    rows = drawn_rows(X, 400, np.random.RandomState(0))
    far = np.linalg.norm(rows[:, None] - X, axis=2)
    widths, owner = (
        np.array([0.1, 0.1, 99.9, 300.0]),
        np.argmin(far / [0.1, 0.1, 99.9, 300.0], axis=1),
    )
    assert_array_equal(np.unique(owner), np.arange(4))
    for i in range(4):
        assert_allclose(np.median(far[owner == i, i]), widths[i], rtol=0.1)


def test_few_rows_are_made_up_to_many_by_drawn_ones(monkeypatch):
    X, y = load_digits(return_X_y=True)
    X, y = X / 16, y > 4
    svc = SVC(C=10).fit(X[:200], y[:200])
    left = {}
    for many in (0, 1000):
        monkeypatch.setattr(moved_expansion, "MANY_ROWS", many)
        left[many] = change(compress(svc, 20, X[:200]), svc, X[200:1200])
    assert left[1000] < 0.9 * left[0]


def test_auto_moves_gaussians_where_there_are_rows(moons):
    svc, X, y, fresh = moons
    same = [compress(svc, 8, X, refit=refit) for refit in ("auto", "move", "auto")]
    for model in same[1:]:
        assert_array_equal(model.support_vectors_, same[0].support_vectors_)
    assert_array_equal(
        compress(svc, 8).support_vectors_, compress(svc, 8, X, refit=None).support_vectors_
    )
    cubic = SVC(kernel="poly", C=10.0).fit(X - 10.0, y)
    kept = [compress(cubic, 3, X - 10.0, refit=refit).dual_coef_ for refit in ("auto", None)]
    assert_array_equal(*kept)


def test_auto_moves_no_more_coordinates_than_memory_bears(moons, monkeypatch):
    svc, X, _, _ = moons
    monkeypatch.setattr(compression, "MOST_MOVED", 15)
    seven, eight = (compress(svc, n, X) for n in (7, 8))
    assert_array_equal(seven.dual_coef_, compress(svc, 7, X, refit="move").dual_coef_)
    assert_array_equal(eight.dual_coef_, compress(svc, 8, X, refit=None).dual_coef_)


def test_order_and_repetition_of_rows_do_not_matter(moons):
    svc, X, _, fresh = moons
    once = compress(svc, 8, X)
    mixed = compress(svc, 8, np.repeat(X, 2, axis=0)[::-1])
    assert_allclose(once.decision_function(fresh), mixed.decision_function(fresh), atol=1e-6)


def test_weights_say_where_to_be_near(moons):
    svc, X, y, _ = moons
    model = read_kernel_model(svc)
    values = svc.decision_function(X)[:, None]
    left = X[:, 0] < 10.0
    errors = []
    for heavy in (1.0, 1e4):
        weights = np.where(left, heavy, 1.0)
        small, b = move_expansion(model, 5, Samples(X, values, weights))
        found = model.kernel(X, small.vectors) @ small.coefficients + b
        errors.append(np.mean((found - values)[left] ** 2))
    assert errors[1] < 0.8 * errors[0]
    doubled = move_expansion(model, 5, Samples(X, values, np.where(left, 2.0, 1.0)))[0]
    rows = np.r_[np.arange(len(X)), np.flatnonzero(left)]
    twice = move_expansion(model, 5, Samples(X[rows], values[rows], np.ones(len(rows))))[0]
    assert_allclose(doubled.vectors, twice.vectors, atol=1e-6)


def test_the_weights_of_a_fit_are_those_of_the_rows(moons):
    _, X, y, _ = moons
    weights = np.where(X[:, 0] < 10.0, 3.0, 0.5)
    svc = SVC(gamma=0.4, C=10.0)
    fitted = CompressedClassifier(svc, 6).fit(X, y, sample_weight=weights)
    svc.fit(X, y, sample_weight=weights)
    samples = Samples(X, svc.decision_function(X)[:, None], weights)
    small, b = move_expansion(read_kernel_model(svc), 6, samples)
    assert_allclose(fitted.support_vectors_, small.vectors, atol=1e-3)
    assert_allclose(fitted.intercept_, b, atol=1e-3)


def test_what_is_returned_is_measured_in_the_feature_space(moons):
    svc, X, _, _ = moons
    small = compress(svc, 8, X)
    machine = read_kernel_model(svc)
    a, beta = machine.coefficients, small.dual_coef_.T
    both, signed = np.vstack([machine.vectors, small.support_vectors_]), np.vstack([a, -beta])
    left = signed.T @ machine.kernel(both, both) @ signed
    norm = a.T @ machine.kernel(machine.vectors, machine.vectors) @ a
    assert_allclose(small.relative_error_, np.sqrt(left / norm).item(), rtol=1e-6)
    assert_allclose(small.relative_errors_, [small.relative_error_])


def test_several_classes_share_the_vectors():
    X, y = load_digits(n_class=5, return_X_y=True)
    X = X / 16
    svc = SVC(C=10).fit(X[:300], y[:300])
    plain, moved = (compress(svc, 15, X[:300], y[:300], refit=r) for r in ("least_squares", "auto"))
    fresh = X[300:800]
    svc.decision_function_shape = "ovo"
    exact = svc.decision_function(fresh)
    left = [np.mean((model.expansion_(fresh) - exact) ** 2) for model in (plain, moved)]
    assert left[1] < 0.85 * left[0]
    assert moved.dual_coef_.shape == (10, 15)
    assert_allclose(
        moved.prediction_change_, np.mean(moved.predict(X[:300]) != svc.predict(X[:300]))
    )
    assert moved.scores_ == (svc.score(X[:300], y[:300]), moved.score(X[:300], y[:300]))


def test_targets_count_alike_whatever_their_units(rng):
    X = rng.uniform(-3, 3, size=(150, 2))
    Y = np.column_stack([np.sin(X[:, 0]), 1e6 * np.cos(X[:, 1]) + 5e6])
    ridge = KernelRidge(kernel="rbf", gamma=0.5, alpha=0.01).fit(X, Y)
    fresh = rng.uniform(-3, 3, size=(150, 2))
    expected = ridge.predict(fresh)
    left = {}
    for refit in ("least_squares", "move"):
        found = compress(ridge, 12, X, refit=refit).predict(fresh)
        left[refit] = np.sqrt(np.mean((found - expected) ** 2, axis=0)) / expected.std(axis=0)
    assert (left["move"] < 0.2).all()
    assert left["move"].sum() < left["least_squares"].sum()


def test_a_machine_that_needs_few_vectors_has_few(rng):
    X = rng.uniform(-1, 1, size=(100, 1))
    ridge = KernelRidge(kernel="rbf", gamma=0.1, alpha=0.1).fit(X, np.sin(X[:, 0]))
    small = compress(ridge, 40, X)
    assert small.stop_reason_ == "tol" and small.n_components_ < 10
    assert small.prediction_change_ < 1e-3
    assert compress(ridge, 1000, X).stop_reason_ == "exact"


def test_far_away_all_is_outlying(rng):
    X = rng.normal(size=(200, 3)) + 4.0
    original = OneClassSVM(nu=0.1, gamma=0.2).fit(X)
    small, refitted = (compress(original, 8, X, refit=r) for r in ("move", "least_squares"))
    assert_allclose(small.offset_, original.offset_)
    assert_array_equal(small.predict(X[:5] + 50.0), -np.ones(5))
    fresh = rng.normal(size=(500, 3)) + 4.0
    changed = [np.mean(m.predict(fresh) != original.predict(fresh)) for m in (small, refitted)]
    assert changed[0] < changed[1]


def test_other_kernels_move_when_told_to(moons):
    _, X, y, fresh = moons
    X, fresh = (X - 11) / 3, (fresh - 11) / 3
    cubic = SVC(kernel="poly", gamma=1.0, coef0=1.0, C=10.0).fit(X, y)
    moved, refitted = (compress(cubic, 4, X, refit=r) for r in ("move", "least_squares"))
    assert change(moved, cubic, fresh) < change(refitted, cubic, fresh)


def test_sparse_rows_and_vectors(moons, monkeypatch):
    _, X, y, fresh = moons
    S, dense = sparse.csr_matrix(X), SVC(gamma=0.4, C=100.0).fit(X, y)
    few = SVC(gamma=0.4, C=100.0).fit(S, y)
    assert change(compress(few, 8, S), compress(dense, 8, X), fresh) < 0.05
    assert compress(few, 8, refit="move").support_vectors_.shape == (8, 2)
    monkeypatch.setattr(moved_expansion, "MOST_DENSE", 0)
    refitted = compress(few, 8, S, refit="least_squares")
    for machine in (few, dense):
        kept = compress(machine, 8, S)
        assert change(kept, dense, fresh) < 0.8 * change(refitted, dense, fresh)
    with pytest.raises(ValueError, match="needs X where the machine has many sparse vectors"):
        compress(few, 8, refit="move")


def test_large_problems_move_on_the_principal_axes_in_single_precision(rng, monkeypatch):
    axes = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    X = (rng.normal(size=(300, 12)) * np.r_[1.0, 1.0, 1.0, np.full(9, 0.02)]) @ axes + 5.0
    y = np.sign(((X - 5) @ axes.T)[:, :3].prod(axis=1))
    svc = SVC(gamma=0.5, C=10.0).fit(X, y)
    monkeypatch.setattr(moved_expansion, "CHEAP", 0.0)
    monkeypatch.setattr(moved_expansion, "MANY_ROWS", 0)
    whole = compress(svc, 25, X)
    monkeypatch.setattr(moving, "REDUCED_WORK", 0.0)
    monkeypatch.setattr(moving, "DOUBLE_WORK", 0.0)
    ranks = []
    descend = moving.descend

    def seen(problem, place, *rest, **options):
        ranks.append((place.Z.shape[1], problem.table.dtype.name))
        return descend(problem, place, *rest, **options)

    monkeypatch.setattr(moving, "descend", seen)
    reduced = compress(svc, 25, X)
    assert 50 < reduced.n_iter_ <= 100
    assert ranks == [(3, "float32"), (12, "float32")]
    assert change(reduced, svc, X) < 1.5 * change(whole, svc, X)


def test_no_iterations_leave_the_vectors_at_rows(moons, monkeypatch):
    monkeypatch.setattr(moved_expansion, "CHEAP", 0.0)
    monkeypatch.setattr(moved_expansion, "MANY_ROWS", 0)
    model = read_kernel_model(moons[0])
    values = moons[0].decision_function(moons[1])[:, None]
    samples = Samples(moons[1], values, np.ones(len(values)))
    small, _ = move_expansion(model, 8, samples, max_iter=0)
    distances = np.abs(small.vectors[:, None] - moons[1]).sum(axis=2).min(axis=1)
    assert_allclose(distances, 0.0, atol=1e-12)


def test_values_that_do_not_vary(monkeypatch):
    X = np.array([[0.0], [1.0], [2.0], [3.0], [40.0]])
    model = KernelModel("regressor", RBF(50.0), X, np.ones((5, 1)), np.zeros(1))
    samples = Samples(X, model.kernel(X, X) @ model.coefficients, np.ones(5))
    monkeypatch.setattr(moved_expansion, "MANY_ROWS", 0)
    small, b = move_expansion(model, 2, samples, equal=True)
    assert_allclose(model.kernel(X, small.vectors) @ small.coefficients + b, 1.0, atol=0.05)


@pytest.mark.parametrize(
    "model", [CompressedClassifier(n_components=6), CompressedRegressor(SVR(C=10.0), 6)]
)
def test_saved_and_loaded(model, moons, tmp_path):
    _, X, y, fresh = moons
    model.fit(X, y if isinstance(model, CompressedClassifier) else np.sin(X[:, 0]))
    save(model.set_params(estimator=None), tmp_path / "small.pursuit")
    same = load(tmp_path / "small.pursuit")
    assert_array_equal(same.predict(fresh), model.predict(fresh))
    assert_array_equal(same.expansion_(fresh), model.expansion_(fresh))
