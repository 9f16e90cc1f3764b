"""The condensed nearest neighbour rule: definition, order of rows, edges, held-out rows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pursuit import (
    ConvexKNeighborsClassifier,
    HyperplaneKNeighborsClassifier,
    NearestFeatureLineClassifier,
    condensed_rows,
    datasets,
)

MODELS = [
    HyperplaneKNeighborsClassifier(5, alpha=0.5),
    HyperplaneKNeighborsClassifier(5),
    ConvexKNeighborsClassifier(2),
    NearestFeatureLineClassifier(3),
    KNeighborsClassifier(1),
    make_pipeline(StandardScaler(), ConvexKNeighborsClassifier(3)),
    SVC(),
]


@pytest.fixture
def clouds(rng):
    """Three classes that overlap a little."""
    y = np.arange(150) % 3
    X = rng.normal(size=(150, 4)) + 2.5 * np.eye(4)[y]
    return X, np.array(["b", "c", "a"])[y]


def by_definition(model, X, y, n_initial, margin, error):
    """The rule with loops, for rows that all differ; sets of row numbers."""
    labels = sorted(set(y))
    kept = set()
    for label in labels:
        own = [i for i in range(len(y)) if y[i] == label]
        mean = np.mean([X[i] for i in own], axis=0)
        kept |= set(sorted(own, key=lambda i: ((X[i] - mean) ** 2).sum())[:n_initial])
    while len(kept) < len(y):
        some, left = sorted(kept), [i for i in range(len(y)) if i not in kept]
        values = model.fit(X[some], y[some]).decision_function(X[left])
        if values.ndim == 1:
            values = np.stack([np.zeros(len(left)), values], axis=1)
        gains, ways = {}, {}
        for i, row in zip(left, values, strict=True):
            rest = {label: v for label, v in zip(labels, row, strict=True) if label != y[i]}
            rival = max(rest, key=rest.get)
            gains[i], ways[i] = row[labels.index(y[i])] - rest[rival], (y[i], rival)
        wrong = [i for i in left if gains[i] <= margin * max(0, np.median(list(gains.values())))]
        if len(wrong) <= error * len(left):
            break
        for way in set(ways[i] for i in wrong):
            kept.add(min((i for i in wrong if ways[i] == way), key=gains.get))
    return sorted(kept)


@pytest.mark.parametrize(
    ("n_initial", "margin", "error"), [(1, 0.0, 0.0), (1, 0.3, 0.0), (4, 0.5, 0.05), (90, 0.9, 0.0)]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_equals_the_rule_with_loops(classes, n_initial, margin, error, clouds):
    X, y = clouds
    if classes == 2:
        X, y = X[y != "b"], y[y != "b"]
    for model in MODELS[:4]:
        found = condensed_rows(model, X, y, n_initial=n_initial, margin=margin, error=error)
        assert found.tolist() == by_definition(model, X, y, n_initial, margin, error)


@pytest.mark.parametrize("seed", [18, 24, 37])
def test_labels_by_chance(seed):
    """Most rows are wrong, and the median is below 0, which may not let wrong rows pass."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 2)), rng.integers(4, size=60)
    found = condensed_rows(MODELS[2], X, y, margin=0.9)
    assert found.tolist() == by_definition(MODELS[2], X, y, 1, 0.9, 0.0)


def test_a_tie_is_not_right():
    """From 0 and 4 on, 2 is as near to both: it is added, and then 3, as near to 2 as to 4."""
    X = np.array([[-2.0], [0.0], [2.0], [3.0], [4.0], [5.0]])
    rows = condensed_rows(ConvexKNeighborsClassifier(1), X, [0, 0, 0, 1, 1, 1], margin=0.0)
    assert rows.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_all_rows_left_out_are_right(model, clouds):
    X, y = clouds
    rows = condensed_rows(model, X, y, margin=0.0)
    assert (np.diff(rows) > 0).all() and len(rows) < 100
    left = np.setdiff1d(np.arange(150), rows)
    assert_array_equal(model.fit(X[rows], y[rows]).predict(X[left]), y[left])


def test_some_may_be_wrong(clouds):
    X, y = clouds
    model = MODELS[0]
    rows = condensed_rows(model, X, y, margin=0.0, error=0.1)
    left = np.setdiff1d(np.arange(150), rows)
    wrong = np.mean(model.fit(X[rows], y[rows]).predict(X[left]) != y[left])
    assert 0 < wrong <= 0.1
    assert len(rows) < len(condensed_rows(model, X, y, margin=0.0))


@pytest.mark.parametrize("margin", [0.0, 0.4])
def test_the_order_of_the_rows_changes_nothing(margin, clouds, rng):
    """Rows on a grid, so that many distances are equal, some of them twice and in two classes."""
    X, y = np.round(clouds[0]), clouds[1]
    order = rng.permutation(150)
    for model in MODELS[:5]:
        one = condensed_rows(model, X, y, margin=margin)
        other = order[condensed_rows(model, X[order], y[order], margin=margin)]
        pairs = [sorted((*X[i], y[i]) for i in rows) for rows in (one, other)]
        assert pairs[0] == pairs[1]


def test_equal_rows_count_once(clouds):
    X, y = clouds
    model = MODELS[0]
    rows = condensed_rows(model, X, y)
    assert_array_equal(condensed_rows(model, np.vstack([X, X[::-1]]), np.append(y, y[::-1])), rows)


def test_equal_rows_of_two_classes_are_all_kept():
    X = np.array([[0.0], [0.1], [5.0], [5.1], [2.0], [2.0]])
    y = np.array([0, 0, 1, 1, 0, 1])
    assert {4, 5} <= set(condensed_rows(KNeighborsClassifier(1), X, y, margin=0.0))
    same = np.zeros((4, 2))
    assert condensed_rows(MODELS[0], same, [0, 1, 0, 1]).tolist() == [0, 1]


def test_it_does_not_depend_on_the_unit_of_the_features(clouds):
    X, y = clouds
    for model, other in zip(MODELS[1:4], MODELS[1:4], strict=True):
        assert_array_equal(condensed_rows(other, 1024.0 * X, y), condensed_rows(model, X, y))


def test_sparse_single_precision_and_the_model_stays_as_it_is(clouds):
    X, y = clouds
    model = HyperplaneKNeighborsClassifier(5, alpha=0.5)
    rows = condensed_rows(model, X, y)
    assert_array_equal(condensed_rows(model, sparse.csr_array(X), y), rows)
    assert not hasattr(model, "classes_")
    narrow = condensed_rows(model, np.round(X, 2).astype(np.float32), y)
    assert abs(len(narrow) - len(rows)) < 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_initial": 0}, "n_initial must be"),
        ({"margin": -0.1}, "margin must be"),
        ({"margin": 1.0}, "margin must be"),
        ({"error": 1.0}, "error must be"),
        ({"y": np.zeros(150)}, "y has one class only"),
        ({"y": np.linspace(0, 1, 150)}, "Unknown label type"),
        ({"X": np.full((150, 4), np.nan)}, "NaN"),
    ],
)
def test_one_clear_error(options, message, clouds):
    X, y = options.pop("X", clouds[0]), options.pop("y", clouds[1])
    with pytest.raises(ValueError, match=message):
        condensed_rows(MODELS[0], X, y, **options)


class Silent(KNeighborsClassifier):
    """A classifier that says no more than the class."""

    predict_proba = property()


def test_a_classifier_without_values(clouds):
    with pytest.raises(ValueError, match="decision_function or predict_proba, Silent has neither"):
        condensed_rows(Silent(), *clouds)


def test_better_than_as_many_other_rows():
    """Held-out digits; random rows of the same number, three times."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    for model in (HyperplaneKNeighborsClassifier(10, alpha=30.0), ConvexKNeighborsClassifier()):
        rows = condensed_rows(model, X[:600], y[:600])
        assert len(rows) < 150
        score = model.fit(X[rows], y[rows]).score(X[600:1000], y[600:1000])
        for _ in range(3):
            others = rng.choice(600, len(rows), replace=False)
            assert score > model.fit(X[others], y[others]).score(X[600:1000], y[600:1000]) + 0.01


def test_a_slice_of_usps(data_folder):
    """Every fourth training row; of the others a part is held out."""
    X, y = datasets.load("usps", "train")
    X, X_val, y, y_val = X[::4], X[1::4], y[::4], y[1::4]
    model = HyperplaneKNeighborsClassifier(10, alpha=8.0)
    rows = condensed_rows(model, X, y, margin=0.0)
    score = model.fit(X[rows], y[rows]).score(X_val, y_val)
    others = np.random.default_rng(0).choice(len(X), len(rows), replace=False)
    assert len(rows) < 0.25 * len(X)
    assert score > model.fit(X[others], y[others]).score(X_val, y_val)
