"""Manifold Parzen windows with known directions: definitions, limits, rows left out, files."""

import numpy as np
import pytest
import reference_density as reference
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

import pursuit
from pursuit import (
    DensityClassifier,
    ImageTangents,
    ManifoldParzenDensity,
    ManifoldParzenDensityCV,
    datasets,
)

D = 12
TURN = np.random.default_rng(5).normal(size=(2, D, D)) / 8


def bent(X):
    """Three tangents: two linear in the rows, and one that is not."""
    linear = np.einsum("mi,tij->mtj", X, TURN)
    return np.concatenate([linear, 0.3 * np.sin(X)[:, None]], axis=1)


@pytest.fixture
def cloud(rng):
    """25 different rows on a curved surface, some of them twice, with weights; and queries."""
    t = rng.uniform(0.0, 3.0, size=(25, 1))
    X = np.hstack([np.sin(2 * t), t]) @ rng.normal(size=(2, D)) / 3
    X += 0.1 * rng.normal(size=X.shape) + 2.0
    return X, rng.uniform(0.5, 2.0, size=25), X[::4] + 0.2 * rng.normal(size=(7, D))


def shorter(n_features):
    """The same tangents of fewer features."""
    return lambda X: np.einsum("mi,tij->mtj", X, TURN[:, :n_features, :n_features])


# Equal to the definition.


def test_one_row_with_one_tangent():
    """The row (1, 0) with the tangent (0, 2) of variance 0.5: variances 0.1, and 0.1 + 2 along it.

    With neighbours at (1, 0) + (3, 0), variance 9 along the first axis is larger.
    """

    def upwards(rows):
        return np.tile([0.0, 2.0], (len(rows), 1, 1))

    density = ManifoldParzenDensity(
        1, n_components=1, noise_variance=0.1, tangents=upwards, tangent_variance=0.5
    )
    with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="all of which are neighbors"):
        density.fit([[1.0, 0.0]])
    expected = reference.log_normal(np.array([3.0, 1.0]), np.array([1.0, 0.0]), np.diag([0.1, 2.1]))
    assert_allclose(density.score_samples([[3.0, 1.0]]), [expected])
    two = clone(density).fit([[1.0, 0.0], [4.0, 0.0]])
    assert_allclose(two.gaussians_.variances, [[9.0], [9.0]])
    three = density.set_params(n_components=2).fit([[1.0, 0.0], [4.0, 0.0]])
    assert_allclose(three.gaussians_.variances, [[9.0, 2.0], [9.0, 2.0]])


@pytest.mark.parametrize("variance", [1e-3, 0.25, 30.0])
@pytest.mark.parametrize("d", [0, 1, 4, 8, 30])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_equals_full_covariances(k, d, variance, cloud):
    X, weights, Q = cloud
    options = {"tangents": bent, "tangent_variance": variance}
    density = ManifoldParzenDensity(k, n_components=d, noise_variance=0.01, **options)
    found = density.fit(X, sample_weight=weights).score_samples(Q)
    expected = reference.manifold_parzen(X, weights, k, d, 0.01, Q, **options)
    assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("n", [1, 3])
def test_few_features(n, cloud):
    X, weights, Q = cloud[0][:, :n], cloud[1], cloud[2][:, :n]
    options = {"tangents": shorter(n), "tangent_variance": 0.25}
    density = ManifoldParzenDensity(6, n_components=2, noise_variance=0.01, **options)
    found = density.fit(X, sample_weight=weights).score_samples(Q)
    expected = reference.manifold_parzen(X, weights, 6, 2, 0.01, Q, **options)
    assert_allclose(found, expected, rtol=1e-9)


def test_soft_neighbourhoods(cloud):
    X, weights, Q = cloud
    options = {"tangents": bent, "tangent_variance": 0.1}
    for gamma in (0.3, 1e5):  # of 1e5 no neighbour has a weight, and the tangents are left
        density = ManifoldParzenDensity(
            None, n_components=4, neighborhood=pursuit.kernels.RBF(gamma), **options
        )
        found = density.fit(X, sample_weight=weights).score_samples(Q)
        expected = reference.manifold_parzen(
            X, weights, 24, 4, 0.01, Q,
            lambda a, b, gamma=gamma: np.exp(-gamma * ((a - b) ** 2).sum()), **options,
        )  # fmt: skip
        assert_allclose(found, expected, rtol=1e-9)


# Known limits.


def test_no_tangents_and_tangents_of_no_length(cloud):
    X, weights, Q = cloud
    plain = ManifoldParzenDensity(5, n_components=3).fit(X, sample_weight=weights)
    assert plain.tangent_variance_ is None
    for none in (lambda X: np.zeros((len(X), 0, D)), lambda X: np.zeros((len(X), 2, D))):
        density = ManifoldParzenDensity(5, n_components=3, tangents=none)
        density.fit(X, sample_weight=weights)
        assert_allclose(density.score_samples(Q), plain.score_samples(Q), rtol=1e-9)
        assert_allclose(density.leave_one_out_score(), plain.leave_one_out_score(), rtol=1e-9)


def test_known_directions_alone(cloud):
    """With a large variance neighbours no longer count."""
    X, _, Q = cloud
    density = ManifoldParzenDensity(1, n_components=3, tangents=bent, tangent_variance=1e6)
    found = density.fit(X).score_samples(Q)
    terms = [
        reference.log_normal(q, x, 1e6 * bent(x[None])[0].T @ bent(x[None])[0] + 0.01 * np.eye(D))
        for q in Q
        for x in X
    ]
    expected = logsumexp(np.reshape(terms, (len(Q), len(X))), axis=1) - np.log(len(X))
    assert_allclose(found, expected, rtol=1e-4)


def test_it_does_not_depend_on_the_unit_of_the_features(cloud):
    """Tangents of features in another unit are in that unit, too: tau^2 stays."""
    X, _, Q = cloud
    linear = shorter(D)
    one = ManifoldParzenDensity(4, n_components=4, noise_variance=0.01, tangents=linear).fit(X)
    other = clone(one).set_params(noise_variance=0.01 * 8.0**2).fit(8.0 * X)
    expected = one.score_samples(Q) - D * np.log(8.0)
    assert_allclose(other.score_samples(8.0 * Q), expected, rtol=1e-10)


def test_far_from_the_origin_nothing_is_lost(cloud):
    X, _, Q = cloud
    near = ManifoldParzenDensity(5, n_components=4, tangents=bent).fit(X)
    far = clone(near).set_params(tangents=lambda rows: bent(rows - 1e6)).fit(X + 1e6)
    assert_allclose(far.score_samples(Q + 1e6), near.score_samples(Q), rtol=1e-6)


def test_moved_digits_have_more_density():
    """Images moved by half a pixel, of which the density knows only the unmoved ones."""
    X, y = load_digits(return_X_y=True)
    X = X[y == 2]
    tangents = ImageTangents((8, 8), ("x_translation", "y_translation"))
    moved = X[100:] + 0.5 * tangents(X[100:])[:, 0]
    without = ManifoldParzenDensity(8, n_components=8, noise_variance=2.0).fit(X[:100])
    density = clone(without).set_params(tangents=tangents).fit(X[:100])
    assert density.score(moved) > without.score(moved) + 10.0
    assert density.score(X[100:]) > without.score(X[100:])


# Rows left out, and the search.


@pytest.mark.parametrize("d", [1, 4, 30])
@pytest.mark.parametrize("k", [1, 5, 24])
def test_rows_left_out_are_fits_without_them(k, d, cloud):
    X, weights, _ = cloud
    options = {"tangents": bent, "tangent_variance": 0.25}
    density = ManifoldParzenDensity(k, n_components=d, **options).fit(X, sample_weight=weights)

    def fit(X, weights, queries):
        return reference.manifold_parzen(X, weights, k, d, 0.01, queries, **options)

    expected = np.average(reference.leave_one_out(X, weights, fit), weights=weights)
    assert_allclose(density.leave_one_out_score(), expected, rtol=1e-8)
    found = density.set_params(tangents=None, tangent_variance=3.0).leave_one_out_score()
    assert_allclose(found, expected, rtol=1e-8)  # of the fit, whatever the parameters are now


def test_two_rows_and_one(cloud):
    X = cloud[0]
    density = ManifoldParzenDensity(1, n_components=3, tangents=bent).fit(X[:2])

    def fit(X, weights, queries):
        return reference.manifold_parzen(
            X, weights, 1, 3, 0.01, queries, tangents=bent, tangent_variance=0.1
        )

    expected = reference.leave_one_out(X[:2], np.ones(2), fit).mean()
    assert_allclose(density.leave_one_out_score(), expected, rtol=1e-9)
    one = ManifoldParzenDensity(None, n_components=3, tangents=bent).fit(X[:1])
    expected = fit(X[:1], np.ones(1), X[1:3])
    assert_allclose(one.score_samples(X[1:3]), expected, rtol=1e-9)


def test_the_search_is_a_loop_over_fits(cloud):
    X, weights, Q = cloud
    options = {"tangents": bent, "tangent_variance": 0.4}
    grid = {"n_neighbors": (2, 6), "n_components": (0, 2, 5), "noise_variance": (0.01, 0.1)}
    for X_val in (None, Q):
        search = ManifoldParzenDensityCV(**grid, **options).fit(X, None, weights, X_val=X_val)
        assert search.tangent_variance_ == 0.4
        for i, k in enumerate(grid["n_neighbors"]):
            for j, d in enumerate(grid["n_components"]):
                for h, noise in enumerate(grid["noise_variance"]):
                    one = ManifoldParzenDensity(
                        k, n_components=d, noise_variance=noise, **options
                    ).fit(X, sample_weight=weights)
                    score = one.leave_one_out_score() if X_val is None else one.score(X_val)
                    assert_allclose(search.scores_[i, j, h], score, rtol=1e-8)
        best = ManifoldParzenDensity(**search.best_params_, **options).fit(X, None, weights)
        assert_allclose(search.score_samples(Q), best.score_samples(Q), rtol=1e-9)
        assert_allclose(search.leave_one_out_score(), best.leave_one_out_score(), rtol=1e-8)


# Beside the rest of the estimator.


def test_draws_have_the_covariance(cloud):
    X = cloud[0][:1]
    density = ManifoldParzenDensity(None, n_components=3, tangents=bent, tangent_variance=0.5)
    rows = density.fit(X).sample(40_000, random_state=0)
    expected = 0.5 * bent(X)[0].T @ bent(X)[0] + 0.01 * np.eye(D)
    assert_allclose(np.cov(rows.T), expected, atol=0.02 * expected.max())


def test_float32_blocks_and_threads(cloud, monkeypatch):
    X, _, Q = cloud
    kinds, sizes = [], []

    def recorded(rows):
        kinds.append(rows.dtype)
        sizes.append(len(rows))
        return bent(rows)

    density = ManifoldParzenDensity(5, n_components=4, tangents=recorded).fit(X)
    wide, left_out = density.score_samples(Q), density.leave_one_out_score()
    assert set(kinds) == {np.dtype(np.float64)} and max(sizes) == 25
    sizes.clear()
    for module in (pursuit.geometry.local_covariance, pursuit.density.bandwidth):
        monkeypatch.setattr(module, "BATCH_BYTES", 1)
    monkeypatch.setattr(pursuit.linalg.blocks, "n_threads", lambda: 4)
    assert_allclose(density.fit(X).score_samples(Q), wide, rtol=1e-12)
    assert_allclose(density.leave_one_out_score(), left_out, rtol=1e-12)
    assert set(sizes) == {1}
    monkeypatch.undo()
    kinds.clear()
    narrow = density.fit(X.astype(np.float32))
    assert set(kinds) == {np.dtype(np.float32)} and narrow.gaussians_.factors.dtype == np.float32
    assert_allclose(narrow.score_samples(Q.astype(np.float32)), wide, rtol=2e-3)


def test_searches_of_scikit_learn_and_classes(cloud):
    X, _, _ = cloud
    grid = {"tangents": [None, bent], "tangent_variance": [0.1, 1.0]}
    search = GridSearchCV(ManifoldParzenDensity(4, n_components=3), grid, cv=3).fit(X)
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] == scores[2] and len(set(scores)) == 3  # without tangents it does not count
    y = np.arange(25) % 2
    model = DensityClassifier(ManifoldParzenDensity(3, tangents=bent)).fit(X, y)
    one = ManifoldParzenDensity(3, tangents=bent).fit(X[y == 1])
    joint = model.predict_joint_log_proba(X)[:, 1] - np.log(12 / 25)
    assert_allclose(joint, one.score_samples(X), rtol=1e-9)


@pytest.mark.parametrize("estimator", [ManifoldParzenDensity, ManifoldParzenDensityCV])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tangents": np.zeros((25, 2, D))}, "tangents must be None or a callable .* got ndarray"),
        ({"tangents": lambda X: X}, r"tangents must give an array \(1, n_tangents, 12\)"),
        ({"tangents": lambda X: bent(X)[:, :, :5]}, "tangents must give an array"),
        ({"tangents": lambda X: np.full((len(X), 1, D), np.nan)}, "tangents gave vectors"),
        ({"tangents": ImageTangents((4, 4))}, "tangents: images of shape"),
        ({"tangent_variance": 0.0}, "tangent_variance must be"),
        ({"tangents": bent, "tangent_variance": np.inf}, "tangent_variance must be"),
        ({"tangents": bent, "tangent_variance": "scale"}, "tangent_variance must be"),
    ],
)
def test_one_clear_error(options, words, estimator, cloud):
    with pytest.raises(ValueError, match=words):
        estimator(**options).fit(cloud[0])


def test_files_hold_image_tangents_but_no_functions(cloud, tmp_path):
    X, _, Q = cloud
    value = ImageTangents([3, 4], ["rotation", "thickness"], smoothing=0.6)
    for model in (
        ManifoldParzenDensity(4, n_components=3, tangents=value).fit(X),
        ManifoldParzenDensityCV((3, 5), noise_variance=[0.01, 0.1], tangents=value).fit(X),
    ):
        pursuit.save(model, tmp_path / "model")
        same = pursuit.load(tmp_path / "model")
        assert same.tangents == value and same.tangent_variance_ == 0.1
        assert_array_equal(same.score_samples(Q), model.score_samples(Q))
        assert same.leave_one_out_score() == model.leave_one_out_score()
    model = ManifoldParzenDensity(4, n_components=3, tangents=bent).fit(X)
    left_out = model.leave_one_out_score()
    with pytest.raises(ValueError, match="parameter tangents is a Python function.*ImageTangents"):
        pursuit.save(model, tmp_path / "model")
    pursuit.save(model.set_params(tangents=None), tmp_path / "model")
    same = pursuit.load(tmp_path / "model")
    assert_array_equal(same.score_samples(Q), model.score_samples(Q))
    with pytest.raises(ValueError, match="tangents=None: leaving rows out needs the function"):
        same.leave_one_out_score()
    assert same.set_params(tangents=bent).leave_one_out_score() == left_out


def test_a_slice_of_mnist(data_folder):
    """Held-out training images of digit 2 with 300 rows, as in table 13.2."""
    X, y = datasets.load("mnist", "train")
    X = X[y == 2] / 255.0
    density = ManifoldParzenDensity(30, n_components=30, noise_variance=0.09**2).fit(X[:300])
    without = density.score(X[5400:])
    density.set_params(tangents=ImageTangents((28, 28))).fit(X[:300])
    assert density.score(X[5400:]) > without + 50.0
