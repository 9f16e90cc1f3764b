"""The paths that most users take, each of some seconds at most, for pytest-benchmark.

    pip install -e ".[test,benchmark]"
    pytest -p no:xdist --benchmark-autosave benchmarks/main_paths.py
    pytest -p no:xdist --benchmark-compare benchmarks/main_paths.py

The first run keeps its figures in `.benchmarks/`, the second sets those of a change beside them. No
bound is tested: what a path costs beside other libraries is in `benchmarks/speed/`.
"""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.svm import SVC

import pursuit

pytest.importorskip("pytest_benchmark")


@pytest.fixture(scope="module")
def classes():
    """Three classes in 20 dimensions."""
    return make_classification(
        4000, n_features=20, n_informative=10, n_classes=3, random_state=0, class_sep=1.5
    )


@pytest.fixture(scope="module")
def numbers():
    """A smooth function of ten features."""
    return make_friedman1(1500, noise=1.0, random_state=0)


FITS = {
    "matching pursuit, 100 vectors": pursuit.KernelMatchingPursuitRegressor(100),
    "any loss, 30 vectors": pursuit.KernelMatchingPursuitRegressor(30, loss="huber"),
    "moving vectors, 20": pursuit.SparseKernelRegressor(20, random_state=0),
    "Nystroem, 100 landmarks": pursuit.GreedyNystroem(n_components=100),
    "kernel PCA, 100 vectors": pursuit.SparseKernelPCA(100),
    "Parzen windows, leave-one-out": pursuit.ParzenDensity("loo"),
    "kernel regression, leave-one-out": pursuit.NadarayaWatsonRegressor(),
    "a stream, 50 vectors": pursuit.OnlineKernelRegressor(50),
}


@pytest.mark.parametrize("name", FITS)
def test_fit(benchmark, name, numbers):
    benchmark(FITS[name].fit, *numbers)


CLASSIFIERS = {
    "matching pursuit, 100 vectors": pursuit.KernelMatchingPursuitClassifier(100),
    "cross-entropy, 30 vectors": pursuit.KernelMatchingPursuitClassifier(30, loss="log_loss"),
    "moving vectors, 20": pursuit.SparseKernelClassifier(20, random_state=0),
    "reduced support vectors, 50": pursuit.ReducedSupportVectorClassifier(50, random_state=0),
    "convex network": pursuit.ConvexNetworkClassifier(n_components=50),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_fit_classes(benchmark, name, classes):
    X, y = classes
    benchmark(CLASSIFIERS[name].fit, X[:2000], y[:2000])


def test_compress(benchmark, classes):
    X, y = classes
    machine = SVC().fit(X[:2000], y[:2000])
    benchmark(pursuit.compress, machine, n_components=20)


@pytest.mark.parametrize("n_rows", [1, 1500])
def test_predict(benchmark, n_rows, numbers):
    X, y = numbers
    model = pursuit.KernelMatchingPursuitRegressor(100).fit(X, y)
    benchmark(model.predict, X[:n_rows])


def test_predictor(benchmark, numbers):
    X, y = numbers
    benchmark(pursuit.KernelMatchingPursuitRegressor(100).fit(X, y).predictor().decision, X[0])


def test_neighbors(benchmark, classes):
    X, y = classes
    model = pursuit.HyperplaneKNeighborsClassifier().fit(X[:3000], y[:3000])
    benchmark(model.predict, X[3000:])


def test_save_and_load(benchmark, numbers, tmp_path):
    model = pursuit.KernelMatchingPursuitRegressor(100).fit(*numbers)

    def there_and_back():
        pursuit.save(model, tmp_path / "model.pursuit")
        return pursuit.load(tmp_path / "model.pursuit")

    loaded = benchmark(there_and_back)
    np.testing.assert_array_equal(loaded.predict(numbers[0]), model.predict(numbers[0]))


def test_import(benchmark):
    benchmark(subprocess.run, [sys.executable, "-c", "import pursuit"], check=True)
