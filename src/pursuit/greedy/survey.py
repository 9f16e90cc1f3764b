"""A first pass over rows that come in blocks: what must be known before sums can be taken.

Sums (``statistics.py``) are of kernel functions, so that their centres and the kernel's numbers
come first. Both follow from rows in any order and in any parts:

1. candidates: the rows of smallest hash (``geometry/row_hashes.py``), a uniform sample of the
   distinct rows, of which no more than are wanted are ever kept;
2. ``gamma="scale"``: the variance of all entries (``geometry/spread.py``).

A fit on all rows at once draws the same candidates where no ``random_state`` is given; a seed makes
another draw of the same kind.

Cost. One pass, some twenty operations an entry; as many rows as there are candidates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from pursuit._typing import Array
from pursuit.geometry.row_hashes import hashes, mixed
from pursuit.geometry.spread import Spread

__all__ = ["Survey", "salt_of", "stacked"]


def salt_of(random_state: Any) -> Array | None:
    """What a seed changes the hashes by; None leaves them as they are."""
    if random_state is None:
        return None
    return np.array(check_random_state(random_state).randint(1, 2**31 - 1), dtype=np.uint64)


def stacked(parts: list[Any]) -> Any:
    """Rows one part after another: CSR where any part is."""
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_matrix(sparse.vstack(parts))
    return np.vstack(parts)


class Survey:
    """What is found so far.

    Parameters
    ----------
    capacity : int
        Candidates to keep at most.
    salt : ndarray of uint64, optional
        Changes the draw.

    Attributes
    ----------
    X : {ndarray, CSR matrix} of shape (n_kept, n_features)
        The rows of smallest hash, in the order of the hashes, in float64.
    places : ndarray of int of shape (n_kept,)
        Where each stands among all rows.
    n_used, n_rows : int
        Rows of positive weight, and all.
    spread : Spread
        Of the rows of positive weight.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.greedy.survey import Survey
    >>> X, w = np.array([[1.0], [2.0], [1.0]]), np.ones(3)
    >>> survey = Survey(5).add(X, w).add(X, w)
    >>> sorted(survey.places.tolist()), survey.n_rows
    ([0, 1], 6)
    >>> Survey(5).add(X[:2], w[:2]).merge(Survey(5).add(X[2:], w[2:])).places.tolist()
    [0, 1]
    """

    def __init__(self, capacity: int, salt: Array | None = None) -> None:
        self.capacity, self.salt = capacity, salt
        self.keys, self.places = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.intp)
        self.X: Any = None
        self.n_used = self.n_rows = 0
        self.spread = Spread()

    def add(self, X: Any, weights: Array) -> Survey:
        """Add rows; those of weight zero are only counted."""
        used = np.flatnonzero(weights > 0)
        if len(used):
            rows = X if len(used) == X.shape[0] else X[used]
            self.spread.add(rows, weights[used])
            self._keep(rows, self.n_rows + used)
        self.n_used += len(used)
        self.n_rows += X.shape[0]
        return self

    def merge(self, other: Survey) -> Survey:
        """Add the rows of another survey, which come after these; the other stays as it is."""
        self.spread.merge(other.spread)
        if other.X is not None:
            self._take(other.X, other.keys, self.n_rows + other.places)
        self.n_used += other.n_used
        self.n_rows += other.n_rows
        return self

    def first(self, number: int) -> tuple[Any, Array]:
        """So many candidates, in the order of the rows, and their places."""
        order = np.argsort(self.places[:number])
        return self.X[:number][order], self.places[:number][order]

    def _keep(self, X: Any, places: Array) -> None:
        """Take those among the rows whose hash is small enough."""
        keys = hashes(X)
        if self.salt is not None:
            with np.errstate(over="ignore"):
                keys = mixed(keys ^ self.salt)
        self._take(X, keys, places)

    def _take(self, X: Any, keys: Array, places: Array) -> None:
        """Take those of some rows whose hash is small enough."""
        if len(self.keys) == self.capacity:
            small = np.flatnonzero(keys < self.keys[-1])
            X, keys, places = X[small], keys[small], places[small]
        if not len(keys):
            return
        both = X.astype(np.float64) if self.X is None else stacked([self.X, X.astype(np.float64)])
        # Of equal rows the first: `unique` gives the first of equal keys.
        self.keys, kept = np.unique(np.concatenate([self.keys, keys]), return_index=True)
        self.keys, kept = self.keys[: self.capacity], kept[: self.capacity]
        self.X, self.places = both[kept], np.concatenate([self.places, places])[kept]
