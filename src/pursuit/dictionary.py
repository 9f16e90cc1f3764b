"""The dictionary D = {d_1, ..., d_M} of matching pursuit (Vincent and Bengio 2002, section 4.1).

Each atom is a kernel centred somewhere, d_k(x) = K(x, z_k). The centres are the training rows,
a random subset of them, or points that the user gives. The constant function of equation 14 is
not listed here: it is orthogonalised before any atom (see ``gram.py``), is never penalised and
does not count as a component.

An algorithm sees a dictionary only through ``functions`` (rows to an array with one column an
atom), ``len`` and ``take`` (the chosen atoms, for the fitted model).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array, check_random_state

from pursuit.backend import Array
from pursuit.kernels import Kernel, Precomputed

__all__ = ["Atoms", "Dictionary", "draw_candidates", "given_centres", "training_rows"]

# Above this many rows the candidates are a random subset unless the user asks for all.
LARGEST_COMPLETE = 10_000
DEFAULT_CANDIDATES = 2_500


@dataclass(frozen=True)
class Atoms:
    """Kernel functions K(., z_k): what a fitted model evaluates.

    Attributes
    ----------
    kernel : Kernel
        The kernel of all functions.
    centres : {ndarray, CSR matrix} of shape (n_atoms, n_features)
        One centre an atom; column indices for a precomputed kernel.
    """

    kernel: Kernel
    centres: Any

    def __len__(self) -> int:
        """Number of atoms."""
        return int(self.centres.shape[0])

    @property
    def functions(self) -> Callable[[Any], Array]:
        """Rows to the array of shape (n_rows, n_atoms); centres are prepared once."""
        if not len(self):
            return lambda X: np.empty((X.shape[0], 0))
        kernel, prepared = self.kernel, self.kernel.prepare(self.centres)
        return lambda X: kernel.evaluate(X, prepared)

    def take(self, indices: Array) -> Atoms:
        """Return the atoms at `indices`, in that order."""
        return Atoms(self.kernel, self.centres[indices])

    def subset(self, indices: Array) -> Callable[[Any], Array]:
        """Return the functions of the atoms at `indices`."""
        return self.take(indices).functions


@dataclass(frozen=True)
class Dictionary:
    """Candidate atoms, and the training row behind each.

    Attributes
    ----------
    atoms : Atoms
        The candidates.
    rows : ndarray of shape (n_atoms,) or None
        Index of the training row that an atom is centred on; None for given centres.
    """

    atoms: Atoms
    rows: Array | None

    def __len__(self) -> int:
        """Number of candidates."""
        return len(self.atoms)


def n_candidate_rows(n_candidates: Any, n_rows: int, n_components: int) -> int:
    """Number of training rows in the dictionary.

    Parameters
    ----------
    n_candidates : int, float or None
        A number of rows, or a fraction in (0, 1] of them. None: all rows up to 10 000 rows;
        above that 2500, or five times `n_components` if that is more.
    n_rows : int
        Number of training rows.
    n_components : int
        The budget.

    Raises
    ------
    ValueError
        If `n_candidates` is neither, or not positive.
    """
    if n_candidates is None:
        few = max(DEFAULT_CANDIDATES, 5 * n_components)
        return n_rows if n_rows <= LARGEST_COMPLETE else min(n_rows, few)
    if isinstance(n_candidates, (int, np.integer)) and not isinstance(n_candidates, bool):
        if n_candidates >= 1:
            return min(int(n_candidates), n_rows)
    elif isinstance(n_candidates, (float, np.floating)) and 0 < n_candidates <= 1:
        return max(1, round(float(n_candidates) * n_rows))
    raise ValueError(
        "n_candidates must be None, a positive integer or a fraction in (0, 1], "
        f"got {n_candidates!r}"
    )


def draw_candidates(rows: Array, n_candidates: int, random_state: Any) -> Array:
    """Draw rows without replacement, kept in row order; all of them if there are no more.

    Parameters
    ----------
    rows : ndarray of int
        Rows to draw from.
    n_candidates : int
        How many.
    random_state : int, RandomState or None
        For the draw.
    """
    if n_candidates >= len(rows):
        return rows
    rng = check_random_state(random_state)
    drawn: Array = np.sort(rng.choice(rows, size=n_candidates, replace=False))
    return drawn


def training_rows(kernel: Kernel, X: Any, rows: Array) -> Dictionary:
    """Kernels centred on training rows.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        All rows that the caller gave.
    rows : ndarray of shape (n_atoms,)
        Indices into `X` of the centres.

    Raises
    ------
    ValueError
        If the kernel is precomputed and `X` is not square.
    """
    if isinstance(kernel, Precomputed):
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"kernel='precomputed' needs a square X, got shape {X.shape}")
        return Dictionary(Atoms(kernel, rows), rows)
    # Float64 centres make every kernel value float64, whatever the type of the rows.
    return Dictionary(Atoms(kernel, X[rows].astype(np.float64)), rows)


def given_centres(kernel: Kernel, centres: Any, n_features: int) -> Dictionary:
    """Kernels centred on points that the user gives.

    Raises
    ------
    ValueError
        If the centres are not a finite table with `n_features` columns, or the kernel is
        precomputed.
    """
    if isinstance(kernel, Precomputed):
        raise ValueError("dictionary: centres cannot be given for a precomputed kernel")
    table = check_array(centres, accept_sparse="csr", dtype=np.float64, input_name="dictionary")
    if table.shape[1] != n_features:
        raise ValueError(f"dictionary has {table.shape[1]} features, but X has {n_features}")
    if sparse.issparse(table):
        table = sparse.csr_matrix(table)
    return Dictionary(Atoms(kernel, table), None)
