"""Parzen windows, manifold Parzen windows and the classifier on them, as a user meets them."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference_density import leave_one_out, manifold_parzen, parzen
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import ks_2samp
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

import pursuit
from pursuit import DensityClassifier, ManifoldParzenDensity, ManifoldParzenDensityCV, ParzenDensity
from pursuit.density.bandwidth import neighbor_variance
from pursuit.geometry.unique_rows import distinct_rows
from pursuit.kernels import RBF, Linear


def spiral(rng, n):
    t = rng.uniform(3, 15, size=n)
    curve = 0.04 * t * np.stack([np.sin(t), np.cos(t)])
    return curve.T + 0.01 * rng.normal(size=(n, 2))


@pytest.fixture
def X(rng):
    return spiral(rng, 80)


@pytest.fixture
def weights(rng):
    return rng.integers(1, 4, size=80).astype(float)


# The densities


def test_parzen(X, weights):
    density = ParzenDensity(0.05).fit(X, sample_weight=weights)
    queries = X[:20] + 0.03
    expected = parzen(X, weights, 0.05, queries)
    assert_allclose(density.score_samples(queries), expected, rtol=1e-9)
    assert_allclose(density.score(queries), expected.mean(), rtol=1e-9)
    w = np.arange(20.0)
    assert_allclose(density.score(queries, sample_weight=w), np.average(expected, weights=w))
    assert density.bandwidth_ == 0.05


@pytest.mark.parametrize("d", [0, 1, 2])
@pytest.mark.parametrize("k", [1, 7, None])
def test_manifold_parzen(d, k, X, weights):
    density = ManifoldParzenDensity(k, n_components=d, noise_variance=0.01).fit(X, None, weights)
    expected = manifold_parzen(X, weights, k or 79, d, 0.01, X[:20] + 0.03)
    assert_allclose(density.score_samples(X[:20] + 0.03), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "function"),
    [
        (RBF(30.0), lambda x, z: np.exp(-30.0 * np.sum((x - z) ** 2))),
        (lambda A, B: 1.0 / (0.1 + cdist(A, B)), lambda x, z: 1 / (0.1 + np.linalg.norm(x - z))),
    ],
)
@pytest.mark.parametrize("k", [9, None])
def test_soft_neighbourhoods(kernel, function, k, X, weights):
    density = ManifoldParzenDensity(k, noise_variance=0.01, neighborhood=kernel)
    density.fit(X, sample_weight=weights)
    expected = manifold_parzen(X, weights, k or 79, 1, 0.01, X[:20], function)
    assert_allclose(density.score_samples(X[:20]), expected, rtol=1e-9)
    hard = ManifoldParzenDensity(k, noise_variance=0.01).fit(X, sample_weight=weights)
    assert np.abs(hard.score_samples(X[:20]) - expected).max() > 0.01


def test_no_components_are_parzen_windows(rng):
    X = rng.normal(size=(60, 20))
    manifold = ManifoldParzenDensity(n_components=0, noise_variance=0.3**2).fit(X)
    one = ParzenDensity(0.3).fit(X)
    assert_allclose(manifold.score_samples(X + 0.1), one.score_samples(X + 0.1), rtol=1e-12)
    assert_allclose(manifold.leave_one_out_score(), one.leave_one_out_score(), rtol=1e-12)


@pytest.mark.parametrize(
    "density",
    [
        ParzenDensity(0.1),
        ManifoldParzenDensity(5, noise_variance=1e-3),
        ManifoldParzenDensity(5, neighborhood="rbf"),
        *(ParzenDensity(rule) for rule in ("loo", "scott", "silverman")),
    ],
)
def test_weight_two_is_the_row_twice_and_zero_is_none(density, X, rng):
    weights = rng.integers(0, 3, size=80).astype(float)
    repeated = np.repeat(X, weights.astype(int), axis=0)
    queries = X + 0.01
    expected = density.fit(repeated).score_samples(queries)
    assert_allclose(
        density.fit(X, sample_weight=weights).score_samples(queries), expected, rtol=1e-7
    )
    assert np.abs(density.fit(X).score_samples(queries) - expected).max() > 0.01


def test_digits_are_exact_where_kernel_density_is_not():
    X, _ = load_digits(return_X_y=True)
    X, queries = X[:1000], X[1000:1100]
    exact = logsumexp(-0.5 * cdist(queries, X, "sqeuclidean") / 4.0, axis=1)
    exact += -np.log(1000) - 32 * np.log(2 * np.pi * 4.0)
    found = ParzenDensity(2.0).fit(X).score_samples(queries)
    assert_allclose(found, exact, rtol=1e-9)
    others = KernelDensity(bandwidth=2.0).fit(X).score_samples(queries)
    assert np.abs(others - exact).max() > 1.0


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_duplicates_and_constant_columns(offset, X):
    rows = np.hstack([np.repeat(X, 3, axis=0), np.full((240, 2), 4.0)]) + offset
    for density in (ManifoldParzenDensity(4, n_components=3), ParzenDensity("loo")):
        values = density.fit(rows).score_samples(rows)
        assert np.isfinite(values).all()
        plain = type(density)(**density.get_params()).fit(rows[::3])
        assert_allclose(values, plain.score_samples(rows), rtol=1e-6, atol=1e-6)


def test_one_row():
    with pytest.warns(ConvergenceWarning, match="more than the 0 other"):
        density = ManifoldParzenDensity().fit([[1.0, 2.0]])
    assert_allclose(density.score_samples([[1.0, 2.0]]), -np.log(2 * np.pi * 0.01), rtol=1e-12)
    assert density.leave_one_out_score() == -np.inf
    for rule in ("loo", "scott", "silverman"):
        with pytest.warns(ConvergenceWarning, match="bandwidth_ is 1"):
            assert ParzenDensity(rule).fit([[1.0], [1.0]]).bandwidth_ == 1.0
    with pytest.raises(ValueError, match="equal rows alone"):
        ManifoldParzenDensityCV().fit([[1.0], [1.0]])


@pytest.mark.parametrize("d", [0, 1, 2])
def test_draws_follow_the_density(d, X):
    """Two samples, of which one comes from the density's values on a fine grid."""
    density = ManifoldParzenDensity(8, n_components=d, noise_variance=0.02**2).fit(X)
    drawn = density.sample(2000, random_state=0)
    assert_array_equal(drawn, density.sample(2000, random_state=0))
    plain = by_grid(density, np.random.default_rng(1), 2000)
    wide = ManifoldParzenDensity(8, n_components=d, noise_variance=0.08**2).fit(X)
    assert smallest_p_value(density, drawn, plain) > 0.01
    assert smallest_p_value(density, wide.sample(2000, 0), plain) < 1e-6


def by_grid(density, rng, n):
    """Draws from the density's values on a grid."""
    lines = np.linspace(-1.0, 1.0, 600)
    grid = np.stack(np.meshgrid(lines, lines), axis=-1).reshape(-1, 2)
    p = np.exp(density.score_samples(grid))
    return grid[rng.choice(len(grid), size=n, p=p / p.sum())]


def smallest_p_value(density, A, B):
    """Of Kolmogorov-Smirnov tests on both features and on the density itself."""
    views = [lambda rows: rows[:, 0], lambda rows: rows[:, 1], density.score_samples]
    return min(ks_2samp(view(A), view(B)).pvalue for view in views)


# Their parameters


def test_rules_of_thumb(X, weights):
    rows, total = np.repeat(X, weights.astype(int), axis=0), weights.sum()
    spread = np.sqrt(rows.var(axis=0).mean())
    for rule, size in (("scott", total), ("silverman", total * 4 / 4)):
        found = ParzenDensity(rule).fit(X, sample_weight=weights).bandwidth_
        assert_allclose(found, size ** (-1 / 6) * spread, rtol=1e-10)
    X3 = np.hstack([X, X[:, :1] ** 2])
    found = ParzenDensity("silverman").fit(X3).bandwidth_
    assert_allclose(found, (80 * 5 / 4) ** (-1 / 7) * np.sqrt(X3.var(axis=0).mean()), rtol=1e-10)


def test_leave_one_out(X, weights):
    density = ManifoldParzenDensity(6, noise_variance=1e-3).fit(X, sample_weight=weights)

    def fit(X, weights, queries):
        return manifold_parzen(X, weights, 6, 1, 1e-3, queries)

    expected = np.average(leave_one_out(X, weights, fit), weights=weights)
    assert_allclose(density.leave_one_out_score(), expected, rtol=1e-8)
    loo = ParzenDensity("loo").fit(X, sample_weight=weights)
    near = [ParzenDensity(loo.bandwidth_ * f).fit(X, sample_weight=weights) for f in (0.98, 1.02)]
    assert all(loo.leave_one_out_score() > other.leave_one_out_score() for other in near)
    with pytest.raises(ValueError, match="n_neighbors=None: leaving rows out"):
        ManifoldParzenDensity(None).fit(X).leave_one_out_score()


def test_search_by_leaving_out_is_a_loop_over_fits(X, weights):
    search = ManifoldParzenDensityCV((3, 8), n_components=(0, 1, 3), noise_variance=(1e-4, 1e-2))
    search.fit(X, sample_weight=weights)
    for i, k in enumerate((3, 8)):
        for j, d in enumerate((0, 1, 3)):
            for h, noise in enumerate((1e-4, 1e-2)):
                density = ManifoldParzenDensity(k, n_components=d, noise_variance=noise)
                density.fit(X, sample_weight=weights)
                assert_allclose(search.scores_[i, j, h], density.leave_one_out_score(), rtol=1e-8)
    assert search.best_score_ == search.scores_.max()
    table = search.cv_results_
    assert_array_equal(table["split0_test_score"], search.scores_.ravel())
    assert table["rank_test_score"][search.best_index_] == 1
    for each, score in zip(table["params"], table["mean_test_score"], strict=True):
        density = ManifoldParzenDensity(**each).fit(X, sample_weight=weights)
        assert_allclose(score, density.leave_one_out_score(), rtol=1e-8)
    assert search.best_params_ == table["params"][search.best_index_]
    check_best(search, X, weights)
    # Whatever the order of the values.
    other = ManifoldParzenDensityCV((8, 3), n_components=(3, 1, 0), noise_variance=(1e-2, 1e-4))
    check_best(other.fit(X, sample_weight=weights), X, weights)
    assert_allclose(other.scores_, search.scores_[::-1, ::-1, ::-1], rtol=1e-8)


def test_search_by_validation_is_a_loop_over_fits(X, weights, rng):
    X_val = spiral(rng, 100)
    search = ManifoldParzenDensityCV((3, 8), n_components=(1, 2), neighborhood=RBF(100.0))
    search.fit(X, sample_weight=weights, X_val=X_val)
    assert search.scores_.shape == (2, 2, 10)
    density = ManifoldParzenDensity(8, n_components=1, neighborhood=RBF(100.0))
    density.set_params(noise_variance=search.noise_variances_[4])
    score = density.fit(X, sample_weight=weights).score(X_val)
    assert_allclose(search.scores_[1, 0, 4], score, rtol=1e-9)
    check_best(search, X, weights)


def check_best(search, X, weights):
    best = ManifoldParzenDensity(
        search.n_neighbors_,
        n_components=search.n_components_,
        noise_variance=search.noise_variance_,
        neighborhood=search.neighborhood,
    ).fit(X, sample_weight=weights)
    assert_allclose(search.score_samples(X + 0.1), best.score_samples(X + 0.1), rtol=1e-9)
    assert_allclose(search.leave_one_out_score(), best.leave_one_out_score(), rtol=1e-9)
    assert search.gaussians_.n_axes == min(search.n_components_, 2)


RULE_GRID = {"n_components": (0, 1, 2), "noise_variance": (1e-4, 4e-4, 1e-3)}


def check_one_standard_error(search, least, values):
    """Few axes, much noise, few neighbours, within the error of the best one's log-densities."""
    assert_array_equal(search.scores_, least.scores_)
    error = values.std(ddof=1) / np.sqrt(len(values))
    cells = np.argwhere(search.scores_ >= values.mean() - error).tolist()
    k, d, s = min(cells, key=lambda cell: (cell[1], -RULE_GRID["noise_variance"][cell[2]], cell[0]))
    assert search.best_score_ == search.scores_[k, d, s] < least.best_score_
    assert list(search.best_params_.values()) == [(3, 8)[k], d, RULE_GRID["noise_variance"][s]]


def test_one_standard_error_over_the_rows_left_out(X, weights):
    least = ManifoldParzenDensityCV((3, 8), **RULE_GRID).fit(X, sample_weight=weights)
    search = ManifoldParzenDensityCV((3, 8), rule="one_se", **RULE_GRID)
    search.fit(X, sample_weight=weights)

    def fit(rows, weights, queries):
        density = ManifoldParzenDensity(**least.best_params_).fit(rows, sample_weight=weights)
        return density.score_samples(queries)

    values = np.repeat(leave_one_out(X, weights, fit), weights.astype(int))
    check_one_standard_error(search, least, values)
    check_best(search, X, weights)
    with pytest.raises(ValueError, match="rule must be one of"):
        ManifoldParzenDensityCV(rule="best").fit(X)


def test_one_standard_error_over_validation_rows(X, rng):
    X_val = spiral(rng, 6)
    least = ManifoldParzenDensityCV((3, 8), **RULE_GRID).fit(X, X_val=X_val)
    search = ManifoldParzenDensityCV((3, 8), rule="one_se", **RULE_GRID).fit(X, X_val=X_val)
    best = ManifoldParzenDensity(**least.best_params_).fit(X)
    check_one_standard_error(search, least, best.score_samples(X_val))
    alone = ManifoldParzenDensityCV((3, 8), rule="one_se", **RULE_GRID).fit(X, X_val=X_val[:1])
    assert alone.best_score_ == alone.scores_.max()  # one row has no standard error


def test_search_finds_the_manifold(rng):
    search = ManifoldParzenDensityCV().fit(spiral(rng, 300))
    assert search.n_components_ == 1
    assert 0.005 < search.noise_variance_**0.5 < 0.02
    parzen = ParzenDensity("loo").fit(spiral(rng, 300))
    assert search.score(spiral(rng, 1000)) > parzen.score(spiral(rng, 1000)) + 0.1


def test_grid_search(X):
    grid = {"n_components": [0, 1, 2], "noise_variance": [1e-4, 1e-2], "n_neighbors": [5, 10]}
    search = GridSearchCV(ManifoldParzenDensity(), grid, cv=3).fit(X)
    assert search.best_params_["n_components"] > 0
    table = search.cv_results_
    density = ManifoldParzenDensity(**table["params"][3])
    folds = [
        density.fit(np.delete(X, fold, axis=0)).score(X[fold])
        for fold in np.array_split(np.arange(80), 3)
    ]
    assert_allclose(table["mean_test_score"][3], np.mean(folds), rtol=1e-10)


def test_parameters_count_at_the_next_fit(X):
    density = ManifoldParzenDensity(5, noise_variance=0.01).fit(X)
    expected = density.score_samples(X)
    density.set_params(noise_variance=1.0, n_components=0)
    assert_array_equal(density.score_samples(X), expected)


def test_float32(X):
    density = ManifoldParzenDensity(5).fit(X.astype(np.float32))
    assert density.gaussians_.centres.dtype == np.float32
    assert_allclose(
        density.score_samples(X.astype(np.float32)),
        ManifoldParzenDensity(5).fit(X).score_samples(X),
        rtol=1e-4,
        atol=1e-4,
    )


BAD = [
    (ParzenDensity(0.0), "bandwidth must be"),
    (ParzenDensity("best"), "bandwidth must be one of"),
    (ManifoldParzenDensity(0), "n_neighbors must be"),
    (ManifoldParzenDensity(n_components=-1), "n_components must be"),
    (ManifoldParzenDensity(noise_variance=0.0), "noise_variance must be"),
    (ManifoldParzenDensity(neighborhood="soft"), "kernel must be one of"),
    (ManifoldParzenDensity(neighborhood="precomputed"), "neighborhood must be"),
    (ManifoldParzenDensity(None, neighborhood=Linear()), "neighborhood: the kernel has a value"),
    (ManifoldParzenDensityCV("all"), "n_neighbors must be"),
    (ManifoldParzenDensityCV(n_components=()), "n_components must hold a value"),
    (ManifoldParzenDensityCV(noise_variance=(0.1, -1.0)), "noise_variance must be"),
    (ManifoldParzenDensityCV(n_neighbors=(2, 0.5)), "n_neighbors must be"),
]


@pytest.mark.parametrize(("density", "message"), BAD)
def test_one_clear_error(density, message, X):
    with pytest.raises(ValueError, match=message):
        density.fit(X)


# Classes


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::2], np.array(["c", "a", "b"])[y[::2]], X[1::2], np.array(["c", "a", "b"])[y[1::2]]


def test_bayes_rule(iris):
    X, y, X_test, y_test = iris
    weights = np.where(y == "b", 2.0, 1.0)
    density = ManifoldParzenDensity(5, noise_variance=0.05)
    model = DensityClassifier(density).fit(X, y, weights)
    assert_array_equal(model.classes_, ["a", "b", "c"])
    joint = np.column_stack(
        [manifold_parzen(X[y == c], weights[y == c], 5, 1, 0.05, X_test)
         + np.log(weights[y == c].sum() / weights.sum()) for c in "abc"]
    )  # fmt: skip
    assert_allclose(model.decision_function(X_test), joint, rtol=1e-9, atol=1e-9)
    p = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    assert_allclose(model.predict_proba(X_test), p, rtol=1e-7, atol=1e-12)
    assert_allclose(model.predict_log_proba(X_test), np.log(p), rtol=1e-6, atol=1e-9)
    assert_allclose(model.predict_joint_log_proba(X_test), joint, rtol=1e-9, atol=1e-9)
    assert_array_equal(model.predict(X_test), np.array(["a", "b", "c"])[joint.argmax(axis=1)])
    assert model.score(X_test, y_test) > 0.9
    assert log_loss(y_test, model.predict_proba(X_test)) < 0.3


def test_two_classes_have_one_decision_value(iris):
    X, y, X_test, _ = iris
    model = DensityClassifier(priors=[0.9, 0.1]).fit(X[y != "c"], y[y != "c"])
    values = [d.score_samples(X_test) for d in model.densities_]
    expected = values[1] - values[0] + np.log(0.1 / 0.9)
    assert_allclose(model.decision_function(X_test), expected)
    assert_array_equal(model.predict(X_test), np.where(expected > 0, "b", "a"))
    assert_allclose(model.predict_proba(X_test)[:, 1], 1 / (1 + np.exp(-expected)), rtol=1e-9)
    assert [type(d) for d in model.densities_] == [ParzenDensity] * 2


def test_far_rows_have_the_most_frequent_class(iris):
    X, y, _, _ = iris
    model = DensityClassifier(priors=[0.2, 0.5, 0.3]).fit(X, y)
    far = np.full((1, 4), 1e200)
    assert_array_equal(model.predict(far), "b")
    assert_allclose(model.predict_proba(far), [[0.2, 0.5, 0.3]])
    never = DensityClassifier(priors=[0.0, 0.5, 0.5]).fit(X, y)
    assert "a" not in never.predict(X)
    assert_array_equal(never.predict_proba(X)[:, 0], 0.0)


def test_other_densities_and_a_search(iris):
    X, y, X_test, y_test = iris
    model = DensityClassifier(GaussianMixture(1, random_state=0)).fit(X, y)
    assert model.score(X_test, y_test) > 0.9
    grid = {"density__n_components": [0, 2], "density__noise_variance": [0.01, 0.1]}
    search = GridSearchCV(DensityClassifier(ManifoldParzenDensity(5)), grid, scoring="neg_log_loss")
    assert search.fit(X, y).score(X_test, y_test) > -0.3


@pytest.mark.parametrize("priors", [[0.5, 0.5], [0.5, 0.6, -0.1], [0.0, 0.0, 0.0]])
def test_priors_that_are_none(priors, iris):
    with pytest.raises(ValueError, match="priors must be 3 non-negative numbers"):
        DensityClassifier(priors=priors).fit(*iris[:2])
    with pytest.raises(ValueError, match="one class only"):
        DensityClassifier().fit(iris[0], np.zeros(75))


# Files


@pytest.mark.parametrize("n", [2, 20])
def test_saved_and_loaded(n, tmp_path, rng):
    X, y = rng.normal(size=(60, n)), rng.integers(2, size=60)
    models = [
        ParzenDensity("loo").fit(X),
        ManifoldParzenDensity(5, neighborhood=RBF(0.1)).fit(X),
        ManifoldParzenDensityCV((3, 5), noise_variance=[0.1, 1.0]).fit(X),
    ]
    for model in models:
        pursuit.save(model, tmp_path / "density")
        again = pursuit.load(tmp_path / "density")
        assert_array_equal(again.score_samples(X), model.score_samples(X))
        assert_array_equal(again.sample(3, 0), model.sample(3, 0))
        assert again.leave_one_out_score() == model.leave_one_out_score()
    model = DensityClassifier(ManifoldParzenDensity(5), priors=[0.3, 0.7]).fit(X, y)
    pursuit.save(model, tmp_path / "classes")
    assert_array_equal(pursuit.load(tmp_path / "classes").predict_proba(X), model.predict_proba(X))


def test_no_warnings_on_plain_data(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ManifoldParzenDensityCV().fit(X)


def test_a_classifier_refuses_a_single_class():
    X, y = np.arange(6.0).reshape(3, 2), ["ant", "ant", "bee"]
    with pytest.raises(ValueError, match="one class only .ant."):
        DensityClassifier(ParzenDensity()).fit(X, y, [1, 1, 0])


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_a_search_has_a_smallest_noise_and_says_so(scale, rng):
    """On a line, and in pairs a rounding error apart, the likelihood asks for no noise at all."""
    t = rng.uniform(size=(60, 1))
    pairs = np.repeat(rng.normal(size=(30, 2)), 2, axis=0) * (1 + 1e-13 * np.arange(60)[:, None])
    for X in (t * [1.0, 2.0], np.hstack([t, np.zeros((60, 2))]), pairs):
        with pytest.warns(
            UserWarning, match="still rises at the smallest noise variance.*give noise_variance"
        ):
            search = ManifoldParzenDensityCV((5, 10)).fit(scale * X)
        radius = np.sort(((X - X[:, None]) ** 2).sum(axis=2), axis=1)[:, 5]
        share = search.noise_variance_ / (scale**2 * np.median(radius) / X.shape[1])
        assert 1e-4 <= share <= 4e-4
    given = ManifoldParzenDensityCV((5,), noise_variance=[1e-12 * scale**2]).fit(scale * t)
    assert given.noise_variance_ == 1e-12 * scale**2


def test_the_smallest_noise_changes_no_ordinary_search(rng):
    t = rng.uniform(0, 3, size=(80, 1))
    X = np.hstack([np.sin(t), t, t**2]) + 0.01 * rng.normal(size=(80, 3))
    search = ManifoldParzenDensityCV((5, 10)).fit(X)
    steps = np.log(search.noise_variances_ / neighbor_variance(distinct_rows(X))) / np.log(4)
    assert_allclose(steps, steps.round(), atol=1e-9)
    assert len(steps) == 10 and -8 <= steps[0] <= -4
    assert search.noise_variance_ > search.noise_variances_[1]
