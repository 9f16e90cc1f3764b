"""Hyperplane and convex neighbours: the chapter's definitions, known cases, edges, grids."""

import itertools
import warnings
from functools import partial

import numpy as np
import pytest
import reference_local as reference
import sklearn
from problems import awkward
from scipy import sparse
from scipy.ndimage import gaussian_filter
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import pursuit
from pursuit import (
    ConvexKNeighborsClassifier,
    HyperplaneKNeighborsClassifier,
    KernelMatchingPursuitClassifier,
    datasets,
    reference_rows,
)
from pursuit.neighbors.hyperplane import LocalRows, hull_distances, hyperplane_distances


@pytest.fixture
def clouds(rng):
    """Three classes in 12 dimensions, near bent surfaces of dimension 3; some rows twice."""
    t = rng.uniform(-1, 1, size=(180, 3))
    y = np.arange(180) % 3
    mixing = rng.normal(size=(3, 7, 12))
    features = np.column_stack([t, t**2, t[:, :1] * t[:, 1:2]])
    X = np.einsum("if,ifd->id", features, mixing[y]) + 0.02 * rng.normal(size=(180, 12)) + 3.0
    X[150:156] = X[:6]
    y[150:156] = y[:6]
    return X, y, X[::9] + 0.1 * rng.normal(size=(20, 12))


def pairs(X, y, Q, k):
    """LocalRows of every query with every class, by class."""
    for c in np.unique(y):
        found = np.array([reference.neighbors(X[y == c], q, k) for q in Q])
        yield LocalRows(np.concatenate([found, Q[:, None]], axis=1))


# Hand-worked.


def test_line_against_segment():
    """The rows (1, 0) and (3, 0) seen from (0, 2): their line is at distance 2, their segment not.

    The nearest point of the line is (0, 0), that of the segment (1, 0). With a penalty the point
    2 - t of the line, with V = (-1, 1) and a = (t/2, -t/2), costs 4 + (2 - t)^2 + lambda t^2 / 2,
    least at t = 4 / (2 + lambda).
    """
    X, y = [[1.0, 0.0], [3.0, 0.0], [0.0, -9.0], [0.0, -8.0]], [0, 0, 1, 1]
    line = HyperplaneKNeighborsClassifier(2, alpha=0.0).fit(X, y)
    segment = ConvexKNeighborsClassifier(2).fit(X, y)
    np.testing.assert_allclose(line._outputs(np.array([[0.0, 2.0]])), [[-4.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(segment._outputs(np.array([[0.0, 2.0]])), [[-5.0, -100.0]])
    assert line.predict([[0.0, 2.0]]) == 1 and segment.predict([[0.0, 2.0]]) == 0
    penalised = HyperplaneKNeighborsClassifier(2, alpha=6.0).fit(X, y)
    t = 4 / 8
    expected = 4 + (2 - t) ** 2 + 6 * t**2 / 2
    np.testing.assert_allclose(penalised._outputs(np.array([[0.0, 2.0]]))[0, 0], -expected)


def test_inside_a_triangle_and_on_its_corner():
    X = np.array([[0.0, 0.0, 1.0], [4.0, 0.0, 1.0], [0.0, 4.0, 1.0], [9.0, 9.0, 9.0]])
    model = ConvexKNeighborsClassifier(3).fit(X, [0, 0, 0, 1])
    queries = np.array([[1.0, 1.0, 3.0], [5.0, -1.0, 1.0], [4.0, 0.0, 1.0], [3.0, 3.0, 1.0]])
    np.testing.assert_allclose(-model._outputs(queries)[:, 0], [4.0, 2.0, 0.0, 2.0], atol=1e-13)


# Equal to the definitions.

whole_space = pytest.mark.filterwarnings("ignore:alpha=0 with:UserWarning")


@whole_space
@pytest.mark.parametrize("alpha", [0.0, 1e-9, 1e-3, 0.5, 1e5])
@pytest.mark.parametrize("k", [1, 2, 6, 12, 13, 25])
def test_hyperplane_equals_least_squares(k, alpha, clouds):
    X, y, Q = clouds
    expected = reference.table(X, y, Q, k, reference.hyperplane_distance, alpha=alpha)
    for code, local in enumerate(pairs(X, y, Q, k)):
        found = hyperplane_distances(local, k, [alpha])[0]
        np.testing.assert_allclose(found, expected[:, code], rtol=1e-9, atol=1e-11)
    model = HyperplaneKNeighborsClassifier(k, alpha=alpha).fit(X, y)
    np.testing.assert_allclose(-model._outputs(Q), expected, rtol=1e-9, atol=1e-10)


def shared(monkeypatch, at_most=np.inf):
    """Products of neighbours are shared, whatever it costs; the types that they were made in."""
    module, made = pursuit.geometry.shared_products, []
    monkeypatch.setattr(module, "GAIN", at_most)
    monkeypatch.setattr(module, "GATHERED_FEATURES", 0)
    grams = module.SharedProducts.grams
    recorded = lambda own, part: made.append(own.products.dtype) or grams(own, part)  # noqa: E731
    monkeypatch.setattr(module.SharedProducts, "grams", recorded)
    return made


@whole_space
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [1, 2, 6, 14, 25])
def test_shared_products_of_neighbours_change_nothing(k, dtype, clouds, monkeypatch):
    X, y, Q = clouds[0].astype(dtype), clouds[1], clouds[2].astype(dtype)
    planes = [HyperplaneKNeighborsClassifier(k, alpha=alpha).fit(X, y) for alpha in (0.0, 0.5)]
    for model in (*planes, ConvexKNeighborsClassifier(k).fit(X, y)):
        one_by_one = model._outputs(Q)
        made = shared(monkeypatch)
        together = model._outputs(Q)
        monkeypatch.undo()
        atol = (1e-10 if dtype == np.float64 else 1e-4) * np.abs(one_by_one).max()
        np.testing.assert_allclose(together, one_by_one, rtol=1e-9, atol=atol)
        assert set(made) == {np.dtype(np.result_type(dtype, model._product_type))}


def test_shared_products_of_many_sizes_and_far_clusters(clouds, monkeypatch):
    X, y, Q = clouds
    X, Q = X + 50.0 * (np.arange(len(X)) % 2)[:, None], Q + 50.0 * (np.arange(len(Q)) % 2)[:, None]
    model = HyperplaneKNeighborsClassifier().fit(X, y)
    grid = pursuit.neighbors.classifiers.Grid((2, 5, 9), (0.1, 1.0))
    apart = model._values(Q, grid)
    made = shared(monkeypatch)
    np.testing.assert_allclose(model._values(Q, grid), apart, rtol=1e-10)
    assert not made  # the clusters are so far from each other that all are taken one by one
    near = model._values(25.0 + Q[::2] * 3, grid)
    assert made
    monkeypatch.undo()
    np.testing.assert_allclose(near, model._values(25.0 + Q[::2] * 3, grid), rtol=1e-8)


@whole_space
@pytest.mark.parametrize("n_components", [1, 3, 8, 40])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_leading_components(n_components, alpha, clouds):
    X, y, Q = clouds
    for k in (5, 9, 20):
        options = {"alpha": alpha, "n_components": n_components}
        expected = reference.table(X, y, Q, k, reference.hyperplane_distance, **options)
        model = HyperplaneKNeighborsClassifier(k, **options).fit(X, y)
        np.testing.assert_allclose(-model._outputs(Q), expected, rtol=1e-9, atol=1e-10)


def test_convex_equals_two_solvers(clouds):
    X, y, Q = clouds
    for k in (1, 2, 5, 14, 30):
        model = ConvexKNeighborsClassifier(k).fit(X, y)
        found = -model._outputs(Q)
        exact = reference.table(X, y, Q, k, reference.hull_distance_by_least_squares)
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-10)
    general = reference.table(X, y, Q[:8], 14, reference.hull_distance)
    model = ConvexKNeighborsClassifier(14).fit(X, y)
    np.testing.assert_allclose(-model._outputs(Q[:8]), general, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("k", [2, 6, 20])
def test_every_route_gives_the_same(k, clouds, monkeypatch):
    X, y, Q = clouds
    for local in pairs(X, y, Q, k):
        default = hyperplane_distances(local, k, [0.0, 0.2])
        monkeypatch.setattr(pursuit.neighbors.hyperplane, "EIGEN_COST", 1)
        by_eigenvalues = hyperplane_distances(local, k, [0.0, 0.2])
        monkeypatch.setattr(pursuit.neighbors.hyperplane, "CERTAIN", 1e300)
        by_singular_values = hyperplane_distances(local, k, [0.0, 0.2])
        monkeypatch.undo()
        np.testing.assert_allclose(by_eigenvalues, default, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(by_singular_values, default, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("route", ["_by_cholesky", "_by_eigenvalues"])
@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_the_fast_routes_need_no_help(route, alpha, clouds):
    X, y, Q = clouds[0][:150], clouds[1][:150], clouds[2]  # no copies
    options = [None] if route == "_by_cholesky" else [None, 2]
    for n_components in options:
        expected = reference.table(
            X, y, Q, 6, reference.hyperplane_distance, alpha=alpha, n_components=n_components
        )
        for code, local in enumerate(pairs(X, y, Q, 6)):
            centred = local.centred(6, np.float64)
            found = getattr(pursuit.neighbors.hyperplane, route)(
                centred, alpha, np.full(len(Q), 1e-6), n_components
            )
            np.testing.assert_allclose(found, expected[:, code], rtol=1e-8)
            unsure = getattr(pursuit.neighbors.hyperplane, route)(
                centred, alpha, np.full(len(Q), 1e3), n_components
            )
            assert np.isnan(unsure).all()


def test_a_hyperplane_that_is_the_whole_space_is_at_no_distance(clouds):
    X, y, Q = clouds[0][:150], clouds[1][:150], clouds[2]
    for local in pairs(X, y, Q, 13):  # 12 dimensions
        assert (hyperplane_distances(local, 13, [0.0]) < 1e-20).all()


def test_flat_neighborhoods_take_the_singular_values(rng):
    """Copies, collinear rows and a row that is all of them: least norm, rank by proportion."""
    direction = rng.normal(size=8)
    line = np.outer([0.0, 1.0, 2.0, 2.0, 5.0], direction)
    copies = np.tile(rng.normal(size=8), (5, 1))
    x = rng.normal(size=8)
    for N in (line, copies, np.vstack([line[:3], copies[:2]])):
        order = np.argsort(((N - x) ** 2).sum(axis=1), kind="stable")
        for alpha in (0.0, 1e-12, 1.0):
            local = LocalRows(np.vstack([N[order], x])[None])
            found = hyperplane_distances(local, 5, [alpha])
            expected = reference.hyperplane_distance(N, x, alpha)
            np.testing.assert_allclose(found, expected, rtol=1e-9)
        hull = hull_distances(LocalRows(np.vstack([N[order], x])[None]), 5)
        exact = reference.hull_distance_by_least_squares(N, x)
        np.testing.assert_allclose(hull, exact, rtol=1e-9)


@pytest.mark.parametrize("make", [HyperplaneKNeighborsClassifier, ConvexKNeighborsClassifier])
def test_float32_rows(make, clouds):
    X, y, Q = clouds
    for k in (4, 9, 20):
        model = make(k)
        if k > 12 and make is HyperplaneKNeighborsClassifier:  # or the hyperplane is all the space
            model.set_params(alpha=0.1)
        narrow = model.fit(X.astype(np.float32), y)._outputs(Q.astype(np.float32))
        wide = model.fit(X, y)._outputs(Q)
        np.testing.assert_allclose(narrow, wide, rtol=2e-3, atol=1e-4)


# Known limits.


@pytest.mark.parametrize("make", [HyperplaneKNeighborsClassifier, ConvexKNeighborsClassifier])
def test_one_neighbor_is_the_nearest_neighbor_rule(make, clouds):
    X, y, Q = clouds
    model = make(1).fit(X, y)
    nearest = KNeighborsClassifier(1).fit(X, y)
    np.testing.assert_array_equal(model.predict(Q), nearest.predict(Q))
    expected = [[((X[y == c] - q) ** 2).sum(axis=1).min() for c in range(3)] for q in Q]
    np.testing.assert_allclose(-model.decision_function(Q), expected, rtol=1e-12)


def test_a_large_penalty_is_the_nearest_local_centroid(clouds):
    X, y, Q = clouds
    model = HyperplaneKNeighborsClassifier(7, alpha=1e9).fit(X, y)
    expected = [
        [((reference.neighbors(X[y == c], q, 7).mean(axis=0) - q) ** 2).sum() for c in range(3)]
        for q in Q
    ]
    np.testing.assert_allclose(-model.decision_function(Q), expected, rtol=1e-7)


def test_the_hyperplane_is_nearer_than_the_hull_and_that_than_the_neighbor(clouds):
    X, y, Q = clouds
    plane = -HyperplaneKNeighborsClassifier(8, alpha=0.0).fit(X, y).decision_function(Q)
    hull = -ConvexKNeighborsClassifier(8).fit(X, y).decision_function(Q)
    point = -ConvexKNeighborsClassifier(1).fit(X, y).decision_function(Q)
    assert (plane <= hull + 1e-12).all() and (hull <= point + 1e-12).all()


def test_neither_order_nor_offset_nor_turns_matter(clouds, rng):
    X, y, Q = clouds
    turn = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    order = rng.permutation(len(X))
    for model in (HyperplaneKNeighborsClassifier(9, alpha=0.1), ConvexKNeighborsClassifier(9)):
        expected = model.fit(X, y).decision_function(Q)
        shuffled = model.fit(X[order], y[order]).decision_function(Q)
        np.testing.assert_allclose(shuffled, expected, rtol=1e-10, atol=1e-12)
        turned = model.fit(X @ turn, y).decision_function(Q @ turn)
        np.testing.assert_allclose(turned, expected, rtol=1e-9, atol=1e-11)
        far = model.fit(X + 1e6, y).decision_function(Q + 1e6)
        np.testing.assert_allclose(far, expected, rtol=1e-6, atol=1e-8)
        scaled = model.set_params(**({"alpha": 0.1e-8} if hasattr(model, "alpha") else {}))
        small = scaled.fit(X * 1e-4, y).decision_function(Q * 1e-4)
        np.testing.assert_allclose(small, 1e-8 * expected, rtol=1e-9, atol=1e-20)


# Edges.


def test_a_class_smaller_than_k(clouds):
    X, y, Q = clouds
    few = np.concatenate([np.flatnonzero(y == 0)[:3], np.flatnonzero(y == 1)[:1], np.arange(90)])
    few = few[(np.arange(len(few)) < 4) | (y[few] == 2)]
    for make, distance in (
        (HyperplaneKNeighborsClassifier, reference.hyperplane_distance),
        (ConvexKNeighborsClassifier, reference.hull_distance_by_least_squares),
    ):
        model = make(20)
        if hasattr(model, "alpha"):
            model.set_params(alpha=0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the hyperplane of 20 rows is all space
            found = -model.fit(X[few], y[few])._outputs(Q)
        np.testing.assert_allclose(
            found, reference.table(X[few], y[few], Q, 20, distance), rtol=1e-9, atol=1e-10
        )


@whole_space
@pytest.mark.parametrize(
    "make", [partial(HyperplaneKNeighborsClassifier, alpha=0.0), ConvexKNeighborsClassifier]
)
def test_in_several_hulls_the_nearest_centroid_decides(make):
    """15 neighbours span the plane, and all classes are at distance zero from every row of it."""
    X, y = make_blobs(300, centers=[[0, 0], [3, 0], [0, 3]], cluster_std=1.0, random_state=0)
    model = make(15).fit(X[:200], y[:200])
    values = model._outputs(X[200:])
    zero = values > -1e-9
    assert zero.all() if make is not ConvexKNeighborsClassifier else (zero.sum(axis=1) > 1).any()
    neighbors = KNeighborsClassifier(15).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > neighbors.score(X[200:], y[200:]) - 0.05
    several = zero.sum(axis=1) > 1
    for row in np.flatnonzero(several)[:10]:
        near = [reference.neighbors(X[:200][y[:200] == c], X[200 + row], 15) for c in range(3)]
        centroid = [((N.mean(axis=0) - X[200 + row]) ** 2).sum() for N in near]
        nearest = min(np.flatnonzero(zero[row]), key=lambda c: centroid[c])
        assert values[row].argmax() == nearest


def test_a_copy_of_one_row_is_at_distance_zero(clouds):
    X, y, _ = clouds
    for model in (HyperplaneKNeighborsClassifier(6, alpha=0.0), ConvexKNeighborsClassifier(6)):
        values = model.fit(X, y)._outputs(X[10:20])
        assert (values[np.arange(10), y[10:20]] == 0.0).all()
        np.testing.assert_array_equal(model.predict(X[10:20]), y[10:20])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", [HyperplaneKNeighborsClassifier, ConvexKNeighborsClassifier])
def test_degenerate_rows_give_finite_answers(make, rng):
    same = np.full((12, 3), 1e6)
    y = np.arange(12) % 2
    for X in (same, same + rng.normal(size=same.shape), np.eye(12)[:, :3], np.zeros((12, 3))):
        model = make(5).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    one_each = make(5).fit([[0.0], [4.0]], ["b", "a"])
    np.testing.assert_array_equal(one_each.predict([[1.0], [3.0], [2.0]]), ["b", "a", "a"])
    assert one_each.temperature_ == 1.0


def test_sparse_rows_and_wide_indices(clouds):
    X, y, Q = clouds
    X, Q = np.where(np.abs(X - 3) < 0.4, 0.0, X), np.where(np.abs(Q - 3) < 0.4, 0.0, Q)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for model in (HyperplaneKNeighborsClassifier(8, alpha=0.1), ConvexKNeighborsClassifier(8)):
        expected = model.fit(X, y).decision_function(Q)
        for matrix in (sparse.csr_matrix(X), wide):
            found = model.fit(matrix, y).decision_function(sparse.csr_matrix(Q))
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
        mixed = model.fit(wide[:90], y[:90]).partial_fit(X[90:], y[90:])
        np.testing.assert_allclose(mixed.decision_function(Q), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("make", [HyperplaneKNeighborsClassifier, ConvexKNeighborsClassifier])
def test_dense_and_sparse_rows_meet(make, clouds):
    X, y, Q = clouds
    X, Q = np.where(np.abs(X - 3) < 0.4, 0.0, X), np.where(np.abs(Q - 3) < 0.4, 0.0, Q)
    dense, csr = make(8).fit(X, y), make(8).fit(sparse.csr_array(X), y)
    mixed = make(8).fit(X[y != 2], y[y != 2]).partial_fit(sparse.csr_matrix(X[y == 2]), y[y == 2])
    expected = dense.decision_function(Q)
    for model in (dense, csr, mixed):
        for queries in (Q, sparse.csr_matrix(Q), sparse.csr_array(Q)):
            found = model.decision_function(queries)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(model.predict_proba(Q), dense.predict_proba(Q), rtol=1e-6)
        curve = model.validation_curve(n_neighbors=[2, 8])
        np.testing.assert_allclose(curve.errors, dense.validation_curve(n_neighbors=[2, 8]).errors)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("make", [HyperplaneKNeighborsClassifier, ConvexKNeighborsClassifier])
def test_equal_distances_do_not_go_by_the_order_of_the_rows(make, kind, rng):
    """On a grid of integers many rows are as far away as the k-th neighbour."""
    X = np.array(list(itertools.product(range(6), repeat=3)), dtype=float)
    y = rng.integers(0, 2, len(X))
    Q = X[::5] + np.array([0.5, 0.0, 0.5])
    models = []
    for _ in range(6):
        order = rng.permutation(len(X))
        models.append(make(4).fit(kind(X[order]), y[order]))
    expected = models[0].decision_function(Q)
    for model in models[1:]:
        np.testing.assert_array_equal(model.decision_function(Q), expected)
        np.testing.assert_array_equal(model.predict_proba(Q), models[0].predict_proba(Q))


def test_a_hyperplane_that_is_the_whole_space_gives_a_warning(clouds):
    X, y, Q = clouds
    for model in (
        HyperplaneKNeighborsClassifier(13, alpha=0),
        HyperplaneKNeighborsClassifier(30, alpha=0.0, n_components=12),
    ):
        with pytest.warns(UserWarning, match=r"alpha=0 with .* in 12 dimensions.*alpha='scale'"):
            model.fit(X, y)
    for parameters in ({"n_neighbors": 12}, {"n_neighbors": 13, "n_components": 11}):
        HyperplaneKNeighborsClassifier(**parameters, alpha=0.0).fit(X, y)


def test_the_default_penalty_keeps_the_classes_apart_in_low_dimension():
    """Without one all decision values are some 1e-11, and calibration falls to chance."""
    X, y = make_blobs(300, centers=[[0, 0], [3, 0], [0, 3]], cluster_std=1.0, random_state=0)
    model = HyperplaneKNeighborsClassifier(15).fit(X[:200], y[:200])
    assert np.abs(model.decision_function(X[200:])).max() > 0.1
    within = np.average([X[:200][y[:200] == c].var(axis=0).mean() for c in range(3)],
                        weights=np.bincount(y[:200]))  # fmt: skip
    np.testing.assert_allclose(model.feature_variance_, within)
    given = HyperplaneKNeighborsClassifier(15, alpha=within).fit(X[:200], y[:200])
    np.testing.assert_allclose(
        given.decision_function(X[200:]), model.decision_function(X[200:]), rtol=1e-9
    )
    calibrated = CalibratedClassifierCV(HyperplaneKNeighborsClassifier(15)).fit(X[:200], y[:200])
    for machine in (calibrated, model):
        chosen = machine.predict_proba(X[200:])[np.arange(100), y[200:]]
        assert -np.log(chosen).mean() < 0.5 * np.log(3)  # ln 3 is chance


def test_blocks_and_threads_change_nothing(clouds, monkeypatch):
    X, y, Q = clouds
    for model in (HyperplaneKNeighborsClassifier(8, alpha=0.1), ConvexKNeighborsClassifier(8)):
        expected = model.fit(X, y).decision_function(Q)
        monkeypatch.setattr(pursuit.neighbors.classifiers, "BATCH_BYTES", 1)
        monkeypatch.setattr(pursuit.geometry.nearest, "CHUNK_BYTES", 1)
        monkeypatch.setattr(pursuit.linalg.blocks, "n_threads", lambda: 4)
        with sklearn.config_context(working_memory=1):
            found = model.decision_function(Q)
        monkeypatch.undo()
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (HyperplaneKNeighborsClassifier(0), "n_neighbors"),
        (HyperplaneKNeighborsClassifier(alpha=-1.0), "alpha"),
        (HyperplaneKNeighborsClassifier(alpha=np.nan), "alpha"),
        (HyperplaneKNeighborsClassifier(alpha="auto"), "alpha must be 'scale'"),
        (HyperplaneKNeighborsClassifier(n_components=0), "n_components"),
        (ConvexKNeighborsClassifier(2.5), "n_neighbors"),
    ],
)
def test_an_error_names_the_parameter(model, name, clouds):
    X, y, Q = clouds
    with pytest.raises(ValueError, match=name):
        model.fit(X, y)
    fitted = type(model)().fit(X, y).set_params(**model.get_params())
    with pytest.raises(ValueError, match=name):
        fitted.predict(Q)


# Adding rows.


@pytest.mark.parametrize("make", [HyperplaneKNeighborsClassifier, ConvexKNeighborsClassifier])
def test_partial_fit_is_the_fit_of_all_rows(make, clouds):
    X, y, Q = clouds
    y = np.array(["zebra", "ant", "mole"])[y]
    whole = make(7).fit(X, y)
    parts = make(7).partial_fit(X[:50], y[:50])
    parts.predict_proba(Q)
    parts.partial_fit(X[50:51], y[50:51]).partial_fit(X[51:], y[51:])
    np.testing.assert_array_equal(parts.decision_function(Q), whole.decision_function(Q))
    np.testing.assert_array_equal(parts.predict_proba(Q), whole.predict_proba(Q))
    np.testing.assert_array_equal(parts.class_count_, whole.class_count_)
    assert make(7).fit(X[:9], y[:9]).fit(X, y).class_count_.sum() == len(X)


def test_classes_that_come_later(clouds):
    X, y, Q = clouds
    model = ConvexKNeighborsClassifier(5).partial_fit(X[y == 0], y[y == 0], classes=[0, 1, 2])
    values = model.decision_function(Q)
    assert np.isneginf(values[:, 1:]).all() and np.isfinite(values[:, 0]).all()
    np.testing.assert_array_equal(model.predict_proba(Q), np.eye(3)[np.zeros(len(Q), dtype=int)])
    model.partial_fit(X[y == 2], y[y == 2])
    assert (model.predict_proba(Q)[:, 1] == 0).all() and (model.predict(Q) != 1).all()
    with pytest.raises(ValueError, match="label 7"):
        model.partial_fit(X[:2], [0, 7])
    with pytest.raises(ValueError, match="classes must be the same"):
        model.partial_fit(X[:2], [0, 1], classes=[0, 1])
    open_ended = ConvexKNeighborsClassifier(5).partial_fit(X[y != 1], y[y != 1])
    open_ended.partial_fit(X[y == 1], y[y == 1])
    expected = ConvexKNeighborsClassifier(5).fit(X, y).decision_function(Q)
    np.testing.assert_array_equal(open_ended.decision_function(Q), expected)
    with pytest.raises(ValueError, match="one class only"):
        ConvexKNeighborsClassifier().partial_fit(X[:2], [1, 1])


# Probabilities.


def test_probabilities_agree_with_predict_and_fit_the_rows_left_out():
    X, y = load_iris(return_X_y=True)
    for model in (HyperplaneKNeighborsClassifier(5, alpha=0.5), ConvexKNeighborsClassifier(5)):
        model.fit(X[::2], y[::2])
        probabilities = model.predict_proba(X[1::2])
        predicted = model.classes_[probabilities.argmax(axis=1)]
        np.testing.assert_array_equal(predicted, model.predict(X[1::2]))
        values = []  # each row left out in turn, by a model of the others
        for row in range(75):
            rest = np.delete(np.arange(0, 150, 2), row)
            other = type(model)(**model.get_params()).fit(X[rest], y[rest])
            values.append(other.decision_function(X[2 * row : 2 * row + 1])[0])
        grid = np.geomspace(0.2, 5.0, 101) * model.temperature_
        doubt = np.full((75, 3), 1 / 78)
        doubt[np.arange(75), y[::2]] = 76 / 78
        losses = []
        for temperature in grid:
            scaled = np.array(values) / temperature
            scaled -= scaled.max(axis=1, keepdims=True)
            log_p = scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True))
            losses.append(-(doubt * log_p).sum())
        assert np.argmin(losses) == 50


def test_probabilities_of_two_classes_and_any_unit(clouds):
    X, y, Q = clouds
    X, y = X[y < 2], np.array(["no", "yes"])[y[y < 2]]
    model = HyperplaneKNeighborsClassifier(4, alpha=0.1).fit(X, y)
    values = model.decision_function(Q)
    assert values.shape == (20,)
    np.testing.assert_array_equal(model.predict(Q), np.where(values > 0, "yes", "no"))
    expected = 1 / (1 + np.exp(-values / model.temperature_))
    np.testing.assert_allclose(model.predict_proba(Q)[:, 1], expected, rtol=1e-9)
    large = HyperplaneKNeighborsClassifier(4, alpha=0.1e10).fit(1e5 * X, y)
    np.testing.assert_allclose(
        large.predict_proba(1e5 * Q), model.predict_proba(Q), rtol=1e-4, atol=1e-9
    )


# Grids.


@whole_space
def test_the_curve_is_that_of_one_model_after_another(clouds):
    X, y, Q = clouds
    labels = np.arange(20) % 3
    sizes, alphas = [12, 1, 5, 100], [0.0, 0.05, 3.0]
    curve = (
        HyperplaneKNeighborsClassifier()
        .fit(X, y)
        .validation_curve(Q, labels, n_neighbors=sizes, alphas=alphas)
    )
    for i, k in enumerate(sizes):
        for j, alpha in enumerate(alphas):
            model = HyperplaneKNeighborsClassifier(k, alpha=alpha).fit(X, y)
            np.testing.assert_allclose(curve.errors[i, j], 1 - model.score(Q, labels))
    convex = ConvexKNeighborsClassifier().fit(X, y)
    curve = convex.validation_curve(Q, labels, n_neighbors=sizes)
    for i, k in enumerate(sizes):
        score = ConvexKNeighborsClassifier(k).fit(X, y).score(Q, labels)
        np.testing.assert_allclose(curve.errors[i], 1 - score)
    assert convex.validation_curve(Q, labels).errors.shape == (1,)


def test_the_curve_without_rows_leaves_each_out_in_turn(clouds):
    X, y, _ = clouds
    X, y = np.vstack([X[:30], X[:30] + 0.5]), np.append(y[:30], y[1:31])
    X, y = np.vstack([X, X[:1] + 9]), np.append(y, 3)  # a class of one row
    for model in (HyperplaneKNeighborsClassifier(4, alpha=0.1), ConvexKNeighborsClassifier(4)):
        wrong = 0
        for row in range(len(X)):
            rest = np.delete(np.arange(len(X)), row)
            other = type(model)(**model.get_params()).fit(X[rest], y[rest])
            wrong += other.predict(X[row : row + 1])[0] != y[row]
        with sklearn.config_context(working_memory=1):
            curve = model.fit(X, y).validation_curve(n_neighbors=[2, 4])
        np.testing.assert_allclose(curve.errors.ravel()[1], wrong / len(X))


def test_best_parameters_go_into_set_params():
    X, y = load_digits(return_X_y=True)
    model = HyperplaneKNeighborsClassifier().fit(X[:600], y[:600])
    curve = model.validation_curve(X[600:900], y[600:900], n_neighbors=[1, 8], alphas=[1.0, 30.0])
    model.set_params(**curve.best_params)
    np.testing.assert_allclose(1 - model.score(X[600:900], y[600:900]), curve.errors.min())
    convex = ConvexKNeighborsClassifier().fit(X[:600], y[:600])
    curve = convex.validation_curve(X[600:900], y[600:900], n_neighbors=[1, 8])
    assert convex.set_params(**curve.best_params).n_neighbors == 8
    tied = pursuit.neighbors.classifiers.NeighborCurve(
        np.array([3, 5]), np.array([0.5, 1.0]), np.array([[0.2, 0.1], [0.1, 0.1]])
    )
    assert tied.best_params == {"n_neighbors": 3, "alpha": 1.0}


def test_a_grid_in_error_names_its_part(clouds):
    X, y, Q = clouds
    model = HyperplaneKNeighborsClassifier().fit(X, y)
    for arguments, name in (
        ({"n_neighbors": [3, 0]}, "n_neighbors"),
        ({"n_neighbors": []}, "n_neighbors"),
        ({"alphas": [1.0, -1.0]}, "alphas"),
        ({"alphas": []}, "alphas"),
        ({"X": Q}, "X and y"),
        ({"X": Q, "y": y}, "y has shape"),
    ):
        with pytest.raises(ValueError, match=name):
            model.validation_curve(**arguments)


def test_works_in_a_pipeline_and_a_grid_search(clouds):
    X, y, _ = clouds
    pipeline = make_pipeline(StandardScaler(), HyperplaneKNeighborsClassifier())
    grid = {"hyperplanekneighborsclassifier__n_components": [1, 3, None]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


# Reference sets.


def test_reference_rows_of_machines():
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    svc = SVC(C=10).fit(X, y)
    np.testing.assert_array_equal(reference_rows(svc), np.sort(svc.support_))
    several = OneVsRestClassifier(SVC(C=10)).fit(X, y)
    union = set().union(*(set(machine.support_) for machine in several.estimators_))
    np.testing.assert_array_equal(reference_rows(several), sorted(union))
    pursuit_model = KernelMatchingPursuitClassifier(30).fit(X, y)
    piped = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    both = reference_rows(pursuit_model, piped)
    assert set(both) == set(pursuit_model.support_) | set(piped[-1].support_)
    rows = reference_rows(svc)
    model = HyperplaneKNeighborsClassifier(8, alpha=30.0).fit(X[rows], y[rows])
    assert model.score(*(part[500:900] for part in load_digits(return_X_y=True))) > 0.9
    with pytest.raises(ValueError, match="has no support_"):
        reference_rows(KNeighborsClassifier().fit(X, y))
    with pytest.raises(ValueError, match="at least one"):
        reference_rows()


# Files and labels.


def test_save_and_load(tmp_path, clouds):
    X, y, Q = clouds
    for model in (
        HyperplaneKNeighborsClassifier(6, alpha=0.2).fit(X, np.array(["b", "a", "c"])[y]),
        ConvexKNeighborsClassifier(6).fit(sparse.csr_matrix(X.astype(np.float32)), y),
        ConvexKNeighborsClassifier(6).partial_fit(X[y == 1], y[y == 1], classes=[0, 1, 2]),
    ):
        model.predict_proba(sparse.csr_matrix(Q) if sparse.issparse(model.reference_[0]) else Q)
        pursuit.save(model, tmp_path / "model")
        same = pursuit.load(tmp_path / "model")
        np.testing.assert_array_equal(same.predict_proba(Q), model.predict_proba(Q))
        same.partial_fit(X[:5], model.classes_[y[:5]])


def test_awkward_rows_and_text_labels():
    problem = awkward()
    model = HyperplaneKNeighborsClassifier(3, alpha=0.01).fit(problem.X, problem.labels)
    np.testing.assert_array_equal(model.classes_, ["ant", "mole", "zebra"])
    codes = np.unique(problem.labels, return_inverse=True)[1]
    expected = reference.table(
        problem.X, codes, problem.X[::5] + 0.01, 3, reference.hyperplane_distance, alpha=0.01
    )
    np.testing.assert_allclose(-model._outputs(problem.X[::5] + 0.01), expected, rtol=1e-7)


def test_a_slice_of_table_11_1(data_folder):
    """Every fourth test image of USPS, smoothed; the whole of it in benchmarks/papers."""
    X, y = datasets.load("usps", "train")
    X_test, y_test = datasets.load("usps", "test")
    parts = [part.reshape(-1, 16, 16) for part in (X[:6291], X_test[2::4])]
    smooth = [gaussian_filter(part, (0, 0.75, 0.75), mode="nearest") for part in parts]
    rows, queries = (part.reshape(len(part), -1) for part in smooth)
    errors = []
    for model in (
        HyperplaneKNeighborsClassifier(1),
        HyperplaneKNeighborsClassifier(15, alpha=30.0),
        ConvexKNeighborsClassifier(20),
    ):
        errors.append((model.fit(rows, y[:6291]).predict(queries) != y_test[2::4]).sum())
    assert abs(errors[0] - 28) <= 1 and errors[1] <= 24 and errors[2] <= 23
