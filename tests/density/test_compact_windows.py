"""Windows that end: scikit-learn's, the definition, draws, bandwidths, what lies beyond."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import kstest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KernelDensity

import pursuit
from pursuit import DensityClassifier, NadarayaWatsonRegressor, ParzenDensity

POWERS = {"tophat": 0, "epanechnikov": 1, "biweight": 2, "triweight": 3}
COMPACT = pytest.mark.parametrize("kernel", POWERS)


def windows(X, Q, h, kernel):
    """Values of all windows at all queries, from the differences."""
    u = ((Q[:, None] - X) ** 2).sum(axis=2) / h**2
    return np.where(u < 1, np.abs(1 - u) ** POWERS[kernel], 0.0)


def volume(n, h, kernel):
    """Integral of a window: the surface of the sphere times that over the radius."""
    surface = 2 * np.exp(0.5 * n * np.log(np.pi) - gammaln(0.5 * n))
    radial = quad(lambda r: (1 - r * r) ** POWERS[kernel] * r ** (n - 1), 0, 1)[0]
    return surface * radial * h**n


@pytest.fixture
def X(rng):
    """More rows than a group has, some of them equal."""
    X = rng.normal(size=(300, 2)) * [1.0, 3.0] + [0.0, 10.0]
    X[250:260] = X[:10]
    return X


# Densities


@pytest.mark.parametrize("kernel", ["tophat", "epanechnikov"])
@pytest.mark.parametrize("n", [1, 3])
def test_scikit_learns_own(kernel, n, rng):
    X, Q = rng.normal(size=(200, n)), rng.normal(size=(50, n))
    theirs = KernelDensity(bandwidth=0.8, kernel=kernel).fit(X).score_samples(Q)
    ours = ParzenDensity(0.8, kernel=kernel).fit(X).score_samples(Q)
    inside = np.isfinite(ours)
    assert inside.sum() > 40 and (theirs[~inside] < -30.0).all()  # zero, up to their tolerance
    assert_allclose(ours[inside], theirs[inside], rtol=1e-9)


@COMPACT
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_the_definition_with_weights(kernel, n, rng):
    X, Q = rng.normal(size=(150, n)), rng.normal(size=(20, n))
    weights = rng.integers(1, 4, size=150).astype(float)
    h = 1.5 * np.sqrt(n)
    expected = windows(X, Q, h, kernel) @ weights / weights.sum() / volume(n, h, kernel)
    density = ParzenDensity(h, kernel=kernel).fit(X, sample_weight=weights)
    assert_allclose(density.score_samples(Q), np.log(expected), rtol=1e-9)
    repeated = ParzenDensity(h, kernel=kernel).fit(np.repeat(X, weights.astype(int), axis=0))
    assert_allclose(repeated.score_samples(Q), np.log(expected), rtol=1e-9)


@COMPACT
def test_the_integral_is_one(kernel, rng):
    density = ParzenDensity(0.7, kernel=kernel).fit(rng.normal(size=(10, 1)))
    grid = np.linspace(-6, 6, 200_001)[:, None]
    assert_allclose(np.exp(density.score_samples(grid)).mean() * 12, 1.0, rtol=1e-4)


@COMPACT
def test_a_covariance_and_far_rows(kernel, X):
    """The density of u = L^-1 x, over det L; moving all rows by 2^20 changes nothing."""
    S = np.array([[4.0, 1.0], [1.0, 0.5]])
    L = np.linalg.cholesky(S)
    density = ParzenDensity(0.8, covariance=S, kernel=kernel).fit(X)
    U = np.linalg.solve(L, X.T).T
    plain = ParzenDensity(0.8, kernel=kernel).fit(U)
    expected = plain.score_samples(U[::5] + 0.1) - np.log(np.linalg.det(L))
    assert_allclose(density.score_samples(X[::5] + L @ [0.1, 0.1]), expected, rtol=1e-9)
    share = 0.64 / (2 + 2 * POWERS[kernel] + 2)
    assert_allclose(density.covariance_, share * S, rtol=1e-12)
    assert_allclose(plain.covariance_, share, rtol=1e-12)
    moved = ParzenDensity(0.8, kernel=kernel).fit(X + 2.0**20).score_samples(X[::5] + 2.0**20)
    assert_allclose(moved, ParzenDensity(0.8, kernel=kernel).fit(X).score_samples(X[::5]), 1e-7)


def test_beyond_all_windows_the_density_is_zero(X):
    density = ParzenDensity(0.5, kernel="biweight").fit(X)
    assert_array_equal(density.score_samples([[1e3, 0.0], [1e200, 0.0]]), [-np.inf, -np.inf])
    edge = ParzenDensity(kernel="tophat").fit([[0.0]]).score_samples([[1.0], [0.999]])
    assert_allclose(edge, [-np.inf, np.log(0.5)])


@COMPACT
def test_leaving_rows_out(kernel, X, rng):
    """Each row, with those equal to it, by a fit without them."""
    X = np.vstack([X[:40], X[:5]])
    weights = rng.integers(1, 3, size=45).astype(float)
    density = ParzenDensity(4.0, kernel=kernel).fit(X, sample_weight=weights)
    values = []
    for x in X:
        others = (x != X).any(axis=1)
        without = ParzenDensity(4.0, kernel=kernel).fit(X[others], sample_weight=weights[others])
        values.append(without.score_samples(x[None])[0])
    assert_allclose(density.leave_one_out_score(), np.average(values, weights=weights), rtol=1e-9)


@COMPACT
def test_bandwidth_of_the_highest_likelihood(kernel, X):
    density = ParzenDensity("loo", kernel=kernel).fit(X)
    best = density.leave_one_out_score()
    assert np.isfinite(best)
    for factor in (0.7, 0.9, 1.1, 1.5):
        other = ParzenDensity(factor * density.bandwidth_, kernel=kernel).fit(X)
        assert other.leave_one_out_score() <= best
    with pytest.warns(ConvergenceWarning, match="different rows"):
        assert ParzenDensity("loo", kernel=kernel).fit(np.ones((3, 2))).bandwidth_ == 1.0


@COMPACT
@pytest.mark.parametrize("rule", ["scott", "silverman"])
@pytest.mark.parametrize("covariance", ["spherical", "full"])
def test_rules_give_windows_of_one_covariance(rule, covariance, kernel, X):
    gaussian = ParzenDensity(rule, covariance=covariance).fit(X)
    compact = ParzenDensity(rule, covariance=covariance, kernel=kernel).fit(X)
    assert_allclose(compact.covariance_, gaussian.covariance_, rtol=1e-12)
    assert compact.bandwidth_ > gaussian.bandwidth_


@COMPACT
def test_draws(kernel):
    """The radius has the distribution of the window, each coordinate its variance."""
    density = ParzenDensity(2.0, kernel=kernel).fit([[3.0, 0.0, -1.0]])
    rows = density.sample(20_000, random_state=0) - [3.0, 0.0, -1.0]
    radii = np.linalg.norm(rows, axis=1) / 2.0
    grid = np.linspace(0, 1, 2001)
    values = (1 - grid**2) ** POWERS[kernel] * grid**2
    shares = np.concatenate([[0], np.cumsum((values[1:] + values[:-1]) / 2)])
    assert kstest(radii, lambda r: np.interp(r, grid, shares / shares[-1])).pvalue > 1e-3
    assert_allclose(rows.T @ rows / 20_000, density.covariance_ * np.eye(3), atol=0.03)
    assert_allclose(rows.mean(axis=0), 0.0, atol=0.03)


def test_classes_with_windows_that_end(X):
    """Where one class has no window the other is certain; where none has, priors decide."""
    y = (X[:, 0] > 0).astype(int)
    model = DensityClassifier(ParzenDensity(0.5, kernel="epanechnikov")).fit(X, y)
    inside = X[X[:, 0] < -1.0][:1]
    assert_allclose(model.predict_proba(inside), [[1.0, 0.0]])
    far = model.predict_proba([[1e3, 1e3]])
    assert_allclose(far, model.priors_[None])
    assert model.score(X, y) > 0.95


# Regression


@COMPACT
def test_means_and_the_nearest_row_beyond(kernel, X, rng):
    Y, weights = rng.normal(size=(300, 2)), rng.integers(1, 3, size=300).astype(float)
    Y[250:260] = Y[:10]
    Q = np.vstack([X[::7] + 0.2, [[40.0, 10.0]]])
    model = NadarayaWatsonRegressor(0.9, kernel=kernel).fit(X, Y, weights)
    table = windows(X, Q, 0.9, kernel) * weights
    some = table.sum(axis=1) > 0
    expected = table[some] @ Y / table[some].sum(axis=1)[:, None]
    assert not some[-1]
    assert_allclose(model.predict(Q)[some], expected, rtol=1e-9, atol=1e-12)
    nearest = ((Q[~some][:, None] - X) ** 2).sum(axis=2).argmin(axis=1)
    assert_array_equal(model.predict(Q)[~some], Y[nearest])


@COMPACT
def test_bandwidth_by_leaving_out(kernel, rng):
    X = rng.uniform(-3, 3, size=(150, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=150)

    def left_out_error(h):
        table = windows(X, X, h, kernel)
        np.fill_diagonal(table, 0.0)
        distances = np.abs(X - X[:, 0])
        np.fill_diagonal(distances, np.inf)
        total = table.sum(axis=1)
        found = np.where(
            total > 0, table @ y / np.where(total > 0, total, 1), y[distances.argmin(axis=1)]
        )
        return np.mean((found - y) ** 2)

    model = NadarayaWatsonRegressor(kernel=kernel).fit(X, y)
    scores = model._means(model.gaussians_.centres, [model_of(model)], left_out=True)[0, :, 0]
    assert_allclose(np.mean((scores - model.targets_[:, 0]) ** 2), left_out_error(model.bandwidth_))
    assert left_out_error(model.bandwidth_) <= min(
        left_out_error(factor * model.bandwidth_) for factor in (0.4, 2.5)
    )
    assert model.score(X, y) > 0.9


def model_of(model):
    """The squared radius of a fit."""
    return pursuit.density.gaussian_mixture.CovarianceModel(model.bandwidth_**2)


# Errors and files


@pytest.mark.parametrize("cls", [ParzenDensity, NadarayaWatsonRegressor])
def test_no_such_window(cls, X):
    with pytest.raises(ValueError, match="kernel must be one of"):
        cls(kernel="rbf").fit(X, X[:, 0])


def test_saved_and_loaded(X, tmp_path):
    density = ParzenDensity("loo", kernel="triweight").fit(X)
    pursuit.save(density, tmp_path / "model.pursuit")
    loaded = pursuit.load(tmp_path / "model.pursuit")
    assert_array_equal(loaded.score_samples(X), density.score_samples(X))
