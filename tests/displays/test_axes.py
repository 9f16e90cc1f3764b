"""Axes, lines, ticks and grids of the pictures."""

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pursuit.displays import _axes as drawing

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402 the back end is chosen first

LOOKS = {"a": ("A", "#0072B2", "-"), "b": ("B", "#D55E00", "--")}


@pytest.fixture
def ax():
    yield plt.subplots()[1]
    plt.close("all")


def test_axes_are_the_given_ones_or_new(ax):
    assert drawing.axes_of(ax) == (ax, ax.figure)
    other, figure = drawing.axes_of(None)
    assert other is not ax
    assert figure is other.figure


def test_lines_over_the_steps_with_their_looks(ax):
    lines = drawing.draw_paths(ax, {"b": np.array([3.0, 1.0])}, LOOKS, {"linewidth": 4})
    assert list(lines) == ["b"]
    assert_array_equal(lines["b"].get_xydata(), [[1, 3], [2, 1]])
    assert (lines["b"].get_label(), lines["b"].get_linestyle()) == ("B", "--")
    assert (lines["b"].get_color(), lines["b"].get_linewidth()) == ("#D55E00", 4)
    assert drawing.draw_paths(ax, {"a": np.ones(2)}, LOOKS, {"label": "x"})["a"].get_label() == "x"


def test_a_line_is_broken_where_it_is_infinite(ax):
    line = drawing.draw_paths(ax, {"a": np.array([np.inf, 2.0, 1.0])}, LOOKS, {})["a"]
    assert_array_equal(line.get_ydata(), [np.nan, 2, 1])


def test_a_mark_meets_the_lines_that_are_long_enough(ax):
    paths = {"a": np.array([3.0, 2.0, 1.0]), "b": np.array([5.0])}
    mark = drawing.mark_step(ax, 2, drawing.draw_paths(ax, paths, LOOKS, {}), "Here")
    assert (mark.get_xdata()[0], mark.get_label()) == (2, "Here")
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [(*dot.get_xydata()[0], dot.get_color()) for dot in dots] == [(2, 2, "#0072B2")]


@pytest.mark.parametrize(
    ("path", "log", "scale"),
    [
        ([2.0, 1.0], "auto", "log"),
        ([np.inf, 1.0], "auto", "log"),
        ([2.0, 0.0], "auto", "linear"),
        ([2.0, 1.0], False, "linear"),
        ([2.0, 0.0], True, "log"),
    ],
)
def test_scale_and_texts(ax, path, log, scale):
    lines = drawing.draw_paths(ax, {"a": np.array(path)}, LOOKS, {})
    drawing.finish_paths(ax, lines, log, xlabel="x", title="t")
    assert (ax.get_yscale(), ax.get_xlabel(), ax.get_title()) == (scale, "x", "t")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["A"]


def test_values_are_plain_numbers_on_a_logarithmic_axis(ax):
    lines = drawing.draw_paths(ax, {"a": np.array([0.74, 0.3, 0.17])}, LOOKS, {})
    drawing.finish_paths(ax, lines, True)
    ax.figure.canvas.draw()
    shown = [text.get_text() for text in ax.get_yticklabels()]
    assert {"0.2", "0.3", "0.4", "0.5", "0.6", "0.7"} <= set(shown)
    assert not any(text.get_text() for text in ax.get_yticklabels(minor=True))


def test_steps_are_whole_numbers(ax):
    lines = drawing.draw_paths(ax, {"a": np.array([3.0, 2.0, 1.0])}, LOOKS, {})
    drawing.finish_paths(ax, lines, False)
    ticks = ax.get_xticks()
    assert_array_equal(ticks, np.round(ticks))


def test_counts_in_words():
    assert drawing.counted(1) == "1 kernel function"
    assert drawing.counted(0) == "0 kernel functions"
    assert drawing.counted(2, "vector") == "2 vectors"


def test_a_pale_colour_is_nearer_to_white():
    assert_allclose(drawing.pale("#ff0000", 0.3), [1.0, 0.7, 0.7])


def test_a_scale_of_colours_stands_beside_the_axes(ax):
    surface = ax.contourf(np.arange(9.0).reshape(3, 3))
    drawing.colour_scale(ax.figure, surface, ax, "Height")
    assert [other.get_ylabel() for other in ax.figure.axes] == ["", "Height"]


def test_a_grid_reaches_beyond_the_points():
    xx0, xx1 = drawing.grid_over(np.array([[0.0, 5.0], [2.0, 5.0]]), 3, 0.5)
    assert_array_equal(xx0, [[-1, 1, 3]] * 3)
    assert_array_equal(xx1.T, [[4.5, 5, 5.5]] * 3)
