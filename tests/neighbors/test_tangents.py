"""Hyperplanes with tangents beside the neighbours: definitions, limits, edges, files."""

from dataclasses import dataclass

import numpy as np
import pytest
import reference_local as reference
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pursuit
from pursuit import HyperplaneKNeighborsClassifier, ImageTangents, datasets
from pursuit.neighbors.hyperplane import hyperplane_distances
from pursuit.neighbors.tangents import LocalTangents

D = 12
TURN = np.random.default_rng(5).normal(size=(2, D, D)) / 4


def bent(X):
    """Three tangents: two linear in the rows, and one that is not."""
    linear = np.einsum("mi,tij->mtj", X, TURN)
    return np.concatenate([linear, np.sin(X)[:, None]], axis=1)


@pytest.fixture
def clouds(rng):
    """Three classes of 25 rows in 12 dimensions, some of them twice; and queries."""
    y = np.arange(75) % 3
    X = rng.normal(size=(75, D)) + 2.0 * rng.normal(size=(3, D))[y] + 1.0
    X[60:66] = X[:6]
    return X, y, X[::9] + 0.3 * rng.normal(size=(9, D))


def expected(X, y, Q, k, tangents=bent, **options):
    return reference.table(X, y, Q, k, reference.tangent_distance, tangents=tangents, **options)


# Equal to the definition.


def test_a_point_with_one_tangent():
    """The row (1, 0) with the tangent (0, 2), seen from (4, 3): a line at distance 3.

    With a penalty 9 + (3 - 2 b)^2 + lambda b^2 is least at b = 6 / (4 + lambda).
    """
    X, y = [[1.0, 0.0], [40.0, 3.0]], [0, 1]

    def upwards(rows):
        return np.tile([0.0, 2.0], (len(rows), 1, 1))

    model = HyperplaneKNeighborsClassifier(1, alpha=0.0, tangents=upwards).fit(X, y)
    np.testing.assert_allclose(-model._outputs(np.array([[4.0, 3.0]]))[0, 0], 9.0)
    model.set_params(alpha=2.0)
    found = -model._outputs(np.array([[4.0, 3.0]]))[0, 0]
    np.testing.assert_allclose(found, 9 + (3 - 2) ** 2 + 2.0 * 1.0)


@pytest.mark.filterwarnings("ignore:alpha=0 with:UserWarning")
@pytest.mark.parametrize("n_components", [None, 1, 4, 30])
@pytest.mark.parametrize("alpha", [0.0, 1e-9, 0.3, 1e4])
@pytest.mark.parametrize("k", [1, 2, 5, 9, 10, 20])
def test_equals_least_squares(k, alpha, n_components, clouds):
    X, y, Q = clouds
    options = {"alpha": alpha, "n_components": n_components}
    model = HyperplaneKNeighborsClassifier(k, tangents=bent, **options).fit(X, y)
    np.testing.assert_allclose(
        -model._outputs(Q), expected(X, y, Q, k, **options), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("n_components", [None, 2])
def test_every_route_gives_the_same(n_components, clouds, monkeypatch):
    X, y, Q = clouds
    found = np.array([reference.neighbors(X[y == 0], q, 6) for q in Q])
    tables = np.concatenate([found, Q[:, None]], axis=1)

    def distances():
        local = LocalTangents(tables.copy(), bent, n_components)
        return hyperplane_distances(local, 6, [0.0, 0.2])

    default = distances()
    wanted = [
        [
            reference.tangent_distance(N, x, bent, alpha, n_components)
            for N, x in zip(found, Q, strict=True)
        ]
        for alpha in (0.0, 0.2)
    ]
    np.testing.assert_allclose(default, wanted, rtol=1e-9)
    for name, value in (("EIGEN_COST", 1), ("CERTAIN", 1e300)):
        monkeypatch.setattr(pursuit.neighbors.hyperplane, name, value)
        np.testing.assert_allclose(distances(), default, rtol=1e-9, atol=1e-11)


def test_tangents_that_the_neighbors_span_or_that_are_zero(clouds):
    """Singular systems without a penalty: tangents twice, none at all, and those of a blank row."""
    X, y, Q = clouds
    plain = HyperplaneKNeighborsClassifier(5, alpha=0.0).fit(X, y)
    for n in (2, 0):
        model = HyperplaneKNeighborsClassifier(
            5, alpha=0.0, tangents=lambda rows, n=n: np.zeros((len(rows), n, D))
        ).fit(X, y)
        np.testing.assert_allclose(model._outputs(Q), plain._outputs(Q), rtol=1e-9)
    twice = HyperplaneKNeighborsClassifier(
        5, alpha=0.0, tangents=lambda rows: np.repeat(bent(rows), 2, axis=1)
    ).fit(X, y)
    once = HyperplaneKNeighborsClassifier(5, alpha=0.0, tangents=bent).fit(X, y)
    np.testing.assert_allclose(twice._outputs(Q), once._outputs(Q), rtol=1e-8)


# Known limits.


def test_one_neighbor_is_the_one_sided_tangent_distance():
    """Simard's algorithm: |x - p|^2 less its projection on an orthonormal basis of the tangents."""
    X, y = load_digits(return_X_y=True)
    tangents = ImageTangents((8, 8))
    model = HyperplaneKNeighborsClassifier(1, alpha=0.0, tangents=tangents).fit(X[:200], y[:200])
    found = -model._outputs(X[200:240])
    for i, x in enumerate(X[200:240]):
        for c in range(10):
            rows = X[:200][y[:200] == c]
            p = rows[((rows - x) ** 2).sum(axis=1).argmin()]
            basis = np.linalg.qr(tangents(p[None])[0].T)[0]
            wanted = ((x - p) ** 2).sum() - ((basis.T @ (x - p)) ** 2).sum()
            np.testing.assert_allclose(found[i, c], wanted, rtol=1e-8)


def test_a_large_penalty_is_the_nearest_local_centroid(clouds):
    X, y, Q = clouds
    large = HyperplaneKNeighborsClassifier(7, alpha=1e9).fit(X, y).decision_function(Q)
    model = HyperplaneKNeighborsClassifier(7, alpha=1e9, tangents=bent).fit(X, y)
    np.testing.assert_allclose(model.decision_function(Q), large, rtol=1e-6)


def test_tangents_only_bring_classes_nearer(clouds):
    X, y, Q = clouds
    for alpha in (0.0, 0.5):
        plain = HyperplaneKNeighborsClassifier(5, alpha=alpha).fit(X, y).decision_function(Q)
        model = HyperplaneKNeighborsClassifier(5, alpha=alpha, tangents=bent).fit(X, y)
        assert (model.decision_function(Q) > plain).all()


def test_far_from_the_origin_nothing_is_lost(clouds):
    X, y, Q = clouds
    near = HyperplaneKNeighborsClassifier(6, alpha=0.1, tangents=bent).fit(X, y)
    shifted = HyperplaneKNeighborsClassifier(6, alpha=0.1, tangents=lambda rows: bent(rows - 1e6))
    far = shifted.fit(X + 1e6, y).decision_function(Q + 1e6)
    np.testing.assert_allclose(far, near.decision_function(Q), rtol=1e-6, atol=1e-8)


# Beside the rest of the estimator.


def test_the_curve_and_the_rows_left_out(clouds):
    X, y, Q = clouds
    labels = np.arange(9) % 3
    model = HyperplaneKNeighborsClassifier(4, alpha=0.1, tangents=bent).fit(X, y)
    curve = model.validation_curve(Q, labels, n_neighbors=[1, 4, 8], alphas=[0.05, 2.0])
    for i, k in enumerate([1, 4, 8]):
        for j, alpha in enumerate([0.05, 2.0]):
            wrong = expected(X, y, Q, k, alpha=alpha).argmin(axis=1) != labels
            np.testing.assert_allclose(curve.errors[i, j], wrong.mean())
    left_out = model.validation_curve().errors[0, 0]
    wrong = 0
    for row in range(len(X)):
        rest = np.delete(np.arange(len(X)), row)
        wrong += clone(model).fit(X[rest], y[rest]).predict(X[row : row + 1])[0] != y[row]
    np.testing.assert_allclose(left_out, wrong / len(X))


def test_partial_fit_probabilities_and_searches(clouds):
    X, y, Q = clouds
    model = HyperplaneKNeighborsClassifier(4, alpha=0.1, tangents=bent)
    whole = clone(model).fit(X, y)
    parts = clone(model).partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    np.testing.assert_array_equal(parts.decision_function(Q), whole.decision_function(Q))
    probabilities = whole.predict_proba(Q)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), whole.predict(Q))
    before = whole.temperature_
    assert before != whole.set_params(tangents=None).temperature_
    assert before == whole.set_params(tangents=bent).temperature_
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {"hyperplanekneighborsclassifier__tangents": [None, bent]},
        cv=3,
    )
    assert search.fit(X, y).best_score_ > 0.5


def test_float32_rows_and_blocks(clouds, monkeypatch):
    X, y, Q = clouds
    kinds = []

    def recorded(rows):
        kinds.append(rows.dtype)
        return bent(rows)

    model = HyperplaneKNeighborsClassifier(6, alpha=0.1, tangents=recorded)
    wide = model.fit(X, y).decision_function(Q)
    assert set(kinds) == {np.dtype(np.float64)}
    monkeypatch.setattr(pursuit.neighbors.classifiers, "BATCH_BYTES", 1)
    monkeypatch.setattr(pursuit.linalg.blocks, "n_threads", lambda: 4)
    with sklearn.config_context(working_memory=1):
        np.testing.assert_allclose(model.decision_function(Q), wide, rtol=1e-12)
    monkeypatch.undo()
    kinds.clear()
    narrow = model.fit(X.astype(np.float32), y).decision_function(Q.astype(np.float32))
    assert set(kinds) == {np.dtype(np.float32)}
    np.testing.assert_allclose(narrow, wide, rtol=2e-3, atol=1e-4)


def test_csr_queries_but_no_csr_references(clouds):
    X, y, Q = clouds
    model = HyperplaneKNeighborsClassifier(4, alpha=0.1, tangents=bent).fit(X, y)
    found = model.decision_function(sparse.csr_array(Q))
    np.testing.assert_allclose(found, model.decision_function(Q), rtol=1e-9)
    with pytest.raises(ValueError, match="tangents need dense reference rows"):
        clone(model).fit(sparse.csr_array(X), y)
    with pytest.raises(ValueError, match="tangents need dense reference rows"):
        model.partial_fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(model.decision_function(Q), found, rtol=1e-9)
    later = HyperplaneKNeighborsClassifier(4).fit(sparse.csr_array(X), y)
    with pytest.raises(ValueError, match="tangents need dense reference rows"):
        later.set_params(tangents=bent).predict(Q)
    np.testing.assert_array_equal(later.fit(X, y).predict(Q).shape, (9,))


@dataclass
class NotFrozen:
    """A callable that may change."""

    factor: float = 1.0

    def __call__(self, X):
        return self.factor * bent(X)


@pytest.mark.parametrize(
    ("tangents", "words"),
    [
        (np.zeros((75, 2, D)), "tangents must be None or a callable .* got ndarray"),
        ("rotation", "tangents must be None or a callable"),
        (NotFrozen(), "tangents must be hashable"),
        (lambda X: X, r"tangents must give an array \(1, n_tangents, 12\)"),
        (lambda X: bent(X)[:, :, :5], "tangents must give an array"),
        (lambda X: np.full((len(X), 1, D), np.nan), "tangents gave vectors that are not finite"),
        (ImageTangents((4, 4)), r"tangents: images of shape \(4, 4\) have 16 pixels"),
    ],
)
def test_an_error_names_the_tangents(tangents, words, clouds):
    X, y, _ = clouds
    with pytest.raises(ValueError, match=words):
        HyperplaneKNeighborsClassifier(tangents=tangents).fit(X, y)


def test_a_hyperplane_that_is_the_whole_space_gives_a_warning(clouds):
    X, y, _ = clouds
    with pytest.warns(UserWarning, match="10 neighbors and 3 tangents in 12 .* at most 9"):
        HyperplaneKNeighborsClassifier(10, alpha=0.0, tangents=bent).fit(X, y)
    everywhere = lambda rows: np.tile(np.eye(D), (len(rows), 1, 1))  # noqa: E731
    with pytest.warns(UserWarning, match="12 tangents .* or fewer tangents"):
        HyperplaneKNeighborsClassifier(1, alpha=0.0, tangents=everywhere).fit(X, y)
    HyperplaneKNeighborsClassifier(9, alpha=0.0, tangents=bent).fit(X, y)


def test_files_hold_image_tangents_but_no_functions(clouds, tmp_path):
    X, y, Q = clouds
    value = ImageTangents([3, 4], ["rotation", "thickness"], smoothing=0.6)
    model = HyperplaneKNeighborsClassifier(4, alpha=0.1, tangents=value).fit(X, y)
    probabilities = model.predict_proba(Q)
    pursuit.save(model, tmp_path / "model")
    same = pursuit.load(tmp_path / "model")
    assert same.tangents == value and same._temperatures == model._temperatures
    np.testing.assert_array_equal(same.predict_proba(Q), probabilities)
    model.set_params(tangents=bent).predict_proba(Q)
    with pytest.raises(ValueError, match="parameter tangents is a Python function.*ImageTangents"):
        pursuit.save(model, tmp_path / "model")
    pursuit.save(model.set_params(tangents=None), tmp_path / "model")
    same = pursuit.load(tmp_path / "model").set_params(tangents=bent)
    model.set_params(tangents=bent)
    np.testing.assert_array_equal(same.predict_proba(Q), model.predict_proba(Q))


def test_a_slice_of_usps(data_folder):
    """Every fourth test image with a quarter of the rows; the whole in benchmarks/papers."""
    X, y = datasets.load("usps", "train")
    X_test, y_test = datasets.load("usps", "test")
    errors = []
    for k in (1, 10):
        model = HyperplaneKNeighborsClassifier(k, alpha=3.0, tangents=ImageTangents((16, 16)))
        model.fit(X[::4], y[::4])
        for tangents in (model.tangents, None):
            wrong = model.set_params(tangents=tangents).predict(X_test[::4]) != y_test[::4]
            errors.append(wrong.sum())
    assert errors[0] < errors[1] and errors[2] < errors[3]
