"""The dictionary D = {d_1, ..., d_M} of matching pursuit (Vincent and Bengio 2002, section 4.1).

What a user may ask for, alone or several in a list, whose union then is the dictionary:

======================  ===============================================================
``dictionary=``         atoms
======================  ===============================================================
None                    the estimator's kernel on the candidate rows
a table of numbers      the estimator's kernel on these centres
a kernel                that kernel on the candidate rows; asymmetric ones are allowed
`OrientedGaussians`     Gaussians on the candidate rows that follow the data around them
a mapping               the user's own functions by name
======================  ===============================================================

The candidate rows are the training rows or a random part of them. The estimator's kernel may be
one kernel for each class ("a kernel shape specific to each class", section 4.1): a row then
carries the kernel of its class. The constant function of equation 14 is not listed here: it is
orthogonalised before any atom (see ``gram.py``), is never penalised and does not count as a
component.

An algorithm sees a dictionary only through ``functions`` (rows to an array with one column an
atom), ``len`` and ``take`` (the chosen atoms, for the fitted model); see ``atoms.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array, check_random_state

from pursuit._objects import check_coordinates, in_double
from pursuit._typing import Array
from pursuit._validation import check_choice, check_integer, check_real, summed
from pursuit.expansion.basis_functions import (
    Atoms,
    AtomSet,
    ColumnAtoms,
    FunctionAtoms,
    MixedAtoms,
    OrientedAtoms,
    unite,
)
from pursuit.expansion.penalty import IDENTITY, Penalty, norm_penalty
from pursuit.geometry.local_covariance import Neighborhoods, local_covariances
from pursuit.geometry.row_hashes import blockwise_hashes
from pursuit.kernels import Kernel, Precomputed, check_square
from pursuit.losses import weighted_median

__all__ = [
    "Atoms",
    "Dictionary",
    "OrientedGaussians",
    "always_in",
    "class_kernels",
    "draw_candidates",
    "few_candidates",
    "given_centres",
    "oriented_gaussians",
    "penalised",
    "resolve_dictionary",
    "training_rows",
    "user_functions",
]

# Above this many rows the candidates are a random subset unless the user asks for all.
LARGEST_COMPLETE = 10_000
DEFAULT_CANDIDATES = 2_500
CANDIDATES_A_VECTOR = 5


@dataclass(frozen=True)
class Dictionary:
    """Candidate atoms, and the training row behind each.

    Attributes
    ----------
    atoms : AtomSet
        The candidates.
    rows : ndarray of shape (n_atoms,) or None
        Index of the training row that an atom is centred on, -1 for an atom without one; None
        if no atom has one.
    penalty : Penalty
        What a ridge on their coefficients counts as large.
    """

    atoms: AtomSet
    rows: Array | None
    penalty: Penalty = IDENTITY

    def __len__(self) -> int:
        """Number of candidates."""
        return len(self.atoms)

    def ridge(self, alpha: float, chosen: Array) -> float | Array:
        """What the ridge is among the chosen ones: alpha, or alpha P where P is no identity."""
        if self.penalty.is_identity or not alpha:
            return alpha
        return alpha * self.penalty.block(chosen)


def few_candidates(n_components: int) -> int:
    """Random rows that are candidates where there are many: 2500, or five for each vector."""
    return max(DEFAULT_CANDIDATES, CANDIDATES_A_VECTOR * n_components)


def n_candidate_rows(
    n_candidates: Any, n_rows: int, n_components: int, *, name: str = "n_candidates"
) -> int:
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
    name : str
        What the user calls `n_candidates`.

    Raises
    ------
    ValueError
        If `n_candidates` is neither, or not positive.
    """
    if n_candidates is None:
        return n_rows if n_rows <= LARGEST_COMPLETE else min(n_rows, few_candidates(n_components))
    if isinstance(n_candidates, (int, np.integer)) and not isinstance(n_candidates, bool):
        if n_candidates >= 1:
            return min(int(n_candidates), n_rows)
    elif isinstance(n_candidates, (float, np.floating)) and 0 < n_candidates <= 1:
        return max(1, round(float(n_candidates) * n_rows))
    raise ValueError(
        f"{name} must be None, a positive integer or a fraction in (0, 1], got {n_candidates!r}"
    )


def draw_candidates(rows: Array, n_candidates: int, random_state: Any, X: Any = None) -> Array:
    """Draw rows without replacement, kept in row order; all of them if there are no more.

    A copy of a row is the same function again: with `X` only the first of equal rows is drawn.
    Where no `random_state` is given the draw follows from the rows themselves, so that two fits on
    the same rows, in any order and in any parts, agree: those of smallest hash
    (``geometry/row_hashes.py``), or with seed 0 where there is no `X`.

    Parameters
    ----------
    rows : ndarray of int
        Rows to draw from.
    n_candidates : int
        How many.
    random_state : int, RandomState or None
        For the draw; None: by the rows.
    X : {ndarray, CSR matrix} of shape (n_samples, n_features), optional
        The samples that `rows` refers to.
    """
    by_hash = np.arange(len(rows))
    if X is not None:
        by_hash = np.unique(blockwise_hashes(X, rows), return_index=True)[1]
        if random_state is None:
            return rows[np.sort(by_hash[:n_candidates])]
    rows = rows[np.sort(by_hash)]
    if n_candidates >= len(rows):
        return rows
    rng = check_random_state(0 if random_state is None else random_state)
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
        check_square(X)
        return Dictionary(Atoms(kernel, rows), rows)
    # Float64 centres make every kernel value float64, whatever the type of the rows.
    return Dictionary(Atoms(kernel, in_double(X[rows])), rows)


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
    try:
        table = check_array(centres, accept_sparse="csr", dtype=np.float64, input_name="dictionary")
    except (ValueError, TypeError) as error:
        raise ValueError(f"dictionary: {error}") from error
    if table.shape[1] != n_features:
        raise ValueError(f"dictionary has {table.shape[1]} features, but X has {n_features}")
    if sparse.issparse(table):
        table = summed(sparse.csr_matrix(table), "dictionary")
    return Dictionary(Atoms(kernel, table), None)


def class_kernels(
    kernels: Mapping[int, Kernel], X: Any, rows: Array, codes: Array | None
) -> Dictionary:
    """Kernels centred on training rows, each row with the kernel of its class.

    Parameters
    ----------
    kernels : mapping of int to Kernel
        One kernel for each class of the rows.
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        All rows that the caller gave.
    rows : ndarray of shape (n_atoms,)
        Indices into `X` of the centres.
    codes : ndarray of int of shape (n_samples,)
        Class of each row of `X`; None where there are no classes, which is an error.

    Raises
    ------
    ValueError
        If a class has no kernel, or a kernel is precomputed.
    """
    if codes is None:
        raise ValueError("kernel: a kernel for each class needs class labels")
    classes, members = np.unique(codes[rows], return_inverse=True)
    missing = [int(c) for c in classes if c not in kernels]
    if missing:
        raise ValueError(f"kernel has no entry for the class number {missing[0]}")
    if any(isinstance(kernel, Precomputed) for kernel in kernels.values()):
        raise ValueError("kernel: a kernel for each class cannot be precomputed")
    parts = tuple(
        training_rows(kernels[int(c)], X, rows[members == p]).atoms for p, c in enumerate(classes)
    )
    return Dictionary(MixedAtoms(parts, members.reshape(-1)), rows)


@dataclass(frozen=True)
class OrientedGaussians:
    """A part of a dictionary: Gaussians that follow the data around the candidate rows.

    The function at a row x_i is exp(-1/2 (x - x_i)' C_i^{-1} (x - x_i)), where C_i is the
    covariance of the nearest training rows, taken from x_i (its leading eigenpairs), plus
    sigma^2 in every direction. See ``local_covariance.py`` and ``atoms.py``.

    Parameters
    ----------
    n_neighbors : int, default=10
        Different training rows that make a neighbourhood.
    n_components : int, default=1
        Eigenpairs of each covariance to keep; 0 gives the usual Gaussian.
    noise_variance : "scale" or float, default="scale"
        sigma^2. "scale": twice the median, over the candidate rows, of the mean squared
        distance to the neighbours, which reaches as far as the neighbourhoods do. A smaller one
        makes the functions thinner across the data.

    Examples
    --------
    >>> from pursuit.dictionary import OrientedGaussians
    >>> OrientedGaussians(n_neighbors=5)
    OrientedGaussians(n_neighbors=5, n_components=1, noise_variance='scale')
    """

    n_neighbors: int = 10
    n_components: int = 1
    noise_variance: float | str = "scale"


def oriented_gaussians(
    spec: OrientedGaussians,
    X: Any,
    candidates: Array,
    training: Array | None = None,
    weights: Array | None = None,
) -> Dictionary:
    """Oriented Gaussians centred on training rows.

    Parameters
    ----------
    spec : OrientedGaussians
        Their parameters.
    X : ndarray of shape (n_samples, n_features)
        All rows that the caller gave.
    candidates : ndarray of shape (n_atoms,)
        Indices into `X` of the centres.
    training : ndarray of int, optional
        Indices of the rows that may be neighbours, the candidates among them; None: all rows.
    weights : ndarray of shape (n_samples,), optional
        Weights of all rows; rows of weight zero are no neighbours.

    Raises
    ------
    ValueError
        If a parameter is out of range or `X` is sparse.
    """
    check_integer("n_neighbors", spec.n_neighbors)
    check_integer("n_components", spec.n_components, 0)
    check_coordinates(X, "dictionary: OrientedGaussians", "need")
    if sparse.issparse(X):
        raise ValueError("dictionary: OrientedGaussians need a dense X, got a sparse matrix")
    weights = np.ones(X.shape[0]) if weights is None else weights
    training = np.arange(X.shape[0]) if training is None else training
    training = training[weights[training] > 0]
    where = np.searchsorted(training, candidates)
    covariances, near = local_covariances(
        X[training], where, spec.n_neighbors, spec.n_components, weights[training]
    )
    noise = _noise_variance(spec.noise_variance, near, weights[candidates])
    centres = X[candidates].astype(np.float64)
    return Dictionary(
        OrientedAtoms(centres, covariances.axes, covariances.variances, noise), candidates
    )


def _noise_variance(given: float | str, near: Neighborhoods, weights: Array) -> float:
    """Return sigma^2: the number given, or what "scale" says for centres of these weights."""
    if not isinstance(given, str):
        check_real("noise_variance", given, above=True)
        return float(given)
    check_choice("noise_variance", given, ("scale",))
    if not near.neighbors.size:
        return 1.0
    spread = np.average(near.squared_distances, axis=1, weights=near.weights)
    return 2.0 * weighted_median(spread, weights) or 1.0


def user_functions(functions: Mapping[str, Any], argument: str = "dictionary") -> Dictionary:
    """Functions that the user wrote, by name; `argument` is what the user calls the mapping.

    Raises
    ------
    ValueError
        If there is none, a name is no text or a value cannot be called.
    """
    if not functions:
        raise ValueError(f"{argument}: a mapping of functions must not be empty")
    for name, function in functions.items():
        if not isinstance(name, str):
            raise ValueError(f"{argument}: the name of a function must be text, got {name!r}")
        if not callable(function):
            raise ValueError(f"{argument}: {name!r} must be a function, got {function!r}")
    return Dictionary(FunctionAtoms(dict(functions)), None)


def resolve_dictionary(
    spec: Any,
    kernel: Kernel | Mapping[int, Kernel],
    X: Any,
    candidates: Array,
    *,
    codes: Array | None = None,
    training: Array | None = None,
    weights: Array | None = None,
) -> Dictionary:
    """Turn the ``dictionary`` argument of an estimator into candidate atoms.

    Parameters
    ----------
    spec : object
        One row of the table at the top of this module, or a list or tuple of them.
    kernel : Kernel or mapping of int to Kernel
        The estimator's kernel, or one for each class (then `codes` is needed).
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        All rows that the caller gave.
    candidates : ndarray of int
        Indices of the candidate rows.
    codes : ndarray of int of shape (n_samples,), optional
        Class of each row.
    training : ndarray of int, optional
        Increasing indices of the training rows; None: all.
    weights : ndarray of shape (n_samples,), optional
        Weights of all rows.

    Returns
    -------
    dictionary : Dictionary
        The atoms, in the order of the parts.

    Raises
    ------
    ValueError
        If a part is none of these or does not fit the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.dictionary import resolve_dictionary
    >>> from pursuit.kernels import RBF
    >>> X = np.array([[0.0], [1.0]])
    >>> parts = [None, RBF(9.0), {"slope": lambda X: X[:, 0]}]
    >>> found = resolve_dictionary(parts, RBF(0.5), X, np.array([0, 1]))
    >>> found.atoms.names
    ['RBF(gamma=0.5)', 'RBF(gamma=0.5)', 'RBF(gamma=9.0)', 'RBF(gamma=9.0)', 'slope']
    >>> found.rows
    array([ 0,  1,  0,  1, -1])
    """
    if _is_union(spec):
        whole = partial(resolve_dictionary, codes=codes, training=training, weights=weights)
        return _union([whole(part, kernel, X, candidates) for part in spec])
    if isinstance(spec, Mapping):
        return user_functions(spec)
    if isinstance(spec, OrientedGaussians):
        if isinstance(kernel, Precomputed):
            raise ValueError("dictionary: OrientedGaussians need rows, not a precomputed kernel")
        return oriented_gaussians(spec, X, candidates, training, weights)
    if isinstance(spec, Kernel):
        if isinstance(spec, Precomputed) != isinstance(kernel, Precomputed):
            raise ValueError(f"dictionary: {spec!r} does not go with kernel={kernel!r}")
        return training_rows(spec, X, candidates)
    if isinstance(kernel, Mapping):
        if spec is not None:
            raise ValueError("dictionary: given centres need one kernel, not one for each class")
        return class_kernels(kernel, X, candidates, codes)
    if spec is None:
        return training_rows(kernel, X, candidates)
    if isinstance(spec, str) or callable(spec) or not hasattr(spec, "__len__"):
        raise ValueError(
            "dictionary must be None, a table of centres, a kernel, OrientedGaussians, a mapping "
            f"of names to functions, or a list of such parts, got {spec!r}"
        )
    return given_centres(kernel, spec, X.shape[1])


def penalised(dictionary: Dictionary, penalty: str, X: Any = None) -> Dictionary:
    """The same candidates under the ridge that an estimator's ``penalty`` names.

    Parameters
    ----------
    dictionary : Dictionary
        The candidates.
    penalty : {"identity", "norm"}
        The squared length of the coefficients, or the squared norm of the function (eq. 13).
    X : {ndarray, CSR matrix} of shape (n_samples, n_features), optional
        All rows that the caller gave; needed where their kernel values are.

    Raises
    ------
    ValueError
        If functions have no norm in common, or the kernel is not positive semidefinite.
    """
    if penalty == "identity":
        return dictionary
    precomputed = isinstance(dictionary.atoms.kernel, Precomputed)
    places = X[dictionary.rows] if precomputed else None
    return replace(dictionary, penalty=norm_penalty(dictionary.atoms, places))


def always_in(dictionary: Dictionary, always: Any, X: Any, names: Any = None) -> Dictionary:
    """The same candidates behind functions that are always in and not penalised (section 4.1).

    Parameters
    ----------
    dictionary : Dictionary
        The candidates.
    always : mapping, or sequence of int, str or mapping
        Functions by name, and columns of the rows by number or name.
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        All rows that the caller gave.
    names : sequence of str, optional
        Names of the columns.

    Returns
    -------
    dictionary : Dictionary
        The first ``penalty.n_free`` atoms are these functions.

    Raises
    ------
    ValueError
        If there is no such column, or the rows are kernel values.
    """
    if isinstance(dictionary.atoms.kernel, Precomputed):
        raise ValueError("always needs rows, not a precomputed kernel")
    entries = [always] if isinstance(always, Mapping | str | int) else list(always)
    if not entries:
        return dictionary
    parts = [
        user_functions(entry, "always")
        if isinstance(entry, Mapping)
        else Dictionary(ColumnAtoms((_column(entry, X.shape[1], names),)), None)
        for entry in entries
    ]
    n_free = sum(map(len, parts))
    found = _union([*parts, dictionary])
    return replace(found, penalty=replace(dictionary.penalty, n_free=n_free))


def _column(entry: Any, n_features: int, names: Any) -> int:
    """Number of the column that a number or a name stands for."""
    if isinstance(entry, str) and names is not None and entry in list(names):
        return list(names).index(entry)
    if isinstance(entry, (int, np.integer)) and not isinstance(entry, bool):
        if -n_features <= entry < n_features:
            return int(entry) % n_features
    raise ValueError(
        f"always: there is no column {entry!r} among {n_features} features"
        + ("" if names is not None or not isinstance(entry, str) else " without names")
    )


def _is_union(spec: Any) -> bool:
    """Tell a list of parts from a list of centres, whose items are rows of numbers."""
    return isinstance(spec, list | tuple) and any(map(_is_part, spec))


def _is_part(item: Any) -> bool:
    """Whether an item of a list can be no row of numbers."""
    if isinstance(item, Kernel | OrientedGaussians | Mapping) or item is None:
        return True
    return len(getattr(item, "shape", ())) == 2 or _is_union(item)


def _union(parts: list[Dictionary]) -> Dictionary:
    """Return all atoms, one part after another."""
    atoms = unite([part.atoms for part in parts])
    if all(part.rows is None for part in parts):
        return Dictionary(atoms, None)
    rows = [np.full(len(p), -1) if p.rows is None else p.rows for p in parts]
    return Dictionary(atoms, np.concatenate(rows))
