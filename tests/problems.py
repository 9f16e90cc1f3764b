"""Awkward data for the tests: correlated columns, means far from zero, duplicates, weights."""

from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from pursuit.greedy.normal_equations import WeightedValues, gather, normal_equations


class Problem(NamedTuple):
    """Rows, numbers to predict (two columns), labels (three texts, unsorted) and weights."""

    X: np.ndarray
    Y: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


def awkward(n_rows=60, seed=0):
    """Rows on a correlated cloud around (5, -3, 2, 40), some of them twice, some of weight 0."""
    rng = np.random.default_rng(seed)
    sources = rng.normal(size=(n_rows, 4))
    mixing = np.array(
        [[1.0, 0.9, 0.1, 0.5], [0.0, 0.4, 1.0, -0.5], [0.1, 0.0, 0.3, 0.2], [0.1, -0.2, 0.1, 0.2]]
    )
    X = sources @ mixing + [5.0, -3.0, 2.0, 40.0]
    for copy, original in ((n_rows // 2, 3), (n_rows - 2, 3), (n_rows // 3, 7)):
        X[copy] = X[original]
        sources[copy] = sources[original]
    first = np.sin(2 * sources[:, 0]) + 0.5 * sources[:, 1] ** 2 + 7.0
    second = np.cos(sources[:, 1]) * sources[:, 2] - 100.0
    Y = np.stack([first, second], axis=1) + 0.1 * rng.normal(size=(n_rows, 2))
    texts = np.array(["zebra", "ant", "mole"])
    labels = texts[(np.arctan2(sources[:, 0], sources[:, 1]) // (2 * np.pi / 3)).astype(int)]
    labels[::17] = "mole"
    weights = rng.uniform(0.3, 3.0, size=n_rows)
    weights[1::11] = 0.0
    return Problem(X, Y, labels, weights)


def pairwise(*factors):
    """Rows in which every pair of levels of any two factors occurs: far fewer than all rows.

    What goes wrong in one setting, or where two meet, goes wrong in one of these rows, too.
    """
    rows = list(product(*(range(len(levels)) for levels in factors)))
    pairs = {row: set(combinations(enumerate(row), 2)) for row in rows}
    left, chosen = set().union(*pairs.values()), []
    while left:
        row = max(rows, key=lambda row: len(pairs[row] & left))
        left -= pairs[row]
        chosen.append(tuple(levels[k] for levels, k in zip(factors, row, strict=True)))
    return chosen


def as_targets(labels):
    """Targets +1 and -1 of sorted labels: one column for two classes, else one a class."""
    classes = sorted(set(labels.tolist()))
    columns = classes[1:] if len(classes) == 2 else classes
    return np.array([[1.0 if label == c else -1.0 for c in columns] for label in labels])


def equations_of(functions, samples, n_atoms, *, centred=True, alpha=0.0, complete=True):
    """Normal equations in one go."""
    values = WeightedValues(functions, samples, n_atoms, centred=centred, keep=not complete)
    return normal_equations(gather(values, complete=complete), values, alpha=alpha)
