"""The ridge of a fit by coefficients: alpha a'P a.

P says what counts as large. The identity makes it the squared length of the coefficients; with
P[k, l] = K(z_k, z_l) it is the squared norm of the function that they make of the kernel, the
second term of equation 13 of Vincent and Bengio (2002), where alpha = 1 / C:

    |sum_k a_k K(., z_k)|^2  =  sum_k sum_l a_k a_l K(z_k, z_l).

Functions that are always in the model, as its constant is, are not penalised: their rows and
columns of P are zero ("semi-parametric" models, section 4.1). They come first among the candidates.

P is never formed for all candidates: a pursuit reads a row of it at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pursuit._typing import Array
from pursuit.expansion.basis_functions import AtomSet
from pursuit.kernels import kernel_name
from pursuit.linalg import blocks

__all__ = ["IDENTITY", "Penalty", "norm_penalty"]

# Candidates on which a kernel is looked at for being symmetric and definite.
EXAMINED = 256
# An eigenvalue below minus this share of the largest one is no rounding.
INDEFINITE = 1e-8
# Functions whose norms are read from one small matrix.
DIAGONAL_ROWS = 64


@dataclass(frozen=True)
class Penalty:
    """P of the ridge alpha a'P a among the candidate functions.

    Attributes
    ----------
    atoms : AtomSet or None
        Functions of one kernel; None for the identity.
    places : {ndarray, CSR matrix} of shape (n_atoms, n_features) or None
        Rows at which a function has the values K(z_k, .): the centres.
    n_free : int
        So many functions before these are always in and not penalised.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.basis_functions import Atoms
    >>> from pursuit.expansion.penalty import IDENTITY, norm_penalty
    >>> from pursuit.kernels import Linear
    >>> norm_penalty(Atoms(Linear(), np.array([[1.0], [2.0]]))).block(np.array([0, 1]))
    array([[1., 2.],
           [2., 4.]])
    >>> IDENTITY.block(np.array([3, 7, 3]))
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    """

    atoms: AtomSet | None = None
    places: Any = None
    n_free: int = 0

    @property
    def diagonal_only(self) -> bool:
        """Whether a function's coefficient is penalised by itself."""
        return self.atoms is None

    @property
    def is_identity(self) -> bool:
        """Whether all coefficients are penalised alike, by themselves."""
        return self.atoms is None and not self.n_free

    def block(self, chosen: Any) -> Array:
        """P among some functions, any of which may come twice."""
        chosen = np.asarray(chosen, dtype=int)
        block = np.zeros((len(chosen), len(chosen)))
        inside = np.flatnonzero(chosen >= self.n_free)
        block[np.ix_(inside, inside)] = self._among(chosen[inside] - self.n_free)
        return block

    def _among(self, chosen: Array) -> Array:
        """P among functions that are penalised, counted from the first of these."""
        if self.atoms is None:
            return np.asarray(np.equal.outer(chosen, chosen), dtype=np.float64)
        values = np.asarray(self.atoms.subset(chosen)(self.places[chosen]), dtype=np.float64)
        return np.asarray(0.5 * (values + values.T))

    def rows(self, chosen: Array, n_atoms: int) -> Array:
        """P between some functions and all of them, (len(chosen), n_atoms)."""
        rows = np.zeros((len(chosen), n_atoms))
        inside = np.flatnonzero(chosen >= self.n_free)
        own = chosen[inside]
        if self.atoms is None:
            rows[inside, own] = 1.0
        elif len(own):
            functions = self.atoms.subset(own - self.n_free)
            rows[inside, self.n_free :] = blocks.evaluate(functions, self.places, len(own)).T
        return rows

    def diagonal(self, n_atoms: int) -> Array:
        """What each function's coefficient is penalised by, alone."""
        if self.atoms is None:
            return np.where(np.arange(n_atoms) < self.n_free, 0.0, 1.0)
        diagonal = np.empty(n_atoms)
        for start in range(0, n_atoms, DIAGONAL_ROWS):
            some = np.arange(start, min(start + DIAGONAL_ROWS, n_atoms))
            diagonal[some] = self.block(some).diagonal()
        return diagonal

    def add_to(self, gram: Array, alpha: float) -> None:
        """``gram += alpha P``, in place, for all functions."""
        if self.atoms is None:
            gram[np.diag_indices_from(gram)] += alpha * self.diagonal(len(gram))
            return
        for rows in blocks.row_blocks(len(gram), 8.0 * len(gram)):
            gram[rows] += alpha * self.rows(np.arange(rows.start, rows.stop), len(gram))


IDENTITY = Penalty()


def norm_penalty(atoms: AtomSet, places: Any = None) -> Penalty:
    """The squared norm of the function, for functions of one kernel.

    Parameters
    ----------
    atoms : AtomSet
        The candidates.
    places : {ndarray, CSR matrix} of shape (n_atoms, n_features), optional
        Rows at their centres; None: the centres themselves.

    Raises
    ------
    ValueError
        If there is no one kernel of all functions, or it is not symmetric and positive semidefinite
        on some of them.
    """
    if atoms.kernel is None or atoms.centres is None:
        raise ValueError(
            "penalty='norm' needs functions of one kernel with centres: those of several kernels, "
            "or a user's own, have no norm in common"
        )
    penalty = Penalty(atoms, atoms.centres if places is None else places)
    few = blocks.evenly_spaced(len(atoms), EXAMINED)
    values = np.asarray(atoms.subset(few)(penalty.places[few]), dtype=np.float64)
    largest = float(np.abs(values).max(initial=0.0))
    symmetric = np.abs(values - values.T).max(initial=0.0) <= INDEFINITE * largest
    if (
        not symmetric
        or np.linalg.eigvalsh(values).min(initial=0.0) < -INDEFINITE * len(few) * largest
    ):
        raise ValueError(
            f"penalty='norm' needs a symmetric positive semidefinite kernel, and "
            f"{kernel_name(atoms.kernel)} is not one on these rows"
        )
    return penalty
