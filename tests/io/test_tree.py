"""Values to trees and back: type, structure and every bit survive; nothing else gets in."""

import json
import threading

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator
from trees import (  # noqa: F401
    CallablePair,
    Holder,
    Pair,
    assert_same,
    encoded,
    holding,
    known_classes,
    round_trip,
)

from pursuit.io import tree as value_tree
from pursuit.io.tree import (
    Decoder,
    ModelFileError,
    array_shapes,
    function_names,
    holds_arrays,
    in_words,
)

VALUES = {
    "none": None,
    "bool": True,
    "int": -(10**30),
    "float": 0.1 + 0.2,
    "negative zero": -0.0,
    "smallest": 5e-324,
    "nan": float("nan"),
    "infinity": float("-inf"),
    "text": 'quote " \\ \n \0 é 漢 \U0001f600',
    "lone surrogate": "\ud800",
    "list": [1, [2.0, None], []],
    "tuple": (1, (2.0,), ()),
    "dict": {"a": 1, "type": {"type": "array"}, "": []},
    "class weights": {0: 1.0, np.int64(1): 2.5, "x": 3, True: 4},
    "value": Pair(Pair(None, (1,)), np.arange(3)),
    "float64": np.float64(np.pi),
    "float64 nan": np.float64("nan"),
    "float32": np.float32(0.1),
    "float16": np.float16(0.1),
    "int64": np.int64(-3),
    "uint8": np.uint8(200),
    "bool_": np.bool_(False),
    "str_": np.str_("é"),
    "array": np.random.default_rng(0).normal(size=(3, 4)),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "float32 array": np.arange(5, dtype=np.float32),
    "big endian": np.arange(5, dtype=">f8"),
    "int array": np.arange(4),
    "bool array": np.array([True, False]),
    "0-d": np.array(3.5),
    "empty": np.empty((0, 7)),
    "not finite": np.array([np.nan, np.inf, -0.0]),
    "unicode": np.array(["b", "äöü", ""]),
    "object text": np.array(["b", "a long one", ""], dtype=object),
    "objects": np.array([[None, "full"], [3, 0.5]], dtype=object),
    "object empty": np.array([], dtype=object),
    "object table": np.array([["a", "b"], ["c", "d"]], dtype=object),
    "csr": sparse.random(6, 9, 0.3, format="csr", random_state=0),
    "csr array": sparse.csr_array(np.eye(3, dtype=np.float32)),
    "csr empty": sparse.csr_matrix((0, 4)),
}


@pytest.mark.parametrize("name", VALUES)
def test_value_round_trip(name):
    assert_same(round_trip(VALUES[name]), VALUES[name])


def test_memory_layout_is_kept():
    assert round_trip(np.asfortranarray(np.ones((3, 4)))).flags.f_contiguous
    assert round_trip(np.ones((3, 4))).flags.c_contiguous


def test_decoded_arrays_can_be_written():
    array = round_trip(np.zeros(3))
    array += 1
    assert_array_equal(array, np.ones(3))


def test_shared_array_is_stored_once_and_shared_again():
    array = np.arange(5.0)
    assert len(encoded([array, Pair(array)])[1]) == 1
    first, second = round_trip([array, Pair(array)])
    assert first is second.first


def test_shared_matrix_is_shared_again():
    matrix = sparse.random(6, 9, 0.3, format="csr", random_state=0)
    first, second, other = round_trip([matrix, matrix, matrix[:, :5]])
    assert first is second
    assert_array_equal(other.toarray(), matrix[:, :5].toarray())


def test_other_sparse_formats_become_csr():
    matrix = sparse.random(6, 9, 0.3, format="csc", random_state=0)
    decoded = round_trip(matrix)
    assert decoded.format == "csr"
    assert_array_equal(decoded.toarray(), matrix.toarray())


def test_random_generators_become_none_and_tables_become_arrays():
    assert round_trip(np.random.RandomState(0)) is None
    assert round_trip(np.random.default_rng(0)) is None
    assert_array_equal(round_trip(pd.DataFrame({"a": [1.0, 2.0]})), [[1.0], [2.0]])


def test_estimators_inside_estimators():
    model = round_trip(holding([holding(np.arange(3))], param=Holder({"gamma": 0.5})))
    assert model.get_params(deep=False) == {"param": model.param, "other": 1}
    assert model.param.param == {"gamma": 0.5}
    assert_array_equal(model.value_[0].value_, np.arange(3))


def test_what_scikit_learn_notes_on_an_estimator_is_left_out():
    model = holding(1)
    model._metadata_request = threading.Lock()
    assert vars(round_trip(model)) == {"param": None, "other": 1, "value_": 1}


def test_path_is_dropped_without_staged():
    model = holding(1)
    model.path_ = np.arange(3)
    assert_array_equal(round_trip(model).path_, np.arange(3))
    assert round_trip([model], staged=False)[0].path_ is None
    assert model.path_ is not None


def a_function(X, Z):
    return X @ Z.T


class OtherEstimator(BaseEstimator):
    pass


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (a_function, "a Python function. A model file holds no code"),
        (np.exp, "an object of class ufunc"),
        (threading.Lock(), "an object of class lock"),
        (OtherEstimator(), "an object of class OtherEstimator"),
        (type("Holder", (Holder,), {})(), "an object of class Holder"),
        (np.array(["a\0"], dtype=object), "an array of dtype object"),
        (np.array([1j]), "an array of dtype complex128"),
        (np.complex128(1j), "an array of dtype complex128"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "an array of dtype datetime64"),
        (b"bytes", "an object of class bytes"),
        ({1, 2}, "an object of class set"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_stored_is_named(value, named):
    with pytest.raises(ValueError, match=f"cannot save Holder: parameter param is {named}"):
        encoded(holding(1, param=value))
    with pytest.raises(ValueError, match=r"attribute value_\['key'\]\[0\].first is an? "):
        encoded(holding({"key": [Pair(value)]}))
    with pytest.raises(ValueError, match=r"param\.other is an? "):
        encoded(holding(1, param=Holder(other=value)))


def test_arrays_of_objects_are_stored_item_by_item():
    with pytest.raises(ValueError, match=r"parameter param\[1\] is an object of class set"):
        encoded(holding(1, param=np.array([1, {2}], dtype=object)))
    text, members = encoded(holding(np.array([None, "a"], dtype=object)))
    assert not members
    damaged = text.replace('"shape": [2]', '"shape": [2000000000]')
    assert damaged != text
    with pytest.raises(ModelFileError, match="has not its stated length"):
        Decoder(members.__getitem__, "0").decode(json.loads(damaged))
    assert in_words(json.loads(text)["state"]["value_"]) == "array of shape (2,)"


def a_call(X):
    return X[:, 0]


class Callable_:
    def __call__(self, X):
        return X[:, 1]


def test_functions_in_a_dict_are_known_by_their_keys():
    functions = {"a": a_call, "b": Callable_(), "c": np.exp}
    value = holding([functions, Pair({"a": a_call, "x": 1.0})])
    text, members = encoded(value)
    assert not members
    assert "a_call" not in text
    tree = json.loads(text)
    assert function_names(tree) == ["a", "b", "c"]
    again = {"a": np.sin, "b": np.cos, "c": np.tan}
    decoded = Decoder(members.__getitem__, "0", again).decode(tree).value_
    assert decoded == [again, Pair({"a": np.sin, "x": 1.0})]
    assert function_names(json.loads(encoded([1, {"type": 2}])[0])) == []


def test_two_functions_of_one_name_are_refused():
    with pytest.raises(ValueError, match="cannot save Holder: two functions have the name 'a'"):
        encoded([{"a": a_call}, {"a": np.exp}])


def test_values_in_a_dict_that_can_be_called_are_no_functions():
    """A kernel, say, can be called, but it is a value of the package."""
    assert_same(round_trip({"a": CallablePair(1)}), {"a": CallablePair(1)})


@pytest.mark.parametrize("value", [{1: a_call}, [a_call], (a_call,), {"a": [a_call]}])
def test_functions_without_a_name_are_refused(value):
    with pytest.raises(ValueError, match=r"parameter param\[.* is a Python function.*in a dict"):
        encoded(holding(1, param=value))


def test_values_without_end_are_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested too deeply"):
        encoded(endless)


def test_every_class_exists_and_is_its_own():
    for name in set(value_tree.CLASSES) - {"Holder", "Pair", "CallablePair"}:
        assert value_tree.class_of(name).__name__ == name


def test_nodes_in_words():
    text, _ = encoded(
        [
            holding(1, param=Pair("a", Pair(0.5))),
            np.int64(3),
            (1,),
            {"a": np.zeros((2, 3)), "b": a_call},
        ]
    )
    assert in_words(json.loads(text)) == [
        "Holder(other=1, param=Pair(first='a', second=Pair(first=0.5, second=2)))",
        3,
        (1,),
        {"a": "array of shape (2, 3)", "b": "function b"},
    ]


def test_arrays_of_a_tree():
    value = {"b": sparse.csr_matrix((4, 5)), "a": [Pair(np.zeros(2))], "c": 1}
    text, _ = encoded(Pair(np.zeros((2, 3)), value))
    nodes = json.loads(text)["fields"]
    assert array_shapes(nodes) == {"first": (2, 3)}
    assert holds_arrays(nodes["second"])
    assert [holds_arrays(item) for _, item in nodes["second"]["items"]] == [True, True, False]
