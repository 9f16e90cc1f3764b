"""The commands that need no file of yours: ``pursuit demo`` and ``pursuit example``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pursuit.cli.options import (
    STANDARD,
    InputFormat,
    format_option,
    option,
    require_folder,
    show,
)
from pursuit.cli.progress import tracking
from pursuit.cli.reporting import say

__all__ = ["Demo", "Example"]

LICENCE = "made up by a generator; no customer is real, and nobody has rights in it (CC0 1.0)"


@dataclass
class Demo:
    """Fit the digits that scikit-learn ships and show accuracy against budget."""

    EXAMPLES: ClassVar[tuple[str, ...]] = ("pursuit demo --output-dir pursuit-demo",)

    output_dir: Path = option("Folder to write to.", "--output-dir", default=Path("pursuit-demo"))

    def run(self) -> None:
        """Fit, compare, draw, write."""
        from pursuit.cli import demo

        with tracking() as track:
            rows, lines = demo.run(self.output_dir, track)
        show(demo.HEADER, [row.cells() for row in rows])
        for line in lines:
            print(line)


@dataclass
class Example:
    """Write the table that the examples of the other commands read.

    Its customers are made up by a generator; nobody has rights in it (CC0 1.0).
    """

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "pursuit example > churn.csv",
        "pursuit example --rows 1000 --seed 7 --output new.parquet",
    )

    output: Path = option(
        "File to write (.csv, .tsv, .jsonl, .parquet), - for standard output.",
        "--output",
        "-o",
        default=STANDARD,
    )
    rows: int = option("Number of rows.", default=400, min=1)
    seed: int = option("Seed of the generator.", default=0, min=0)
    output_format: InputFormat = format_option("output")

    def run(self) -> None:
        """Make up, write."""
        from pursuit.cli.streams import write

        require_folder(self.output)
        write(self.output, churn_table(self.rows, self.seed), self.output_format)
        say([LICENCE])


def churn_table(n_rows: int, seed: int) -> dict[str, Any]:
    """Return customers of a telephone company and whether they left, by column.

    A third or so leave: the more they call for help, the higher their fee, the newer they are; not
    where the plan is large. One label in twelve is chance. One city in fifteen is missing.

    Parameters
    ----------
    n_rows : int
        How many.
    seed : int
        Of the generator.

    Examples
    --------
    >>> from pursuit.cli.samples import churn_table
    >>> list(churn_table(3, 0))
    ['since', 'city', 'plan', 'monthly_fee', 'calls_for_help', 'churned']
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    months = rng.integers(0, 96, n_rows)
    plan = rng.choice(["basic", "family", "business"], n_rows, p=[0.5, 0.3, 0.2])
    extra = np.select([plan == "family", plan == "business"], [12.0, 25.0], 0.0)
    fee = np.round(15.0 + extra + rng.gamma(2.0, 4.0, n_rows), 2)
    calls = rng.poisson(np.where(plan == "business", 2.5, 1.2))
    city = rng.choice(["Aachen", "Bremen", "Kiel", "Ulm"], n_rows).astype(object)
    pull = 0.9 * (calls - 1.5) + 0.08 * (fee - extra - 22.0) - 0.03 * (months - 40)
    leaves = pull - 1.5 * (plan == "business") > 0.3
    leaves ^= rng.uniform(size=n_rows) < 1 / 12
    city[rng.uniform(size=n_rows) < 1 / 15] = None
    first = np.datetime64("2017-01")
    return {
        "since": (first + (95 - months)).astype("datetime64[D]").astype(str),
        "city": city,
        "plan": plan,
        "monthly_fee": fee,
        "calls_for_help": calls,
        "churned": np.where(leaves, "yes", "no"),
    }
