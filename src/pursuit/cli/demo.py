"""Accuracy against budget on the digits that scikit-learn ships, beside two other machines.

All rows of kernel matching pursuit come from one fit, cut by `truncate`; vectors that move are
fitted for each budget. Beside them stand an SVM, which decides for itself how many vectors it
keeps, and logistic regression on Nystroem features of equal budgets. Each method's gamma, and its C
if it has one, is the best of the same grid by cross-validation on the training part (where each
budget is a fit of its own, at a middle one); the test part serves for the accuracies alone. Bytes
are those of the compressed model file: pursuit's own, and for the others that of skops, which holds
no pickle either. Everything runs on one core: the matrices are small, and so it is fair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from pursuit.displays import FeatureRelevanceDisplay, PursuitPathDisplay, VectorImageDisplay
from pursuit.io.skops_archive import to_skops
from pursuit.matching_pursuit.estimators import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitClassifierCV,
)
from pursuit.model_file import replacing, save
from pursuit.moving_vectors.estimators import SparseKernelClassifier
from pursuit.reports.timing import microseconds_a_row
from pursuit.table.model_selection import Track

BUDGETS = (10, 25, 50, 100, 200, 400)
# Budgets at which gamma and C are chosen: of random and of moved vectors.
MIDDLE, MIDDLE_MOVED = 100, 25
GAMMAS = (0.005, 0.01, 0.02, 0.04, 0.08)
PENALTIES = (1.0, 10.0, 100.0)
FOLDS = 3
BATCH_ROWS = 5_000
HEADER = ["", "vectors", "accuracy", "bytes", "µs for one row", "rows a second"]


@dataclass(frozen=True)
class Measured:
    """What a fitted machine does on the test part."""

    name: str
    n_vectors: int
    accuracy: float
    n_bytes: int
    one_row: float
    rows_a_second: float

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        return (
            self.name,
            str(self.n_vectors),
            f"{100 * self.accuracy:.2f} %",
            f"{self.n_bytes:,}",
            f"{self.one_row:.0f}",
            f"{self.rows_a_second:,.0f}",
        )


@dataclass(frozen=True)
class Digits:
    """The two parts of the digits, pixels from 0 to 1."""

    X_train: NDArray[np.float64]
    X_test: NDArray[np.float64]
    y_train: NDArray[np.int64]
    y_test: NDArray[np.int64]

    def measure(self, name: str, model: Any, n_vectors: int, n_bytes: int) -> Measured:
        """Return accuracy and speed of a fitted model, each timing the best of several."""
        batch = np.resize(self.X_test, (BATCH_ROWS, self.X_test.shape[1]))
        one_row, a_row = (microseconds_a_row(model.predict, X) for X in (batch[:1], batch))
        accuracy = float(model.score(self.X_test, self.y_test))
        return Measured(name, n_vectors, accuracy, n_bytes, one_row, 1e6 / a_row)


def run(folder: Path, track: Track) -> tuple[list[Measured], list[str]]:
    """Fit, compare, draw and write.

    Parameters
    ----------
    folder : Path
        Where the picture and the model file go; made if it is not there.
    track : callable
        Shows progress.

    Returns
    -------
    rows : list of Measured
        Accuracy against budget, for the table below `HEADER`.
    lines : list of str
        Where the files are, and what the table shows.
    """
    folder.mkdir(parents=True, exist_ok=True)
    X, y = load_digits(return_X_y=True)
    digits = Digits(*train_test_split(X / 16, y, test_size=0.4, stratify=y, random_state=0))
    with threadpool_limits(1):
        model, ours = _matching_pursuit(digits, folder, track)
        machines, moved = _moved_vectors(digits, folder, track)
        svm = _support_vector_machine(digits, track)
        rows = [*moved, *ours, *_nystroem(digits, track), svm]
    lines = [
        *_write(folder, model, digits),
        *_draw_moved(folder, machines),
        _conclusion(moved, svm, f"Each of the {len(moved)} sizes of moved vectors is a fit."),
        _conclusion(ours, svm, f"One fit gave all {len(ours)} sizes of kernel matching pursuit."),
    ]
    return sorted(rows, key=lambda row: row.n_vectors), lines


def _matching_pursuit(
    digits: Digits, folder: Path, track: Track
) -> tuple[KernelMatchingPursuitClassifier, list[Measured]]:
    """Fit once with the largest budget, and cut."""
    for _ in track([0], "kernel matching pursuit"):
        search = KernelMatchingPursuitClassifierCV(max(BUDGETS), gammas=GAMMAS, cv=FOLDS)
        gamma = search.fit(digits.X_train, digits.y_train).gamma_
        model = KernelMatchingPursuitClassifier(max(BUDGETS), gamma=gamma)
        model.fit(digits.X_train, digits.y_train)
    rows = []
    for budget in track(BUDGETS, "cutting it"):
        small = model.truncate(budget)
        rows.append(digits.measure("matching pursuit", small, budget, _file_size(small, folder)))
    return model, rows


def _file_size(model: Any, folder: Path) -> int:
    """Bytes of a model file."""
    with TemporaryDirectory(dir=folder) as place:
        save(model, Path(place) / "model")
        return (Path(place) / "model").stat().st_size


def _moved_vectors(
    digits: Digits, folder: Path, track: Track
) -> tuple[list[SparseKernelClassifier], list[Measured]]:
    """Fit every budget with the gamma and the C that are best at a middle one."""
    machine = SparseKernelClassifier(n_components=MIDDLE_MOVED, random_state=0)
    for _ in track([0], "moved vectors: gamma"):
        machine = _best(machine, {"gamma": GAMMAS, "C": PENALTIES}, digits)
    models, rows = [], []
    for budget in track(BUDGETS, "moved vectors"):
        model = clone(machine).set_params(n_components=budget)
        models.append(model.fit(digits.X_train, digits.y_train))
        rows.append(digits.measure("moved vectors", model, budget, _file_size(model, folder)))
    return models, rows


def _support_vector_machine(digits: Digits, track: Track) -> Measured:
    for _ in track([0], "support vector machine"):
        model = _best(SVC(), {"gamma": GAMMAS, "C": PENALTIES}, digits)
    return digits.measure("SVC", model, len(model.support_), len(to_skops(model)))


def _nystroem(digits: Digits, track: Track) -> list[Measured]:
    """Fit every budget with the gamma and the penalty that are best at a middle one."""
    name = "Nystroem, logistic"
    machine = make_pipeline(
        Nystroem(n_components=MIDDLE, random_state=0), LogisticRegression(max_iter=1000)
    )
    grid = {"nystroem__gamma": GAMMAS, "logisticregression__C": PENALTIES}
    for _ in track([0], f"{name}: gamma"):
        machine = _best(machine, grid, digits)
    rows = []
    for budget in track(BUDGETS, name):
        model = clone(machine).set_params(nystroem__n_components=budget)
        model.fit(digits.X_train, digits.y_train)
        rows.append(digits.measure(name, model, budget, len(to_skops(model))))
    return rows


def _best(machine: Any, grid: dict[str, Any], digits: Digits) -> Any:
    return GridSearchCV(machine, grid, cv=FOLDS).fit(digits.X_train, digits.y_train).best_estimator_


def _write(folder: Path, model: KernelMatchingPursuitClassifier, digits: Digits) -> list[str]:
    """Write the model file and the picture, and say where they are."""
    path, picture = folder / "digits.pursuit", folder / "path.png"
    save(model.truncate(max(BUDGETS)), path)  # the last row of the table
    lines = [
        f"{path}: the largest model, {path.stat().st_size:,} bytes; "
        "save(model, path, staged=True) keeps all smaller ones"
    ]
    drawn = _drawn(
        picture,
        "the losses on the training and the test part",
        lambda: PursuitPathDisplay.from_estimator(
            model, digits.X_test, digits.y_test, name="Digits: what each further vector buys"
        ),
    )
    return [*lines, *(drawn or ["no picture: it needs pip install 'pursuit[plot]'"])]


def _draw_moved(folder: Path, models: list[SparseKernelClassifier]) -> list[str]:
    """Pictures of the smallest model's vectors and of the pixels that the largest looks at."""
    small, large = models[0], models[-1]
    pixels = [f"row {row + 1}, column {column + 1}" for row, column in np.ndindex(8, 8)]
    vectors = f"Digits: {small.n_components_} vectors that moved, by the class they speak for"
    relevances = f"Digits: what the model of {large.n_components_} moved vectors looks at"
    return [
        *_drawn(
            folder / "vectors.png",
            "the smallest model's vectors, which are no rows of the data",
            lambda: VectorImageDisplay.from_estimator(small, (8, 8), name=vectors),
        ),
        *_drawn(
            folder / "relevances.png",
            "the pixels on which the largest model's outputs depend most",
            lambda: FeatureRelevanceDisplay.from_estimator(
                large, feature_names=pixels, max_features=12, name=relevances
            ),
        ),
    ]


def _drawn(picture: Path, what: str, draw: Callable[[], Any]) -> list[str]:
    """Write a picture, and say where it is; nothing where matplotlib is missing."""
    try:
        display = draw()
    except ImportError:
        return []
    with replacing(picture) as stream:
        display.figure_.savefig(stream, format="png", dpi=150)
    return [f"{picture}: {what}"]


def _conclusion(ours: list[Measured], svm: Measured, fits: str) -> str:
    """Return sentences on the smallest budget within half a point of the SVM's accuracy."""
    near = [row for row in ours if row.accuracy >= svm.accuracy - 0.005]
    row = near[0] if near else ours[-1]
    verdict = "it is within half a point of" if near else "it stays below"
    return (
        f"{fits} With {row.n_vectors} vectors {verdict} the SVM, which keeps {svm.n_vectors} "
        f"({100 * row.accuracy:.2f} against {100 * svm.accuracy:.2f} %), in "
        f"{svm.n_bytes / row.n_bytes:.1f} times fewer bytes and with "
        f"{row.rows_a_second / svm.rows_a_second:.0f} times as many rows a second."
    )
