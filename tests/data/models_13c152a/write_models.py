"""Write the model files and outputs beside this script, with pursuit at commit 13c152a.

They are read by ``tests/test_old_model_files.py``. This script is kept to show what they hold; it
is not run again: ``PYTHONPATH=<checkout of 13c152a>/src python write_models.py``.
"""

import json
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.svm import SVC, SVR, OneClassSVM

import pursuit
from pursuit.kernels import RBF, Linear

FOLDER = Path(__file__).parent
METHODS = (
    "predict",
    "decision_function",
    "predict_proba",
    "transform",
    "inverse_transform",
    "score_samples",
    "residual",
)


def fingerprint():
    """Numbers that tell whether products, exponentials and factors round as they did."""
    rng = np.random.default_rng(7)
    A, B = rng.normal(size=(21, 17)), rng.normal(size=(17, 13))
    outer = A @ B
    solved = np.linalg.solve(A.T @ A, B)
    return np.concatenate([part.ravel() for part in (outer, np.exp(-(outer**2)), solved)])


def outputs(model, X):
    """What a fitted model answers, by method."""
    given = {}
    for method in METHODS:
        if method == "inverse_transform" and not getattr(model, "fit_inverse_transform", False):
            continue
        if hasattr(model, method):
            query = model.transform(X) if method == "inverse_transform" else X
            given[method] = getattr(model, method)(query)
    if hasattr(model, "truncate"):
        small = model.truncate(min(2, model.n_components_))
        answer = getattr(small, "decision_function", getattr(small, "predict", None))
        given["truncated"] = (answer or small.transform)(X)
    return {method: np.asarray(value) for method, value in given.items()}


def trend(X):
    return X[:, 0]


def data():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(28, 3)), 2)
    two = np.where(X[:, 0] * X[:, 1] > 0.05, "yes", "no")
    three = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.2, 1.2])
    numbers = np.sin(2 * X[:, 0]) + X[:, 2]
    counts = np.floor(np.exp(0.5 * X[:, 0] + 1))
    return X, np.round(rng.normal(size=(7, 3)), 2), two, three, numbers, counts


def models():
    """Each fitted model by name."""
    X, _, two, three, numbers, counts = data()
    both = np.column_stack([numbers, X[:, 1] ** 2])
    S = sparse.csr_matrix(np.where(np.abs(X) > 0.8, X, 0.0))
    classify, regress = (
        pursuit.KernelMatchingPursuitClassifier,
        pursuit.KernelMatchingPursuitRegressor,
    )
    kmp = {
        "classifier": classify(5).fit(X, two),
        "classifier_shared": classify(5, early_stopping="loo").fit(X, three),
        "classifier_ovr": classify(6, multi_class="ovr").fit(X, three),
        "classifier_basic": classify(5, fitting="basic", route="direct").fit(X, two),
        "classifier_log_loss": classify(5, loss="log_loss").fit(X, three),
        "classifier_hinge": classify(5, loss="squared_hinge", alpha=0.1).fit(X, two),
        "classifier_bound": classify(5, early_stopping="bound").fit(X, two),
        "classifier_sparse": classify(5, kernel="laplacian").fit(S, two),
        "classifier_float32": classify(5).fit(X.astype(np.float32), two),
        "regressor": regress(5).fit(X, numbers),
        "regressor_two_targets": regress(5, kernel="poly").fit(X, both),
        "regressor_backfit": regress(5, fitting="backfit", kernel="linear").fit(X, numbers),
        "regressor_huber": regress(5, loss="huber").fit(X, numbers),
        "regressor_poisson": regress(5, loss="poisson").fit(X, counts),
        "regressor_mixed": regress(6, dictionary=[None, RBF(2.0), Linear(), {"trend": trend}]).fit(
            X, numbers
        ),
        "regressor_oriented": regress(5, dictionary=pursuit.OrientedGaussians(6)).fit(X, numbers),
        "classifier_cv": pursuit.KernelMatchingPursuitClassifierCV(5, cv=2, gammas=[0.1, 1.0]).fit(
            X, two
        ),
        "regressor_cv": pursuit.KernelMatchingPursuitRegressorCV(5, cv=2, gammas=[0.5]).fit(
            X, numbers
        ),
    }
    subspaces = {
        "kernel_pca": pursuit.SparseKernelPCA(5).fit(X),
        "kernel_pca_centred": pursuit.SparseKernelPCA(
            5, center=True, fit_inverse_transform=True, selection="residual"
        ).fit(X),
        "nystroem": pursuit.GreedyNystroem(n_components=5).fit(X),
        "nystroem_kmeans": pursuit.GreedyNystroem(
            "poly", n_components=4, selection="kmeans", random_state=0
        ).fit(X),
        "cca": pursuit.SparseKernelCCA(2, n_basis=5).fit(X, both),
    }
    machines = {
        "large_margin": pursuit.SparseLargeMarginClassifier(4, tol=0.1, random_state=0).fit(X, two),
        "large_margin_shared": pursuit.SparseLargeMarginClassifier(
            4, multi_class="shared", init="matching_pursuit", tol=0.1
        ).fit(X, three),
        "reduced_set": pursuit.ReducedSetClassifier(4).fit(X, two),
        "reduced_set_margin": pursuit.ReducedSetClassifier(
            4, coefficients="margin", multi_class="shared"
        ).fit(X, three),
        "reduced_svm": pursuit.ReducedSupportVectorClassifier(4, random_state=0).fit(X, two),
        "compressed_classifier": pursuit.compress(SVC().fit(X, three), 4),
        "compressed_regressor": pursuit.compress(SVR().fit(X, numbers), 4),
        "compressed_outliers": pursuit.compress(OneClassSVM(nu=0.3).fit(X), 4),
        "relevance_classifier": pursuit.RelevanceVectorClassifier(4).fit(X, three),
        "relevance_regressor": pursuit.RelevanceVectorRegressor(6).fit(X, numbers),
    }
    convex = pursuit.ConvexNetworkClassifier
    networks = {
        "network": convex().fit(X, two),
        "network_rbf": convex(
            kernel="rbf", loss="squared_hinge", penalty="kernel", bounds=(-1, 1)
        ).fit(X, three),
        "network_selected": convex(kernel="rbf", selection="gram_schmidt", n_components=5).fit(
            X, two
        ),
        "network_svm": convex.as_svm(beta=20, kernel="rbf").fit(X, two),
    }
    local = {
        "hyperplane": pursuit.HyperplaneKNeighborsClassifier(4, alpha=0.1).fit(X, three),
        "hyperplane_components": pursuit.HyperplaneKNeighborsClassifier(4, n_components=1).fit(
            X, two
        ),
        "convex_neighbors": pursuit.ConvexKNeighborsClassifier(4).fit(X, three),
        "parzen": pursuit.ParzenDensity("loo").fit(X),
        "manifold_parzen": pursuit.ManifoldParzenDensity(5, n_components=2).fit(X),
        "manifold_parzen_soft": pursuit.ManifoldParzenDensity(None, neighborhood="rbf").fit(X),
        "manifold_parzen_cv": pursuit.ManifoldParzenDensityCV((2, 5)).fit(X),
        "local_gaussian": pursuit.LocalGaussianDensity(6).fit(X),
        "density_classifier": pursuit.DensityClassifier().fit(X, three),
        "density_classifier_manifold": pursuit.DensityClassifier(
            pursuit.ManifoldParzenDensity(4)
        ).fit(X, two),
        "nadaraya_watson": pursuit.NadarayaWatsonRegressor(0.5).fit(X, both),
        "centroid": pursuit.KernelCentroidClassifier("laplacian").fit(X, three),
    }
    return kmp | subspaces | machines | networks | local


def write_table(arrays):
    """Write a table model of the command line, and what it answers."""
    from pursuit.table_model import TableModel
    from pursuit.tables import read

    from pursuit.cli import main

    rng = np.random.default_rng(1)
    lines = ["size,colour,built,price"]
    for i in range(40):
        size = "" if i % 9 == 4 else f"{rng.uniform(30, 200):.1f}"
        colour = rng.choice(["red", "blue", "green"])
        built = f"20{i % 20:02}-0{i % 9 + 1}-11"
        lines.append(f"{size},{colour},{built},{rng.uniform(1, 9):.2f}")
    (FOLDER / "table.csv").write_text("\n".join(lines) + "\n")
    table, model = str(FOLDER / "table.csv"), str(FOLDER / "table.pursuit")
    assert not main(
        ["fit", table, "-t", "price", "-o", model, "-n", "6", "--gamma", "0.2", "--seed", "1"]
    )
    loaded = TableModel.load(model)
    features = loaded.features(read(table))
    arrays["table/features"] = features
    arrays["table/predict"] = loaded.estimator.predict(features)


def main():
    arrays = {"fingerprint": fingerprint()}
    queries = data()[1]
    known = {}
    for name, model in models().items():
        pursuit.save(model, FOLDER / f"{name}.pursuit")
        X = queries
        if name == "classifier_sparse":
            X = sparse.csr_matrix(queries)
        elif name == "classifier_float32":
            X = queries.astype(np.float32)
        for method, value in outputs(model, X).items():
            arrays[f"{name}/{method}"] = value
        known[name] = type(model).__name__
    write_table(arrays)
    np.savez_compressed(FOLDER / "outputs.npz", queries=queries, **arrays)
    (FOLDER / "classes.json").write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
