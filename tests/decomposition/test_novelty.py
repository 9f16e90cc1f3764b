"""Novelty by what few rows do not explain: equals distances by the whole kernel matrix."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

import pursuit.export
from pursuit import KernelPCANovelty, SparseKernelPCA

RNG = np.random.default_rng(1)
X = RNG.normal(size=(80, 2))
FAR = np.array([[6.0, 6.0], [0.1, 0.2], [-7.0, 0.0]])
WEIGHTS = RNG.integers(0, 3, 80).astype(float)


def distances(model, rows, gamma):
    """|phi(x) - projection|^2 by least squares in the kernel's space."""
    Z = model.support_vectors_
    K, k = reference.rbf(Z, Z, gamma), reference.rbf(Z, rows, gamma)
    return 1.0 - np.sum(k * np.linalg.solve(K, k), axis=0)


def test_scores_are_distances_and_the_threshold_their_quantile():
    model = KernelPCANovelty(8, gamma=0.5, contamination=0.2).fit(X)
    expected = -distances(model, X, 0.5)
    assert_allclose(model.score_samples(X), expected, atol=1e-9)
    lowest = np.sort(expected)[15:17]  # of 80, 16 are outside
    assert_allclose(model.offset_, lowest.mean(), atol=1e-9)
    assert_allclose(model.decision_function(FAR), -distances(model, FAR, 0.5) - model.offset_)
    assert_array_equal(model.predict(FAR), [-1, 1, -1])
    assert np.mean(model.fit_predict(X) == -1) == 0.2
    plain = SparseKernelPCA(8, gamma=0.5).fit(X)
    assert_array_equal(model.support_, plain.support_)
    assert_array_equal(model.transform(X), plain.transform(X))


def test_weights_are_copies_and_a_prefix_is_a_smaller_fit():
    model = KernelPCANovelty(8, gamma=0.5, contamination=0.15).fit(X, sample_weight=WEIGHTS)
    rows = X[np.repeat(np.arange(80), WEIGHTS.astype(int))]
    copies = KernelPCANovelty(8, gamma=0.5, contamination=0.15).fit(rows)
    assert_allclose(model.score_samples(X), copies.score_samples(X), atol=1e-9)
    assert_array_equal(model.predict(X), copies.predict(X))
    scores = model.score_samples(X)
    below = np.average(scores < model.offset_, weights=WEIGHTS)
    row = np.flatnonzero(scores > model.offset_)[scores[scores > model.offset_].argmin()]
    assert below <= 0.15 < below + WEIGHTS[row] / WEIGHTS.sum()  # one row more is too many
    small = KernelPCANovelty(3, gamma=0.5, contamination=0.15).fit(X, sample_weight=WEIGHTS)
    assert_allclose(model.truncate(3).decision_function(X), small.decision_function(X), atol=1e-9)
    assert model.truncate(3).offset_ < model.offset_


def test_files_and_sparse_rows(tmp_path):
    model = KernelPCANovelty(5, gamma=0.5).fit(X)
    csr = KernelPCANovelty(5, gamma=0.5).fit(sparse.csr_matrix(X))
    assert_allclose(csr.decision_function(X), model.decision_function(X), atol=1e-12)
    pursuit.save(model, tmp_path / "model.pursuit")
    loaded = pursuit.load(tmp_path / "model.pursuit")
    assert_array_equal(loaded.predict(FAR), model.predict(FAR))
    assert_array_equal(loaded.truncate(2).predict(FAR), model.truncate(2).predict(FAR))


def test_code_in_c_has_no_words_for_it():
    with pytest.raises(ValueError, match="KernelPCANovelty is not known"):
        pursuit.export.plain(KernelPCANovelty(5).fit(X))


def test_digits_of_another_kind_are_found():
    images, digits = load_digits(return_X_y=True)
    threes = images[:900][digits[:900] == 3]
    model = KernelPCANovelty(25, gamma=3e-4, contamination=0.05).fit(threes)
    scores = model.decision_function(images[900:])
    assert roc_auc_score(digits[900:] == 3, scores) > 0.97


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"contamination": 0.6}, "contamination"),
        ({"kernel": "precomputed"}, "does not say"),
    ],
)
def test_wrong_parameters_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        KernelPCANovelty(**wrong).fit(X)
