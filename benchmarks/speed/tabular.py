"""Twenty tables, all methods with their defaults: error of vectors that move beside the others.

Fivefold cross-validation (by class for labels) on at most 4000 random rows of each set, features
standardised on the training rows, text columns in 0/1 features, medians for missing numbers.
Every method has its defaults, but that ours, matching pursuit and Nystroem have 200 vectors or
landmarks, or as many as there are training rows, and that Nystroem's gamma is "scale", as that of
the others. "moved, CV" is `SparseKernelClassifierCV` or its twin, which chooses gamma and C on
the training rows (a grid of nine, three folds); bounds and losses are about it. Behind Nystroem
stands logistic regression or ridge regression, with its defaults too. Accuracy in percent, or
R^2. A loss is named where ours is more than one point (.01 of R^2) behind the best.
"""

import time
import warnings

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
    SparseKernelRegressor,
    SparseKernelRegressorCV,
    datasets,
)

CLASSES = (
    "adult balance_scale electricity ida_banana ida_german ida_image ida_ringnorm ida_splice "
    "ida_twonorm ida_waveform letter magic mushroom pima shuttle"
).split()
NUMBERS = "bike_hour boston california diamonds kin40k".split()
MOST_ROWS, FOLDS, N_VECTORS = 4000, 5, 200
METHODS = ("moved, CV", "moved", "selected", "Nystroem", "SVM", "boosting")
CLOSE = {True: 1.0, False: 0.01}


def run(report):
    """All sets."""
    warnings.simplefilter("ignore")
    rows, ranks, losses = [], [], []
    seconds = np.zeros(len(METHODS))
    for name in (*CLASSES, *NUMBERS):
        classes = name in CLASSES
        scores, taken = compared(name, classes)
        seconds += taken
        shown = [f"{score:.1f}" if classes else f"{score:.3f}" for score in scores]
        rows.append([name, *shown])
        ranks.append([1 + np.sum(scores > score) for score in scores])
        behind = max(scores) - scores[0]
        if behind > CLOSE[classes]:
            losses.append(f"{name}: {behind:.3g} behind {METHODS[int(np.argmax(scores))]}")
    rows.append(["mean rank", *(f"{rank:.2f}" for rank in np.mean(ranks, axis=0))])
    rows.append(["seconds in all", *(f"{total:.0f}" for total in seconds)])
    report.table(["", *METHODS], rows, "Accuracy in percent, or R^2; means of five folds")
    report.add("More than a point, or .01 of R^2, behind the best: " + "; ".join(losses) + ".")
    near = len(rows) - 2 - len(losses)
    report.check("sets within a point (.01 of R^2) of the best, of 20", near, at_least=12)


def table(name):
    """Features in numbers and targets of some rows."""
    X, y = datasets.load(name)
    rows = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
    X, y = X[rows], np.asarray(y)[rows]
    if X.dtype != object:
        return X.astype(np.float64), y
    text = [j for j in range(X.shape[1]) if any(isinstance(value, str) for value in X[:, j])]
    wide = make_column_transformer(
        (OneHotEncoder(max_categories=20, sparse_output=False, handle_unknown="ignore"), text),
        remainder="passthrough",
    )
    return np.asarray(wide.fit_transform(X), dtype=np.float64), y


def methods(classes, n):
    """A fresh model of each method."""
    moved = SparseKernelClassifier if classes else SparseKernelRegressor
    searched = SparseKernelClassifierCV if classes else SparseKernelRegressorCV
    selected = KernelMatchingPursuitClassifier if classes else KernelMatchingPursuitRegressor
    linear = LogisticRegression(max_iter=1000) if classes else Ridge()
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return (
        searched(n, random_state=0),
        moved(n, random_state=0),
        selected(n),
        make_pipeline(Scale(), linear),
        SVC() if classes else SVR(),
        boosting(random_state=0),
    )


class Scale(Nystroem):
    """Nystroem features with gamma="scale", as all other kernels here have it."""

    def __init__(self, n_components=N_VECTORS, random_state=0):
        super().__init__(n_components=n_components, random_state=random_state)

    def fit(self, X, y=None):
        """Set gamma from the rows, and fit."""
        self.gamma = 1.0 / (X.shape[1] * X.var())
        self.n_components = min(N_VECTORS, len(X))
        return super().fit(X)


def compared(name, classes):
    """Mean score of each method over the folds, and its seconds."""
    X, y = table(name)
    splitter = (StratifiedKFold if classes else KFold)(FOLDS, shuffle=True, random_state=0)
    scores = np.zeros((FOLDS, len(METHODS)))
    seconds = np.zeros(len(METHODS))
    for fold, (train, test) in enumerate(splitter.split(X, y)):
        scaler = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()).fit(X[train])
        for k, model in enumerate(methods(classes, min(N_VECTORS, len(train)))):
            start = time.perf_counter()
            model.fit(scaler.transform(X[train]), y[train])
            seconds[k] += time.perf_counter() - start
            scores[fold, k] = model.score(scaler.transform(X[test]), y[test])
    return scores.mean(axis=0) * (100 if classes else 1), seconds
