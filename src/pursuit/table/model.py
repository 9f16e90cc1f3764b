"""An estimator of raw tables: columns in, predictions out.

A `TableModel` is what the command line makes of a file. It learns what the columns are, turns them
into features (`pursuit.table.preparation`), chooses the kernel's width and C or the number of
vectors by cross-validation (`pursuit.table.model_selection`), and fits. All three parts, the
layout, the preparation and the estimator, are in its model file.

The libraries that tables need are imported when a method runs, so that `import pursuit` does not
need them.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from pursuit import model_file
from pursuit._warnings import warn
from pursuit.base.callbacks import CallbackSupport
from pursuit.base.parameters import constructor, positional
from pursuit.io.tree import decoded_values, encoded_values

if TYPE_CHECKING:
    from pursuit.losses import Loss

__all__ = ["TableModel", "require_extra"]

EXTRA = ("polars", "skrub", "skops")

Self = TypeVar("Self", bound="TableModel")


def require_extra(what: str = "a model of a table") -> None:
    """Raise an ImportError that says how to install what tables need.

    Parameters
    ----------
    what : str, default="a model of a table"
        What needs it.
    """
    absent = [name for name in EXTRA if find_spec(name) is None]
    if absent:
        raise ImportError(f"{what} needs {', '.join(absent)}: pip install 'pursuit[table]'")


def _in_python(text: str) -> str:
    """Return a note or a fault with parameters in place of the options of the command line."""
    option = r"--([a-z][a-z-]*)"
    return re.sub(option, lambda found: _NAMES.get(found[1], found[1].replace("-", "_")), text)


_NAMES = {"na": "missing"}


def _silent(items: Any, label: str) -> Any:
    """Walk through items and show nothing."""
    return items


def _has_probabilities(model: TableModel) -> bool:
    """Tell whether a model has probabilities; before a fit nobody knows."""
    estimator = getattr(model, "estimator_", None)
    return estimator is None or hasattr(estimator, "predict_proba")


@constructor
class TableModel(CallbackSupport, BaseEstimator):
    """A sparse kernel machine for raw tables, as ``pursuit fit`` makes it.

    Numbers are standardised, and a missing one takes the median and sets a feature of its own; a
    text column becomes a 0/1 feature for each of its most frequent cells; a date becomes year,
    month, day, hour, weekday and seconds, standardised. Text that is written as numbers or dates
    in a way of its own is read as such where the whole column agrees. The kernel's gamma and C of
    vectors that move, or the number of vectors that are selected, are chosen by cross-validation
    unless given.

    It needs the ``table`` extra: ``pip install 'pursuit[table]'``.

    Parameters
    ----------
    n_components : int, default=None
        Number of vectors. None: 50 that move, or as many selected ones as cross-validation likes
        best.
    method : {"auto", "moving", "selected"}, default="auto"
        ``"moving"``: so many vectors that move (`SparseKernelClassifier`); ``"selected"``: vectors
        among the rows (`KernelMatchingPursuitClassifierCV`). ``"auto"``: moving, unless `alpha`,
        `n_candidates`, the loss or the kernel asks for selected ones.
    task : {"auto", "classification", "regression"}, default="auto"
        ``"auto"``: classification if the target is text or a few distinct whole numbers.
    kernel : {"rbf", "laplacian", "linear", "poly", "sigmoid", "cosine"}, default="rbf"
        The kernel function.
    gamma : float, default=None
        Width of the kernel. None: by cross-validation.
    C : float, default=None
        Price of the loss of a row, of vectors that move. None: by cross-validation.
    loss : str or Loss, default="squared_error"
        What the fit minimises, by name or as a value of `pursuit.losses`.
    alpha : float, default=None
        Ridge on the coefficients of selected vectors. None: 0, or 0.01 where the loss needs one.
    n_candidates : int, default=None
        Random rows that may become vectors, of selected ones. None: at most 2000.
    text : collection of str, default=()
        Columns to take as text although they look like numbers.
    drop : collection of str, default=()
        Columns to leave out.
    missing : collection of str, default=None
        The words of a table that mean missing, beside the empty cell. None: NA, N/A, NaN, null
        and ?.
    scale : bool, default=True
        Whether to bring features to a common size.
    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes by label; ``"balanced"`` gives each the same total weight.
    random_state : int, default=0
        Seed of all random choices.

    Attributes
    ----------
    estimator_ : estimator
        What was fitted to the features.
    preparation_ : transformer
        From the columns to the features; of scikit-learn and skrub.
    layout_ : Layout
        What the columns are, and the target.
    notes_ : list of str
        What was done that a user may not expect: how columns were read, which were left out. The
        fit warns of what it leaves out.
    feature_names_in_ : ndarray of shape (n_columns,), of str
        The columns of a table that are used.
    classes_ : ndarray of shape (n_classes,)
        The labels, of a classification.

    Notes
    -----
    A frame to predict for needs the columns of the fit in any order; the target may be there.
    Other columns are ignored with a warning, a missing one is an error, and so is a word in a
    column of numbers. Labels come back as they were read: truth values as ``"true"`` and
    ``"false"``, whole numbers as integers, all else as text.

    Arrays and sparse matrices go, too; their columns are numbers without names.

    Examples
    --------
    >>> import polars as pl
    >>> from pursuit import TableModel
    >>> shop = pl.DataFrame({
    ...     "city": ["Bonn", "Ulm"] * 20,
    ...     "age": [str(20 + i) for i in range(40)],
    ...     "buys": ["yes", "no", "no", "no"] * 10,
    ... })
    >>> model = TableModel(5, gamma=0.1, C=100.0).fit(shop, "buys")
    >>> model.predict(shop[:2]).tolist()
    ['yes', 'no']
    """

    n_components: int | None = positional(None)
    method: Literal["auto", "moving", "selected"] = "auto"
    task: Literal["auto", "classification", "regression"] = "auto"
    kernel: str = "rbf"
    gamma: float | None = None
    C: float | None = None
    loss: str | Loss = "squared_error"
    alpha: float | None = None
    n_candidates: int | None = None
    text: Collection[str] = ()
    drop: Collection[str] = ()
    missing: Collection[str] | None = None
    scale: bool = True
    class_weight: Mapping[Any, float] | str | None = None
    random_state: int = 0

    # --- fitting -------------------------------------------------------------------------------

    def fit(self: Self, X: Any, target: Any) -> Self:
        """Learn what the columns are, choose and fit.

        Parameters
        ----------
        X : data frame of pandas or polars, or matrix of shape (n_rows, n_columns)
            The table.
        target : str or array-like of shape (n_rows,)
            The column to predict, or the labels or numbers. Rows without one are left out.

        Returns
        -------
        self : TableModel
            The fitted model.

        Raises
        ------
        ValueError
            If a column, a cell or a parameter is not what it should be; the message names it.
        """
        require_extra("TableModel")
        from pursuit.io.tables import DataError, missing_words
        from pursuit.table.frames import as_data, with_target

        data, name = with_target(as_data(X, missing_words(self.missing)), target)
        try:
            self.fit_rows(*self.learn(data, name))
        except DataError as fault:
            raise DataError(_in_python(str(fault))) from None
        self.notes_[:] = map(_in_python, self.notes_)
        for note in self.notes_:
            if "left out" in note:  # rows without a target, columns that teach nothing
                warn(note)
        return self

    def learn(self, data: Any, target: str) -> tuple[Any, Any]:
        """Learn what the columns are, which `layout_` and `notes_` tell; `fit_rows` is next.

        Parameters
        ----------
        data : Table or Matrix
            The training rows as `pursuit.io.tables` gives them.
        target : str
            The column to predict.

        Returns
        -------
        rows : Table or Matrix
            Those that have a target.
        y : ndarray of shape (n_rows,)
            Their labels or numbers.
        """
        from pursuit.io.tables import missing_words
        from pursuit.table.preparation import labelled, learn_layout

        layout, told = learn_layout(
            data,
            target,
            task=self._task(),
            text=tuple(self.text),
            drop=tuple(self.drop),
            missing=missing_words(self.missing),
            scale=self.scale,
        )
        rows, y, more = labelled(data, layout)
        self.layout_ = layout
        self.notes_: list[str] = told + more
        return rows, y

    def fit_rows(self, data: Any, y: Any, track: Callable[[Any, str], Any] = _silent) -> Any:
        """Choose and fit, after `learn`.

        Parameters
        ----------
        data : Table or Matrix
            Rows that have a target.
        y : ndarray of shape (n_rows,)
            Their labels or numbers.
        track : callable, default=None
            Walks through items and shows under a label how far it is.

        Returns
        -------
        X : {ndarray, CSR matrix} of shape (n_rows, n_features)
            The features.
        """
        from pursuit.table import model_selection

        watching = tuple(getattr(self, "_skl_callbacks", ()))
        settings = replace(self.settings(), callbacks=watching)
        model_selection.check_targets(data, y, self.layout_, self.loss)
        fitted = model_selection.fit(data, y, self.layout_, settings, track)
        self.estimator_, self.preparation_ = fitted.estimator, fitted.preparation
        self.layout_, self.notes_ = fitted.layout, [*self.notes_, *fitted.notes]
        return fitted.X

    def settings(self) -> Any:
        """Return how to fit, once the task is known.

        Returns
        -------
        settings : Settings
            Of `pursuit.table.model_selection`.

        Raises
        ------
        ValueError
            If parameters do not go together.
        """
        from pursuit.table.model_selection import Settings, losses_of, selected_only

        names = losses_of(self.layout_.task)
        if isinstance(self.loss, str) and self.loss not in names:
            raise ValueError(
                f"loss={self.loss!r}: the target {self.layout_.target!r} is for "
                f"{self.layout_.task} (see task), for which there are {', '.join(names)}."
            )
        given = {"alpha": self.alpha, "n_candidates": self.n_candidates}
        selected = selected_only(self.kernel, self.loss, **given)
        method = self._method(selected)
        return Settings(
            self.layout_.task,
            *(self.n_components, self.gamma, self.kernel, self.alpha, self.n_candidates),
            seed=self.random_state,
            loss=self.loss,
            method=method,
            C=self.C,
            class_weight=self.class_weight,
        )

    def _method(self, selected: str | None) -> Literal["moving", "selected"]:
        """Return the method given, or the one that goes with the other parameters."""
        if self.method not in ("auto", "moving", "selected"):
            raise ValueError(f"method must be 'auto', 'moving' or 'selected', got {self.method!r}.")
        if selected and self.method == "moving":
            raise ValueError(f"{selected} goes with method='selected' only.")
        if self.C is not None and (selected or self.method == "selected"):
            raise ValueError("C goes with method='moving' only.")
        if self.method == "auto":
            return "selected" if selected else "moving"
        return self.method

    def _task(self) -> Any:
        """Return the task given, or regression where the loss is for numbers; None: look."""
        from pursuit.table.model_selection import loss_task

        if self.task not in ("auto", "classification", "regression"):
            raise ValueError(
                f"task must be 'auto', 'classification' or 'regression', got {self.task!r}."
            )
        if self.task == "auto":
            return "regression" if loss_task(self.loss) == "regression" else None
        return self.task

    # --- predicting ----------------------------------------------------------------------------

    def features(self, X: Any) -> Any:
        """Return the features of rows, as the estimator wants them.

        Parameters
        ----------
        X : data frame of pandas or polars, or matrix of shape (n_rows, n_columns)
            Rows with the columns of the fit, in any order.

        Returns
        -------
        features : {ndarray, CSR matrix} of shape (n_rows, n_features)
            Numbers of comparable size.

        Raises
        ------
        ValueError
            If a column is missing, or a cell is not what it should be.
        """
        return self._features(self._data(X))

    def notes(self, X: Any) -> list[str]:
        """Return what a user should know about rows to predict for.

        Parameters
        ----------
        X : data frame of pandas or polars, or matrix of shape (n_rows, n_columns)
            The rows.

        Returns
        -------
        notes : list of str
            Columns that are ignored, text that the fit has not seen.
        """
        from pursuit.table.preparation import notes_on

        return notes_on(self._data(X), self.layout_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the target.

        Parameters
        ----------
        X : data frame of pandas or polars, or matrix of shape (n_rows, n_columns)
            Rows with the columns of the fit, in any order.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Labels or numbers.
        """
        predicted: NDArray[Any] = self.estimator_.predict(self._told_features(X))
        return predicted

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of each class.

        Parameters
        ----------
        X : data frame of pandas or polars, or matrix of shape (n_rows, n_columns)
            Rows with the columns of the fit, in any order.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            In the order of `classes_`.
        """
        probabilities: NDArray[np.float64] = self.estimator_.predict_proba(self._told_features(X))
        return probabilities

    def score(self, X: Any, y: Any = None) -> float:
        """Return the share of right labels, or the coefficient of determination of numbers.

        Parameters
        ----------
        X : data frame of pandas or polars, or matrix of shape (n_rows, n_columns)
            Rows with the columns of the fit.
        y : str or array-like of shape (n_rows,), default=None
            The targets; None: the column of X by the name of the fit's. Rows without one are left
            out.

        Returns
        -------
        score : float
            Of at most one.
        """
        features, truth = self.known_rows(X, y)
        measure = accuracy_score if self.layout_.task == "classification" else r2_score
        return float(measure(truth, self.estimator_.predict(features)))

    def known_rows(self, X: Any, y: Any = None) -> tuple[Any, NDArray[Any]]:
        """Return the features and the targets of the rows that have one.

        Parameters
        ----------
        X : data frame of pandas or polars, or matrix of shape (n_rows, n_columns)
            Rows with the columns of the fit.
        y : str or array-like of shape (n_rows,), default=None
            The targets; None: the column of X by the name of the fit's.

        Returns
        -------
        features : {ndarray, CSR matrix} of shape (n_known, n_features)
            As the estimator wants them.
        targets : ndarray of shape (n_known,)
            Labels, written as those of the fit, or numbers.
        """
        from pursuit.table.frames import with_target
        from pursuit.table.preparation import known_labels, labelled

        layout, data = self.layout_, self._data(X)
        if y is not None:
            data, name = with_target(data, y)
            layout = replace(layout, target=name)
        rows, truth, _ = labelled(data, layout)
        truth, _ = known_labels(rows, truth, layout, getattr(self, "classes_", None))
        return self._features(rows), truth

    def _data(self, X: Any) -> Any:
        """Return rows as a table or a matrix of the layout."""
        check_is_fitted(self, "estimator_")
        require_extra("TableModel")
        from pursuit.table.frames import as_data, counted_from

        layout = self.layout_
        return counted_from(layout.first_index, layout.n_features, as_data(X, layout.missing))

    def _features(self, data: Any) -> Any:
        """Return the features of a table or a matrix of the layout."""
        from pursuit.table.preparation import matching

        return self.preparation_.transform(matching(data, self.layout_))

    def _told_features(self, X: Any) -> Any:
        """Return features, and warn of what is ignored."""
        from pursuit.table.preparation import notes_on

        data = self._data(X)
        features = self._features(data)
        for note in notes_on(data, self.layout_):
            warn(note)
        return features

    # --- what is asked of an estimator ---------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""
        classes: NDArray[Any] = self.estimator_.classes_
        return classes

    @property
    def n_components_(self) -> int:
        """The number of vectors."""
        return int(self.estimator_.n_components_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The columns of a table that are used."""
        return np.array([column.name for column in self.layout_.columns], dtype=object)

    @property
    def n_features_in_(self) -> int:
        """The number of columns that are used."""
        return len(self.layout_.columns) or int(self.layout_.n_features)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        task = self.layout_.task if hasattr(self, "layout_") else self.task
        if task == "classification":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif task == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        tags.target_tags.required = True
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    # --- files ---------------------------------------------------------------------------------

    def with_estimator(self: Self, estimator: Any) -> Self:
        """Return this model with another estimator behind the same preparation.

        Parameters
        ----------
        estimator : estimator
            Fitted to the same features; a truncated one, say.

        Returns
        -------
        model : TableModel
            A copy.
        """
        other = copy.copy(self)
        other.estimator_ = estimator
        return other

    def truncate(self: Self, n_components: int) -> Self:
        """Return the model of the first vectors with their optimal coefficients.

        Parameters
        ----------
        n_components : int
            How many vectors.

        Returns
        -------
        model : TableModel
            A copy.

        Raises
        ------
        ValueError
            If there are fewer, or the vectors have no order.
        """
        if not hasattr(self.estimator_, "truncate"):
            raise ValueError(f"{type(self.estimator_).__name__} has no smaller models to cut to.")
        return self.with_estimator(self.estimator_.truncate(n_components))

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the model, its preparation and its layout to one file.

        Parameters
        ----------
        path : str or path-like
            Where to write.
        **options : object
            As of `pursuit.save`.
        """
        model_file.save(self, path, **options)

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        model : TableModel
            The fitted model.

        Raises
        ------
        ModelFileError
            If the file is damaged or foreign, holds an estimator without the way from a table to
            it, or names a type that is not trusted.
        """
        model = model_file.load(path)
        if not isinstance(model, cls):
            raise model_file.ModelFileError(
                f"{path} holds an estimator alone, not the columns of a table; use pursuit.load"
            )
        return model

    def as_stored(self) -> tuple[Any, dict[str, bytes]]:
        """Return what a model file holds.

        Returns
        -------
        estimator : estimator
            The fitted estimator.
        attachments : dict of str to bytes
            What is stored beside it, by name.
        """
        check_is_fitted(self, "estimator_")
        require_extra("TableModel")
        from pursuit.io.skops_archive import to_skops

        attachments = {
            "layout.json": self.layout_.to_json(),
            "preparation.skops": to_skops(self.preparation_),
            "parameters.json": encoded_values("TableModel", self.get_params()),
        }
        return self.estimator_, attachments

    @classmethod
    def from_stored(
        cls: type[Self],
        path: str | os.PathLike[str],
        estimator: Any,
        attachments: dict[str, bytes],
    ) -> Self:
        """Return the model of what `as_stored` gave.

        Parameters
        ----------
        path : str or path-like
            The file, for messages.
        estimator : estimator
            The fitted estimator.
        attachments : dict of str to bytes
            What was beside it.

        Returns
        -------
        model : TableModel
            The fitted model.
        """
        require_extra(f"{path} holds a model of a table, which")
        from pursuit.table.preparation import stored_layout, stored_preparation

        layout = stored_layout(path, attachments)
        stored = attachments.get("parameters.json")
        parameters = decoded_values(stored) if stored else {"task": layout.task}
        return cls(**parameters).filled(estimator, stored_preparation(path, attachments), layout)

    def filled(self: Self, estimator: Any, preparation: Any, layout: Any) -> Self:
        """Return the model, fitted with parts that were fitted elsewhere.

        Parameters
        ----------
        estimator : estimator
            Fitted to the features.
        preparation : transformer
            Fitted to the columns.
        layout : Layout
            What the columns are.

        Returns
        -------
        self : TableModel
            The fitted model.
        """
        self.estimator_, self.preparation_, self.layout_ = estimator, preparation, layout
        self.notes_ = []
        return self
