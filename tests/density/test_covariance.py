"""Windows of one covariance: scipy's, the definition, and what has no answer."""

import warnings
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference_density import kernel_regression, parzen
from scipy.stats import gaussian_kde, multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import pursuit
from pursuit import DensityClassifier, NadarayaWatsonRegressor, ParzenDensity
from pursuit.density.covariance import Whitening, whitening_of

MIXING = np.array([[1.0, 50.0, 0.02], [0.0, 20.0, 0.03], [0.3, 0.0, 0.01]])


@pytest.fixture
def X(rng):
    """Correlated features of very different size, far from zero."""
    return rng.normal(size=(80, 3)) @ MIXING + [0.0, 1e4, 5.0]


def covariances(X, weights=None):
    S = np.cov(X.T, fweights=weights)
    return {"diagonal": np.diag(np.diag(S)), "full": S}


@pytest.mark.parametrize("rule", ["scott", "silverman"])
def test_the_full_covariance_is_that_of_scipy(rule, X):
    theirs, ours = gaussian_kde(X.T, bw_method=rule), ParzenDensity(rule, covariance="full").fit(X)
    assert_allclose(ours.covariance_, theirs.covariance, rtol=1e-10)
    assert_allclose(ours.score_samples(X + 0.01), theirs.logpdf(X.T + 0.01), rtol=1e-9)
    assert_allclose(ours.bandwidth_, theirs.factor, rtol=1e-14)


@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_the_definition_with_weights(form, X, rng):
    weights = rng.integers(1, 4, size=80)
    S = covariances(X, weights)[form]
    density = ParzenDensity(0.4, covariance=form).fit(X, sample_weight=weights)
    queries = X[:7] + 0.01
    expected = [
        np.log(weights / weights.sum() @ multivariate_normal(x, 0.16 * S).pdf(X)) for x in queries
    ]
    assert_allclose(density.score_samples(queries), expected, rtol=1e-9)
    repeated = clone(density).fit(np.repeat(X, weights, axis=0))
    assert_allclose(repeated.score_samples(queries), expected, rtol=1e-9)
    given = ParzenDensity(0.4, covariance=S).fit(X, sample_weight=weights)
    assert_allclose(given.score_samples(queries), expected, rtol=1e-9)
    assert_allclose(given.covariance_, 0.16 * S, rtol=1e-12)


def test_a_given_diagonal_and_spheres(X):
    variances = np.array([0.5, 100.0, 1e-3])
    one = ParzenDensity(1.0, covariance=variances).fit(X)
    two = ParzenDensity(1.0, covariance=np.diag(variances)).fit(X)
    assert_allclose(one.score_samples(X), two.score_samples(X), rtol=1e-10)
    scaled = X / np.sqrt(variances)
    expected = parzen(scaled, np.ones(80), 1.0, scaled) - 0.5 * np.log(variances).sum()
    assert_allclose(one.score_samples(X), expected, rtol=1e-9)
    spheres, plain = ParzenDensity(2.0, covariance=np.ones(3)).fit(X), ParzenDensity(2.0).fit(X)
    assert_allclose(spheres.score_samples(X), plain.score_samples(X), rtol=1e-9)
    assert plain.covariance_ == 4.0 and plain.whitening_ is None


@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_units_of_the_features_do_not_matter(form, X):
    units = np.array([1e-6, 1.0, 1e5])
    for bandwidth in ("loo", "scott"):
        one = ParzenDensity(bandwidth, covariance=form).fit(X)
        other = clone(one).fit(X * units)
        assert_allclose(other.bandwidth_, one.bandwidth_, rtol=1e-5)
        expected = one.score_samples(X) - np.log(units).sum()
        assert_allclose(other.score_samples(X * units), expected, rtol=1e-4)


@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_rows_left_out(form, X):
    density = ParzenDensity("loo", covariance=form).fit(X[:30])
    S = density.covariance_
    S = np.diag(S) if S.ndim == 1 else S
    values = [multivariate_normal(x, S).pdf(np.delete(X[:30], i, 0)) for i, x in enumerate(X[:30])]
    expected = np.mean([np.log(each.mean()) for each in values])
    assert_allclose(density.leave_one_out_score(), expected, rtol=1e-8)
    for factor in (0.9, 1.1):
        other = ParzenDensity(factor * density.bandwidth_, covariance=form).fit(X[:30])
        assert other.leave_one_out_score() < density.leave_one_out_score()


@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_samples_have_the_covariance_of_the_density(form, X):
    density = ParzenDensity(0.5, covariance=form).fit(X)
    drawn = density.sample(40_000, random_state=0)
    own = density.covariance_
    expected = np.cov(X.T, bias=True) + (np.diag(own) if own.ndim == 1 else own)
    deviations = np.sqrt(np.diag(expected))
    found = np.cov(drawn.T) / np.outer(deviations, deviations)
    assert_allclose(found, expected / np.outer(deviations, deviations), atol=0.03)
    assert_allclose((drawn.mean(axis=0) - X.mean(axis=0)) / deviations, 0.0, atol=0.02)


def test_single_precision_and_far_queries(X):
    density = ParzenDensity("scott", covariance="full").fit(X.astype(np.float32))
    expected = clone(density).fit(X.astype(np.float32).astype(float)).score_samples(X)
    assert_allclose(density.score_samples(X), expected, rtol=1e-12)
    corners = 1e308 * np.array(list(product([-1.0, 1.0], repeat=3)))
    far = density.score_samples([*corners, [1e10, 0.0, 0.0]])
    assert (far[:8] == -np.inf).all() and -np.inf < far[8] < -1e9


def test_directions_without_variance(X):
    """A constant feature, and one that two others determine."""
    flat = np.column_stack([X, np.full(80, 7.0)])
    with pytest.warns(ConvergenceWarning, match="do not vary in 1 of 4 features"):
        density = ParzenDensity("scott", covariance="diagonal").fit(flat)
    rows = ParzenDensity("scott", covariance="diagonal").fit(X)
    deviations = X.std(axis=0, ddof=1)
    assert_allclose(density.covariance_[3], density.covariance_[:3].min(), rtol=1e-12)
    assert_allclose(rows.covariance_, rows.bandwidth_**2 * deviations**2, rtol=1e-10)
    tied = np.column_stack([X, X[:, 0] + X[:, 2]])
    with pytest.warns(ConvergenceWarning, match="do not vary in 1 of 4 directions"):
        density = ParzenDensity(0.5, covariance="full").fit(tied)
    assert np.isfinite(density.score_samples(tied)).all()
    S = density.covariance_ / 0.25
    deviations = tied.std(axis=0, ddof=1)
    values = np.linalg.eigvalsh(S / np.outer(deviations, deviations))
    correlations = np.linalg.eigvalsh(np.corrcoef(tied.T))
    assert_allclose(values[[0, 1]], correlations[[1, 1]], rtol=1e-5)
    with pytest.warns(ConvergenceWarning, match="3 of 3 directions"):
        same = ParzenDensity(1.0, covariance="full").fit(X[[0, 0]])
    assert_allclose(same.score_samples(X[:1]), -1.5 * np.log(2 * np.pi), rtol=1e-12)


def test_weights_of_less_than_two_rows(X):
    density = ParzenDensity(1.0, covariance="full").fit(X, sample_weight=np.full(80, 0.01))
    assert_allclose(density.covariance_, 2.0 * np.cov(X.T, bias=True), rtol=1e-10)


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ("round", "covariance must be one of"),
        (None, "covariance must hold|covariance must be an array"),
        (np.eye(2), r"covariance .* shape \(3,\) or \(3, 3\), got shape \(2, 2\)"),
        ([1.0, 2.0], r"got shape \(2,\)"),
        ([1.0, 2.0, 0.0], "covariance must be positive definite"),
        (-np.eye(3), "covariance must be positive definite"),
        (np.ones((3, 3)), "covariance must be positive definite"),
        (np.eye(3) + np.diag([0.5, 0.5], 1), "covariance must be symmetric"),
        (np.full((3, 3), np.nan), "covariance must be an array"),
    ],
)
@pytest.mark.parametrize("estimator", [ParzenDensity, NadarayaWatsonRegressor])
def test_bad_covariances(estimator, covariance, message, X):
    with pytest.raises(ValueError, match=message):
        estimator(covariance=covariance).fit(X, X[:, 0])


def test_classes_by_windows_of_their_own_shape(rng):
    """Two thin clouds that cross, in features of different size."""
    z = rng.normal(size=(200, 2)) * [1.0, 0.1]
    X = np.vstack([z[:100] @ [[1.0, 1.0], [1.0, -1.0]], z[100:] @ [[1.0, -1.0], [1.0, 1.0]]])
    X, y = X * [1.0, 100.0], np.repeat(["up", "down"], 100)
    full, spheres = (
        DensityClassifier(ParzenDensity("scott", covariance=form)).fit(X[::2], y[::2])
        for form in ("full", "spherical")
    )
    assert full.score(X[1::2], y[1::2]) > 0.9 > 0.8 > spheres.score(X[1::2], y[1::2])
    assert [type(each.whitening_) for each in full.densities_] == [Whitening, Whitening]


@pytest.mark.parametrize("form", ["diagonal", "full", "given"])
def test_kernel_regression(form, X, rng):
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 2]])
    weights = rng.integers(1, 4, size=80).astype(float)
    S = covariances(X, weights.astype(int))["diagonal" if form == "diagonal" else "full"]
    root = np.linalg.inv(np.linalg.cholesky(S)).T
    model = NadarayaWatsonRegressor(0.5, covariance=S if form == "given" else form)
    found = model.fit(X, Y, weights).predict(X[:9] + 0.01)
    expected = kernel_regression(X @ root, Y, weights, 0.5, (X[:9] + 0.01) @ root)
    assert_allclose(found, expected, rtol=1e-7)
    loo = NadarayaWatsonRegressor(covariance=model.covariance).fit(X, Y, weights)
    scaled = NadarayaWatsonRegressor().fit((X - X.mean(axis=0)) @ root, Y, weights)
    assert_allclose(loo.bandwidth_, scaled.bandwidth_, rtol=1e-3)


@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_model_files(dtype, X, tmp_path):
    for model in (
        ParzenDensity("loo", covariance="full"),
        NadarayaWatsonRegressor(0.5, covariance="full"),
    ):
        model.fit(X, X[:, 0])
        pursuit.save(model, tmp_path / "m.pursuit", dtype=dtype)
        again = pursuit.load(tmp_path / "m.pursuit")
        assert_array_equal(again.covariance_, model.covariance_)
        method = "score_samples" if hasattr(model, "score_samples") else "predict"
        answers = [getattr(each, method)(X) for each in (model, again)]
        if dtype == "float64":
            assert_array_equal(*answers)
        else:
            assert_allclose(*answers, rtol=0.1, atol=0.2)


def test_nothing_is_said_where_all_is_well(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whitening = whitening_of("full", X, np.ones(80))
    U = whitening(X)
    assert_allclose(np.cov(U.T), np.eye(3), atol=1e-9)
    assert_allclose(whitening.back(U), X, rtol=1e-12)
    assert_allclose(whitening.log_volume, 0.5 * np.linalg.slogdet(np.cov(X.T))[1], rtol=1e-9)
