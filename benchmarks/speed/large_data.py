"""Time and memory of each estimator by rows, at its defaults but for the sizes that are named.

Rows of 20 features, a sine of two of them, with noise; 1000, 4000 and 16 000 rows, each fit in a
process of its own (a copy of one that has loaded the package) with one BLAS thread. Time: seconds
of the processor inside ``fit``, or, of a neighbour method or a density, inside the prediction or
scoring of 1000 other rows, which is its work. Memory: how far the peak of the process rises above
what it was when its data were there. An
estimator that took more than `LONGEST` seconds is not tried on more rows. The last two columns are
the powers of the number of rows by which time and memory grew from the second last size to the
last; memory that rose by less than 10 MB has none.
"""

import multiprocessing
import os
import resource
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import pursuit
from pursuit.linalg import blocks

SIZES = (1000, 4000, 16_000)
N_FEATURES, N_QUERIES = 20, 1000
LONGEST = float(os.environ.get("LARGE_DATA_LONGEST", "2"))
SMALLEST = 10e6

FITS = {
    "KernelMatchingPursuitRegressor": {"n_components": 100},
    "KernelMatchingPursuitClassifier": {"n_components": 100},
    "KernelMatchingPursuitClassifierCV": {"n_components": 100},
    "SparseKernelRegressor": {"n_components": 50},
    "SparseKernelClassifier": {"n_components": 50},
    "SparseOneClass": {"n_components": 20},
    "SparseKernelPCA": {"n_components": 100},
    "GreedyNystroem": {"n_components": 100},
    "SparseKernelCCA": {"n_components": 5},
    "OnlineKernelRegressor": {"n_components": 50},
    "RelevanceVectorRegressor": {},
    "RelevanceVectorClassifier": {},
    "ConvexNetworkClassifier": {},
    "SparseLargeMarginClassifier": {"n_components": 20},
    "ReducedSetClassifier": {"n_components": 20},
    "ReducedSupportVectorClassifier": {"n_components": 20},
}
SCORED = {
    "HyperplaneKNeighborsClassifier": {},
    "ConvexKNeighborsClassifier": {},
    "ParzenDensity": {},
    "ManifoldParzenDensity": {},
    "LocalGaussianDensity": {},
    "NadarayaWatsonRegressor": {},
}


def run(report):
    """Each estimator on as many rows as its time allows."""
    for what, names in (("fit", FITS), (f"of {N_QUERIES} queries", SCORED)):
        rows = [row(name, options) for name, options in names.items()]
        header = ["", *(f"{n} rows: s, MB" for n in SIZES), "time ~ n^", "memory ~ n^"]
        report.table(header, rows, f"{what}, 20 features")


def row(name, options):
    """Figures of one estimator."""
    found = []
    for n in SIZES:
        found.append(in_a_copy(measure, name, options, n))
        if found[-1][0] > LONGEST:
            break
    cells = [f"{seconds:.2f}, {peak / 1e6:.0f}" for seconds, peak in found]
    cells += ["-"] * (len(SIZES) - len(cells))
    return [name, *cells, *(power(found, part) for part in (0, 1))]


def in_a_copy(function, *arguments):
    """What the function gives in a copy of this process."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(function(*arguments)))
    process.start()
    sender.close()
    found = receiver.recv()
    process.join()
    return found


def power(found, part):
    """By which power of the number of rows a figure grew at last."""
    if len(found) < 2 or (part == 1 and found[-1][1] < SMALLEST):
        return "-"
    before, after = found[-2][part], found[-1][part]
    ratio = SIZES[len(found) - 1] / SIZES[len(found) - 2]
    return f"{np.log(after / before) / np.log(ratio):.1f}" if before > 0 else "-"


def measure(name, options, n_rows):
    """Seconds of the processor, and bytes above the start."""
    warnings.simplefilter("ignore")  # fewer vectors than asked for
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, N_FEATURES))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n_rows)
    labels = name.endswith(("Classifier", "ClassifierCV"))
    targets = {"y": y > 0} if labels else {"y": y}
    if name == "SparseKernelCCA":
        targets = {"y": np.column_stack([y, X[:, 2]])}
    model = getattr(pursuit, name)(**options)
    queries = rng.standard_normal((N_QUERIES, N_FEATURES))
    with threadpool_limits(1), blocks.at_most_threads(1):
        if name in FITS:
            return spent(lambda: model.fit(X, **targets))
        model.fit(X, **targets)
        score = model.score_samples if hasattr(model, "score_samples") else model.predict
        return spent(lambda: score(queries))


def spent(work):
    """Seconds of the processor, and how far the peak of memory rose."""
    before, start = peak(), time.process_time()
    work()
    return time.process_time() - start, peak() - before


def peak():
    """Most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
