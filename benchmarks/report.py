"""What a benchmark leaves behind: printed as it grows, and written as Markdown with pictures."""

import os
import platform
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.linalg  # noqa: F401  loads its own BLAS, so that machine_facts sees it
from threadpoolctl import threadpool_info

from benchmarks import published


class Report:
    """Tables, notes, pictures and bounds of one benchmark.

    Parameters
    ----------
    text : the docstring of the benchmark; its first line is the title.
    command : what to type to get this report.
    """

    def __init__(self, text, command):
        self.title, _, protocol = text.partition("\n")
        self.parts = []
        self.figures = {}
        self.passed = True
        self.rows = []
        self.made = {"command": command, "commit": published.commit(), "date": str(date.today())}
        self.add(f"# {self.title}\n\n`{command}`, commit {self.made['commit']}, {date.today()}")
        self.add(protocol.strip())
        self.add(machine_facts())

    def add(self, markdown):
        """Add a piece of Markdown and print it."""
        print(markdown, end="\n\n", flush=True)
        self.parts.append(markdown)

    def table(self, header, rows, caption=""):
        """Add a table; the first column is text, the others stand to the right."""
        cells = [[str(cell) for cell in row] for row in [header, *rows]]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
        lines = [_line(row, widths) for row in [cells[0], rule, *cells[1:]]]
        self.add("\n".join([f"**{caption}**\n", *lines] if caption else lines))

    def figure(self, name, figure):
        """Add a matplotlib figure; it is saved beside the report when that is written."""
        self.figures[name] = figure
        self.parts.append(f"![{name}]({name}.png)")

    def published(self, what, paper, ours, *, peers=""):
        """Set a figure of the paper beside ours, in the table of everything published."""
        self.rows.append({"what": what, "paper": _text(paper), "ours": _text(ours), "peers": peers})

    def check(self, what, value, *, at_most=None, at_least=None, paper="", peers=""):
        """Hold a figure against its bound and say PASS or MISS."""
        good = bool(value <= at_most if at_least is None else value >= at_least)
        bound = f"at most {at_most:g}" if at_least is None else f"at least {at_least:g}"
        self.published(what, paper, value, peers=peers)
        self.rows[-1] |= {"bound": bound, "verdict": "PASS" if good else "MISS"}
        self.passed &= good

    def write(self, folder, name):
        """Print the bounds and write the Markdown and the pictures into the folder."""
        bounds = [
            f"- {row['verdict']}  {row['what']}: {row['ours']} ({row['bound']})"
            for row in self.rows
            if "bound" in row
        ]
        if bounds:
            self.add("## Bounds\n\n" + "\n".join(bounds))
        folder.mkdir(parents=True, exist_ok=True)
        for figure_name, figure in self.figures.items():
            figure.savefig(folder / f"{figure_name}.png", dpi=110, bbox_inches="tight")
        (folder / f"{name}.md").write_text("\n\n".join(self.parts) + "\n", encoding="utf-8")
        print(f"written to {folder / name}.md")

    def table_rows(self, name):
        """What this run leaves in the table of everything published."""
        every = dict.fromkeys(published.COLUMNS, "")
        every |= {"benchmark": name, "title": self.title, **self.made}
        return [every | row for row in self.rows]


def _text(value):
    """A number as it stands in the table; words as they are."""
    return value if isinstance(value, str) else f"{value:.4g}"


def _line(row, widths):
    """A line of a table: the first cell to the left, the others to the right."""
    first, *others = zip(row, widths, strict=True)
    cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return f"| {' | '.join(cells)} |"


def machine_facts():
    """One line on the machine and the versions that a figure of speed depends on."""
    packages = ("numpy", "scipy", "scikit-learn", "pursuit")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    blas = ", ".join(
        sorted(
            {
                f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')} "
                f"with {pool['num_threads']} threads"
                for pool in threadpool_info()
                if pool["user_api"] == "blas"
            }
        )
    )
    return (
        f"Machine: {processor()}, {len(os.sched_getaffinity(0))} cores; {platform.system()}; "
        f"Python {platform.python_version()}; {versions}; BLAS: {blas}."
    )


def processor():
    """The processor's name where the system tells it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def log_axis(axis, ticks):
    """Make one axis of a picture logarithmic, with these ticks and plain numbers at them."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_minor_formatter("")


def percent(fraction):
    """An error rate as the papers print it."""
    return f"{100 * np.mean(fraction):.2f}"
