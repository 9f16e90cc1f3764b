"""Public data sets by name: from a folder of your own, or else from OpenML.

The environment variable ``PURSUIT_DATA`` names a folder with one folder for each set, which holds

* ``data.csv.gz``: a header row, the target in the last column, named ``target``, and an empty cell
  for a missing value;
* or ``train.npz`` and ``test.npz``, arrays ``X`` and ``y``;
* or ``data.npz``, arrays ``X``, ``y``, ``train_splits`` and ``test_splits`` (row numbers from 0,
  one row for each split).

A set that is not there is fetched by scikit-learn's `fetch_openml` if it is in `OPENML`.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml

__all__ = ["available", "load", "splits"]

FOLDER_VARIABLE = "PURSUIT_DATA"

#: How many rows of a ``data.csv.gz`` are its customary training part, the first ones.
TRAINING_ROWS = {
    "monks1": 124,
    "monks2": 169,
    "monks3": 122,
    "adult": 32561,
    "a9a": 32561,
    "ijcnn1": 49990,
    "letter": 16000,
    "shuttle": 43500,
    "covtype": 15120,
}

#: Name here: name and version on OpenML, and how many of its first rows are the training part (0:
#: no parts). Order of the columns, spelling of the labels and missing values are those of OpenML.
OPENML = {
    "mnist": ("mnist_784", 1, 60000),
    "letter": ("letter", 1, 16000),
    "balance_scale": ("balance-scale", 1, 0),
    "boston": ("boston", 1, 0),
    "breast_cancer_wisconsin": ("breast-w", 1, 0),
    "electricity": ("electricity", 1, 0),
    "glass": ("glass", 1, 0),
    "ionosphere": ("ionosphere", 1, 0),
    "pima": ("diabetes", 1, 0),
    "sonar": ("sonar", 1, 0),
    "wdbc": ("wdbc", 1, 0),
}


def load(name: str, part: str | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Load a data set.

    Parameters
    ----------
    name : str
        The name of the set, see `available`.
    part : {"train", "test"} or None, default=None
        One of the two customary parts, or all rows, the training part first.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Numbers as float64, nan where one is missing; pixels in the type they are stored in. A set
        with text has dtype object: str in its columns of text ("" where one is missing), float in
        the others.
    y : ndarray of shape (n_samples,)
        Whole numbers as int64, other numbers as float64, text as str.

    Raises
    ------
    LookupError
        If there is no set of that name; the message says what to set.
    ValueError
        If the set has no such part.

    Examples
    --------
    >>> X, y = load("sonar")  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (208, 60)
    """
    if part not in (None, "train", "test"):
        raise ValueError(f"part must be None, 'train' or 'test', got {part!r}")
    folder = _folder(name)
    if folder is None:
        return _from_openml(name, part)
    if (folder / "train.npz").exists():
        pieces = [
            _arrays(folder / f"{piece}.npz") for piece in ([part] if part else ["train", "test"])
        ]
        return _flat(np.concatenate([X for X, _ in pieces])), np.concatenate([y for _, y in pieces])
    if (folder / "data.npz").exists():
        if part:
            raise ValueError(f"{name} has no parts but many splits: splits({name!r}, i)")
        X, y = _arrays(folder / "data.npz")
        return X.astype(np.float64), y
    X, y = _table(folder / "data.csv.gz")
    return _part(name, X, y, part, TRAINING_ROWS.get(name, 0))


def splits(name: str, i: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row numbers of the training and the test part of one split.

    Parameters
    ----------
    name : str
        A set that comes with splits.
    i : int
        Which of them, from 0.

    Returns
    -------
    train, test : ndarray of int64
        Row numbers of ``load(name)``.

    Examples
    --------
    >>> train, test = splits("ida_banana", 0)  # doctest: +SKIP
    >>> len(train), len(test)  # doctest: +SKIP
    (400, 4900)
    """
    folder = _folder(name)
    if folder is None or not (folder / "data.npz").exists():
        _require_known(name)
        raise ValueError(f"{name} comes without splits")
    with np.load(folder / "data.npz") as arrays:
        train, test = arrays["train_splits"], arrays["test_splits"]
    if not 0 <= i < len(train):
        raise ValueError(f"{name} has the splits 0 to {len(train) - 1}, got {i}")
    return train[i].astype(np.int64), test[i].astype(np.int64)


def available() -> list[str]:
    """Return the names of the sets in the folder ``PURSUIT_DATA`` names, and of those on OpenML."""
    return sorted(set(_local()) | set(OPENML))


def _root() -> Path | None:
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else None


def _local() -> list[str]:
    root = _root()
    if root is None or not root.is_dir():
        return []
    files = ("data.csv.gz", "data.npz", "train.npz")
    return [path.name for path in root.iterdir() if any((path / file).is_file() for file in files)]


def _folder(name: str) -> Path | None:
    root = _root()
    return root / name if root is not None and name in _local() else None


def _require_known(name: str) -> None:
    """Raise an error that says what to set, unless the set can be had."""
    if name in available():
        return
    root = _root()
    if root is None:
        hint = f"set the environment variable {FOLDER_VARIABLE} to a folder that holds it"
    else:
        hint = f"{FOLDER_VARIABLE} is {root}, which holds no folder {name!r} with a data file"
    near = difflib.get_close_matches(name, available(), n=3)
    also = f"; near names: {', '.join(near)}" if near else ""
    raise LookupError(f"no data set {name!r}: {hint}; it is not among those from OpenML{also}")


def _from_openml(name: str, part: str | None) -> tuple[NDArray[Any], NDArray[Any]]:
    _require_known(name)
    title, version, n_train = OPENML[name]
    try:
        X, y = fetch_openml(
            title, version=version, return_X_y=True, as_frame=False, parser="liac-arff"
        )
    except (OSError, ValueError) as error:  # no network, or OpenML's own refusal
        raise LookupError(
            f"data set {name!r}: OpenML cannot be reached ({error}); set the environment variable "
            f"{FOLDER_VARIABLE} to a folder that holds {name!r}"
        ) from error
    return _part(name, np.asarray(X, dtype=np.float64), _labels(y.tolist()), part, n_train)


def _part(
    name: str, X: NDArray[Any], y: NDArray[Any], part: str | None, n_train: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    if part is None:
        return X, y
    if not n_train:
        raise ValueError(f"{name} has no customary training and test part")
    rows = slice(n_train) if part == "train" else slice(n_train, None)
    return X[rows], y[rows]


def _arrays(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    with np.load(path) as arrays:
        return arrays["X"], arrays["y"].astype(np.int64)


def _flat(images: NDArray[Any]) -> NDArray[Any]:
    return images.reshape(len(images), -1)


def _table(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    try:  # every cell a number, by far the fastest
        with gzip.open(path, "rt", encoding="utf-8") as file:
            cells = np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)
        return cells[:, :-1], _whole(cells[:, -1])
    except ValueError:
        return _mixed_table(path)


def _mixed_table(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        *columns, target = zip(*rows, strict=True)
    converted = [_numbers(column) for column in columns]
    if all(column is not None for column in converted):
        return np.array(converted, dtype=np.float64).T, _labels(target)
    X = np.empty((len(target), len(columns)), dtype=object)
    for j, (column, numbers) in enumerate(zip(columns, converted, strict=True)):
        X[:, j] = column if numbers is None else numbers
    return X, _labels(target)


def _numbers(cells: tuple[str, ...]) -> NDArray[np.float64] | None:
    try:
        return np.array([cell or "nan" for cell in cells], dtype=np.float64)
    except ValueError:
        return None


def _labels(cells: Any) -> NDArray[Any]:
    try:
        return _whole(np.array(cells, dtype=np.float64))
    except ValueError:
        return np.array(cells, dtype=str)


def _whole(values: NDArray[np.float64]) -> NDArray[Any]:
    return values.astype(np.int64) if (values == np.floor(values)).all() else values
