"""Densities drawn with their points."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from pursuit import DensityDisplay, ManifoldParzenDensity


@pytest.fixture
def moons():
    X, _ = make_moons(60, noise=0.05, random_state=0)
    return X, ManifoldParzenDensity(noise_variance=0.01).fit(X)


@pytest.fixture
def ax():
    return Figure().subplots()


def test_shades_of_the_logarithm(moons, ax):
    X, density = moons
    display = DensityDisplay.from_estimator(density, X, grid_resolution=30, ax=ax)
    assert display.xx0.shape == display.log_density.shape == (30, 30)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    assert_allclose(display.log_density.ravel(), density.score_samples(grid))
    assert display.xx0.min() < X[:, 0].min()
    assert_array_equal(display.points_.get_offsets(), X)
    assert display.surface_.levels[-1] == pytest.approx(display.log_density.max())
    assert ax.get_title() == "ManifoldParzenDensity"
    assert [a.get_ylabel() for a in display.figure_.axes] == ["Feature 1", "Log-density"]


def test_the_area_above_a_threshold(moons, ax):
    X, density = moons
    display = DensityDisplay.from_estimator(
        density, X, grid_resolution=60, ax=ax, threshold=0.2, name="Area"
    )
    assert display.surface_.levels[0] == np.log(0.2)
    (area,) = display.surface_.get_paths()
    inside = area.contains_points(X)
    assert inside.mean() > 0.9
    assert not area.contains_points([[0.0, -0.6], [2.0, 1.0]]).any()
    assert ax.get_title() == "Area"
    assert len(display.figure_.axes) == 1


def test_a_threshold_above_all_values_leaves_no_area(moons, ax):
    X, density = moons
    display = DensityDisplay.from_estimator(density, X, grid_resolution=10, ax=ax, threshold=1e6)
    assert sum(len(path.vertices) for path in display.surface_.get_paths()) == 0


def test_names_of_columns_and_other_densities(moons, ax):
    X, _ = moons
    frame = pd.DataFrame(X, columns=["east", "north"])
    mixture = GaussianMixture(2, random_state=0).fit(frame)
    display = DensityDisplay.from_estimator(
        mixture, frame, grid_resolution=10, ax=ax, colorbar=False
    )
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("east", "north")
    assert len(display.figure_.axes) == 1
    again = display.plot(Figure().subplots(), point_size=9.0)
    assert_array_equal(again.points_.get_sizes(), [9.0])


def test_errors(moons):
    X, density = moons
    with pytest.raises(ValueError, match="two features, X has 3"):
        DensityDisplay.from_estimator(density, np.hstack([X, X[:, :1]]))
    with pytest.raises(ValueError, match="GaussianMixture|without score_samples"):
        DensityDisplay.from_estimator(_Nothing().fit(X), X)
    with pytest.raises(ValueError, match="grid_resolution must be"):
        DensityDisplay.from_estimator(density, X, grid_resolution=1)
    with pytest.raises(ValueError, match="threshold must be"):
        DensityDisplay.from_estimator(density, X, threshold=0.0)


class _Nothing(PCA):
    score_samples = property()
