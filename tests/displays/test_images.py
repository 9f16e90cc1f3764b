"""Vectors drawn as images: which, in which order, and with which titles."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits

from pursuit import KernelMatchingPursuitClassifier, SparseLargeMarginClassifier
from pursuit.displays.images import VectorImageDisplay


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:150], y[:150]


def test_two_classes_stand_in_the_order_of_their_coefficients(digits):
    X, y = digits
    model = SparseLargeMarginClassifier(6, random_state=0).fit(X, y == 1)
    display = VectorImageDisplay.from_estimator(model, (8, 8), figure=Figure())
    order = np.argsort(model.dual_coef_[0])
    assert_array_equal(display.images, model.support_vectors_[order].reshape(-1, 8, 8))
    assert display.titles == [f"{c:+.2g}" for c in model.dual_coef_[0, order]]
    assert [ax.get_title() for ax in display.axes_] == display.titles
    assert_array_equal(display.axes_[2].images[0].get_array(), display.images[2])
    assert display.figure_.get_suptitle() == "SparseLargeMarginClassifier"
    assert display.figure_.get_supxlabel() == "Above each vector: its coefficient"
    limits = {ax.get_images()[0].get_clim() for ax in display.axes_}
    assert limits == {(display.images.min(), display.images.max())}


def test_several_classes_and_a_limit(digits):
    X, y = digits
    model = KernelMatchingPursuitClassifier(20).fit(X, np.array(list("abc"))[y])
    display = VectorImageDisplay.from_estimator(
        model, (8, 8), max_images=10, figure=Figure(), name="Ten", cmap="viridis"
    )
    size = np.abs(model.dual_coef_).max(axis=0)
    drawn = {image.tobytes() for image in display.images}
    assert drawn == {
        row.reshape(8, 8).tobytes() for row in model.support_vectors_[np.argsort(-size)[:10]]
    }
    assert [title[0] for title in display.titles] == sorted(title[0] for title in display.titles)
    assert display.figure_.get_suptitle() == "Ten"
    assert display.axes_[0].images[0].get_cmap().name == "viridis"
    # The second row of places is not full; what is left over is blank.
    assert len(display.figure_.axes) == 16
    assert not any(ax.axison for ax in display.figure_.axes)


def test_sparse_rows(digits):
    X, y = digits
    model = KernelMatchingPursuitClassifier(5).fit(sparse.csr_matrix(X), y == 0)
    display = VectorImageDisplay.from_estimator(model, (4, 16), figure=Figure())
    assert display.images.shape == (5, 4, 16)


def test_errors(digits):
    X, y = digits
    model = KernelMatchingPursuitClassifier(5).fit(X, y)
    with pytest.raises(ValueError, match=r"shape is \(8, 9\), but the vectors have 64 features"):
        VectorImageDisplay.from_estimator(model, (8, 9))
    with pytest.raises(ValueError, match="max_images must be"):
        VectorImageDisplay.from_estimator(model, (8, 8), max_images=0)
    kernel = KernelMatchingPursuitClassifier(5, kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="without support_vectors_"):
        VectorImageDisplay.from_estimator(kernel, (8, 8))
