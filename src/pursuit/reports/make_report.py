"""`report`: the sections of a model, and the files that hold them."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Any

from pursuit.model_file import replacing
from pursuit.reports import contents
from pursuit.reports.html import page
from pursuit.reports.markdown import write_card
from pursuit.reports.parts import Section
from pursuit.reports.subject import subject_of

__all__ = ["Report", "report"]


class Report:
    """A report on a fitted model, as `report` makes it.

    Parameters
    ----------
    title : str
        What it is called.
    told : str
        The line below the title.
    sections : list of Section
        What stands there, in no format.

    See Also
    --------
    report : Makes one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import KernelMatchingPursuitClassifier, report
    >>> X, y = load_iris(return_X_y=True)
    >>> page = report(KernelMatchingPursuitClassifier(5).fit(X[::2], y[::2]), X[1::2], y[1::2])
    >>> [section.title for section in page.sections][:3]
    ['The model', 'Data', 'How good it is']
    >>> page.to_html()[:15]
    '<!DOCTYPE html>'
    """

    def __init__(self, title: str, told: str, sections: list[Section]) -> None:
        self.title, self.told, self.sections = title, told, sections

    def __repr__(self) -> str:
        return f"<Report {self.title!r}: {len(self.sections)} sections>"

    def to_html(self) -> str:
        """One HTML page that needs no other file and no network.

        Returns
        -------
        text : str
            The page.
        """
        return page(self.title, self.told, self.sections)

    def _repr_html_(self) -> str:
        """What a notebook shows: the page in a frame of its own."""
        from html import escape

        source = escape(self.to_html(), quote=True)
        return (
            f'<iframe srcdoc="{source}" title="{escape(self.title, quote=True)}" '
            'style="width: 100%; height: 40em; border: 1px solid #ccc"></iframe>'
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report.

        Parameters
        ----------
        path : str or path-like
            ``.html``: one page. ``.md``: a model card of skops (the ``report`` extra), with its
            pictures in a folder of the same name beside it.

        Raises
        ------
        ValueError
            For any other suffix.
        """
        path = Path(path)
        if path.suffix == ".html":
            with replacing(path) as stream:
                stream.write(self.to_html().encode("utf-8"))
        elif path.suffix == ".md":
            write_card(path, self.title, self.told, self.sections)
        else:
            raise ValueError(f"path must end in .html or .md, got {path}.")


def report(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    X_train: Any = None,
    y_train: Any = None,
    title: str | None = None,
    image_shape: tuple[int, int] | None = None,
    boosting: bool = False,
) -> Report:
    """Report on a fitted model: what it is, how good, how sure, how large, and where it ends.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regressor with one output, a `TableModel`, or a Pipeline that ends
        in one.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows that the model was not fitted to, for the measures.
    y : array-like of shape (n_samples,) or str, default=None
        Their labels or numbers. For a `TableModel` the name of a column, or None for that of the
        fit.
    X_train, y_train : array-like, default=None
        The rows of the fit, as X and y. With them the baseline is that of the training rows, and
        smaller models of vectors that move are made and drawn.
    title : str, default=None
        Of the report; None: the class of the model.
    image_shape : tuple of int, default=None
        Height and width in pixels, if the features are images: the vectors are drawn so.
    boosting : bool, default=False
        Whether to fit scikit-learn's histogram gradient boosting to the training rows, to compare.

    Returns
    -------
    report : Report
        ``save("report.html")`` writes one page without a script, ``save("report.md")`` a model
        card. A notebook shows it.

    Raises
    ------
    ValueError
        If the model does not predict, y has not one dimension, or `boosting` is asked for without
        training rows.

    Notes
    -----
    Pictures need matplotlib (the ``report`` extra).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from pursuit import KernelMatchingPursuitClassifier, report
    >>> X, X_test, y, y_test = train_test_split(*load_iris(return_X_y=True), random_state=0)
    >>> model = KernelMatchingPursuitClassifier(10).fit(X, y)
    >>> report(model, X_test, y_test, title="Irises")
    <Report 'Irises': 11 sections>
    """
    subject = subject_of(model, X, y, X_train, y_train)
    name = type(subject.estimator).__name__
    told = f"{name}, measured on {len(subject.measured.y):,} rows, {date.today()}"
    return Report(title or name, told, contents.sections(subject, image_shape, boosting))
