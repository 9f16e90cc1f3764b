"""
Numbers between their neighbours
================================

A hundred rows of a curve, with a gap. The mean of the five nearest targets is a staircase, flat at
both ends and in the gap. Least squares on the same five neighbours, with a penalty that keeps it
calm, goes on the way they point.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from pursuit import HyperplaneKNeighborsRegressor, NadarayaWatsonRegressor


def curve(x):
    return np.sin(2 * x) + 0.3 * x


rng = np.random.default_rng(0)
x = rng.uniform(0, 6, size=120)
x = np.sort(x[(x < 2.6) | (x > 3.3)])[:, None]
y = curve(x[:, 0]) + 0.08 * rng.standard_normal(len(x))
grid = np.linspace(-0.3, 6.3, 661)[:, None]

models = {
    "mean of the 5 nearest": KNeighborsRegressor(5),
    "kernel regression": NadarayaWatsonRegressor(),
    "hyperplane of the 5 nearest": HyperplaneKNeighborsRegressor(5, alpha=0.01),
}
fig, axes = plt.subplots(3, 1, figsize=(6.4, 7.2), sharex=True, sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    predicted = model.fit(x, y).predict(grid)
    error = np.sqrt(np.mean((predicted - curve(grid[:, 0])) ** 2))
    print(f"{name}: root mean square error {error:.3f}")
    ax.plot(grid, curve(grid), color="#777777", lw=1, ls="--", label="curve")
    ax.plot(x, y, "o", color="#0072B2", ms=3, label="rows")
    ax.plot(grid, predicted, color="#D55E00", label="prediction")
    ax.set(title=f"{name}: error {error:.3f}", ylabel="Target")
axes[-1].set_xlabel("Feature 0")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
plt.show()
