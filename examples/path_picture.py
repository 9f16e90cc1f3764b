"""
Loss against vectors, and where they lie
========================================

Kernel matching pursuit adds one vector at a time. With early stopping it keeps the number at which
held-out rows have the lowest loss; any smaller model is in the same fit. The circles are the
vectors, their areas the sizes of the coefficients.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from pursuit import KernelMatchingPursuitClassifier, PursuitPathDisplay, SupportDisplay

X, y = make_moons(600, noise=0.25, random_state=0)
model = KernelMatchingPursuitClassifier(n_components=40, gamma=2.0, early_stopping=True)
model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
print(f"{model.n_components_} vectors kept, stopped by {model.stop_reason_}")

PursuitPathDisplay.from_estimator(model)
plt.show()

# %%
# The first twelve vectors, with coefficients of their own.
small = model.truncate(min(12, model.n_iter_))
print(f"accuracy with {small.n_components_} vectors: {small.score(X[300:], y[300:]):.3f}")

display = SupportDisplay.from_estimator(small, X[300:], y[300:])
display.figure_.suptitle(f"Two moons with {small.n_components_} vectors")
plt.show()
