"""The marginal likelihood, its steps and its end, against full matrices."""

import numpy as np
import pytest
import reference_evidence as reference
from scipy.optimize import check_grad, minimize_scalar
from sklearn.linear_model import ARDRegression

from pursuit._validation import Samples
from pursuit.kernels import RBF, FunctionKernel
from pursuit.sparse_bayes.evidence import (
    BROAD,
    Bernoulli,
    Candidates,
    Gaussian,
    SparseBayesianModel,
    maximise_evidence,
    posterior,
)


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


def gaussian_machine(X, t, c, gamma=0.5, noise=0.1, tol=1e-6, intercept=True, most=1000):
    candidates = Candidates(RBF(gamma), Samples(X, t[:, None], c), intercept)
    return SparseBayesianModel(candidates, Gaussian(t, c, noise), most, tol)


def logistic_machine(X, t, c, gamma=0.5, tol=1e-4, most=1000):
    candidates = Candidates(RBF(gamma), Samples(X, t[:, None], c), True)
    return SparseBayesianModel(candidates, Bernoulli(t, c), most, tol)


def columns_of(machine):
    return machine.columns.T, machine.alpha


# The posterior of one model.


def test_evidence_of_numbers_is_the_normal_density_of_the_targets(numbers, rng):
    X, t, c = numbers
    Phi, alpha = RBF(0.5)(X, X[:5]), rng.uniform(0.1, 10, size=5)
    found = posterior(Gaussian(t, c, 0.2), Phi.T, alpha)
    np.testing.assert_allclose(
        found.log_marginal_likelihood, reference.normal_evidence(Phi, t, c, alpha, 0.2), rtol=1e-10
    )


def test_posterior_of_numbers_is_that_of_the_normal_equations(numbers, rng):
    X, t, c = numbers
    Phi, alpha = RBF(0.5)(X, X[:5]), rng.uniform(0.1, 10, size=5)
    found = posterior(Gaussian(t, c, 0.2), Phi.T, alpha)
    Sigma = np.linalg.inv(Phi.T @ (c[:, None] * Phi) / 0.2 + np.diag(alpha))
    np.testing.assert_allclose(found.mean / np.sqrt(alpha), Sigma @ Phi.T @ (c * t) / 0.2)
    np.testing.assert_allclose(found.spread, alpha * np.diagonal(Sigma))
    np.testing.assert_allclose(found.values, Phi @ Sigma @ Phi.T @ (c * t) / 0.2)


def test_mode_of_classes_has_gradient_zero(classes, rng):
    X, t, c = classes
    Phi, alpha = RBF(0.5)(X, X[:6]), rng.uniform(0.01, 1, size=6)
    found = posterior(Bernoulli(t, c), Phi.T, alpha)
    w = found.mean / np.sqrt(alpha)
    np.testing.assert_allclose(w, reference.logistic_mode(Phi, t, c, alpha), atol=1e-6)
    np.testing.assert_allclose(Phi.T @ found.slope, alpha * w, atol=1e-8)


def test_evidence_of_classes_is_that_of_laplace(classes, rng):
    X, t, c = classes
    Phi, alpha = RBF(0.5)(X, X[:6]), rng.uniform(0.01, 1, size=6)
    found = posterior(Bernoulli(t, c), Phi.T, alpha)
    np.testing.assert_allclose(
        found.log_marginal_likelihood, reference.logistic_evidence(Phi, t, c, alpha), rtol=1e-8
    )


def test_evidence_of_one_weight_is_near_its_integral(rng):
    x = rng.normal(size=30)
    t = np.where(x + rng.normal(size=30) > 0, 1.0, -1.0)
    w = np.linspace(-12, 12, 20001)
    heights = [
        reference.logistic_height(np.array([v]), x[:, None], t, np.ones(30), np.ones(1)) for v in w
    ]
    integral = np.log(np.exp(heights).sum() * (w[1] - w[0]) / np.sqrt(2 * np.pi))
    found = posterior(Bernoulli(t, np.ones(30)), x[None, :], np.ones(1))
    np.testing.assert_allclose(found.log_marginal_likelihood, integral, atol=0.05)


@pytest.mark.parametrize("kind", [Gaussian, Bernoulli])
def test_derivatives_are_those_of_the_likelihood(kind, classes, rng):
    _, t, c = classes
    likelihood = kind(t, c, 0.3) if kind is Gaussian else kind(t, c)
    f = rng.normal(size=40)

    def slope(f):
        return likelihood.derivatives(f)[0]

    assert check_grad(likelihood.value, slope, f) < 1e-4
    step = 1e-6
    curvature = -(slope(f + step) - slope(f - step)) / (2 * step)
    np.testing.assert_allclose(likelihood.derivatives(f)[1], curvature, rtol=1e-6)


def test_newton_survives_a_start_far_away(classes):
    X, t, c = classes
    Phi, alpha = RBF(0.5)(X, X[:6]), np.full(6, 1e-3)
    near = posterior(Bernoulli(t, c), Phi.T, alpha)
    far = posterior(Bernoulli(t, c), Phi.T, alpha, np.full(6, 30.0))
    np.testing.assert_allclose(far.mean, near.mean, atol=1e-6)


# S, Q and the gains of steps.


def machine_on_its_way(numbers, n_steps=7, **kwargs):
    machine = gaussian_machine(*numbers, **kwargs)
    assert machine.run(n_steps) == "max_iter"
    return machine


def test_statistics_are_those_of_the_full_covariance(numbers):
    machine = machine_on_its_way(numbers)
    Phi, alpha = columns_of(machine)
    X, t, _ = numbers
    inverse = np.linalg.inv(reference.evidence_covariance(Phi, machine.evidence.curvature, alpha))
    rows = machine.candidates.kept[[12, 20]]
    S, Q = machine._statistics(rows, machine._within())
    np.testing.assert_allclose(S, np.diagonal(rows @ inverse @ rows.T), rtol=1e-8)
    np.testing.assert_allclose(Q, rows @ inverse @ t, rtol=1e-8)


@pytest.mark.parametrize("kept", [True, False])
def test_statistics_of_numbers_come_from_products(numbers, kept):
    machine = machine_on_its_way(numbers)
    rows = machine.candidates.kept
    expected = machine._statistics(rows, machine._within())
    if not kept:
        machine.candidates.kept = None
        machine.candidates.products.clear()
        machine.target_products = None
    found = machine._statistics_of_numbers(machine.likelihood)
    outside = np.setdiff1d(np.arange(len(rows)), machine.picks)
    for value, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(value[outside], other[outside], rtol=1e-8, atol=1e-9)
    assert set(machine.candidates.products) >= set(machine.picks)


def test_statistics_of_classes_are_those_of_the_working_targets(classes):
    machine = logistic_machine(*classes)
    machine.run(6)
    Phi, alpha = columns_of(machine)
    one = machine.evidence
    targets = one.values + one.slope / one.curvature
    inverse = np.linalg.inv(reference.evidence_covariance(Phi, one.curvature, alpha))
    rows = machine.candidates.kept[[12, 20]]
    S, Q = machine._statistics(rows, machine._within())
    np.testing.assert_allclose(S, np.diagonal(rows @ inverse @ rows.T), rtol=1e-8)
    np.testing.assert_allclose(Q, rows @ inverse @ targets, rtol=1e-6, atol=1e-8)


def best_alone(evidence):
    """Best precision in a wide range, and the evidence there."""
    grid = np.linspace(-12, 30, 400)
    start = grid[np.argmax([evidence(np.exp(v)) for v in grid])]
    found = minimize_scalar(
        lambda v: -evidence(np.exp(v)),
        bounds=(start - 0.2, start + 0.2),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return np.exp(found.x), -found.fun


def test_a_new_function_gains_what_the_evidence_gains(numbers):
    machine = machine_on_its_way(numbers)
    Phi, alpha = columns_of(machine)
    X, t, c = numbers
    noise = machine.likelihood.noise
    best, gains = machine.outside()
    m = int(np.argmax(gains))
    column = machine.candidates.row(m)

    def evidence(a):
        return reference.normal_evidence(
            np.column_stack([Phi, column]), t, c, np.append(alpha, a), noise
        )

    precision, height = best_alone(evidence)
    np.testing.assert_allclose(best[m], precision, rtol=1e-3)
    np.testing.assert_allclose(gains[m], height - machine.path[-1], rtol=1e-7)


def test_a_function_of_the_model_gains_what_the_evidence_gains(numbers):
    machine = machine_on_its_way(numbers)
    machine.likelihood = Gaussian(*numbers[1:], 0.3)
    machine.evidence = posterior(machine.likelihood, machine.columns, machine.alpha)
    # Functions that are not needed, and precisions that are not at their best.
    unneeded = np.flatnonzero(np.isinf(machine.outside()[0]))[-2:].tolist()
    machine.picks += unneeded
    machine.columns = np.vstack([machine.columns, machine.candidates.kept[unneeded]])
    machine.alpha = np.append(machine.alpha, [1.0, 1.0])
    machine.alpha[1:] *= np.linspace(0.2, 3, len(machine.alpha) - 1)
    machine.evidence = posterior(machine.likelihood, machine.columns, machine.alpha)
    Phi, alpha = columns_of(machine)
    X, t, c = numbers
    now = reference.normal_evidence(Phi, t, c, alpha, 0.3)
    best, gains = machine.inside()
    assert np.isinf(best).any(), "a deletion is among the changes"
    assert np.isfinite(best).any()
    assert best[0] == alpha[0]
    assert gains[0] == 0.0, "the constant stays as it is"
    for j in range(1, len(alpha)):

        def evidence(a, j=j):
            changed = alpha.copy()
            changed[j] = a
            return reference.normal_evidence(Phi, t, c, changed, 0.3)

        if np.isfinite(best[j]):
            precision, height = best_alone(evidence)
            np.testing.assert_allclose(best[j], precision, rtol=1e-3)
        else:
            left = np.delete(np.arange(len(alpha)), j)
            height = reference.normal_evidence(Phi[:, left], t, c, alpha[left], 0.3)
        np.testing.assert_allclose(gains[j], height - now, rtol=1e-6, atol=1e-7)


def test_every_step_raises_the_evidence_of_numbers(numbers):
    X, t, c = numbers
    machine = gaussian_machine(X, t, c, tol=1e-4)
    constant = np.ones((30, 1)) / np.sqrt(c.sum())
    heights = [reference.normal_evidence(constant, t, c, np.array([BROAD / c.sum()]), 0.1)]
    sizes, noises = [1], [0.1]
    while machine.run(len(machine.path)) == "max_iter":
        Phi, alpha = columns_of(machine)
        noise = machine.likelihood.noise
        heights.append(reference.normal_evidence(Phi, t, c, alpha, noise))
        sizes.append(len(alpha))
        noises.append(noise)
    np.testing.assert_allclose(machine.path, heights, rtol=1e-6, atol=1e-5)
    assert np.diff(machine.path).min() > 1e-4
    changes = np.diff(sizes)
    assert {-1, 0, 1} == set(changes.tolist()), "additions, re-estimates and deletions"
    assert np.diff(noises).any()


def test_every_step_raises_the_evidence_of_classes(classes):
    X, t, c = classes
    machine = logistic_machine(X, t, c)
    heights = [machine.path[0]]
    while machine.run(len(machine.path)) == "max_iter":
        heights.append(reference.logistic_evidence(*columns_of(machine)[:1], t, c, machine.alpha))
    np.testing.assert_allclose(machine.path, heights, rtol=1e-6)
    broad = np.array([BROAD])
    start = reference.logistic_evidence(np.ones((40, 1)), t, c, broad)
    np.testing.assert_allclose(heights[0], start)
    assert np.diff(machine.path).min() > 1e-4
    assert len(machine.picks) > 3


def test_the_end_is_a_fixed_point(numbers, monkeypatch):
    # Additions go on for as long as they gain anything.
    monkeypatch.setattr("pursuit.sparse_bayes.evidence.LEAST_WORTH", 0.0)
    X, t, c = numbers
    machine = gaussian_machine(X, t, c, tol=1e-11)
    assert machine.run(5000) == "tol"
    Phi, alpha = columns_of(machine)
    noise = machine.likelihood.noise
    Sigma = np.linalg.inv(Phi.T @ (c[:, None] * Phi) / noise + np.diag(alpha))
    mu = Sigma @ Phi.T @ (c * t) / noise
    gamma = 1 - alpha * np.diagonal(Sigma)
    np.testing.assert_allclose(alpha[1:], (gamma / mu**2)[1:], rtol=1e-3)  # T 16
    error = c @ (t - Phi @ mu) ** 2
    np.testing.assert_allclose(noise, error / (c.sum() - gamma.sum()), rtol=1e-3)  # T 18
    inverse = np.linalg.inv(reference.evidence_covariance(Phi, c / noise, alpha))
    others = np.delete(np.arange(30), [pick for pick in machine.picks if pick >= 0])
    rows = machine.candidates.kept[others]
    S, Q = np.diagonal(rows @ inverse @ rows.T), rows @ inverse @ t
    assert np.all(Q**2 <= S * (1 + 1e-3)), "no function outside has a positive theta (F 20)"


def test_noise_is_where_the_evidence_is_highest(numbers):
    X, t, c = numbers
    machine = gaussian_machine(X, t, c, tol=1e-11)
    machine.run(5000)
    Phi, alpha = columns_of(machine)
    found = minimize_scalar(
        lambda v: -reference.normal_evidence(Phi, t, c, alpha, np.exp(v)),
        bounds=(-9, 2),
        method="bounded",
    )
    np.testing.assert_allclose(machine.likelihood.noise, np.exp(found.x), rtol=1e-3)


def test_noise_falls_back_on_the_step_of_em():
    # With a total weight below the number of determined functions T 18 has no value.
    t, c = np.array([1.0, -1.0, 2.0]), np.full(3, 0.3)
    machine = gaussian_machine(np.array([[0.0], [10.0], [20.0]]), t, c, noise=1e-3, tol=1e-9)
    machine.columns, machine.picks = machine.candidates.kept.copy(), [0, 1, 2]
    machine.alpha = np.full(3, 1e-2)
    machine.evidence = posterior(machine.likelihood, machine.columns, machine.alpha)
    machine.path.append(machine.evidence.log_marginal_likelihood)
    one = machine.evidence
    determined = (1 - one.spread).sum()
    assert determined > c.sum()
    expected = (c @ (t - one.values) ** 2 + 1e-3 * determined) / c.sum()
    assert machine._reestimate_noise()
    np.testing.assert_allclose(machine.likelihood.noise, expected)


def test_ard_regression_does_not_find_a_higher_evidence(rng):
    X = rng.uniform(-3, 3, size=(60, 1))
    t = np.sinc(X[:, 0]) + 0.1 * rng.normal(size=60)
    Phi = RBF(1.0)(X, X)
    flat = dict.fromkeys(("alpha_1", "alpha_2", "lambda_1", "lambda_2"), 1e-12)
    ard = ARDRegression(fit_intercept=False, threshold_lambda=1e12, max_iter=2000, tol=1e-8, **flat)
    ard.fit(Phi, t)
    kept = ard.lambda_ < 1e12
    theirs = reference.normal_evidence(
        Phi[:, kept], t, np.ones(60), ard.lambda_[kept], 1 / ard.alpha_
    )
    ours = gaussian_machine(X, t, np.ones(60), gamma=1.0, intercept=False)
    assert ours.run(5000) == "tol"
    assert ours.path[-1] > theirs - 0.1
    np.testing.assert_allclose(ours.evidence.values, ard.predict(Phi), atol=0.05)
    np.testing.assert_allclose(ours.likelihood.noise, 1 / ard.alpha_, rtol=0.15)


def spline(X, Z):
    """Vapnik's linear spline on one feature: functions so alike that none alone explains much."""
    x, z = X[:, :1], Z[:, 0]
    least = np.minimum(x, z)
    return 1 + x * z + x * z * least - (x + z) / 2 * least**2 + least**3 / 3


def test_a_second_climb_finds_what_the_first_cannot(rng):
    X = np.linspace(-10, 10, 60)[:, None]
    t = np.sinc(X[:, 0] / np.pi) + 0.1 * rng.normal(size=60)
    t = (t - t.mean()) / t.std()
    candidates = Candidates(FunctionKernel(spline), Samples(X, t[:, None], np.ones(60)), True)

    def start(most=60):
        return SparseBayesianModel(candidates, Gaussian(t, np.ones(60), 1.0), most, 1e-3)

    first = start()
    assert first.run(1000) == "tol"
    assert first.likelihood.noise > 0.5
    best, reason = maximise_evidence(start(), 1000)
    assert reason == "tol"
    assert best.path[-1] > first.path[-1] + 20
    assert best.likelihood.noise < 0.2
    assert np.diff(best.path).min() > 1e-3
    few, _ = maximise_evidence(start(3), 1000)
    assert few.n_vectors <= 3
    assert few.path[-1] >= start_and_run(start(3))


def start_and_run(machine):
    machine.run(1000)
    return machine.path[-1]


def spline_machine(X, t, most=120):
    candidates = Candidates(FunctionKernel(spline), Samples(X, t[:, None], np.ones(len(t))), True)
    return SparseBayesianModel(candidates, Gaussian(t, np.ones(len(t)), 1.0), most, 1e-3)


def test_the_second_climb_goes_on_beyond_the_functions_of_its_start():
    X = np.linspace(-16, 16, 120)[:, None]
    t = np.sin(X[:, 0]) + 0.05 * np.random.default_rng(0).normal(size=120)
    t = (t - t.mean()) / t.std()
    first = spline_machine(X, t)
    first.run(1000)
    best, _ = maximise_evidence(spline_machine(X, t), 1000)
    assert best.n_vectors > 2 * first.n_vectors + 10
    assert best.path[-1] > first.path[-1] + 200


def test_the_first_climb_is_kept_where_the_second_ends_lower():
    rng = np.random.default_rng(4)
    X, t = rng.normal(size=(40, 2)), rng.normal(size=40)
    t = (t - t.mean()) / t.std()
    first = gaussian_machine(X, t, np.ones(40), gamma=1.0, noise=1.0, tol=1e-3)
    first.run(1000)
    assert first.likelihood.noise > 0.1
    other = gaussian_machine(X, t, np.ones(40), gamma=1.0, noise=0.01, tol=1e-3)
    other.most = 2 * first.n_vectors + 10
    other.run(1000, noise_last=True)
    assert other.path[-1] < first.path[-1] - 0.1
    machine = gaussian_machine(X, t, np.ones(40), gamma=1.0, noise=1.0, tol=1e-3)
    best, _ = maximise_evidence(machine, 1000)
    assert best.path == first.path


def test_a_promise_that_is_not_kept_is_tried_with_half_the_step(numbers):
    machine = machine_on_its_way(numbers)
    machine.alpha[1] *= 3.0
    machine.evidence = posterior(machine.likelihood, machine.columns, machine.alpha)
    machine.path.append(machine.evidence.log_marginal_likelihood)
    at, best = machine.alpha[1], machine.inside()[0][1]
    assert np.isfinite(best)
    too_far = at * (best / at) ** 3
    assert machine._re_estimate(1, too_far)
    np.testing.assert_allclose(machine.alpha[1], at * (best / at) ** 1.5)
    assert machine.path[-1] > machine.path[-2]


def test_precisions_are_re_estimated_together(numbers):
    machine = machine_on_its_way(numbers)
    machine.alpha[1:] *= 1.5
    machine.evidence = posterior(machine.likelihood, machine.columns, machine.alpha)
    machine.path.append(machine.evidence.log_marginal_likelihood)
    best = machine.inside()[0]
    kept = np.isfinite(best)
    assert kept.sum() > 2, "the constant and two more"
    before = machine.alpha.copy()
    assert machine._reestimate_precisions()
    np.testing.assert_allclose(machine.alpha[kept], best[kept])
    np.testing.assert_allclose(machine.alpha[~kept], before[~kept])


def test_there_is_no_second_climb_where_the_first_explains_the_targets(numbers):
    X, t, c = numbers
    alone = gaussian_machine(X, t, c, tol=1e-3)
    alone.run(1000)
    assert alone.likelihood.noise < 0.1
    machine, _ = maximise_evidence(gaussian_machine(X, t, c, tol=1e-3), 1000)
    np.testing.assert_array_equal(machine.path, alone.path)


def test_functions_of_the_model_and_their_copies_are_no_candidates(numbers):
    machine = gaussian_machine(*numbers)
    machine.picks.append(3)  # of which row 7 is a copy
    machine.columns = np.vstack([machine.columns, machine.candidates.row(3)])
    machine.alpha = np.append(machine.alpha, 10.0)  # far from its best
    machine.evidence = posterior(machine.likelihood, machine.columns, machine.alpha)
    assert machine.inside()[1][1] > 0.0
    _, gains = machine.outside()
    np.testing.assert_array_equal(gains[[3, 7]], 0.0)
    assert gains.max() > 0.0


def test_ties_go_to_the_lowest_index():
    X = np.array([[3.0], [-3.0], [3.0], [-3.0]])
    t = np.array([5.0, -5.0, 5.0, -5.0])
    machine = gaussian_machine(X, t, np.ones(4), intercept=False)
    _, gains = machine.outside()
    np.testing.assert_allclose(gains, gains[0])
    assert gains[0] > 1e-6
    machine.run(2)  # the noise first
    assert machine.picks == [0]
    # Neither it nor its copy is a candidate any more.
    _, gains = machine.outside()
    assert gains[0] == gains[2] == 0.0
    assert gains[1] > 0.0


def test_the_gram_matrix_in_advance_changes_nothing(numbers, rng):
    X, t, c = numbers
    Phi, alpha = RBF(0.5)(X, X[:5]).T, rng.uniform(0.1, 10, size=5)
    likelihood = Gaussian(t, c, 0.2)
    for a, b in zip(
        posterior(likelihood, Phi, alpha),
        posterior(likelihood, Phi, alpha, gram=(Phi * c) @ Phi.T / 0.2),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
