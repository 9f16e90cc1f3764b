"""Estimators that are an expansion and no more: reading data, predictions, probabilities."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from problems import as_targets, awkward
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from pursuit.base.estimators import ExpansionClassifier, ExpansionRegressor
from pursuit.expansion.basis_functions import Atoms, FunctionAtoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.kernels import RBF, Linear, Precomputed

P = awkward()
NEW = P.X[:20] + 0.1
TWO = np.where(P.labels == "mole", "mole", "other")


class Classifier(ClassifierMixin, ExpansionClassifier):
    """The kernel's sum over the first rows, each with its own target as coefficient."""

    def __init__(self, n_components=4, multi_class="shared", class_weight=None, kernel="rbf"):
        self.n_components = n_components
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.kernel = kernel

    def fit(self, X, y, sample_weight=None):
        samples = self._read(X, y, sample_weight)
        self.budgets_ = self._budgets(samples.Y.shape[1])
        self.weights_ = samples.weights
        rows = np.arange(sum(self.budgets_))
        atoms = Atoms(RBF(0.3), samples.X[rows])
        level = 0.1 * np.arange(samples.Y.shape[1]) - 0.05
        self._store_expansion(KernelExpansion(atoms, samples.Y[rows].T, level), rows)
        self._fit_temperature(samples)
        return self


class Regressor(RegressorMixin, ExpansionRegressor):
    """The same for numbers."""

    def fit(self, X, y, sample_weight=None):
        samples = self._read(X, y, sample_weight)
        atoms = Atoms(RBF(0.3), samples.X[:4])
        self._store_expansion(KernelExpansion(atoms, samples.Y[:4].T, samples.Y[0]))
        return self


def values_of(model, X):
    """The expansion, written out from the fitted attributes."""
    return reference.rbf(X, model.support_vectors_, 0.3) @ model.dual_coef_.T + model.intercept_


@pytest.mark.parametrize("labels", [TWO, P.labels], ids=["two", "three"])
def test_classes(labels):
    model = Classifier().fit(P.X, labels, P.weights)
    expected = values_of(model, NEW)
    values = model.decision_function(NEW)
    assert_allclose(values, expected[:, 0] if expected.shape[1] == 1 else expected, rtol=1e-10)
    winners = (expected[:, 0] > 0).astype(int) if values.ndim == 1 else expected.argmax(axis=1)
    assert_array_equal(model.predict(NEW), model.classes_[winners])
    assert len(set(winners)) > 1
    table = model.predict_proba(NEW)
    assert_allclose(table, reference.probabilities(expected, model.temperature_), rtol=1e-8)
    assert_array_equal(model.classes_[table.argmax(axis=1)], model.predict(NEW))
    assert_array_equal(model.support_vectors_, P.X[model.support_])
    assert model.n_components_ == 4 and model.kernel_ == RBF(0.3)
    assert model.component_names_ == ["RBF(gamma=0.3)"] * 4
    assert_allclose(model.decision_function(sparse.csr_matrix(NEW)), values, rtol=1e-6)


@pytest.mark.parametrize("labels", [TWO, P.labels], ids=["two", "three"])
def test_temperature_is_the_best_on_the_rows_given(labels):
    """Each row counts a little for every class but its own."""
    model = Classifier().fit(P.X, labels, P.weights)
    codes = np.searchsorted(model.classes_, labels)
    expected = reference.smooth_temperature(values_of(model, P.X), codes, P.weights)
    assert_allclose(model.temperature_, expected, rtol=1e-4)


def test_separated_rows_leave_a_doubt():
    """Two rows on either side of +-1: Platt's target is 3/4, so that s = log 3."""
    X = np.array([[-1.0], [1.0]])
    model = Classifier(2).fit(X, ["no", "yes"])
    model._store_expansion(KernelExpansion(Atoms(Linear(), X[1:]), np.ones((1, 1)), np.zeros(1)))
    model._fit_temperature(model._read(X, ["no", "yes"], None))
    assert_allclose(model.temperature_, 1 / np.log(3), rtol=1e-5)
    assert_allclose(model.predict_proba(X[1:]), [[0.25, 0.75]], rtol=1e-5)


def test_rows_that_have_the_only_say_on_a_vector_are_no_evidence():
    """Where each row has its own vector nothing is known, where it is there twice all is."""
    X, y = np.array([[0.0], [100.0]]), np.array(["no", "yes"])
    model = Classifier(2).fit(X, y)
    atoms = Atoms(RBF(1.0), X)
    model._store_expansion(KernelExpansion(atoms, np.array([[-1.0, 1.0]]), np.zeros(1)))
    model._fit_temperature(model._read(X, y, None))
    assert_allclose(model.predict_proba(X), 0.5, atol=1e-3)
    model._fit_temperature(model._read(np.vstack([X, X]), np.tile(y, 2), None))
    twice = model.temperature_
    assert_allclose(model.predict_proba(X), [[5 / 6, 1 / 6], [1 / 6, 5 / 6]], rtol=1e-5)
    model._fit_temperature(model._read(X, y, np.full(2, 2.0)))
    assert_allclose(model.temperature_, twice, rtol=1e-12)


def test_numbers():
    model = Regressor().fit(P.X, P.Y)
    assert_allclose(model.predict(NEW), values_of(model, NEW), rtol=1e-10)
    assert not hasattr(model, "support_")
    single = Regressor().fit(P.X, P.Y[:, 0])
    assert_allclose(single.predict(NEW), model.predict(NEW)[:, 0], rtol=1e-12)
    assert get_tags(model).target_tags.multi_output and get_tags(model).input_tags.sparse


def test_targets_and_weights():
    model = Classifier(class_weight={"ant": 2.0, "mole": 0.5, "zebra": 3.0})
    model.fit(P.X, P.labels, P.weights)
    assert_array_equal(model.classes_, ["ant", "mole", "zebra"])
    factors = np.array([{"ant": 2.0, "mole": 0.5, "zebra": 3.0}[label] for label in P.labels])
    assert_allclose(model.weights_, P.weights * factors)
    assert_array_equal(model.dual_coef_, as_targets(P.labels)[:4].T)
    absent = np.where(P.labels == "ant", 0.0, 1.0)
    assert_array_equal(Classifier().fit(P.X, P.labels, absent).classes_, ["mole", "zebra"])


@pytest.mark.parametrize(
    ("options", "budgets"),
    [
        ({"n_components": 7}, [7]),
        ({"n_components": 7, "multi_class": "ovr"}, [3, 2, 2]),
        ({"n_components": [1, 5, 2], "multi_class": "ovr"}, [1, 5, 2]),
    ],
)
def test_budgets(options, budgets):
    assert Classifier(**options).fit(P.X, P.labels).budgets_ == budgets


@pytest.mark.parametrize(
    ("options", "labels", "message"),
    [
        ({"n_components": 0}, P.labels, "n_components must be an integer of at least 1, got 0"),
        ({"multi_class": "ovo"}, P.labels, "multi_class must be one of"),
        ({"n_components": [2, 2], "multi_class": "ovr"}, P.labels, "n_components has 2 entries"),
        ({"class_weight": {"ant": 0.0}}, P.labels, "class_weight is zero for the class ant"),
        ({}, np.full(60, "ant"), "y has one class only"),
        ({}, P.Y[:, 0], "Unknown label type"),
    ],
)
def test_errors(options, labels, message):
    with pytest.raises(ValueError, match=message):
        Classifier(**options).fit(P.X, labels)


def test_a_second_fit_forgets_the_first():
    """Attributes that the new expansion does not have are gone."""
    model = Classifier().fit(P.X, P.labels)
    assert hasattr(model, "support_")
    functions = FunctionAtoms({"first": lambda X: X[:, 0]})
    model._store_expansion(KernelExpansion(functions, np.ones((3, 1)), np.zeros(3)))
    assert not hasattr(model, "support_") and not hasattr(model, "support_vectors_")
    assert model.component_names_ == ["first"]


def test_before_the_fit():
    with pytest.raises(NotFittedError):
        Classifier().predict(NEW)
    for kernel in ("precomputed", Precomputed()):
        assert get_tags(Classifier(kernel=kernel)).input_tags.pairwise
    assert not get_tags(Classifier()).input_tags.pairwise
