"""
From a table with missing cells to a small file
===============================================

A pipeline of scikit-learn's prepares the columns; the model that goes into the file is the last
step. The file loads without running code.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pursuit import KernelMatchingPursuitClassifierCV, load, save

X, y = load_breast_cancer(return_X_y=True)
X[np.random.default_rng(0).random(X.shape) < 0.02] = np.nan
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

columns = make_pipeline(SimpleImputer(), StandardScaler()).fit(X_train)
rows = columns.transform(X_test)
model = KernelMatchingPursuitClassifierCV(n_components=40, gammas=[0.001, 0.01, 0.1], cv=3)
model.fit(columns.transform(X_train), y_train)
print(f"cross-validation chose gamma {model.gamma_} and {model.n_components_} vectors")

# %%
# Every smaller model can be shipped, too: what does a smaller file cost?
sizes = [n for n in (2, 4, 8, 16, 32) if n < model.n_iter_] + [model.n_iter_]
nbytes, errors = [], []
with TemporaryDirectory() as folder:
    for n in sizes:
        path = Path(folder) / "cancer.pursuit"
        save(model.truncate(n), path, staged=False)
        shipped = load(path)
        nbytes.append(path.stat().st_size)
        errors.append(np.mean(shipped.predict(rows) != y_test))
assert (shipped.predict(rows) == model.predict(rows)).all()
print(f"{sizes[-1]} vectors: {nbytes[-1]} bytes, accuracy {1 - errors[-1]:.3f}")

fig, ax = plt.subplots()
ax.plot(np.array(nbytes) / 1000, 100 * np.array(errors), "o-")
for n, size, error in zip(sizes, nbytes, errors, strict=True):
    ax.annotate(
        f"{n}", (size / 1000, 100 * error), xytext=(7, 6), textcoords="offset points", ha="center"
    )
ax.margins(y=0.15)
ax.set(
    xlabel="Size of the file, kB",
    ylabel="Test error, %",
    title="Breast cancer: what a smaller file costs (figures: vectors)",
)
plt.show()
