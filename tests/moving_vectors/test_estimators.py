import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import pursuit
from pursuit import (
    KernelMatchingPursuitClassifier,
    SparseKernelClassifier,
    SparseKernelRegressor,
    SparseLargeMarginClassifier,
)
from pursuit.kernels import RBF
from pursuit.optimize import moving as descent

IRIS, LABELS = load_iris(return_X_y=True)
ROWS = np.random.default_rng(1).permutation(len(IRIS))[:90]
X, Y = IRIS[ROWS], LABELS[ROWS]
START = X[:5] + 0.01
OPTIONS = {"max_iter": 8, "init": START, "gamma": 0.2}
CLASS_LOSSES = ["squared_error", "squared_hinge", "log_loss", "hinge", "smooth_hinge"]
NUMBER_LOSSES = ["squared_error", "huber", "absolute_error", "quantile", "poisson"]


def classifier(**changes):
    return SparseKernelClassifier(5, **{**OPTIONS, **changes})


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(X, Y)


@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_classes_by_every_loss(loss):
    labels = np.array(["b", "a", "c"])[Y]
    model = classifier(loss=loss, max_iter=4).fit(X, labels)
    assert model.score(X, labels) > 0.93
    assert model.classes_.tolist() == ["a", "b", "c"]
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert (np.diff(model.energy_path_) <= 1e-9 * model.energy_path_[0]).all()


@pytest.mark.parametrize("loss", NUMBER_LOSSES)
def test_numbers_by_every_loss(loss):
    y = np.exp(np.sin(X[:, 0]))
    model = SparseKernelRegressor(5, C=100.0, loss=loss, **OPTIONS).fit(X, y)
    assert model.score(X, y) > 0.97
    assert (np.diff(model.energy_path_) <= 1e-9 * model.energy_path_[0]).all()


def test_several_targets_share_the_vectors():
    targets = np.stack([np.sin(X[:, 0]), X[:, 1], X[:, 2] - 100.0], axis=1)
    model = SparseKernelRegressor(5, C=100.0, **OPTIONS).fit(X, targets)
    assert model.predict(X).shape == targets.shape
    assert model.dual_coef_.shape == (3, 5)
    assert model.score(X, targets) > 0.9


def test_the_hinge_loss_is_that_of_the_sparse_large_margin_classifier():
    ours = classifier(loss="hinge", C=2.0, max_iter=0).fit(X, Y)
    theirs = SparseLargeMarginClassifier(
        5, C=2.0, init=START, gamma=0.2, max_iter=0, multi_class="shared"
    ).fit(X, Y)
    assert_allclose(ours.energy_, theirs.objective_, rtol=1e-6)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_a_weight_of_two_is_the_row_twice(loss):
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = classifier(loss=loss).fit(X, Y, weights)
    repeated = classifier(loss=loss).fit(np.repeat(X, weights, 0), np.repeat(Y, weights))
    assert_allclose(weighted.energy_path_, repeated.energy_path_, rtol=1e-6)
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-4)


def test_the_order_of_the_rows_does_not_matter(fitted):
    turned = classifier().fit(X[::-1], Y[::-1])
    assert_allclose(turned.energy_path_, fitted.energy_path_, rtol=1e-8)
    assert_allclose(turned.support_vectors_, fitted.support_vectors_, atol=1e-5)


def test_float32_and_sparse_rows_give_the_same(fitted):
    single = classifier().fit(X.astype(np.float32), Y)
    assert_allclose(single.energy_path_, fitted.energy_path_, rtol=1e-4)
    rows = sparse.csr_matrix(X)
    assert_allclose(classifier().fit(rows, Y).energy_path_, fitted.energy_path_, rtol=1e-8)
    assert_allclose(fitted.decision_function(rows), fitted.decision_function(X), rtol=1e-8)


@pytest.mark.parametrize("metric", [None, "diagonal", "full", 2])
def test_metrics_are_saved_and_loaded(metric, tmp_path):
    model = SparseKernelClassifier(5, metric=metric, max_iter=3, random_state=0).fit(X, Y)
    pursuit.save(model, tmp_path / "model")
    loaded = pursuit.load(tmp_path / "model")
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert model.score(X, Y) > 0.93
    if metric is None:
        assert model.metric_ is None
    else:
        assert model.metric_.shape == (4, 2 if metric == 2 else 4)
    assert_allclose(model.feature_relevances_.sum(), 1.0)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("metric", [None, "diagonal", "full", 2])
def test_relevances_are_mean_squared_slopes_of_the_outputs(metric, kernel):
    wide, weights = np.hstack([X, np.ones((90, 1))]), np.arange(1.0, 91.0)
    model = SparseKernelClassifier(5, metric=metric, kernel=kernel, max_iter=3, random_state=0)
    outputs, h = model.fit(wide, Y, weights).decision_function, 1e-6
    slopes = [(outputs(wide + h * e) - outputs(wide - h * e)) / (2 * h) for e in np.eye(5)]
    centred = wide - np.average(wide, axis=0, weights=weights)
    shares = np.array([weights @ (slope**2).sum(axis=1) for slope in slopes])
    shares = shares * np.average(centred**2, axis=0, weights=weights)
    assert_allclose(model.feature_relevances_, shares / shares.sum(), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("metric", ["diagonal", "full"])
def test_a_metric_finds_the_feature_that_matters(metric, rng):
    rows = rng.normal(size=(400, 5))
    y = np.sin(3.0 * rows[:, 2])
    plain = SparseKernelRegressor(15, max_iter=10, random_state=0).fit(rows[:300], y[:300])
    model = SparseKernelRegressor(15, metric=metric, max_iter=10, random_state=0)
    model.fit(rows[:300], y[:300])
    assert model.feature_relevances_.argmax() == 2
    assert model.score(rows[300:], y[300:]) > plain.score(rows[300:], y[300:])
    assert model.metric_losses_.argmin() > 0


@pytest.mark.parametrize("metric", ["diagonal", "full"])
def test_a_learned_metric_goes_on_from_that_of_a_model(metric, rng):
    rows = rng.normal(size=(150, 4))
    y = np.sin(3.0 * rows[:, 2])
    options = {"metric": metric, "max_iter": 5, "random_state": 0}
    first = SparseKernelRegressor(8, **options).fit(rows, y)
    model = SparseKernelRegressor(8, init=first, **options).fit(rows, y)
    assert len(model.metric_losses_) == 2
    assert model.metric_losses_[0] < 0.5 * first.metric_losses_[0]
    for other in ({"diagonal": "full", "full": "diagonal"}[metric], 2):
        start = clone(first).set_params(metric=other).fit(rows, y)
        assert len(SparseKernelRegressor(8, init=start, **options).fit(rows, y).metric_losses_) == 4


def test_gamma_moves(fitted):
    model = classifier(learn_gamma=True).fit(X, Y)
    assert model.kernel_.gamma != fitted.kernel_.gamma
    assert model.energy_ < fitted.energy_
    with pytest.raises(ValueError, match="learn_gamma=True, but"):
        classifier(learn_gamma=True, kernel="linear").fit(X, Y)


@pytest.mark.parametrize("kernel", ["laplacian", "poly", "cosine_polynomial", RBF(0.2)])
def test_kernels_with_a_derivative(kernel):
    model = classifier(kernel=kernel, max_iter=4).fit(X, Y)
    assert model.score(X, Y) > 0.9
    assert model.energy_path_[-1] < model.energy_path_[0]


def test_starts(fitted):
    for init in ("random", "kmeans", "matching_pursuit"):
        model = SparseKernelClassifier(5, init=init, n_init=2, max_iter=3, random_state=0)
        assert model.fit(X, Y).score(X, Y) > 0.9
    chosen = KernelMatchingPursuitClassifier(5, gamma=0.2).fit(X, Y)
    start = classifier(init=chosen, max_iter=0).fit(X, Y)
    assert_allclose(start.support_vectors_, chosen.support_vectors_)
    again = classifier(init=fitted, max_iter=0).fit(X, Y)
    assert_allclose(again.energy_, fitted.energy_, rtol=1e-8)
    more = SparseKernelClassifier(20, init=fitted, max_iter=0, random_state=0).fit(X[:8], Y[:8])
    assert_array_equal(more.support_vectors_[:5], fitted.support_vectors_)
    assert more.n_components_ == 8


@pytest.mark.parametrize("metric", ["diagonal", "full", 2])
def test_a_start_from_a_model_with_a_metric_is_in_the_coordinates_of_x(metric):
    model = SparseKernelClassifier(5, metric=metric, max_iter=3, random_state=0).fit(X, Y)
    plain = classifier(init=model, max_iter=0).fit(X, Y)
    assert_allclose(plain.support_vectors_ @ model.metric_, model.support_vectors_, rtol=1e-6)
    narrow = classifier(init=model, max_iter=0)
    with pytest.raises(ValueError, match="init: its vectors have 4 features, X has 3"):
        narrow.fit(X[:, :3], Y)


def test_a_map_that_moves_goes_on_from_that_of_a_model():
    options = {"metric": 2, "gamma": 0.2, "random_state": 0}
    first = SparseKernelClassifier(5, max_iter=5, **options).fit(X, Y)
    again = SparseKernelClassifier(5, max_iter=3, init=first, **options).fit(X, Y)
    assert_allclose(again.energy_path_[0], first.energy_, rtol=1e-5)
    assert again.energy_ < first.energy_
    other = SparseKernelClassifier(5, max_iter=0, init=first, **{**options, "metric": 1})
    assert other.fit(X, Y).metric_.shape == (4, 1)


@pytest.mark.parametrize("metric", [None, "full", 2])
def test_a_warm_start_goes_on(metric):
    options = {"metric": metric, "max_iter": 5, "warm_start": True, "random_state": 0}
    model = SparseKernelClassifier(5, **options).fit(X, Y)
    first, kernel = model.energy_, model.kernel_
    model.fit(X, Y)
    assert_allclose(model.energy_path_[0], first, rtol=1e-5)
    assert model.energy_ <= first * (1 + 1e-5)
    assert model.kernel_ == kernel


def test_early_stopping_uses_the_scoring_of_the_user():
    model = SparseKernelClassifier(
        8, early_stopping=True, scoring="neg_log_loss", n_iter_no_change=1, max_iter=60,
        random_state=0,
    ).fit(X, Y)  # fmt: skip
    assert model.stop_reason_ in ("early_stopping", "max_iter", "tol")
    assert model.score(X, Y) > 0.93
    y = np.sin(X[:, 0])
    model = SparseKernelRegressor(8, early_stopping=True, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


def test_units_and_far_offsets(fitted):
    far = classifier(gamma=0.2, init=START + 2.0**12).fit(X + 2.0**12, Y)
    assert_allclose(far.energy_path_[:4], fitted.energy_path_[:4], rtol=1e-6)
    large = classifier(gamma=0.2 / 1e8, init=START * 1e4).fit(X * 1e4, Y)
    assert_allclose(large.energy_path_[:4], fitted.energy_path_[:4], rtol=1e-6)


def test_more_vectors_than_rows():
    with pytest.warns(ConvergenceWarning, match="n_components=50, but 6 vectors"):
        model = SparseKernelClassifier(random_state=0).fit(X[:6], np.arange(6) % 2)
    assert model.n_components_ == 6
    assert np.isfinite(model.decision_function(X)).all()


def test_equal_rows_and_dead_vectors():
    rows = np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0)
    model = SparseKernelClassifier(4, max_iter=5, random_state=0).fit(rows, np.repeat([0, 1], 10))
    assert model.score(rows, np.repeat([0, 1], 10)) == 1.0
    far = START.copy()
    far[0] += 1e4
    assert np.isfinite(classifier(init=far).fit(X, Y).decision_function(X)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
        ({"C": 0.0}, "C must be a finite number above 0"),
        ({"init": "best"}, r"init must be one of \['random', 'kmeans', 'matching_pursuit'\]"),
        ({"init": np.zeros((5, 4))}, r"init must be one of .* shape \(50, 4\), got shape \(5, 4\)"),
        ({"n_init": 0}, "n_init must be an integer of at least 1"),
        ({"max_iter": -1}, "max_iter must be an integer of at least 0"),
        ({"tol": -1.0}, "tol must be a finite number"),
        ({"metric": "round"}, "metric must be one of"),
        ({"metric": 0}, "metric must be an integer"),
        ({"metric": "full", "kernel": "linear"}, "metric='full' needs the rbf"),
        ({"validation_fraction": 1.0}, "validation_fraction must be"),
        ({"early_stopping": "loo"}, "early_stopping must be one of"),
        ({"loss": "doom2"}, "loss='doom2' is not convex"),
        ({"loss": "huber"}, "loss='huber' is for a regressor"),
        ({"kernel": "precomputed"}, "kernel='precomputed' holds no rows"),
        ({"kernel": lambda X, Z: X @ Z.T}, "kernel: .*has no derivative"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        SparseKernelClassifier(**options).fit(X, Y)


@pytest.mark.parametrize("metric", [None, "diagonal"])
def test_first_iterations_on_the_leading_axes(metric, rng, monkeypatch):
    monkeypatch.setattr(descent, "REDUCED_WORK", 0.0)
    sources = rng.normal(size=(300, 2))
    rows = sources @ rng.normal(size=(2, 10)) + 1e-3 * rng.normal(size=(300, 10))
    rows = np.column_stack([rows, np.full(300, 7.0)])
    y = np.sin(2.0 * sources[:, 0])
    model = SparseKernelRegressor(15, metric=metric, max_iter=20, random_state=0).fit(rows, y)
    assert model.n_iter_ <= 5
    assert model.score(rows, y) > 0.9
    assert_allclose(model.support_vectors_[:, 10], 7.0 * (metric is None), atol=1e-9)


def test_growing_parts_of_the_rows(rng, monkeypatch):
    monkeypatch.setattr(descent, "FIRST_PART", 50)
    rows = rng.normal(size=(300, 2))
    y = rows[:, 0] > rows[:, 1] ** 2
    options = {"max_iter": 10, "random_state": 0}
    model = SparseKernelClassifier(6, **options).fit(rows, y)
    assert model.score(rows, y) > 0.95
    assert descent.parts(300, 6) == [50]


@pytest.fixture
def wide(rng):
    """Fewer rows than features, of which some are constant."""
    sources = rng.normal(size=(60, 5))
    rows = sources @ rng.normal(size=(5, 400)) + 0.1 * rng.normal(size=(60, 400)) + 2.0
    rows[:, 7] = 3.0
    return rows, np.sin(sources[:, 0]) + 0.5 * sources[:, 1]


@pytest.mark.parametrize("options", [{}, {"learn_gamma": True}, {"early_stopping": True}])
def test_fewer_rows_than_features_move_in_their_span(wide, options, monkeypatch):
    """The energy is that of all features, and as low as a descent in all of them comes."""
    monkeypatch.setattr(descent, "SPAN_WORK", 0.0)
    rows, y = wide
    axes = []
    found = descent.span_axes

    def noted(*args):
        axes.append(found(*args))
        return axes[-1]

    monkeypatch.setattr(descent, "span_axes", noted)
    options = {"max_iter": 100, "random_state": 0, "tol": 1e-9, **options}
    model = SparseKernelRegressor(6, **options).fit(rows, y)
    assert axes[0] is not None and axes[0].shape[1] <= 60
    away = model.support_vectors_ - rows.mean(axis=0)
    inside = np.linalg.qr((rows - rows.mean(axis=0)).T)[0]
    assert_allclose(away, away @ inside @ inside.T, atol=1e-9 * np.abs(away).max())
    assert_allclose(model.support_vectors_[:, 7], 3.0)
    monkeypatch.setattr(descent, "span_axes", lambda *args: None)
    everywhere = SparseKernelRegressor(6, **options).fit(rows, y)
    if not model.early_stopping:
        assert_allclose(model.energy_, everywhere.energy_, rtol=0.02)
        model.set_params(warm_start=True, max_iter=0)
        before, vectors = model.energy_, model.support_vectors_.copy()
        assert_allclose(model.fit(rows, y).energy_, before, rtol=1e-8)
        assert_allclose(model.support_vectors_, vectors, rtol=1e-9)
    assert abs(model.score(rows, y) - everywhere.score(rows, y)) < 0.02


def test_vectors_outside_of_the_span_of_the_rows_stay_there(wide, rng, monkeypatch):
    """A start of the user's need not be among the rows: then all features are looked at."""
    monkeypatch.setattr(descent, "SPAN_WORK", 0.0)
    rows, y = wide
    start = rows[:4] + rng.normal(size=(4, 400))
    start[:, 7] = 3.0  # what is constant stays so
    model = SparseKernelRegressor(4, init=start, max_iter=0).fit(rows, y)
    assert_allclose(model.support_vectors_, start)
    moved = SparseKernelRegressor(4, init=start, max_iter=5).fit(rows, y)
    assert moved.energy_ < model.energy_
    inside = np.linalg.qr((rows - rows.mean(axis=0)).T)[0]
    away = moved.support_vectors_ - rows.mean(axis=0)
    assert np.linalg.norm(away - away @ inside @ inside.T) > 10.0
