"""
Densities that follow the data
==============================

Parzen windows put a round Gaussian on every row. Manifold Parzen windows let each follow its
neighbours: long where the data go on, flat across them. Higher log-densities of new rows are
better.
"""

import matplotlib.pyplot as plt
import numpy as np

from pursuit import DensityDisplay, ManifoldParzenDensity, ParzenDensity


def spiral(n, rng):
    t = rng.uniform(3, 15, size=n)
    curve = 0.04 * t * np.stack([np.sin(t), np.cos(t)])
    return curve.T + 0.01 * rng.normal(size=(n, 2))


rng = np.random.default_rng(0)
X, X_test = spiral(300, rng), spiral(2000, rng)
densities = {
    "Parzen windows": ParzenDensity("loo"),
    "Manifold Parzen windows": ManifoldParzenDensity(n_neighbors=10, noise_variance=0.01**2),
}

fig, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), sharex=True, sharey=True)
for ax, (name, density) in zip(axes, densities.items(), strict=True):
    score = density.fit(X).score(X_test)
    print(f"{name}: mean log-density {score:.2f} nats a row")
    DensityDisplay.from_estimator(density, X, name=f"{name}: {score:.2f} nats a row", ax=ax)
    ax.grid(visible=False)
axes[1].set_ylabel("")
plt.show()
