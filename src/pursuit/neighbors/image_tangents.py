"""Tangent vectors of images: how their pixels change under small transformations.

P. Simard, Y. LeCun and J. Denker, "Efficient pattern recognition using a new transformation
distance", Advances in Neural Information Processing Systems 5 (1993); P. Simard, Y. LeCun,
J. Denker and B. Victorri, "Transformation invariance in pattern recognition", Lecture Notes in
Computer Science 1524 (1998), reference 87 of the thesis.

Problem. A transformation moves what is seen in an image I: the pixel at p shows what was at
p + t u(p), for a field of displacements u and a small number t. Wanted is its tangent vector,

    T = d/dt I(p + t u(p)) at t = 0  =  u(p)'(dI/dx, dI/dy)(p).                            (1)

Steps.

1. I is made smooth by a Gaussian of width s, borders repeated, so that it has derivatives; dI/dx
   and dI/dy are the products with the derivatives of that Gaussian.
2. With x (columns) and y (rows) from the middle of the image, in halves of its longer side, so that
   they lie in [-1, 1], (1) is taken for

   =======================  ===================================
   transformation           u
   =======================  ===================================
   ``x_translation``        (1, 0)
   ``y_translation``        (0, 1)
   ``rotation``             (y, -x)
   ``scaling``              (x, y)
   ``parallel_hyperbolic``  (x, -y)
   ``diagonal_hyperbolic``  (y, x)
   ``thickness``            grad I / max |grad I|
   =======================  ===================================

Along each axis a field moves no pixel by more than 1, so that all tangents are of one unit and one
penalty on their coefficients is fair. Simard et al. have the angle, the logarithm of the size and
|grad I|^2 for the last one: the same directions, of other lengths.

Cost: four products of an image with the Gaussian of some 8 s pixels, and 3 operations a pixel and
transformation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from pursuit._typing import Array
from pursuit._validation import check_choice, check_integer, check_real

__all__ = ["TRANSFORMATIONS", "ImageTangents"]

TRANSFORMATIONS = (
    "x_translation",
    "y_translation",
    "rotation",
    "scaling",
    "parallel_hyperbolic",
    "diagonal_hyperbolic",
    "thickness",
)


@dataclass(frozen=True)
class ImageTangents:
    """Tangent vectors of images under small transformations.

    A value to be called: `tangents` of `HyperplaneKNeighborsClassifier` and of
    `ManifoldParzenDensity`.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the images, whose pixels are the features, row after row.
    transformations : tuple of str, optional
        Of ``"x_translation"``, ``"y_translation"``, ``"rotation"``, ``"scaling"``,
        ``"parallel_hyperbolic"``, ``"diagonal_hyperbolic"`` and ``"thickness"``; all if not given.
    smoothing : float, default=0.75
        Width in pixels of the Gaussian by whose derivatives images are differentiated.

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names it.

    See Also
    --------
    HyperplaneKNeighborsClassifier : Takes tangents beside the neighbours.
    ManifoldParzenDensity : Takes them for its local covariances.

    Notes
    -----
    A coefficient of 1 moves the pixels that move most by about one, in each transformation.

    References
    ----------
    P. Simard, Y. LeCun and J. Denker, "Efficient pattern recognition using a new transformation
    distance", Advances in Neural Information Processing Systems 5, 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import ImageTangents
    >>> tangents = ImageTangents((5, 5), ("x_translation", "rotation"))
    >>> ramp = np.tile(np.arange(5.0), (5, 1))  # each column one more than the one before
    >>> found = tangents(ramp.reshape(1, 25)).reshape(2, 5, 5)
    >>> found[:, 1:4, 2].round(1)
    array([[ 1. ,  1. ,  1. ],
           [-0.5,  0. ,  0.5]])
    """

    shape: tuple[int, int]
    transformations: tuple[str, ...] = TRANSFORMATIONS
    smoothing: float = 0.75

    def __post_init__(self) -> None:
        """Check the values; sequences become tuples."""
        for name in ("shape", "transformations"):
            value = getattr(self, name)
            if isinstance(value, str) or not hasattr(value, "__iter__"):
                raise ValueError(f"{name} must be a tuple, got {value!r}")
            object.__setattr__(self, name, tuple(value))
        if len(self.shape) != 2:
            raise ValueError(f"shape must hold two numbers, rows and columns, got {self.shape}")
        for side in self.shape:
            check_integer("shape", side, 2)
        object.__setattr__(self, "shape", tuple(map(int, self.shape)))
        if not self.transformations or len(set(self.transformations)) < len(self.transformations):
            raise ValueError("transformations must hold at least one name, and none twice")
        for name in self.transformations:
            check_choice("transformations", name, TRANSFORMATIONS)
        check_real("smoothing", self.smoothing, above=True)

    def __call__(self, X: Any) -> Array:
        """Tangent vectors of images.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels)
            Images, one a row.

        Returns
        -------
        tangents : ndarray of shape (n_images, n_transformations, n_pixels)
            In the floating type of X.

        Raises
        ------
        ValueError
            If the rows have not as many features as the shape has pixels.
        """
        X = np.asarray(X)
        height, width = self.shape
        if X.ndim != 2 or X.shape[1] != height * width:
            raise ValueError(
                f"tangents: images of shape {self.shape} have {height * width} pixels, "
                f"but X has shape {X.shape}"
            )
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        images = X.reshape(-1, height, width).astype(dtype, copy=False)
        gradient = self._gradient(images)
        tangents = np.empty((len(X), len(self.transformations), height, width), dtype=dtype)
        for j, name in enumerate(self.transformations):
            u, v = self._displacements(name, *gradient)
            tangents[:, j] = u * gradient[0] + v * gradient[1]  # eq. (1)
        return tangents.reshape(len(X), -1, height * width)

    def _gradient(self, images: Array) -> tuple[Array, Array]:
        """dI/dx and dI/dy of the smoothed images: step 1."""
        widths = (0.0, self.smoothing, self.smoothing)
        along = [gaussian_filter(images, widths, order, mode="nearest")
                 for order in ((0, 0, 1), (0, 1, 0))]  # fmt: skip
        return along[0], along[1]

    def _displacements(self, name: str, along_x: Array, along_y: Array) -> tuple[Any, Any]:
        """The field u of a transformation: step 2."""
        if name == "thickness":
            steepest = np.hypot(along_x, along_y).max(axis=(1, 2), keepdims=True)
            steepest[steepest == 0.0] = 1.0
            return along_x / steepest, along_y / steepest
        height, width = self.shape
        half = (max(self.shape) - 1) / 2
        x = ((np.arange(width) - (width - 1) / 2) / half).astype(along_x.dtype)
        y = ((np.arange(height)[:, None] - (height - 1) / 2) / half).astype(along_x.dtype)
        fields = {
            "x_translation": (1.0, 0.0),
            "y_translation": (0.0, 1.0),
            "rotation": (y, -x),
            "scaling": (x, y),
            "parallel_hyperbolic": (x, -y),
            "diagonal_hyperbolic": (y, x),
        }
        return fields[name]
