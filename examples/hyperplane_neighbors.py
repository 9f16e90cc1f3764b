"""
Neighbours that fill the gaps
=============================

Two waves of fifteen rows each. Where a class has a gap, its rows are far, and the nearest neighbour
rule gives the other label. A line through the two nearest rows of each class goes on through the
gap.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from pursuit import ConvexKNeighborsClassifier, HyperplaneKNeighborsClassifier


def waves(n, rng):
    x = rng.uniform(0, 6, n)
    y = np.arange(n) % 2
    X = np.column_stack([x, 0.6 * np.sin(2 * x) + 0.5 * y])
    return X + 0.01 * rng.standard_normal(X.shape), y


models = {
    "nearest neighbour": KNeighborsClassifier(1),
    "convex hulls of 2": ConvexKNeighborsClassifier(2),
    "lines through 2": HyperplaneKNeighborsClassifier(2, alpha=0.003),
}
errors = {name: [] for name in models}
for seed in range(10):
    rng = np.random.default_rng(seed)
    X, y = waves(30, rng)
    X_test, y_test = waves(1000, rng)
    for name, model in models.items():
        errors[name].append(1 - model.fit(X, y).score(X_test, y_test))
for name, shares in errors.items():
    print(f"{name}: {100 * np.mean(shares):.1f} % errors, mean of ten draws")

# %%
# The last draw. The method pays where classes are thin and lie beside each other, as images of
# digits do; where a class comes back to within reach of itself, as in a spiral of several turns,
# the two nearest rows may lie on different turns, and the plain rule is the better one.
grid = np.stack(np.meshgrid(np.linspace(-0.3, 6.3, 200), np.linspace(-1.1, 1.6, 100)), axis=-1)
fig, axes = plt.subplots(3, 1, figsize=(6.4, 7.2), sharex=True, sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    labels = model.predict(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    shades = {"levels": [-0.5, 0.5, 1.5], "colors": ["#b3d4e8", "#f7e1b2"]}
    ax.contourf(grid[..., 0], grid[..., 1], labels, **shades)
    for label, colour, marker in ((0, "#0072B2", "o"), (1, "#9a6700", "s")):
        ax.plot(*X_test[y_test == label].T, ",", color=colour)
        ax.plot(*X[y == label].T, marker, color=colour, mec="white", label=f"class {label}")
    ax.set(title=f"{name}: {100 * errors[name][-1]:.1f} % errors", ylabel="Feature 1")
    ax.grid(visible=False)
axes[-1].set_xlabel("Feature 0")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
plt.show()
