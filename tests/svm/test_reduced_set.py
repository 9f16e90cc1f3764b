"""Reduced sets and reduced support vector machines: RS, MRS, RSVM and MRSVM."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pursuit import ReducedSetClassifier, ReducedSupportVectorClassifier, load, save
from pursuit._validation import Samples
from pursuit.kernels import RBF, Laplacian, Linear, Polynomial
from pursuit.optimize.svm_on_vectors import solve_on_vectors
from pursuit.svm.reduced_set import support_vectors

ALL = 10_000
KINDS = [
    ReducedSetClassifier(C=2.0, gamma=0.1),
    ReducedSetClassifier(C=2.0, gamma=0.1, coefficients="margin"),
    ReducedSupportVectorClassifier(C=2.0, gamma=0.1, random_state=0),
    ReducedSupportVectorClassifier(C=2.0, gamma=0.1, regularizer="margin", random_state=0),
]
NAMES = ["RS", "MRS", "RSVM", "MRSVM"]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["white", "red", "green"])[y]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    return X[:300] / 16, y[:300], X[300:600] / 16, y[300:600]


def hinge(Y, values, bounds):
    return bounds @ np.maximum(0, 1 - Y * values)


@pytest.mark.parametrize("kernel", [RBF(0.1), Linear(), Polynomial(0.1, 2, 1.0), Laplacian(0.1)])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_the_machines_are_those_of_libsvm(kernel, storage, wine, rng):
    X, y = wine
    Y = np.where(y[:, None] == ["green", "red", "white"], 1.0, -1.0)
    weights = rng.uniform(0.2, 3.0, size=len(y))
    signed, intercept = support_vectors(kernel, Samples(storage(X), Y, weights), 0.7)
    gram = kernel(X, X)
    for t in range(3):
        svc = SVC(C=0.7, kernel="precomputed").fit(gram, Y[:, t], sample_weight=weights)
        expected = svc.decision_function(gram)
        assert_allclose(gram @ signed[:, t] + intercept[t], expected, atol=5e-3)
    assert (np.abs(signed) <= 0.7 * weights[:, None] + 1e-9).all()
    assert (signed * Y >= 0).all()


@pytest.mark.parametrize("multi_class", ["ovr", "shared"])
def test_with_all_support_vectors_the_reduced_set_is_the_machine(multi_class, digits):
    X, y, fresh, _ = digits
    model = ReducedSetClassifier(ALL, C=5.0, multi_class=multi_class).fit(X, y)
    gamma = model.kernel_.gamma
    for c in range(5):
        svc = SVC(C=5.0, gamma=gamma).fit(X, y == c)
        assert_allclose(
            model.decision_function(fresh)[:, c], svc.decision_function(fresh), atol=1e-8
        )
    assert model.relative_error_ == 0.0
    assert set(model.stop_reasons_) == {"exact"}
    assert model.n_support_vectors_ == len(np.unique(model.support_vectors_, axis=0))


@pytest.mark.parametrize("multi_class", ["ovr", "shared"])
def test_decision_values_approach_the_machine_as_vectors_come(multi_class, digits):
    X, y, fresh, _ = digits
    full = ReducedSetClassifier(ALL, C=5.0, multi_class=multi_class).fit(X, y)
    expected = full.decision_function(fresh)
    moved, errors = [], []
    for n in (10, 40, 120):
        model = ReducedSetClassifier(n, C=5.0, multi_class=multi_class).fit(X, y)
        assert model.n_components_ == n
        moved.append(np.abs(model.decision_function(fresh) - expected).max())
        errors.append(model.relative_error_)
        assert_allclose(model.intercept_, full.intercept_)
    assert moved[0] > moved[1] > moved[2]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.1


def test_the_error_of_all_classes_weighs_their_machines(wine):
    X, y = wine
    model = ReducedSetClassifier(6, gamma=0.1, class_weight={"red": 9.0}).fit(X, y)
    full = ReducedSetClassifier(ALL, gamma=0.1, class_weight={"red": 9.0}).fit(X, y)
    K = full.kernel_(full.support_vectors_, full.support_vectors_)
    norms = np.diag(full.dual_coef_ @ K @ full.dual_coef_.T)
    both = np.vstack([full.support_vectors_, model.support_vectors_])
    signed = np.hstack([full.dual_coef_, -model.dual_coef_])
    errors = np.diag(signed @ model.kernel_(both, both) @ signed.T)
    assert_allclose(model.relative_errors_, np.sqrt(errors / norms), rtol=1e-5)
    assert_allclose(model.relative_error_, np.sqrt(errors.sum() / norms.sum()), rtol=1e-5)


@pytest.mark.parametrize("multi_class", ["ovr", "shared"])
def test_the_margin_is_the_best_on_the_same_vectors(multi_class, wine, rng):
    X, y = wine
    weights = rng.uniform(0.2, 3.0, size=len(y))
    settings = {"C": 3.0, "gamma": 0.1, "multi_class": multi_class}
    plain = ReducedSetClassifier(7, **settings).fit(X, y, sample_weight=weights)
    model = ReducedSetClassifier(7, coefficients="margin", **settings)
    model.fit(X, y, sample_weight=weights)
    assert_allclose(model.support_vectors_, plain.support_vectors_)
    for t, c in enumerate(model.classes_):
        own = model.dual_coef_[t] != 0
        assert own.sum() == (7 if multi_class == "shared" else [3, 2, 2][t])
        Y = np.where(y == c, 1.0, -1.0)
        best = solve_on_vectors(
            model.kernel_, model.support_vectors_[own], X, Y[:, None], 3.0 * weights
        )
        assert_allclose(model.dual_coef_[t][own], best.beta[:, 0], rtol=1e-6)
        assert_allclose(model.intercept_[t], best.intercept[0], rtol=1e-6)


@pytest.mark.parametrize("regularizer", ["coefficients", "margin"])
def test_drawn_rows_get_the_best_coefficients(regularizer, wine, rng):
    X, y = wine[0], wine[1] == "red"
    weights = rng.uniform(0.2, 3.0, size=len(y))
    model = ReducedSupportVectorClassifier(
        5, C=3.0, gamma=0.1, regularizer=regularizer, random_state=0
    ).fit(X, y, sample_weight=weights)
    Z = model.support_vectors_
    assert_array_equal(Z, X[model.support_])
    assert len(np.unique(model.support_)) == 5
    K, values = model.kernel_(Z, Z), model.kernel_(X, Z)
    penalty = np.eye(5) if regularizer == "coefficients" else K
    Y = np.where(y, 1.0, -1.0)

    def objective(parameters):
        beta, b = parameters[:5], parameters[5]
        return beta @ penalty @ beta / 2 + hinge(Y, values @ beta + b, 3.0 * weights)

    found = np.append(model.dual_coef_[0], model.intercept_)
    lowest = min(
        minimize(objective, found + s * rng.normal(size=6), method="Powell").fun
        for s in (0, 0.1, 1)
    )
    assert objective(found) <= lowest * (1 + 1e-5)


def test_the_draw_differs_by_seed_and_by_class(wine):
    def draw(**options):
        settings = {"gamma": 0.1, "random_state": 0} | options
        return ReducedSupportVectorClassifier(9, **settings).fit(*wine).support_

    assert_array_equal(draw(), draw())
    assert (draw() != draw(random_state=1)).any()
    assert len(draw(multi_class="shared")) == 9
    assert set(draw()[:3]) != set(draw()[3:6])


@pytest.mark.parametrize("model", KINDS, ids=NAMES)
@pytest.mark.parametrize("multi_class", ["ovr", "shared"])
def test_labels_probabilities_and_files_agree(model, multi_class, wine, tmp_path):
    X, y = wine
    model = clone(model).set_params(n_components=24, multi_class=multi_class).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.dual_coef_.shape == (3, 24)
    assert_array_equal(model.classes_, ["green", "red", "white"])
    labels = model.predict(X)
    assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], labels)
    assert_array_equal(model.classes_[model.decision_function(X).argmax(axis=1)], labels)
    save(model, tmp_path / "model.pursuit")
    same = load(tmp_path / "model.pursuit")
    assert_array_equal(same.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("model", KINDS, ids=NAMES)
def test_budgets_are_dealt_to_the_classes(model, wine):
    X, y = wine
    for n, each in ((8, [3, 3, 2]), ([1, 5, 2], [1, 5, 2]), (2, [1, 1, 0])):
        fitted = clone(model).set_params(n_components=n).fit(X, y)
        assert (fitted.dual_coef_ != 0).sum(axis=1).tolist() == each
    # Without a vector the constant is that of the heavier side.
    if not (isinstance(model, ReducedSetClassifier) and model.coefficients == "projection"):
        assert fitted.intercept_[2] == -1.0


@pytest.mark.parametrize("model", KINDS, ids=NAMES)
def test_a_weight_is_a_number_of_copies(model, wine):
    X, y = wine[0][::2], wine[1][::2]
    weights = np.tile([1.0, 2.0, 0.0], len(y))[: len(y)]
    copies = np.repeat(np.arange(len(y)), weights.astype(int))
    weighted = clone(model).set_params(n_components=ALL)
    repeated = clone(model).set_params(n_components=ALL)
    if isinstance(model, ReducedSetClassifier):
        weighted.fit(X, y, sample_weight=weights)
        repeated.fit(X[copies], y[copies])
    else:  # all distinct rows are drawn
        with pytest.warns(ConvergenceWarning, match="vectors do: there are no more distinct rows"):
            weighted.fit(X, y, sample_weight=weights)
        assert not np.isin(weighted.support_, np.flatnonzero(weights == 0)).any()
        with pytest.warns(ConvergenceWarning, match="distinct"):
            repeated.fit(X[copies], y[copies])
    expected = repeated.decision_function(X)
    assert_allclose(weighted.decision_function(X), expected, atol=2e-2 * np.abs(expected).max())


@pytest.mark.parametrize("model", KINDS, ids=NAMES)
def test_storage_and_precision_change_little(model, digits):
    X, y, fresh, _ = digits
    model = clone(model).set_params(n_components=30, multi_class="shared")
    labels = clone(model).fit(X, y).predict(fresh)
    few = clone(model).fit(sparse.csr_matrix(X), y)
    single = clone(model).fit(X.astype(np.float32), y)
    assert np.mean(few.predict(sparse.csr_matrix(fresh)) == labels) > 0.97
    assert np.mean(single.predict(fresh.astype(np.float32)) == labels) > 0.97


@pytest.mark.filterwarnings("ignore:n_components=3, but 2 vectors do")
@pytest.mark.parametrize("model", KINDS, ids=NAMES)
@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_degenerate_rows_give_finite_answers(model, C):
    X = np.repeat([[0.0, 1.0], [0.0, 1.0], [2.0, 3.0]], 5, axis=0)
    y = np.tile([0, 1, 1], 5)
    fitted = clone(model).set_params(C=C, n_components=2).fit(X, y)
    assert np.isfinite(fitted.decision_function(X)).all()
    assert np.isfinite(fitted.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ReducedSetClassifier(0), "n_components must be an integer of at least 1"),
        (ReducedSetClassifier([1, 2]), "n_components has 2 entries"),
        (ReducedSetClassifier(C=0.0), "C must be a finite number above 0"),
        (ReducedSetClassifier(tol=np.nan), "tol must be a finite number"),
        (ReducedSetClassifier(max_iter=1.5), "max_iter must be an integer"),
        (ReducedSetClassifier(coefficients="least"), "coefficients must be one of"),
        (ReducedSetClassifier(multi_class="ovo"), "multi_class must be one of"),
        (ReducedSetClassifier(kernel="sigmoid"), "kernel: the sigmoid kernel is not positive"),
        (ReducedSetClassifier(kernel="chi2"), "kernel: .*derivative"),
        (ReducedSetClassifier(kernel="precomputed"), "kernel='precomputed'"),
        (ReducedSetClassifier(kernel=lambda X, Z: X @ Z.T), "kernel: .*derivative"),
        (ReducedSupportVectorClassifier(kernel="precomputed"), "kernel='precomputed'"),
        (ReducedSupportVectorClassifier(C=-1.0), "C must be a finite number above 0"),
        (ReducedSupportVectorClassifier(regularizer="l1"), "regularizer must be one of"),
        (
            ReducedSupportVectorClassifier(
                kernel="sigmoid", gamma=1.0, coef0=-1.0, regularizer="margin"
            ),
            "kernel: .*not positive semidefinite",
        ),
    ],
)
def test_parameters_that_are_no_good(model, message, wine):
    with pytest.raises(ValueError, match=message):
        model.fit(*wine)


def test_any_kernel_serves_the_reduced_machine(wine):
    X, y = wine
    for kernel in ("sigmoid", lambda X, Z: X @ Z.T, "poly"):
        model = ReducedSupportVectorClassifier(20, kernel=kernel, gamma=0.05, random_state=0)
        assert model.fit(X, y).score(X, y) > 0.9
