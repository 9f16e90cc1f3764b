"""Machines whose vectors move: the plain statement, the full machine, weights, odd data."""

import warnings

import numpy as np
import pytest
import reference
import sklearn
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from problems import awkward
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import pursuit
from pursuit import RelevanceVectorClassifier, SparseLargeMarginClassifier
from pursuit._validation import Samples
from pursuit.kernels import RBF, CosinePolynomial, Laplacian, Polynomial, Sigmoid
from pursuit.svm.sparse_large_margin import sparse_large_margin

P = awkward()
TWO = np.where(P.labels == "mole", "mole", "other")
SIGNS = np.where(TWO == "other", 1.0, -1.0)
USED = P.weights > 0
GAMMA = 0.3


def classifier(n=6, labels=P.labels, weights=P.weights, **options):
    options = {"C": 3.0, "gamma": GAMMA, "random_state": 0, **options}
    return SparseLargeMarginClassifier(n, **options).fit(P.X, labels, weights)


def kernel(X, Z):
    return reference.rbf(X, Z, GAMMA)


FITTED = {
    "two": classifier(labels=TWO),
    "ovr": classifier(),
    "shared": classifier(multi_class="shared"),
}


# Against the plain statement and the full machine.


@pytest.mark.parametrize("seed", range(3))
def test_the_vectors_are_at_least_as_good_as_those_of_the_plain_statement(seed):
    """On a line, two vectors from one start; weights differ."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-3, 3, size=(40, 1)), axis=0)
    y = np.where(np.abs(X[:, 0]) < 1.2 + 0.3 * rng.normal(size=40), 1.0, -1.0)
    weights = rng.uniform(0.3, 2.0, size=40)
    Z = X[[5, 30]]

    def gaussian(X, Z):
        return reference.rbf(X, Z, 0.8)

    expected = reference.sparse_large_margin(gaussian, Z, X, y, 4.0 * weights)
    lowest = reference.machine_on_vectors(gaussian, expected, X, y, 4.0 * weights).objective
    found = sparse_large_margin(RBF(0.8), Z, Samples(X, y[:, None], weights), 4.0, tol=1e-8)
    assert found.best.value < found.values[0] * 0.999
    assert found.best.value <= lowest * (1 + 1e-3)
    check = reference.machine_on_vectors(gaussian, found.best.place.Z, X, y, 4.0 * weights)
    assert_allclose(found.best.value, check.objective, rtol=1e-5)


MOONS, IRIS = make_moons(80, noise=0.3, random_state=1), load_iris(return_X_y=True)
IRIS = StandardScaler().fit_transform(IRIS[0]), IRIS[1]
SHARED, P_SHARED = {"multi_class": "shared"}, (P.X, P.labels, P.weights)
# W at the end (max_iter=500, tol=1e-10, random_state=0) and after 5 iterations at commit 7a96a54,
# whose machine had an energy and a descent of its own.
RECORDED = [
    ((*MOONS, None), 1, {"C": 5.0, "gamma": 0.7}, 167.800908228, 168.035221855),
    ((*MOONS, None), 2, {"C": 5.0, "gamma": 0.7}, 131.033289162, 150.419846595),
    (
        (P.X, P.labels, P.weights),
        2,
        {"C": 3.0, "gamma": 0.3, **SHARED},
        320.534923148,
        324.034259641,
    ),
    ((*IRIS, None), 2, {"gamma": 0.3, **SHARED}, 95.8446950175, 97.3194493741),
    ((*IRIS, None), 6, {"gamma": 0.3}, 84.6680504473, 87.6403629517),
]


@pytest.mark.parametrize(("data", "n", "options", "lowest", "fifth"), RECORDED)
def test_the_engine_comes_to_where_the_descent_of_its_own_came(data, n, options, lowest, fifth):
    """1e-6 in W at the end, or lower."""
    options = {"max_iter": 500, "tol": 1e-10, "random_state": 0, **options}
    model = SparseLargeMarginClassifier(n, **options).fit(*data)
    assert model.objective_ <= lowest * (1 + 1e-6)
    assert_allclose(model.objective_path_[5], fifth, rtol=1e-6)


@pytest.mark.parametrize("name", FITTED)
def test_coefficients_are_those_of_the_machine_on_the_vectors(name):
    """Equation 33 for each output, by LIBSVM on the modified kernel."""
    model = FITTED[name]
    total = 0.0
    for t, label in enumerate(["other"] if name == "two" else model.classes_):
        labels = TWO if name == "two" else P.labels
        y = np.where(labels == label, 1.0, -1.0)[USED]
        own = np.flatnonzero(model.dual_coef_[t])
        assert len(own) == (2 if name == "ovr" else 6)
        Z = model.support_vectors_[own]
        plain = reference.machine_on_vectors(kernel, Z, P.X[USED], y, 3.0 * P.weights[USED])
        values = kernel(P.X, Z) @ plain.beta + plain.intercept
        found = model.decision_function(P.X).reshape(len(P.X), -1)[:, t]
        assert_allclose(found, values, atol=2e-3 * np.abs(values).max())
        total += plain.objective
    assert_allclose(model.objective_, total, rtol=1e-5)
    assert model.duality_gap_ <= 1e-6


@pytest.mark.parametrize("C", [0.3, 5.0])
def test_all_rows_as_vectors_are_the_full_machine(C):
    """Equations 16 to 18 with z = x; the optimum needs no moving."""
    X, y = make_moons(80, noise=0.3, random_state=1)
    model = SparseLargeMarginClassifier(80, C=C, gamma=0.7, init=X, max_iter=20).fit(X, y)
    svc = SVC(C=C, gamma=0.7, tol=1e-8).fit(X, y)
    assert_allclose(model.decision_function(X), svc.decision_function(X), atol=1e-3)
    assert_allclose(model.objective_, model.objective_path_[0], rtol=1e-6)
    assert model.stop_reason_ == "tol"


def test_a_dozen_vectors_do_the_work_of_the_machine():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    train, test = np.arange(569) % 2 == 0, np.arange(569) % 2 == 1
    svc = SVC(C=5.0).fit(X[train], y[train])
    model = SparseLargeMarginClassifier(6, C=5.0, random_state=0).fit(X[train], y[train])
    assert len(svc.support_) > 50
    assert model.score(X[test], y[test]) > svc.score(X[test], y[test]) - 0.015
    fixed = clone(model).set_params(max_iter=0).fit(X[train], y[train])
    assert fixed.n_iter_ == 0 and fixed.stop_reason_ == "max_iter"
    assert model.objective_ < 0.6 * fixed.objective_


# The way down.


@pytest.mark.parametrize(
    ("multi_class", "init"),
    [
        ("ovr", "random"),
        ("shared", "kmeans"),
        ("ovr", P.X[20:26] + 0.1),
        ("shared", "matching_pursuit"),
    ],
)
def test_the_objective_falls(multi_class, init):
    model = classifier(multi_class=multi_class, init=init)
    path = model.objective_path_
    assert len(path) == model.n_iter_ + 1 > 3
    assert_array_less(np.diff(path), 1e-9 * path[0])
    assert_allclose(model.objective_, path[-1], rtol=1e-6)
    assert model.stop_reason_ == "tol" and model.n_components_ == 6


def test_tol_ends_the_way():
    loose, tight = (classifier(labels=TWO, tol=tol) for tol in (1e-2, 1e-6))
    assert loose.n_iter_ < tight.n_iter_
    assert tight.objective_ < loose.objective_
    path = loose.objective_path_
    falls = (path[:-5] - path[5:]) / path[5:]
    assert falls[-1] <= 5e-2 and (falls[:-1] > 5e-2).all()


def test_max_iter_ends_the_way_and_says_so():
    with pytest.warns(ConvergenceWarning, match="max_iter=4 iterations"):
        model = classifier(labels=TWO, max_iter=4)
    assert (model.n_iter_, model.stop_reason_) == (4, "max_iter")


@pytest.mark.parametrize(("init", "multi_class"), [("kmeans", "ovr"), ("random", "shared")])
def test_the_best_start_is_kept(init, multi_class):
    options = {"init": init, "multi_class": multi_class, "tol": 1e-3}
    several = classifier(n_init=3, **options)
    assert several.objective_ <= classifier(**options).objective_
    rng = np.random.RandomState(0)  # the starts of one class after those of another
    if multi_class == "shared":
        ones = [classifier(random_state=rng, **options).objective_ for _ in range(3)]
        assert_allclose(several.objective_, min(ones), rtol=1e-9)
        assert len(set(ones)) == 3


def test_more_vectors_are_better():
    lowest = [classifier(n, TWO, n_init=2, tol=1e-3).objective_ for n in (1, 3, 9)]
    assert_array_less(np.diff(lowest), 0.0)


def test_starts():
    """Without moving, the vectors are what `init` says."""
    options = {"max_iter": 0, "multi_class": "ovr"}
    rows = {tuple(row) for row in P.X[USED]}
    for init in ("random", "matching_pursuit"):
        assert all(tuple(z) in rows for z in classifier(init=init, **options).support_vectors_)
    given = P.X[20:26] + 0.1
    assert_array_equal(classifier(init=given, **options).support_vectors_, given)
    pursuit_ = pursuit.KernelMatchingPursuitClassifier(6, gamma=GAMMA, multi_class="shared")
    pursuit_.fit(P.X, P.labels, P.weights)
    shared = classifier(init="matching_pursuit", multi_class="shared", max_iter=0)
    assert_array_equal(shared.support_vectors_, pursuit_.support_vectors_)
    centres = classifier(init="kmeans", labels=TWO, max_iter=0).support_vectors_
    nearest = np.argmin(((P.X[USED, None] - centres) ** 2).sum(axis=2), axis=1)
    means = [np.average(P.X[USED][nearest == k], axis=0, weights=P.weights[USED][nearest == k])
             for k in range(6)]  # fmt: skip
    assert_allclose(centres, means, rtol=1e-6)


def test_rows_are_drawn_by_their_weights():
    """Two rows weigh a thousand times as much as any other."""
    weights = np.ones(60)
    weights[[7, 21]] = 1e5
    model = classifier(2, TWO, weights, max_iter=0)
    assert {tuple(z) for z in model.support_vectors_} == {tuple(P.X[7]), tuple(P.X[21])}


def test_vectors_that_start_at_one_place_are_parted():
    init = np.vstack([P.X[:3], P.X[:3]])
    start = classifier(labels=TWO, init=init, max_iter=0).support_vectors_
    assert_array_equal(start[:3], init[:3])
    moved = np.linalg.norm(start[3:] - init[3:], axis=1)
    assert (moved > 0.01).all() and (moved < 2.0).all()
    model = classifier(labels=TWO, init=init)
    assert model.objective_ < 0.98 * classifier(3, TWO, init=P.X[:3]).objective_


def test_budgets_of_the_classes():
    for budget, options, expected in (
        (7, {}, [3, 2, 2]),
        ([1, 4, 2], {}, [1, 4, 2]),
        (7, {"multi_class": "shared"}, [7, 7, 7]),
    ):
        model = classifier(budget, max_iter=0, **options)
        assert_array_equal((model.dual_coef_ != 0).sum(axis=1), expected)


# Prediction.


@pytest.mark.parametrize("name", FITTED)
def test_predictions(name):
    model = FITTED[name]
    values = kernel(P.X, model.support_vectors_) @ model.dual_coef_.T + model.intercept_
    found = model.decision_function(P.X)
    assert_allclose(found.reshape(values.shape), values, rtol=1e-7, atol=1e-8)
    table = model.predict_proba(P.X)
    assert_array_equal(model.classes_[table.argmax(axis=1)], model.predict(P.X))
    labels = TWO if name == "two" else P.labels
    assert model.score(P.X[USED], labels[USED]) > 0.6
    codes = np.searchsorted(model.classes_, labels)[USED]
    best = reference.smooth_temperature(values[USED], codes, P.weights[USED])
    assert_allclose(model.temperature_, best, rtol=1e-4)


@pytest.mark.parametrize("name", FITTED)
def test_save_and_load(name, tmp_path):
    model = FITTED[name]
    pursuit.save(model, tmp_path / "model")
    loaded = pursuit.load(tmp_path / "model")
    assert_array_equal(loaded.predict_proba(P.X), model.predict_proba(P.X))
    assert_array_equal(loaded.objective_path_, model.objective_path_)
    assert loaded.get_params() == model.get_params()


# Weights, seeds, forms of data.


@pytest.mark.filterwarnings("ignore:max_iter=20")
@pytest.mark.parametrize("multi_class", ["ovr", "shared"])
def test_a_weight_counts_rows(multi_class):
    counts = np.arange(60) % 3
    init = P.X[20:26] + 0.1
    # Later steps lead rounding to one or the other of many minima.
    options = {"multi_class": multi_class, "init": init, "tol": 1e-5, "max_iter": 20}
    whole = classifier(weights=counts, **options)
    twice = SparseLargeMarginClassifier(6, C=3.0, gamma=GAMMA, **options)
    twice.fit(np.repeat(P.X, counts, axis=0), np.repeat(P.labels, counts))
    assert_allclose(whole.objective_path_[0], twice.objective_path_[0], rtol=1e-6)
    assert_allclose(whole.objective_, twice.objective_, rtol=2e-3)
    agree = whole.predict(P.X) == twice.predict(P.X)
    assert agree.mean() > 0.95


def test_class_weights_multiply_sample_weights():
    factors = {"mole": 3.0, "other": 0.5}
    init = P.X[20:26] + 0.1
    weighted = classifier(labels=TWO, class_weight=factors, init=init)
    weights = P.weights * np.array([factors[label] for label in TWO])
    assert_allclose(
        weighted.objective_, classifier(labels=TWO, weights=weights, init=init).objective_
    )
    plain = classifier(labels=TWO, init=init)
    assert np.mean(weighted.predict(P.X) == "mole") > np.mean(plain.predict(P.X) == "mole")


@pytest.mark.parametrize("init", ["random", "kmeans", "matching_pursuit"])
def test_seeds(init):
    first, again = (classifier(init=init, n_init=2, tol=1e-2) for _ in range(2))
    assert_array_equal(first.support_vectors_, again.support_vectors_)
    if init != "matching_pursuit":
        other = classifier(init=init, random_state=5, tol=1e-2)
        assert not np.allclose(first.support_vectors_, other.support_vectors_)


@pytest.mark.parametrize("init", ["random", "matching_pursuit"])
@pytest.mark.parametrize("form", [np.float32, sparse.csr_matrix, sparse.csr_array])
def test_forms_of_data(form, init, rng):
    X = np.where(rng.uniform(size=(60, 5)) < 0.5, rng.integers(-8, 9, size=(60, 5)) / 8, 0.0)
    y = X[:, 0] > X[:, 1]
    given = X.astype(form) if form is np.float32 else form(X)
    options = {"C": 3.0, "gamma": 0.5, "random_state": 0, "init": init, "tol": 1e-3}
    plain = SparseLargeMarginClassifier(4, **options).fit(X, y)
    model = SparseLargeMarginClassifier(4, **options).fit(given, y)
    assert model.support_vectors_.dtype == np.float64 and not sparse.issparse(
        model.support_vectors_
    )
    assert_allclose(model.objective_path_[:4], plain.objective_path_[:4], rtol=1e-4)
    assert_allclose(model.objective_, plain.objective_, rtol=5e-3)
    assert model.predict(given).shape == (60,)


def test_blocks_change_nothing():
    with sklearn.config_context(working_memory=1e-3):
        small = classifier(labels=TWO)
    assert_allclose(small.objective_path_[:10], FITTED["two"].objective_path_[:10], rtol=1e-5)


KERNELS = [RBF(0.3), Laplacian(0.2), Polynomial(0.1, 2, 1.0), CosinePolynomial(3, 1.0), "linear"]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels(kernel):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SparseLargeMarginClassifier(9, C=5.0, kernel=kernel, random_state=0).fit(X, y)
    assert model.objective_ < model.objective_path_[0] or kernel == "linear"
    assert model.score(X, y) > 0.88
    assert np.isfinite(model.dual_coef_).all()


# Odd data.


def finite(model, X):
    assert np.isfinite(model.dual_coef_).all() and np.isfinite(model.support_vectors_).all()
    table = model.predict_proba(X)
    assert_allclose(table.sum(axis=1), 1.0, rtol=1e-12)
    assert_array_equal(model.classes_[table.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("C", [1e-3, 1e5])
@pytest.mark.parametrize("init", ["random", "kmeans", "matching_pursuit"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_few_distinct_rows_of_both_classes(init, C, rng):
    """As in the Titanic's list: 11 distinct rows, most of them of both classes."""
    X = rng.integers(0, 2, size=(150, 3)).astype(float)
    y = X[:, 0] + 0.5 * rng.normal(size=150) > 0.5
    model = SparseLargeMarginClassifier(12, C=C, gamma=0.5, init=init, random_state=0).fit(X, y)
    finite(model, X)
    if C > 1:
        assert model.score(X, y) >= SVC(C=1.0, gamma=0.5).fit(X, y).score(X, y) - 0.03


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("init", ["random", "kmeans", "matching_pursuit"])
def test_rows_that_are_all_equal(init):
    X, y = np.full((9, 3), 2.0), np.arange(9) % 3 == 0
    model = SparseLargeMarginClassifier(4, init=init, random_state=0).fit(X, y)
    finite(model, X)
    assert_array_equal(model.predict(X), np.zeros(9, dtype=bool))


@pytest.mark.parametrize("init", ["random", "kmeans", "matching_pursuit", P.X[:1]])
def test_fewer_vectors_than_classes(init):
    """A class without a vector is a constant, that of the machine without features."""
    with pytest.warns(ConvergenceWarning, match="n_components=1 leaves 2 of the 3 classes"):
        model = classifier(1, init=init)
    finite(model, P.X)
    assert_array_equal(model.dual_coef_[1:], np.zeros((2, 1)))
    assert_allclose(model.intercept_[1:], -1.0, atol=1e-3)
    assert len(set(model.predict(P.X))) == 2


def test_constant_features_and_far_offsets(rng):
    X = rng.integers(-8, 9, size=(60, 3)) / 8
    y = X[:, 0] > X[:, 1]
    options = {"gamma": 0.5, "C": 5.0, "init": "random", "random_state": 0, "tol": 1e-3}
    near = SparseLargeMarginClassifier(4, **options).fit(X, y)
    far = SparseLargeMarginClassifier(4, **options).fit(X + 1e6, y)
    assert_allclose(far.objective_path_[:4], near.objective_path_[:4], rtol=1e-4)
    assert (far.predict(X + 1e6) == near.predict(X)).mean() > 0.95
    wide = np.hstack([X, np.full((60, 2), 7.0)])
    constant = SparseLargeMarginClassifier(4, **options).fit(wide, y)
    assert constant.score(wide, y) > 0.9
    assert_allclose(constant.support_vectors_[:, 3:], 7.0, rtol=1e-6)


def test_one_row_a_class():
    X, y = np.array([[0.0, 1.0], [2.0, 0.0], [5.0, 5.0]]), ["a", "b", "c"]
    with pytest.warns(ConvergenceWarning, match="n_components=20, but 3 vectors"):
        model = SparseLargeMarginClassifier(C=100.0, multi_class="shared", random_state=0).fit(X, y)
    finite(model, X)
    assert_array_equal(model.predict(X), y)
    assert model.n_components_ == 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_of_the_data_do_not_matter(scale):
    options = {"gamma": GAMMA / scale**2, "C": 3.0, "random_state": 0}
    model = SparseLargeMarginClassifier(6, **options).fit(scale * P.X, TWO, P.weights)
    assert_allclose(model.objective_path_[:6], FITTED["two"].objective_path_[:6], rtol=1e-4)


# Errors.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
        ({"C": 0.0}, "C must be a finite number above 0"),
        ({"init": "best"}, r"init must be one of \['random', 'kmeans', 'matching_pursuit'\]"),
        ({"init": np.zeros((5, 4))}, r"init must be one of .* shape \(20, 4\), got shape \(5, 4\)"),
        ({"init": np.full((20, 4), np.nan)}, "init contains NaN"),
        ({"n_init": 0}, "n_init must be an integer of at least 1"),
        ({"max_iter": -1}, "max_iter must be an integer of at least 0"),
        ({"tol": -1.0}, "tol must be a finite number"),
        ({"multi_class": "ovo"}, "multi_class must be one of"),
        ({"kernel": "precomputed"}, "kernel='precomputed' holds no rows"),
        ({"kernel": lambda X, Z: X @ Z.T}, "kernel: .*has no derivative"),
        ({"kernel": Sigmoid(0.02, -1.0)}, "kernel: .*is not positive semidefinite"),
        ({"class_weight": "fair"}, "class_weight must be one of"),
    ],
)
def test_errors(options, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        SparseLargeMarginClassifier(**options).fit(X, y)


def test_margin_coefficients_on_the_vectors_of_a_relevance_vector_machine():
    """The paper's discussion: eq. 24 on any vectors; libsvm on the whitened features agrees."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=80) > 0, "a", "b")
    relevance = RelevanceVectorClassifier(gamma=0.5).fit(X, y)
    Z = relevance.support_vectors_
    model = SparseLargeMarginClassifier(len(Z), C=2.0, gamma=0.5, init=Z, max_iter=0).fit(X, y)
    assert_allclose(model.support_vectors_, Z, rtol=1e-12)
    k = rbf_kernel(X, Z, gamma=0.5)
    inner = k @ np.linalg.solve(rbf_kernel(Z, Z, gamma=0.5), k.T)
    machine = SVC(C=2.0, kernel="precomputed", tol=1e-8).fit(inner, y)
    expected = machine.decision_function(inner)
    assert_allclose(model.decision_function(X), expected, atol=3e-3)
    # Other coefficients than those of the evidence.
    assert np.abs(relevance.decision_function(X) - expected).max() > 0.1
