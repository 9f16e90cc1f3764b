"""How far a command is: lines where there is no terminal, a bar where there is one; and --time."""

import io
import threading
from functools import partial
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from rich.progress import Progress
from sklearn.datasets import load_iris

import pursuit
from pursuit.cli import main, progress

X, y = load_iris(return_X_y=True)


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass where the test says so."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def test_a_line_says_what_is_done_how_far_and_for_how_long(clock):
    lines, said = progress.Lines(), []
    for _ in lines("abc", "choosing gamma"):
        clock.seconds += 10.0
        said.append(lines.line())
    for _ in lines([0], "fitting 150 rows"):
        lines.step(3, None)
        said.append(lines.line())
        lines.step(7, 20)
        clock.seconds += 12.4
        said.append(lines.line())
    assert said == [
        "choosing gamma, 1 of 3, 10 s",
        "choosing gamma, 2 of 3, 20 s",
        "choosing gamma, 3 of 3, 30 s",
        "fitting 150 rows, step 3, 0 s",
        "fitting 150 rows, step 7 of 20, 12 s",
    ]


def test_lines_come_from_time_to_time_while_there_is_a_task(capsys):
    lines = progress.Lines(every=0.005)
    printed = threading.Event()
    line = lines.line

    def told():
        printed.set()
        return line()

    lines.line = told
    with lines.shown():
        for _ in lines([0], "waiting"):
            assert printed.wait(30)
    assert capsys.readouterr().err.startswith("progress: waiting, ")
    with lines.shown():
        pass
    assert lines.task == ""


def test_the_bar_moves_with_the_steps_of_a_fit():
    screen = Console(file=io.StringIO(), force_terminal=True)
    with Progress(console=screen) as shown:
        bar = progress.Bar(shown)
        for _ in bar([0], "fitting"):
            bar.step(5, None)
            bar.step(5, 20)
            (task,) = shown.tasks
            assert (task.completed, task.total) == (0.25, 1)
        assert shown.tasks[0].finished


def test_the_steps_of_a_fit_are_told():
    seen = []
    steps = progress.Steps(lambda n, most: seen.append((n, most)))
    pursuit.KernelMatchingPursuitClassifier(3).set_callbacks(steps).fit(X, y)
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("text", ["", "s", "-3s", "0", "ten", "5d", "1e400", "nan"])
def test_what_is_no_time_is_named(text):
    with pytest.raises(ValueError, match="a time is a number above 0"):
        progress.seconds_of(text)


def test_the_time_of_a_fit_is_limited(tmp_path, capsys, monkeypatch):
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    ticks = count()
    ticking = partial(pursuit.TimeBudget, clock=lambda: float(next(ticks)))
    monkeypatch.setattr("pursuit.callbacks.TimeBudget", ticking)
    given = [str(tmp_path / "iris.npz"), "--output", str(tmp_path / "m.pursuit")]
    given += ["--method", "selected", "-n", "20", "--gamma", "0.1"]
    assert main(["fit", *given, "--time", "3s"]) == 0
    model = pursuit.load(tmp_path / "m.pursuit")
    assert model.n_components_ == 3
    said = capsys.readouterr().err
    assert f"note: the fit was ended by --time 3s, at {model.n_components_} vectors" in said
    assert not hasattr(model, "_skl_callbacks")


def test_a_wrong_time_is_one_line(tmp_path, capsys):
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    given = [str(tmp_path / "iris.npz"), "--output", str(tmp_path / "m.pursuit")]
    assert main(["fit", *given, "--time", "soon"]) != 0
    assert capsys.readouterr().err.startswith("--time: a time is a number above 0")


def test_a_file_read_in_blocks_has_no_time(tmp_path, capsys):
    given = ["big.parquet", "--output", str(tmp_path / "m.pursuit"), "--stream", "--time", "3s"]
    assert main(["fit", *given]) != 0
    assert "--time does not go with --stream" in capsys.readouterr().err
