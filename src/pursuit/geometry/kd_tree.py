"""Rows cut into compact groups by a k-d tree, and how near such groups can be to each other.

For few features only: in many dimensions no group is far from another in comparison with its size.
"""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import KDTree

from pursuit._typing import Array

__all__ = ["bounding_boxes", "box_distances", "kd_tree_leaves"]


def kd_tree_leaves(X: Array, size: int) -> list[Array]:
    """Groups of rows that lie together: halves of halves across the widest feature.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        At least one row.
    size : int
        Largest number of rows of a group, at least 2.

    Returns
    -------
    groups : list of ndarray of int
        Indices of the rows of each group, increasing; every row is in one.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.geometry.kd_tree import kd_tree_leaves
    >>> [group.tolist() for group in kd_tree_leaves(np.array([[5.0], [0.0], [6.0], [1.0]]), 2)]
    [[1, 3], [0, 2]]
    """
    # A leaf of scikit-learn's tree has up to twice `leaf_size` rows.
    _, indices, nodes, _ = KDTree(X, leaf_size=max(1, size // 2)).get_arrays()
    leaves = nodes[nodes["is_leaf"] == 1]
    bounds = zip(leaves["idx_start"], leaves["idx_end"], strict=True)
    return [np.sort(indices[start:stop]) for start, stop in bounds]


def bounding_boxes(X: Array, groups: list[Array]) -> tuple[Array, Array]:
    """Lowest and highest value of each feature in each group, two (n_groups, n_features)."""
    low = np.array([X[rows].min(axis=0) for rows in groups])
    return low, np.array([X[rows].max(axis=0) for rows in groups])


def box_distances(X: Array, low: Array, high: Array) -> Array:
    """Squared distance between boxes and the box around some rows; no pair is nearer.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows.
    low, high : ndarray of shape (n_groups, n_features)
        Boxes.

    Returns
    -------
    distances : ndarray of shape (n_groups,)
        Zero where the boxes meet.
    """
    gaps = np.maximum(np.maximum(low - X.max(axis=0), X.min(axis=0) - high), 0.0)
    distances: Array = (gaps**2).sum(axis=1)
    return distances
