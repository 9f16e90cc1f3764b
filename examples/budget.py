"""
How many vectors does a problem need?
=====================================

One fit answers for every budget: here on the digits, with at most 300 vectors, beside a support
vector machine that decides for itself.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from pursuit import KernelMatchingPursuitClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

machine = SVC(C=10).fit(X_train, y_train)
limit = np.mean(machine.predict(X_test) != y_test)
print(f"SVC: test error {limit:.3f} with {len(machine.support_)} vectors")

model = KernelMatchingPursuitClassifier(n_components=300, early_stopping="loo")
model.fit(X_train, y_train)
errors = np.array([np.mean(labels != y_test) for labels in model.staged_predict(X_test)])
print(f"leave-one-out keeps {model.n_components_} of 300 vectors, stopped by {model.stop_reason_}")

# %%
# Leave-one-out losses are known for every size. A smaller model whose loss is near the lowest is
# often the better bargain: this one is cut where the loss is half as high again.
losses = model.leave_one_out_loss_path_
small = model.truncate(int(np.argmax(losses <= 1.5 * losses.min())) + 1)
print(f"cut to {small.n_components_} vectors: accuracy {small.score(X_test, y_test):.3f}")

fig, ax = plt.subplots()
ax.plot(np.arange(1, len(errors) + 1), 100 * errors, label="every prefix of one fit")
ax.plot(
    small.n_components_, 100 * errors[small.n_components_ - 1], "o", color="C2", label="cut here"
)
ax.plot(len(machine.support_), 100 * limit, "s", color="C1", label="SVC")
ax.set(
    xscale="log",
    yscale="log",
    xlabel="Number of vectors",
    ylabel="Test error, %",
    title="Digits: what each further vector buys",
)
ax.xaxis.set_major_formatter("{x:g}")
ax.yaxis.set_major_formatter("{x:g}")
ax.legend()
plt.show()
