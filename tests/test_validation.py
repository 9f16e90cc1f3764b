"""Checks of parameters and targets: what passes, and what the error says."""

from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pursuit import _validation as parameters
from pursuit._validation import (
    check_choice,
    check_integer,
    check_real,
    check_several_classes,
    check_weights,
    class_codes,
    class_weights,
    signed_targets,
)


def test_integers_that_pass():
    for value in (1, 7, np.int64(3), np.uint8(2)):
        check_integer("n", value)
    check_integer("n", None, optional=True)
    check_integer("n", 0, minimum=0)


@pytest.mark.parametrize("value", [0, -1, 1.0, np.float64(2), True, "3", None, [1], np.nan])
def test_integers_that_do_not(value):
    with pytest.raises(ValueError, match="^steps must be an integer of at least 1, got "):
        check_integer("steps", value)


def test_reals_that_pass():
    for value in (0, 0.0, 3.5, np.float32(1.0), np.int64(4), Fraction(1, 2), 1e300):
        check_real("alpha", value)
    check_real("share", 0.5, 0, 1, above=True)
    check_real("coef0", -4.0, minimum=-np.inf)


@pytest.mark.parametrize("value", [-1e-300, np.nan, np.inf, -np.inf, True, "1", None, [1.0], 1j])
def test_reals_that_do_not(value):
    with pytest.raises(ValueError, match="^alpha must be a finite number of at least 0, got "):
        check_real("alpha", value)


@pytest.mark.parametrize("value", [0.0, 1.0, 1.5, -0.1])
def test_reals_out_of_an_open_interval(value):
    with pytest.raises(ValueError, match="^share must be a finite number above 0 and below 1, got"):
        check_real("share", value, 0, 1, above=True)


def test_choices():
    for value in (False, True, "loo"):
        check_choice("stop", value, (False, True, "loo"))
    for value in (0, 1, None, "LOO", np.array([1, 2]), ["loo"]):
        with pytest.raises(ValueError, match="^stop must be one of .False, True, 'loo'., got"):
            check_choice("stop", value, (False, True, "loo"))


def test_weights():
    assert_array_equal(check_weights(None, 3), np.ones(3))
    assert_array_equal(check_weights(2, 3), np.full(3, 2.0))
    assert_array_equal(check_weights([0, 1, 2], 3), [0.0, 1.0, 2.0])
    assert check_weights(np.ones(3, dtype=np.float32), 3).dtype == np.float64
    for weights, message in (
        ([1.0, -2.0, -3.0], "sample_weight is negative at row 1"),
        ([0.0, 0.0, 0.0], "sample_weight is zero for every row"),
        ([1.0, 1.0], r"sample_weight has shape \(2,\), expected \(3,\)"),
        (np.ones((3, 1)), r"sample_weight has shape \(3, 1\)"),
        ([1.0, np.nan, 1.0], "sample_weight contains NaN"),
        ([1.0, np.inf, 1.0], "sample_weight contains infinity"),
        (-1.0, "sample_weight is negative at row 0"),
    ):
        with pytest.raises(ValueError, match=message):
            check_weights(weights, 3)


def test_class_weights():
    classes, codes = np.array(["a", "b", "c"]), np.array([0, 0, 0, 1, 2, 2])
    weights = np.array([1.0, 1.0, 0.0, 4.0, 1.0, 1.0])
    assert_array_equal(class_weights(None, classes, codes, weights), np.ones(3))
    # "balanced": every class has the same total weight, and the sum stays.
    balanced = class_weights("balanced", classes, codes, weights)
    assert_allclose(np.bincount(codes, balanced[codes] * weights), np.full(3, 8.0 / 3.0))
    for mapping in ({"b": 3.0}, OrderedDict(b=3)):
        assert_array_equal(class_weights(mapping, classes, codes, weights), [1.0, 3.0, 1.0])
    assert_array_equal(class_weights({"a": 0.0}, classes, codes, weights), [0.0, 1.0, 1.0])
    for bad in ("even", [1, 2, 3], {"a": -1.0}, {"a": np.nan}, {"a": "x"}, {"d": 1.0}):
        with pytest.raises(ValueError, match="class_weight|'d'"):
            class_weights(bad, classes, codes, weights)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_targets_and_codes(n_classes):
    codes = np.array([1, 0, *range(n_classes), 0, 1])
    targets = signed_targets(codes, n_classes)
    assert targets.shape == (len(codes), 1 if n_classes == 2 else n_classes)
    assert set(np.unique(targets)) == {-1.0, 1.0}
    assert_array_equal(class_codes(targets), codes)
    if n_classes > 2:
        assert_array_equal((targets > 0).sum(axis=1), np.ones(len(codes)))


def test_everything_exported_exists():
    assert all(hasattr(parameters, name) for name in parameters.__all__)


def test_a_classifier_needs_two_classes():
    check_several_classes(np.array(["ant", "bee"]))
    with pytest.raises(ValueError, match="one class only .ant.; .*at least 2 classes"):
        check_several_classes(np.array(["ant"]))
