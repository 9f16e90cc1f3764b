"""Figure 3 of Classification using a sparse combination of basis functions: objective and accuracy.

Source: K. Kovacs and A. Kocsor, 2006, section 4. Fixed by the paper: the ionosphere data, MGRAMM;
kernel, lambda and A as in table 1. The paper's points show that a lower objective means a better
test accuracy.
Our choice: the folds of table 1 (three times ten); 5 to 100 % of the functions in steps of 5; each
point is the mean over the folds of the objective on the training part and of the test accuracy.
Bound: a negative rank correlation of the two (Spearman) that is no chance: the one-sided p-value
of the 20 points is at most 0.05.
"""

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from benchmarks.convex_network_sets import folds, load
from pursuit import ConvexNetworkClassifier

SHARES = np.arange(1, 21) / 20
SEEDS = (0, 1, 2)


def run(report):
    """Points, the picture, the bound."""
    X, y = load("ionosphere")
    points = np.array([[one(X, y, share, seed) for seed in SEEDS] for share in SHARES])
    objectives, accuracies = points.mean(axis=1).T
    rows = [
        [f"{100 * share:.0f} %", f"{objective:.3f}", f"{100 * accuracy:.2f}"]
        for share, objective, accuracy in zip(SHARES, objectives, accuracies, strict=True)
    ]
    report.table(["functions", "objective", "test accuracy, %"], rows, "Means over the folds")
    report.figure("cn_figure3", draw(objectives, accuracies))
    found = spearmanr(objectives, accuracies, alternative="less")
    report.published("rank correlation of objective and accuracy", "negative", found.statistic)
    report.check("one-sided p-value of that correlation", found.pvalue, at_most=0.05)


def one(X, y, share, seed):
    """Objective on the training part and test accuracy, means over ten folds."""
    values = []
    for X_train, y_train, X_test, y_test in folds(X, y, seed):
        model = ConvexNetworkClassifier(selection="gram_schmidt", n_components=float(share))
        model.fit(X_train, y_train)
        values.append((model.objective_, model.score(X_test, y_test)))
    print(f"  {100 * share:.0f} %, seed {seed}", flush=True)
    return np.mean(values, axis=0)


def draw(objectives, accuracies):
    """The points, each with its share of the functions."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(objectives, 100 * accuracies, "o-", ms=4, lw=0.8)
    for i in (0, 1, 2, 3, 5, 9, 19):
        where = objectives[i], 100 * accuracies[i]
        axes.annotate(f"{100 * SHARES[i]:.0f} %", where, (4, 4), textcoords="offset points")
    axes.set(xlabel="objective, mean over the folds", ylabel="test accuracy, %")
    axes.set_title("ionosphere, MGRAMM")
    axes.invert_xaxis()
    return figure
