"""Dask: two worker processes against one process on the same two cores.

Covertype four times, 2.3 million rows of 54 features: standardised, in float32, with noise of a
hundredth on each copy so that the copies differ; class 2 against the rest. The rows lie in one .npy
file in a temporary folder, which both sides read: one process through a memory map, the workers
block by block (50 000 rows). RBF kernel with gamma = 1/54, 2000 candidates, 200 vectors. Both sides
draw the candidates themselves; they are the rows of smallest hash.

Two workers have one thread each, the one process has two. The client is a process of its own, apart
from the scheduler and the workers; its memory is the peak of its resident set over that after its
imports. A second fit is run while one of the workers is killed half way.

The simulation prints what 10^8 rows of 50 features would take on 64 workers: the graph is built and
measured, the costs of a task are measured on one thread here, and a list schedule adds them up.
"""

import heapq
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

from benchmarks.report import percent
from benchmarks.timing import in_fresh_process, seconds

COPIES = 4
BLOCK = 50_000
N_CANDIDATES, N_VECTORS, GAMMA = 2000, 200, 1 / 54
CHECKED = 5000
CLUSTER = (
    "import sys, distributed\n"
    "if __name__ == '__main__':\n"
    "    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1,"
    " dashboard_address=':0')\n"
    "    print(cluster.scheduler_address, flush=True)\n"
    "    sys.stdin.read()\n"
)
# The simulation.
ROWS, FEATURES, WORKERS = 10**8, 50, 64
SIMULATED_BLOCK, SIMULATED_CANDIDATES = 100_000, 2500
BANDWIDTH, OVERHEAD = 1.25e9, 1e-3


def run(report):
    """The two sides in turn, the killed worker, the simulation."""
    with tempfile.TemporaryDirectory() as folder:
        n_rows = in_fresh_process(write, folder, COPIES)[0]
        one, _ = in_fresh_process(in_one_process, folder)
        two = in_fresh_process(on_workers, folder, None)[0]
        killed = in_fresh_process(on_workers, folder, 0.5 * two["seconds"])[0]
    table = [
        ["one process, two threads", one["seconds"], None, one],
        ["two workers, one thread each", two["seconds"], two["client"], two],
        ["... of which one is killed", killed["seconds"], killed["client"], killed],
    ]
    report.table(
        ["", "fit, s", "client over its imports, MB", "training error %"],
        [
            [name, f"{time:.1f}", "" if client is None else f"{client / 1e6:.0f}", side["error"]]
            for name, time, client, side in table
        ],
        f"Covertype {COPIES} times, {n_rows} rows",
    )
    for name, side in (("two workers", two), ("killed", killed)):
        gap = float(np.abs(side["values"] - one["values"]).max())
        report.check(f"{name}: largest difference of a decision value", gap, at_most=1e-8)
        same = int(side["support"] == one["support"])
        report.check(f"{name}: the same vectors", same, at_least=1)
    report.check("client's memory over its imports, MB", two["client"] / 1e6, at_most=200)
    report.check("wall time over one process", two["seconds"] / one["seconds"], at_most=1.2)
    report.check("a worker was killed during the fit", killed["killed"], at_least=1)
    simulation(report)


def write(folder, copies):
    """The rows and the labels, a copy after another."""
    from sklearn.preprocessing import StandardScaler

    from pursuit import datasets

    X, y = datasets.load("covtype")
    X = StandardScaler().fit_transform(X.astype(np.float32)).astype(np.float32)
    shape, rng = (copies * len(X), X.shape[1]), np.random.default_rng(0)
    rows = np.lib.format.open_memmap(Path(folder) / "X.npy", "w+", np.float32, shape)
    for copy in range(copies):
        noise = rng.standard_normal(X.shape, dtype=np.float32)
        rows[copy * len(X) : (copy + 1) * len(X)] = X + np.float32(0.01) * noise
    rows.flush()
    np.save(Path(folder) / "y.npy", np.tile(y == 2, copies))
    return len(rows)


def model():
    """What both sides fit."""
    from pursuit import KernelMatchingPursuitClassifier

    return KernelMatchingPursuitClassifier(N_VECTORS, gamma=GAMMA, n_candidates=N_CANDIDATES)


def outcome(fitted, elapsed, folder):
    """What is compared."""
    X = np.load(Path(folder) / "X.npy", mmap_mode="r")[:CHECKED]
    y = np.load(Path(folder) / "y.npy", mmap_mode="r")[:CHECKED]
    return {
        "seconds": elapsed,
        "values": fitted.decision_function(np.asarray(X)),
        "support": fitted.support_.tolist(),
        "error": percent(fitted.predict(np.asarray(X)) != y),
    }


def in_one_process(folder):
    """`fit` on a memory map."""
    X, y = (np.load(Path(folder) / name, mmap_mode="r") for name in ("X.npy", "y.npy"))
    elapsed, fitted = seconds(lambda: model().fit(X, np.asarray(y)))
    return outcome(fitted, elapsed, folder)


def lazy(folder):
    """The file as dask arrays."""
    from dask import array as da
    from dask.delayed import delayed

    def collection(name):
        path = str(Path(folder) / name)
        like, read = np.load(path, mmap_mode="r"), delayed(read_rows)
        starts = range(0, len(like), BLOCK)
        parts = [read(path, start, min(start + BLOCK, len(like))) for start in starts]
        shapes = [(min(BLOCK, len(like) - start), *like.shape[1:]) for start in starts]
        arrays = [da.from_delayed(p, s, like.dtype) for p, s in zip(parts, shapes, strict=True)]
        return da.concatenate(arrays)

    return collection("X.npy"), collection("y.npy")


def read_rows(path, start, stop):
    """Some rows of a file."""
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def on_workers(folder, kill_after):
    """`fit` on the cluster; a worker may be killed after so many seconds."""
    import distributed

    import pursuit.distributed

    assert pursuit.distributed
    fitted_first = model()
    at_import = resident()
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        client = distributed.Client(process.stdout.readline().strip())
        client.wait_for_workers(2)
        client.run(model)  # the workers import what they need before the clock starts
        X, y = lazy(folder)
        killed = threading.Event()
        if kill_after is not None:
            victim = next(iter(client.run(os.getpid).values()))
            threading.Timer(kill_after, kill_one, (victim, killed)).start()
        elapsed, fitted = seconds(lambda: fitted_first.fit(X, y))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        found = outcome(fitted, elapsed, folder)
        client.close()
    finally:
        process.stdin.close()
        process.wait()
    return found | {"client": peak - at_import, "killed": int(killed.is_set())}


def kill_one(pid, killed):
    """Kill a worker, as a machine that fails would."""
    os.kill(pid, signal.SIGKILL)
    killed.set()


def resident():
    """Resident set of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def simulation(report):
    """Tasks, bytes and seconds of a fit on 64 workers."""
    costs = in_fresh_process(task_costs)[0]
    n_tasks, n_bytes, build = graph()
    first, _ = schedule(costs["survey"], costs["survey_merge"], costs["survey_bytes"])
    second, depth = schedule(costs["sums"], costs["merge"], costs["sums_bytes"])
    whole = first + second + costs["path"] + 2 * build
    ideal = (costs["survey"] + costs["sums"]) * (ROWS / SIMULATED_BLOCK) / WORKERS
    report.table(
        ["", "measured or computed"],
        [
            ["blocks", str(ROWS // SIMULATED_BLOCK)],
            ["tasks of a pass", str(n_tasks)],
            ["graph of a pass, MB", f"{n_bytes / 1e6:.1f}"],
            ["graph of a pass built in, s", f"{build:.2f}"],
            ["survey of a block, s", f"{costs['survey']:.2f}"],
            ["sums of a block, s", f"{costs['sums']:.2f}"],
            ["two sums merged, s", f"{costs['merge']:.3f}"],
            ["sums of a block, MB", f"{costs['sums_bytes'] / 1e6:.1f}"],
            ["path on the client, s", f"{costs['path']:.1f}"],
            ["levels of the tree", str(depth)],
            ["first pass, s", f"{first:.0f}"],
            ["second pass, s", f"{second:.0f}"],
            ["whole fit, s", f"{whole:.0f}"],
            ["tasks alone, spread evenly, s", f"{ideal:.0f}"],
        ],
        f"Simulation: {ROWS:.0e} rows of {FEATURES} features on {WORKERS} workers",
    )
    report.add(
        f"Assumed: one thread a worker, as fast as one here; blocks of {SIMULATED_BLOCK} rows that "
        "are made where they are used (reading is not counted); "
        f"{SIMULATED_CANDIDATES} candidates, {N_VECTORS} vectors; {OVERHEAD * 1e3:.0f} ms of the "
        f"scheduler a task; {BANDWIDTH / 1e9:.2f} GB/s between any two workers, of which seven of "
        "eight results cross the network; no worker dies."
    )
    report.check("simulated fit over its tasks spread evenly", whole / ideal, at_most=1.3)


def task_costs():
    """Seconds and bytes of the tasks of both passes, on one thread."""
    from sklearn.base import clone

    from pursuit.distributed.matching_pursuit import _block_sums, _both
    from pursuit.distributed.reading import Seen, _block_survey
    from pursuit.greedy.survey import Survey
    from pursuit.linalg import blocks

    rng = np.random.default_rng(0)
    tables = [rng.standard_normal((SIMULATED_BLOCK, FEATURES)) for _ in range(2)]
    labels = [X[:, 0] * X[:, 1] > 0 for X in tables]
    reader = clone(model()).set_params(n_candidates=SIMULATED_CANDIDATES)
    reader.n_features_in_ = FEATURES
    with blocks.at_most_threads(1):
        empty = Survey(SIMULATED_CANDIDATES)
        surveys = [
            seconds(lambda X=X, y=y: _block_survey(reader, empty, True, X, y, None))
            for X, y in zip(tables, labels, strict=True)
        ]
        survey_merge, seen = seconds(lambda: Seen.plus(surveys[0][1], surveys[1][1]))
        reader.classes_ = seen.labels
        statistics, _ = reader._empty(seen.survey, seen.labels)
        sums = [
            seconds(lambda X=X, y=y: _block_sums(statistics, reader, X, y, None))
            for X, y in zip(tables, labels, strict=True)
        ]
        merge, total = seconds(lambda: _both(sums[0][1], sums[1][1]))
    path, _ = seconds(lambda: model().set_params(n_candidates=None).fit_statistics(total))
    return {
        "survey": float(np.mean([s for s, _ in surveys])),
        "survey_merge": survey_merge,
        "survey_bytes": len(pickle.dumps(surveys[0][1])),
        "sums": float(np.mean([s for s, _ in sums])),
        "merge": merge,
        "sums_bytes": len(pickle.dumps(sums[0][1])),
        "path": path,
    }


def graph():
    """Tasks, pickled bytes and seconds to build of one pass."""
    from dask import array as da

    from pursuit.distributed.parts import parts_of, tree

    def build():
        X = da.random.random((ROWS, FEATURES), chunks=(SIMULATED_BLOCK, FEATURES))
        y = da.random.random(ROWS, chunks=SIMULATED_BLOCK) > 0.5
        return dict(tree(len, max, parts_of(X, y).blocks).__dask_graph__())

    elapsed, tasks = seconds(build)
    import cloudpickle

    return len(tasks), len(cloudpickle.dumps(tasks)), elapsed


def schedule(leaf, merge, n_bytes):
    """Seconds of one pass by a list schedule, and the levels of its tree.

    A worker that is free takes the task whose inputs were ready first; a task waits for its seven
    inputs that lie on other workers, and all tasks for the scheduler.
    """
    from pursuit.distributed.parts import GROUP

    free = [(0.0, worker) for worker in range(WORKERS)]
    heapq.heapify(free)
    started = 0

    def run_task(ready, cost):
        nonlocal started
        at, worker = heapq.heappop(free)
        begin = max(at, ready, started * OVERHEAD)
        started += 1
        heapq.heappush(free, (begin + cost, worker))
        return begin + cost

    level, depth = [run_task(0.0, leaf) for _ in range(ROWS // SIMULATED_BLOCK)], 0
    while len(level) > 1:
        groups = [level[i : i + GROUP] for i in range(0, len(level), GROUP)]
        each = [(len(group) - 1) * (merge + n_bytes / BANDWIDTH) for group in groups]
        level = [run_task(max(g), cost) for g, cost in zip(groups, each, strict=True)]
        depth += 1
    return level[0] + n_bytes / BANDWIDTH, depth
