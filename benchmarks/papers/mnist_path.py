"""MNIST, the first 7000 rows: the whole path of accuracy against vectors from one fit.

Not in the paper: the method of P. Vincent and Y. Bengio, Kernel Matching Pursuit (2002), section
2.3 (pre-fitting, squared error), with one basis shared by the ten classes.
Protocol: the first 7000 training images, the 10000 test images, pixels / 256, one fit of 1500
vectors; the errors at 400 and 800 vectors are read off its path. Beside it SVC. Each method has the
width, and SVC the C, that its errors on further training images choose (`mnist_widths`); beside
them gamma = 1 / (2 * 6.47^2) and C = 100, the reading of the thesis that stood here before, to
which the bounds belong.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.svm import SVC

from benchmarks import mnist
from benchmarks.report import log_axis, percent
from benchmarks.timing import seconds
from pursuit import KernelMatchingPursuitClassifier

GAMMA = 1 / (2 * mnist.SIGMA**2)
BOUNDS = {400: 5.0, 800: 4.2, 1500: 3.65}


def run(report):
    """Two fits, their test errors after every vector, and two SVMs."""
    X, y, X_test, y_test = mnist.images(mnist.N_TRAIN)
    rows, curves = [], {}
    for title, gamma in (("width by held-out rows", mnist.gamma("KMP")), ("sigma = 6.47", GAMMA)):
        model = KernelMatchingPursuitClassifier(max(BOUNDS), gamma=gamma)
        elapsed, model = seconds(lambda model=model: model.fit(X, y))
        errors = np.array([np.mean(labels != y_test) for labels in model.staged_predict(X_test)])
        curves[f"KMP, {title}"] = errors
        rows += [[f"KMP, {title}, N = {n}", n, percent(errors[n - 1]), ""]
                 for n in (100, 200, *BOUNDS)]  # fmt: skip
        rows[-1][-1] = f"{elapsed:.1f} (all of the path)"
    points = {}
    for title, machine in (
        ("width and C by held-out rows", SVC(C=mnist.penalty("SVC"), gamma=mnist.gamma("SVC"))),
        ("sigma = 6.47, C = 100", SVC(C=100, gamma=GAMMA)),
    ):
        elapsed, svm = seconds(lambda machine=machine: machine.fit(X, y))
        error = 1 - svm.score(X_test, y_test)
        points[f"SVC, {title}"] = len(svm.support_), error
        rows.append([f"SVC, {title}", len(svm.support_), percent(error), f"{elapsed:.1f}"])
    report.table(["", "vectors", "test error, %", "seconds to fit"], rows)
    report.figure("mnist_path", draw(curves, points))
    tuned, printed = (100 * errors for errors in curves.values())
    beside = ", ".join(f"{name} {100 * error:.2f}" for name, (_, error) in points.items())
    for n, bound in BOUNDS.items():
        report.published(f"test error, {n} vectors, width by held-out rows, %", "", tuned[n - 1],
                         peers=beside)  # fmt: skip
        report.check(f"test error, {n} vectors, sigma = 6.47, %", printed[n - 1], at_most=bound)


def draw(curves, points):
    """Test error against vectors."""
    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.subplots()
    for k, (name, errors) in enumerate(curves.items()):
        axes.plot(np.arange(1, len(errors) + 1), 100 * errors, color=f"C{k}", label=name)
    for k, (name, (vectors, error)) in enumerate(points.items()):
        axes.plot(vectors, 100 * error, "os"[k], color=f"C{k}", label=name)
    axes.set(xlabel="vectors", ylabel="test error, %", title="MNIST, 7000 training images")
    log_axis(axes.xaxis, [1, 10, 100, 400, 1500])
    log_axis(axes.yaxis, [3, 4, 5, 7, 10, 20, 50])
    axes.legend()
    return figure
