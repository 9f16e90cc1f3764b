"""Arrays of other libraries: everything follows X, and the numbers are those of NumPy."""

import copy
import importlib
import pickle
from functools import partial

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC
from sklearn.utils import estimator_checks, get_tags

import pursuit
from pursuit import kernels
from pursuit._arrays import alike, computing_beside, namespace_of, to_numpy
from pursuit.base.arrays import FollowsX
from pursuit.density import gaussian_mixture
from pursuit.geometry.nearest import NearestRows
from pursuit.greedy import deflation, make_pursuit
from pursuit.greedy.device_deflation import deflation_of
from pursuit.optimize import variable_projection

PLACES = [("array_api_strict", "device1"), ("torch", "cpu")]
TOLERANCE = {"float64": 1e-6, "float32": 1e-3}

KERNELS = [
    kernels.Linear(),
    kernels.Polynomial(0.5, 3, 1.0),
    kernels.Polynomial(0.5, 2.5, 1.0),
    kernels.RBF(0.3),
    kernels.RBF([1.0, 0.2, 0.3, 0.4, 0.5]),
    kernels.Mahalanobis(np.eye(5) + 0.1),
    kernels.Laplacian(0.3),
    kernels.Laplacian([1.0, 0.2, 0.3, 0.4, 0.5]),
    kernels.ChiSquared(0.4),
    kernels.Sigmoid(0.2, 0.1),
    kernels.Cosine(),
    kernels.CosinePolynomial(3, 1.0),
    kernels.FunctionKernel(lambda X, Z: X @ Z.T),
]

ESTIMATORS = [
    pursuit.KernelMatchingPursuitClassifier(6),
    pursuit.KernelMatchingPursuitClassifier(4, loss="log_loss", early_stopping=True),
    pursuit.KernelMatchingPursuitClassifierCV(3, cv=2, gammas=[0.1], multi_class="ovr"),
    pursuit.KernelMatchingPursuitRegressor(6, alpha=0.1, penalty="norm", always=[0]),
    pursuit.KernelMatchingPursuitRegressor(4, fitting="basic", fit_intercept=False),
    pursuit.KernelMatchingPursuitRegressorCV(3, cv=2, gammas=[0.1]),
    pursuit.SparseKernelClassifier(4, max_iter=2, random_state=0),
    pursuit.SparseKernelRegressor(4, max_iter=2, metric=2, random_state=0),
    pursuit.SparseOneClass(4, max_iter=2, random_state=0),
    pursuit.SparseKernelPCA(),
    pursuit.SparseKernelPCA(5, center=True, fit_inverse_transform=True),
    pursuit.GreedyNystroem(n_components=5, selection="supervised"),
    pursuit.KernelPCANovelty(4),
    pursuit.HyperplaneKNeighborsClassifier(4),
    pursuit.HyperplaneKNeighborsClassifier(4, tangents=lambda X: np.sin(X)[:, None]),
    pursuit.HyperplaneKNeighborsRegressor(4),
    pursuit.ConvexKNeighborsClassifier(3),
    pursuit.NearestFeatureLineClassifier(4),
    pursuit.ParzenDensity(),
    pursuit.ManifoldParzenDensity(3),
    pursuit.ManifoldParzenDensity(3, tangents=lambda X: np.sin(X)[:, None]),
    pursuit.ManifoldParzenDensityCV(3, n_components=1),
]
# Their fits are those of NumPy, and take longer.
OTHERS = [
    pursuit.SparseKernelClassifierCV(2, max_iter=1, cv=2, gammas=[0.1], random_state=0),
    pursuit.SparseKernelRegressorCV(2, max_iter=1, cv=2, gammas=[0.1], random_state=0),
    pursuit.KernelCentroidClassifier(),
    pursuit.ConvexNetworkClassifier(max_iter=3, tol=0.1),
    pursuit.RelevanceVectorClassifier(3),
    pursuit.RelevanceVectorRegressor(3),
    pursuit.SparseLargeMarginClassifier(3, max_iter=2, tol=0.1, random_state=0),
    pursuit.ReducedSetClassifier(2),
    pursuit.ReducedSupportVectorClassifier(2, random_state=0),
    pursuit.CompressedClassifier(SVC(), 2),
    pursuit.CompressedRegressor(KernelRidge(kernel="rbf"), 2),
    pursuit.CompressedOutlierDetector(n_components=2),
]


@pytest.fixture(autouse=True)
def dispatching(monkeypatch):
    """What scikit-learn asks for."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield


def empty(name, device):
    """An empty array of a library on one of its devices."""
    xp = pytest.importorskip(name)
    return xp.asarray(np.empty(0), device=xp.Device(device) if hasattr(xp, "Device") else device)


@pytest.fixture
def place():
    """Where most tests put their arrays."""
    return empty(*PLACES[0])


@pytest.fixture(params=PLACES, ids=lambda place: place[0])
def anywhere(request):
    """One place after the other, for the tests of what all others rest on."""
    return empty(*request.param)


def check(name, **where):
    """One of scikit-learn's checks; skipped where its version has none of that name."""
    found = getattr(estimator_checks, name, None)
    if found is None:
        pytest.skip(f"scikit-learn {sklearn.__version__} has no {name}")
    return partial(found, **where)


def checked(estimator, found):
    """Run a check of scikit-learn outside of dispatching, which it sets itself."""
    with sklearn.config_context(array_api_dispatch=False):
        found(type(estimator).__name__, estimator)


@pytest.fixture
def double():
    """Double precision in torch, in whose default type scikit-learn's accuracy takes a mean."""
    torch = pytest.importorskip("torch")
    torch.set_default_dtype(torch.float64)
    yield torch
    torch.set_default_dtype(torch.float32)


def named(estimator):
    """The name of its class."""
    return type(estimator).__name__


some = pytest.mark.parametrize("estimator", ESTIMATORS[::4], ids=named)
each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
every = pytest.mark.parametrize("estimator", ESTIMATORS + OTHERS, ids=named)
short = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@every
@short
def test_scikit_learns_check_in_torch(estimator, double):
    checked(estimator, check("check_array_api_input_and_values", array_namespace="torch"))


@each
@short
def test_scikit_learns_check_on_another_device(estimator):
    pytest.importorskip("array_api_strict")
    where = {"array_namespace": "array_api_strict", "device_name": "device1"}
    checked(estimator, check("check_array_api_input_and_values", **where))


@some
@short
def test_scikit_learns_check_in_single_precision(estimator):
    pytest.importorskip("torch")
    where = {"array_namespace": "torch", "device_name": "cpu", "dtype_name": "float32"}
    checked(estimator, check("check_array_api_input", **where))


@some
@short
def test_scikit_learns_check_of_targets_from_elsewhere(estimator):
    pytest.importorskip("torch")
    pytest.importorskip("array_api_strict")
    found = check("check_array_api_mixed_inputs")
    place = importlib.import_module("sklearn.utils._array_api").NamespaceAndDevice
    here, there = place("torch", "cpu"), place("array_api_strict", "device1")
    checked(estimator, partial(found, X_ns_and_device=here, other_ns_and_device=there))


@each
@short
def test_scikit_learns_check_of_queries_from_elsewhere(estimator):
    pytest.importorskip("array_api_strict")
    found = check("check_array_api_same_namespace", array_namespace="array_api_strict")
    checked(estimator, found)


def test_all_classes_with_the_tag_are_checked():
    public = map(partial(getattr, pursuit), pursuit.__all__)
    tagged = {cls for cls in public if isinstance(cls, type) and issubclass(cls, FollowsX)}
    tagged -= {pursuit.OnlineKernelClassifier, pursuit.OnlineKernelRegressor}
    assert not get_tags(pursuit.OnlineKernelRegressor()).array_api_support
    assert {type(estimator) for estimator in ESTIMATORS + OTHERS} == tagged


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_kernels(kernel, dtype, anywhere, rng):
    X = rng.random((40, 5)).astype(dtype)
    Z = np.vstack([X[:7], X[7:12] + 3.0]).astype(dtype)
    expected = kernel(X, Z)
    found = kernel(alike(X, anywhere), alike(Z, anywhere))
    assert namespace_of(found) is namespace_of(anywhere)
    assert_allclose(to_numpy(found), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] / 100)
    assert to_numpy(found).dtype == expected.dtype


def test_equal_rows_and_far_clusters_keep_their_distances(place):
    X = np.array([[-1e8], [1e8], [1e8 + 1.0]])
    found = kernels.RBF(1.0)(alike(X, place), alike(X, place))
    assert_allclose(to_numpy(found), kernels.RBF(1.0)(X, X), rtol=1e-12)


def digits(n=100):
    """Some digits."""
    X, y = load_digits(return_X_y=True)
    return X[:n], y[:n]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_classifier_at_every_step(place, dtype):
    X, y = digits()
    X = X.astype(dtype)
    model = pursuit.KernelMatchingPursuitClassifier(12, early_stopping="loo")
    theirs = pursuit.KernelMatchingPursuitClassifier(**model.get_params())
    theirs.fit(alike(X, place), alike(y, place))
    model.fit(X, y)
    rows, close = alike(X, place), {"rtol": 0, "atol": TOLERANCE[dtype]}
    assert_array_equal(to_numpy(theirs.support_), model.support_)
    for name in ("decision_function", "predict_proba", "predict_log_proba", "predict"):
        found = getattr(theirs, name)(rows)
        assert namespace_of(found) is namespace_of(place)
        assert_allclose(to_numpy(found), getattr(model, name)(X), **close)
    stages = zip(
        theirs.staged_decision_function(rows), model.staged_decision_function(X), strict=True
    )
    for found, expected in stages:
        assert_allclose(to_numpy(found), expected, **close)
    for found, expected in zip(theirs.staged_predict(rows), model.staged_predict(X), strict=True):
        assert_array_equal(to_numpy(found), expected)
    short = theirs.truncate(5)
    assert_allclose(
        to_numpy(short.decision_function(rows)), model.truncate(5).decision_function(X), **close
    )
    assert_allclose(
        to_numpy(theirs.explain(rows[:4, :]).contributions), model.explain(X[:4]).contributions,
        rtol=TOLERANCE[dtype],
    )  # fmt: skip


@pytest.mark.parametrize(
    "dictionary", [[None, kernels.Linear(), kernels.Laplacian(0.1)], pursuit.OrientedGaussians()]
)
def test_dictionaries(place, dictionary, rng):
    X = rng.normal(size=(60, 3))
    y = np.sin(X[:, 0]) + X[:, 1]
    model = pursuit.KernelMatchingPursuitRegressor(10, dictionary=dictionary).fit(X, y)
    rows = alike(X, place)
    found = pursuit.to_device_of(model, rows).predict(rows)
    assert_allclose(to_numpy(found), model.predict(X), rtol=1e-9)


def test_a_regressor_with_a_link_and_intervals(place):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:90], y[:90]
    rows = alike(X, place)
    model = pursuit.KernelMatchingPursuitRegressor(6, loss="poisson").fit(X, y)
    found = pursuit.to_device_of(model, rows).predict(rows)
    assert_allclose(to_numpy(found), model.predict(X), rtol=1e-9)
    theirs = pursuit.KernelMatchingPursuitRegressor(6).fit(rows, alike(y, place))
    model = pursuit.KernelMatchingPursuitRegressor(6).fit(X, y)
    assert abs(theirs.score(rows, alike(y, place)) - model.score(X, y)) < 1e-6
    for side, expected in zip(
        theirs.predict_interval(rows), model.predict_interval(X), strict=True
    ):
        assert_allclose(to_numpy(side), expected, rtol=1e-6)
    theirs.calibrate_interval(rows, alike(y, place))
    model.calibrate_interval(X, y)
    assert_allclose(to_numpy(theirs.error_quantiles_), model.error_quantiles_, rtol=1e-6)
    assert namespace_of(theirs.error_quantiles_) is namespace_of(place)


def test_labels_may_be_text(place):
    X, y = digits()
    names = np.array([f"digit {k}" for k in y])
    model = pursuit.KernelMatchingPursuitClassifier(8).fit(alike(X, place), names)
    expected = pursuit.KernelMatchingPursuitClassifier(8).fit(X, names).predict(X)
    assert_array_equal(model.predict(alike(X, place)), expected)


def test_models_move(anywhere):
    X, y = digits()
    X = X[:, X.std(axis=0) > 0]
    rows = alike(X, anywhere)
    model = make_pipeline(MinMaxScaler(), pursuit.KernelMatchingPursuitClassifier(8))
    model.fit(rows, alike(y, anywhere))
    back = pursuit.to_numpy(model)
    again = pursuit.to_device_of(back, rows)
    assert_array_equal(back.predict(X), to_numpy(model.predict(rows)))
    assert_array_equal(back.predict(X), to_numpy(again.predict(rows)))
    fresh = make_pipeline(MinMaxScaler(), pursuit.KernelMatchingPursuitClassifier(8)).fit(X, y)
    assert_array_equal(back[-1].support_, fresh[-1].support_)
    assert vars(back[-1]).keys() == vars(copy.copy(fresh[-1])).keys()


def test_a_saved_or_pickled_model_is_the_same(anywhere, tmp_path):
    X, y = digits()
    rows = alike(X, anywhere)
    model = pursuit.KernelMatchingPursuitClassifier(8).fit(rows, alike(y, anywhere))
    pursuit.save(model, tmp_path / "model.pursuit")
    expected = to_numpy(model.decision_function(rows))
    # Products of another library may be summed in another order.
    loaded = pursuit.load(tmp_path / "model.pursuit")
    assert_allclose(loaded.decision_function(X), expected, rtol=0, atol=1e-13)
    if hasattr(anywhere, "numpy"):  # those of array-api-strict cannot be pickled
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(to_numpy(again.decision_function(rows)), expected)


def test_a_stream_of_device_arrays(place):
    X, y = digits(200)
    model, theirs = (pursuit.KernelMatchingPursuitClassifier(6) for _ in range(2))
    for part in (slice(0, 100), slice(100, 200)):
        model.partial_fit(X[part], y[part], classes=np.arange(10))
        theirs.partial_fit(alike(X[part], place), alike(y[part], place), classes=np.arange(10))
    assert_allclose(
        to_numpy(theirs.decision_function(alike(X, place))), model.decision_function(X), atol=1e-9
    )


def test_without_dispatch_device_arrays_are_refused_by_a_model_of_numpy(place):
    X, y = digits()
    model = pursuit.KernelMatchingPursuitClassifier(6).fit(alike(X, place), alike(y, place))
    with sklearn.config_context(array_api_dispatch=False):
        with pytest.raises(ValueError, match="same namespace.*array_api_dispatch=True"):
            model.predict(alike(X, place))
    model.fit(X, y)
    assert isinstance(model.predict(X), np.ndarray)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fitting": "backfit", "alpha": 0.5},
        {"fitting": "basic", "fit_intercept": False},
        {"multi_class": "ovr", "n_components": 15},
        {"dictionary": [kernels.RBF(1e-3), kernels.Linear()]},
    ],
    ids=str,
)
def test_a_whole_path_stays_on_the_device(anywhere, monkeypatch, options):
    X, y = digits()
    X, y = np.vstack([X, X[:5]]), np.append(y, y[:5])  # copies
    weights = 1.0 + np.arange(105) % 3
    model = pursuit.KernelMatchingPursuitClassifier(**{"n_components": 20} | options)
    theirs = clone(model)
    model.fit(X, y, weights)
    monkeypatch.setattr(make_pursuit, "gather", None)  # of the l x M matrix on the host
    theirs.fit(alike(X, anywhere), alike(y, anywhere), alike(weights, anywhere))
    assert_array_equal(to_numpy(theirs.support_), model.support_)
    assert_allclose(to_numpy(theirs.train_loss_path_), model.train_loss_path_, rtol=1e-8)
    assert_allclose(to_numpy(theirs.dual_coef_), model.dual_coef_, rtol=1e-6, atol=1e-8)


def test_a_path_on_a_device_ends_where_it_does_on_the_host(place, rng):
    X = np.repeat(rng.normal(size=(4, 2)), 5, axis=0)
    for y in (rng.normal(size=20), X[:, 0]):
        for options in ({}, {"alpha": 1e-6}):
            model = pursuit.KernelMatchingPursuitRegressor(10, kernel="linear", **options)
            theirs = clone(model)
            with pytest.warns(ConvergenceWarning, match="the path ended after"):
                model.fit(X, y)
            with pytest.warns(ConvergenceWarning, match="the path ended after"):
                theirs.fit(alike(X, place), y)
            assert theirs.stop_reason_ == model.stop_reason_
            assert theirs.n_iter_ == model.n_iter_


def test_a_value_that_is_not_finite_is_named(place):
    X = np.array([[1.0], [2.0], [1e100]])
    model = pursuit.KernelMatchingPursuitRegressor(2, kernel="poly", degree=4, gamma=1.0)
    with pytest.raises(ValueError, match="kernel"), np.errstate(all="ignore"):
        model.fit(alike(X, place), np.arange(3.0))


def test_neighbors_are_sought_on_the_device(place, rng, monkeypatch):
    X = rng.integers(0, 3, size=(60, 12)).astype(np.float32)  # equal distances
    X = np.vstack([X, X[:9], 2.0 * X[:9]])
    index, queries, own = NearestRows(X), X + 0.0, np.arange(len(X))
    expected = index.search(queries, 5), index.search(queries, 5, own)
    monkeypatch.setattr(NearestRows, "_table", None)  # the products on the host
    with computing_beside(place):
        found = index.search(queries, 5), index.search(queries, 5, own)
    assert_array_equal(found, expected)


def test_windows_are_summed_on_the_device(place, monkeypatch):
    X, _ = digits(120)
    X = np.vstack([X, X[:4]])
    for options in ({"bandwidth": "loo"}, {"bandwidth": 0.5, "covariance": "diagonal"}):
        model = pursuit.ParzenDensity(**options).fit(X[:, 18:22])
        expected = model.score_samples(X[:, 18:22] + 0.5), model.leave_one_out_score()
        with monkeypatch.context() as patch:
            patch.setattr(gaussian_mixture, "_gather", None)  # the sums on the host
            theirs = pursuit.ParzenDensity(**options).fit(alike(X[:, 18:22], place))
            found = theirs.score_samples(alike(X[:, 18:22] + 0.5, place))
            assert_allclose(theirs.leave_one_out_score(), expected[1], rtol=1e-9)
        assert_allclose(to_numpy(found), expected[0], rtol=1e-9)
        assert abs(theirs.bandwidth_ - model.bandwidth_) < 1e-6


@pytest.mark.parametrize(
    "options",
    [
        {"n_candidates": 20, "center": True},
        {"selection": "residual", "kernel": "laplacian"},
        {"selection": "rpcholesky", "kernel": "precomputed"},
        {"n_components": "bound"},
        {},
    ],
    ids=str,
)
def test_points_of_a_span_are_chosen_on_the_device(place, monkeypatch, options):
    X, _ = digits(80)
    X = np.vstack([X, X[:3]])
    if options.get("kernel") == "precomputed":
        X = kernels.RBF(1e-3)(X, X)
    model = pursuit.SparseKernelPCA(**{"n_components": 25, "random_state": 0} | options)
    theirs = clone(model)
    model.fit(X)
    monkeypatch.setattr(deflation.Deflation, "_functions", None)  # kernel values on the host
    theirs.fit(alike(X, place))
    assert_array_equal(to_numpy(theirs.support_), model.support_)
    assert_allclose(to_numpy(theirs.residual_path_), model.residual_path_, rtol=1e-6, atol=1e-12)
    found = to_numpy(theirs.transform(alike(X[:9], place)))
    assert_allclose(found, model.transform(X[:9]), atol=1e-6)


def test_a_kernel_matrix_on_the_device_is_kept_or_not(place, rng):
    X, vector = rng.normal(size=(40, 3)), rng.normal(size=40)
    K = kernels.RBF(0.5)(X, X)
    with computing_beside(place):
        state = deflation_of(kernels.RBF(0.5), X, np.ones(40))
    for memory in (1000, 0.01):  # 1280 bytes a row and a quarter of 10 kB
        with sklearn.config_context(working_memory=memory):
            matrix = state.kernel_matrix()
            assert_allclose(matrix.times(vector), K @ vector, rtol=1e-10)
            assert_allclose(matrix.squares(np.ones(40)), (K**2).sum(axis=1), rtol=1e-10)


@pytest.mark.parametrize(
    "options", [{}, {"learn_gamma": True, "metric": 2}, {"metric": "diagonal"}], ids=str
)
def test_vectors_move_by_sums_from_the_device(place, monkeypatch, rng, options):
    X = rng.normal(size=(50, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])
    weights = rng.random(50) + 0.5
    model = pursuit.SparseKernelRegressor(5, max_iter=4, random_state=0, **options)
    theirs = clone(model)
    model.fit(X, Y, weights)
    monkeypatch.setattr(variable_projection, "BlockValues", None)  # kernel values on the host
    theirs.fit(alike(X, place), Y, weights)
    assert_allclose(theirs.energy_, model.energy_, rtol=1e-6)
    assert_allclose(to_numpy(theirs.support_vectors_), model.support_vectors_, atol=1e-4)
