"""What the pictures share: axes, ticks, colours and lines against the number of steps.

Nothing here knows a model. matplotlib is imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pursuit._typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "GREY",
    "INK",
    "axes_of",
    "colour_scale",
    "counted",
    "draw_paths",
    "finish_paths",
    "grid_over",
    "mark_step",
    "pale",
    "pyplot",
]

INK, GREY = "#222222", "#6b6b6b"


def pyplot() -> Any:
    """Import pyplot, or raise an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib, which is not installed: pip install "pursuit[plot]"'
        ) from error
    return plt


def axes_of(ax: Axes | None, size: tuple[float, float] | None = None) -> tuple[Any, Any]:
    """The axes to draw on and their figure; a new figure, of this size in inches, if none."""
    plt = pyplot()
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    return ax, ax.figure


def draw_paths(
    ax: Axes,
    paths: Mapping[str, Array],
    looks: Mapping[str, tuple[str, str, str]],
    line_kw: Mapping[str, Any],
) -> dict[str, Any]:
    """Lines over the steps 1, 2, ...

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    paths : dict of str to ndarray of shape (n_steps,)
        Values by name; where one is infinite the line is broken.
    looks : dict of str to tuple of str
        Label, colour and dashes by name.
    line_kw : mapping
        What else matplotlib's ``plot`` is given.

    Returns
    -------
    lines : dict of str to matplotlib Line2D
        The lines by name.
    """
    lines = {}
    for name, path in paths.items():
        label, colour, dashes = looks[name]
        style = {"label": label, "color": colour, "linestyle": dashes, "linewidth": 1.8, **line_kw}
        shown = np.where(np.isfinite(path), path, np.nan)
        lines[name] = ax.plot(np.arange(1, len(path) + 1), shown, **style)[0]
    return lines


def mark_step(ax: Axes, step: int, lines: Mapping[str, Any], label: str) -> Any:
    """A vertical line at one step, and a dot where it meets each of the lines."""
    for line in lines.values():
        path = line.get_ydata()
        if len(path) >= step:
            ax.plot(step, path[step - 1], "o", color=line.get_color(), markersize=5)
    return ax.axvline(step, label=label, color=INK, linewidth=1.0, linestyle=":", zorder=0)


def finish_paths(ax: Any, lines: Mapping[str, Any], log: bool | str, **texts: str) -> None:
    """The scale of the values ("auto": logarithmic if all are positive), the texts, the legend."""
    if log == "auto":
        log = not any((line.get_ydata() <= 0).any() for line in lines.values())
    if log:
        ax.set_yscale("log")
        _plain_ticks(ax)
    ax.set(**texts)
    ax.margins(x=0.02)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(framealpha=0.8, edgecolor="none", fontsize="small")


def _plain_ticks(ax: Axes) -> None:
    """Write the values as plain numbers, also between powers of ten where there is room."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = ax.get_ylim()
    decades = np.log10(high / low)
    if decades < 3:
        subs = (1.0, 2.0, 5.0) if decades > 1 else (1.0, 1.5, *range(2, 10))
        ax.yaxis.set_major_locator(LogLocator(subs=subs))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter(NullFormatter())


def counted(count: int, what: str = "kernel function") -> str:
    """A number of things in words."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def pale(colour: str, share: float) -> tuple[float, float, float]:
    """A colour mixed with white; `share` is its own part."""
    from matplotlib.colors import to_rgb

    red, green, blue = (share * value + 1.0 - share for value in to_rgb(colour))
    return red, green, blue


def colour_scale(figure: Any, surface: Any, ax: Axes, label: str) -> None:
    """Explain the shades beside the axes, with round numbers."""
    from matplotlib.ticker import MaxNLocator

    figure.colorbar(surface, ax=ax, label=label, ticks=MaxNLocator(7))


def grid_over(points: Array, resolution: int, margin: float) -> tuple[Array, Array]:
    """A grid over the range of the points and a margin around it.

    Parameters
    ----------
    points : ndarray of shape (n_points, 2)
        The points.
    resolution : int
        Number of grid points along each feature.
    margin : float
        How far the grid reaches beyond the points, as a share of their range; of 1 where that
        is zero.

    Returns
    -------
    xx0, xx1 : ndarray of shape (resolution, resolution)
        As `numpy.meshgrid` gives it.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.displays._axes import grid_over
    >>> xx0, xx1 = grid_over(np.array([[0.0, 5.0], [2.0, 5.0]]), 3, 0.5)
    >>> xx0[0], xx1[:, 0]
    (array([-1.,  1.,  3.]), array([4.5, 5. , 5.5]))
    """
    low, high = points.min(axis=0), points.max(axis=0)
    reach = margin * np.where(high > low, high - low, 1.0)
    lines = np.linspace(low - reach, high + reach, resolution)
    xx0, xx1 = np.meshgrid(lines[:, 0], lines[:, 1])
    return xx0, xx1
