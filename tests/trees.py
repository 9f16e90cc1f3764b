"""A small estimator and a small value that trees may hold, for the tests of files."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator

from pursuit.io import tree as value_tree
from pursuit.io.tree import Decoder, Encoder


class Holder(BaseEstimator):
    """An estimator that keeps whatever it is given."""

    def __init__(self, param=None, other=1):
        self.param = param
        self.other = other

    def fit(self, value):
        self.value_ = value
        return self


@dataclass(frozen=True)
class Pair:
    first: object
    second: object = 2


class CallablePair(Pair):
    def __call__(self):
        return self.first


@pytest.fixture(autouse=True)
def known_classes(monkeypatch):
    for name in ("Holder", "Pair", "CallablePair"):
        monkeypatch.setitem(value_tree.CLASSES, name, "trees")


def holding(value, param=None):
    return Holder(param).fit(value)


def encoded(value, staged=True):
    """Give the tree as text, as a file would hold it, and the arrays."""
    encoder = Encoder("Holder", staged)
    tree = encoder.encode(value, "")
    return json.dumps(tree, allow_nan=False), encoder.members


def round_trip(value, staged=True):
    text, members = encoded(value, staged)
    return Decoder(members.__getitem__, "0").decode(json.loads(text))


def assert_same(actual, expected):
    """Equal in type, structure, dtype and bits."""
    assert type(actual) is type(expected)
    if isinstance(expected, np.ndarray):
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        same_text = expected.dtype == object and actual.tolist() == expected.tolist()
        assert same_text or actual.tobytes() == expected.tobytes()
    elif sparse.issparse(expected):
        assert actual.shape == expected.shape
        for part in ("data", "indices", "indptr"):
            assert_array_equal(getattr(actual, part), getattr(expected, part), strict=True)
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, dict):
        assert_same(list(actual.keys()), list(expected.keys()))
        assert_same(list(actual.values()), list(expected.values()))
    elif isinstance(expected, Pair):
        assert_same([actual.first, actual.second], [expected.first, expected.second])
    elif isinstance(expected, np.generic):
        assert actual.dtype == expected.dtype
        assert actual.tobytes() == expected.tobytes()
    else:
        assert repr(actual) == repr(expected)
