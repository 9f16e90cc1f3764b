"""Machine code of a model: the same answers, from many threads, of one byte a number, too."""

import pickle
import threading

import numpy as np
import pytest
from c_program import needs_cc
from exported import fitted
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

import pursuit as p
from pursuit import datasets
from pursuit.export import compiled

METHODS = ("decision_function", "predict_proba", "score_samples", "transform")


@needs_cc
@pytest.mark.parametrize("name", ["nystroem", "compress pairs", "kmp log_loss", "novelty"])
def test_methods_are_those_of_the_model(name):
    model, X = fitted(name)
    fast = compiled(model)
    for method in METHODS:
        if hasattr(model, method):
            expected = getattr(model, method)(X)
            found = getattr(fast, method)(X)
            assert found.shape == expected.shape
            assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
        else:
            with pytest.raises(AttributeError, match=method):
                getattr(fast, method)(X)
    if hasattr(model, "predict"):
        assert_array_equal(fast.predict(X), model.predict(X))
        assert [fast.predict_one(x) for x in X[:5]] == model.predict(X[:5]).tolist()
        assert fast.classes_.tolist() == sorted(set(model.predict(X).tolist()))


@needs_cc
def test_numbers_and_tables_of_numbers():
    model, X = fitted("poisson")
    fast = compiled(model)
    assert_allclose(fast.predict(X), model.predict(X), rtol=1e-5)
    assert_allclose(fast.predict_one(X[3]), model.predict(X[3:4])[0], rtol=1e-5)
    model, X = fitted("regressor table")
    fast = compiled(model)
    assert_allclose(fast.predict(X), model.predict(X), rtol=1e-4, atol=1e-4)
    with pytest.raises(AttributeError, match="single number"):
        fast.predict_one(X[0])


@needs_cc
def test_threads_copies_and_shapes():
    model, X = fitted("slmc")
    fast = pickle.loads(pickle.dumps(compiled(model, "int16")))
    expected, found = fast.predict_proba(X), {}

    def work(k):
        found[k] = [fast.predict_proba(X) for _ in range(20)], [fast.predict_one(x) for x in X]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    labels = fast.predict(X).tolist()
    for tables, one_by_one in found.values():
        assert one_by_one == labels
        for table in tables:
            assert_array_equal(table, expected)
    assert_array_equal(fast.predict_proba(np.asfortranarray(X)), expected)
    for wrong in (X[:, :2], X[0]):
        with pytest.raises(ValueError, match=r"X must have shape \(n_rows, 5\)"):
            fast.predict(wrong)
    with pytest.raises(ValueError, match="x must have shape"):
        fast.predict_one(X[0, :2])


def test_a_missing_compiler_is_said_clearly():
    with pytest.raises(RuntimeError, match="there is no 'no-such-compiler'"):
        compiled(fitted("slmc")[0], compiler="no-such-compiler")


@needs_cc
def test_a_failing_compiler_is_quoted():
    with pytest.raises(RuntimeError, match="false failed"):
        compiled(fitted("slmc")[0], compiler="false")


@needs_cc
@pytest.mark.parametrize("scaled", [False, True])
def test_one_byte_loses_little_on_digits(scaled):
    X, y = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X) if scaled else X
    pursuit = p.KernelMatchingPursuitClassifier(60, n_candidates=200, random_state=0)
    moved = p.SparseKernelClassifier(25, random_state=0, max_iter=9)
    model = (moved if scaled else pursuit).fit(X[:900], y[:900])
    found = compiled(model, "int8").predict(X[900:])
    assert model.score(X[900:], y[900:]) - np.mean(found == y[900:]) <= 0.003


@needs_cc
@pytest.mark.parametrize("name", ["usps", "letter"])
def test_one_byte_loses_little_on_real_data(data_folder, name):
    (X, y), (X_test, y_test) = datasets.load(name, "train"), datasets.load(name, "test")
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    options = {"n_candidates": 150, "random_state": 0}
    model = p.KernelMatchingPursuitClassifier(120, **options).fit(X[:2000], y[:2000])
    found = compiled(model, "int8").predict(X_test)
    assert model.score(X_test, y_test) - np.mean(found == y_test) <= 0.003
