"""Densities: manifold Parzen windows on a digit, and Parzen windows beside other packages.

1. MNIST digit 2 (5400 training and 1032 test rows of 784 pixels / 255) with the parameters of the
   thesis, d = 50, k = 80, sigma = 0.09, the median of three runs. Bounds: fit under 12 s, test rows
   under 5 s; the goal is half of both.
2. Parzen windows: 10 000 training rows and 2000 queries, normal in 2, 8 and 64 dimensions, sigma =
   0.05, 0.3 and 0.5; scikit-learn's KernelDensity with its defaults, and KDEpy if it is installed:
   its NaiveKDE sums all Gaussians, its TreeKDE those within reach. The error is the largest of the
   log-densities, in nats, against a sum in extended precision over 100 of the queries; "-" where a
   density is 0 or negative, which has no logarithm.
3. The same in 2 dimensions with 100 000 rows and 20 000 queries, ours and KernelDensity.
"""

import numpy as np
from sklearn.neighbors import KernelDensity

from benchmarks.compare import Measured, spend
from benchmarks.timing import alternate, seconds
from pursuit import ManifoldParzenDensity, ParzenDensity, datasets

N_ROWS, N_QUERIES, N_EXACT = 10_000, 2000, 100
SIGMAS = {2: 0.05, 8: 0.3, 64: 0.5}


def run(report):
    """All questions."""
    digit(report)
    windows(report)
    many_rows(report)


def digit(report):
    """Fit and test time on digit 2."""
    X, X_test = twos()
    density = manifold()
    windows = ParzenDensity(0.19)
    times, results = alternate(
        {
            "fit": lambda: density.fit(X),
            "test rows": lambda: density.score_samples(X_test),
            "Parzen, fit": lambda: windows.fit(X),
            "Parzen, test rows": lambda: windows.score_samples(X_test),
        }
    )
    g = density.gaussians_
    size = sum(a.nbytes for a in (g.centres, g.factors, g.offsets, g.variances, g.neighbors))
    report.table(
        ["", "fit, s", "test rows, s", "test ANLL", "memory over that of the rows"],
        [
            ["manifold Parzen, d = 50, k = 80", f"{times['fit']:.2f}", f"{times['test rows']:.2f}",
             f"{-results['test rows'].mean():.2f}", f"{size / X.nbytes:.1f} (at most d + 1 = 51)"],
            ["Parzen", f"{times['Parzen, fit']:.2f}", f"{times['Parzen, test rows']:.2f}",
             f"{-results['Parzen, test rows'].mean():.2f}", "1.0"],
        ],
        "MNIST digit 2",
    )  # fmt: skip
    report.check("manifold Parzen, digit 2: fit, s", times["fit"], at_most=12.0)
    report.check("manifold Parzen, digit 2: 1032 test rows, s", times["test rows"], at_most=5.0)


def twos():
    """Training and test rows of the digit."""
    X, y = datasets.load("mnist", "train")
    X_test, y_test = datasets.load("mnist", "test")
    return X[y == 2][:5400] / 255.0, X_test[y_test == 2] / 255.0


def manifold():
    """The density of the thesis, not fitted."""
    return ManifoldParzenDensity(80, n_components=50, noise_variance=0.09**2)


def windows(report):
    """Parzen windows of all packages."""
    if not kdepy():
        report.add("KDEpy is not installed (`pip install KDEpy`), so it is not in the table.")
    for n, sigma in SIGMAS.items():
        rng = np.random.default_rng(n)
        X, queries = rng.normal(size=(N_ROWS, n)), rng.normal(size=(N_QUERIES, n))
        exact = brute_force(X, queries[:N_EXACT], sigma)
        methods = {
            "ParzenDensity": lambda X=X, q=queries, s=sigma: (
                ParzenDensity(s).fit(X).score_samples(q)
            ),
            "KernelDensity": lambda X=X, q=queries, s=sigma: (
                KernelDensity(bandwidth=s).fit(X).score_samples(q)
            ),
        }
        for name, kind in kdepy().items():
            methods[name] = lambda X=X, q=queries, s=sigma, kind=kind: logarithm(
                kind(kernel="gaussian", bw=s).fit(X).evaluate(q)
            )
        rows, times = [], {}
        for name, method in methods.items():
            times[name], values = min((seconds(method) for _ in range(2)), key=lambda pair: pair[0])
            error = np.abs(values[:N_EXACT] - exact).max()
            shown = f"{error:.1e}" if np.isfinite(error) else "-"
            rows.append([name, f"{times[name]:.2f}", shown])
            print(n, rows[-1], flush=True)
        report.table(["", "seconds", "largest error"], rows, f"{n} dimensions, sigma = {sigma}")
        ratio = times["KernelDensity"] / times["ParzenDensity"]
        report.check(f"{n} dimensions: seconds of KernelDensity over ours", ratio, at_least=1.0)


def kdepy():
    """KDEpy's estimators for any points, by name."""
    try:
        from KDEpy import NaiveKDE, TreeKDE
    except ImportError:
        return {}
    return {"KDEpy, NaiveKDE": NaiveKDE, "KDEpy, TreeKDE": TreeKDE}


def logarithm(values):
    """Logarithms, nan where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(values)


def brute_force(X, queries, sigma):
    """Log-densities by differences in extended precision."""
    values = []
    for x in queries.astype(np.longdouble):
        exponents = -((X - x) ** 2).sum(axis=1) / (2 * sigma**2)
        values.append(exponents.max() + np.log(np.exp(exponents - exponents.max()).sum()))
    volume = X.shape[1] / 2 * np.log(2 * np.pi * sigma**2)
    return np.array(values, dtype=float) - np.log(len(X)) - volume


def many_rows(report):
    """Two dimensions and many rows."""
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(100_000, 2)), rng.normal(size=(20_000, 2))
    rows = []
    for sigma in (0.02, 0.2):
        ours, values = seconds(lambda s=sigma: ParzenDensity(s).fit(X).score_samples(queries))
        few = KernelDensity(bandwidth=sigma).fit(X)
        others, _ = seconds(lambda model=few: model.score_samples(queries[:2000]))
        rows.append([f"sigma = {sigma}", f"{ours:.1f}", f"{10 * others:.1f}"])
        print(rows[-1], float(values.mean()), flush=True)
    report.table(
        ["", "ParzenDensity, s", "KernelDensity, s (ten times that of 2000 queries)"],
        rows,
        "100 000 rows, 20 000 queries, 2 dimensions",
    )


def fit_row():
    """A row of ``all``: manifold Parzen windows, the fit."""
    X, X_test = twos()
    spent, density = spend(lambda: manifold().fit(X))
    values = density.score_samples(X_test)
    return Measured(*spent, values, {"ANLL, nats": -values.mean()})


def score_row():
    """A row of ``all``: log-densities of the test rows."""
    X, X_test = twos()
    density = manifold().fit(X)
    spent, values = spend(lambda: density.score_samples(X_test))
    return Measured(*spent, values, {"ANLL, nats": -values.mean()})
