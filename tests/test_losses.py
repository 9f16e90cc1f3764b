"""Losses: their formulas, their derivatives, their tails, and how names become values."""

import dataclasses
import json
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special
from scipy.optimize import minimize_scalar
from sklearn import metrics

from pursuit import KernelMatchingPursuitRegressor, losses
from pursuit._validation import signed_targets
from pursuit.io.tree import Decoder, Encoder
from pursuit.losses import (
    LOSSES,
    AbsoluteError,
    CrossEntropy,
    Doom2,
    Exponential,
    Huber,
    LogitBoost,
    LogLoss,
    Loss,
    Poisson,
    Quantile,
    SmoothHinge,
    SquaredError,
    SquaredErrorTanh,
    SquaredHinge,
    UserLoss,
    resolve_loss,
    robust_scale,
    weighted_median,
)

LOG2 = np.log(2.0)

# Loss of the margin m, and the same stated plainly.
MARGIN = {
    "squared_error": (SquaredError(), lambda m: (1 - m) ** 2),
    "squared_error_tanh": (SquaredErrorTanh(), lambda m: (np.tanh(m) - 0.65) ** 2),
    "exponential": (Exponential(), lambda m: np.exp(-m)),
    "logit_boost": (LogitBoost(), lambda m: np.log2(1 + np.exp(-2 * m))),
    "doom2": (Doom2(), lambda m: 1 - np.tanh(m)),
    "smooth_hinge": (SmoothHinge(3.0), lambda m: np.log(1 + np.exp(3 * (1 - m))) / 3),
    "squared_hinge": (SquaredHinge(), lambda m: np.where(m < 1, (1 - m) ** 2, 0)),
    "log_loss": (LogLoss(), lambda m: np.log(1 + np.exp(-m))),
}


def softplus(z, w):
    return w * np.log(1 + np.exp(z / w))


# Loss of y and f.
NUMBERS = {
    "squared_error": (SquaredError(), lambda y, f: (y - f) ** 2),
    "huber": (Huber(0.7), lambda y, f: special.huber(0.7, f - y)),
    "absolute_error": (
        AbsoluteError(0.3),
        lambda y, f: softplus(y - f, 0.3) + softplus(f - y, 0.3),
    ),
    "quantile": (
        Quantile(0.8, 0.3),
        lambda y, f: 0.8 * softplus(y - f, 0.3) + 0.2 * softplus(f - y, 0.3),
    ),
    "poisson": (Poisson(), lambda y, f: np.exp(f) - y * f + special.xlogy(y, y) - y),
}


def margin_problem(rng):
    """Signs and outputs of two columns, none near the corners at m = 1."""
    Y = signed_targets(rng.integers(2, size=60), 2) * np.array([[1.0, -1.0]])
    F = rng.normal(scale=1.5, size=(60, 2))
    return Y, np.where(np.abs(Y * F - 1) < 0.01, F + 0.05, F)


def number_problem(rng):
    """Counts, a quarter of them zero, and outputs, none near the corners at |r| = 0.7."""
    Y = rng.poisson(1.5, size=(60, 2)).astype(float)
    F = rng.normal(scale=1.5, size=(60, 2))
    return Y, np.where(np.abs(np.abs(F - Y) - 0.7) < 0.01, F + 0.05, F)


def class_problem(rng):
    """Targets and outputs of five classes."""
    return signed_targets(rng.integers(5, size=40), 5), rng.normal(scale=2.0, size=(40, 5))


CASES = {
    **{f"class {name}": (loss, margin_problem) for name, (loss, _) in MARGIN.items()},
    **{f"number {name}": (loss, number_problem) for name, (loss, _) in NUMBERS.items()},
    "many classes": (CrossEntropy(), class_problem),
}


@pytest.fixture(params=CASES)
def case(request, rng):
    """A loss, targets and outputs."""
    loss, problem = CASES[request.param]
    return loss, *problem(rng)


# Values.


@pytest.mark.parametrize("name", MARGIN)
def test_formula_of_the_margin(name, rng):
    loss, plain = MARGIN[name]
    Y, F = margin_problem(rng)
    assert_allclose(loss.value(Y, F), plain(Y * F), rtol=1e-11)


@pytest.mark.parametrize("name", NUMBERS)
def test_formula_for_numbers(name, rng):
    loss, plain = NUMBERS[name]
    Y, F = number_problem(rng)
    assert_allclose(loss.value(Y, F), plain(Y, F), rtol=1e-11, atol=1e-14)


def test_formula_of_the_cross_entropy(rng):
    Y, F = class_problem(rng)
    own, expected = Y.argmax(axis=1), special.logsumexp(F, axis=1)
    assert_allclose(CrossEntropy().value(Y, F), expected - F[np.arange(40), own], rtol=1e-11)
    mean = metrics.log_loss(own, special.softmax(F, axis=1), labels=range(5))
    assert_allclose(CrossEntropy().value(Y, F).mean(), mean, rtol=1e-11)


T1 = np.tanh(1.0)


@pytest.mark.parametrize(
    ("loss", "y", "f", "value", "gradient", "curvature"),
    [
        (SquaredError(), 2.0, 5.0, 9.0, 6.0, 2.0),
        (SquaredError(), 1.0, -1.0, 4.0, -4.0, 2.0),
        (SquaredErrorTanh(), -1.0, 0.0, 0.4225, 1.3, 2.0),
        (SquaredErrorTanh(), 1.0, 1.0, (T1 - 0.65) ** 2, 2 * (T1 - 0.65) * (1 - T1**2),
         2 * (1 - T1**2) * (1 - T1**2 - 2 * T1 * (T1 - 0.65))),
        (SquaredErrorTanh(0.5), 1.0, 0.0, 0.25, -1.0, 2.0),
        (Exponential(), 1.0, -1.0, np.e, -np.e, np.e),
        (Exponential(), -1.0, -1.0, 1 / np.e, 1 / np.e, 1 / np.e),
        (LogitBoost(), 1.0, 0.0, 1.0, -1 / LOG2, 1 / LOG2),
        (Doom2(), -1.0, 0.0, 1.0, 1.0, 0.0),
        (Doom2(), -1.0, 1.0, 1 + T1, 1 - T1**2, -2 * T1 * (1 - T1**2)),
        (SmoothHinge(), 1.0, 1.0, LOG2 / 10, -0.5, 2.5),
        (SmoothHinge(4.0), -1.0, -1.0, LOG2 / 4, 0.5, 1.0),
        (SquaredHinge(), 1.0, -1.0, 4.0, -4.0, 2.0),
        (SquaredHinge(), -1.0, -3.0, 0.0, 0.0, 0.0),
        (LogLoss(), -1.0, 0.0, LOG2, 0.5, 0.25),
        (LogLoss(), 1.0, np.log(3.0), np.log(4 / 3), -0.25, 3 / 16),
        (Huber(2.0), 1.0, 2.0, 0.5, 1.0, 1.0),
        (Huber(2.0), 1.0, 3.0, 2.0, 2.0, 1.0),
        (Huber(2.0), 1.0, -4.0, 8.0, -2.0, 0.0),
        (AbsoluteError(0.5), 1.0, 1.0, LOG2, 0.0, 1.0),
        (AbsoluteError(1.0), 0.0, np.log(3.0), np.log(16 / 3), 0.5, 3 / 8),
        (Quantile(0.9, 0.5), 1.0, 1.0, LOG2 / 2, -0.4, 0.5),
        (Quantile(0.9, 1.0), 0.0, np.log(3.0), 0.9 * np.log(4 / 3) + 0.1 * np.log(4.0),
         0.1 * 0.75 - 0.9 * 0.25, 3 / 16),
        (Poisson(), 1.0, 0.0, 0.0, 0.0, 1.0),
        (Poisson(), 0.0, 0.0, 1.0, 1.0, 1.0),
        (Poisson(), 2.0, 0.0, 2 * LOG2 - 1, -1.0, 1.0),
        (Poisson(), 1.0, 2.0, np.e**2 - 3, np.e**2 - 1, np.e**2),
    ],
)  # fmt: skip
def test_by_hand(loss, y, f, value, gradient, curvature):
    Y, F = np.array([[y]]), np.array([[f]])
    assert_allclose(loss.value(Y, F), [[value]], rtol=1e-14, atol=1e-16)
    assert_allclose(loss.gradient(Y, F), [[gradient]], rtol=1e-14, atol=1e-16)
    assert_allclose(loss.curvature(Y, F), [[curvature]], rtol=1e-14, atol=1e-16)


def test_cross_entropy_by_hand():
    Y, F = np.array([[-1.0, 1.0, -1.0]]), np.log([[2.0, 1.0, 5.0]])
    assert_allclose(CrossEntropy().value(Y, F), [np.log(8.0)], rtol=1e-14)
    assert_allclose(CrossEntropy().gradient(Y, F), [[2 / 8, -7 / 8, 5 / 8]], rtol=1e-14)
    expected = np.array([[12, -2, -10], [-2, 7, -5], [-10, -5, 15]]) / 64
    assert_allclose(CrossEntropy().curvature(Y, F), [expected], rtol=1e-14)


def test_cross_entropy_of_two_outputs_is_the_log_loss_of_their_difference(rng):
    own, F = rng.integers(2, size=30), rng.normal(size=(30, 2))
    Y = np.where(np.arange(2) == own[:, None], 1.0, -1.0)
    y, f = Y[:, [1]], F[:, [1]] - F[:, [0]]
    assert_allclose(CrossEntropy().value(Y, F), LogLoss().value(y, f)[:, 0], rtol=1e-13)
    assert_allclose(CrossEntropy().gradient(Y, F)[:, [1]], LogLoss().gradient(y, f), rtol=1e-13)
    assert_allclose(
        CrossEntropy().curvature(Y, F)[:, 1, [1]], LogLoss().curvature(y, f), rtol=1e-13
    )


def test_other_libraries_agree(rng):
    Y, F = number_problem(rng)
    half = metrics.mean_poisson_deviance(Y.ravel(), np.exp(F).ravel()) / 2
    assert_allclose(Poisson().value(Y, F).mean(), half, rtol=1e-12)
    pinball = metrics.mean_pinball_loss(Y.ravel(), F.ravel(), alpha=0.8)
    assert_allclose(Quantile(0.8, 1e-9).value(Y, F).mean(), pinball, rtol=1e-8)
    absolute = metrics.mean_absolute_error(Y.ravel(), F.ravel())
    assert_allclose(AbsoluteError(1e-9).value(Y, F).mean(), absolute, rtol=1e-8)
    signs, F = margin_problem(rng)
    hinge = metrics.hinge_loss(signs.ravel(), F.ravel())
    assert_allclose(SmoothHinge(1e9).value(signs, F).mean(), hinge, rtol=1e-8)


# Derivatives.


def moved(loss, method, Y, F, column, h=1e-4):
    """Central difference of order four of a method in one column of the outputs."""
    step = np.zeros(F.shape[1])
    step[column] = h
    near = getattr(loss, method)(Y, F + step) - getattr(loss, method)(Y, F - step)
    far = getattr(loss, method)(Y, F + 2 * step) - getattr(loss, method)(Y, F - 2 * step)
    return (8 * near - far) / (12 * h)


def test_gradient_is_the_slope_of_the_value(case):
    loss, Y, F = case
    for column in range(F.shape[1]):
        slope = moved(loss, "value", Y, F, column)
        slope = slope if loss.coupled else slope[:, column]
        assert_allclose(loss.gradient(Y, F)[:, column], slope, rtol=1e-9, atol=1e-10)


def test_curvature_is_the_slope_of_the_gradient(case):
    loss, Y, F = case
    curvature = loss.curvature(Y, F)
    for column in range(F.shape[1]):
        slope = moved(loss, "gradient", Y, F, column)
        if loss.coupled:
            assert_allclose(curvature[:, :, column], slope, rtol=1e-9, atol=1e-10)
        else:
            assert_allclose(curvature[:, column], slope[:, column], rtol=1e-9, atol=1e-10)


def test_curvature_product(case, rng):
    loss, Y, F = case
    V = rng.normal(size=F.shape)
    curvature = loss.curvature(Y, F)
    expected = (curvature @ V[:, :, None])[:, :, 0] if loss.coupled else curvature * V
    assert_allclose(loss.curvature_product(Y, F)(V), expected, rtol=1e-12, atol=1e-14)
    assert_allclose(Loss.curvature_product(loss, Y, F)(V), expected, rtol=1e-12, atol=1e-14)


def test_sums_of_coupled_curvatures(rng):
    Y = np.where(np.eye(4)[rng.integers(0, 4, size=9)] > 0, 1.0, -1.0)
    F, weights = rng.normal(scale=4.0, size=Y.shape), rng.uniform(size=9)
    expected = (weights[:, None, None] * CrossEntropy().curvature(Y, F)).sum(axis=0)
    assert_allclose(CrossEntropy().curvature_sum(Y, F, weights), expected, rtol=1e-12)
    assert_allclose(Loss.curvature_sum(CrossEntropy(), Y, F, weights), expected, rtol=1e-12)


def test_a_common_shift_changes_what_the_loss_says_it_does(case, rng):
    loss, Y, F = case
    shifted = F + rng.normal(size=(len(F), 1))
    same = np.allclose(loss.gradient(Y, F), loss.gradient(Y, shifted), rtol=1e-9, atol=1e-12)
    assert loss.shift_invariant == same


def test_convex_is_what_the_curvature_says(case):
    loss, Y, _ = case
    F = np.linspace(-4.0, 4.0, len(Y))[:, None] * np.cos(np.arange(Y.shape[1]))
    curvature = loss.curvature(Y, F)
    lowest = np.linalg.eigvalsh(curvature).min() if loss.coupled else curvature.min()
    assert loss.convex == (lowest > -1e-14)


def test_shapes_and_types(case):
    loss, Y, F = case
    given = Y.copy(), F.copy()
    n, T = F.shape
    for outputs in (F, F.astype(np.float32)):
        answers = [
            getattr(loss, method)(Y, outputs) for method in ("value", "gradient", "curvature")
        ]
        expected = [(n,), (n, T), (n, T, T)] if loss.coupled else [(n, T)] * 3
        assert [answer.shape for answer in answers] == expected
        for method, answer in zip(("value", "gradient", "curvature"), answers, strict=True):
            assert_allclose(answer, getattr(loss, method)(Y, F), rtol=1e-4, atol=1e-5)
    assert_array_equal(Y, given[0])
    assert_array_equal(F, given[1])


def test_rows_do_not_know_each_other(case):
    """What a row gives does not depend on its block."""
    loss, Y, F = case
    for method in ("value", "gradient", "curvature"):
        whole = getattr(loss, method)(Y, F)
        parts = [getattr(loss, method)(Y[i : i + 7], F[i : i + 7]) for i in range(0, len(Y), 7)]
        assert_allclose(np.concatenate(parts), whole, rtol=1e-14)


def test_no_rows(case):
    loss, Y, F = case
    for method in ("value", "gradient", "curvature"):
        assert len(getattr(loss, method)(Y[:0], F[:0])) == 0


# Tails.

EXTREMES = [0.0, -0.0, 5e-324, 1e-300, 1e-17, 1.0, 37.0, 400.0, 1e3, 1e6, 1e150, 1e300]


def test_extremes_give_no_warning_and_no_nan(case):
    loss, Y, F = case
    largest = np.array(EXTREMES + [-x for x in EXTREMES])
    with np.errstate(all="raise", under="ignore"):
        for column in range(F.shape[1]):
            for row in (0, 1, 2, 3, 4):
                outputs = np.repeat(F[[row]], len(largest), axis=0)
                outputs[:, column] = largest
                targets = np.repeat(Y[[row]], len(largest), axis=0)
                value = loss.value(targets, outputs)
                assert (value >= 0.0).all()
                for method in ("gradient", "curvature"):
                    assert not np.isnan(getattr(loss, method)(targets, outputs)).any()
                small = np.abs(largest) <= 1e3
                if not isinstance(loss, Exponential | Poisson):
                    assert np.isfinite(value[small]).all()


@pytest.mark.parametrize(
    ("loss", "m", "value", "slope", "bend"),
    [
        (LogLoss(), 100.0, np.exp(-100), -np.exp(-100), np.exp(-100)),
        (LogLoss(), -100.0, 100.0, -1.0, np.exp(-100)),
        (LogLoss(), -1e3, 1e3, -1.0, 0.0),
        (LogitBoost(), 50.0, np.exp(-100) / LOG2, -2 * np.exp(-100) / LOG2,
         4 * np.exp(-100) / LOG2),
        (LogitBoost(), -50.0, 100 / LOG2, -2 / LOG2, 4 * np.exp(-100) / LOG2),
        (Doom2(), 50.0, 2 * np.exp(-100), -4 * np.exp(-100), 8 * np.exp(-100)),
        (Doom2(), -50.0, 2.0, -4 * np.exp(-100), -8 * np.exp(-100)),
        (SmoothHinge(), 11.0, np.exp(-100) / 10, -np.exp(-100), 10 * np.exp(-100)),
        (SmoothHinge(), -9.0, 10.0, -1.0, 10 * np.exp(-100)),
        (SquaredErrorTanh(), 50.0, 0.35**2, 2.8 * np.exp(-100), -5.6 * np.exp(-100)),
        (SquaredErrorTanh(), -50.0, 1.65**2, -13.2 * np.exp(-100), -26.4 * np.exp(-100)),
        (Exponential(), 1e3, 0.0, 0.0, 0.0),
        (Exponential(), -1e3, np.inf, -np.inf, np.inf),
        (SquaredHinge(), 1e3, 0.0, 0.0, 0.0),
    ],
)  # fmt: skip
def test_tails_of_margin_losses_keep_their_precision(loss, m, value, slope, bend):
    """To first order in exp(-2|m|); the next order is below rounding."""
    for y in (1.0, -1.0):
        Y, F = np.array([[y]]), np.array([[y * m]])
        assert_allclose(loss.value(Y, F), [[value]], rtol=1e-13)
        assert_allclose(loss.gradient(Y, F), [[y * slope]], rtol=1e-13)
        assert_allclose(loss.curvature(Y, F), [[bend]], rtol=1e-13)


def test_tails_of_the_cross_entropy_keep_their_precision():
    Y, e = np.array([[1.0, -1.0, -1.0]]), np.exp(-100.0)
    right, wrong = np.array([[100.0, 0.0, 0.0]]), np.array([[-100.0, 0.0, 0.0]])
    loss = CrossEntropy()
    assert_allclose(loss.value(Y, right), [2 * e], rtol=1e-13)
    assert_allclose(loss.value(Y, right + 1e3), [2 * e], rtol=1e-13)
    assert_allclose(loss.gradient(Y, right), [[-2 * e, e, e]], rtol=1e-13)
    assert_allclose(
        loss.curvature(Y, right), [[[2 * e, -e, -e], [-e, e, -e * e], [-e, -e * e, e]]], rtol=1e-13
    )
    product = loss.curvature_product(Y, right)
    assert_allclose(product(np.array([[3.0, 1.0, 4.0]])), [[e, -2 * e, e]], rtol=1e-13)
    assert_allclose(product(np.full((1, 3), 7.0)), np.zeros((1, 3)), atol=0)
    assert_allclose(loss.value(Y, wrong), [100 + LOG2], rtol=1e-14)
    assert_allclose(loss.gradient(Y, wrong), [[-1.0, 0.5, 0.5]], rtol=1e-14)
    assert_allclose(loss.value(Y, np.array([[-1e3, 1e3, -1e3]])), [2e3], rtol=1e-14)


def test_tails_of_the_losses_for_numbers():
    Y, F = np.zeros((4, 1)), np.array([[1e3], [-1e3], [1e-200], [0.0]])
    assert_allclose(Quantile(0.9, 1e-4).value(Y, F)[:2], [[100.0], [900.0]], rtol=1e-14)
    assert_allclose(Quantile(0.9, 1e-4).gradient(Y, F)[:2], [[0.1], [-0.9]], rtol=1e-14)
    assert_allclose(AbsoluteError(1e-320).value(Y, F), np.abs(F), rtol=1e-14, atol=1e-319)
    assert_allclose(AbsoluteError(1e-310).gradient(Y, F), np.sign(F))
    assert_allclose(Huber(1e-300).value(Y, F)[:2], [[1e-297], [1e-297]], rtol=1e-14)


@pytest.mark.parametrize("y", [1e-300, 0.3, 1.0, 7.0, 1e6, 1e15])
def test_poisson_near_and_far_from_its_minimum(y):
    d = np.array([[1e-7], [-1e-7], [1e-3], [-1e-3]])
    Y, F = np.full((4, 1), y), np.log(y) + d
    d = F - np.log(y)  # as rounded
    series = y * d**2 * (1 / 2 + d / 6 + d**2 / 24 + d**3 / 120)
    assert_allclose(Poisson().value(Y, F), series, rtol=1e-8)
    F = np.log(y) + np.array([[20.0], [-20.0], [1.0001], [0.9999]])
    expected = y * (np.exp(F - np.log(y)) - 1 - (F - np.log(y)))
    assert_allclose(Poisson().value(Y, F), expected, rtol=1e-11)


def test_poisson_of_tiny_targets_does_not_overflow_before_its_mean():
    value = Poisson().value(np.array([[1e-300]]), np.array([[700.0]]))
    assert_allclose(value, [[np.exp(700.0)]], rtol=1e-12)


# Least values and minimisers.


def test_infima_are_zero():
    """Each loss is nearly zero somewhere: no constant is left in it."""
    ones, far = np.ones((1, 1)), np.full((1, 1), 1e3)
    for loss in (Exponential(), LogitBoost(), Doom2(), SmoothHinge(), SquaredHinge(), LogLoss()):
        assert_array_equal(loss.value(ones, far), [[0.0]])
    assert_array_equal(SquaredError().value(ones, ones), [[0.0]])
    best = np.arctanh([[0.65]])
    assert_allclose(SquaredErrorTanh().value(ones, best), [[0.0]], atol=1e-31)
    assert_allclose(SquaredErrorTanh().gradient(ones, best), [[0.0]], atol=1e-15)
    assert_array_equal(Huber(1.0).value(ones, ones), [[0.0]])
    assert_array_equal(
        Poisson().value(np.array([[0.0], [3.0]]), [[-1e3], [np.log(3.0)]]), [[0.0]] * 2
    )
    assert_array_equal(CrossEntropy().value(np.array([[1.0, -1.0]]), np.array([[1e3, 0.0]])), [0.0])


def best_constant(loss, Y, weights):
    """The minimiser of the weighted loss over constants, by golden section."""
    low, high = Y.min() - 1.0, Y.max() + 1.0
    found = minimize_scalar(
        lambda c: float(weights @ loss.value(Y, np.full(Y.shape, c))[:, 0]),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return found.x


@pytest.mark.parametrize("q", [0.1, 0.5, 0.77, 0.9])
def test_minimiser_of_the_pinball_is_the_quantile(q, rng):
    y = rng.gamma(2.0, size=101)
    expected = np.quantile(y, q, method="inverted_cdf")
    assert_allclose(best_constant(Quantile(q, 1e-5), y[:, None], np.ones(101)), expected, atol=2e-4)


def test_smoothing_counts_each_target_by_its_sigmoid(rng):
    y = rng.normal(size=(50, 1))
    c = best_constant(Quantile(0.8, 0.3), y, np.ones(50))
    assert_allclose(special.expit((c - y) / 0.3).mean(), 0.8, rtol=1e-6)


def test_minimisers_of_the_absolute_error_and_of_huber_s_loss(rng):
    y = np.append(rng.normal(size=50), [1e3, 2e3, 3e3, -1e3, -2e3])[:, None]
    ones = np.ones(55)
    median = np.median(y)
    assert_allclose(best_constant(AbsoluteError(1e-5), y, ones), median, atol=1e-3)
    assert_allclose(best_constant(Huber(1e-5), y, ones), median, atol=1e-3)
    assert_allclose(best_constant(Huber(1e9), y, ones), y.mean(), rtol=1e-6)
    robust = best_constant(Huber().resolved(y, ones), y, ones)
    assert abs(robust - y[:50].mean()) < 0.2 < 10 < abs(robust - y.mean())


def test_huber_lies_below_both_its_pieces(rng):
    r = np.linspace(-5, 5, 101)[:, None]
    value = Huber(1.3).value(np.zeros((101, 1)), r)
    assert (value <= r**2 / 2 + 1e-15).all()
    assert (value <= 1.3 * np.abs(r)).all()
    assert_allclose(Huber(1e-9).value(np.zeros((101, 1)), r) / 1e-9, np.abs(r), atol=1e-9)


def test_minimiser_of_the_poisson_loss_is_the_logarithm_of_the_mean(rng):
    y, weights = rng.poisson(2.0, size=(40, 1)).astype(float), rng.uniform(size=40)
    constant = best_constant(Poisson(), y, weights)
    assert_allclose(Poisson().mean(constant), np.average(y[:, 0], weights=weights), rtol=1e-6)


@pytest.mark.parametrize("p", [0.02, 0.5, 0.9])
def test_inverse_temperature_makes_outputs_probabilities(p):
    """Where a fraction p of the rows is positive, the best constant f has sigmoid(s f) = p."""
    own = {loss for loss, _ in MARGIN.values() if loss.inverse_temperature is not None}
    assert own == {LogLoss(), LogitBoost()}
    Y = np.array([[1.0], [-1.0]])
    for loss in own:
        F = np.full((2, 1), special.logit(p) / loss.inverse_temperature)
        assert_allclose([p, 1 - p] @ loss.gradient(Y, F), [0.0], atol=1e-14)


def test_cross_entropy_makes_outputs_probabilities():
    p = np.array([0.2, 0.7, 0.1])
    F = np.tile(np.log(p), (3, 1)) / CrossEntropy().inverse_temperature
    gradient = CrossEntropy().gradient(signed_targets(np.arange(3), 3), F + 5.0)
    assert_allclose(p @ gradient, np.zeros(3), atol=1e-15)


@pytest.mark.parametrize("width", [1e-3, 0.1, 2.0])
def test_smooth_losses_are_near_the_sharp_ones(width):
    r = np.linspace(-3, 3, 601)[:, None]
    zeros = np.zeros_like(r)
    above = {
        "hinge": SmoothHinge(1 / width).value(zeros + 1, r + 1) - np.maximum(0, -r),
        "pinball": Quantile(0.3, width).value(zeros, r) - np.maximum(-0.3 * r, 0.7 * r),
        "absolute": (AbsoluteError(width).value(zeros, r) - np.abs(r)) / 2,
    }
    for gap in above.values():
        assert (gap >= -1e-15).all()
        assert_allclose(gap.max(), width * LOG2, rtol=1e-9)
        assert_allclose(gap[300], [width * LOG2], rtol=1e-9)


def test_the_losses_of_classes_are_alike_in_both_signs(rng):
    _, F = margin_problem(rng)
    up, down = np.ones(F.shape), -np.ones(F.shape)
    for loss, _ in MARGIN.values():
        assert_array_equal(loss.value(down, -F), loss.value(up, F))
        assert_array_equal(loss.gradient(down, -F), -loss.gradient(up, F))
        assert_array_equal(loss.curvature(down, -F), loss.curvature(up, F))


# Scales.


@pytest.mark.parametrize(
    ("values", "weights", "expected"),
    [
        ([3.0], [0.1], 3.0),
        ([4.0, 1.0, 3.0, 2.0], [1, 1, 1, 1], 2.0),
        ([4.0, 1.0, 3.0, 2.0], [1, 1, 2, 1], 3.0),
        ([1.0, 2.0, 3.0], [0, 0, 5], 3.0),
        ([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1], 2.0),
        ([5.0, 1.0], [1e-3, 1e3], 1.0),
        ([-1.0, -1.0, 7.0], [1, 1, 1], -1.0),
    ],
)
def test_weighted_median_is_the_lower_one(values, weights, expected):
    values, weights = np.array(values), np.array(weights, dtype=float)
    assert weighted_median(values, weights) == expected
    for factor in (0.1, 1 / 3, 1e-200, 1e200):
        assert weighted_median(values, factor * weights) == expected


def test_weighted_median_of_many_equal_weights(rng):
    """Rounding of the sum of the weights does not move it."""
    for n in (10, 100, 1000, 9999):
        values = rng.permutation(n).astype(float)
        for weight in (0.1, 0.3, 1.0):
            assert weighted_median(values, np.full(n, weight)) == (n - 1) // 2


def test_robust_scale_by_hand():
    Y = np.array([[1.0], [2.0], [4.0], [8.0], [100.0]])
    assert_allclose(robust_scale(Y, np.ones(5)), 1.4826 * 3.0, rtol=1e-15)
    assert_allclose(robust_scale(Y, np.array([3.0, 3.0, 1.0, 1.0, 2.0])), 1.4826, rtol=1e-15)


def test_robust_scale_of_each_output_about_its_own_median(rng):
    Y = rng.normal(size=(301, 2))
    both = robust_scale(Y, np.ones(301))
    assert_allclose(robust_scale(Y + [0.0, 1e3], np.ones(301)), both, rtol=1e-9)
    columns = [robust_scale(Y[:, [t]], np.ones(301)) for t in range(2)]
    assert min(columns) <= both <= max(columns)


def test_robust_scale_is_the_standard_deviation_of_a_normal_sample(rng):
    y = 3.0 + 0.2 * rng.normal(size=(4001, 1))
    assert_allclose(robust_scale(y, np.ones(4001)), 0.2, rtol=0.05)
    y[:400] = 1e9
    assert_allclose(robust_scale(y, np.ones(4001)), 0.2, rtol=0.2)


def test_robust_scale_counts_weights(rng):
    for Y in (rng.normal(size=(30, 2)), rng.poisson(0.2, size=(30, 2)).astype(float)):
        weights = rng.integers(0, 3, size=30)
        repeated = robust_scale(np.repeat(Y, weights, axis=0), np.ones(weights.sum()))
        assert_allclose(robust_scale(Y, weights.astype(float)), repeated, rtol=1e-13)


def test_robust_scale_where_most_targets_are_equal():
    Y = np.array([[0.0], [0.0], [0.0], [4.0]])
    assert_allclose(robust_scale(Y, np.ones(4)), np.sqrt(3.0), rtol=1e-15)
    assert_allclose(robust_scale(Y + 1e6, np.ones(4)), np.sqrt(3.0), rtol=1e-9)
    # Equal targets have no spread: their size is the unit.
    assert robust_scale(np.full((7, 1), 0.1), np.full(7, 0.3)) == 0.1
    assert robust_scale(np.array([[-5.0]]), np.ones(1)) == 5.0
    assert robust_scale(np.zeros((3, 1)), np.ones(3)) == 1.0


@pytest.mark.parametrize(
    ("loss", "field", "factor"),
    [(Huber(), "delta", 1.345), (Quantile(0.9), "smoothing", 0.01),
     (AbsoluteError(), "smoothing", 0.01)],
)  # fmt: skip
def test_scale_becomes_a_number(loss, field, factor, rng):
    Y, weights = rng.normal(size=(20, 2)), rng.uniform(size=20)
    resolved = loss.resolved(Y, weights)
    numbers = tuple(factor * robust_scale(column[:, None], weights) for column in Y.T)
    assert resolved == dataclasses.replace(loss, **{field: numbers})
    one = loss.resolved(Y[:, :1], weights)
    assert one == dataclasses.replace(loss, **{field: numbers[0]})
    assert resolved.resolved(7.0 * Y, weights) is resolved
    for method in ("value", "gradient", "curvature"):
        with pytest.raises(ValueError, match=f"{field}='scale' becomes a number by resolved"):
            getattr(loss, method)(Y, Y)


def test_losses_without_scale_stay_themselves():
    for loss, _ in [*MARGIN.values(), (CrossEntropy(), 0), (Poisson(), 0)]:
        assert loss.resolved(np.ones((2, 1)), np.ones(2)) is loss


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Huber(0.0), "delta must be a finite number above 0, got 0.0"),
        (lambda: Huber("large"), "delta must be 'scale' or a positive number, got 'large'"),
        (lambda: Huber(np.nan), "delta"),
        (lambda: Huber(None), "delta"),
        (lambda: Quantile(0.0), "quantile must be a finite number above 0 and below 1, got 0.0"),
        (lambda: Quantile(1.0), "quantile"),
        (lambda: Quantile(0.5, -1.0), "smoothing"),
        (lambda: Quantile(0.5, "auto"), "smoothing"),
        (lambda: AbsoluteError(np.inf), "smoothing"),
        (lambda: SmoothHinge(0.0), "beta must be"),
        (lambda: SquaredErrorTanh(1.0), "target must be"),
        (lambda: SquaredErrorTanh(-0.65), "target must be"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_targets_outside_a_loss():
    with pytest.raises(ValueError, match="y is negative at row 2"):
        Poisson().check_targets(np.array([[0.0, 1.0], [3.0, 0.0], [1.0, -0.5], [-1.0, 0.0]]))
    Poisson().check_targets(np.array([[0.0], [2.5]]))
    for loss in LOSSES.values():
        if loss != Poisson():
            loss.check_targets(np.array([[-1.0], [1.0]]))


def test_mean_of_outputs():
    F = np.array([[-1.0, 0.0, 1e3]])
    for loss in LOSSES.values():
        expected = [[np.exp(-1.0), 1.0, np.inf]] if loss == Poisson() else F
        assert_allclose(loss.mean(F), expected, rtol=1e-15)


# From names to values.


def resolved(loss, classifier=True, n_outputs=1, one_basis=True):
    return resolve_loss(loss, classifier=classifier, n_outputs=n_outputs, one_basis=one_basis)


def test_every_name_gives_its_loss():
    defaults = {
        **{name: type(loss)() for name, (loss, _) in MARGIN.items()},
        **{name: type(loss)() for name, (loss, _) in NUMBERS.items()},
    }
    assert dict(LOSSES) == defaults
    for classifier, table in ((True, MARGIN), (False, NUMBERS)):
        for name in table:
            for n_outputs in (1, 3):
                for one_basis in (True, False):
                    coupled = name == "log_loss" and n_outputs > 1 and one_basis
                    expected = CrossEntropy() if coupled else defaults[name]
                    assert resolved(name, classifier, n_outputs, one_basis) == expected
                    assert resolved(expected, classifier, n_outputs, one_basis) == expected


def test_the_module_documents_every_loss():
    rows = re.findall(r"^``(\w+)`` .* `(\w+)`$", losses.__doc__, flags=re.MULTILINE)
    assert {name: type(loss).__name__ for name, loss in LOSSES.items()} == dict(rows)
    listed = [getattr(losses, name) for name in losses.__all__]
    classes = {c for c in listed if isinstance(c, type) and issubclass(c, Loss)}
    bases = {Loss, losses.MarginLoss, losses.ResidualLoss, UserLoss}
    assert {type(loss) for loss in LOSSES.values()} == classes - bases - {CrossEntropy}


def test_log_loss_and_cross_entropy_are_one_by_the_number_of_outputs():
    for given in ("log_loss", LogLoss(), CrossEntropy()):
        assert resolved(given, n_outputs=3) == CrossEntropy()
        assert resolved(given, n_outputs=1) == LogLoss()
    assert resolved(LogLoss(), n_outputs=3, one_basis=False) == LogLoss()


def test_objects_stay_what_they_are():
    for loss in (Huber(2.0), Quantile(0.9), SmoothHinge(3.0), SquaredErrorTanh(0.5)):
        assert resolved(loss, classifier=loss.task == "classifier", n_outputs=2) is loss


@pytest.mark.parametrize(
    ("loss", "options", "message"),
    [
        ("hinge", {}, r"loss must be one of \['doom2', 'exponential', .*got 'hinge'"),
        ("mse", {"classifier": False}, r"loss must be one of \['absolute_error', 'huber', 'pois"),
        (None, {}, "loss must be one of"),
        (Huber, {"classifier": False}, "loss must be one of"),
        (["log_loss"], {}, "loss must be one of"),
        (np.log, {}, "loss must be one of"),
        ("huber", {}, r"loss='huber' is for a regressor; a classifier takes one of \['doom2',"),
        ("poisson", {}, "loss='poisson' is for a regressor"),
        ("log_loss", {"classifier": False}, r"loss='log_loss' is for a classifier; a regressor"),
        (SmoothHinge(), {"classifier": False}, r"loss=SmoothHinge\(beta=10.0\) is for a class"),
        (CrossEntropy(), {"classifier": False}, "is for a classifier"),
        (CrossEntropy(), {"n_outputs": 3, "one_basis": False}, "multi_class='shared'"),
    ],
)
def test_losses_that_do_not_go(loss, options, message):
    with pytest.raises(ValueError, match=message):
        resolved(loss, **options)


def test_the_choices_are_those_of_the_estimator():
    for classifier, table in ((True, MARGIN), (False, NUMBERS)):
        with pytest.raises(ValueError) as error:
            resolved("no such", classifier)
        assert f"one of {sorted(table)}" in str(error.value)


# Losses of the user.


class Quartic:
    """(f - y)^4, with nothing but what is asked for."""

    def value(self, Y, F):
        return (F - Y) ** 4

    def gradient(self, Y, F):
        return 4 * (F - Y) ** 3

    def curvature(self, Y, F):
        return 12 * (F - Y) ** 2


class Coupled(Quartic):
    """sum_t (f_t - y_t)^2 / 2, as one number a row, with all that may be said of a loss."""

    coupled = True
    convex = True
    inverse_temperature = 3.0

    def value(self, Y, F):
        return ((F - Y) ** 2).sum(axis=1) / 2

    def gradient(self, Y, F):
        return F - Y

    def curvature(self, Y, F):
        return np.broadcast_to(np.eye(F.shape[1]), (*F.shape, F.shape[1]))

    def mean(self, F):
        return 2 * F


def test_a_loss_of_the_user(rng):
    Y, F = number_problem(rng)
    for classifier in (True, False):
        loss = resolved(Quartic(), classifier, n_outputs=2, one_basis=False)
        assert isinstance(loss, UserLoss)
        assert (loss.coupled, loss.convex, loss.inverse_temperature) == (False, False, None)
        assert_allclose(loss.value(Y, F), (F - Y) ** 4)
        assert_allclose(loss.gradient(Y, F), 4 * (F - Y) ** 3)
        assert_allclose(loss.curvature(Y, F), 12 * (F - Y) ** 2)
        assert loss.mean(F) is F
        assert loss.resolved(Y, np.ones(60)) is loss
        loss.check_targets(Y)


def test_what_a_loss_of_the_user_says_of_itself(rng):
    Y, F = number_problem(rng)
    loss = resolved(Coupled(), n_outputs=2)
    assert (loss.coupled, loss.convex, loss.inverse_temperature) == (True, True, 3.0)
    assert loss.value(Y, F).shape == (60,)
    assert_array_equal(loss.curvature(Y, F)[7], np.eye(2))
    assert loss.curvature(Y, F).flags.writeable
    assert_allclose(loss.curvature_product(Y, F)(F), F)
    assert_array_equal(loss.mean(F), 2 * F)
    with pytest.raises(ValueError, match="one basis"):
        resolved(Coupled(), n_outputs=2, one_basis=False)
    copy = pickle.loads(pickle.dumps(loss))
    assert (copy.coupled, copy.convex, copy.inverse_temperature) == (True, True, 3.0)


@pytest.mark.parametrize("method", ["value", "gradient", "curvature"])
@pytest.mark.parametrize("answer", [2.0, np.ones(60), np.ones((60, 1)), np.ones((2, 60))])
def test_shapes_of_a_loss_of_the_user_are_checked(method, answer, rng):
    broken = Quartic()
    setattr(broken, method, lambda Y, F: answer)
    with pytest.raises(
        ValueError, match=rf"loss: {method} of Quartic .* \(60, 2\); expected \(60, 2\)"
    ):
        getattr(resolved(broken), method)(*number_problem(rng))


def test_an_object_without_a_method_is_no_loss():
    for method in ("value", "gradient", "curvature"):
        broken = Quartic()
        setattr(broken, method, None)
        with pytest.raises(ValueError, match="methods value, gradient and curvature"):
            resolved(broken)


def test_a_class_derived_from_loss_goes_as_it_is(rng):
    class Shifted(SquaredError):
        def _value(self, r):
            return (r - 1) ** 2

    loss = Shifted()
    assert resolved(loss) is loss
    assert_allclose(loss.value(np.zeros((1, 1)), np.ones((1, 1))), [[0.0]])


# Values that can be kept.


@pytest.mark.parametrize("loss", [*LOSSES.values(), CrossEntropy(), Huber(0.7), Quantile(0.9, 0.1)])
def test_losses_are_values_that_files_hold(loss):
    encoder = Encoder("Model", staged=True)
    text = json.dumps(encoder.encode(loss, "loss"), allow_nan=False)
    back = Decoder(encoder.members.__getitem__, "0").decode(json.loads(text))
    assert back == loss
    assert type(back) is type(loss)
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert hash(loss) == hash(back)
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        loss.delta = 3.0


def test_losses_differ():
    assert Huber(1.0) != Huber(2.0)
    assert LogLoss() != LogitBoost()
    assert repr(Quantile(0.9)) == "Quantile(quantile=0.9, smoothing='scale')"
    with pytest.raises(TypeError):
        LOSSES["mine"] = LogLoss()


@pytest.mark.parametrize("name", ["huber", "absolute_error", "quantile"])
def test_each_target_has_its_own_scale(name, rng):
    Y, F = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    Y[:7] += 5.0
    unit, weights = np.array([1e-4, 1e3]), np.ones(50)
    both = LOSSES[name].resolved(Y * unit, weights)
    power = 2 if name == "huber" else 1
    for t in range(2):
        one = LOSSES[name].resolved(Y[:, [t]], weights)
        own = slice(t, t + 1)
        value = one.value(Y[:, own], F[:, own]) * unit[t] ** power
        assert_allclose(both.value(Y * unit, F * unit)[:, own], value, rtol=1e-9)
        slope = one.gradient(Y[:, own], F[:, own]) * unit[t] ** (power - 1)
        assert_allclose(both.gradient(Y * unit, F * unit)[:, own], slope, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("constant", [1e-6, -3e5, 0.1])
def test_a_constant_target_is_predicted_in_its_own_unit(constant, rng):
    X, y = rng.normal(size=(40, 2)), np.full(40, constant)
    loss = Quantile(0.9)
    model = KernelMatchingPursuitRegressor(5, loss=loss, alpha=0.0).fit(X, y)
    assert_allclose(model.predict(X), y, rtol=0.03)
