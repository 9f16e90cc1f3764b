"""Figure 11.3 of Vincent's thesis: error on MNIST against K, for several penalties and CKNN.

Source: P. Vincent and Y. Bengio, K-Local Hyperplane and Convex Distance Nearest Neighbor
Algorithms, NIPS 14 (2002), here as chapter 11 of P. Vincent's thesis (2003).
Fixed by the paper: HKNN with lambda = 0, 1 and 10, CKNN, K up to about 120, error on the test rows.
Our choice: the first 50000 training rows as reference, pixels divided by 255, every fourth of the
10000 test rows.
"""

import numpy as np
from matplotlib.figure import Figure

from benchmarks.timing import seconds
from pursuit import ConvexKNeighborsClassifier, HyperplaneKNeighborsClassifier, datasets

SIZES = [1, 5, 10, 20, 30, 45, 65, 90, 120]
ALPHAS = [0.0, 1.0, 10.0]


def run(report):
    """One search of neighbours for HKNN, one for CKNN."""
    X, y = datasets.load("mnist", "train")
    X_test, y_test = datasets.load("mnist", "test")
    X, X_test = ((part / 255).astype(np.float32) for part in (X[:50_000], X_test[::4]))
    y, y_test = y[:50_000], y_test[::4]
    plane = HyperplaneKNeighborsClassifier().fit(X, y)
    grid = {"n_neighbors": SIZES, "alphas": ALPHAS}
    plane_seconds, curve = seconds(lambda: plane.validation_curve(X_test, y_test, **grid))
    hull = ConvexKNeighborsClassifier().fit(X, y)
    hull_seconds, convex = seconds(lambda: hull.validation_curve(X_test, y_test, n_neighbors=SIZES))
    errors = np.column_stack([curve.errors, convex.errors])
    report.table(
        ["K", *(f"HKNN, lambda = {alpha:g}" for alpha in ALPHAS), "CKNN"],
        [[k, *(f"{100 * e:.2f}" for e in row)] for k, row in zip(SIZES, errors, strict=True)],
        f"Test error, % ({plane_seconds:.0f} s for the {curve.errors.size} HKNN models, "
        f"{hull_seconds:.0f} s for the {len(SIZES)} CKNN models)",
    )
    report.figure("hknn_figure3", draw(errors))
    rises = 100 * (errors[-1] - errors.min(axis=0))
    report.check("lambda = 0: rise of the error up to K = 120, %", rises[0], at_least=1.0)
    report.check("lambda = 10: rise of the error up to K = 120, %", rises[2], at_most=0.3)
    report.check("CKNN: rise of the error up to K = 120, %", rises[3], at_most=0.3)


def draw(errors):
    """Errors against K."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for j, alpha in enumerate(ALPHAS):
        axes.plot(SIZES, 100 * errors[:, j], marker=".", label=f"HKNN, $\\lambda$ = {alpha:g}")
    axes.plot(SIZES, 100 * errors[:, -1], "k--", marker=".", label="CKNN")
    axes.set(xlabel="K", ylabel="test error, %", title="MNIST", ylim=(0.8, 3.5))
    axes.legend()
    return figure
