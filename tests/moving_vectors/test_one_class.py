import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

import pursuit
from pursuit import SparseOneClass


def test_outliers_score_low(rng, tmp_path):
    inside = rng.normal(size=(300, 2)) + 100.0
    outside = rng.uniform(-8, 8, size=(100, 2)) + 100.0
    model = SparseOneClass(8, random_state=0).fit(inside)
    scores = model.score_samples(np.vstack([inside, outside]))
    assert roc_auc_score(np.repeat([1, 0], [300, 100]), scores) > 0.85
    assert (model.predict(inside) == -1).mean() == pytest.approx(0.1, abs=0.01)
    assert_allclose(model.decision_function(inside), scores[:300] - model.offset_)
    assert (np.diff(model.energy_path_) <= 1e-9 * model.energy_path_[0]).all()
    pursuit.save(model, tmp_path / "model")
    assert_array_equal(pursuit.load(tmp_path / "model").predict(outside), model.predict(outside))


def test_weights_count_rows(rng):
    rows = rng.normal(size=(40, 2))
    weights = rng.integers(0, 3, size=40)
    options = {"max_iter": 0, "n_components": 40, "C": 3.0}
    weighted = SparseOneClass(**options).fit(rows, sample_weight=weights)
    repeated = SparseOneClass(**options | {"n_components": int(weights.sum())})
    repeated.fit(np.repeat(rows, weights, axis=0))
    assert_allclose(weighted.score_samples(rows), repeated.score_samples(rows), atol=1e-3)


def test_errors():
    with pytest.raises(ValueError, match="contamination must be"):
        SparseOneClass(contamination=0.6).fit(np.eye(3))
