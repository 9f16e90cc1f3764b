"""The density fitted at the query: its definition, where it is exact, and its integral."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference_density import local_gaussian, log_normal
from sklearn.model_selection import GridSearchCV

import pursuit
from pursuit import LocalGaussianDensity, ManifoldParzenDensity
from pursuit.density import local_gaussian as local_gaussian_module
from pursuit.density.local_gaussian import log_normals
from pursuit.linalg import blocks


def cloud(rng, m, n):
    t = rng.uniform(0.0, 3.0, size=(m, 1))
    directions = rng.normal(size=(2, n)) / np.sqrt(n)
    X = np.hstack([np.sin(2 * t), t]) @ directions + 0.1 * rng.normal(size=(m, n)) + 5.0
    return X, rng.integers(1, 4, size=m).astype(float)


@pytest.mark.parametrize(("n", "d"), [(2, 0), (2, 1), (2, 2), (6, 3), (60, 4), (60, 100)])
@pytest.mark.parametrize("k", [None, 1, 7, 200])
def test_the_definition(n, d, k, rng):
    X, weights = cloud(rng, 40, n)
    queries = np.vstack([X[:3] + 0.05, X[5:8]])
    density = LocalGaussianDensity(k, bandwidth=0.7, n_components=d, noise_variance=0.02)
    found = density.fit(X, sample_weight=weights).score_samples(queries)
    for x, value in zip(queries, found, strict=True):
        distances = np.sort(np.linalg.norm(X - x, axis=1))
        width = 0.7 if k is None else 0.7 * distances[min(k, 40) - 1]
        if width == 0:
            width = 1e-5  # the query is a row, and no other one counts
        expected = local_gaussian(X, weights, width, d, 0.02, x)
        assert_allclose(value, expected, rtol=1e-7, atol=1e-7)


def test_a_wide_kernel_is_one_gaussian(rng):
    X, weights = cloud(rng, 40, 3)
    density = LocalGaussianDensity(None, bandwidth=1e6, n_components=3, noise_variance=0.1)
    found = density.fit(X, sample_weight=weights).score_samples(X[:5])
    mean, C = np.average(X, axis=0, weights=weights), np.cov(X.T, aweights=weights, ddof=0)
    expected = [log_normal(x, mean, C + 0.1 * np.eye(3)) for x in X[:5]]
    assert_allclose(found, expected, rtol=1e-6)
    grid = np.stack(np.meshgrid(*[np.linspace(-4, 4, 60) + m for m in mean[:2]]), -1).reshape(-1, 2)
    flat = LocalGaussianDensity(None, bandwidth=1e6, n_components=2, noise_variance=0.1)
    assert_allclose(np.exp(flat.fit(X[:, :2], None, weights).score_samples(grid)).sum()
                    * (8 / 59) ** 2, 1.0, rtol=1e-3)  # fmt: skip


def test_normal_data_of_many_rows_have_their_density(rng):
    """The product of two Gaussians is one: the estimate has no bias there."""
    X = rng.normal(size=(20_000, 2)) * [1.0, 0.2]
    density = LocalGaussianDensity(None, bandwidth=0.4, n_components=2, noise_variance=1e-9).fit(X)
    queries = X[:20] * 0.7
    expected = [log_normal(x, np.zeros(2), np.diag([1.0, 0.04])) for x in queries]
    assert_allclose(density.score_samples(queries), expected, atol=0.1)


def test_far_away_it_is_finite(rng):
    X, _ = cloud(rng, 40, 5)
    for k in (None, 5):
        density = LocalGaussianDensity(k, bandwidth=0.5).fit(X + 1e6)
        near = density.score_samples(X[:3] + 1e6)
        expected = LocalGaussianDensity(k, bandwidth=0.5).fit(X).score_samples(X[:3])
        assert_allclose(near, expected, rtol=1e-6, atol=1e-6)
        assert np.isfinite(density.score_samples(np.full((1, 5), -1e5))).all()
    assert LocalGaussianDensity(None).fit(X).score_samples(np.full((1, 5), 1e200)) == -np.inf


def test_leaving_one_out(rng):
    X, weights = cloud(rng, 30, 4)
    X = np.vstack([X, X[:1]])  # copies are left out together
    weights = np.append(weights, 2.0)
    density = LocalGaussianDensity(6, n_components=2).fit(X, sample_weight=weights)
    values = []
    for x in X:
        rest = (X != x).any(axis=1)
        fit = LocalGaussianDensity(6, n_components=2).fit(X[rest], sample_weight=weights[rest])
        values.append(fit.score_samples([x])[0])
    expected = np.average(values, weights=weights)
    assert_allclose(density.leave_one_out_score(), expected, rtol=1e-9)
    assert LocalGaussianDensity().fit(X[:1]).leave_one_out_score() == -np.inf


def test_weights_threads_and_files(rng, monkeypatch, tmp_path):
    X, weights = cloud(rng, 40, 4)
    weights[3] = 0.0
    repeated = np.repeat(X, weights.astype(int), axis=0)
    density = LocalGaussianDensity(6, n_components=2).fit(X, sample_weight=weights)
    expected = density.score_samples(X + 0.1)
    found = LocalGaussianDensity(6, n_components=2).fit(repeated).score_samples(X + 0.1)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert np.abs(density.fit(X).score_samples(X + 0.1) - expected).max() > 1e-3
    density.fit(X, sample_weight=weights)
    monkeypatch.setattr(blocks, "n_threads", lambda: 3)
    monkeypatch.setattr(local_gaussian_module, "BATCH_BYTES", 8 * 3 * density.X_.size)
    assert_allclose(density.score_samples(X + 0.1), expected, rtol=1e-10)
    pursuit.save(density, tmp_path / "density")
    again = pursuit.load(tmp_path / "density")
    assert_array_equal(again.score_samples(X + 0.1), density.score_samples(X + 0.1))
    single = LocalGaussianDensity(6).fit(X.astype(np.float32))
    assert single.X_.dtype == np.float32
    assert_allclose(
        single.score_samples(X), LocalGaussianDensity(6).fit(X).score_samples(X), atol=1e-3
    )


# The integral


def by_grid(density, X):
    """Integral of two features on a fine grid."""
    lines = [np.linspace(X[:, j].min() - 4, X[:, j].max() + 4, 150) for j in range(2)]
    grid = np.stack(np.meshgrid(*lines), axis=-1).reshape(-1, 2)
    cell = np.prod([line[1] - line[0] for line in lines])
    return np.exp(density.score_samples(grid)).sum() * cell


@pytest.mark.parametrize("k", [None, 10])
def test_integral_by_draws_is_that_of_a_grid(k, rng):
    X, weights = cloud(rng, 60, 2)
    density = LocalGaussianDensity(k, bandwidth=0.5, noise_variance=0.02)
    density.fit(X, sample_weight=weights)
    exact = np.log(by_grid(density, X))
    assert abs(exact) > 0.01  # it is not normalised
    found = density.log_integral(4000, random_state=0)
    assert abs(found.value - exact) < 3 * found.standard_error + 0.005
    assert 0.001 < found.standard_error < 0.05
    assert 500 < found.effective_size < 4000
    assert found == density.log_integral(4000, random_state=0)


def test_errors_of_integrals_are_as_large_as_they_say(rng):
    X, _ = cloud(rng, 40, 2)
    density = LocalGaussianDensity(8, noise_variance=0.02).fit(X)
    runs = [density.log_integral(200, random_state=seed) for seed in range(30)]
    spread = np.std([run.value for run in runs])
    assert 0.6 < spread / np.mean([run.standard_error for run in runs]) < 1.6


def test_own_proposal(rng):
    X, _ = cloud(rng, 60, 2)
    density = LocalGaussianDensity(None, bandwidth=0.5, noise_variance=0.02).fit(X)
    proposal = ManifoldParzenDensity(n_components=2, noise_variance=0.3).fit(X)
    found = density.log_integral(4000, proposal=proposal, random_state=0)
    expected = density.log_integral(4000, random_state=0)
    assert abs(found.value - expected.value) < 0.1


def test_many_features_and_one_row(rng):
    X, _ = cloud(rng, 40, 60)
    found = LocalGaussianDensity(8, n_components=2).fit(X).log_integral(200, random_state=0)
    assert np.isfinite(found.value)
    found = LocalGaussianDensity(None).fit(X[:1, :2]).log_integral(500, random_state=0)
    # N(x; x_1, 0.01 I) exp(-|x - x_1|^2 / 2): 0.01 in the place of 1 / 1.01, in two dimensions.
    assert_allclose(found.value, np.log(1 / 1.01), atol=0.05)


def test_parameters(rng):
    X, _ = cloud(rng, 40, 2)
    for bad in (
        {"n_neighbors": 0},
        {"bandwidth": 0.0},
        {"n_components": -1},
        {"noise_variance": 0},
    ):
        with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
            LocalGaussianDensity(**bad).fit(X)
    with pytest.raises(ValueError, match="n_samples must be"):
        LocalGaussianDensity().fit(X).log_integral(0)
    search = GridSearchCV(LocalGaussianDensity(), {"n_neighbors": [3, 10, None]}, cv=3).fit(X)
    assert search.best_params_["n_neighbors"] in (3, 10, None)


def test_normal_of_weighted_rows(rng):
    for m, n in ((4, 9), (9, 4)):
        rows, shares = rng.normal(size=(m, n)), rng.dirichlet(np.ones(m))
        mean = shares @ rows
        C = (rows - mean).T @ np.diag(shares) @ (rows - mean) + 0.1 * np.eye(n)
        found = log_normals(rows[None], shares[None], 20, 0.1)
        assert_allclose(found[0], log_normal(np.zeros(n), mean, C), rtol=1e-10)
