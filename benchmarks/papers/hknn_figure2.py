"""Figures 11.1 and 11.2 of Vincent's thesis: decision surfaces in the plane.

Source: P. Vincent and Y. Bengio, K-Local Hyperplane and Convex Distance Nearest Neighbor
Algorithms, NIPS 14 (2002), here as chapter 11 of P. Vincent's thesis (2003).
Fixed by the paper: two classes in the plane with few points, KNN (K = 1), a linear SVM and CKNN
(K = 2). Its points are not printed.
Our choice: two parallel lines of points, which stand opposite the gaps of one another, so that the
linear SVM is right; below them two interlocked arcs, where it cannot be. HKNN with K = 2, lines
through pairs of points, stands beside them. The mark of a surface is its least distance to a
class's true line: the local margin that the chapter speaks of. Both lines go on beyond the last
points; the surface is looked at between these.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from pursuit import ConvexKNeighborsClassifier, HyperplaneKNeighborsClassifier

MODELS = {
    "KNN, K = 1": KNeighborsClassifier(1),
    "linear SVM": SVC(kernel="linear", C=1e6),
    "CKNN, K = 2": ConvexKNeighborsClassifier(2),
    "HKNN, K = 2": HyperplaneKNeighborsClassifier(2, alpha=0.0),
}
SIDE = 301


def run(report):
    """Two problems, four surfaces each."""
    figure = Figure(figsize=(13, 5.5), layout="constrained")
    panels = figure.subplots(2, 4)
    rows = []
    for panel_row, (title, curves) in zip(panels, problems().items(), strict=True):
        X = np.vstack([points for points, _ in curves])
        y = np.repeat([0, 1], [len(points) for points, _ in curves])
        margins = {}
        for axes, (name, model) in zip(panel_row, MODELS.items(), strict=True):
            margins[name] = draw(axes, name, model.fit(X, y), X, y, curves)
        rows.append([title, *(f"{margin:.2f}" for margin in margins.values())])
        if title == "two lines":
            gain = margins["CKNN, K = 2"] / margins["KNN, K = 1"]
            report.check("two lines: CKNN's margin over KNN's", gain, at_least=1.2)
    report.table(["", *MODELS], rows, "Least distance of the surface to the classes' true lines")
    report.figure("hknn_figure2", figure)


def problems():
    """For each problem and class the points, and the whole line that they are from."""
    rng = np.random.default_rng(1)
    t = np.arange(9.0)
    straight = [line(t + rng.uniform(-0.1, 0.1, 9) + 0.5 * side, 0.8 * side) for side in (0, 1)]
    whole = [line(np.linspace(0, 8.5, 800), 0.8 * side) for side in (0, 1)]
    arcs = [arc(np.linspace(0, np.pi, 7 + side), side) for side in (0, 1)]
    whole_arcs = [arc(np.linspace(0, np.pi, 600), side) for side in (0, 1)]
    return {
        "two lines": list(zip(straight, whole, strict=True)),
        "two arcs": list(zip(arcs, whole_arcs, strict=True)),
    }


def line(t, height):
    """Points of a slightly rising line."""
    return np.column_stack([t, 0.15 * t + height])


def arc(angles, side):
    """Points of one of two interlocked half circles."""
    sign = 1 - 2 * side
    across = 3 * np.cos(angles) * sign + 1.5 + 3 * side
    return np.column_stack([across, 3 * np.sin(angles) * sign + side])


def draw(axes, name, model, X, y, curves):
    """One surface; its least distance to the true lines is returned."""
    low, high = X.min(axis=0) - 0.6, X.max(axis=0) + 0.6
    first, second = (np.linspace(a, b, SIDE) for a, b in zip(low, high, strict=True))
    grid = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    labels = model.predict(grid).reshape(SIDE, SIDE)
    axes.contourf(first, second, labels, levels=[-0.5, 0.5, 1.5], colors=["#cfe0f3", "#f8d9c4"])
    axes.contour(first, second, labels, levels=[0.5], colors="0.3", linewidths=1)
    for code, marker in ((0, "o"), (1, "s")):
        axes.plot(*X[y == code].T, marker, color=f"C{code}", markersize=3)
    axes.set(title=name, xticks=[], yticks=[], aspect="equal")
    return margin(labels, grid.reshape(SIDE, SIDE, 2), curves)


def margin(labels, grid, curves):
    """Least distance of the place where the labels change to a class's line."""
    across = labels[:, 1:] != labels[:, :-1]
    along = labels[1:] != labels[:-1]
    border = np.vstack(
        [
            (grid[:, 1:][across] + grid[:, :-1][across]) / 2,
            (grid[1:][along] + grid[:-1][along]) / 2,
        ]
    )
    points = np.vstack([points for points, _ in curves])
    inside = (border[:, 0] > points[:, 0].min() + 0.5) & (border[:, 0] < points[:, 0].max() - 0.5)
    true = np.vstack([whole for _, whole in curves])
    return min(np.linalg.norm(true - point, axis=1).min() for point in border[inside])
