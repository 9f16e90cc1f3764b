"""Why a function has the value it has: its largest terms, and the share of each feature.

Terms. f_t(x) = b_t + sum_k a_tk K(x, z_k) is a sum of what each vector says; a few of them are
often most of it.

Shapley values. Of a kernel that is a product over the features, K(x, z) = prod_j k_j(x_j, z_j),
with k_j = exp(-gamma (x_j - z_j)^2) or exp(-gamma |x_j - z_j|), the function of a set S of features
is v(S) = b + sum_k a_k prod_{j in S} k_j (M. Mohammadi, S. L. Chau and K. Muandet, "Computing exact
Shapley values in polynomial time for product-kernel methods", 2025): a feature that is left out
counts as one that agrees with every vector. The share of feature j,

    phi_j = sum_{S without j} |S|! (d - |S| - 1)! / d!  (v(S + j) - v(S)),

is, with |S|! (d - |S| - 1)! / d! = integral over [0, 1] of t^|S| (1 - t)^(d - |S| - 1),

    phi_j = sum_k a_k (k_j - 1) int_0^1 prod_{l != j} (1 - t + t k_l) dt.                     (1)

The integrand is a polynomial of degree d - 1, for which Gauss's rule with ceil(d / 2) nodes is
exact; its factors are positive inside, so that the product without j is a quotient.

Cost: n N d^2 / 2 for all features of n rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pursuit._typing import Array
from pursuit.expansion.expansion import KernelExpansion
from pursuit.kernels import RBF, Laplacian
from pursuit.linalg import blocks

__all__ = ["Explanation", "ProductKernel", "largest_terms", "product_kernel"]


class Explanation(NamedTuple):
    """The largest terms of a function at some rows.

    The value of the function is ``contributions.sum(axis=-1) + rest + intercept``. With one output
    the second axis is left out.

    Attributes
    ----------
    contributions : ndarray of shape (n_rows, n_outputs, n)
        a_k K(x, z_k), the largest in absolute value first.
    vectors : ndarray of int of the same shape
        k, their place among the model's vectors.
    rows : ndarray of int of the same shape, or None
        Training rows: those that are the vectors, or the nearest ones to vectors that moved; -1
        for a vector that is no training row; None where the model knows of none.
    rest : ndarray of shape (n_rows, n_outputs)
        The sum of all other terms.
    intercept : ndarray of shape (n_outputs,)
        The constant.
    """

    contributions: Array
    vectors: Array
    rows: Array | None
    rest: Array
    intercept: Array


def largest_terms(
    expansion: KernelExpansion, X: Any, n: int, training_rows: Array | None
) -> Explanation:
    """The `n` largest terms of each output at each row.

    Parameters
    ----------
    expansion : KernelExpansion
        The function.
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
        Rows.
    n : int
        How many terms, or all where there are no more.
    training_rows : ndarray of int of shape (n_vectors,) or None
        The row behind each vector.
    """
    atoms, (T, N) = expansion.atoms, expansion.coefficients.shape
    n, n_rows = min(n, N), X.shape[0]
    vectors, contributions = np.empty((n_rows, T, n), dtype=int), np.empty((n_rows, T, n))
    rest = np.zeros((n_rows, T))
    for part in blocks.row_blocks(n_rows, 24.0 * N * T) if N else ():
        values = blocks.evaluate(atoms.functions, X[part], N)
        terms = values[:, None, :] * expansion.coefficients
        order = np.argsort(-np.abs(terms), axis=2, kind="stable")
        ranked = np.take_along_axis(terms, order, axis=2)
        vectors[part], contributions[part] = order[:, :, :n], ranked[:, :, :n]
        rest[part] = ranked[:, :, n:].sum(axis=2)
    rows = None if training_rows is None else training_rows[vectors]
    if T == 1:
        rows = None if rows is None else rows[:, 0]
        vectors, contributions, rest = vectors[:, 0], contributions[:, 0], rest[:, 0]
    return Explanation(contributions, vectors, rows, rest, expansion.intercept)


class ProductKernel(NamedTuple):
    """A function of a product kernel, in the fields of ``shapiq``'s ``ProductKernelModel``.

    With ``from shapiq.explainer.product_kernel import ProductKernelComputer, ProductKernelModel``
    it is ``ProductKernelModel(**product_kernel._asdict())``, for a `ProductKernelComputer`.

    Attributes
    ----------
    X_train : ndarray of shape (n, d)
        The vectors.
    alpha : ndarray of shape (n,)
        Their coefficients.
    n, d : int
        Numbers of vectors and of features.
    gamma : float
        The kernel's.
    kernel_type : {"rbf", "laplacian"}
        The kernel.
    intercept : float
        The constant.
    """

    X_train: Array
    alpha: Array
    n: int
    d: int
    gamma: float
    kernel_type: str
    intercept: float

    @property
    def baseline(self) -> float:
        """The value without any feature, v(empty set)."""
        return float(self.alpha.sum()) + self.intercept

    def shapley_values(self, X: Array) -> Array:
        """Exact Shapley values of the features (eq. 1).

        Parameters
        ----------
        X : array-like of shape (n_rows, d)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_rows, d)
            They sum to the value of the function less `baseline`.
        """
        rows = np.asarray(X, dtype=np.float64)
        nodes, weights = np.polynomial.legendre.leggauss((self.d + 1) // 2)
        return np.array([self._of_row(x, (nodes + 1) / 2, weights / 2) for x in rows])

    def _of_row(self, x: Array, nodes: Array, weights: Array) -> Array:
        """Equation 1 for one row, by a rule on [0, 1]."""
        distances = np.abs(x - self.X_train)
        k = np.exp(-self.gamma * (distances if self.kernel_type == "laplacian" else distances**2))
        total = np.zeros_like(k)
        for t, weight in zip(nodes, weights, strict=True):
            factors = 1.0 - t + t * k
            total += weight * np.exp(np.log(factors).sum(axis=1, keepdims=True)) / factors
        return np.asarray(self.alpha @ ((k - 1.0) * total))


def product_kernel(expansion: KernelExpansion, output: int) -> ProductKernel:
    """One output of a function as a product kernel.

    Raises
    ------
    ValueError
        If the kernel is no product over the features, or is one of mixed features.
    """
    kernel, scale = expansion.kernel, getattr(expansion.atoms, "scale", None)
    if not isinstance(kernel, RBF | Laplacian):
        raise ValueError(f"product_kernel needs the rbf or the laplacian kernel, not {kernel}")
    if scale is not None and np.ndim(scale) == 2:
        raise ValueError("product_kernel: a metric that mixes features leaves no product over them")
    Z = expansion.vectors
    vectors = np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=np.float64)
    name = "rbf" if isinstance(kernel, RBF) else "laplacian"
    own, intercept = expansion.coefficients[output].copy(), float(expansion.intercept[output])
    n, d = vectors.shape
    return ProductKernel(vectors, own, n, d, float(kernel.gamma), name, intercept)
