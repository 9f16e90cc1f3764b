"""Shared docstring sections: every parameter described, in the order of the signature."""

import inspect
import re

import pytest
from sklearn.base import BaseEstimator

import pursuit
from pursuit.base.docstrings import with_shared_sections

ESTIMATORS = [
    pursuit.KernelMatchingPursuitClassifier,
    pursuit.KernelMatchingPursuitClassifierCV,
    pursuit.KernelMatchingPursuitRegressor,
    pursuit.KernelMatchingPursuitRegressorCV,
]


PUBLIC = [
    value
    for value in (getattr(pursuit, name) for name in pursuit.__all__)
    if inspect.isclass(value) and issubclass(value, BaseEstimator)
]


@pytest.mark.parametrize("estimator", PUBLIC)
def test_each_parameter_has_one_entry_in_the_order_of_the_signature(estimator):
    names = list(inspect.signature(estimator.__init__).parameters)[1:]
    section = estimator.__doc__.split("Parameters\n")[1].split("Attributes\n")[0]
    heads = re.findall(r"^    (\w+(?:, \w+)*) : ", section, flags=re.MULTILINE)
    assert [name for head in heads for name in head.split(", ")] == names
    assert not re.search(r"\{\w+\}$", estimator.__doc__, flags=re.MULTILINE)


@pytest.mark.parametrize("estimator", PUBLIC)
def test_public_methods_are_documented(estimator):
    names = [name for name in dir(estimator) if not name.startswith("_")]
    bare = [name for name in names if not inspect.getdoc(getattr(estimator, name))]
    assert not [name for name in bare if inspect.isroutine(getattr(estimator, name))]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fitted_attributes_are_described(estimator):
    X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]] * 2
    model = estimator(2).fit(X, [0, 1, 0, 1, 0, 1] * 2)
    section = estimator.__doc__.split("Attributes\n")[1]
    public = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    # How the temperature is stored along the path is of no use to a reader.
    public -= {"inverse_temperature_path_"}
    assert {name for name in public if name not in section} == set()


def test_undescribed_parameter_is_an_error():
    class Estimator:
        """{shared}"""

        def __init__(self, unheard_of=1):
            pass

    with pytest.raises(KeyError, match="unheard_of"):
        with_shared_sections(Estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_errors_about_a_call_name_the_public_class(estimator):
    for method in ("fit", "predict", "truncate", "staged_predict"):
        with pytest.raises(TypeError, match=rf"{estimator.__name__}\.{method}\(\)"):
            getattr(estimator(), method)(unheard_of=1)
    with pytest.raises(TypeError, match=rf"{estimator.__name__}\.__init__\(\)"):
        estimator(unheard_of=1)
