"""Basis pursuit (equation 15 of Kernel Matching Pursuit) at equal numbers of vectors.

Source: P. Vincent and Y. Bengio, Kernel Matching Pursuit, Machine Learning 48 (2002), section 4.5.
The paper compares in words only: basis pursuit minimises the squared error plus lambda times the
sum of |alpha_k| over the whole dictionary, has to be solved for many lambda, and "would probably
have achieved very similar experimental results".
Our choice: the same dictionary for both, a Gaussian on every training row, and an intercept (the
columns and the targets are centred); gamma by 5-fold cross-validation of kernel ridge regression,
which favours neither, on the first split. Standardised features; targets +1 and -1 for the two
classification sets; the first 10 splits of banana and waveform (400 training rows), 10 random
halves of Boston (253).
Basis pursuit: scikit-learn's `lars_path` follows the solution for all lambda; at N vectors stands
the smallest lambda on its way with at most N coefficients that are not zero. Its coefficients are
taken as they are, which shrinks them, and also fitted again by least squares on the vectors chosen.
KMP: pre-fitting, one path, read off at N.
Seconds: to the first solution with 80 vectors on the first split, kernel matrix included. Beside
them `lasso_path`, coordinate descent over 100 lambdas from the largest to the same smallest one
(its default tolerance and 1000 rounds), with the number of lambdas at which it did not converge.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import lars_path, lasso_path
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler

from benchmarks.report import log_axis
from benchmarks.timing import seconds
from pursuit import KernelMatchingPursuitRegressor, datasets

N_SPLITS = 10
BUDGETS = (5, 10, 20, 40, 80)
METHODS = {"KMP": "KMP", "l1": "L1", "refit": "L1, fitted again"}


@dataclass(frozen=True)
class Problem:
    """A data set, and how an error is counted."""

    title: str
    name: str
    classes: bool

    def error(self, values, y):
        """Error rate in percent, or mean squared error."""
        if self.classes:
            return 100 * np.mean((values > 0) != (y > 0))
        return np.mean((values - y) ** 2)


PROBLEMS = [
    Problem("banana, error %", "ida_banana", True),
    Problem("waveform, error %", "ida_waveform", True),
    Problem("Boston, squared error", "boston", False),
]


def run(report):
    """Errors on all splits and times on the first one."""
    errors, times = {}, []
    for problem in PROBLEMS:
        splits = list(load(problem))
        gamma = kernel_width(*splits[0][0])
        errors[problem] = [split_errors(problem, gamma, *parts) for parts in splits]
        times.append([problem.title.split(",")[0], f"{gamma:.3g}", *time(gamma, *splits[0][0])])
        print(f"  {problem.title}", flush=True)
    header = ["", *(f"N = {n}" for n in BUDGETS)]
    for problem, outcome in errors.items():
        rows = [
            [title, *(cell([split[name][n] for split in outcome]) for n in BUDGETS)]
            for name, title in METHODS.items()
        ]
        report.table(header, rows, f"{problem.title}: mean and standard error over the splits")
    report.table(
        ["", "gamma", "KMP, s", "LARS, s", "its steps", "coordinate descent, s",
         "lambdas not converged"],
        times,
        f"Time to {BUDGETS[-1]} vectors",
    )  # fmt: skip
    report.figure("basis_pursuit", draw(errors))
    for problem, outcome in errors.items():
        for n in BUDGETS:
            means = {name: np.mean([split[name][n] for split in outcome]) for name in METHODS}
            report.check(
                f"{problem.title}, N = {n}: KMP over L1 fitted again",
                means["KMP"] / means["refit"],
                at_most=1,
                paper="very similar",
                peers=f"over L1 as it is {means['KMP'] / means['l1']:.3g}",
            )
    for title, _, kmp_seconds, lars_seconds, *_ in times:
        ratio = float(kmp_seconds) / float(lars_seconds)
        report.check(f"{title}: time KMP/LARS", ratio, at_most=1)


def load(problem):
    """Training and test part of each split, standardised as the training part says."""
    X, y = datasets.load(problem.name)
    y = np.where(y == y.max(), 1.0, -1.0) if problem.classes else y.astype(float)
    for i in range(N_SPLITS):
        if problem.classes:
            train, test = datasets.splits(problem.name, i)
        else:
            train, test = np.array_split(np.random.default_rng(i).permutation(len(X)), 2)
        scaler = StandardScaler().fit(X[train])
        yield [(scaler.transform(X[part]), y[part]) for part in (train, test)]


def kernel_width(X, y):
    """Gamma by cross-validation of kernel ridge regression."""
    grid = {"gamma": 4.0 ** np.arange(-3, 3) / X.shape[1], "alpha": 10.0 ** np.arange(-6, 2)}
    folds = KFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=folds)
    return search.fit(X, y - y.mean()).best_params_["gamma"]


def split_errors(problem, gamma, train, test):
    """Test error of each method at each number of vectors."""
    (X, y), (X_test, y_test) = train, test
    K, K_test = rbf_kernel(X, X, gamma), rbf_kernel(X_test, X, gamma)
    path = lasso(K, y)[1]
    kmp = list(fit_kmp(gamma, X, y).staged_predict(X_test))
    errors = {name: {} for name in METHODS}
    for n in BUDGETS:
        coefficients = path[:, np.flatnonzero(sizes(path) <= n)[-1]]
        values = {
            "KMP": kmp[n - 1],
            "l1": (K_test - K.mean(axis=0)) @ coefficients + y.mean(),
            "refit": least_squares(K, y, K_test, np.flatnonzero(coefficients)),
        }
        for name in METHODS:
            errors[name][n] = problem.error(values[name], y_test)
    return errors


def fit_kmp(gamma, X, y):
    """One path."""
    return KernelMatchingPursuitRegressor(BUDGETS[-1], gamma=gamma).fit(X, y)


def lasso(K, y, max_iter=1000):
    """The L1 path: lambda / (2 l), and coefficients with one column a step."""
    alphas, _, path = lars_path(K - K.mean(axis=0), y - y.mean(), method="lasso", max_iter=max_iter)
    return alphas, path


def sizes(path):
    """Number of coefficients that are not zero at each step."""
    return np.count_nonzero(path, axis=0)


def least_squares(K, y, K_test, chosen):
    """Predictions of the fit with intercept on the chosen columns."""
    design, design_test = (
        np.column_stack([np.ones(len(part)), part[:, chosen]]) for part in (K, K_test)
    )
    return design_test @ np.linalg.lstsq(design, y, rcond=None)[0]


def time(gamma, X, y):
    """Seconds of the three programs to the largest number of vectors."""
    kmp = min(seconds(lambda: fit_kmp(gamma, X, y))[0] for _ in range(3))
    _, path = lasso(rbf_kernel(X, X, gamma), y)
    steps = int(np.argmax(sizes(path) >= BUDGETS[-1]))
    rounds = [seconds(lambda: lasso(rbf_kernel(X, X, gamma), y, steps)) for _ in range(3)]
    alphas = rounds[0][1][0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        descent = seconds(lambda: descend(gamma, X, y, np.geomspace(alphas[0], alphas[-1], 100)))[0]
    lars = min(elapsed for elapsed, _ in rounds)
    return [f"{kmp:.3f}", f"{lars:.3f}", steps, f"{descent:.2f}", len(caught)]


def descend(gamma, X, y, alphas):
    """The L1 path by coordinate descent."""
    K = rbf_kernel(X, X, gamma)
    return lasso_path(K - K.mean(axis=0), y - y.mean(), alphas=alphas)


def cell(values):
    """Mean and standard error."""
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.2f}"


def draw(errors):
    """Mean error against the number of vectors."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    for axes, (problem, outcome) in zip(figure.subplots(1, 3), errors.items(), strict=True):
        for (name, title), marker in zip(METHODS.items(), "os^", strict=True):
            means = [np.mean([split[name][n] for split in outcome]) for n in BUDGETS]
            axes.plot(BUDGETS, means, f"{marker}-", label=title)
        log_axis(axes.xaxis, BUDGETS)
        axes.set(title=problem.title, xlabel="vectors", ylim=(0, None))
    axes.legend()
    return figure
