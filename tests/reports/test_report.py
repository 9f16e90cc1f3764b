"""Reports: what they say is what the model does, on one page that asks for nothing else."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    SparseKernelClassifier,
    SparseKernelPCA,
    SparseKernelRegressor,
    TableModel,
    report,
)
from pursuit.reports import timing
from pursuit.reports.parts import Code, Picture, Table, Text

TITLES = ["The model", "Data", "How good it is", "Error and size", "Where it errs",
          "Probabilities", "The vectors", "The features", "What it costs", "Where it ends",
          "How to use it"]  # fmt: skip
IRIS = train_test_split(*load_iris(return_X_y=True), random_state=0)
PEOPLE = train_test_split(*load_diabetes(return_X_y=True, as_frame=True), random_state=0)


@pytest.fixture(autouse=True)
def short_timing(monkeypatch):
    monkeypatch.setattr(timing, "TIMING_SECONDS", 0.001)


@pytest.fixture(scope="module")
def irises():
    X, X_test, y, y_test = IRIS
    model = KernelMatchingPursuitClassifier(10).fit(X, y)
    return model, report(model, X_test, y_test, X_train=X, y_train=y, title="Irises")


def parts(made, title, kind):
    """The parts of a kind in one section."""
    section = next(section for section in made.sections if section.title == title)
    return [part for part in section.parts if isinstance(part, kind)]


def cells(made, title, k=0):
    """The rows of a table by their first cell."""
    return {row[0]: row[1:] for row in parts(made, title, Table)[k].rows}


class Page(HTMLParser):
    """Everything that a page would fetch or run, its text, and whether its tags are closed."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.alts, self.scripts, self.open, self.words = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data"):
                self.addresses.append(value)
            if name.startswith("on") or tag in ("script", "iframe", "object"):
                self.scripts.append((tag, name))
            if name == "alt":
                self.alts.append(value)
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_every_section_is_there_and_the_measures_are_those_of_scikit_learn(irises):
    model, made = irises
    _, X_test, _, y_test = IRIS
    assert [section.title for section in made.sections] == TITLES
    measured = cells(made, "How good it is")
    assert measured["accuracy"][0] == f"{accuracy_score(y_test, model.predict(X_test)):.4g}"
    assert measured["log-loss"][0] == f"{log_loss(y_test, model.predict_proba(X_test)):.4g}"
    assert cells(made, "Data")["rows"] == ("38", "112")
    assert cells(made, "The model")["vectors"] == ("10",)
    code = parts(made, "How to use it", Code)[0].text
    assert "4 features" in code and compile(code, "code", "exec")


def test_the_baseline_is_of_the_training_rows_where_they_are_given(irises):
    model, made = irises
    X, X_test, y, y_test = IRIS
    labels, counts = np.unique(y, return_counts=True)
    share = np.mean(y_test == labels[counts.argmax()])
    header = parts(made, "How good it is", Table)[0].header
    assert header == ("", "the model", "the most frequent class of training rows")
    assert cells(made, "How good it is")["accuracy"][1] == f"{share:.4g}"
    alone = report(model, X_test, y_test)
    assert "of these rows" in parts(alone, "How good it is", Table)[0].header[2]
    assert "not given" in parts(alone, "Data", Text)[0].text


def test_a_regression_beside_boosting_with_names_and_intervals():
    X, X_test, y, y_test = PEOPLE
    model = SparseKernelRegressor(6, max_iter=5, random_state=0).fit(X, y)
    made = report(model, X_test, y_test, X_train=X, y_train=y, boosting=True)
    assert [section.title for section in made.sections] == TITLES
    measured = cells(made, "How good it is")
    boosted = HistGradientBoostingRegressor(random_state=0).fit(X.to_numpy(), y)
    expected = [r2_score(y_test, one.predict(rows)) for one, rows in
                ((model, X_test), (boosted, X_test.to_numpy()))]  # fmt: skip
    assert (measured["R2"][0], measured["R2"][2]) == tuple(f"{value:.4g}" for value in expected)
    errors = mean_absolute_error(y_test, np.full(len(y_test), y.mean()))
    assert measured["mean absolute error"][1] == f"{errors:.4g}"
    low, high = model.predict_interval(X_test, 0.1)
    share = 100 * np.mean((y_test >= low) & (y_test <= high))
    assert f"hold {share:.1f} % of the targets" in parts(made, "Probabilities", Text)[0].text
    assert parts(made, "The vectors", Table)[0].header[2:4] == ("age", "sex")


def test_a_page_fetches_nothing_runs_nothing_and_escapes_what_it_is_given(tmp_path):
    X, X_test, y, y_test = IRIS
    evil = np.array(['<script>alert("a")</script>', "b & c", "d"])
    model = KernelMatchingPursuitClassifier(5).fit(X, evil[y])
    made = report(model, X_test, evil[y_test], title='"><img src=x onerror=alert(1)>')
    made.save(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    page = Page(text)
    assert page.open == [] and page.scripts == []
    assert all(address.startswith(("data:", "#s")) for address in page.addresses)
    links = [address[1:] for address in page.addresses if address.startswith("#")]
    assert links and all(f'id="{link}"' in text for link in links)
    assert all(page.alts) and len(page.alts) == 4
    assert any("<script>alert" in word for word in page.words)
    assert "prefers-color-scheme: dark" in text and "@media print" in text
    assert made._repr_html_().count("<iframe") == 1
    assert made.to_html() == text


def test_a_card_of_markdown_has_its_pictures_beside_it(irises, tmp_path):
    _, made = irises
    made.save(tmp_path / "card.md")
    text = (tmp_path / "card.md").read_text("utf-8")
    places = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert len(places) == 4
    for place in places:
        assert (tmp_path / place).read_bytes().startswith(b"\x89PNG")
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == TITLES
    assert "| accuracy |" in text


def test_a_pipeline_and_images():
    X, X_test, y, y_test = IRIS
    model = make_pipeline(StandardScaler(), SparseKernelClassifier(4, max_iter=3, random_state=0))
    made = report(model.fit(X, y), X_test, y_test, image_shape=(2, 2))
    picture = parts(made, "The vectors", Picture)[0]
    assert "4 vectors" in picture.alt and picture.drawn("svg") == picture.drawn("svg")
    accuracy = f"{accuracy_score(y_test, model.predict(X_test)):.4g}"
    assert cells(made, "How good it is")["accuracy"][0] == accuracy
    assert "training rows given" in parts(made, "Error and size", Text)[0].text


def test_rows_far_from_the_vectors_are_counted():
    X, y = np.linspace(0, 1, 40)[:, None], np.linspace(0, 1, 40) ** 2
    model = KernelMatchingPursuitRegressor(4, gamma=10.0).fit(X, y)
    far = np.vstack([X[::2], X[::4] + 100.0])
    made = report(model, far, np.concatenate([y[::2], y[::4]]))
    assert "below 0.01 on 10 of them" in parts(made, "Where it ends", Text)[0].text
    linear = KernelMatchingPursuitRegressor(1, kernel="linear").fit(X + 1, y)
    made = report(linear, X + 1, y)
    assert "does not fade" in parts(made, "Where it ends", Text)[0].text


def test_what_cannot_be_reported_on():
    X, X_test, y, y_test = IRIS
    with pytest.raises(ValueError, match="a report needs one that predicts"):
        report(SparseKernelPCA(3).fit(X), X)
    model = KernelMatchingPursuitClassifier(5).fit(X, y)
    with pytest.raises(ValueError, match="given together"):
        report(model, X_test, y_test, X_train=X)
    with pytest.raises(ValueError, match="boosting=True needs"):
        report(model, X_test, y_test, boosting=True)
    with pytest.raises(ValueError, match="one dimension"):
        report(model, X_test, np.eye(3)[y_test])
    with pytest.raises(ValueError, match="must end in"):
        report(model, X_test, y_test).save("report.pdf")


def test_a_model_of_a_table(monkeypatch):
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"city": rng.choice(["Ulm", "Bonn"], 80), "age": rng.integers(20, 60, 80)})
    table = table.with_columns(
        buys=pl.when((pl.col("city") == "Ulm") & (pl.col("age") > 40)).then(pl.lit("yes"))
        .otherwise(pl.lit("no"))
    )  # fmt: skip
    model = TableModel(5, gamma=0.5, C=10.0).fit(table[:60], "buys")
    made = report(model, table[60:], X_train=table[:60])
    assert cells(made, "Data", 1) == {"city": ("text",), "age": ("number",)}
    assert cells(made, "How good it is")["accuracy"][0] == f"{model.score(table[60:]):.4g}"
    assert cells(made, "The model")["predicts"] == ("buys, one of 2 classes: no, yes",)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--enable-logging=stderr", "--v=0"]  # fmt: skip


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_browser_shows_the_page_without_a_fault(irises, tmp_path):
    """Pictures have a size, nothing is wider than a narrow screen, and the console is silent."""
    _, made = irises
    probe = (
        "<script>addEventListener('load', () => { document.title = JSON.stringify(["
        "[...document.images].map(i => i.naturalWidth), document.documentElement.scrollWidth,"
        "innerWidth]); });</script></body>"
    )
    path = tmp_path / "report.html"
    path.write_text(made.to_html().replace("</body>", probe), encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--window-size=400,800",
         "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    found = re.search(r"<title>\[\[([\d,]+)\],(\d+),(\d+)\]</title>", done.stdout)
    assert found, done.stdout[:2000]
    assert len(found[1].split(",")) == 4 and all(int(width) > 100 for width in found[1].split(","))
    assert int(found[2]) <= int(found[3])


def test_the_name_is_the_function_whatever_was_imported_first():
    import pursuit.reports

    assert pursuit.report is pursuit.reports.report is report
