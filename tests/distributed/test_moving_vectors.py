"""Vectors that move over blocks: the energy, its slopes and the fit are those of all rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward
from sklearn.base import clone

from pursuit import SparseKernelClassifier, SparseKernelClassifierCV, SparseKernelRegressor
from pursuit.kernels import RBF, Laplacian
from pursuit.losses import LOSSES
from pursuit.moving_vectors.setting import Setting
from pursuit.optimize.coefficients import Spread
from pursuit.optimize.kernel_blocks import Place, Table
from pursuit.optimize.variable_projection import Problem

dask = pytest.importorskip("dask", reason="needs the dask extra")
da = pytest.importorskip("dask.array")

from pursuit.distributed import moving_vectors  # noqa: E402  estimators take collections
from pursuit.distributed.moving_vectors import BlockProblem, Kept, Searched, thinned  # noqa: E402
from pursuit.distributed.parts import parts_of  # noqa: E402
from pursuit.greedy.statistics import every_row  # noqa: E402

P = awkward(120)
USED = P.weights > 0


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="sync"):
        yield


def arrays(size, *tables):
    return tuple(da.from_array(table, chunks=(size, *table.shape[1:])) for table in tables)


DIAGONAL, PLANE = np.array([1.0, 0.5, 2.0, 1.0]), np.eye(4)[:, :2]
# In a plane single precision does not tell seven vectors apart.
ENERGIES = [(np.float64, A) for A in (None, DIAGONAL, PLANE)] + [(np.float32, DIAGONAL)]


@pytest.mark.parametrize("dtype, A", ENERGIES, ids=["plain", "diagonal", "plane", "float32"])
@pytest.mark.parametrize("kernel", [RBF(0.3), Laplacian(0.2)], ids=str)
def test_energy_and_slopes(dtype, kernel, A):
    centre, C = P.X.mean(axis=0), 3.0
    Y, w = P.Y[USED], C * P.weights[USED]
    problem = Problem(Table(P.X[USED], centre, dtype), Y, w, LOSSES["squared_error"])
    reader = SparseKernelRegressor()
    reader.n_features_in_ = 4
    setting = Setting(kernel, centre, None, A)
    mean = np.average(Y, axis=0, weights=w)
    spread = Spread(w.sum(), mean, float(w @ ((Y - mean) ** 2).sum(axis=1)))
    blocks = parts_of(*arrays(17, P.X, P.Y, P.weights)).blocks
    found = BlockProblem(blocks, Searched(reader, setting, np.dtype(dtype), C), spread)
    Z = P.X[:7] - centre
    place = Place(kernel, Z if A is None else Z * A if A.ndim == 1 else Z @ A, A)
    left = found.step(place, learn_gamma=True)
    right = problem.step(place, learn_gamma=True)
    near = {"rtol": 1e-9} if dtype is np.float64 else {"rtol": 2e-3}
    assert_allclose(left.value, right.value, **near)
    for name in ("Z", "log_gamma", "A"):
        expected = getattr(right, name)
        if expected is not None:
            scale = np.abs(expected).max()
            assert_allclose(getattr(left, name) / scale, expected / scale, atol=near["rtol"])
    exact = found.step(place, left, exact=True)
    assert exact.coefficients.exact
    assert_allclose(exact.coefficients.b, problem.step(place, exact=True).coefficients.b, **near)


CASES = {
    "classes": (SparseKernelClassifier(class_weight="balanced"), P.labels),
    "gamma": (SparseKernelRegressor(learn_gamma=True), P.Y),
    "map": (SparseKernelRegressor(metric=2, gamma=0.1), P.Y[:, 0]),
    "laplacian": (SparseKernelRegressor(kernel="laplacian", gamma=0.1), P.Y[:, 0]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fit_that_goes_on_is_that_in_memory(case):
    """The sample holds all rows, so that both go on from the same vectors."""
    model, y = CASES[case]
    model = clone(model).set_params(n_components=5, init=P.X[:5], max_iter=4, tol=0.0)
    found = clone(model).fit(*arrays(50, P.X, y, P.weights))
    expected = model.fit(P.X, y, P.weights).set_params(warm_start=True).fit(P.X, y, P.weights)
    assert found.n_iter_ == 4 and len(found.energy_path_) == 5
    assert_allclose(found.energy_path_, expected.energy_path_, rtol=1e-5)
    assert_allclose(found.energy_, expected.energy_, rtol=1e-5)
    assert_allclose(
        found.expansion_.atoms.centres, expected.expansion_.atoms.centres, rtol=1e-3, atol=1e-3
    )
    if case == "classes":
        assert_array_equal(found.predict(P.X), expected.predict(P.X))
    else:
        assert_allclose(found.predict(P.X), expected.predict(P.X), rtol=1e-4)
    assert_array_equal(found.nearest_rows_, expected.nearest_rows_)


@pytest.mark.parametrize("size", [120, 31])
def test_blocks_change_nothing(size, monkeypatch):
    monkeypatch.setattr(moving_vectors, "SAMPLE_ROWS", 60)
    model = SparseKernelClassifier(4, gamma=0.2, max_iter=3, random_state=0)
    found = clone(model).fit(*arrays(size, P.X, P.labels, P.weights))
    expected = clone(model).fit(*arrays(40, P.X, P.labels, P.weights))
    assert_allclose(found.support_vectors_, expected.support_vectors_, rtol=1e-5)
    assert_allclose(found.predict_proba(P.X), expected.predict_proba(P.X), atol=1e-6)
    assert type(found.dual_coef_) is np.ndarray and found.n_features_in_ == 4


def test_the_sample_holds_rows_of_every_class():
    from pursuit._validation import Samples, signed_targets

    codes = np.zeros(500, dtype=int)
    codes[3], codes[7:9] = 2, 1
    X = np.random.default_rng(0).normal(size=(500, 2))
    rows = every_row(Samples(X, signed_targets(codes, 3), np.ones(500)), codes)
    found = thinned(rows, Kept(50, 20))
    assert (found.Y[:, 1:] > 0).sum(axis=0).tolist() == [2, 1]
    assert 50 <= len(found.keys) <= 53


@pytest.mark.parametrize(
    "model, match",
    [
        (SparseKernelClassifier(loss="log_loss"), "loss must be"),
        (SparseKernelClassifier(early_stopping=True), "early_stopping"),
        (SparseKernelClassifier(max_bytes=1000), "max_bytes"),
        (SparseKernelClassifier(precision="float16"), "precision"),
        (SparseKernelClassifierCV(), "in memory"),
    ],
    ids=str,
)
def test_what_blocks_cannot_tell_is_refused(model, match):
    with pytest.raises(ValueError, match=match):
        model.fit(*arrays(40, P.X, P.labels))
