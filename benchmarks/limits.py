"""What the machine can do: products, reading and exponentials, on one thread and on two."""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.timing import product_rate, seconds

PRODUCT_SIZE = 3072
READ_BYTES = 1 << 29
N_EXPONENTIALS = 1 << 24
ROUNDS = 3
TYPES = {"float32": np.float32, "float64": np.float64}


class Limits(NamedTuple):
    """Rates in units a second.

    Attributes
    ----------
    products : dict of (type, threads) to float
        Floating-point operations of a square product.
    reading : dict of threads to float
        Bytes of a matrix that a product with a vector reads, each thread its own half.
    exponentials : dict of (type, threads) to float
        Values of `numpy.exp` in pieces that stay in a core's cache.
    """

    products: dict
    reading: dict
    exponentials: dict


class Work(NamedTuple):
    """What an answer cannot do without, by the algorithm that is used.

    Attributes
    ----------
    float32, float64 : float
        Operations in matrix products.
    exponentials : float
        Kernel values, in float32.
    reading : float
        Bytes read from memory outside products of matrices.
    """

    float32: float = 0.0
    float64: float = 0.0
    exponentials: float = 0.0
    reading: float = 0.0

    def parts(self, limits, threads=2):
        """Seconds of each part at the machine's rates, where there is something to do."""
        found = {
            "float32 products": self.float32 / limits.products["float32", threads],
            "float64 products": self.float64 / limits.products["float64", threads],
            "exponentials": self.exponentials / limits.exponentials["float32", threads],
            "reading": self.reading / limits.reading[threads],
        }
        return {name: part for name, part in found.items() if part > 0.0}


def measure(threads=(1, 2)):
    """The `Limits` of this machine, the best of a few rounds each."""
    products = {}
    for count in threads:
        with threadpool_limits(count, user_api="blas"):
            for name, dtype in TYPES.items():
                products[name, count] = product_rate(PRODUCT_SIZE, dtype, ROUNDS)
    matrices = [np.ones((1 << 13, READ_BYTES >> 17)) for _ in range(max(threads))]
    vector = np.ones(matrices[0].shape[1])
    values = [np.zeros(N_EXPONENTIALS >> 8, dtype=np.float64) for _ in range(max(threads))]
    exponentials = {}
    with threadpool_limits(1, user_api="blas"):
        reading = {
            count: READ_BYTES / 2 * count / best(lambda matrix: matrix @ vector, matrices[:count])
            for count in threads
        }
        for name, dtype in TYPES.items():
            arrays = [array.astype(dtype) for array in values]
            for count in threads:
                elapsed = best(exponentiate, arrays[:count])
                exponentials[name, count] = count * N_EXPONENTIALS / elapsed
    return Limits(products, reading, exponentials)


def exponentiate(values):
    """`N_EXPONENTIALS` exponentials, the same few again and again."""
    result = np.empty_like(values)
    for _ in range(N_EXPONENTIALS // len(values)):
        np.exp(values, out=result)


def best(function, items):
    """Shortest time of the function on all items at once, a thread each."""
    with ThreadPoolExecutor(len(items)) as pool:
        return min(seconds(lambda: list(pool.map(function, items)))[0] for _ in range(ROUNDS))


def report_limits(report, limits):
    """The table of the machine's rates."""
    threads = sorted(limits.reading)
    rows = [
        [f"product of {PRODUCT_SIZE} x {PRODUCT_SIZE}, {name}, Gflop/s"]
        + [f"{limits.products[name, count] / 1e9:.0f}" for count in threads]
        for name in TYPES
    ]
    rows.append(
        ["matrix times vector, float64, GB/s read"]
        + [f"{limits.reading[count] / 1e9:.1f}" for count in threads]
    )
    rows += [
        [f"exponentials, {name}, 1e9 a second"]
        + [f"{limits.exponentials[name, count] / 1e9:.2f}" for count in threads]
        for name in TYPES
    ]
    header = ["", *("1 thread" if count == 1 else f"{count} threads" for count in threads)]
    report.table(header, rows, "What this machine does, measured before the rows")
