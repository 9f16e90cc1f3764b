"""Landmarks for a linear model: drawn at random, and chosen in four better ways.

Not in a paper: the rules are those of Hussain and Shawe-Taylor, Theory of matching pursuit (2008),
algorithm 1 with 59 candidates (Rayleigh), of Chen and others (2022, RPCholesky), of Vincent and
Bengio, Kernel Matching Pursuit (2002; supervised), and cluster means; random landmarks are those
of scikit-learn's Nystroem.
Protocol: adult (32561 training rows, 16281 test rows; text as indicators), covtype (100000 and
50000 random rows, seven classes), kin40k (30000 and 10000), MNIST (the first 10000 training images,
10000 test images). Numbers are standardised on the training rows, pixels divided by 255. Gaussian
kernel, gamma = 1 / (n_features * variance), the same for all; on top RidgeClassifier or Ridge with
alpha = 0.001. Two seeds, which also draw the rows of covtype and kin40k; means and, for the
scores, half the range. Seconds are those of landmarks and features for the training rows,
the linear model not included.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.compose import make_column_transformer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.report import log_axis
from benchmarks.timing import seconds
from pursuit import GreedyNystroem, datasets
from pursuit.kernels import scale_gamma

BUDGETS = (25, 50, 100, 200, 400)
N_SEEDS = 2
ALPHA = 1e-3
METHODS = {
    "random (Nystroem)": lambda **options: Nystroem(**options),
    "k-means": lambda **options: GreedyNystroem(selection="kmeans", **options),
    "RPCholesky": lambda **options: GreedyNystroem(selection="rpcholesky", **options),
    "Rayleigh, 59 candidates": lambda **options: GreedyNystroem(n_candidates=59, **options),
    "supervised": lambda **options: GreedyNystroem(selection="supervised", **options),
}


def run(report):
    """Every method at every budget on every set; then where supervised beats random."""
    sets = {"adult": adult, "covtype": covtype, "kin40k": kin40k, "mnist": mnist}
    curves, wins = {}, 0
    for name, load in sets.items():
        scores, times = measure(load)
        curves[name] = scores.mean(axis=2)
        report_set(report, name, scores, times)
        random, supervised = curves[name][0, :-1], curves[name][-1, :-1]
        wins += bool((supervised > random).all())
        behind = [str(n) for n, won in zip(BUDGETS, curves[name][-1] > curves[name][0], strict=True)
                  if not won]  # fmt: skip
        report.add(
            f"{name}: supervised landmarks beat random ones "
            + (f"except at {', '.join(behind)}." if behind else "at every budget.")
        )
    report.figure("landmarks", draw(curves))
    report.check("sets where supervised beats random at 25 to 200 landmarks", wins, at_least=3)


def measure(load):
    """Scores and seconds, (n_methods, n_budgets, n_seeds)."""
    scores = np.empty((len(METHODS), len(BUDGETS), N_SEEDS))
    times = np.empty_like(scores)
    for seed in range(N_SEEDS):
        X, y, X_test, y_test = load(np.random.default_rng(seed))
        gamma = scale_gamma(X)
        for i, method in enumerate(METHODS.values()):
            for j, n in enumerate(BUDGETS):
                landmarks = method(gamma=gamma, n_components=n, random_state=seed)
                times[i, j, seed], features = seconds(lambda: landmarks.fit_transform(X, y))  # noqa: B023
                linear = RidgeClassifier(ALPHA) if y.dtype.kind in "OUi" else Ridge(ALPHA)
                linear.fit(features, y)
                scores[i, j, seed] = linear.score(landmarks.transform(X_test), y_test)
    return scores, times


def report_set(report, name, scores, times):
    """Two tables of one set."""
    header = ["", *(f"{n} landmarks" for n in BUDGETS)]
    kind = "R2" if name == "kin40k" else "accuracy"
    mean, spread, cost = scores.mean(axis=2), np.ptp(scores, axis=2) / 2, times.mean(axis=2)
    report.table(
        header,
        [
            [method, *(f"{100 * m:.2f} ± {100 * s:.2f}" for m, s in zip(*line, strict=True))]
            for method, line in zip(METHODS, zip(mean, spread, strict=True), strict=True)
        ],
        f"{name}: test {kind}, %",
    )
    report.table(
        header,
        [[m, *(f"{t:.1f}" for t in line)] for m, line in zip(METHODS, cost, strict=True)],
        f"{name}: seconds",
    )


def draw(curves):
    """Test scores against the number of landmarks, one panel a set."""
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    for axes, (name, means) in zip(figure.subplots(2, 2).flat, curves.items(), strict=True):
        for i, (method, line) in enumerate(zip(METHODS, means, strict=True)):
            axes.plot(BUDGETS, 100 * line, marker="osv^D"[i], color=f"C{i}", label=method)
        kind = "R2" if name == "kin40k" else "accuracy"
        axes.set(title=name, xlabel="landmarks", ylabel=f"test {kind}, %")
        log_axis(axes.xaxis, BUDGETS)
    figure.axes[0].legend(fontsize="small")
    return figure


# Training rows and targets, test rows and targets.


def adult(rng):
    """Text columns as indicators."""
    X, y = datasets.load("adult", "train")
    X_test, y_test = datasets.load("adult", "test")
    text = [j for j, value in enumerate(X[0]) if isinstance(value, str)]
    numbers = [j for j in range(X.shape[1]) if j not in text]
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), text),
        (StandardScaler(), numbers),
        sparse_threshold=0.0,
    ).fit(X)
    return encoder.transform(X), y, encoder.transform(X_test), y_test


def covtype(rng):
    """100000 rows to train on, 50000 to test."""
    return standardised(*datasets.load("covtype"), rng, 100_000, 50_000)


def kin40k(rng):
    """30000 rows to train on, 10000 to test."""
    return standardised(*datasets.load("kin40k"), rng, 30_000, 10_000)


def mnist(rng):
    """The first 10000 training images."""
    X, y = datasets.load("mnist", "train")
    X_test, y_test = datasets.load("mnist", "test")
    return X[:10_000] / 255, y[:10_000], X_test / 255, y_test


def standardised(X, y, rng, n_train, n_test):
    """Random rows, standardised on those to train on."""
    rows = rng.permutation(len(X))
    train, test = rows[:n_train], rows[n_train : n_train + n_test]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]
