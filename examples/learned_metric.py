"""
Which features matter?
======================

A Gaussian kernel measures distance equally in all directions. With ``metric="diagonal"`` the fit
learns a factor for each feature; ``feature_relevances_`` says what share each has in the slopes of
the function. Two of these eight features make the target, the others are noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from pursuit import SparseKernelRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(800, 8))
y = np.sin(3 * X[:, 1]) + 0.5 * X[:, 4] ** 2 + 0.1 * rng.normal(size=len(X))
train, test = slice(0, 400), slice(400, None)

models = {
    "one width": SparseKernelRegressor(30, max_iter=20, random_state=0),
    "learned metric": SparseKernelRegressor(30, metric="diagonal", max_iter=20, random_state=0),
}
for name, model in models.items():
    score = model.fit(X[train], y[train]).score(X[test], y[test])
    print(f"{name}: R^2 {score:.3f} on new rows")

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.6))
places = np.arange(X.shape[1])
for shift, hatch, (name, model) in zip((-0.2, 0.2), ("//", ""), models.items(), strict=True):
    shares = 100 * model.feature_relevances_
    ax.bar(places + shift, shares, 0.4, label=name, hatch=hatch, edgecolor="white")
ax.set(
    xticks=places,
    xlabel="Feature",
    ylabel="Share in the slopes, %",
    title="Features 1 and 4 make the target",
)
ax.grid(axis="x", visible=False)
ax.legend()
plt.show()
