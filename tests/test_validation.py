"""Checks of parameters and targets: what passes, and what the error says."""

from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from pursuit import _validation as parameters
from pursuit._validation import (
    check_choice,
    check_integer,
    check_real,
    check_several_classes,
    check_weights,
    class_codes,
    class_weights,
    read_data,
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


class Fitted(BaseEstimator):
    """Fitted on two features."""

    n_features_in_ = 2


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1.0, 2.0]]),
        np.array([[1.0, 2.0]], dtype=np.float32),
        np.asfortranarray(np.ones((3, 2)))[:, ::-1],
    ],
)
def test_plain_queries_are_read_as_scikit_learn_reads_them(X, monkeypatch):
    expected = validate_data(Fitted(), X, reset=False, dtype=[np.float64, np.float32])
    monkeypatch.setattr(parameters, "validate_data", None)  # the short way does not call it
    found = read_data(Fitted(), X, reset=False, accept_sparse="csr")
    assert found is X and expected is X


def test_single_precision_too_short_for_squares_is_widened_on_the_short_way():
    X = np.array([[1e30, 1.0]], dtype=np.float32)
    assert read_data(Fitted(), X, reset=False, accept_sparse="csr").dtype == np.float64


@pytest.mark.parametrize(
    "X, message",
    [
        (np.array([[np.nan, 1.0]]), "contains NaN"),
        (np.array([[1.0, -np.inf]]), "contains infinity"),
        (np.array([[1.0, np.inf]], dtype=np.float32), "contains infinity"),
        (np.ones((1, 3)), "X has 3 features, but Fitted is expecting 2 features"),
        (np.ones(2), "Expected 2D array, got 1D array instead"),
        (np.ones((0, 2)), "Found array with 0 sample"),
    ],
)
def test_all_other_queries_get_their_errors(X, message):
    with pytest.raises(ValueError, match=message):
        read_data(Fitted(), X, reset=False, accept_sparse="csr")


def test_missing_names_are_told_and_whole_numbers_converted():
    named = Fitted()
    named.feature_names_in_ = np.array(["a", "b"], dtype=object)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        read_data(named, np.ones((1, 2)), reset=False, accept_sparse="csr")
    X = read_data(Fitted(), [[1, 2]], reset=False, accept_sparse="csr")
    assert X.dtype == np.float64
