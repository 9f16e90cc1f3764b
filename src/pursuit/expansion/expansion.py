"""The fitted function f(x) = b + sum_k a_k K(x, z_k) (eq. 14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

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
        object.__setattr__(self, "_weights", np.ascontiguousarray(self.coefficients.T))

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
