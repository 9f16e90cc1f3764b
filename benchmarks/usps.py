"""The two forms of the USPS digits: as the set comes, and smoothed as the papers had them."""

from scipy.ndimage import gaussian_filter

from pursuit import datasets

FORMS = ("smoothed", "raw")


def smoothed(X):
    """Images of 16 x 16 pixels after a Gaussian filter of 0.75 pixel, borders repeated."""
    images = X.reshape(-1, 16, 16)
    return gaussian_filter(images, sigma=(0, 0.75, 0.75), mode="nearest").reshape(len(X), -1)


def load(part, form):
    """Rows in [-1, 1] and digits of the training or the test part, in one of the forms."""
    X, y = datasets.load("usps", part)
    return (smoothed(X) if form == "smoothed" else X), y
