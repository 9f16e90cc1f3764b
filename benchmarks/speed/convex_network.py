"""Convex networks: time beside L-BFGS-B at equal objective, and beside SVC; growth with the rows.

1. wdbc, standardised, all 569 functions of the kernel (x'y / (|x| |y|) + 1)^3, lambda = 1: one fit
   with each convex loss for classes, with and without the box [-0.05, 0.05], with the penalties
   identity and kernel. L-BFGS-B (SciPy, the same objective and gradient, ten corrections) stops
   where its objective is within 1e-6 of that of the fit, or after 5000 iterations; its excess is
   shown. Both times are for the solver alone, on the matrix of functions. Then one fit of the
   estimator, with kernel, checks and all, and of SVC with the same kernel and C = 1.
2. The sweeps of the paper alone, by curvature and without joint steps, for 100 sweeps: what is left
   of the objective's excess.
3. magic, standardised, 500 to 8000 random rows, q = 10 % of the functions: chosen at random (one
   draw) and by MGRAMM; the exponent of the growth of the time, fitted to the last four points, and
   SVC beside them.

Times are processor seconds, which other work on the machine hardly changes; medians of three
rounds, in 3 from 4000 rows on of one. Goals: in 1 no solution above that of L-BFGS-B by more than
1e-6; for the default loss without a box no longer than L-BFGS-B; in 3 an exponent of at most 3,
that of q^2 n.
"""

import time

import numpy as np
from scipy.optimize import minimize
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.convex_network_sets import load
from pursuit import ConvexNetworkClassifier
from pursuit.expansion.design_matrix import DesignMatrix
from pursuit.kernels import CosinePolynomial
from pursuit.losses import LOSSES
from pursuit.optimize.coordinate_descent import Problem, solve

CONVEX = [name for name, loss in LOSSES.items() if loss.convex and loss.task != "regressor"]
SIZES = (500, 1000, 2000, 4000, 8000)
N_SWEEPS = 100
MOST_ITERATIONS = 5_000


def run(report):
    """The three questions."""
    optimum(report)
    growth(report)


def processor_seconds(functions, rounds=3):
    """Median processor seconds of each named function, and its last result, run in turn."""
    times, results = {name: [] for name in functions}, {}
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.process_time()
            results[name] = function()
            times[name].append(time.process_time() - start)
    return {name: np.median(values) for name, values in times.items()}, results


def problem_of(loss, bound, penalty):
    """Eq. 8 on wdbc."""
    X, y = load("wdbc")
    K = CosinePolynomial()(*2 * (StandardScaler().fit_transform(X),))
    n = len(K)
    box = np.full(n, -bound), np.full(n, bound)
    A = K if penalty == "kernel" else None
    y = np.where(y == y[0], 1.0, -1.0)[:, None]
    return Problem(LOSSES[loss], y, np.ones(n), DesignMatrix(None, K), 1.0, A, *box)


def lbfgs(problem, target):
    """The objective of L-BFGS-B and its iterations, up to a target."""
    best = [np.inf]

    def value_and_slope(beta):
        point = problem.at(beta)
        best[0] = min(best[0], point.objective)
        return point.objective, problem.gradient(point)

    def stop(intermediate_result):
        if intermediate_result.fun <= target:
            raise StopIteration

    bounds = None
    if np.isfinite(problem.lower).any():
        bounds = list(zip(problem.lower, problem.upper, strict=True))
    start = np.clip(np.zeros(len(problem.lower)), problem.lower, problem.upper)
    found = minimize(value_and_slope, start, jac=True, method="L-BFGS-B", bounds=bounds,
                     callback=stop, options={"ftol": 0.0, "gtol": 0.0, "maxiter": MOST_ITERATIONS,
                                             "maxfun": 2 * MOST_ITERATIONS})  # fmt: skip
    return best[0], found.nit


def optimum(report):
    """Questions 1 and 2."""
    X, y = load("wdbc")
    X = StandardScaler().fit_transform(X)
    times, _ = processor_seconds(
        {
            "pursuit": lambda: ConvexNetworkClassifier().fit(X, y),
            "SVC": lambda: SVC(kernel=CosinePolynomial()).fit(X, y),
        }
    )
    rows, worst = [], -np.inf
    for loss in CONVEX:
        for bound in (np.inf, 0.05):
            for penalty in ("identity", "kernel"):
                problem = problem_of(loss, bound, penalty)
                ours = solve(problem, tol=1e-8)
                target = ours.objectives[-1] * (1.0 + 1e-6)
                found = {
                    "pursuit": lambda p=problem: solve(p, tol=1e-8),
                    "L-BFGS-B": lambda p=problem, t=target: lbfgs(p, t),
                }
                spent, results = processor_seconds(found, 1 if penalty == "kernel" else 3)
                other, n_iter = results["L-BFGS-B"]
                excess = other / ours.objectives[-1] - 1.0
                worst = max(worst, -excess)
                alone = solve(problem, joint=False, max_iter=N_SWEEPS, tol=1e-8)
                left = alone.objectives[-1] / ours.objectives[-1] - 1.0
                rows.append(
                    [loss, "" if np.isinf(bound) else f"{bound:g}", penalty,
                     f"{ours.objectives[-1]:.4f}", ours.n_iter, f"{1e3 * spent['pursuit']:.0f}",
                     f"{1e3 * spent['L-BFGS-B']:.0f}", n_iter, f"{excess:.0e}", f"{left:.0e}"]
                )  # fmt: skip
                if loss == "log_loss" and np.isinf(bound) and penalty == "identity":
                    ratio = spent["pursuit"] / spent["L-BFGS-B"]
    report.table(
        ["loss", "box", "penalty", "objective", "steps", "ms", "L-BFGS-B, ms", "its iterations",
         "its excess", f"excess of {N_SWEEPS} sweeps alone"],
        rows,
        "wdbc, 569 functions: the solver",
    )  # fmt: skip
    report.add(
        f"One fit of the estimator with log-loss: {1e3 * times['pursuit']:.0f} ms; "
        f"SVC: {1e3 * times['SVC']:.0f} ms."
    )
    report.check("objective above that of L-BFGS-B, relative, worst", worst, at_most=1e-6)
    report.check("log-loss without a box: time over L-BFGS-B's", ratio, at_most=1)


def growth(report):
    """Question 3."""
    X, y = load("magic")
    X = StandardScaler().fit_transform(X)
    order = np.random.default_rng(0).permutation(len(X))
    kinds = {
        "random": lambda X, y: network("random").fit(X, y),
        "MGRAMM": lambda X, y: network("gram_schmidt").fit(X, y),
        "SVC": lambda X, y: SVC(kernel=CosinePolynomial()).fit(X, y),
    }
    times = {name: [] for name in kinds}
    accuracies = {name: [] for name in kinds}
    test = order[max(SIZES) :][:5000]
    for n in SIZES:
        rows = order[:n]
        fits = {
            name: lambda fit=fit, rows=rows: fit(X[rows], y[rows]) for name, fit in kinds.items()
        }
        spent, models = processor_seconds(fits, 3 if n < 4000 else 1)
        for name, model in models.items():
            times[name].append(spent[name])
            accuracies[name].append(model.score(X[test], y[test]))
        print(f"  {n}", flush=True)
    exponents = {
        name: np.polyfit(np.log(SIZES[1:]), np.log(spent[1:]), 1)[0]
        for name, spent in times.items()
    }
    rows = [
        [name, *(f"{spent:.3f} ({100 * accuracy:.1f})"
                 for spent, accuracy in zip(times[name], accuracies[name], strict=True)),
         f"{exponents[name]:.2f}"]
        for name in kinds
    ]  # fmt: skip
    report.table(
        ["functions", *(f"n = {n}" for n in SIZES), "exponent"],
        rows,
        "magic, q = n / 10: processor seconds (test accuracy, %)",
    )
    for name in ("random", "MGRAMM"):
        report.check(f"{name}: exponent of the growth", exponents[name], at_most=3)


def network(selection):
    """The estimator of question 3."""
    return ConvexNetworkClassifier(selection=selection, n_components=0.1, n_draws=1, random_state=0)
