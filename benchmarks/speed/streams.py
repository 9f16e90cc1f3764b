"""Streams: rows in blocks against all rows at once, and functions that change.

1. Covertype, the second class against the others, 100 000 rows, standardised by the first 10 000:
   `KernelMatchingPursuitClassifier` by `partial_fit` in 20 blocks, 2500 candidates, 200 vectors,
   against one `fit` with the same candidates, in turn in one process.
2. kin40k in its order, 36 000 rows as a stream, 4000 at the end for the test; electricity in its
   order, the first 40 000 rows as a stream, decided before they are learned from (prequential), and
   the last 5312 for the test. 200 vectors for all: `OnlineKernelRegressor` or
   `OnlineKernelClassifier`, `KernelMatchingPursuit*` by one `fit` on the stream's rows, and SGD on
   200 features of scikit-learn's Nystroem. Kernel width, noise and forgetting of each by the last
   fifth of the first 10 000 rows, which comes after those that it was fitted on.
3. A million rows of a function that turns, 50 vectors: memory after 100 000 rows and at the end,
   and the error over the last 1000 rows before they are learned from.
"""

import itertools
import resource

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.report import percent
from benchmarks.timing import alternate, seconds
from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    OnlineKernelClassifier,
    OnlineKernelRegressor,
    datasets,
)

VECTORS = 200
FIRST = 10_000
WIDTHS = (0.25, 0.5, 1.0, 2.0)


def run(report):
    """All three questions."""
    blocks_against_all(report)
    in_their_order(report)
    a_million_rows(report)


def blocks_against_all(report):
    """Question 1."""
    X, y = datasets.load("covtype")
    rows = np.random.default_rng(0).permutation(len(X))[:100_000]
    X, y = X[rows], y[rows] == 2
    X = StandardScaler().fit(X[:FIRST]).transform(X)
    gamma = 1.0 / X.shape[1]

    def stream():
        model = KernelMatchingPursuitClassifier(VECTORS, gamma=gamma, random_state=0)
        for part in np.array_split(np.arange(len(X)), 20):
            model.partial_fit(X[part], y[part], classes=[False, True])
        return model

    candidates = stream().statistics_.vectors

    def batch():
        model = KernelMatchingPursuitClassifier(VECTORS, gamma=gamma, dictionary=candidates)
        return model.fit(X, y)

    times, fitted = alternate({"stream": stream, "batch": batch}, rounds=1)
    values = {name: model.decision_function(X[:5000]) for name, model in fitted.items()}
    gap = np.abs(values["stream"] - values["batch"]).max()
    report.table(
        ["", "seconds", "training error %"],
        [
            [name, f"{times[name]:.1f}", percent(fitted[name].predict(X[:5000]) != y[:5000])]
            for name in fitted
        ],
        "Covertype, 100 000 rows, 20 blocks (each followed by a fit)",
    )
    report.check("largest difference of a decision value", gap, at_most=1e-8)


def in_their_order(report):
    """Question 2."""
    X, y = datasets.load("kin40k")
    scores, rows = compare(X, y, 36_000, regression=True)
    report.table(["", "R^2", "seconds", "chosen"], rows, "kin40k, 200 vectors")
    report.check("kin40k: R^2 lost to one fit", scores["batch"] - scores["online"], at_most=0.01)
    X, y = datasets.load("electricity")
    scores, rows = compare(X, y, 40_000, regression=False)
    report.table(["", "accuracy", "seconds", "chosen"], rows, "electricity, 200 vectors, the end")
    lost = 100 * (scores["batch"] - scores["online"])
    report.check("electricity: points lost to one fit", lost, at_most=0.5)


def compare(X, y, n_stream, *, regression):
    """Scores on the rows after the stream, of the three ways."""
    scaler = StandardScaler().fit(X[:FIRST])
    X = scaler.transform(np.asarray(X, dtype=float))
    score = r2_score if regression else accuracy_score
    scores, rows = {}, []
    for name, (grid, make) in ways(regression).items():
        found = []
        cut = FIRST * 4 // 5
        for options in grid:
            model = make(options, X[:cut]).fit(X[:cut], y[:cut])
            found.append(score(y[cut:FIRST], model.predict(X[cut:FIRST])))
        best = grid[int(np.argmax(found))]
        elapsed, model = seconds(
            lambda make=make, best=best: make(best, X[:n_stream]).fit(X[:n_stream], y[:n_stream])
        )
        scores[name] = score(y[n_stream:], model.predict(X[n_stream:]))
        rows.append([name, f"{scores[name]:.4f}", f"{elapsed:.1f}", str(best)])
    return scores, rows


def ways(regression):
    """Each way's grid and its model of an entry of it."""
    online = OnlineKernelRegressor if regression else OnlineKernelClassifier
    pursuit = KernelMatchingPursuitRegressor if regression else KernelMatchingPursuitClassifier
    linear = SGDRegressor if regression else SGDClassifier
    forgetting = (1.0, 0.9999, 0.999)

    def width(X, factor):
        return factor / X.shape[1]

    def make_online(options, X):
        factor, alpha, kept = options
        return online(VECTORS, gamma=width(X, factor), alpha=alpha, forgetting=kept)

    def make_batch(options, X):
        return pursuit(VECTORS, gamma=width(X, options[0]), random_state=0)

    def make_linear(options, X):
        features = Nystroem(gamma=width(X, options[0]), n_components=VECTORS, random_state=0)
        return make_pipeline(features, linear(alpha=options[1], random_state=0))

    return {
        "online": (list(itertools.product(WIDTHS, (0.1, 0.01), forgetting)), make_online),
        "batch": (list(itertools.product(WIDTHS)), make_batch),
        "Nystroem + SGD": (list(itertools.product(WIDTHS, (1e-4, 1e-6))), make_linear),
    }


def a_million_rows(report):
    """Question 3."""
    rng = np.random.default_rng(0)
    model, n_rows, block = OnlineKernelRegressor(50, gamma=1.0, forgetting=0.999), 1_000_000, 10_000
    memory, errors = {}, np.empty(0)
    for start in range(0, n_rows, block):
        X = rng.uniform(-2, 2, size=(block, 2))
        phase = 2 * np.pi * (start + np.arange(block)) / 200_000
        y = np.sin(X[:, 0] + phase) * X[:, 1] + 0.1 * rng.standard_normal(block)
        if start + block == n_rows:
            model.partial_fit(X[:-1000], y[:-1000])
            for part in np.array_split(np.arange(block - 1000, block), 100):
                errors = np.append(errors, y[part] - model.predict(X[part]))
                model.partial_fit(X[part], y[part])
        else:
            model.partial_fit(X, y)
        if start + block in (100_000, n_rows):
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            memory[start + block] = peak
    rmse = float(np.sqrt(np.mean(errors**2)))
    report.table(
        ["rows", "peak memory, MiB"],
        [[n, f"{peak:.0f}"] for n, peak in memory.items()],
        "A function that turns once in 200 000 rows, noise 0.1, 50 vectors",
    )
    report.add(f"Root mean squared error over the last 1000 rows, before learning: {rmse:.4f}.")
    grown = memory[n_rows] - memory[100_000]
    report.check("memory grown from 100 000 to 1 000 000 rows, MiB", grown, at_most=10)
    report.check("error over the last 1000 rows", rmse, at_most=0.13)
