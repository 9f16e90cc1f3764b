"""
A stream that changes
=====================

Rows come one after another, and half way the function becomes another one. A machine that forgets
follows; one that remembers everything keeps the mean of both. Memory and time a row are constant.
"""

import matplotlib.pyplot as plt
import numpy as np

from pursuit import OnlineKernelRegressor

rng = np.random.default_rng(0)
n = 1200
X = rng.uniform(-3, 3, size=(n, 1))
truth = np.where(np.arange(n) < n // 2, np.sin(2 * X[:, 0]), np.cos(X[:, 0]))
y = truth + 0.1 * rng.standard_normal(n)

errors = {}
for forgetting in (1.0, 0.99):
    model = OnlineKernelRegressor(n_components=20, gamma=1.0, forgetting=forgetting)
    model.partial_fit(X[:1], y[:1])
    misses = []
    for row in range(1, n):  # predict each row, then learn it
        misses.append(model.predict(X[row : row + 1])[0] - truth[row])
        model.partial_fit(X[row : row + 1], y[row : row + 1])
    errors[forgetting] = np.array(misses) ** 2
    late = np.sqrt(errors[forgetting][-200:].mean())
    print(f"forgetting {forgetting}: root mean square error {late:.3f} over the last 200 rows")

# %%
fig, ax = plt.subplots()
window = np.ones(50) / 50
for (forgetting, squares), dashes in zip(errors.items(), ("--", "-"), strict=True):
    label = "remembers everything" if forgetting == 1.0 else f"forgetting={forgetting}"
    smooth = np.sqrt(np.convolve(squares, window, mode="valid"))
    ax.plot(np.arange(50, n), smooth, dashes, label=label)
ax.axvline(n // 2, color="0.4", linestyle=":", linewidth=1)
ax.annotate(
    "the function changes", (n // 2, 1.0), xytext=(-6, 0), textcoords="offset points", ha="right"
)
ax.set(
    yscale="log",
    xlabel="Row",
    ylabel="Root mean square error\nof the last 50 predictions",
    title="Twenty vectors on a stream",
)
ax.yaxis.set_major_formatter("{x:g}")
ax.legend(loc="lower right")
plt.show()
