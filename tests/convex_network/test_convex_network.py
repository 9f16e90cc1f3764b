"""Convex networks: the estimator against general solvers, an SVM, and its limits."""

import warnings

import numpy as np
import pytest
import reference
import sklearn
from problems import as_targets, awkward, pairwise
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OutputCodeClassifier
from sklearn.preprocessing import StandardScaler

import pursuit
from pursuit import ConvexNetworkClassifier, kernels
from pursuit.convex_network.basis_selection import GREEDY_RULES
from pursuit.convex_network.convex_network import given_bounds
from pursuit.geometry.unique_rows import equal_rows
from pursuit.losses import LOSSES, SmoothHinge

CONVEX = [name for name, loss in LOSSES.items() if loss.convex and loss.task != "regressor"]


@pytest.fixture
def two(rng):
    """Two classes with texts as labels, and weights."""
    X = rng.normal(size=(50, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.4 * rng.normal(size=50) > 0, "yes", "no")
    return X, y, rng.uniform(0.3, 2.0, size=50)


@pytest.fixture
def three():
    problem = awkward(45)
    X = StandardScaler().fit_transform(problem.X)
    return X, problem.labels, problem.weights


def equation_8(loss, F, y, weights, alpha, A, box):
    """The least objective over the coefficients of the signed functions, and these."""
    value = LOSSES[loss] if isinstance(loss, str) else loss

    def objective(a):
        m = (F @ a)[:, None]
        slope = F.T @ (weights * value.gradient(y[:, None], m)[:, 0]) + 2 * alpha * A @ a
        return weights @ value.value(y[:, None], m)[:, 0] + alpha * a @ A @ a, slope

    a = np.clip(np.zeros(F.shape[1]), *box)
    for _ in range(5):
        found = minimize(objective, a, jac=True, method="L-BFGS-B",
                         bounds=list(zip(*box, strict=True)),
                         options={"ftol": 0.0, "gtol": 1e-9, "maxiter": 3000,
                                  "maxcor": 40})  # fmt: skip
        a = found.x
    return found.fun, a


# The problem of eq. 8.


@pytest.mark.parametrize(
    ("loss", "bounds", "penalty"),
    pairwise(list(CONVEX), [None, (0.0, 0.3), "one each"], ["identity", "kernel", "matrix"]),
)
def test_the_objective_is_the_least_one(two, rng, loss, bounds, penalty):
    X, labels, weights = two
    y = np.where(labels == "yes", 1.0, -1.0)
    K = kernels.RBF(0.7)(X, X)
    F = K * y
    A, given = np.eye(50), penalty
    if penalty == "kernel":
        A = K * np.outer(y, y)
    elif penalty == "matrix":
        given = A = np.eye(50) + 0.01 * K * rng.normal(size=50)
        given = A = (A + A.T) / 2
    lower, upper = np.full(50, -np.inf), np.full(50, np.inf)
    if bounds == "one each":
        lower = rng.uniform(-0.4, 0.1, size=50)
        upper = lower + 0.3
        bounds = np.column_stack([lower, upper])
    elif bounds is not None:
        lower, upper = np.zeros(50), np.full(50, 0.3)
    model = ConvexNetworkClassifier(
        kernel=kernels.RBF(0.7), loss=loss, alpha=0.2, penalty=given, bounds=bounds
    ).fit(X, labels, weights)
    expected, a = equation_8(loss, F, y, weights, 0.2, A, (lower, upper))
    np.testing.assert_allclose(model.objective_, expected, rtol=1e-6)
    values = F @ a
    np.testing.assert_allclose(model.decision_function(X), values, atol=2e-3 * np.abs(values).max())
    assert model.stop_reason_ == "tol"
    assert model.kkt_residual_ <= 1e-8
    assert len(model.objective_path_) == model.n_iter_ + 1
    assert (np.diff(model.objective_path_) <= 1e-12 * model.objective_).all()


@pytest.mark.parametrize("bounds", [None, (-0.1, 0.2)])
def test_several_classes_are_one_network_each_against_the_rest(three, bounds):
    X, labels, weights = three
    parameters = {"kernel": kernels.RBF(0.5), "bounds": bounds, "alpha": 0.3}
    model = ConvexNetworkClassifier(**parameters).fit(X, labels, weights)
    total = 0.0
    for t, name in enumerate(model.classes_):
        alone = ConvexNetworkClassifier(**parameters).fit(X, labels == name, weights)
        np.testing.assert_allclose(
            model.decision_function(X)[:, t], alone.decision_function(X), atol=1e-7
        )
        total += alone.objective_
    np.testing.assert_allclose(model.objective_, total)


def test_predictions_agree_with_probabilities(three):
    X, labels, weights = three
    model = ConvexNetworkClassifier().fit(X, labels, weights)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize(("loss", "slope"), [("log_loss", 1.0), ("logit_boost", 2.0)])
def test_likelihoods_have_their_own_probabilities(two, loss, slope):
    X, labels, _ = two
    model = ConvexNetworkClassifier(loss=loss).fit(X, labels)
    expected = 1 / (1 + np.exp(-slope * model.decision_function(X)))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected)


# The support vector machine.


def svm_without_bias(K, y, C):
    """Decision values of the machine without a bias, from its dual; C one a row."""
    H = K * np.outer(y, y)
    alpha = np.zeros(len(y))
    for _ in range(20_000):
        before = alpha.copy()
        for j in range(len(y)):
            alpha[j] = np.clip(alpha[j] + (1 - H[j] @ alpha) / H[j, j], 0.0, C[j])
        if np.abs(alpha - before).max() < 1e-11:
            break
    return K @ (alpha * y)


@pytest.mark.parametrize("C", [0.3, 5.0])
def test_a_sharp_hinge_is_the_svm_without_bias(two, C):
    X, labels, weights = two
    y = np.where(labels == "yes", 1.0, -1.0)
    X = np.vstack([X, X[:3]])
    y, labels = np.append(y, -y[:3]), np.append(labels, np.where(y[:3] > 0, "no", "yes"))
    weights = np.append(weights, [1.0, 0.5, 2.0])
    kernel = kernels.RBF(0.7)
    expected = svm_without_bias(kernel(X, X), y, C * weights)
    model = ConvexNetworkClassifier.as_svm(C, beta=1e5, kernel=kernel).fit(X, labels, weights)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-3)
    blunt = ConvexNetworkClassifier.as_svm(C, beta=5.0, kernel=kernel).fit(X, labels, weights)
    assert np.abs(blunt.decision_function(X) - expected).max() > 1e-2


def test_the_box_of_the_svm_holds(two):
    X, labels, weights = two
    model = ConvexNetworkClassifier(
        kernel="rbf", loss=SmoothHinge(50.0), alpha=5.0, penalty="identity", bounds="dual"
    ).fit(X, labels, weights)
    y = np.where(labels == "yes", 1.0, -1.0)[model.support_]
    alpha = y * model.dual_coef_[0]
    assert (alpha >= 0).all()
    assert (alpha <= 0.1 * weights[model.support_] + 1e-15).all()
    assert np.isclose(alpha, 0.1 * weights[model.support_]).sum() > 3
    assert model.n_components_ < 50


# Weights.


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"bounds": (0.0, 0.2), "penalty": "kernel"},
        {"bounds": "dual", "penalty": "kernel"},
        {"selection": "correlation", "n_components": 0.3},
        {"selection": "objective", "n_components": 7},
        {"kernel": "precomputed", "bounds": "dual"},
    ],
    ids=str,
)
def test_weight_two_is_the_row_twice(three, parameters):
    X, labels, _ = three
    counts = np.arange(45) % 3
    repeated = np.repeat(np.arange(45), counts)
    estimator = ConvexNetworkClassifier(**{"kernel": kernels.RBF(0.5), "alpha": 0.1} | parameters)
    K = kernels.RBF(0.5)(X, X)
    own = parameters.get("kernel") == "precomputed"
    weighted = estimator.fit(K if own else X, labels, counts)
    values = weighted.decision_function(K if own else X)
    again = (K[np.ix_(repeated, repeated)], K[:, repeated]) if own else (X[repeated], X)
    twice = sklearn.clone(estimator).fit(again[0], labels[repeated])
    np.testing.assert_allclose(twice.decision_function(again[1]), values, atol=1e-7)
    assert twice.n_components_ == weighted.n_components_


def test_class_weight_is_a_weight_of_rows(two):
    X, labels, _ = two
    by_class = ConvexNetworkClassifier(class_weight={"yes": 3.0, "no": 0.5}).fit(X, labels)
    by_row = ConvexNetworkClassifier().fit(X, labels, np.where(labels == "yes", 3.0, 0.5))
    np.testing.assert_allclose(by_class.dual_coef_, by_row.dual_coef_)


def test_equal_rows_share_a_function(rng):
    X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, -0.0], [3.0, 0.0], [0.0, 2.0]])
    model = ConvexNetworkClassifier(kernel="rbf").fit(X, [0, 1, 0, 1, 1])
    np.testing.assert_array_equal(model.support_, [0, 1, 3])


# The schemes of section 1 that scikit-learn has.


def test_output_codes_are_one_network_a_bit(three):
    X, labels, _ = three
    network = ConvexNetworkClassifier(kernel=kernels.RBF(0.5), alpha=0.1)
    codes = OutputCodeClassifier(network, code_size=2, random_state=3).fit(X, labels)
    book = codes.code_book_[np.searchsorted(codes.classes_, labels)]
    assert len(codes.estimators_) == 6
    outputs = np.zeros(book.shape)
    for bit, column in enumerate(book.T):
        outputs[:, bit] = sklearn.clone(network).fit(X, column > 0).decision_function(X)
    distances = np.linalg.norm(outputs[:, None] - codes.code_book_, axis=2)
    found = codes.predict(X)
    np.testing.assert_array_equal(found, codes.classes_[distances.argmin(axis=1)])
    assert set(found) == set(labels)


@pytest.mark.parametrize("gamma", [-0.4, 0.0, 0.7])
def test_a_fixed_threshold_is_the_gamma_of_equation_2(two, gamma):
    X, labels, _ = two
    network = ConvexNetworkClassifier(kernel=kernels.RBF(0.7))
    shifted = FixedThresholdClassifier(
        network, threshold=gamma, response_method="decision_function"
    ).fit(X, labels)
    f = sklearn.clone(network).fit(X, labels).decision_function(X)
    expected = np.where(f - gamma >= 0, "yes", "no")
    np.testing.assert_array_equal(shifted.predict(X), expected)
    assert (expected != np.where(f >= 0, "yes", "no")).any() == (gamma != 0.0)


# Selection.


@pytest.mark.parametrize("selection", ["random", *GREEDY_RULES, None])
def test_the_budget_holds_and_the_rest_is_the_optimum_on_the_chosen(three, selection):
    X, labels, _ = three
    model = ConvexNetworkClassifier(
        kernel=kernels.RBF(0.5), selection=selection, n_components=0.25, random_state=0
    ).fit(X, labels)
    n_functions = len(equal_rows(X)[0])
    assert len(model.support_) == model.n_components_ == round(0.25 * n_functions)
    np.testing.assert_array_equal(X[model.support_], model.support_vectors_)
    F, Y = kernels.RBF(0.5)(X, X[model.support_]), as_targets(labels)
    q = F.shape[1]
    free = np.full(q, -np.inf), np.full(q, np.inf)
    fitted = [equation_8("log_loss", F, y, np.ones(45), 1.0, np.eye(q), free)[0] for y in Y.T]
    np.testing.assert_allclose(model.objective_, sum(fitted), rtol=1e-6)


@pytest.mark.parametrize("selection", ["gram_schmidt", "cosine"])
def test_by_the_integral_copies_of_rows_change_no_choice(three, selection):
    """Nor do weights; by the sum over the rows they do."""
    X, labels, _ = three
    rows = np.concatenate([np.arange(45), np.repeat([3, 7, 8], 20)])
    chosen = {}
    for product in ("integral", "samples"):
        model = ConvexNetworkClassifier(
            kernel="rbf", gamma=0.5, selection=selection, inner_product=product, n_components=8
        )
        once = model.fit(X, labels).support_vectors_.copy()
        chosen[product] = np.array_equal(
            once, model.fit(X[rows], np.asarray(labels)[rows]).support_vectors_
        )
    assert chosen == {"integral": True, "samples": False}


def test_gram_schmidt_is_the_rule_where_none_is_named(three):
    X, labels, weights = three
    named = ConvexNetworkClassifier(selection="gram_schmidt", n_components=9)
    plain = ConvexNetworkClassifier(n_components=9)
    np.testing.assert_array_equal(
        named.fit(X, labels, weights).support_, plain.fit(X, labels, weights).support_
    )
    F = np.sqrt(weights)[:, None] * kernels.CosinePolynomial()(X, X)
    candidates = np.flatnonzero(weights > 0)
    candidates = candidates[equal_rows(X[candidates])[0]]
    expected = candidates[reference.gram_schmidt(F[:, candidates], 9)]
    np.testing.assert_array_equal(plain.support_, expected)


def test_of_several_draws_the_lowest_is_kept(three):
    X, labels, _ = three
    parameters = {"selection": "random", "n_components": 5, "kernel": "rbf"}
    rng = np.random.RandomState(7)
    single = [
        ConvexNetworkClassifier(**parameters, n_draws=1, random_state=rng).fit(X, labels).objective_
        for _ in range(6)
    ]
    best = ConvexNetworkClassifier(**parameters, n_draws=6, random_state=7).fit(X, labels)
    np.testing.assert_allclose(best.objective_, min(single))


def test_the_objective_selects_better_than_chance(three):
    X, labels, _ = three
    parameters = {"n_components": 8, "kernel": "rbf", "random_state": 0}
    found = {
        rule: ConvexNetworkClassifier(selection=rule, **parameters).fit(X, labels).objective_
        for rule in ("random", "objective")
    }
    assert found["objective"] < found["random"]


# Functions other than kernels.


def test_functions_of_ones_own(two):
    X, labels, weights = two
    y = np.where(labels == "yes", 1.0, -1.0)
    functions = {"one": lambda X: np.ones(len(X)), "product": lambda X: X[:, 0] * X[:, 1]}
    model = ConvexNetworkClassifier(dictionary=functions, bounds=(0.0, 0.5), alpha=0.1)
    model.fit(X, labels, weights)
    F = np.column_stack([f(X) for f in functions.values()])
    box = np.zeros(2), np.full(2, 0.5)
    expected, a = equation_8("log_loss", F, y, weights, 0.1, np.eye(2), box)
    np.testing.assert_allclose(model.objective_, expected, rtol=1e-8)
    np.testing.assert_allclose(model.decision_function(X), F @ a, atol=1e-5)
    assert not hasattr(model, "support_")
    assert model.component_names_ == [n for n, c in zip(functions, a, strict=True) if c != 0]


def test_given_centres_with_the_kernel_as_penalty(two):
    X, labels, weights = two
    y = np.where(labels == "yes", 1.0, -1.0)
    model = ConvexNetworkClassifier(
        kernel=kernels.RBF(0.7), dictionary=X[:9] + 0.1, penalty="kernel"
    ).fit(X, labels, weights)
    F, A = (kernels.RBF(0.7)(rows, X[:9] + 0.1) for rows in (X, X[:9] + 0.1))
    free = np.full(9, -np.inf), np.full(9, np.inf)
    expected, _ = equation_8("log_loss", F, y, weights, 1.0, A, free)
    np.testing.assert_allclose(model.objective_, expected, rtol=1e-8)
    np.testing.assert_allclose(model.support_vectors_, X[:9] + 0.1)


# Paths, steps, memory, forms of input.


def test_a_path_is_the_single_fits_in_fewer_steps(three):
    X, labels, weights = three
    alphas = [0.1, 3.0, 0.5]
    estimator = ConvexNetworkClassifier(
        kernel="rbf", bounds=(-0.2, 0.3), selection="correlation", n_components=20
    )
    models = estimator.path(X, labels, alphas, weights)
    assert [model.alpha for model in models] == alphas
    for model in models:
        alone = sklearn.clone(model).fit(X, labels, weights)
        np.testing.assert_allclose(model.objective_, alone.objective_, rtol=1e-9)
        np.testing.assert_allclose(
            model.decision_function(X), alone.decision_function(X), atol=1e-6
        )
        np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    near = estimator.path(X, labels, [1.0, 1.01], weights)
    assert near[0].n_iter_ < estimator.n_iter_
    assert near[0].objective_path_[0] < estimator.objective_path_[0]


def test_a_constant_step_is_definition_2(two):
    X, labels, weights = two
    y = np.where(labels == "yes", 1.0, -1.0)
    K = kernels.RBF(0.7)(X, X)
    # In beta = y alpha, where the box (0, 0.2) is turned round for the other class.
    box = np.where(y > 0, 0.0, -0.2), np.where(y > 0, 0.2, 0.0)
    expected = reference.gauss_seidel(K, y, weights, 1.0, np.eye(50), box, 0.1, 4)
    with pytest.warns(ConvergenceWarning, match="projected gradient is .*e-"):
        model = ConvexNetworkClassifier(
            kernel=kernels.RBF(0.7), step=0.1, max_iter=4, bounds=(0.0, 0.2)
        ).fit(X, labels, weights)
    assert model.n_iter_ == 4
    found = np.zeros(50)
    found[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_step_that_is_too_long_is_said(two):
    X, labels, _ = two
    with pytest.warns(ConvergenceWarning, match="too long"):
        model = ConvexNetworkClassifier(loss="exponential", step=50.0).fit(X, labels)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.stop_reason_ == "diverged"


@pytest.mark.parametrize("parameters", [{}, {"n_components": 9}, {"bounds": (0, 0.1)}], ids=str)
def test_the_budget_of_memory_changes_nothing(three, parameters):
    X, labels, weights = three
    estimator = ConvexNetworkClassifier(**parameters)
    expected = estimator.fit(X, labels, weights).decision_function(X)
    with sklearn.config_context(working_memory=0.01):
        found = sklearn.clone(estimator).fit(X, labels, weights).decision_function(X)
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("penalty", ["identity", "kernel"])
def test_forms_of_input_change_nothing(three, penalty):
    X, labels, weights = three
    parameters = {"kernel": kernels.RBF(0.5), "penalty": penalty, "n_components": 20}
    model = ConvexNetworkClassifier(**parameters).fit(X, labels, weights)
    values = model.decision_function(X)
    K = kernels.RBF(0.5)(X, X)
    own = ConvexNetworkClassifier(**parameters | {"kernel": "precomputed"}).fit(K, labels, weights)
    np.testing.assert_allclose(own.decision_function(K), values, atol=1e-7)
    np.testing.assert_array_equal(own.support_, model.support_)
    rows = sparse.csr_matrix(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    csr = ConvexNetworkClassifier(**parameters).fit(rows, labels, weights)
    np.testing.assert_allclose(csr.decision_function(rows), values, atol=1e-7)
    single = ConvexNetworkClassifier(**parameters).fit(X.astype(np.float32), labels, weights)
    np.testing.assert_allclose(single.decision_function(X.astype(np.float32)), values, atol=1e-3)


def test_a_saved_model_predicts_the_same(three, tmp_path):
    X, labels, weights = three
    for parameters in (
        {},
        {"loss": SmoothHinge(30.0), "bounds": "dual"},
        {"penalty": 2 * np.eye(38)},
    ):
        model = ConvexNetworkClassifier(**parameters).fit(X, labels, weights)
        pursuit.save(model, tmp_path / "model.pursuit")
        loaded = pursuit.load(tmp_path / "model.pursuit")
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert repr(loaded) == repr(model)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("kernel", ["cosine_polynomial", "rbf", "linear"])
def test_degenerate_rows_give_finite_answers(kernel, offset):
    X = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [2.0, 0.0]]) + offset
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for y in ([0, 1, 0, 1, 1], ["a", "b", "c", "a", "b"]):
            for penalty in ("identity", "kernel"):
                model = ConvexNetworkClassifier(kernel=kernel, penalty=penalty).fit(X, y)
                assert np.isfinite(model.decision_function(X)).all()
                assert np.isfinite(model.predict_proba(X)).all()


# Errors.


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.0}, "alpha must be"),
        ({"alpha": np.inf}, "alpha must be"),
        ({"penalty": "ridge"}, "penalty must be one of"),
        ({"penalty": np.eye(3)}, r"penalty has shape \(3, 3\)"),
        ({"penalty": -np.eye(50)}, "penalty must be positive definite"),
        ({"penalty": np.triu(np.ones((50, 50)))}, "finite symmetric"),
        ({"penalty": "kernel", "kernel": lambda X, Z: -X @ Z.T}, "positive semidefinite kernel"),
        ({"penalty": "kernel", "dictionary": {"f": lambda X: X[:, 0]}}, "one kernel"),
        ({"bounds": "box"}, "bounds must be one of"),
        ({"bounds": (1.0, 0.0)}, "bounds of function 0"),
        ({"bounds": (np.nan, 1.0)}, "bounds of function 0"),
        ({"bounds": (np.inf, np.inf)}, "no interval"),
        ({"bounds": np.zeros((7, 2))}, r"bounds must be None.*\(50, 2\)"),
        ({"bounds": "dual", "dictionary": np.zeros((2, 3))}, "bounds='dual' needs"),
        ({"selection": "best", "n_components": 3}, "selection must be one of"),
        ({"selection": "random"}, "needs n_components"),
        ({"inner_product": "mean", "n_components": 3}, "inner_product must be one of"),
        ({"inner_product": "integral", "n_components": 3}, "belongs to selection"),
        (
            {"inner_product": "integral", "selection": "correlation", "n_components": 3},
            "belongs to selection",
        ),
        (
            {"inner_product": "integral", "selection": "cosine", "n_components": 3},
            "inner_product='integral' has a closed form",
        ),
        ({"n_components": 0}, "n_components must be"),
        ({"n_draws": 0}, "n_draws must be"),
        ({"step": "long"}, "step must be one of"),
        ({"step": 0.0}, "step must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"tol": 0.0}, "tol must be"),
        ({"loss": "doom2"}, "not convex"),
        ({"loss": "huber"}, "for a regressor"),
        ({"loss": "none"}, "loss must be one of"),
        ({"kernel": "precomputed"}, "square X"),
        ({"class_weight": {"yes": 0.0}}, "class_weight is zero"),
    ],
)
def test_errors_name_the_parameter(two, parameters, message):
    X, labels, _ = two
    with pytest.raises(ValueError, match=message):
        ConvexNetworkClassifier(**parameters).fit(X, labels)


def test_a_wrong_alpha_of_a_path_and_a_wrong_price_are_named(two):
    with pytest.raises(ValueError, match="alphas must be"):
        ConvexNetworkClassifier().path(*two[:2], [1.0, 0.0])
    with pytest.raises(ValueError, match="C must be"):
        ConvexNetworkClassifier.as_svm(0.0)
    with pytest.raises(ValueError, match="beta must be"):
        ConvexNetworkClassifier.as_svm(1.0, beta=-1.0)


def test_bounds_of_one_side():
    np.testing.assert_array_equal(given_bounds((None, 2), 2), [[-np.inf, 2.0]] * 2)
    np.testing.assert_array_equal(given_bounds([[0, 1], [None, 2]], 2), [[0, 1], [-np.inf, 2.0]])
    np.testing.assert_array_equal(given_bounds(None, 1), [[-np.inf, np.inf]])


def test_more_functions_than_there_are_is_said(two):
    X, labels, _ = two
    with pytest.warns(ConvergenceWarning, match="there are 50 functions"):
        ConvexNetworkClassifier(selection="correlation", n_components=99).fit(X, labels)


# A slice of table 1.


@pytest.mark.parametrize(("load", "least"), [(load_breast_cancer, 0.95), (load_wine, 0.95)])
def test_the_kernel_of_the_paper_separates_known_sets(load, least):
    X, y = load(return_X_y=True)
    train = np.arange(len(y)) % 3 > 0
    X = StandardScaler().fit(X[train]).transform(X)
    model = ConvexNetworkClassifier().fit(X[train], y[train])
    assert model.score(X[~train], y[~train]) > least
    assert model.stop_reason_ == "tol"


def test_an_svm_whose_kernel_matrix_has_a_low_rank_ends_at_the_tolerance():
    X, y = make_blobs(n_samples=300, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error"
        )  # interior points come as near to the bounds as rounding lets
        model = ConvexNetworkClassifier.as_svm(beta=20, kernel="rbf").fit(X, y)
    assert model.stop_reason_ == "tol"
    assert model.n_iter_ < 100
