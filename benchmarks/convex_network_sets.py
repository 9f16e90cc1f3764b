"""The data sets and the protocol that the benchmarks of convex networks share."""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from pursuit import datasets

N_FOLDS = 10


class Published(NamedTuple):
    """Test accuracies of tables 1 and 2; training accuracies of table 1."""

    name: str
    train: tuple
    test: tuple
    random: tuple
    gram_schmidt: tuple
    correlation: tuple


# The columns of `train` and `test` are ANN, SVM, CN; the others are 10, 20, 30 %.
SETS = {
    "balance": Published("balance_scale", (89.03, 93.55, 99.79), (86.35, 90.63, 95.41),
                         (95.10, 95.25, 95.40), (95.25, 95.40, 95.25), (95.41, 95.10, 95.25)),
    "bupa": Published("liver", (72.01, 81.73, 80.69), (68.07, 74.39, 71.92),
                      (70.49, 71.35, 69.14), (69.14, 70.53, 71.61), (69.12, 69.12, 69.42)),
    "glass": Published("glass", (84.24, 99.79, 100.0), (69.87, 84.70, 86.23),
                       (84.75, 89.66, 87.00), (85.16, 86.62, 85.91), (85.18, 85.16, 86.66)),
    "iono": Published("ionosphere", (93.35, 99.40, 99.94), (86.17, 91.09, 92.41),
                      (89.16, 93.19, 92.68), (91.23, 92.04, 90.54), (91.58, 91.32, 91.85)),
    "monks": Published("monks3", (90.64, 97.50, 99.05), (87.28, 95.82, 96.51),
                       (93.18, 93.70, 94.76), (92.94, 91.66, 90.89), (92.65, 94.40, 95.11)),
    "pima": Published("pima", (78.68, 82.49, 80.55), (76.09, 75.58, 74.82),
                      (78.51, 77.24, 75.97), (77.89, 76.43, 77.87), (77.62, 76.22, 76.60)),
    "wdbc": Published("wdbc", (98.71, 99.47, 100.0), (97.61, 97.62, 96.93),
                      (97.44, 97.27, 97.44), (97.25, 96.93, 96.09), (97.10, 96.93, 96.93)),
    "wpbc": Published("wpbc", (85.71, 98.47, 99.04), (76.41, 77.36, 79.63),
                      (78.27, 78.29, 77.29), (76.37, 75.14, 73.20), (74.05, 75.93, 79.70)),
}  # fmt: skip
# Readings of a row of the table that the paper leaves open.
FURTHER = {
    "monks1": "monks1",
    "monks2": "monks2",
    "monks, all three pooled": "monks",
    "wpbc without the time": "wpbc_without_time",
}


def load(name):
    """Rows without missing values, and labels."""
    if name == "monks":
        parts = [datasets.load(f"monks{i}") for i in (1, 2, 3)]
        X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    elif name == "wpbc_without_time":
        X, y = datasets.load("wpbc")
        X = X[:, 1:]
    else:
        X, y = datasets.load(name)
    complete = ~np.isnan(X).any(axis=1)
    return X[complete], y[complete]


def folds(X, y, seed):
    """Training and test part of each fold, standardised as the training part says."""
    with warnings.catch_warnings():
        # glass has 9 rows of one class.
        warnings.filterwarnings("ignore", "The least populated class")
        parts = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(X, y))
    for train, test in parts:
        scaler = StandardScaler().fit(X[train])
        yield scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def binary_accuracy(model, X, y):
    """Mean accuracy of the one-vs-rest decisions of a model of several classes."""
    decisions = model.decision_function(X) > 0
    return np.mean(decisions == (np.asarray(y)[:, None] == model.classes_))
