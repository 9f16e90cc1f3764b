"""Relevance vector machines: what the estimators make of the evidence, and their limits."""

import warnings

import numpy as np
import pytest
import reference_evidence as reference
import sklearn
from problems import awkward
from scipy import sparse
from scipy.special import expit
from sklearn.datasets import load_diabetes, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning

import pursuit
from pursuit import RelevanceVectorClassifier, RelevanceVectorRegressor, kernels
from pursuit._validation import Samples
from pursuit.kernels import RBF
from pursuit.sparse_bayes.evidence import BROAD, Candidates


@pytest.fixture
def numbers(rng):
    """Rows, targets and weights of a regression; one row twice."""
    X = rng.uniform(-3, 3, size=(30, 2))
    X[7] = X[3]
    t = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=30)
    return X, t, rng.uniform(0.3, 2.5, size=30)


@pytest.fixture
def classes(rng):
    X = rng.normal(size=(40, 2))
    t = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=40) > 0, 1.0, -1.0)
    return X, t, rng.uniform(0.3, 2.5, size=40)


# The estimators.


def test_attributes_give_the_evidence_and_the_predictions(numbers):
    X, t, c = numbers
    t = 50 * t + 200
    model = RelevanceVectorRegressor(gamma=0.5).fit(X, t, sample_weight=c)
    Phi = np.column_stack([np.ones(30), RBF(0.5)(X, X[model.support_])])
    centre = np.average(t, weights=c)
    t = t - centre
    alpha = np.append(BROAD / np.average(t**2, weights=c), model.alpha_[0])
    evidence = reference.normal_evidence(Phi, t, c, alpha, model.noise_variance_)
    np.testing.assert_allclose(model.log_marginal_likelihood_path_[-1], evidence, rtol=1e-6)
    Sigma = np.linalg.inv(Phi.T @ (c[:, None] * Phi) / model.noise_variance_ + np.diag(alpha))
    mu = Sigma @ Phi.T @ (c * t) / model.noise_variance_
    np.testing.assert_allclose(model.dual_coef_[0], mu[1:], rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, mu[0] + centre, rtol=1e-6)
    new = np.vstack([X[:4] + 0.3, [[50.0, 50.0]]])
    values = np.column_stack([np.ones(5), RBF(0.5)(new, X[model.support_])])
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(mean, values @ mu + centre, rtol=1e-7)
    variance = model.noise_variance_ + np.einsum("ij,jk,ik->i", values, Sigma, values)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-6)
    np.testing.assert_array_equal(model.predict(new), mean)


def test_classifier_attributes_give_the_evidence(classes):
    X, t, c = classes
    model = RelevanceVectorClassifier(gamma=0.5).fit(X, t, sample_weight=c)
    Phi = np.column_stack([np.ones(40), RBF(0.5)(X, X[model.support_])])
    alpha = np.append(BROAD, model.alpha_[0])
    evidence = reference.logistic_evidence(Phi, t, c, alpha)
    np.testing.assert_allclose(model.log_marginal_likelihood_path_[-1], evidence, rtol=1e-6)
    w = np.append(model.intercept_, model.dual_coef_[0])
    np.testing.assert_allclose(w, reference.logistic_mode(Phi, t, c, alpha), atol=1e-4)
    assert len(model.log_marginal_likelihood_path_) == model.n_iter_ + 1
    assert model.stop_reason_ == "tol"
    assert model.n_components_ == len(model.support_) == model.dual_coef_.shape[1]


def test_sinc_needs_a_handful_of_vectors(rng):
    x = np.linspace(-10, 10, 100)[:, None]
    clean = np.sinc(x[:, 0] / np.pi)
    model = RelevanceVectorRegressor(gamma=1 / 9).fit(x, clean + 0.1 * rng.normal(size=100))
    assert 4 <= model.n_components_ <= 10
    assert np.sqrt(np.mean((model.predict(x) - clean) ** 2)) < 0.05
    np.testing.assert_allclose(np.sqrt(model.noise_variance_), 0.1, rtol=0.2)


@pytest.mark.parametrize("estimator", [RelevanceVectorClassifier, RelevanceVectorRegressor])
def test_weight_two_is_the_row_twice(estimator):
    problem = awkward(40)
    y = problem.labels if estimator is RelevanceVectorClassifier else problem.Y
    counts = np.arange(40) % 3
    repeated = np.repeat(np.arange(40), counts)
    weighted = estimator(gamma=0.3).fit(problem.X, y, sample_weight=counts)
    twice = estimator(gamma=0.3).fit(problem.X[repeated], y[repeated])
    np.testing.assert_allclose(
        weighted.log_marginal_likelihood_path_, twice.log_marginal_likelihood_path_, rtol=1e-6
    )
    np.testing.assert_allclose(weighted.support_vectors_, twice.support_vectors_)
    np.testing.assert_allclose(weighted.dual_coef_, twice.dual_coef_, rtol=1e-5)
    np.testing.assert_allclose(weighted.alpha_, twice.alpha_, rtol=1e-5)
    if estimator is RelevanceVectorRegressor:
        np.testing.assert_allclose(weighted.noise_variance_, twice.noise_variance_, rtol=1e-6)


def test_class_weight_is_a_weight_of_rows(classes):
    X, t, _ = classes
    y = np.where(t > 0, "yes", "no")
    by_class = RelevanceVectorClassifier(gamma=0.5, class_weight={"yes": 3.0, "no": 0.5}).fit(X, y)
    by_row = RelevanceVectorClassifier(gamma=0.5).fit(X, y, np.where(t > 0, 3.0, 0.5))
    np.testing.assert_allclose(by_class.dual_coef_, by_row.dual_coef_)
    plain = RelevanceVectorClassifier(gamma=0.5).fit(X, y)
    assert (by_class.predict(X) == "yes").sum() > (plain.predict(X) == "yes").sum()


def test_several_targets_are_several_machines():
    problem = awkward(40)
    both = RelevanceVectorRegressor(gamma=0.3).fit(problem.X, problem.Y)
    mean, std = both.predict(problem.X, return_std=True)
    rises = []
    for t in range(2):
        one = RelevanceVectorRegressor(gamma=0.3).fit(problem.X, problem.Y[:, t])
        expected = one.predict(problem.X, return_std=True)
        np.testing.assert_allclose(mean[:, t], expected[0])
        np.testing.assert_allclose(std[:, t], expected[1])
        np.testing.assert_allclose(both.noise_variance_[t], one.noise_variance_)
        rises.append(one.log_marginal_likelihood_path_)
    path = both.log_marginal_likelihood_path_
    np.testing.assert_allclose(path[[0, -1]], [sum(r[0] for r in rises), sum(r[-1] for r in rises)])
    assert np.diff(path).min() > 0
    assert both.alpha_.shape == (2, both.n_components_)
    assert np.isinf(both.alpha_[both.dual_coef_ == 0]).all()


def test_probabilities_of_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["zebra", "ant", "mole"])[y]
    model = RelevanceVectorClassifier().fit(X, names)
    values, table = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(table, expit(values) / expit(values).sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(model.classes_[table.argmax(axis=1)], model.predict(X))
    assert model.score(X, names) > 0.95
    two = RelevanceVectorClassifier().fit(X, y == 1)
    np.testing.assert_allclose(two.predict_proba(X)[:, 1], expit(two.decision_function(X)))


def test_probabilities_agree_with_predict_at_large_values():
    X, y = load_iris(return_X_y=True)
    model = RelevanceVectorClassifier().fit(X, y)
    model.expansion_ = pursuit.expansion.expansion.KernelExpansion(
        kernels_at_one(), np.array([[40.0], [41.0], [-5.0]]), np.zeros(3)
    )
    one = model.predict_proba(np.ones((1, 4)))
    assert one.argmax() == model.predict(np.ones((1, 4)))[0] == 1
    np.testing.assert_allclose(one[0, :2], 0.5, atol=0.01)


def kernels_at_one():
    return pursuit.expansion.basis_functions.Atoms(RBF(1.0), np.ones((1, 4)))


# Budgets and reasons.


def test_budget_is_kept_by_the_whole_model():
    X, y = load_iris(return_X_y=True)
    model = RelevanceVectorClassifier(4).fit(X, y)
    assert model.n_components_ <= 4
    assert model.stop_reason_ == "n_components"
    used = (model.dual_coef_ != 0).sum(axis=1)
    assert (used <= [2, 1, 1]).all()


def test_a_larger_budget_than_needed_changes_nothing(numbers):
    X, t, _ = numbers
    free = RelevanceVectorRegressor(gamma=0.5).fit(X, t)
    wide = RelevanceVectorRegressor(free.n_components_ + 5, gamma=0.5).fit(X, t)
    np.testing.assert_array_equal(wide.support_, free.support_)
    assert wide.stop_reason_ == "tol"


def test_max_iter_is_said():
    X, y = make_moons(60, noise=0.2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model = RelevanceVectorClassifier(max_iter=3).fit(X, y)
    assert model.stop_reason_ == "max_iter"
    assert model.n_iter_ == 3


# Degenerate data.


@pytest.mark.parametrize("offset", [0.0, 3.0, -1e6])
def test_constant_targets(offset, rng):
    X = rng.normal(size=(20, 2))
    model = RelevanceVectorRegressor()
    with pytest.warns(ConvergenceWarning, match="the model is a constant"):
        model.fit(X, np.full(20, offset))
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, offset, rtol=1e-9)
    np.testing.assert_allclose(std, 0.0, atol=1e-9 * abs(offset) + 1e-100)
    bare = fit_quietly(RelevanceVectorRegressor(fit_intercept=False, gamma=0.01), X, mean)
    np.testing.assert_allclose(bare.predict(X), offset, atol=0.05 * abs(offset))


def test_the_offset_of_the_targets_does_not_matter(numbers):
    X, t, _ = numbers
    near = RelevanceVectorRegressor(gamma=0.5).fit(X, t)
    far = RelevanceVectorRegressor(gamma=0.5).fit(X, t + 1e6)
    np.testing.assert_allclose(far.predict(X) - 1e6, near.predict(X), atol=1e-5)
    np.testing.assert_allclose(far.noise_variance_, near.noise_variance_, rtol=1e-4)


def test_an_offset_of_the_kernel_hardly_matters(numbers):
    X, t, _ = numbers
    plain = RelevanceVectorRegressor(gamma=0.5).fit(X, t)
    moved = RelevanceVectorRegressor(kernel=lambda X, Z: RBF(0.5)(X, Z) + 100.0).fit(X, t)
    np.testing.assert_allclose(moved.predict(X), plain.predict(X), atol=0.1)


def test_the_unit_of_the_targets_does_not_matter(numbers):
    X, t, _ = numbers
    one = RelevanceVectorRegressor(gamma=0.5).fit(X, t)
    mean, std = one.predict(X, return_std=True)
    for unit in (1e-9, 1e9):
        other = RelevanceVectorRegressor(gamma=0.5).fit(X, unit * t)
        scaled = other.predict(X, return_std=True)
        np.testing.assert_allclose(scaled[0], unit * mean, rtol=1e-6)
        np.testing.assert_allclose(scaled[1], unit * std, rtol=1e-6)


def test_targets_without_noise(rng):
    X = rng.uniform(-2, 2, size=(40, 1))
    t = RBF(1.0)(X, X[[3, 9]]) @ [2.0, -1.0]
    model = RelevanceVectorRegressor(gamma=1.0)
    with pytest.warns(ConvergenceWarning, match="without noise"):
        model.fit(X, t)
    np.testing.assert_allclose(model.noise_variance_, 1e-6 * t.var())
    np.testing.assert_allclose(model.predict(X), t, atol=3e-3)


@pytest.mark.parametrize("gamma", [1e-12, 1e12])
@pytest.mark.parametrize("intercept", [True, False])
def test_kernels_of_all_ones_and_the_identity(gamma, intercept, classes):
    X, t, _ = classes
    for model in (RelevanceVectorClassifier, RelevanceVectorRegressor):
        fitted = fit_quietly(model(gamma=gamma, fit_intercept=intercept), X, t)
        assert np.isfinite(fitted.dual_coef_).all()
        assert np.isfinite(fitted.predict(X)).all()


def fit_quietly(model, X, y):
    """Fit; nothing but that the fit is degenerate may be said."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def test_an_empty_basis_predicts_a_constant(rng):
    X = rng.normal(size=(50, 3))
    y = np.tile([0, 1], 25)
    X[1::2] = X[::2]  # each row once in each class: nothing to learn
    for intercept in (True, False):
        with pytest.warns(ConvergenceWarning, match="the model is a constant"):
            model = RelevanceVectorClassifier(fit_intercept=intercept).fit(X, y)
        assert model.n_components_ == 0
        assert model.support_vectors_.shape == (0, 3)
        np.testing.assert_allclose(model.predict_proba(X), 0.5)
        with pytest.warns(ConvergenceWarning, match="the model is a constant"):
            number = RelevanceVectorRegressor(fit_intercept=intercept).fit(X, y - 0.5)
        mean, std = number.predict(X, return_std=True)
        np.testing.assert_allclose(mean, 0.0, atol=1e-12)
        np.testing.assert_allclose(std, 0.5, rtol=0.03)


def test_kernel_functions_that_are_zero(rng):
    X = np.vstack([np.zeros((3, 2)), rng.normal(size=(20, 2))])
    model = RelevanceVectorRegressor(kernel="linear", fit_intercept=False).fit(
        X, X @ [1.0, 2.0] + 0.1 * rng.normal(size=23)
    )
    assert model.support_.min() >= 3
    assert model.n_components_ <= 2
    np.testing.assert_allclose(model.predict([[1.0, 1.0]]), 3.0, atol=0.2)


def test_copies_of_rows_are_taken_once(numbers):
    X, t, _ = numbers
    model = RelevanceVectorRegressor(gamma=0.5).fit(np.repeat(X, 5, axis=0), np.repeat(t, 5))
    assert len(np.unique(model.support_vectors_, axis=0)) == model.n_components_


def test_one_class_far_outnumbered(rng):
    X = rng.normal(size=(100, 2))
    y = np.zeros(100, dtype=int)
    y[0] = 1
    model = RelevanceVectorClassifier()
    model.fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


# Forms of the input.


def test_float32_rows(numbers):
    X, t, _ = numbers
    rows = X.astype(np.float32)
    narrow = RelevanceVectorRegressor(gamma=0.5).fit(rows, t)
    wide = RelevanceVectorRegressor(gamma=0.5).fit(rows.astype(np.float64), t)
    assert narrow.support_vectors_.dtype == np.float64
    np.testing.assert_array_equal(narrow.support_, wide.support_)
    np.testing.assert_allclose(narrow.predict(rows), wide.predict(rows.astype(float)), rtol=1e-5)


def test_sparse_rows(classes):
    X, t, _ = classes
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense = RelevanceVectorClassifier(gamma=0.5).fit(X, t)
    csr = RelevanceVectorClassifier(gamma=0.5).fit(sparse.csr_matrix(X), t)
    np.testing.assert_array_equal(csr.support_, dense.support_)
    np.testing.assert_allclose(
        csr.decision_function(sparse.csr_matrix(X)), dense.decision_function(X), rtol=1e-6
    )


@pytest.mark.parametrize("estimator", [RelevanceVectorClassifier, RelevanceVectorRegressor])
def test_the_size_of_blocks_does_not_matter(estimator, classes):
    X, t, c = classes
    X, t, c = np.tile(X, (4, 1)), np.tile(t, 4), np.tile(c, 4)
    whole = estimator(gamma=0.5).fit(X, t, c)
    with sklearn.config_context(working_memory=0.1):  # 160 x 160 would take 0.2 MiB
        assert Candidates(RBF(0.5), Samples(X, t[:, None], c), True).kept is None
        blocks = estimator(gamma=0.5).fit(X, t, c)
        prediction = blocks.predict(X)
        if estimator is RelevanceVectorRegressor:
            std = blocks.predict(X, return_std=True)[1]
            np.testing.assert_allclose(std, whole.predict(X, return_std=True)[1], rtol=1e-6)
    np.testing.assert_allclose(
        blocks.log_marginal_likelihood_path_, whole.log_marginal_likelihood_path_, rtol=1e-6
    )
    np.testing.assert_array_equal(blocks.support_, whole.support_)
    # Values near zero are as exact as the others, of size 1, are.
    np.testing.assert_allclose(prediction, whole.predict(X), rtol=1e-6, atol=1e-7)


def test_precomputed_kernel(classes):
    X, t, c = classes
    c[::5] = 0.0
    K = RBF(0.5)(X, X)
    by_rows = RelevanceVectorClassifier(gamma=0.5).fit(X, t, c)
    by_values = RelevanceVectorClassifier(kernel="precomputed").fit(K, t, c)
    np.testing.assert_array_equal(by_values.support_, by_rows.support_)
    assert not np.isin(by_rows.support_, np.arange(0, 40, 5)).any()
    np.testing.assert_allclose(by_values.decision_function(K), by_rows.decision_function(X))
    assert not hasattr(by_values, "support_vectors_")


def test_a_kernel_that_is_not_symmetric(numbers):
    X, t, _ = numbers
    model = RelevanceVectorRegressor(kernel=lambda X, Z: np.tanh(X @ Z.T + 2 * X[:, :1])).fit(X, t)
    values = np.tanh(X @ X[model.support_].T + 2 * X[:, :1]) @ model.dual_coef_[0]
    np.testing.assert_allclose(model.predict(X), values + model.intercept_)
    assert model.score(X, t) > 0.2


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "sigmoid", "cosine"])
def test_named_kernels(kernel, numbers):
    X, t, _ = numbers
    model = fit_quietly(RelevanceVectorRegressor(kernel=kernel), X, t)
    resolved = kernels.resolve_kernel(kernel, X)
    assert model.kernel_ == resolved
    values = resolved(X, X[model.support_]) @ model.dual_coef_[0] + model.intercept_
    np.testing.assert_allclose(model.predict(X), values)


@pytest.mark.parametrize("two_targets", [False, True])
def test_a_saved_regressor_is_the_same(tmp_path, two_targets):
    problem = awkward(40)
    Y = problem.Y if two_targets else problem.Y[:, 0]
    model = RelevanceVectorRegressor(gamma=0.3).fit(problem.X, Y)
    pursuit.save(model, tmp_path / "model.pursuit")
    again = pursuit.load(tmp_path / "model.pursuit")
    for one, other in zip(
        again.predict(problem.X, return_std=True),
        model.predict(problem.X, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.alpha_, model.alpha_)
    np.testing.assert_array_equal(again.noise_variance_, model.noise_variance_)


def test_a_saved_classifier_is_the_same_and_holds_no_rows(tmp_path):
    sizes = []
    for n in (100, 400):
        X, y = make_moons(n, noise=0.2, random_state=0)
        model = RelevanceVectorClassifier(5).fit(X, y)
        pursuit.save(model, tmp_path / "model.pursuit")
        sizes.append((tmp_path / "model.pursuit").stat().st_size)
    again = pursuit.load(tmp_path / "model.pursuit")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert sizes[1] < 1.5 * sizes[0]


def test_the_same_data_give_the_same_model(classes):
    X, t, _ = classes
    one, other = (RelevanceVectorClassifier(gamma=0.5).fit(X, t) for _ in range(2))
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


def test_a_second_fit_leaves_nothing_of_the_first(numbers):
    X, t, _ = numbers
    model = RelevanceVectorRegressor(gamma=0.5).fit(X, np.column_stack([t, t]))
    model.set_params(kernel="precomputed").fit(RBF(0.5)(X, X), t)
    assert not hasattr(model, "support_vectors_")
    assert isinstance(model.noise_variance_, float)


def test_diabetes_is_predicted_as_well_as_by_others():
    X, y = load_diabetes(return_X_y=True)
    model = RelevanceVectorRegressor(gamma=0.05).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.45
    mean, std = model.predict(X[300:], return_std=True)
    assert 0.9 < np.mean(np.abs(y[300:] - mean) < 2 * std) < 0.99


# Errors.


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 2.5}, "n_components"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": 0.0}, "tol"),
        ({"tol": -1.0}, "tol"),
        ({"gamma": -1.0}, "gamma"),
        ({"kernel": "nonsense"}, "kernel"),
        ({"kernel": "precomputed"}, "precomputed"),
    ],
)
def test_errors_name_the_parameter(params, name, classes):
    X, t, _ = classes
    for estimator in (RelevanceVectorClassifier, RelevanceVectorRegressor):
        with pytest.raises(ValueError, match=name):
            estimator(**params).fit(X, t)


def test_errors_of_the_data(classes):
    X, t, _ = classes
    with pytest.raises(ValueError, match="one class"):
        RelevanceVectorClassifier().fit(X, np.ones(40))
    with pytest.raises(ValueError, match="sample_weight is negative at row 3"):
        RelevanceVectorRegressor().fit(X, t, np.where(np.arange(40) == 3, -1.0, 1.0))
    with pytest.raises(ValueError, match="class_weight"):
        RelevanceVectorClassifier(class_weight="odd").fit(X, t)


def test_noise_is_not_explained_by_as_many_functions_as_rows():
    """In many dimensions each function reaches one row: they could explain any targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=400)
    model = RelevanceVectorRegressor().fit(X[:200], y[:200])
    error = np.mean((model.predict(X[200:]) - y[200:]) ** 2)
    assert model.n_components_ < 80
    assert model.noise_variance_ > 0.1**2
    assert error < 0.23


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("model", [RelevanceVectorRegressor, RelevanceVectorClassifier])
def test_kernel_values_that_are_not_finite_are_an_error(model, value):
    X, y = np.arange(6.0)[:, None], np.array([0, 1, 0, 1, 0, 1])

    def kernel(A, B):
        values = np.exp(-np.abs(A - B.T))
        return np.where((A == 2.0) & (B.T == 3.0), value, values)

    with pytest.raises(ValueError, match=r"^kernel: .*not finite"):
        model(kernel=kernel).fit(X, y)


# --- the posterior at several rows ------------------------------------------------------


def posterior_covariance(model, X, t=0):
    """sigma^2 I + Phi Sigma Phi' with Sigma = (diag(alpha) + Phi'Phi / sigma^2)^-1 of all rows."""
    noise, alpha = np.ravel(model.noise_variance_)[t], model.alpha_[t]
    used = np.isfinite(alpha)

    def functions(rows):
        return model.kernel_(rows, model.support_vectors_[used])

    train = functions(model.training_rows)
    sigma = np.linalg.inv(np.diag(alpha[used]) + train.T @ train / noise)
    new = functions(X)
    return new @ sigma @ new.T + noise * np.eye(len(X))


@pytest.mark.parametrize("two_targets", [False, True])
def test_the_covariance_is_that_of_the_plain_formula(two_targets):
    problem = awkward(50)
    Y = problem.Y - problem.Y.mean(axis=0)
    Y = Y if two_targets else Y[:, 0]
    model = RelevanceVectorRegressor(gamma=0.3, fit_intercept=False).fit(problem.X, Y)
    model.training_rows = problem.X
    new = problem.X[:7] + 0.1
    mean, covariance = model.predict(new, return_cov=True)
    np.testing.assert_array_equal(mean, model.predict(new))
    assert covariance.shape == ((7, 7, 2) if two_targets else (7, 7))
    for t in range(1 + two_targets):
        found = covariance[:, :, t] if two_targets else covariance
        expected = posterior_covariance(model, new, t)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * expected.max())
    std = model.predict(new, return_std=True)[1]
    diagonal = np.einsum("ii...->i...", covariance)
    np.testing.assert_allclose(diagonal, std**2, rtol=1e-12)


@pytest.mark.parametrize("two_targets", [False, True])
def test_draws_have_the_mean_and_the_covariance(two_targets):
    problem = awkward(50)
    Y = problem.Y if two_targets else problem.Y[:, 0]
    model = RelevanceVectorRegressor(gamma=0.3).fit(problem.X, Y)
    new = problem.X[:4] + 0.2
    draws = model.sample_y(new, 40_000, random_state=1)
    assert draws.shape == ((4, 2, 40_000) if two_targets else (4, 40_000))
    mean, covariance = model.predict(new, return_cov=True)
    for t in range(1 + two_targets):
        part, m, c = (
            (draws[:, t], mean[:, t], covariance[:, :, t])
            if two_targets
            else (draws, mean, covariance)
        )
        scale = np.sqrt(c.diagonal())
        np.testing.assert_allclose(part.mean(axis=1), m, atol=0.03 * scale.max())
        np.testing.assert_allclose(np.cov(part), c, atol=0.04 * np.outer(scale, scale).max())
    np.testing.assert_array_equal(draws, model.sample_y(new, 40_000, random_state=1))
    assert model.sample_y(new).shape == draws.shape[:-1] + (1,)


def test_one_of_deviation_and_covariance(numbers):
    model = RelevanceVectorRegressor().fit(numbers[0], numbers[1])
    with pytest.raises(ValueError, match="return_std and return_cov do not go together"):
        model.predict(numbers[0], return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="^n_samples must be"):
        model.sample_y(numbers[0], 0)
