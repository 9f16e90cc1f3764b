"""Matching pursuit, predictions, neighbours and windows on a GPU, beside the processor.

For a machine with torch and a GPU; it takes some minutes there. Rows: MNIST's 60 000 training
digits over 255, in double precision (where there is no MNIST, clusters of the same shape, which the
report says). RBF kernel, gamma = 0.02. Every time is a wall time from arrays on the device to
numbers of the result on the host, after one small run that loads the libraries.

- The path: 20 000 candidates, 3000 vectors, ten classes on one basis, squared error. Not on the
  device are the reading of the rows and the temperature of the probabilities.
- The same at a size that the processor can do, on both: 2500 candidates, 300 vectors.
- Decision values of 1 000 000 rows by the 300 vectors.
- HKNN with all rows as references, 2000 queries; Parzen windows on 10 000 rows, 2000 queries.

`--small` runs all of it at some hundredths of these sizes; `--device cpu` on torch's processor. The
figures are written as gpu.json, too.
"""

import json
import os
from contextlib import ExitStack
from unittest import mock

import numpy as np
import sklearn
from sklearn.datasets import make_blobs

import pursuit
from benchmarks.timing import Clock, seconds
from pursuit import datasets
from pursuit._arrays import to_numpy
from pursuit.greedy import make_pursuit
from pursuit.greedy.multi_output import MultiOutputPursuit

GAMMA = 0.02
LARGE = {"rows": 60_000, "path": (20_000, 3000), "both": (2500, 300), "predicted": 1_000_000}
LARGE |= {"queries": 2000, "windows": 10_000}
SMALL = {"rows": 1500, "path": (600, 60), "both": (300, 30), "predicted": 5000}
SMALL |= {"queries": 50, "windows": 500}


def add_options(parser):
    """Options of this benchmark."""
    parser.add_argument("--small", action="store_true", help="sizes that any machine can do")
    parser.add_argument("--device", default="cuda", help="of torch (default: %(default)s)")


def run(report, options):
    """Each part on the device, and on the processor where that can be waited for."""
    os.environ["SCIPY_ARRAY_API"] = "1"
    import torch

    sizes = SMALL if options.small else LARGE
    X, y = rows_of(report, sizes["rows"])
    report.add(f"Device: {device_name(torch, options.device)}, torch {torch.__version__}.")
    figures = {"device": device_name(torch, options.device), "sizes": sizes}
    with sklearn.config_context(array_api_dispatch=True):
        place = torch.asarray(X, device=options.device)
        labels = torch.asarray(y, device=options.device)
        matching_pursuit(*SMALL["both"]).fit(place[:1000], labels[:1000]).predict(place[:100])
        figures["path"] = path(report, place, labels, sizes["path"])
        models, figures["both"] = both(report, (X, y), (place, labels), sizes)
        figures["predictions"] = predictions(report, models, place, sizes)
        figures["others"] = others(report, (X, y), (place, labels), sizes)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "gpu.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


def rows_of(report, n_rows):
    """MNIST over 255, or clusters of its shape."""
    try:
        X, y = datasets.load("mnist", "train")
    except Exception as error:  # no folder of data and no network
        report.add(f"No MNIST here ({type(error).__name__}): clusters of its shape.")
        X, y = make_blobs(n_rows, 784, centers=40, cluster_std=60.0, random_state=0)
        X, y = np.clip(X * 8.0 + 60.0, 0.0, 255.0), y % 10
    rows = np.random.default_rng(0).permutation(len(X))[:n_rows]
    return np.asarray(X[rows], dtype=np.float64) / 255.0, np.asarray(y[rows], dtype=np.int64)


def device_name(torch, device):
    """What the device is called."""
    return torch.cuda.get_device_name() if device == "cuda" else f"torch's {device}"


def matching_pursuit(n_candidates, n_components):
    """The classifier of all parts."""
    return pursuit.KernelMatchingPursuitClassifier(
        n_components, gamma=GAMMA, n_candidates=n_candidates, random_state=0
    )


def settled(function):
    """Wall seconds of a function until its numbers are on the host, and its result."""

    def waited():
        result = function()
        to_numpy(getattr(result, "dual_coef_", result))
        return result

    return seconds(waited)


def path(report, X, y, size):
    """The long path, and where its time goes."""
    pass_, steps = Clock(), Clock()
    with ExitStack() as stack:
        wrapped = pass_.around(lambda found: found())
        original = make_pursuit.device_equations
        stack.enter_context(
            mock.patch.object(
                make_pursuit,
                "device_equations",
                lambda *given, **named: wrapped(lambda: original(*given, **named)),
            )
        )
        extend = MultiOutputPursuit.extend
        timed = steps.around(lambda found: found())
        stack.enter_context(
            mock.patch.object(
                MultiOutputPursuit,
                "extend",
                lambda *given: timed(lambda: extend(*given)),
            )
        )
        total, model = settled(lambda: matching_pursuit(*size).fit(X, y))
    found = {"fit": total, "pass over the rows": pass_.seconds, "steps": steps.seconds}
    found["on the host"] = total - pass_.seconds - steps.seconds
    found["vectors"] = model.n_components_
    report.table(
        ["", "seconds"],
        [[name, f"{found[name]:.2f}"] for name in list(found)[:4]],
        f"{X.shape[0]} rows, {size[0]} candidates, {model.n_components_} vectors",
    )
    report.check("seconds of the long path", total, at_most=30.0)
    return found


def both(report, host, device, sizes):
    """The shorter path on the processor and on the device, and how far apart they end."""
    on_host, ours = seconds(lambda: matching_pursuit(*sizes["both"]).fit(*host))
    on_device, theirs = settled(lambda: matching_pursuit(*sizes["both"]).fit(*device))
    few = slice(0, 1000)
    apart = np.abs(
        to_numpy(theirs.decision_function(device[0][few])) - ours.decision_function(host[0][few])
    )
    same = int((to_numpy(theirs.support_) == ours.support_).sum())
    rows = [["processor", f"{on_host:.2f}"], ["device", f"{on_device:.2f}"]]
    report.table(["", "fit, s"], rows, "{} candidates, {} vectors".format(*sizes["both"]))
    report.check("largest difference of decision values", float(apart.max()), at_most=1e-6)
    found = {"processor": on_host, "device": on_device, "same vectors": same}
    return (ours, theirs), found | {"largest difference": float(apart.max())}


def predictions(report, models, X, sizes):
    """Decision values of many rows."""
    ours, theirs = models
    n, repeats = sizes["predicted"], -(-sizes["predicted"] // X.shape[0])
    rows = X.repeat(repeats, 1)[:n]
    few = to_numpy(rows[: n // 50])
    on_device, _ = settled(lambda: theirs.decision_function(rows))
    on_host, _ = seconds(lambda: ours.decision_function(few))
    found = {"device": on_device, "processor, a fiftieth": on_host, "rows": n}
    report.table(
        ["", "rows", "seconds", "million rows a second"],
        [
            ["device", n, f"{on_device:.2f}", f"{1e-6 * n / on_device:.2f}"],
            ["processor", len(few), f"{on_host:.2f}", f"{1e-6 * len(few) / on_host:.3f}"],
        ],
        f"Decision values, {ours.n_components_} vectors",
    )
    return found


def others(report, host, device, sizes):
    """Neighbours and windows."""
    found, lines = {}, []
    queries, windows = sizes["queries"], sizes["windows"]
    tasks = {
        "HKNN": (pursuit.HyperplaneKNeighborsClassifier(15), "decision_function", len(host[0])),
        "Parzen windows": (pursuit.ParzenDensity(2.0), "score_samples", windows),
    }
    for name, (model, method, n) in tasks.items():
        times, values = {}, {}
        for side, (X, y) in {"processor": host, "device": device}.items():
            fitted = sklearn.clone(model).fit(X[:n], y[:n])
            scores = getattr(fitted, method)
            times[side], values[side] = settled(lambda f=scores, X=X: f(X[:queries]))
        apart = np.abs(to_numpy(values["device"]) - values["processor"]).max()
        found[name] = times | {"largest difference": float(apart)}
        lines.append([name, n, f"{times['processor']:.2f}", f"{times['device']:.2f}"])
    report.table(["", "rows", "processor, s", "device, s"], lines, f"{queries} queries")
    return found
