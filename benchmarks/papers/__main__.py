"""``python -m benchmarks.papers NAME``, ``all`` (what this commit has not run yet) or ``table``."""

import sys

from benchmarks import papers, published
from benchmarks.command import RESULTS, main, names_of, run_each


def keep(name, report, output):
    """Put the rows of a run into the table; write the page where the results are the project's."""
    published.record(output / "table.csv", name, report.table_rows(name))
    if output == RESULTS:
        write_page(output)


def write_page(output):
    """The page of documentation, from the table alone."""
    rows = published.read(output / "table.csv")
    published.PAGE.write_text(published.page(rows, names_of(papers)), encoding="utf-8")
    return 0


def run_all(output):
    """Run what has no rows of this commit; a run that was broken off is gone on with like that."""
    present = published.commit()
    made = {row["benchmark"]: row["commit"] for row in published.read(output / "table.csv")}
    waiting = [name for name in names_of(papers) if made.get(name) != present]
    print(f"{len(waiting)} of {len(names_of(papers))} benchmarks have no rows of commit {present}")
    failed = run_each(papers, waiting, output)
    if failed:
        print("failed: " + ", ".join(failed))
        return 2
    rows = published.read(output / "table.csv")
    missed = [f"{row['benchmark']}: {row['what']}" for row in rows if row["verdict"] == "MISS"]
    print("\n".join([f"{len(missed)} bounds missed", *missed]))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(papers, {"all": run_all, "table": write_page}, keep))
