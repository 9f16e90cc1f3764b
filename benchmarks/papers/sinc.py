"""The sinc function by relevance vectors: a handful of vectors and an error band.

Source: M. Tipping, Sparse Bayesian learning and the relevance vector machine, Journal of Machine
Learning Research 1 (2001), sections 3 and 4: sin(x) / x at 100 points of [-10, 10] with normal
noise of standard deviation 0.1, the "linear spline" kernel of Vapnik,
1 + xz + xz m - (x + z) m^2 / 2 + m^3 / 3 with m = min(x, z), for both machines.
Our choice: the spline on (x + 10) / 4, as it is positive definite, which the support vector
machine needs, from 0 on only; equidistant points, 20 draws of the noise; a Gaussian kernel
exp(-(x - z)^2 / 9), too; the penalty C and the width epsilon of the support vector regression by
five-fold cross-validation.
The error is the root mean square of the distance from sin(x) / x at 1000 points of [-10, 10].
The picture shows the first draw. Neither machine knows anything outside of the data, and the band
does not say so: the Gaussian functions fade, and it narrows to that of the noise.
"""

import warnings

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVR

from pursuit import RelevanceVectorRegressor

N_DRAWS, N_POINTS, NOISE = 20, 100, 0.1
GRID = {"C": [0.01, 0.1, 1.0, 10.0], "epsilon": [0.03, 0.1, 0.2]}
BLUE, RED, GREY = "#0072B2", "#D55E00", "#888888"


def spline(X, Z):
    """The linear spline kernel on [0, 5], to which [-10, 10] is mapped."""
    x, z = (X[:, :1] + 10) / 4, (Z[:, 0] + 10) / 4
    least = np.minimum(x, z)
    return 1 + x * z + x * z * least - (x + z) / 2 * least**2 + least**3 / 3


KERNELS = {"Gaussian": {"kernel": "rbf", "gamma": 1 / 9}, "linear spline": {"kernel": spline}}


def sinc(x):
    """The function sin(x) / x."""
    return np.sinc(x / np.pi)


def draw_targets(seed):
    """Points and noisy values."""
    x = np.linspace(-10, 10, N_POINTS)
    return x[:, None], sinc(x) + NOISE * np.random.default_rng(seed).normal(size=N_POINTS)


def run(report):
    """Vectors and errors of both machines with both kernels; the picture of the first draw."""
    rows, vectors, errors = [], {}, {}
    for name, kernel in KERNELS.items():
        for machine, fit in {"RVM": relevance, "SVR": support}.items():
            found = np.array([fit(kernel, *draw_targets(seed)) for seed in range(N_DRAWS)])
            vectors[name, machine], errors[name, machine] = found[:, 0].mean(), found[:, 1].mean()
            noise = f"{found[:, 2].mean():.3f}" if machine == "RVM" else ""
            low, high = found[:, 0].min(), found[:, 0].max()
            rows.append(
                [
                    f"{machine}, {name}",
                    f"{found[:, 0].mean():.1f} ({low:.0f} to {high:.0f})",
                    f"{found[:, 1].mean():.4f}",
                    noise,
                ]
            )
    report.table(
        ["", "vectors", "error", "noise found (0.1)"], rows, f"Mean (range) over {N_DRAWS} draws"
    )
    report.figure("sinc", draw())
    for name in KERNELS:
        report.check(f"vectors, {name}", vectors[name, "RVM"], at_most=10)
        report.check(
            f"error RVM/SVR, {name}", errors[name, "RVM"] / errors[name, "SVR"], at_most=1.1
        )


def relevance(kernel, X, y):
    """Vectors, error and noise of the relevance vector machine."""
    model = RelevanceVectorRegressor(**kernel).fit(X, y)
    return model.n_components_, error(model), np.sqrt(model.noise_variance_)


def support(kernel, X, y):
    """Vectors and error of support vector regression."""
    order = np.random.default_rng(0).permutation(len(y))
    search = GridSearchCV(SVR(max_iter=10**5, **kernel), GRID, cv=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # large C under the spline
        search.fit(X[order], y[order])
    return len(search.best_estimator_.support_), error(search), np.nan


def error(model):
    """Root mean square of the distance from the function."""
    x = np.linspace(-10, 10, 1000)
    return np.sqrt(np.mean((model.predict(x[:, None]) - sinc(x)) ** 2))


def draw():
    """Data, function, mean and band of both kernels, the vectors ringed."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, (name, kernel) in zip(
        figure.subplots(1, 2, sharey=True), KERNELS.items(), strict=True
    ):
        X, y = draw_targets(0)
        model = RelevanceVectorRegressor(**kernel).fit(X, y)
        x = np.linspace(-13, 13, 600)
        mean, std = model.predict(x[:, None], return_std=True)
        axes.fill_between(x, mean - 2 * std, mean + 2 * std, color=BLUE, alpha=0.15, linewidth=0,
                          label="two standard deviations")  # fmt: skip
        axes.plot(x, sinc(x), color=GREY, linestyle="--", label="sin(x) / x")
        axes.plot(x, mean, color=BLUE, label="prediction")
        axes.plot(X[:, 0], y, ".", color="black", markersize=4, label="data")
        chosen = model.support_
        axes.plot(X[chosen, 0], y[chosen], "o", color=RED, markersize=9, fillstyle="none",
                  markeredgewidth=1.5, label="relevance vectors")  # fmt: skip
        axes.set(
            title=f"{name} kernel: {model.n_components_} vectors", xlabel="x", ylim=(-0.8, 1.4)
        )
    figure.axes[0].legend(frameon=False, fontsize="small", loc="upper left")
    return figure
