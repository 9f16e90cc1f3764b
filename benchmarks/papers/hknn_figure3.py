"""Figure 11.3 of Vincent's thesis: error on MNIST against K, for several penalties and CKNN.

Source: P. Vincent and Y. Bengio, K-Local Hyperplane and Convex Distance Nearest Neighbor
Algorithms, NIPS 14 (2002), here as chapter 11 of P. Vincent's thesis (2003).
Fixed by the paper: HKNN with lambda = 0, 1 and 10, CKNN, K up to about 120, error on the test rows.
Our choice: the first 50000 training rows as reference, pixels divided by 255, all 10000 test rows
for HKNN, every fourth of them for CKNN, whose quadratic programs take the most time.
"""

import numpy as np
from matplotlib.figure import Figure

from benchmarks.timing import seconds
from pursuit import ConvexKNeighborsClassifier, HyperplaneKNeighborsClassifier, datasets

SIZES = [1, 5, 10, 20, 30, 40, 50, 65, 80, 100, 120]
CONVEX_SIZES = [1, 10, 20, 40, 70, 100, 120]
ALPHAS = [0.0, 1.0, 10.0]


def run(report):
    """One search of neighbours for HKNN, one for CKNN."""
    X, y = datasets.load("mnist", "train")
    X_test, y_test = datasets.load("mnist", "test")
    X, X_test = ((part / 255).astype(np.float32) for part in (X[:50_000], X_test))
    y = y[:50_000]
    plane = HyperplaneKNeighborsClassifier().fit(X, y)
    grid = {"n_neighbors": SIZES, "alphas": ALPHAS}
    plane_seconds, curve = seconds(lambda: plane.validation_curve(X_test, y_test, **grid))
    hull = ConvexKNeighborsClassifier().fit(X, y)
    rows, labels = X_test[::4], y_test[::4]
    hull_seconds, convex = seconds(
        lambda: hull.validation_curve(rows, labels, n_neighbors=CONVEX_SIZES)
    )
    few = plane.validation_curve(rows, labels, n_neighbors=CONVEX_SIZES, alphas=[10.0])
    report.table(
        ["K", *(f"HKNN, lambda = {alpha:g}" for alpha in ALPHAS)],
        [[k, *(f"{100 * e:.2f}" for e in row)] for k, row in zip(SIZES, curve.errors, strict=True)],
        f"All test rows: error, % ({plane_seconds:.0f} s for {curve.errors.size} models)",
    )
    report.table(
        ["K", "CKNN", "HKNN, lambda = 10"],
        [
            [k, f"{100 * e:.2f}", f"{100 * p:.2f}"]
            for k, e, p in zip(CONVEX_SIZES, convex.errors, few.errors[:, 0], strict=True)
        ],
        f"Every fourth test row: error, % ({hull_seconds:.0f} s for {len(convex.errors)} models)",
    )
    report.figure("hknn_figure3", draw(curve, convex))
    rise = curve.errors[-1] - curve.errors.min(axis=0)
    report.check("lambda = 0: rise of the error up to K = 120, %", 100 * rise[0], at_least=1.0)
    report.check("lambda = 10: rise of the error up to K = 120, %", 100 * rise[2], at_most=0.3)
    rise = convex.errors[-1] - convex.errors.min()
    report.check("CKNN: rise of the error up to K = 120, %", 100 * rise, at_most=0.3)


def draw(curve, convex):
    """Errors against K."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for j, alpha in enumerate(ALPHAS):
        axes.plot(
            SIZES, 100 * curve.errors[:, j], marker=".", label=f"HKNN, $\\lambda$ = {alpha:g}"
        )
    axes.plot(
        CONVEX_SIZES, 100 * convex.errors, "k--", marker=".", label="CKNN (every fourth test row)"
    )
    axes.set(xlabel="K", ylabel="test error, %", title="MNIST", ylim=(1, 4))
    axes.legend()
    return figure
