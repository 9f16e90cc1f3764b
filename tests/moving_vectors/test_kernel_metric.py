import numpy as np
import pytest
from numpy.testing import assert_allclose

import pursuit
from pursuit import KernelMetric

ROWS = np.random.default_rng(0).normal(size=(200, 4))
NUMBERS = np.sin(3.0 * ROWS[:, 1])


@pytest.mark.parametrize("metric", ["diagonal", "full", 2])
@pytest.mark.parametrize("y", [NUMBERS, NUMBERS > 0], ids=["numbers", "labels"])
def test_the_feature_that_matters_is_stretched(metric, y):
    options = {"metric": metric, "n_components": 20, "n_rounds": 2, "random_state": 0}
    model = KernelMetric(**options).fit(ROWS, y)
    # A map of rank 2 starts at principal axes, which say nothing of the feature here.
    assert metric == 2 or model.feature_relevances_.argmax() == 1
    assert_allclose(model.transform(ROWS), ROWS @ model.metric_)
    assert len(model.get_feature_names_out()) == model.metric_.shape[1]


def test_saved_and_loaded_and_as_a_frame(tmp_path):
    model = KernelMetric(n_components=10, n_rounds=1, random_state=0).fit(ROWS, NUMBERS)
    pursuit.save(model, tmp_path / "model")
    assert_allclose(pursuit.load(tmp_path / "model").transform(ROWS), model.transform(ROWS))
    frame = model.set_output(transform="pandas").transform(ROWS)
    assert frame.columns.tolist() == [f"kernelmetric{i}" for i in range(4)]


def test_errors():
    with pytest.raises(ValueError, match="metric must be one of"):
        KernelMetric(metric="round").fit(ROWS, NUMBERS)
    with pytest.raises(ValueError, match="needs the rbf or the laplacian"):
        KernelMetric("linear").fit(ROWS, NUMBERS)
