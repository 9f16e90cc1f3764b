"""
Novelty with few vectors
========================

`SparseOneClass` encloses the data with a function of a few vectors that move. The share of the
training rows that it may call outliers is ``contamination``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from pursuit import SparseOneClass

X, _ = make_moons(500, noise=0.08, random_state=0)
novel = np.random.default_rng(0).uniform([-2.0, -1.5], [3.0, 2.0], size=(60, 2))

grid = np.stack(np.meshgrid(np.linspace(-2, 3, 150), np.linspace(-1.5, 2, 120)), axis=-1)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharex=True, sharey=True)
for ax, n in zip(axes, (5, 12), strict=True):
    model = SparseOneClass(n, contamination=0.05, gamma=2.0, random_state=0).fit(X)
    share = (model.predict(novel) < 0).mean()
    print(f"{n} vectors: {100 * share:.0f} % of the scattered rows are outliers")

    values = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.contourf(grid[..., 0], grid[..., 1], values, levels=[0, np.inf], colors=["#b3d4e8"])
    ax.plot(*X.T, ".", color="C0", markersize=3, label="data")
    ax.plot(*novel.T, "x", color="C1", markersize=5, label="scattered")
    ax.plot(*model.support_vectors_.T, "o", mfc="none", color="black", label="vectors")
    ax.set(title=f"{n} vectors", xlabel="Feature 0")
    ax.grid(visible=False)
axes[0].set_ylabel("Feature 1")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
plt.show()
