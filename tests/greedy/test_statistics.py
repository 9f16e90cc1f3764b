"""Sums over rows: parts in any order and any tree give what all rows give."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward
from scipy import sparse

from pursuit import KernelStatistics, load, save
from pursuit.geometry.row_hashes import hashes
from pursuit.greedy.normal_equations import Origin
from pursuit.greedy.statistics import SKETCH_ROWS
from pursuit.kernels import RBF

P = awkward()
USED = P.weights > 0
VECTORS = P.X[:12]
LABELS = np.unique(P.labels)


def numbers(rows=slice(None), **options):
    return KernelStatistics(VECTORS, gamma=0.3, **options).update(
        P.X[rows], P.Y[rows], P.weights[rows]
    )


def classes(rows=slice(None), labels=P.labels):
    empty = KernelStatistics(VECTORS, LABELS, gamma=0.3)
    return empty.update(P.X[rows], labels[rows], P.weights[rows])


def assert_same(found, expected):
    left, right = found.equations(alpha=0.1), expected.equations(alpha=0.1)
    for name in ("cross", "target_sq_norm", "atom_mean", "target_mean", "weight"):
        assert_allclose(getattr(left, name), getattr(right, name), rtol=1e-10, atol=1e-10)
    assert_allclose(left.gram.gram, right.gram.gram, rtol=1e-10, atol=1e-10)
    assert found.n_samples_ == expected.n_samples_


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_equations_are_those_of_the_plain_sums(fit_intercept):
    K = np.exp(-0.3 * ((P.X[:, None] - VECTORS) ** 2).sum(axis=2))
    w, Y = P.weights, P.Y
    if fit_intercept:
        K, Y = K - np.average(K, axis=0, weights=w), Y - np.average(Y, axis=0, weights=w)
    found = numbers().equations(fit_intercept=fit_intercept, alpha=0.2)
    assert_allclose(
        found.gram.gram, K.T @ (w[:, None] * K) + 0.2 * np.eye(12), rtol=1e-9, atol=1e-9
    )
    assert_allclose(found.cross, (K.T @ (w[:, None] * Y)).T, rtol=1e-9, atol=1e-8)
    assert_allclose(found.target_sq_norm, w @ Y**2, rtol=1e-9)
    assert_allclose(found.weight, w.sum(), rtol=1e-14)


def parts_of(n_parts, rng):
    """Row indices in random order, in parts that each hold a row of positive weight."""
    rows = rng.permutation(np.flatnonzero(USED))
    return np.array_split(rows, n_parts)


@pytest.mark.parametrize("n_leaves", [2, 8, 50])
@pytest.mark.parametrize("make", [numbers, classes])
def test_any_tree_of_parts_gives_the_whole(make, n_leaves, rng):
    nodes = [make(rows) for rows in parts_of(n_leaves, rng)]
    while len(nodes) > 1:
        i, j = sorted(rng.choice(len(nodes), 2, replace=False), reverse=True)
        nodes.append(nodes.pop(i).merge(nodes.pop(j)))
    whole = make(USED)
    assert_same(nodes[0], whole)
    if make is classes:
        assert_array_equal(nodes[0].sketch_.keys, whole.sketch_.keys)
        assert_array_equal(nodes[0].sketch_.Y, whole.sketch_.Y)


def test_blocks_one_after_another_give_the_whole(rng):
    stream = KernelStatistics(VECTORS, gamma=0.3)
    for rows in parts_of(7, rng):
        stream.update(P.X[rows], P.Y[rows], P.weights[rows])
    assert_same(stream, numbers(USED))


def test_merging_leaves_the_other_as_it_was_and_starts_an_empty_one():
    other = numbers(slice(0, 30))
    before = other.equations().cross
    total = KernelStatistics(VECTORS, gamma=0.3).merge(other)
    total.merge(numbers(slice(30, None))).merge(KernelStatistics(VECTORS, gamma=0.3))
    assert_same(total, numbers())
    assert_array_equal(other.equations().cross, before)


def test_targets_far_from_zero_and_drifting_keep_their_digits(rng):
    X = rng.standard_normal((200, 2))
    y = 1e6 + 1e3 * (np.arange(200) // 50) + rng.standard_normal(200)
    vectors = X[::20]
    parts = [
        KernelStatistics(vectors, gamma=0.5).update(X[i : i + 50], y[i : i + 50])
        for i in range(0, 200, 50)
    ]
    total = parts[3].merge(parts[1]).merge(parts[0]).merge(parts[2]).equations()
    K = RBF(0.5)(X, vectors)
    K -= K.mean(axis=0)
    assert_allclose(total.cross[0], K.T @ (y - y.mean()), rtol=1e-9, atol=1e-6)
    assert_allclose(total.target_sq_norm, np.var(y) * 200, rtol=1e-10)


def test_moments_move_to_any_origin(rng):
    moments = numbers().moments_
    there = Origin(rng.standard_normal(12), rng.standard_normal(P.Y.shape[1]))
    K = np.exp(-0.3 * ((P.X[:, None] - VECTORS) ** 2).sum(axis=2)) - there.atoms
    Y, w = P.Y - there.targets, P.weights
    found = moments.about(there)
    assert_allclose(found.gram, K.T @ (w[:, None] * K), rtol=1e-9, atol=1e-9)
    assert_allclose(found.diagonal, w @ K**2, rtol=1e-9)
    assert_allclose(found.atom_sum, w @ K, rtol=1e-9, atol=1e-9)
    assert_allclose(found.cross, (w[:, None] * Y).T @ K, rtol=1e-9, atol=1e-9)
    assert_allclose(found.target_sum, w @ Y, rtol=1e-9, atol=1e-8)
    assert_allclose(found.target_sq_norm, w @ Y**2, rtol=1e-9)


def test_weight_two_is_the_row_twice_and_zero_is_no_row():
    w = np.arange(60) % 3
    weighted = KernelStatistics(VECTORS, gamma=0.3).update(P.X, P.Y, w)
    rows = np.repeat(np.arange(60), w)
    repeated = KernelStatistics(VECTORS, gamma=0.3).update(P.X[rows], P.Y[rows])
    assert_allclose(weighted.equations().gram.gram, repeated.equations().gram.gram, atol=1e-10)
    assert weighted.n_samples_ == (w > 0).sum()


def test_rows_are_kept_by_their_hashes(rng):
    X = rng.standard_normal((1500, 3))
    X[X < -1] = 0.0
    y = X[:, 0] > 0
    order = rng.permutation(1500)
    dense = KernelStatistics(X[:5], [False, True], gamma=1.0).update(X, y)
    csr = sparse.csr_matrix(X[order])
    thin = KernelStatistics(sparse.csr_matrix(X[:5]), [False, True], gamma=1.0)
    thin.update(csr[:700], y[order[:700]]).update(csr[700:], y[order[700:]])
    assert len(dense.sketch_.keys) == SKETCH_ROWS
    assert_array_equal(thin.sketch_.keys, dense.sketch_.keys)
    assert_array_equal(thin.sketch_.X.toarray(), dense.sketch_.X)
    # A uniform sample: 1000 of 1500 rows, by each of the columns.
    share = np.isin(hashes(X, y.astype(int)), dense.sketch_.keys)
    for column in (np.arange(1500) < 750, y, X[:, 1] > 0):
        assert abs(share[column].mean() - 2 / 3) < 0.08


def test_a_file_and_a_pickle_go_on(tmp_path):
    first, second = classes(slice(0, 30)), classes(slice(30, None))
    save(first, tmp_path / "half.pursuit")
    again = load(tmp_path / "half.pursuit")
    assert_same(again.merge(pickle.loads(pickle.dumps(second))), classes())
    assert_array_equal(again.sketch_.keys, classes().sketch_.keys)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: numbers().merge(3), "merge takes KernelStatistics"),
        (lambda: numbers().merge(classes()), "classes"),
        (lambda: numbers(kernel="laplacian").merge(numbers()), "kernel"),
        (
            lambda: numbers().merge(KernelStatistics(P.X[:3], gamma=0.3).update(P.X, P.Y)),
            "vectors",
        ),
        (lambda: numbers().update(P.X, P.Y[:, 0]), "targets"),
        (lambda: KernelStatistics(P.X[:3, :2]).update(P.X, P.Y), "vectors has 2 features"),
        (lambda: KernelStatistics(VECTORS, ["a"]).update(P.X, P.labels), "classes must hold"),
        (lambda: KernelStatistics(VECTORS, ["a", "b"]).update(P.X, P.labels), "the label"),
        (lambda: KernelStatistics(VECTORS, kernel="precomputed").update(P.X, P.Y), "kernel"),
        (lambda: KernelStatistics(np.full((2, 4), np.nan)).update(P.X, P.Y), "vectors"),
    ],
)
def test_bad_calls_name_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_fit_starts_anew():
    assert_same(
        numbers().fit(P.X[:20], P.Y[:20]),
        KernelStatistics(VECTORS, gamma=0.3).update(P.X[:20], P.Y[:20]),
    )
