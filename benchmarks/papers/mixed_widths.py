"""Dictionaries that mix widths, and Gaussians that follow the data, beside the best single width.

Sources: P. Vincent and Y. Bengio, Kernel Matching Pursuit, Machine Learning 48 (2002), sections
4.1 and 6 (several kernel shapes to choose from); P. Vincent, thesis (2003), section 14.2 (oriented
Gaussians as a dictionary) and section 13.4.1 (the spiral). Neither has figures for this.
Two scales: y = sin(2 pi x) and four bumps of height +-1 and width 0.01, x uniform on [0, 1], 500
training rows with noise 0.05, squared error on 2000 points without noise. Single widths gamma =
1, 4, ..., 65536; the mixed dictionary holds every one of them on every row.
Spiral: (0.04 t sin t, 0.04 t cos t) with t uniform on [3, 15] and noise 0.01, as in the thesis. The
target is whether a row belongs to the spiral (+1, 300 rows) or to a background uniform on
[-0.7, 0.7]^2 (-1, 300 rows), so that the fit estimates 2 P(spiral | x) - 1; squared error on 3000
rows of each. Single widths gamma = 4, 16, ..., 4096. Oriented Gaussians on the same rows, with one
direction each; their neighbours are sought among all rows, the background included. Their number
(5, 10, 20, 30) and the noise variance (0.01^2, 0.02^2, 0.04^2) are chosen as the width is.
For each N the single width (and the kind of oriented Gaussian) is the one of lowest squared error
in 5-fold cross-validation at that N; the mixed dictionary has nothing to choose. Pre-fitting, means
over 10 draws. The bounds stand where the budget binds and is enough for more than an outline. With
many vectors one width serves, and the mixed dictionary, with many more atoms, also fits the noise.
"""

import warnings

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from benchmarks.report import log_axis
from pursuit import KernelMatchingPursuitRegressor
from pursuit.dictionary import OrientedGaussians
from pursuit.kernels import RBF

N_DRAWS = 10
CENTRES, HEIGHTS = (0.15, 0.4, 0.65, 0.9), (1, -1, 1, -1)


def run(report):
    """Both targets."""
    widths = {f"RBF({gamma:g})": RBF(gamma) for gamma in 4.0 ** np.arange(9)}
    scales = compare(two_scales, widths, {"all widths": list(widths.values())}, (4, 8, 16, 32, 64))
    tell(report, scales, "Two scales", "mixed widths", bounded=(8, 16, 32))
    widths = {f"RBF({gamma:g})": RBF(gamma) for gamma in 4.0 ** np.arange(1, 7)}
    oriented = {
        f"{k} neighbours, {sigma}^2": OrientedGaussians(n_neighbors=k, noise_variance=sigma**2)
        for k in (5, 10, 20, 30)
        for sigma in (0.01, 0.02, 0.04)
    }
    spiral = compare(spiral_and_background, widths, oriented, (5, 10, 20, 40, 80))
    tell(report, spiral, "Spiral", "oriented Gaussians", bounded=(10, 20, 40))
    report.figure("mixed_widths", draw({"Two scales": scales, "Spiral": spiral}))


def two_scales(rng):
    """Training rows and test points of a slow wave with four narrow bumps."""

    def target(x):
        bumps = np.exp(-0.5 * ((x[:, None] - CENTRES) / 0.01) ** 2) @ HEIGHTS
        return np.sin(2 * np.pi * x) + bumps

    x, x_test = rng.random(500), np.linspace(0, 1, 2000)
    y = target(x) + 0.05 * rng.normal(size=500)
    return (x[:, None], y), (x_test[:, None], target(x_test))


def spiral_and_background(rng):
    """Rows of the spiral and of the background, with +1 and -1."""

    def sample(n):
        t = rng.uniform(3, 15, n)
        curve = 0.04 * t[:, None] * np.column_stack([np.sin(t), np.cos(t)])
        X = np.vstack([curve + rng.normal(0, 0.01, (n, 2)), rng.uniform(-0.7, 0.7, (n, 2))])
        return X, np.repeat([1.0, -1.0], n)

    return sample(300), sample(3000)


def compare(problem, single, other, budgets):
    """Test errors of the best of both groups of dictionaries at each budget, a row a draw."""
    errors, chosen = {"single": [], "other": []}, {"single": [], "other": []}
    for draw in range(N_DRAWS):
        train, test = problem(np.random.default_rng(draw))
        for group, dictionaries in (("single", single), ("other", other)):
            names, values = best(dictionaries, train, test, budgets)
            errors[group].append(values)
            chosen[group].append(names)
        print(f"  {problem.__name__}, draw {draw}", flush=True)
    return {
        "budgets": budgets,
        "errors": {group: np.array(values) for group, values in errors.items()},
        "chosen": {group: np.array(names) for group, names in chosen.items()},
    }


def best(dictionaries, train, test, budgets):
    """The dictionary of lowest cross-validated error at each budget, and its test error."""
    candidates = list(dictionaries)
    found = [cross_validated(dictionaries[name], *train, budgets) for name in candidates]
    winners = np.argmin(found, axis=0) if len(candidates) > 1 else np.zeros(len(budgets), int)
    paths = {i: errors(dictionaries[candidates[i]], train, test, budgets) for i in set(winners)}
    return (
        [candidates[i] for i in winners],
        [paths[i][position] for position, i in enumerate(winners)],
    )


def cross_validated(dictionary, X, y, budgets):
    """Mean squared error in 5 folds at each budget."""
    folds = KFold(5, shuffle=True, random_state=0).split(X)
    return np.mean(
        [
            errors(dictionary, (X[train], y[train]), (X[test], y[test]), budgets)
            for train, test in folds
        ],
        axis=0,
    )


def errors(dictionary, train, test, budgets):
    """Squared error at each budget of one path; the last value where the path ends early."""
    model = KernelMatchingPursuitRegressor(budgets[-1], dictionary=dictionary)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # wide Gaussians have a low rank
        model.fit(*train)
    path = [np.mean((values - test[1]) ** 2) for values in model.staged_predict(test[0])]
    return [path[min(n, len(path)) - 1] for n in budgets]


def tell(report, outcome, title, other, bounded):
    """Table and bounds of one target."""
    rows = []
    for position, n in enumerate(outcome["budgets"]):
        single, ours = (outcome["errors"][group][:, position] for group in ("single", "other"))
        picks = [common(outcome["chosen"][group][:, position]) for group in ("single", "other")]
        rows.append(
            [f"N = {n}", f"{single.mean():.5f}", f"{ours.mean():.5f}",
             f"{ours.mean() / single.mean():.2f}", f"{(ours < single).sum()} of {N_DRAWS}", *picks]
        )  # fmt: skip
        if n in bounded:
            report.check(
                f"{title}, N = {n}: error of {other} over the best single width",
                ours.mean() / single.mean(),
                at_most=1,
            )
    report.table(
        ["", "best single width", other, "ratio", "draws where lower", "width most often",
         "dictionary most often"],
        rows,
        f"{title}: squared error",
    )  # fmt: skip


def common(names):
    """The most frequent name."""
    values, counts = np.unique(names, return_counts=True)
    return values[counts.argmax()]


def draw(outcomes):
    """Mean test errors against the budget."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    labels = {"Two scales": "mixed widths", "Spiral": "oriented Gaussians"}
    for axes, (title, outcome) in zip(figure.subplots(1, 2), outcomes.items(), strict=True):
        budgets = outcome["budgets"]
        axes.plot(budgets, outcome["errors"]["single"].mean(axis=0), "s-", color="C1",
                  label="best single width")  # fmt: skip
        axes.plot(budgets, outcome["errors"]["other"].mean(axis=0), "o-", color="C0",
                  label=labels[title])  # fmt: skip
        log_axis(axes.xaxis, budgets)
        axes.set(title=title, xlabel="vectors", ylabel="squared error on test points")
        axes.legend()
    figure.axes[0].set_yscale("log")
    return figure
