"""Probabilities: they agree with the decision, and the temperature is the best one."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

from pursuit.expansion.probabilities import (
    fit_inverse_temperature,
    fit_temperature,
    negative_log_likelihood,
    probabilities,
)


def decisions(rng, n_columns, n_rows=80, strength=1.5):
    """Decision values that tell something about the classes, and weights with zeros."""
    n_classes = max(2, n_columns)
    codes = rng.integers(n_classes, size=n_rows)
    values = rng.normal(size=(n_rows, n_columns))
    if n_columns == 1:
        values[:, 0] += strength * (2 * codes - 1)
    else:
        values[np.arange(n_rows), codes] += strength
    weights = rng.uniform(0.0, 3.0, size=n_rows)
    weights[::7] = 0.0
    return values, codes, weights


@pytest.mark.parametrize("scale", [0.01, 1.0, 7.0])
@pytest.mark.parametrize("n_columns", [1, 2, 3, 6])
def test_formula(n_columns, scale, rng):
    values, codes, weights = decisions(rng, n_columns)
    table = probabilities(values, scale)
    assert table.shape == (80, max(2, n_columns))
    assert_allclose(table, reference.probabilities(values, 1.0 / scale), rtol=1e-12)
    expected = log_loss(codes, table, sample_weight=weights)
    assert_allclose(negative_log_likelihood(scale, values, codes, weights), expected, rtol=1e-9)


@pytest.mark.parametrize("start", [1e-9, 0.1, 1.0, 50.0, 1e9])
@pytest.mark.parametrize("factor", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_temperature_is_the_best(n_columns, factor, start, rng):
    values, codes, weights = decisions(rng, n_columns)
    scale = fit_inverse_temperature(factor * values, codes, weights, start)
    expected = reference.temperature(factor * values, codes, weights)
    assert_allclose(1.0 / scale, expected, rtol=1e-5)
    # And the likelihood has no slope there.
    h = 1e-4 * scale
    left, right = (
        negative_log_likelihood(s, factor * values, codes, weights) for s in (scale - h, scale + h)
    )
    assert abs(right - left) / (2 * h) * scale < 1e-6


@pytest.mark.parametrize("n_columns", [1, 4])
def test_start_does_not_matter(n_columns, rng):
    values, codes, weights = decisions(rng, n_columns)
    scales = [fit_inverse_temperature(values, codes, weights, s) for s in (1e-3, 0.2, 3.0, 1e3)]
    assert_allclose(scales, scales[0], rtol=1e-9)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_weight_two_is_the_row_twice(n_columns, rng):
    values, codes, _ = decisions(rng, n_columns)
    weights = rng.integers(0, 3, size=80)
    weighted = fit_inverse_temperature(values, codes, weights.astype(float))
    repeated = fit_inverse_temperature(
        np.repeat(values, weights, axis=0), np.repeat(codes, weights), np.ones(weights.sum())
    )
    assert_allclose(weighted, repeated, rtol=1e-8)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_temperature_is_bounded(n_columns, rng):
    """Separated classes ask for a temperature of 0, useless values for infinity."""
    codes = np.arange(30) % max(2, n_columns)
    perfect = np.eye(max(2, n_columns))[codes]
    perfect = perfect[:, [1]] * 2 - 1 if n_columns == 1 else perfect
    ones = np.ones(30)
    for values, bound in ((perfect, 1e3), (-perfect, 1e-3), (1e100 * perfect, 1e3)):
        scale = fit_inverse_temperature(values, codes, ones)
        assert 1e-3 <= scale <= 1e3
        assert_allclose(scale, bound, rtol=1e-3)
        best = negative_log_likelihood(bound, values, codes, ones)
        assert_allclose(negative_log_likelihood(scale, values, codes, ones), best, atol=1e-9)
    flat = fit_inverse_temperature(np.zeros_like(perfect), codes, ones)
    assert flat == 1e-3


@pytest.mark.parametrize("n_columns", [1, 2, 4])
def test_no_class_is_quite_certain(n_columns, rng):
    """The likelihood of targets 1 / (W + K) and the rest; finite where all rows are right."""
    values, codes, weights = decisions(rng, n_columns, strength=8.0)
    n_classes = max(2, n_columns)
    temperature = fit_temperature(values, codes, weights)
    targets = np.full((80, n_classes), 1.0 / (weights.sum() + n_classes))
    targets[np.arange(80), codes] = 1.0 - (n_classes - 1) * targets[0, 0]
    grid = temperature * np.geomspace(0.5, 2.0, 41)
    tables = [reference.probabilities(values, t) for t in grid]
    losses = [-(weights[:, None] * targets * np.log(table)).sum() for table in tables]
    assert np.argmin(losses) == 20


EXTREMES = [0.0, -0.0, 1.0, -1.0, 1e-17, -1e-17, 5e-324, 1e-300, 40.0, -40.0, 800.0, -800.0,
            1e300, -1e300]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_two_classes_agree_with_the_sign(scale, dtype):
    with np.errstate(over="ignore", under="ignore"):
        values = np.array(EXTREMES, dtype=dtype)
    values = values[np.isfinite(values)][:, None].astype(np.float64)
    table = probabilities(values, scale)
    assert_array_equal(table.argmax(axis=1), values[:, 0] > 0)
    assert_allclose(table.sum(axis=1), 1.0, rtol=1e-15)
    assert ((table >= 0) & (table <= 1)).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_many_classes_agree_with_the_largest(scale, rng):
    values = rng.choice(EXTREMES, size=(4000, 4))
    values[:500] = 1.0 + rng.integers(-2, 3, size=(500, 4)) * 2.0**-52  # ties up to rounding
    values[500:600] = 3.0  # and exact ones
    table = probabilities(values, scale)
    assert_array_equal(table.argmax(axis=1), values.argmax(axis=1))
    assert_allclose(table.sum(axis=1), 1.0, rtol=1e-14)
    assert ((table >= 0) & (table <= 1)).all()


def test_no_rows():
    assert probabilities(np.empty((0, 1)), 1.0).shape == (0, 2)
    assert probabilities(np.empty((0, 3)), 1.0).shape == (0, 3)
