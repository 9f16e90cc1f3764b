"""Figure 2 of Classification using a sparse combination of basis functions: the objective.

Source: K. Kovacs and A. Kocsor, 2006, section 4. Fixed by the paper: the ionosphere data; the
objective of the network (kernel, lambda, A as in table 1) with the functions that MGRAMM and CORR
choose, as a percentage of that with RANDOM's, the best of five draws. The paper's curves lie below
100 % throughout.
Our choice: all 351 rows, standardised; 5 to 100 % of the functions in steps of 5; RANDOM's
objective is the mean of 5 such bests. CORR takes correlation coefficients, of functions less their
means, as the paper's text says; its pseudo-code leaves the means in, which is CORR as printed,
beside it. Beyond the paper: selection by the objective itself.
Bound: the mean over the curve of each rule is at most that of RANDOM; none on CORR as printed,
which was known to lie at 119 % when it got its curve.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.preprocessing import StandardScaler

from benchmarks.convex_network_sets import load
from pursuit import ConvexNetworkClassifier

SHARES = np.arange(1, 21) / 20
RULES = {
    "gram_schmidt": "MGRAMM",
    "correlation": "CORR",
    "cosine": "CORR as printed",
    "objective": "by the objective",
}
N_SEEDS = 5


def run(report):
    """Objectives, the picture, the bounds."""
    X, y = load("ionosphere")
    X = StandardScaler().fit_transform(X)
    found = {rule: [] for rule in ("random", *RULES)}
    for share in SHARES:
        draws = [objective(X, y, "random", share, seed) for seed in range(N_SEEDS)]
        found["random"].append(np.mean(draws))
        for rule in RULES:
            found[rule].append(objective(X, y, rule, share))
        print(f"  {100 * share:.0f} %", flush=True)
    relative = {rule: 100 * np.divide(found[rule], found["random"]) for rule in RULES}
    rows = [
        [f"{100 * share:.0f} %", f"{found['random'][i]:.3f}",
         *(f"{relative[rule][i]:.2f}" for rule in RULES)]
        for i, share in enumerate(SHARES)
    ]  # fmt: skip
    report.table(
        ["functions", "RANDOM: objective", *(f"{name}, %" for name in RULES.values())],
        rows,
        "Objective, in per cent of RANDOM's",
    )
    report.figure("cn_figure2", draw(relative))
    for rule, name in RULES.items():
        what, mean = f"{name}: mean of the curve, %", relative[rule].mean()
        if rule == "cosine":
            report.published(what, "below 100", mean)
        else:
            report.check(what, mean, at_most=100)


def objective(X, y, rule, share, seed=None):
    """The least objective with the functions of a rule."""
    model = ConvexNetworkClassifier(selection=rule, n_components=float(share), random_state=seed)
    return model.fit(X, y).objective_


def draw(relative):
    """The curves."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.axhline(100, color="grey", lw=1, label="RANDOM")
    for (rule, name), marker in zip(RULES.items(), "sox^", strict=True):
        axes.plot(100 * SHARES, relative[rule], marker=marker, ms=4, lw=1.2, label=name)
    axes.set(xlabel="functions, %", ylabel="objective, % of RANDOM's", title="ionosphere")
    axes.legend()
    return figure
