"""Data for the displays; every figure is closed."""

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.preprocessing import scale

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402 the back end is chosen first


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), np.array(["malignant", "benign"])[y]


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (120, 2))
    return X, np.sin(X[:, 0]) * np.cos(X[:, 1])
