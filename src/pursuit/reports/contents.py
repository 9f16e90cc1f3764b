"""The sections of a report, in their order.

==================  ==============================================================================
section             what it answers
==================  ==============================================================================
The model           what predicts, from what, with which kernel
Data                which rows were measured (and trained on), what their targets are
How good            measures beside a baseline, and gradient boosting where it is asked for
Error and size      what each further vector buys
Where it errs       what was taken for what; residuals
Probabilities       how often a prediction of 90 % is right; how many intervals hold the target
The vectors         what the model keeps of the rows
The features        what each feature counts for
Cost                bytes and microseconds
Limits              what happens far from the vectors
Use                 how to load it, and the versions that made this report
==================  ==============================================================================

A section that a model has nothing for is left out.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from pursuit import model_file
from pursuit.reports import pictures
from pursuit.reports.measures import MEASURES, Answers, confusion, names_for
from pursuit.reports.parts import Code, Part, Section, Table, Text, brief
from pursuit.reports.subject import Rows, Subject, dense
from pursuit.reports.timing import microseconds_a_row

__all__ = ["sections"]

# So many vectors, features of one and pairs of classes stand in a table.
MOST_VECTORS, MOST_FEATURES, MOST_PAIRS = 12, 8, 10
# So many rows are timed, and asked for slopes.
MOST_ROWS = 2000
# Below this kernel value no vector speaks for a row.
FAR = 0.01
COVERAGE = 0.9


def sections(
    subject: Subject, image_shape: tuple[int, int] | None = None, boosting: bool = False
) -> list[Section]:
    """Return the sections that there is something to say in.

    Parameters
    ----------
    subject : Subject
        The model and the rows.
    image_shape : tuple of int, default=None
        Height and width of the vectors, if they are images.
    boosting : bool, default=False
        Whether to fit gradient boosting to the training rows for comparison.
    """
    makers: dict[str, Callable[[], Iterator[Part]]] = {
        "The model": lambda: _model(subject),
        "Data": lambda: _data(subject),
        "How good it is": lambda: _measures(subject, boosting),
        "Error and size": lambda: _sizes(subject),
        "Where it errs": lambda: _errors(subject),
        "Probabilities": lambda: _certainty(subject),
        "The vectors": lambda: _vectors(subject, image_shape),
        "The features": lambda: _features(subject),
        "What it costs": lambda: _costs(subject),
        "Where it ends": lambda: _limits(subject),
        "How to use it": lambda: _use(subject),
    }
    found = [Section(title, tuple(make())) for title, make in makers.items()]
    return [section for section in found if section.parts]


def number(value: float) -> str:
    """A number with four digits."""
    return f"{value:.4g}"


# --- what it is ------------------------------------------------------------------------------


def _model(subject: Subject) -> Iterator[Part]:
    estimator = subject.estimator
    rows = [("class", type(estimator).__name__), ("predicts", _target(subject))]
    if hasattr(estimator, "n_components_"):
        rows.append(("vectors", f"{estimator.n_components_:,}"))
    rows.append(("features", f"{estimator.n_features_in_:,}"))
    for name in ("kernel_", "loss_"):
        if getattr(estimator, name, None) is not None:
            rows.append((name.rstrip("_"), brief(getattr(estimator, name))))
    if getattr(estimator, "stop_reason_", None):
        rows.append(("the fit ended by", str(estimator.stop_reason_)))
    yield Table(("", ""), tuple(rows))
    yield Table(("parameter", "value"), tuple(_parameters(subject.estimator)))


def _parameters(estimator: Any) -> Iterator[tuple[str, str]]:
    """Parameters that are not the defaults."""
    defaults = type(estimator)().get_params(deep=False)
    for name, value in estimator.get_params(deep=False).items():
        text = " ".join(repr(value).split())
        if text != " ".join(repr(defaults.get(name)).split()):
            yield name, text if len(text) <= 60 else text[:57] + "..."


def _target(subject: Subject) -> str:
    """What is predicted, in words."""
    layout = getattr(subject.model, "layout_", None)
    what = layout.target if layout is not None else "the target"
    if subject.task == "regression":
        return f"{what}, a number"
    labels = [str(label) for label in subject.estimator.classes_]
    shown = ", ".join(labels[:6]) + (", ..." if len(labels) > 6 else "")
    return f"{what}, one of {len(labels)} classes: {shown}"


def _data(subject: Subject) -> Iterator[Part]:
    parts = {"measured": subject.measured} | ({"training": subject.train} if subject.train else {})
    rows = [("rows", *(f"{len(part.y):,}" for part in parts.values()))]
    rows += _shares(parts) if subject.task == "classification" else _quartiles(parts)
    yield Table(("", *parts), tuple(rows))
    if subject.train is None:
        yield Text("The training rows were not given. The measures are on the rows given alone.")
    columns = getattr(getattr(subject.model, "layout_", None), "columns", ())
    if columns:
        yield Table(("column", "taken as"), tuple((c.name, c.kind) for c in columns))


def _shares(parts: dict[str, Rows]) -> list[tuple[str, ...]]:
    """The share of each class."""
    labels = np.unique(np.concatenate([part.y for part in parts.values()]))
    return [
        (f"class {label}", *(f"{100 * np.mean(part.y == label):.1f} %" for part in parts.values()))
        for label in labels
    ]


def _quartiles(parts: dict[str, Rows]) -> list[tuple[str, ...]]:
    """Where the targets lie."""
    names = ("least", "first quartile", "median", "third quartile", "largest")
    found = [np.quantile(part.y, (0, 0.25, 0.5, 0.75, 1)) for part in parts.values()]
    return [(name, *(number(values[k]) for values in found)) for k, name in enumerate(names)]


# --- how good it is --------------------------------------------------------------------------


def _measures(subject: Subject, boosting: bool) -> Iterator[Part]:
    constant, told = _constant(subject)
    columns = {"the model": subject.answers, constant: told}
    if boosting:
        if subject.train is None:
            raise ValueError("boosting=True needs X_train and y_train.")
        columns["gradient boosting"] = _boosted(subject)
    rows = []
    for name in names_for(subject.task):
        try:
            values = [MEASURES[name].compute(answers) for answers in columns.values()]
        except ValueError:  # of classes that are not all among the rows
            continue
        rows.append((MEASURES[name].title, *map(number, values)))
    yield Table(("", *columns), tuple(rows))
    if boosting:
        yield Text(
            "Gradient boosting is scikit-learn's histogram kind with its default parameters, "
            "fitted to the training rows."
        )


def _constant(subject: Subject) -> tuple[str, Answers]:
    """The best constant: of the training rows, where they are given."""
    X, y = subject.train or subject.measured
    rows = "training rows" if subject.train else "these rows"
    if subject.task == "classification":
        name, dummy = f"the most frequent class of {rows}", DummyClassifier(strategy="prior")
    else:
        name, dummy = f"the mean of {rows}", DummyRegressor()
    return name, Answers.of(dummy.fit(np.zeros((len(y), 1)), y), *_blank(subject.measured))


def _blank(rows: Rows) -> Rows:
    """The rows without what they say."""
    return Rows(np.zeros((len(rows.y), 1)), rows.y)


def _boosted(subject: Subject) -> Answers:
    kinds = {
        "classification": HistGradientBoostingClassifier,
        "regression": HistGradientBoostingRegressor,
    }
    model = kinds[subject.task](random_state=0)
    assert subject.train is not None
    model.fit(dense(subject.train.X), subject.train.y)
    return Answers.of(model, dense(subject.measured.X), subject.measured.y)


def _sizes(subject: Subject) -> Iterator[Part]:
    picture = pictures.error_against_vectors(subject)
    if picture is not None:
        yield picture
    elif hasattr(subject.estimator, "energy_path_"):
        yield Text("With the training rows given, smaller models are made and drawn here.")


def _errors(subject: Subject) -> Iterator[Part]:
    answers = subject.answers
    if subject.task == "regression":
        yield pictures.residuals(answers)
        return
    labels, counts = confusion(answers)
    if len(labels) <= pictures.MOST_CLASSES:
        yield pictures.confusion_matrix(answers)
    matrix = np.array(counts)
    np.fill_diagonal(matrix, 0)
    order = np.argsort(-matrix, axis=None, kind="stable")[:MOST_PAIRS]
    pairs = [np.unravel_index(k, matrix.shape) for k in order if matrix.flat[k]]
    if pairs:
        header = ("is", "taken for", "rows")
        yield Table(
            header, tuple((str(labels[i]), str(labels[j]), f"{matrix[i, j]:,}") for i, j in pairs)
        )


def _certainty(subject: Subject) -> Iterator[Part]:
    if subject.task == "classification" and hasattr(subject.estimator, "predict_proba"):
        yield pictures.calibration(subject.answers)
        yield Text("Dots on the diagonal: a prediction of 90 % is right nine times of ten.")
    if getattr(subject.estimator, "error_quantiles_", None) is not None:
        X, y = subject.measured
        low, high = subject.estimator.predict_interval(X, 1 - COVERAGE)
        inside = 100 * np.mean((y >= low) & (y <= high))
        yield Text(
            f"Intervals of {100 * COVERAGE:.0f} % hold {inside:.1f} % of the targets; their mean "
            f"width is {number(float(np.mean(high - low)))}."
        )


# --- what is in it ---------------------------------------------------------------------------


def _vectors(subject: Subject, image_shape: tuple[int, int] | None) -> Iterator[Part]:
    estimator = subject.estimator
    vectors = getattr(estimator, "support_vectors_", None)
    if vectors is None or len(vectors.shape) != 2 or not vectors.shape[0]:
        return
    if image_shape is not None:
        yield pictures.vector_images(estimator, image_shape)
        yield Text(
            "Above each image stands the output to which it counts most, and its coefficient."
            if len(estimator.dual_coef_) > 1
            else "Above each image stands its coefficient."
        )
        return
    sizes = np.abs(np.atleast_2d(estimator.dual_coef_)).max(axis=0)
    order = np.argsort(-sizes, kind="stable")[:MOST_VECTORS]
    rows, names = dense(vectors[order]), subject.feature_names[:MOST_FEATURES]
    header = ("vector", "largest coefficient", *names)
    yield Text(f"The {len(order)} vectors of the largest coefficients, as the kernel sees them.")
    yield Table(
        header,
        tuple(
            (_row_name(estimator, k), number(sizes[k]), *(number(v) for v in row[: len(names)]))
            for k, row in zip(order, rows, strict=True)
        ),
    )
    if len(subject.feature_names) > MOST_FEATURES:
        yield Text(f"The first {MOST_FEATURES} of {len(subject.feature_names)} features are shown.")


def _row_name(estimator: Any, k: int) -> str:
    """The row that a vector was, or its number."""
    support = getattr(estimator, "support_", None)
    return f"row {support[k]}" if support is not None else f"{k}"


def _features(subject: Subject) -> Iterator[Part]:
    if not hasattr(subject.estimator, "feature_relevances"):
        return
    try:
        shares = subject.estimator.feature_relevances(subject.measured.X[:MOST_ROWS])
    except ValueError as reason:  # a kernel without a derivative, functions of the user's own
        yield Text(f"No relevances: {reason}")
        return
    if not shares.sum() > 0:
        yield Text("The function is constant on these rows.")
        return
    yield pictures.relevances(shares, subject.feature_names)
    yield Text(
        "How steeply the function rises along each feature on these rows, times how much the "
        "feature varies. Features that go together share what they count for."
    )


# --- what it costs, and where it ends --------------------------------------------------------


def _costs(subject: Subject) -> Iterator[Part]:
    estimator, X = subject.estimator, subject.measured.X[:MOST_ROWS]
    rows = [
        ("file, float64", f"{_file_bytes(subject.model):,} bytes"),
        ("file, float32", f"{_file_bytes(subject.model, dtype='float32'):,} bytes"),
        ("predict, many rows", f"{microseconds_a_row(estimator.predict, X):.3g} us a row"),
        ("predict, one row", f"{microseconds_a_row(estimator.predict, X[:1]):.3g} us"),
    ]
    if hasattr(estimator, "predictor"):
        frozen = estimator.predictor()
        rows.append(("predictor(), one row", f"{_one_row(frozen, X):.3g} us"))
    yield Table(("", ""), tuple(rows))
    yield Text("On the machine that made this report, from features on; the way to them is extra.")


def _file_bytes(model: Any, **options: Any) -> int:
    """Bytes of a model's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pursuit"
        model_file.save(model, path, **options)
        return path.stat().st_size


def _one_row(frozen: Any, X: Any) -> float:
    """Microseconds of a predictor for one row."""
    return microseconds_a_row(frozen.predict, np.ascontiguousarray(dense(X[:1])))


def _limits(subject: Subject) -> Iterator[Part]:
    estimator, X = subject.estimator, subject.measured.X
    expansion = getattr(estimator, "expansion_", None)
    unknown = ~np.isin(subject.measured.y, getattr(estimator, "classes_", subject.measured.y))
    if unknown.any():
        yield Text(f"{unknown.sum():,} of the rows are of classes that the model does not know.")
    if expansion is None or expansion.kernel is None or not len(expansion.atoms):
        return
    if not np.allclose(expansion.kernel.diagonal(X[:MOST_ROWS]), 1.0):
        yield Text(
            "The kernel does not fade with the distance: far from the training rows the model goes "
            "on as its formula says, and nothing there was checked."
        )
        return
    yield from _far_rows(subject, expansion.atoms.functions(X).max(axis=1))


def _far_rows(subject: Subject, nearest: NDArray[np.float64]) -> Iterator[Part]:
    """How near the rows are to the vectors, and what that does to the error."""
    answers = subject.answers
    wrong = (
        (answers.truth != answers.predicted).astype(float)
        if subject.task == "classification"
        else np.abs(answers.truth - answers.predicted)
    )
    title = "share of errors" if subject.task == "classification" else "mean absolute error"
    edge = np.quantile(nearest, 0.1)
    far = nearest <= edge
    rows = [("tenth that is farthest from the vectors", number(wrong[far].mean()))]
    if not far.all():
        rows.append(("the other rows", number(wrong[~far].mean())))
    yield Table(("rows", title), tuple(rows))
    beyond = int((nearest < FAR).sum())
    yield Text(
        "The kernel's value with the nearest vector, 1 at a vector and 0 far away, has a median "
        f"of {np.median(nearest):.2g} on these rows, and is below {FAR:g} on {beyond:,} of them. "
        "Where no vector is near, the model answers with its intercept, whatever the row says: "
        "such a prediction is no more than a guess at the average."
    )


def _use(subject: Subject) -> Iterator[Part]:
    rows = "a data frame with the columns above" if hasattr(subject.model, "layout_") else (
        f"{subject.measured.X.shape[1]} features a row"
    )  # fmt: skip
    yield Code(
        f'import pursuit\n\nmodel = pursuit.load("model.pursuit")\nmodel.predict(X)  # {rows}'
    )
    packages = ("pursuit", "numpy", "scipy", "scikit-learn")
    versions = [(name, version(name)) for name in packages]
    yield Table(("made with", "version"), (("Python", platform.python_version()), *versions))
