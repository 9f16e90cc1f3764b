"""Five million rows from a Parquet file: memory, time over that of the products, and kill -9.

5 000 000 x 20 rows (``BIG_TABLE_ROWS`` sets another number), a function of five of the features
with noise, are written to a Parquet file in a temporary folder. `KernelMatchingPursuitRegressor`,
2000 candidates, 200 vectors, fits them by `fit_blocks` and `ParquetBlocks`, in two passes, in a
process of its own, whose peak memory is told. Times are seconds of the processor with one BLAS
thread for both sides, so that other work on the machine counts for neither. The products are those
that no way around is known for: X Z' for the kernel values and the symmetric update B'B of the Gram
matrix (half the arithmetic of a product), as BLAS does them on blocks of 1500 rows in memory that
is there, before and after the fit, scaled to all rows. The exponentials are not among them.

Then a fit with a checkpoint each second, of 200 000 rows (``BIG_TABLE_KILLED`` sets another number,
5000000 for all): a process is killed (SIGKILL) at half the time of a whole fit and started again;
the model is compared with that of the whole fit.
"""

import multiprocessing
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from scipy.linalg import blas
from threadpoolctl import threadpool_limits

from benchmarks.timing import in_fresh_process
from pursuit import (
    KernelMatchingPursuitRegressor,
    ParquetBlocks,
    StatisticsCheckpoint,
    load,
)
from pursuit.linalg import blocks

N_ROWS, N_FEATURES = int(os.environ.get("BIG_TABLE_ROWS", "5_000_000")), 20
N_CANDIDATES, N_VECTORS = 2000, 200
N_KILLED = int(os.environ.get("BIG_TABLE_KILLED", "200_000"))
PART = 250_000
BLOCK, N_BLOCKS = 1_500, 60


def run(report):
    """The three questions."""
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "rows.parquet", Path(folder) / "few.parquet"
        write_table(path, N_ROWS)
        write_table(small, N_KILLED)
        time_and_memory(report, path)
        killed(report, small, Path(folder))


def write_table(path, n_rows):
    """A Parquet file of so many rows, made part by part."""
    parts = path.with_suffix(".parts")
    parts.mkdir()
    for k, start in enumerate(range(0, n_rows, PART)):
        rng = np.random.default_rng(k)
        X = rng.standard_normal((min(PART, n_rows - start), N_FEATURES))
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3] - X[:, 4])
        y += 0.1 * rng.standard_normal(len(y))
        frame = pl.DataFrame(X, schema=[f"x{j}" for j in range(N_FEATURES)])
        frame.with_columns(y=y).write_parquet(parts / f"{k:04d}.parquet")
    pl.scan_parquet(parts / "*.parquet").sink_parquet(path)
    for part in parts.iterdir():
        part.unlink()
    parts.rmdir()


def model():
    """What is fitted."""
    return KernelMatchingPursuitRegressor(N_VECTORS, n_candidates=N_CANDIDATES)


def time_and_memory(report, path):
    """The fit, and the products."""
    found, peak = in_fresh_process(fit, path)
    whole = found["kernel product"] + found["Gram update"]
    names = ("fit", "kernel product", "exponentials", "Gram update", "two passes over the file")
    report.table(
        ["", "seconds of the processor", "of the fit, %"],
        [[name, f"{found[name]:.1f}", f"{100 * found[name] / found['fit']:.0f}"] for name in names],
        f"{N_ROWS} rows, {N_CANDIDATES} candidates, {N_VECTORS} vectors, one thread; wall time of "
        f"the fit {found['wall']:.0f} s, R^2 on {PART} other rows {found['score']:.3f}",
    )
    report.check("peak memory of the process, GB", round(peak / 1e9, 2), at_most=2.0)
    report.check("time of the fit over that of its products", found["fit"] / whole, at_most=1.3)


def fit(path):
    """Seconds of the processor of the fit and of its products, in this process."""
    with threadpool_limits(1), blocks.at_most_threads(1):
        before = products(path)
        wall, start = time.perf_counter(), time.process_time()
        fitted = model().fit_blocks(ParquetBlocks(path, "y"))
        found = {"fit": time.process_time() - start, "wall": time.perf_counter() - wall}
        after = products(path)
        start = time.process_time()
        for _ in range(2):
            for _X, _y in ParquetBlocks(path, "y"):
                pass
        found["two passes over the file"] = time.process_time() - start
    rng = np.random.default_rng(10**6)
    X = rng.standard_normal((PART, N_FEATURES))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3] - X[:, 4])
    scaled = {name: 0.5 * (before[name] + after[name]) for name in before}
    return found | scaled | {"score": fitted.score(X, y + 0.1 * rng.standard_normal(PART))}


def products(path):
    """Seconds of the products of all rows, from some blocks of them."""
    Z, _ = next(iter(ParquetBlocks(path, "y", n_rows=N_CANDIDATES)))
    X, gram = Z[:BLOCK].copy(), np.zeros((N_CANDIDATES, N_CANDIDATES), order="F")
    values = np.ones((BLOCK, N_CANDIDATES))
    spent = dict.fromkeys(("kernel product", "exponentials", "Gram update"), 0.0)
    for _ in range(N_BLOCKS):
        marks = [time.process_time()]
        np.dot(X, Z.T, out=values)
        marks.append(time.process_time())
        np.exp(np.minimum(values, 0.0, out=values), out=values)
        marks.append(time.process_time())
        blas.dsyrk(1.0, values.T, beta=1.0, c=gram, overwrite_c=1)
        marks.append(time.process_time())
        for name, elapsed in zip(spent, np.diff(marks), strict=True):
            spent[name] += elapsed
    return {name: seconds * N_ROWS / (N_BLOCKS * len(X)) for name, seconds in spent.items()}


def killed(report, path, folder):
    """Half a fit, SIGKILL, and the rest."""
    whole, checkpoint = folder / "whole.pursuit", folder / "killed.pursuit"
    start = time.perf_counter()
    _run(path, whole, folder / "a.npy").join()
    elapsed = time.perf_counter() - start
    process = _run(path, checkpoint, folder / "b.npy")
    time.sleep(elapsed / 2)
    process.kill()
    process.join()
    there = checkpoint.exists()
    kept = load(checkpoint).n_rows_ if there else 0
    start = time.perf_counter()
    _run(path, checkpoint, folder / "b.npy").join()
    rest = time.perf_counter() - start
    gap = np.abs(np.load(folder / "a.npy") - np.load(folder / "b.npy")).max()
    report.table(
        ["", "seconds", "rows in the checkpoint"],
        [
            ["whole fit", f"{elapsed:.1f}", load(whole).n_rows_],
            ["killed", f"{elapsed / 2:.1f}", kept],
            ["resumed", f"{rest:.1f}", load(checkpoint).n_rows_],
        ],
        f"{N_KILLED} rows, a checkpoint a second, killed at half time",
    )
    lost = elapsed / 2 + rest - elapsed
    report.add(f"The two runs took {lost:.1f} s more than one: start, first pass, lost second.")
    report.check("rows in the checkpoint at the kill", kept, at_least=1)
    report.check("the same, of which some were still to come", kept, at_most=N_KILLED - 1)
    report.check("largest difference of a prediction", float(gap), at_most=1e-8)


def _run(path, checkpoint, output):
    """A fit in a process of its own."""
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=predictions_after, args=(path, checkpoint, output))
    process.start()
    return process


def predictions_after(path, checkpoint, output):
    """Fit, and write predictions of some rows."""
    with threadpool_limits(1), blocks.at_most_threads(1):
        kept = StatisticsCheckpoint(checkpoint, every=1.0)
        fitted = model().fit_blocks(ParquetBlocks(path, "y"), checkpoint=kept)
        X, _ = next(iter(ParquetBlocks(path, "y", n_rows=1000)))
        np.save(output, fitted.predict(X))
