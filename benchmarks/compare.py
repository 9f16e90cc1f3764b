"""The same program on two commits of the library, in turn, each run in a process of its own.

A *row* is a function of this package, named as ``module:function``, that prepares what it needs,
times one thing and returns a `Measured`. It may use only what both commits have. Each run is a
fresh interpreter with the source tree of one commit before all else on its path, so that the same
benchmark runs on both; an older commit stands in a temporary git worktree.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
# A row that takes longer counts as failed.
LONGEST = 900


class Measured(NamedTuple):
    """What one run of a row gives.

    Attributes
    ----------
    wall, processor : float
        Seconds; those of all threads together for the processor.
    values : ndarray
        What must agree between commits: decision values, log-densities, coefficients.
    scores : dict of str to float
        What a reader wants to know of the result, such as errors on test rows.
    """

    wall: float
    processor: float
    values: np.ndarray = np.empty(0)
    scores: dict = {}


class Spent(NamedTuple):
    """Seconds of a call."""

    wall: float
    processor: float


def spend(function, repeats=1):
    """Seconds of one call of the function, and its last result."""
    start, processor = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        result = function()
    wall, processor = time.perf_counter() - start, time.process_time() - processor
    return Spent(wall / repeats, processor / repeats), result


class Failed(RuntimeError):
    """A run that ended without a result; the text is its last line."""


@contextmanager
def worktree(commit):
    """The source tree of a commit, for as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="pursuit-") as folder:
        tree = Path(folder) / "tree"
        git("worktree", "add", "--detach", "--quiet", str(tree), commit)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def git(*arguments):
    """What a git command prints, in this repository."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit_name(commit="HEAD"):
    """Short name of a commit; with a mark where the sources differ from it."""
    name = git("rev-parse", "--short", commit)
    return name + (
        " with changes" if commit == "HEAD" and git("status", "--porcelain", "src") else ""
    )


def run_row(name, tree, given=None, **arguments):
    """One run of a row on the library in `tree`.

    Parameters
    ----------
    name : str
        ``module:function``.
    tree : Path
        Root of the sources.
    given : ndarray, optional
        Handed to the function as its argument ``given``.
    arguments : dict
        Handed to the function by name; what JSON can hold.

    Returns
    -------
    measured : Measured
    """
    if given is not None:
        arguments["given"] = np.asarray(given).tolist()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "measured.npz"
        command = [sys.executable, "-m", "benchmarks.compare", name, str(tree), str(output)]
        path = os.pathsep.join([str(tree / "src"), str(ROOT)])
        done = subprocess.run(
            command,
            input=json.dumps(arguments),
            env={**os.environ, "PYTHONPATH": path},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        if done.returncode:
            raise Failed(done.stderr.strip().splitlines()[-1] if done.stderr else "no message")
        with np.load(output) as stored:
            plain = json.loads(str(stored["plain"]))
            return Measured(*plain["seconds"], stored["values"], plain["scores"])


def main():
    """One run, in the process that was started for it."""
    parser = argparse.ArgumentParser(description="One run of a row; see the top of this module.")
    parser.add_argument("name")
    parser.add_argument("tree", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    # The benchmark's module is loaded when the library is known to be the right one.
    library = Path(importlib.import_module("pursuit").__file__)
    if not library.is_relative_to(options.tree):
        raise Failed(f"pursuit was imported from {library}, not from {options.tree}")
    module, _, function = options.name.partition(":")
    measured = getattr(importlib.import_module(module), function)(**json.load(sys.stdin))
    scores = {name: float(value) for name, value in measured.scores.items()}
    plain = {"seconds": [measured.wall, measured.processor], "scores": scores}
    np.savez(options.output, plain=json.dumps(plain), values=measured.values)


if __name__ == "__main__":
    main()
