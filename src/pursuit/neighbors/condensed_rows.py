"""Smaller reference sets: the condensed nearest neighbour rule for any distance.

P. E. Hart, "The condensed nearest neighbor rule", IEEE Transactions on Information Theory 14
(1968); section 14.2 of P. Vincent, "Modeles a noyaux a structure locale" (2003), which proposes to
prune the prototypes of local methods as those of nearest neighbours and Parzen windows, and expects
that fewer are needed where the local directions are taken into account.

Problem. Of l rows x_i of classes y_i, few are wanted on which a classifier f, fitted, has all
others right. With f_c(x) the decision value of class c (minus the squared distance, of local
classifiers),

    g_i = f_{y_i}(x_i) - max_{c /= y_i} f_c(x_i)                                              (1)

is by how much x_i is right. A row left out must have g_i > m G, where G is the median of the g_i of
all rows left out, 0 if that is negative: m = 0 is Hart's rule, and with m > 0 no row is right by
mere chance. A ratio needs no unit, and asks for more the more is left to gain.

==========  ==============  ==========================================
symbol      name in code    shape
==========  ==============  ==========================================
g_i         ``gains``       (n_left,)
m           ``margin``      number
S           ``kept``        (n_kept,), increasing places of rows
            ``rivals``      (n_left,), the c of the maximum in (1)
==========  ==============  ==========================================

Steps.

1. S has the rows of each class that are nearest to its mean.
2. f is fitted on the rows of S, and (1) computed for the others.
3. No row, or at most a share e, has g_i <= m G: the end.
4. For each pair of classes (y_i, rival) the row of the least g_i of these is added to S; go to 2.

One row for each pair: rows that are wrong in one way often need only one of them to become right,
and all would fill S with neighbours; the most wrong row alone would take as many rounds as rows.

Where we differ. Hart goes through the rows one by one and adds each that is wrong at once, so that
S depends on their order. Here rows are put in lexicographic order first, by which ties are settled,
and equal rows of one class count once: the set is that of any order of the rows. Equal rows of two
classes are never right, and all come into S unless e allows for them.

Cost. A fit on S and a prediction of all other rows for each round, some ten to forty of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import check_classification_targets

from pursuit._arrays import namespace_of, to_numpy
from pursuit._typing import Array
from pursuit._validation import check_integer, check_real
from pursuit.geometry.distances import shifted_centres, squared_distances
from pursuit.geometry.unique_rows import equal_rows, row_order

__all__ = ["condensed_rows"]


def condensed_rows(
    model: Any, X: Any, y: Any, *, n_initial: int = 1, margin: float = 0.3, error: float = 0.0
) -> Array:
    """Few rows on which a classifier has the others right: condensed nearest neighbours.

    Parameters
    ----------
    model : classifier
        Not changed: copies are fitted, on few rows first and then on more. A local classifier, or
        any with ``decision_function`` or ``predict_proba``.
    X : {array-like, CSR matrix} of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Labels.
    n_initial : int, default=1
        How many rows of each class, the nearest to its mean, to start from.
    margin : float, default=0.3
        By how much a row left out must be right, as a share of the median over these rows. 0 is
        Hart's rule; the larger, the more rows are kept. Below 1.
    error : float, default=0.0
        Share of the rows left out that may be wrong, or right by less than `margin`.

    Returns
    -------
    rows : ndarray of int
        Row numbers, increasing.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; the message names it.

    See Also
    --------
    reference_rows : The rows behind the vectors of a trained machine.

    References
    ----------
    P. E. Hart, "The condensed nearest neighbor rule", IEEE Transactions on Information Theory 14,
    1968.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from pursuit import HyperplaneKNeighborsClassifier, condensed_rows
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HyperplaneKNeighborsClassifier(10, alpha=30.0)
    >>> rows = condensed_rows(model, X[:500], y[:500])
    >>> model = model.fit(X[rows], y[rows])
    >>> len(rows) < 150, bool(model.score(X[500:1000], y[500:1000]) > 0.92)
    (True, True)
    """
    check_integer("n_initial", n_initial)
    check_real("margin", margin, below=1.0)
    check_real("error", error, below=1.0)
    X, y, codes, rows = _read(X, y)
    kept = _central(X, codes, n_initial)
    while True:
        left = np.setdiff1d(np.arange(len(codes)), kept)
        if not len(left):
            break
        fitted = clone(model).fit(X[kept], y[kept])
        gains, rivals = _gains(_decision_values(fitted, X[left]), codes[left])
        wrong = np.flatnonzero(gains <= margin * max(0.0, float(np.median(gains))))
        if len(wrong) <= error * len(left):
            break
        worst = wrong[np.argsort(gains[wrong], kind="stable")]
        pairs = np.stack([codes[left][worst], rivals[worst]])
        kept = np.union1d(kept, left[worst[np.unique(pairs, axis=1, return_index=True)[1]]])
    return np.sort(rows[kept])


def _read(X: Any, y: Any) -> tuple[Any, Array, Array, Array]:
    """Different rows of each class in lexicographic order, labels, numbers of classes, and where.

    Of equal rows of one class the first is there.
    """
    X, y = (each if namespace_of(each) is None else to_numpy(each) for each in (X, y))
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has one class only ({classes[0]}); at least 2 are needed")
    copies = np.stack([equal_rows(X)[1], codes])
    first = np.sort(np.unique(copies, axis=1, return_index=True)[1])
    order = first[row_order(X[first])]
    order = order[np.argsort(codes[order], kind="stable")]
    return X[order], y[order], codes[order], order


def _central(X: Any, codes: Array, n_initial: int) -> Array:
    """Step 1: the rows nearest to the mean of their class."""
    places = []
    for code in range(int(codes.max()) + 1):
        own = np.flatnonzero(codes == code)
        mean = np.asarray(X[own].mean(axis=0, dtype=np.float64)).reshape(1, -1)
        distances = squared_distances(X[own], shifted_centres(mean))[:, 0]
        places.append(own[np.argsort(distances, kind="stable")[:n_initial]])
    return np.sort(np.concatenate(places))


def _decision_values(fitted: Any, X: Any) -> Array:
    """One column for each class."""
    if hasattr(fitted, "decision_function"):
        values = np.asarray(fitted.decision_function(X))
        return np.stack([-values, values], axis=1) / 2 if values.ndim == 1 else values
    if hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict_proba(X))
    raise ValueError(
        f"model must have decision_function or predict_proba, {type(fitted).__name__} has neither"
    )


def _gains(values: Array, codes: Array) -> tuple[Array, Array]:
    """Eq. (1), and the class that is the nearest of the others."""
    rows = np.arange(len(codes))
    own = values[rows, codes]
    others = values.copy()
    others[rows, codes] = -np.inf
    rivals = others.argmax(axis=1)
    return own - others[rows, rivals], rivals
