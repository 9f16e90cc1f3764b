"""
A band that nine of ten targets lie in
======================================

The noise grows with x. Each quantile is a model of its own with six vectors; squared error with a
band of constant width stands beside them. The shares are those of rows that the fits have not
seen, for small and for large x.
"""

import matplotlib.pyplot as plt
import numpy as np

from pursuit import KernelMatchingPursuitRegressor
from pursuit.losses import Quantile


def sample(n, rng):
    X = rng.uniform(0, 6, (n, 1))
    return X, np.sin(X[:, 0]) + (0.1 + 0.2 * X[:, 0]) * rng.standard_normal(n)


rng = np.random.default_rng(0)
X, y = sample(2000, rng)
X_test, y_test = sample(10_000, rng)

quantiles = {
    q: KernelMatchingPursuitRegressor(n_components=6, gamma=0.5, loss=Quantile(q)).fit(X, y)
    for q in (0.05, 0.5, 0.95)
}
for q, model in quantiles.items():
    below = np.mean(y_test <= model.predict(X_test))
    print(f"quantile {q}: {model.n_components_} vectors, {below:.3f} of the targets below")

mean = KernelMatchingPursuitRegressor(n_components=6, gamma=0.5).fit(X, y)
half = np.quantile(np.abs(y - mean.predict(X)), 0.9)


def bands(X):
    centre = mean.predict(X)
    return {
        "quantiles 0.05 and 0.95": (quantiles[0.05].predict(X), quantiles[0.95].predict(X)),
        "mean and constant width": (centre - half, centre + half),
    }


left = X_test[:, 0] < 2
for name, (low, high) in bands(X_test).items():
    inside = (low <= y_test) & (y_test <= high)
    print(f"{name}: {inside[left].mean():.3f} inside for x < 2, {inside[~left].mean():.3f} else")

# %%
# The constant band is too wide on the left and too narrow on the right.
line = np.linspace(0, 6, 200)[:, None]
fig, ax = plt.subplots()
ax.plot(X_test[:800, 0], y_test[:800], ".", color="0.75", markersize=3, label="new rows")
for (name, band), colour, dashes in zip(
    bands(line).items(), ("C0", "C1"), ("-", "--"), strict=True
):
    for k, edge in enumerate(band):
        ax.plot(line[:, 0], edge, dashes, color=colour, label=name if k == 0 else None)
ax.set(xlabel="x", ylabel="Target", title="Two bands meant for nine of ten targets")
ax.set_ylim(-4.2, 4.8)
ax.legend(loc="upper left")
plt.show()
