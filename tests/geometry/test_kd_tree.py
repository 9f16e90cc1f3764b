"""Compact groups of rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from pursuit.geometry.kd_tree import bounding_boxes, box_distances, kd_tree_leaves


@pytest.mark.parametrize(("m", "size"), [(1, 5), (5, 5), (100, 7), (129, 128)])
def test_every_row_is_in_one_group(m, size, rng):
    X = rng.normal(size=(m, 3))
    groups = kd_tree_leaves(X, size)
    assert_array_equal(np.sort(np.concatenate(groups)), np.arange(m))
    assert all(0 < len(group) <= size for group in groups)
    assert all((np.diff(group) > 0).all() for group in groups)


def test_groups_are_compact(rng):
    X = rng.uniform(size=(1024, 2))
    groups = kd_tree_leaves(X, 16)
    assert max(np.ptp(X[group], axis=0).prod() for group in groups) < 0.1
    assert np.mean([np.ptp(X[group], axis=0).max() for group in groups]) < 0.25


def test_equal_rows_end():
    assert len(kd_tree_leaves(np.ones((50, 2)), 10)) >= 5


def test_no_pair_is_nearer_than_the_boxes(rng):
    X, queries = rng.normal(size=(200, 2)), rng.normal(size=(20, 2)) * 0.2 + 1.5
    groups = kd_tree_leaves(X, 10)
    found = box_distances(queries, *bounding_boxes(X, groups))
    nearest = [cdist(queries, X[group], "sqeuclidean").min() for group in groups]
    assert (found <= np.array(nearest) + 1e-15).all()
    assert (found > 0).sum() > 10
    assert_allclose(box_distances(X[:1] + [0.0, 9.0], X[:1], X[:1]), [81.0])
    assert_allclose(box_distances(X[:1] - [3.0, 4.0], X[:1], X[:1]), [25.0])
