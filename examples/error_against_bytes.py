"""
Error against bytes
===================

Moved vectors have no order in which they could be cut off. `frontier` drops the vectors whose
removal costs least, lets the others move on, and so on down: one call, a model of each size.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from pursuit import FrontierDisplay, SparseKernelClassifier, frontier

X, y = load_digits(return_X_y=True)
train, test = slice(0, 1200), slice(1200, None)

model = SparseKernelClassifier(80, max_iter=20, random_state=0)
path = frontier(model, X[train], y[train], X_val=X[test], y_val=y[test], max_iter=8)
for size, nbytes, score in zip(path.n_components, path.nbytes, path.scores, strict=True):
    print(f"{size:3d} vectors, {nbytes:6d} bytes: accuracy {score:.3f}")
small = path.best(max_bytes=10_000)
print(f"the best within 10 kB has {small.n_components_} vectors")

# %%
# A support vector machine has one size, its own.
others = {"SVC": SVC(C=10).fit(X[train], y[train])}
FrontierDisplay.from_frontier(path, others, X[test], y[test], against="bytes", name="Digits")
plt.show()
