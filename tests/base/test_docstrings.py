"""Shared docstring sections: every parameter described, in the order of the signature."""

import inspect
import re

import pytest

import pursuit
from pursuit.base.docstrings import with_shared_sections

ESTIMATORS = [
    pursuit.KernelMatchingPursuitClassifier,
    pursuit.KernelMatchingPursuitClassifierCV,
    pursuit.KernelMatchingPursuitRegressor,
    pursuit.KernelMatchingPursuitRegressorCV,
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters_are_described_in_order(estimator):
    names = list(inspect.signature(estimator.__init__).parameters)[1:]
    section = estimator.__doc__.split("Attributes\n")[0]
    described = re.findall(r"^    (\w+) : ", section, flags=re.MULTILINE)
    assert described == names
    assert "{shared}" not in estimator.__doc__


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
