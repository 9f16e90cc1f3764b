"""
Digits that no one wrote
========================

Vectors need not be training rows. Here twenty of them, for all ten classes, move to where the loss
is lowest; as images they look like digits, or like what tells two digits apart.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from pursuit import KernelMatchingPursuitClassifier, SparseKernelClassifier, VectorImageDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

moved = SparseKernelClassifier(20, random_state=0).fit(X_train, y_train)
selected = KernelMatchingPursuitClassifier(20).fit(X_train, y_train)
machine = SVC(C=10).fit(X_train, y_train)
for name, model in {"moved": moved, "selected": selected, "SVC": machine}.items():
    accuracy = model.score(X_test, y_test)
    print(f"{name}: {len(model.support_vectors_)} vectors, accuracy {accuracy:.3f}")

VectorImageDisplay.from_estimator(moved, (8, 8), name="Twenty vectors that moved")
plt.show()
