"""From a table with missing cells to a small file, and back.

A pipeline of scikit-learn's prepares the columns; the model that goes into the file is the last
step. The file loads without running code.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pursuit import KernelMatchingPursuitClassifierCV, load, save


def main():
    X, y = load_breast_cancer(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.02] = np.nan
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

    columns = make_pipeline(SimpleImputer(), StandardScaler()).fit(X_train)
    model = KernelMatchingPursuitClassifierCV(n_components=60, gammas=[0.001, 0.01, 0.1])
    model.fit(columns.transform(X_train), y_train)
    print(f"cross-validation chose gamma {model.gamma_} and {model.n_components_} vectors")

    with TemporaryDirectory() as folder:
        path = Path(folder) / "cancer.pursuit"
        save(model, path, staged=False)
        print(f"{path.name}: {path.stat().st_size} bytes")
        shipped = load(path)

    rows = columns.transform(X_test)
    assert (shipped.predict(rows) == model.predict(rows)).all()
    print(f"accuracy {shipped.score(rows, y_test):.3f}")


if __name__ == "__main__":
    main()
