"""The fitted function f(x) = b + sum_k a_k K(x, z_k) (eq. 14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pursuit._arrays import as_wide, namespace_of, promoted
from pursuit._typing import Array
from pursuit.expansion.basis_functions import AtomSet
from pursuit.kernels import Kernel
from pursuit.linalg import blocks

__all__ = ["KernelExpansion"]


@dataclass(frozen=True)
class KernelExpansion:
    """f(x) = intercept + sum_k coefficients[:, k] K(x, z_k), called without any checks.

    Attributes
    ----------
    atoms : AtomSet
        The functions, such as a kernel and centres z_k.
    coefficients : ndarray of shape (n_outputs, n_vectors)
        One row an output.
    intercept : ndarray of shape (n_outputs,)
        Value where no kernel reaches.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.basis_functions import Atoms
    >>> from pursuit.expansion.expansion import KernelExpansion
    >>> from pursuit.kernels import Linear
    >>> f = KernelExpansion(Atoms(Linear(), np.eye(2)), np.array([[1.0, 2.0]]), np.zeros(1))
    >>> f(np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    atoms: AtomSet
    coefficients: Array
    intercept: Array

    @property
    def kernel(self) -> Kernel | None:
        """The kernel of all functions, where there is one."""
        return self.atoms.kernel

    @property
    def vectors(self) -> Any:
        """The centres z_k, where all functions have one."""
        return self.atoms.centres

    def __post_init__(self) -> None:
        """Prepare the centres and the transposed coefficients once."""
        object.__setattr__(self, "_functions", self.atoms.functions)
        on_device = namespace_of(self.coefficients) is not None
        weights = self.coefficients.T if on_device else np.ascontiguousarray(self.coefficients.T)
        object.__setattr__(self, "_weights", weights)

    def moved(self, convert: Callable[[Any], Any]) -> KernelExpansion:
        """The function with its arrays put through `convert`, to a device or back."""
        atoms = self.atoms.moved(convert)
        return KernelExpansion(atoms, convert(self.coefficients), convert(self.intercept))

    def __getstate__(self) -> dict[str, Any]:
        """Only the defining values; what is prepared is prepared again."""
        return {name: vars(self)[name] for name in ("atoms", "coefficients", "intercept")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the values and prepare again."""
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def __call__(self, X: Any) -> Array:
        """Return the outputs, shape (n_rows, n_outputs).

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_rows, n_features)
            Rows of the floating type that the model was trained on. They are not checked:
            this is the fast route for callers who know their data.
        """
        if namespace_of(X) is not None:
            return self._on_device(X)
        functions: Callable[[Any], Array] = self._functions  # type: ignore[attr-defined]
        weights: Array = self._weights  # type: ignore[attr-defined]
        n_rows, n_vectors = X.shape[0], len(weights)
        if not n_vectors:
            return np.tile(self.intercept, (n_rows, 1))
        if n_rows * n_vectors < blocks.SMALLEST_PARALLEL_SIZE:
            outputs: Array = functions(X) @ weights + self.intercept
            return outputs
        outputs = np.empty((n_rows, len(self.intercept)))
        for rows in blocks.row_blocks(n_rows, 8.0 * n_vectors):
            outputs[rows] = blocks.evaluate(functions, X[rows], n_vectors) @ weights
        outputs += self.intercept
        return outputs

    def _on_device(self, X: Any) -> Array:
        """The outputs at rows of a device, where the coefficients are, too."""
        xp, weights = namespace_of(X), self._weights  # type: ignore[attr-defined]
        if not weights.shape[0]:
            empty: Array = xp.zeros_like(X[:, :1], dtype=weights.dtype) + self.intercept
            return empty
        parts = []
        for rows in blocks.row_blocks(X.shape[0], 8.0 * weights.shape[0]):
            values, own = promoted(xp, as_wide(self._functions(X[rows, :])), weights)  # type: ignore[attr-defined]
            parts.append(values @ own + self.intercept)
        outputs: Array = xp.concat(parts)
        return outputs
