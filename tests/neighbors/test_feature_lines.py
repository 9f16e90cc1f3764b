"""Nearest feature lines: one line after another, known cases, edges, blocks."""

import itertools

import numpy as np
import pytest
import reference_local as reference
import sklearn
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

import pursuit
from pursuit import HyperplaneKNeighborsClassifier, NearestFeatureLineClassifier
from pursuit.neighbors import feature_lines


@pytest.fixture
def clouds(rng):
    """Three classes of 20 rows in 8 dimensions, two rows twice, two rows close; and queries."""
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 8)) + rng.normal(size=(3, 8))[y]
    X[30:33], X[33:36] = X[:3], X[3:6] + 1e-6 * rng.normal(size=(3, 8))
    return X, y, X[::7] + 0.5 * rng.normal(size=(9, 8))


def test_a_line_in_the_plane():
    """From (0, 2) the line through (1, 0) and (3, 0) is at distance 2, the point (1, 1) nearer."""
    X, y = [[1.0, 0.0], [3.0, 0.0], [1.0, 1.0]], [0, 0, 1]
    model = NearestFeatureLineClassifier().fit(X, y)
    np.testing.assert_allclose(model._outputs(np.array([[0.0, 2.0]])), [[-4.0, -2.0]])
    np.testing.assert_allclose(model._outputs(np.array([[9.0, 1.0]])), [[-1.0, -64.0]])


@pytest.mark.parametrize("k", [1, 2, 3, 9, None])
def test_equals_one_line_after_another(k, clouds):
    X, y, Q = clouds
    model = NearestFeatureLineClassifier(k).fit(X, y)
    wanted = reference.table(X, y, Q, k or 20, reference.line_distance)
    np.testing.assert_allclose(-model._outputs(Q), wanted, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(Q), wanted.argmin(axis=1))
    far = NearestFeatureLineClassifier(k).fit(X + 1e6, y)._outputs(Q + 1e6)
    np.testing.assert_allclose(-far, wanted, rtol=1e-4)


def test_far_queries_keep_their_digits(clouds):
    X, y, Q = clouds
    model = NearestFeatureLineClassifier().fit(X, y)
    wanted = reference.table(X, y, 1e5 * Q, 20, reference.line_distance)
    np.testing.assert_allclose(-model._outputs(1e5 * Q), wanted, rtol=1e-9)


def test_rows_that_are_close_are_measured_by_their_difference(clouds, monkeypatch):
    """The query is on the line through two rows that are 1e-9 apart."""
    X, y, _ = clouds
    direction = np.eye(8)[0]
    X[57] = X[54] + 1e-9 * direction  # both of class 0
    Q = (X[54] + 0.05 * direction)[None]
    model = NearestFeatureLineClassifier().fit(X, y)
    exact = reference.table(X, y, Q, 20, reference.line_distance)
    assert exact[0, 0] < 1e-9
    np.testing.assert_allclose(-model._outputs(Q), exact, rtol=1e-6, atol=1e-12)
    monkeypatch.setattr(feature_lines, "CLOSE", -1.0)
    with np.errstate(all="ignore"):
        assert abs(model._outputs(Q)[0, 0]) > 1e-6  # the products alone do not see the line


def test_known_limits(clouds):
    X, y, Q = clouds
    nearest = KNeighborsClassifier(1).fit(X, y)
    one = NearestFeatureLineClassifier(1).fit(X, y)
    np.testing.assert_array_equal(one.predict(Q), nearest.predict(Q))
    line = HyperplaneKNeighborsClassifier(2, alpha=0.0).fit(X, y)
    two = NearestFeatureLineClassifier(2).fit(X, y)
    np.testing.assert_allclose(two._outputs(Q), line._outputs(Q), rtol=1e-9)
    values = [NearestFeatureLineClassifier(k).fit(X, y)._outputs(Q) for k in (1, 2, 5, 10, None)]
    for fewer, more in itertools.pairwise(values):
        assert (more >= fewer - 1e-12).all()
    plane = HyperplaneKNeighborsClassifier(5, alpha=0.0).fit(X, y)._outputs(Q)
    assert (plane >= values[2] - 1e-12).all()


def test_neither_order_nor_turns_matter(clouds, rng):
    X, y, Q = clouds
    model = NearestFeatureLineClassifier(7).fit(X, y)
    wanted = model.decision_function(Q)
    order = rng.permutation(60)
    np.testing.assert_array_equal(model.fit(X[order], y[order]).decision_function(Q), wanted)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    turned = model.fit(X @ turn, y).decision_function(Q @ turn)
    np.testing.assert_allclose(turned, wanted, rtol=1e-7)


def test_blocks_and_threads_change_nothing(clouds, monkeypatch):
    X, y, Q = clouds
    model = NearestFeatureLineClassifier().fit(X, y)
    wanted = model._outputs(Q)
    monkeypatch.setattr(feature_lines, "CHUNK_BYTES", 1)
    monkeypatch.setattr(pursuit.neighbors.classifiers, "BATCH_BYTES", 1)
    monkeypatch.setattr(pursuit.linalg.blocks, "n_threads", lambda: 4)
    with sklearn.config_context(working_memory=1):
        np.testing.assert_allclose(model._outputs(Q), wanted, rtol=1e-12)


def test_no_table_of_all_pairs_is_made(monkeypatch):
    """Of 800 rows a class has 320000 lines; less than a sixth of these are at hand at a time."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1600, 3)), np.arange(1600) % 2
    sizes = []
    measured = feature_lines._measure_close

    def recorded(W, q, start, slopes, lengths, close):
        sizes.append(lengths.size)
        measured(W, q, start, slopes, lengths, close)

    monkeypatch.setattr(feature_lines, "_measure_close", recorded)
    NearestFeatureLineClassifier().fit(X, y).predict(X[:3])
    assert max(sizes) * 8 <= feature_lines.CHUNK_BYTES < 800 * 800 * 8 / 6


@pytest.mark.filterwarnings("error")
def test_degenerate_rows_give_finite_answers(rng):
    same = np.full((12, 3), 1e6)
    y = np.arange(12) % 2
    for X in (same, same + rng.normal(size=same.shape), np.eye(12)[:, :3], np.zeros((12, 3))):
        for k in (None, 4):
            model = NearestFeatureLineClassifier(k).fit(X, y)
            assert np.isfinite(model.decision_function(X)).all()
            np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    apart = NearestFeatureLineClassifier().fit([[0.0], [4.0]], ["b", "a"])
    np.testing.assert_array_equal(apart.predict([[1.0], [3.0], [2.0]]), ["b", "a", "a"])


def test_in_one_dimension_the_nearest_row_decides(rng):
    X, y = rng.normal(size=(40, 1)), np.arange(40) % 2
    Q = rng.normal(size=(30, 1))
    model, nearest = NearestFeatureLineClassifier().fit(X, y), KNeighborsClassifier(1).fit(X, y)
    np.testing.assert_array_equal(model.predict(Q), nearest.predict(Q))


def test_sparse_rows_types_and_parts(clouds):
    X, y, Q = clouds
    X, Q = np.where(np.abs(X) < 0.4, 0.0, X), np.where(np.abs(Q) < 0.4, 0.0, Q)
    model = NearestFeatureLineClassifier(6).fit(X, y)
    wanted = model.decision_function(Q)
    for rows in (sparse.csr_array(X), X):
        for queries in (sparse.csr_array(Q), Q):
            found = NearestFeatureLineClassifier(6).fit(rows, y).decision_function(queries)
            np.testing.assert_allclose(found, wanted, rtol=1e-9)
    parts = NearestFeatureLineClassifier(6).partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    np.testing.assert_array_equal(parts.decision_function(Q), wanted)
    X, y = np.delete(X, [33, 34, 35], axis=0), np.delete(y, [33, 34, 35])  # nearly equal rows
    wanted = model.fit(X, y).decision_function(Q)
    narrow = model.fit(X.astype(np.float32), y).decision_function(Q.astype(np.float32))
    np.testing.assert_allclose(narrow, wanted, rtol=1e-3)
    unseen = NearestFeatureLineClassifier().partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert np.isneginf(unseen.decision_function(Q)[:, 2]).all()


@pytest.mark.parametrize("k", [4, None])
def test_the_temperature_is_that_of_rows_left_out(k, clouds):
    X, y, Q = clouds
    model = NearestFeatureLineClassifier(k).fit(X, y)
    values = []
    for row in range(60):
        rest = np.delete(np.arange(60), row)
        other = NearestFeatureLineClassifier(k).fit(X[rest], y[rest])
        values.append(other.decision_function(X[row : row + 1])[0])
    doubt = np.full((60, 3), 1 / 63)
    doubt[np.arange(60), y] = 61 / 63
    losses = []
    for factor in np.geomspace(0.2, 5.0, 101):
        scaled = np.array(values) / (factor * model.temperature_)
        scaled -= scaled.max(axis=1, keepdims=True)
        losses.append(-(doubt * (scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True)))).sum())
    assert abs(np.argmin(losses) - 50) <= 1
    np.testing.assert_array_equal(model.predict_proba(Q).argmax(axis=1), model.predict(Q))


def test_errors_searches_and_files(clouds, tmp_path):
    X, y, Q = clouds
    for k in (0, 2.5):
        with pytest.raises(ValueError, match="n_neighbors"):
            NearestFeatureLineClassifier(k).fit(X, y)
    search = GridSearchCV(NearestFeatureLineClassifier(), {"n_neighbors": [1, 5, None]}, cv=3)
    model = search.fit(X, y).best_estimator_
    probabilities = model.predict_proba(Q)
    pursuit.save(model, tmp_path / "model")
    np.testing.assert_array_equal(pursuit.load(tmp_path / "model").predict_proba(Q), probabilities)


def test_digits():
    X, y = load_digits(return_X_y=True)
    nearest = KNeighborsClassifier(1).fit(X[:300], y[:300]).score(X[1000:], y[1000:])
    model = NearestFeatureLineClassifier(8).fit(X[:300], y[:300])
    assert model.score(X[1000:], y[1000:]) > nearest
