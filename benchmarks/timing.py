"""Time and memory, measured so that the two sides of a comparison meet the same machine."""

import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from statistics import median

import numpy as np


def seconds(function):
    """Run the function once; return its wall time and its result."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


class Clock:
    """Seconds spent inside the functions it was put around, calls from one thread only."""

    def __init__(self):
        self.seconds = 0.0

    def around(self, function):
        """The function with its time added to this clock."""

        def timed(*arguments):
            elapsed, result = seconds(lambda: function(*arguments))
            self.seconds += elapsed
            return result

        return timed


def alternate(functions, rounds=3):
    """Median seconds of each named function, and its last result, run in turn: A B C A B C ..."""
    times = {name: [] for name in functions}
    results = {}
    for _ in range(rounds):
        for name, function in functions.items():
            elapsed, results[name] = seconds(function)
            times[name].append(elapsed)
            print(f"  {name}: {elapsed:.2f} s", flush=True)
    return {name: median(values) for name, values in times.items()}, results


def in_fresh_process(function, *arguments):
    """Result of the function in a new interpreter, and that process's peak memory in bytes."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_with_peak_memory, function, arguments).result()


def _with_peak_memory(function, arguments):
    result = function(*arguments)
    return result, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def product_rate(size, dtype, rounds=5):
    """Floating-point operations a second of a square matrix product, the best of a few rounds."""
    left, right = np.random.default_rng(0).random((2, size, size)).astype(dtype)
    fastest = min(seconds(lambda: left @ right)[0] for _ in range(rounds))
    return 2 * size**3 / fastest
