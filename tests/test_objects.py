"""Rows that are no vectors, under a kernel that is a function of the user's."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV

import pursuit
from pursuit._objects import object_column
from pursuit.kernels import FunctionKernel

PAIRS = [a + b for a in "abcd" for b in "abcd"]
RNG = np.random.default_rng(0)


def counts(words):
    """How often each pair of letters is in each word, of length 1."""
    table = np.array([[word.count(pair) for pair in PAIRS] for word in words], dtype=float)
    return table / np.linalg.norm(table, axis=1, keepdims=True)


def spectrum(X, Z):
    """Cosines of the counts."""
    assert X.ndim == Z.ndim == 1
    return counts(X) @ counts(Z).T


def some_words(n):
    """Words whose counts all differ, by two laws."""
    words = {}
    while len(words) < n:
        letters = list("abc" if len(words) % 2 else "bcd")
        word = "".join(RNG.choice(letters, size=RNG.integers(5, 12)))
        words.setdefault(counts([word]).round(6).tobytes(), word)
    return list(words.values())


WORDS = some_words(60)
LABELS = np.arange(60) % 2
NEW = WORDS[::7] + ["abcd", "bad"]

TAKES = {
    "ConvexNetworkClassifier": {},
    "GreedyNystroem": {"n_components": 8},
    "KernelCentroidClassifier": {},
    "KernelMatchingPursuitClassifier": {"n_components": 8},
    "KernelMatchingPursuitClassifierCV": {"n_components": 8},
    "KernelMatchingPursuitRegressor": {"n_components": 8},
    "KernelMatchingPursuitRegressorCV": {"n_components": 8},
    "KernelPCANovelty": {"n_components": 8},
    "OnlineKernelClassifier": {"n_components": 8},
    "OnlineKernelRegressor": {"n_components": 8},
    "ReducedSupportVectorClassifier": {"n_components": 60},
    "RelevanceVectorClassifier": {},
    "RelevanceVectorRegressor": {},
    "SparseKernelCCA": {"n_components": 2, "n_basis": 8},
    "SparseKernelPCA": {"n_components": 8},
}
NEEDS_COORDINATES = {
    "KernelMetric",
    "ReducedSetClassifier",
    "SparseKernelClassifier",
    "SparseKernelClassifierCV",
    "SparseKernelRegressor",
    "SparseKernelRegressorCV",
    "SparseLargeMarginClassifier",
    "SparseOneClass",
}
# Statistics of given vectors; tables of columns; windows.
OTHERS = {"KernelStatistics", "TableModel", "ParzenDensity", "NadarayaWatsonRegressor"}


def fitted(name, X, kernel):
    """An estimator that was fitted on rows."""
    model = getattr(pursuit, name)(kernel=kernel, **TAKES[name])
    return model.fit(X, X if name == "SparseKernelCCA" else LABELS)


def answers(model, X):
    """What a model says about rows."""
    for name in ("decision_function", "predict", "transform"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    raise AssertionError(model)


def test_every_estimator_with_a_kernel_is_in_a_list():
    classes = {name: getattr(pursuit, name) for name in pursuit.__all__}
    with_kernel = {
        name
        for name, value in classes.items()
        if isinstance(value, type) and "kernel" in getattr(value, "__dataclass_fields__", {})
    }
    listed = set(TAKES) | NEEDS_COORDINATES | OTHERS
    assert with_kernel <= listed, with_kernel - listed


@pytest.mark.parametrize("name", TAKES)
def test_words_equal_their_table_of_counts(name):
    on_words, on_counts = fitted(name, WORDS, spectrum), fitted(name, counts(WORDS), "linear")
    assert_allclose(answers(on_words, NEW), answers(on_counts, counts(NEW)), atol=1e-6)
    for attribute in ("support_", "x_support_"):
        if hasattr(on_counts, attribute) and name != "ReducedSupportVectorClassifier":
            assert_array_equal(getattr(on_words, attribute), getattr(on_counts, attribute))


@pytest.mark.parametrize("name", sorted(set(TAKES) - {"SparseKernelCCA"}))
def test_vectors_are_the_users_objects(name):
    model = fitted(name, WORDS, spectrum)
    assert model.support_vectors_.ndim == 1
    assert set(model.support_vectors_) <= set(WORDS)
    if hasattr(model, "support_"):
        assert [WORDS[row] for row in model.support_] == list(model.support_vectors_)


def test_vectors_of_both_views_are_objects():
    model = fitted("SparseKernelCCA", WORDS, spectrum)
    assert set(model.x_support_vectors_) <= set(WORDS)
    turned = [word[::-1] for word in WORDS]
    both = pursuit.SparseKernelCCA(2, n_basis=8, kernel=spectrum).fit(WORDS, turned)
    assert set(both.y_support_vectors_) <= set(turned)
    one, other = both.transform(NEW, [word[::-1] for word in NEW])
    assert one.shape == other.shape == (len(NEW), 2)


def test_a_function_for_one_view_and_a_name_for_the_other():
    table = counts(WORDS)
    mixed = pursuit.SparseKernelCCA(2, n_basis=8, kernel=(spectrum, "linear")).fit(WORDS, table)
    plain = pursuit.SparseKernelCCA(2, n_basis=8, kernel="linear").fit(table, table)
    assert_allclose(mixed.correlations_, plain.correlations_, atol=1e-8)
    turned = pursuit.SparseKernelCCA(2, n_basis=8, kernel=("linear", spectrum)).fit(table, WORDS)
    assert_allclose(turned.transform(table[:3]), plain.transform(table[:3]), atol=1e-6)


@pytest.mark.parametrize("name", sorted(NEEDS_COORDINATES))
def test_who_needs_coordinates_says_so(name):
    model = getattr(pursuit, name)(kernel=spectrum)
    with pytest.raises(ValueError, match=f"{name} computes with coordinates"):
        model.fit(WORDS, LABELS)


@pytest.mark.parametrize(
    "form",
    [
        tuple,
        np.array,
        lambda words: np.array(words, dtype=object),
        lambda words: np.array(words, dtype=object)[:, None],
        pd.Series,
        lambda words: pd.DataFrame({"word": words}),
        pl.Series,
        lambda words: pl.DataFrame({"word": words}),
    ],
    ids=["tuple", "text", "objects", "column", "pd", "pd frame", "pl", "pl frame"],
)
def test_forms_of_a_list_of_words(form):
    model = pursuit.KernelMatchingPursuitClassifier(5, kernel=spectrum).fit(form(WORDS), LABELS)
    same = pursuit.KernelMatchingPursuitClassifier(5, kernel=spectrum).fit(WORDS, LABELS)
    assert_array_equal(model.decision_function(form(NEW)), same.decision_function(NEW))


def test_a_value_of_the_kernels_and_its_parameters():
    def powered(X, Z, degree):
        return spectrum(X, Z) ** degree

    given = {"kernel": powered, "kernel_params": {"degree": 2}}
    model = pursuit.KernelMatchingPursuitRegressor(5, **given).fit(WORDS, LABELS)
    value = FunctionKernel(powered, {"degree": 2})
    same = pursuit.KernelMatchingPursuitRegressor(5, kernel=value).fit(WORDS, LABELS)
    assert_array_equal(model.predict(NEW), same.predict(NEW))
    assert_array_equal(value(np.array(NEW), np.array(WORDS)), spectrum(NEW_, WORDS_) ** 2)


def test_a_function_for_each_class():
    def squared(X, Z):
        return spectrum(X, Z) ** 2

    kernels = {0: spectrum, 1: squared}
    model = pursuit.KernelMatchingPursuitClassifier(8, kernel=kernels).fit(WORDS, LABELS)
    assert set(model.component_names_) == {"spectrum", "squared"}
    assert (model.predict(WORDS) == LABELS).mean() > 0.8


NEW_, WORDS_ = np.array(NEW), np.array(WORDS)


def lengths(X, Z):
    """A kernel of the sums of series."""
    return np.outer([np.sum(x) for x in X], [np.sum(z) for z in Z]) + 1.0


def test_series_of_different_lengths_and_queries_of_one():
    series = [np.arange(n) * 0.1 for n in range(2, 20)]
    y = np.array([2.0 * x.sum() + 1.0 for x in series])
    model = pursuit.KernelMatchingPursuitRegressor(1, kernel=lengths).fit(series, y)
    assert_allclose(model.predict([[1.0, 2.0], [3.0, 4.0]]), [7.0, 15.0], rtol=1e-6)
    assert_allclose(model.predict(np.array([[1.0, 2.0], [3.0, 4.0]])), [7.0, 15.0], rtol=1e-6)


def test_a_list_of_matrices():
    tables = [np.full((2, 2), value) for value in (0.1, 0.2, 0.4)]
    model = pursuit.KernelMatchingPursuitRegressor(1, kernel=lengths).fit(tables, [1.0, 2.0, 4.0])
    assert_allclose(model.predict(np.array(tables)), [1.0, 2.0, 4.0], atol=1e-6)


@pytest.mark.parametrize("rows", [[[1.0, 2.0]], [[1, None]], np.zeros((2, 2), dtype=object), [1.0]])
def test_numbers_are_no_objects(rows):
    assert object_column(rows) is None


def test_rows_of_numbers_stay_vectors():
    X = np.random.default_rng(1).normal(size=(20, 3))
    given = pursuit.KernelMatchingPursuitRegressor(3, kernel=lambda A, B: A @ B.T)
    named = pursuit.KernelMatchingPursuitRegressor(3, kernel="linear")
    y = X @ [1.0, 2.0, 3.0]
    assert_allclose(given.fit(X.tolist(), y).predict(X), named.fit(X, y).predict(X))
    with pytest.raises(ValueError, match="the rows of fit were numbers"):
        given.predict(WORDS)


def test_a_second_fit_on_numbers_forgets_the_objects():
    model = pursuit.KernelMatchingPursuitRegressor(1, kernel=lengths)
    model.fit([[1.0], [2.0, 3.0], [4.0, 5.0]], [1.0, 2.0, 3.0])
    model.fit(np.triu(np.ones((3, 3))), [1.0, 2.0, 3.0])
    assert model.n_features_in_ == 3
    assert not hasattr(model, "_fitted_on_objects")


def test_a_weight_of_two_is_the_word_twice():
    weights = np.where(np.arange(60) < 10, 2.0, 1.0)
    weighted = pursuit.KernelMatchingPursuitClassifier(8, kernel=spectrum)
    weighted.fit(WORDS, LABELS, sample_weight=weights)
    twice = pursuit.KernelMatchingPursuitClassifier(8, kernel=spectrum)
    twice.fit(WORDS + WORDS[:10], np.concatenate([LABELS, LABELS[:10]]))
    assert_allclose(weighted.decision_function(NEW), twice.decision_function(NEW), atol=1e-8)
    assert_array_equal(weighted.support_, twice.support_)


def test_drawn_candidates_follow_from_the_words():
    model = pursuit.KernelMatchingPursuitClassifier(5, kernel=spectrum, n_candidates=20)
    order = np.random.default_rng(2).permutation(60)
    one = set(model.fit(WORDS, LABELS).support_vectors_)
    other = set(model.fit([WORDS[i] for i in order], LABELS[order]).support_vectors_)
    assert one == other


def test_what_a_fitted_model_can_do():
    model = pursuit.KernelMatchingPursuitClassifier(6, kernel=spectrum).fit(WORDS, LABELS)
    small = model.truncate(3)
    assert_array_equal(list(model.staged_predict(NEW))[2], small.predict(NEW))
    explained = model.explain(NEW, n=6)
    total = explained.contributions.sum(axis=1) + explained.rest.ravel() + explained.intercept
    assert_allclose(total.ravel(), model.decision_function(NEW), atol=1e-8)
    held_out = pursuit.KernelMatchingPursuitClassifier(6, kernel=spectrum, early_stopping=True)
    held_out.fit(WORDS, LABELS, X_val=NEW, y_val=np.arange(len(NEW)) % 2)
    assert len(held_out.validation_loss_path_) == 6
    with pytest.raises(ValueError, match="feature_relevances need rows of numbers"):
        model.feature_relevances(NEW)
    with pytest.raises(ValueError, match="predictor needs rows of numbers"):
        model.predictor()


def test_a_search_of_scikit_learn():
    budgets = {"n_components": [1, 8]}
    on_words = pursuit.KernelMatchingPursuitClassifier(kernel=spectrum)
    on_counts = pursuit.KernelMatchingPursuitClassifier(kernel="linear")
    search = GridSearchCV(on_words, budgets, cv=3).fit(WORDS, LABELS)
    plain = GridSearchCV(on_counts, budgets, cv=3).fit(counts(WORDS), LABELS)
    for name in ("split0_test_score", "split1_test_score", "split2_test_score"):
        assert_allclose(search.cv_results_[name], plain.cv_results_[name])


def test_errors_about_length_and_targets():
    model = pursuit.KernelMatchingPursuitClassifier(5, kernel=spectrum)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        model.fit(WORDS, LABELS[1:])
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(WORDS, None)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            pursuit.SparseKernelPCA(5, kernel=spectrum, fit_inverse_transform=True),
            "fit_inverse_transform needs rows of numbers",
        ),
        (
            pursuit.SparseKernelPCA(5, kernel=spectrum, selection="kmeans"),
            "selection='kmeans' needs rows of numbers",
        ),
        (
            pursuit.KernelMatchingPursuitRegressor(
                5, kernel=spectrum, dictionary=pursuit.dictionary.OrientedGaussians()
            ),
            "dictionary: OrientedGaussians need rows of numbers",
        ),
    ],
    ids=["inverse", "kmeans", "oriented"],
)
def test_options_that_need_coordinates_say_so(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(WORDS, LABELS)


def test_copies_are_told_by_pickle():
    class Closed:
        def __reduce__(self):
            raise TypeError("closed")

    with pytest.raises(ValueError, match="row 0 of X is an object that cannot be pickled"):
        pursuit.KernelMatchingPursuitRegressor(1, kernel=lengths, n_candidates=1).fit(
            [Closed(), Closed()], [0, 1]
        )


def test_pickle_keeps_the_function_and_a_model_file_refuses_it(tmp_path):
    model = pursuit.KernelMatchingPursuitClassifier(6, kernel=spectrum).fit(WORDS, LABELS)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(NEW), model.predict(NEW))
    with pytest.raises(ValueError, match="A model file holds no code"):
        pursuit.save(model, tmp_path / "words.pursuit")
    # What the message says to do: kernel values as rows, the words beside the file.
    K = spectrum(WORDS_, WORDS_)
    values = pursuit.KernelMatchingPursuitClassifier(6, kernel="precomputed").fit(K, LABELS)
    pursuit.save(values, tmp_path / "values.pursuit")
    loaded = pursuit.load(tmp_path / "values.pursuit")
    assert_array_equal(loaded.predict(spectrum(NEW_, WORDS_)), model.predict(NEW))
