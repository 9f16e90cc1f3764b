"""KMP beside the kernel perceptron and leveraged vectors: section 4.6 of Kernel Matching Pursuit.

Source: P. Vincent and Y. Bengio, Kernel Matching Pursuit, Machine Learning 48 (2002), sections 4.4
and 4.6, which compare in words and have no figures: perceptrons are "typically more sparse than
SVMs while retaining comparable recognition accuracies", and "KMP solutions may require less support
vectors than Kernel Perceptron".
Data, kernels, scaling and the three equal parts are those of table 3 (``uci_table3.py``); 20
splits. Every number is chosen by the classification error on the validation part, of equal ones the
one with fewer vectors: the number of vectors of KMP and of leveraged vectors, the passes of the
perceptron (1 to 20), the penalty of the perceptron on columns.
Kernel perceptron: Rosenblatt's rule in the space of the kernel with a bias, rows in a new random
order in each pass; its vectors are the rows that it ever made a mistake on.
Perceptron on columns: scikit-learn's `Perceptron` with an l1 penalty (1e-5 to 1e-1) on the kernel's
columns; its vectors are the columns with a weight.
Leveraged vectors (Singer 2000), in our reading: boosting by the exponential loss with kernel
functions as weak learners, one coefficient a step (basic pursuit), up to 100 steps.
The bounds are those of the words: KMP with no more vectors than the perceptron, and an error at
most one point above.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.papers.uci_table3 import PROBLEMS, best_svm, split
from benchmarks.report import percent
from pursuit import KernelMatchingPursuitClassifier, datasets

N_SPLITS = 20
MOST_PASSES = 20
LONGEST_LEVERAGED = 100
PENALTIES = 10.0 ** np.arange(-5, 0)
METHODS = ("SVM", "KMP-mse", "kernel perceptron", "perceptron on columns", "leveraged vectors")


def run(report):
    """The splits of each problem, then a table and bounds."""
    outcomes = {problem: run_problem(problem) for problem in PROBLEMS}
    cells = [part for name in METHODS for part in (name, "vectors")]
    rows = [
        [problem.title, *(part for name in METHODS for part in cell(results[name]))]
        for problem, results in outcomes.items()
    ]
    report.table(["", *cells], rows, "Test error, %, and number of vectors; means")
    for problem, results in outcomes.items():
        ours, theirs = (results[name].mean(axis=0) for name in ("KMP-mse", "kernel perceptron"))
        title = f"{problem.title}: KMP beside the kernel perceptron"
        report.check(f"{title}, vectors over its", ours[1] / theirs[1], at_most=1.0)
        report.check(f"{title}, error above, points", 100 * (ours[0] - theirs[0]), at_most=1.0)


def cell(values):
    return percent(values[:, 0]), f"{values[:, 1].mean():.1f}"


def run_problem(problem):
    """(error, vectors) of the methods in each split."""
    X, y = datasets.load(problem.name)
    complete = ~np.isnan(X).any(axis=1)
    X, y = X[complete], y[complete]
    rng = np.random.default_rng(0)
    results = {name: [] for name in METHODS}
    for _ in range(N_SPLITS):
        parts = split(problem, X, y, rng)
        results["SVM"].append(best_svm(problem, *parts))
        results["KMP-mse"].append(best_path(problem, {}, len(parts[0][0]), *parts))
        leveraged = {"loss": "exponential", "fitting": "basic"}
        results["leveraged vectors"].append(
            best_path(problem, leveraged, LONGEST_LEVERAGED, *parts)
        )
        results["kernel perceptron"].append(best_perceptron(problem, rng, *parts))
        results["perceptron on columns"].append(best_on_columns(problem, *parts))
    print(f"  {problem.title}", flush=True)
    return {name: np.array(values) for name, values in results.items()}


def best_path(problem, method, budget, train, validation, test):
    """Test error and vectors of the step with the lowest validation error."""
    model = KernelMatchingPursuitClassifier(budget, gamma=problem.sigma**-2, **method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the path is meant to use up the rank
        model.fit(*train)
    errors = [np.mean(labels != validation[1]) for labels in model.staged_predict(validation[0])]
    best = model.truncate(int(np.argmin(errors)) + 1)
    return 1 - best.score(*test), best.n_components_


def best_perceptron(problem, rng, train, validation, test):
    """Test error and vectors after the pass with the lowest validation error."""
    gamma, (X, y) = problem.sigma**-2, train
    signs = np.where(y == np.unique(y)[1], 1.0, -1.0)
    K = rbf_kernel(X, gamma=gamma)
    others = [(rbf_kernel(rows, X, gamma=gamma), labels) for rows, labels in (validation, test)]
    coefficients, bias, found = np.zeros(len(X)), 0.0, []
    for _ in range(MOST_PASSES):
        for i in rng.permutation(len(X)):
            if signs[i] * (K[i] @ coefficients + bias) <= 0:
                coefficients[i] += signs[i]
                bias += signs[i]
        errors = [
            np.mean(np.where(values @ coefficients + bias > 0, *np.unique(y)[::-1]) != labels)
            for values, labels in others
        ]
        found.append((errors[0], np.count_nonzero(coefficients), errors[1]))
    _, n_vectors, error = min(found, key=lambda each: each[:2])
    return error, n_vectors


def best_on_columns(problem, train, validation, test):
    """Test error and vectors of the penalty with the lowest validation error."""
    gamma = problem.sigma**-2
    columns = [rbf_kernel(part[0], train[0], gamma=gamma) for part in (train, validation, test)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [
            Perceptron(penalty="l1", alpha=alpha, random_state=0).fit(columns[0], train[1])
            for alpha in PENALTIES
        ]
    best = min(
        models,
        key=lambda model: (
            1 - model.score(columns[1], validation[1]),
            np.count_nonzero(model.coef_),
        ),
    )
    return 1 - best.score(columns[2], test[1]), np.count_nonzero(best.coef_)
