"""
A trained SVM made small
========================

`compress` takes a machine of scikit-learn's and finds the few vectors, anywhere, whose function
comes nearest to its own. The line, where the decision value is zero, hardly moves.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from pursuit import compress

X, y = make_moons(600, noise=0.3, random_state=0)
X_test, y_test = make_moons(4000, noise=0.3, random_state=1)

machine = SVC(C=10, gamma=2.0).fit(X, y)
small = compress(machine, 8, X, y)
print(f"SVC: {len(machine.support_)} vectors, accuracy {machine.score(X_test, y_test):.3f}")
print(f"compressed: {small.n_components_} vectors, accuracy {small.score(X_test, y_test):.3f}")
print(
    f"labels that change: {100 * (machine.predict(X_test) != small.predict(X_test)).mean():.1f} %"
)

grid = np.stack(np.meshgrid(np.linspace(-2, 3, 150), np.linspace(-1.5, 2, 120)), axis=-1)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharex=True, sharey=True)
for ax, model, name in zip(axes, (machine, small), ("SVC", "compressed"), strict=True):
    for label, colour, marker in ((0, "C0", "o"), (1, "C4", "s")):
        ax.plot(*X[y == label].T, marker, color=colour, alpha=0.35, markersize=3)
    vectors = model.support_vectors_
    ax.plot(*vectors.T, "o", mfc="none", mec="black", markersize=7)
    values = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.contour(grid[..., 0], grid[..., 1], values, levels=[0], colors="C1", linewidths=2)
    ax.set(title=f"{name}: {len(vectors)} vectors (circles)", xlabel="Feature 0")
    ax.grid(visible=False)
axes[0].set_ylabel("Feature 1")
plt.show()
