"""
A band from relevance vectors
=============================

The evidence decides how many vectors a relevance vector machine keeps, and how large the noise is.
``return_std=True`` gives the standard deviation of a new target.
"""

import matplotlib.pyplot as plt
import numpy as np

from pursuit import RelevanceVectorRegressor

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-10, 10, 120))[:, None]
y = np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(len(X))

model = RelevanceVectorRegressor(gamma=0.1).fit(X, y)
line = np.linspace(-12, 12, 300)[:, None]
mean, std = model.predict(line, return_std=True)
vectors = model.support_vectors_[:, 0]
print(f"{len(vectors)} of {len(X)} rows are relevance vectors")
print(f"standard deviation of a target at 0: {model.predict([[0.0]], return_std=True)[1][0]:.3f}")

fig, ax = plt.subplots()
band = (mean - 2 * std, mean + 2 * std)
ax.fill_between(
    line[:, 0], *band, color="C0", alpha=0.2, linewidth=0, label="± 2 standard deviations"
)
ax.plot(X[:, 0], y, ".", color="0.5", markersize=4, label="rows")
ax.plot(line[:, 0], mean, label="mean")
ax.plot(line[:, 0], np.sinc(line[:, 0] / np.pi), "--", color="C1", label="sin(x) / x")
ax.plot(vectors, model.predict(vectors[:, None]), "o", mfc="none", mec="black", label="vectors")
ax.set(xlabel="x", ylabel="Target", title="Relevance vectors on noisy sin(x) / x")
ax.legend(ncols=2)
ax.set_ylim(-0.7, 1.7)
plt.show()
