"""The table of everything published: a figure of a paper, ours beside it, and whether a bound held.

Each benchmark of `benchmarks.papers` leaves its rows in one file, `results/table.csv`, in place of
those that it left before; `docs/the_table.md` is written from that file and from nothing else.
"""

import csv
import subprocess
from pathlib import Path

COLUMNS = ("benchmark", "title", "what", "paper", "ours", "peers", "bound", "verdict", "command",
           "commit", "date")  # fmt: skip
ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "benchmarks" / "results" / "table.csv"
PAGE = ROOT / "docs" / "the_table.md"
HEAD = """# The table

Every table and figure of the five papers: the paper's figure, ours, what else was measured beside
it, and whether a bound held that was set before the run. A row without a bound only stands beside
the paper's. The full report of each program, with its protocol and its pictures, lies in
`benchmarks/results/`. This page is written by the programs themselves (`python -m benchmarks.papers
all`), none of it by hand.
"""


def commit():
    """The last commit that changed library or programs; a plus where files differ from it.

    The commit of a result itself is none of these, so that results stay those of the code.
    """
    code = ("--", "src", "benchmarks/*.py")
    try:
        name = _git("log", "-1", "--format=%h", "--abbrev=9", *code).strip()
        return name + "+" * bool(_git("status", "--porcelain", *code))
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments):
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


def read(path=TABLE):
    """Rows of the table, dictionaries."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def record(path, name, rows):
    """Put the rows of one benchmark in place of those it left before."""
    rows = [row for row in read(path) if row["benchmark"] != name] + rows
    rows.sort(key=lambda row: row["benchmark"])  # stable: rows of one benchmark keep their order
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def page(rows, names):
    """The page of documentation: a section a benchmark, first what missed its bound."""
    counts = {
        verdict: sum(row["verdict"] == verdict for row in rows) for verdict in ("PASS", "MISS")
    }
    parts = [HEAD, f"Of {sum(counts.values())} bounds {counts['PASS']} held and {counts['MISS']} "
             "did not.\n"]  # fmt: skip
    missed = [row for row in rows if row["verdict"] == "MISS"]
    if missed:
        parts += ["## Misses\n", _table(missed, ("title", "what", "paper", "ours", "bound"))]
    for name in sorted({row["benchmark"] for row in rows}):
        parts.append(_section([row for row in rows if row["benchmark"] == name]))
    absent = sorted(set(names) - {row["benchmark"] for row in rows})
    if absent:
        parts.append(
            "## Not in the table yet\n\nPrograms whose rows wait for their next run; their reports "
            "are of an earlier version:\n"
        )
        parts.append("\n".join(f"- `python -m benchmarks.papers {name}`" for name in absent) + "\n")
    return "\n".join(parts)


def _section(rows):
    first = rows[0]
    columns = [c for c in ("what", "paper", "ours", "peers", "bound", "verdict")
               if any(row[c] for row in rows)]  # fmt: skip
    return (
        f"## {first['title'].rstrip('.')}\n\n`{first['command']}`, commit {first['commit']}, "
        f"{first['date']}\n\n{_table(rows, columns)}"
    )


def _table(rows, columns):
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    lines += [f"| {' | '.join(row[c].replace('|', '/') for c in columns)} |" for row in rows]
    return "\n".join(lines) + "\n"
