"""Fitted models of every kind that can be exported, each with rows to compare on."""

import warnings
from functools import cache

import numpy as np
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import make_blobs, make_friedman1
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, OneClassSVM

import pursuit as p
from pursuit import kernels

N_ROWS, N_FEATURES, N_CLASSES = 160, 5, 4


def blobs(n_classes=N_CLASSES, n_rows=N_ROWS):
    """Classes that overlap, far from the origin, features of different scales."""
    X, y = make_blobs(n_rows, N_FEATURES, centers=n_classes, cluster_std=4.0, random_state=3)
    return 40.0 + X * np.array([1.0, 0.5, 2.0, 1.0, 3.0]), y


def numbers():
    """A smooth function."""
    return make_friedman1(N_ROWS, N_FEATURES, noise=0.1, random_state=0)


def _classifiers():
    X, y = blobs()
    X2, y2 = blobs(2)
    words = np.array(['a "quoted"', "back\\slash", "é", "-1"])[y]
    kmp = p.KernelMatchingPursuitClassifier
    named = {"linear": 1.0, "poly": 1e-4, "laplacian": 0.02, "sigmoid": 1e-4, "chi2": 0.1}
    for kernel, gamma in named.items():
        yield f"kmp {kernel}", kmp(6, kernel=kernel, gamma=gamma), X, y
    yield "kmp cosine", kmp(6, kernel="cosine"), X, words
    yield "kmp cosine_polynomial", kmp(6, kernel="cosine_polynomial", degree=2.5), X, y
    yield "kmp ovr", kmp(12, multi_class="ovr"), X, words
    several = [kernels.RBF(0.01), kernels.RBF(0.1), kernels.Polynomial(1e-3, 2, 1.0)]
    yield "kmp kernels", kmp(9, dictionary=several), X, y
    yield "kmp log_loss", kmp(6, loss="log_loss"), X2, y2 == 1
    yield "kmp none", kmp(1, loss="log_loss", alpha=1e9), X2, y2
    yield "moving", p.SparseKernelClassifier(7, random_state=0, max_iter=5), X, y
    diagonal = p.SparseKernelClassifier(5, metric="diagonal", random_state=0, max_iter=5)
    yield "moving widths", diagonal, X, y
    yield "moving metric", p.SparseKernelClassifier(5, metric=2, random_state=0, max_iter=5), X, y
    yield (
        "moving cv",
        p.SparseKernelClassifierCV(4, gammas=[0.01], cv=2, max_iter=5, random_state=0),
        X2,
        y2,
    )
    yield "slmc", p.SparseLargeMarginClassifier(8, random_state=0, max_iter=3), X, y
    yield "rs", p.ReducedSetClassifier(8, max_iter=5), X, y
    yield "rsvm", p.ReducedSupportVectorClassifier(8, random_state=0), X, y
    yield "rvm", p.RelevanceVectorClassifier(9), X, y
    yield "convex network", p.ConvexNetworkClassifier(n_components=20, random_state=0), X2, y2
    yield "centroid", p.KernelCentroidClassifier(), X, y
    yield "compress pairs", p.CompressedClassifier(SVC(C=10), 9, max_iter=3), X, words
    yield "compress ties", p.CompressedClassifier(SVC(break_ties=True), 9, max_iter=3), X, y
    ovo = SVC(decision_function_shape="ovo", kernel="poly", degree=2)
    yield "compress ovo", p.CompressedClassifier(ovo, 9, max_iter=3), X, y
    yield "compress two", p.CompressedClassifier(SVC(), 6, max_iter=3), X2, y2
    yield "scaled", make_pipeline(StandardScaler(), kmp(8)), X, y
    steps = SimpleImputer(), MinMaxScaler(), PCA(3, whiten=True), MaxAbsScaler()
    yield "steps", make_pipeline(*steps, kmp(8, kernel="poly")), X, y
    metric = p.KernelMetric(metric=2, random_state=0)
    yield "metric", make_pipeline(metric, kmp(8)), X, y
    nystroem = p.GreedyNystroem(n_components=12, random_state=0)
    yield "nystroem", make_pipeline(RobustScaler(), nystroem, LogisticRegression()), X, words
    behind = nystroem, StandardScaler(), RidgeClassifier()
    yield "nystroem ridge", make_pipeline(StandardScaler(with_mean=False), *behind), X, y
    X = np.where(np.random.default_rng(2).random(X.shape) < [0.2, 0.0, 0.0, 0.2, 0.0], np.nan, X)
    told = SimpleImputer(strategy="median", add_indicator=True)
    yield "told", make_pipeline(StandardScaler(), told, PCA(4), kmp(8)), X, y
    columns = make_column_transformer(
        (make_pipeline(StandardScaler(), SimpleImputer(add_indicator=True)), [0, 2, 3]),
        (OneHotEncoder(), [1]),
        (MinMaxScaler(), [4]),
    )
    table = np.column_stack([X[:, 0], np.rint(X[:, 1]) % 3, X[:, 2:]])
    yield "columns", make_pipeline(columns, kmp(8)), table, y


def _others():
    X, y = numbers()
    Y = np.column_stack([y, X[:, 0]])
    kmr = p.KernelMatchingPursuitRegressor
    yield "regressor", make_pipeline(StandardScaler(), kmr(12)), X, y
    yield "regressor table", kmr(12, kernel="laplacian"), X, Y
    yield "poisson", kmr(8, loss="poisson"), X, np.rint(y)
    yield "moving regressor", p.SparseKernelRegressor(6, random_state=0, max_iter=5), X, y
    yield "rvm regressor", p.RelevanceVectorRegressor(9), X, y
    yield "process", p.CompressedRegressor(GaussianProcessRegressor(alpha=0.1), 8, max_iter=3), X, y
    target = TransformedTargetRegressor(kmr(10), transformer=StandardScaler())
    yield "target", target, X, y
    yield "nystroem numbers", make_pipeline(p.GreedyNystroem(n_components=9), Ridge()), X, Y
    yield "novelty", p.SparseOneClass(8, random_state=0, max_iter=5), X, None
    yield "one class", p.CompressedOutlierDetector(OneClassSVM(nu=0.2), 8, max_iter=3), X, None
    pca = p.SparseKernelPCA(6, center=True)
    yield "pca", make_pipeline(StandardScaler(), pca), X, None
    yield "features", p.GreedyNystroem(n_components=6), X, None


CASES = {name: case for name, *case in [*_classifiers(), *_others()]}


@cache
def fitted(name):
    """A fitted model and rows: between the training rows, and for a table of words some of them."""
    model, X, y = CASES[name]
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X) if y is None else model.fit(X, y)
    one, other = (X[rng.integers(len(X), size=1000)] for _ in range(2))
    return model, one if name in ("columns", "told") else 0.5 * (one + other)
