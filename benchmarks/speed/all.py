"""Every question of speed at once: this commit, an earlier one and the usual alternative, in turn.

Each run of a row is a process of its own, which loads its data and then times one thing: first the
alternative where the row has one (LIBSVM by `SVC`, or logistic regression on Nystroem features),
then the earlier commit, then this one, and again. Figures are medians of the rounds; both commits
run this commit's benchmark. "today" is the figure that the row had when its bound was set; the
earlier commit's figure beside it was measured now. Seconds are wall time unless the row says
otherwise; the threads that a side kept busy are its processor seconds over its wall seconds (LIBSVM
has one). The limits of the machine come from the same run, before the rows; the time at the limit
is what the operations of the algorithm take at these rates, one part after another, on two threads.
"""

import itertools
import statistics
import subprocess
import time
from typing import NamedTuple

import numpy as np

from benchmarks import limits as machine
from benchmarks.compare import ROOT, Failed, commit_name, run_row, worktree
from benchmarks.limits import Work

REPORT = "speed"
PARENT = "c712bec"
SPEED = "benchmarks.speed."


class Row(NamedTuple):
    """A line of the table.

    Attributes
    ----------
    question : str
        What is asked.
    program : str
        The function of `benchmarks.speed` that is run, see `benchmarks.compare`.
    today : str
        The figure when the bound was set.
    reach : float
        The bound.
    unit : {"over", "s", "us", "processor s"}
        A ratio to the time of `peer`, wall seconds, microseconds, or processor seconds.
    peer : str or None
        The alternative's program.
    arguments : dict
        Of the program.
    given : bool
        Whether the program gets the values of the alternative, too.
    rounds : int
        How often each side runs.
    work : Work
        What the algorithm has to do.
    agree : float or None
        Bound on the largest difference of the values between the commits, relative to the largest
        value; None where they differ on purpose.
    """

    question: str
    program: str
    today: str
    reach: float
    unit: str = "s"
    peer: str | None = None
    arguments: dict = {}
    given: bool = False
    rounds: int = 3
    work: Work = Work()
    agree: float | None = 1e-8


# Bound on the difference where products are in float32.
SINGLE = 1e-5
# Ten USPS machines of 5045 vectors in all.
USPS = [504.5] * 10
TWOS, TWO_TESTS, PIXELS = 5400, 1032, 784


def paths_work(n_rows, n_atoms, n_features, budgets):
    """Kernel, Gram matrix (symmetric), and new rows of V, which panels of steps form together."""
    kernel = 2.0 * n_rows * n_atoms * n_features
    steps = n_atoms * sum(n * n for n in budgets)
    return Work(
        float32=kernel,
        float64=n_rows * n_atoms**2 + steps,
        exponentials=n_rows * n_atoms,
    )


def direct_work(n_rows, n_atoms, n_features, n_vectors, n_of_gram=500):
    """Kernel, as many rows of the Gram matrix as panels ask for, and new rows of V, in float64."""
    kernel = 2.0 * n_rows * n_atoms * n_features
    panels = 2.0 * n_rows * n_atoms * n_of_gram
    return Work(float64=kernel + panels + n_atoms * n_vectors**2, exponentials=n_rows * n_atoms)


def cross_entropy_work(n_rows, n_vectors, n_classes, n_products=80, n_inverses=2):
    """A path, products of conjugate gradients, and Gram matrices of the preconditioners."""
    path = direct_work(n_rows, n_rows, PIXELS, n_vectors)
    products = 4.0 * n_products * n_rows * n_vectors * n_classes
    inverses = 1.0 * n_inverses * n_classes * n_rows * n_vectors**2
    return path._replace(float64=path.float64 + products + inverses)


def neighbors_work(k, n_queries=10_000, n_rows=50_000, n_features=784, n_classes=10):
    """The search, and the Gram matrices of the neighbours of each class (symmetric)."""
    search = 2.0 * n_queries * n_rows * n_features
    return Work(float32=search + n_queries * n_classes * k * k * n_features)


ROWS = {
    "usps": Row(
        "USPS, ten one-vs-rest paths, all 7291 candidates, over ten SVC",
        "usps:paths_row", "1.87", 1.0, "over", "usps:svm_row",
        given=True, work=paths_work(7291, 7291, 256, USPS),
    ),
    "usps2500": Row(
        "the same, 2500 candidates",
        "usps:paths_row", "0.53", 0.35, "over", "usps:svm_row", {"n_candidates": 2500},
        given=True, work=paths_work(7291, 2500, 256, USPS),
    ),
    "shared": Row(
        "MNIST 7000, shared, 400 vectors, over one ten-class SVC",
        "mnist_cross_entropy:shared_row", "1.4", 0.7, "over", "mnist_cross_entropy:svm_row",
        work=direct_work(7000, 7000, PIXELS, 400),
    ),
    "cross_entropy": Row(
        "cross-entropy, MNIST 7000, 400 vectors, over Nystroem + logistic regression",
        "mnist_cross_entropy:cross_entropy_row", "5", 1.5, "over",
        "mnist_cross_entropy:logistic_row",
        work=cross_entropy_work(7000, 400, 10),
    ),
    "covtype": Row(
        "covtype, 522 000 rows x 2000 candidates, 400 vectors, fit",
        "covtype:fit_row", "35", 18, rounds=2,
        work=paths_work(522_000, 2000, 54, [400]),
    ),
    "cv": Row(
        "KMP CV classes at their defaults, 5500 x 13 rows, fit",
        "small:cross_validation_row", "88", 8, rounds=1, agree=None,
    ),
    "hknn": Row(
        "HKNN, MNIST 50 000 x 10 000, K = 65",
        "local_neighbors:hyperplane_row", "26.5", 18, rounds=2,
        work=neighbors_work(65), agree=SINGLE,
    ),
    "cknn": Row(
        "CKNN, the same, K = 70",
        "local_neighbors:convex_row", "62", 40, rounds=1,
        work=neighbors_work(70), agree=SINGLE,
    ),
    "parzen_fit": Row(
        "manifold Parzen, digit 2, fit",
        "density:fit_row", "4.1", 3,
        work=Work(float64=TWOS * PIXELS * (2.0 * TWOS + 80 * 80 + 2 * 80 * 50)),
    ),
    "parzen_test": Row(
        "manifold Parzen, digit 2, 1032 test rows",
        "density:score_row", "2.1", 1.5,
        work=Work(float64=2.0 * TWOS * TWO_TESTS * (PIXELS + 50 * 80)),
    ),
    "rvm": Row(
        "RVM regression, 1000 rows", "relevance_vector:regression_row", "minutes", 3, rounds=1
    ),
    "predict": Row(
        "predict one row, 100 vectors, 64 features, checked",
        "small:checked_row", "128 to 180", 60, "us",
    ),
    "predictor": Row(
        "the same by model.predictor()", "small:frozen_row", "none", 15, "us",
    ),
    "import": Row("import pursuit", "small:import_row", "1.8", 0.5, "processor s"),
    "version": Row("pursuit --version", "small:version_row", "1.8", 0.2, "processor s"),
}  # fmt: skip
SIDES = ("peer", "parent", "this")


def add_options(parser):
    """Options of this benchmark."""
    parser.add_argument(
        "--rows", default=",".join(ROWS), help="rows to run, with commas (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, help="at most so many, for a trial")
    parser.add_argument("--parent", default=PARENT, help="the earlier commit (%(default)s)")


def run(report, options):
    """All rows, and the tables."""
    start = time.perf_counter()
    names = options.rows.split(",")
    unknown = sorted(set(names) - set(ROWS))
    if unknown:
        raise SystemExit(f"no row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    rows = [ROWS[name] for name in names]
    if options.rounds:
        rows = [row._replace(rounds=min(row.rounds, options.rounds)) for row in rows]
    report.add(
        f"This commit: {commit_name()}; the earlier one: {commit_name(options.parent)}. Each row's "
        "rounds stand in the first table."
    )
    rates = machine.measure()
    machine.report_limits(report, rates)
    with worktree(options.parent) as tree:
        trees = {"peer": ROOT, "parent": tree, "this": ROOT}
        found = {}
        for _, group in itertools.groupby(rows, key=lambda row: row.peer or row.question):
            found |= measured(list(group), trees)
    figures(report, rows, found)
    agreement(report, rows, found)
    at_the_limit(report, rows, found, rates)
    bounds(report, rows, found, rates)
    report.add(f"The whole run took {(time.perf_counter() - start) / 60:.0f} minutes.")


def measured(rows, trees):
    """Results of rows with the same alternative: {row: {side: [Measured, ...] or Failed}}."""
    found = {row.question: {side: [] for side in SIDES} for row in rows}
    for number in range(max(row.rounds for row in rows)):
        peer = None
        for row in rows:
            if number >= row.rounds:
                continue
            if row.peer and peer is None:
                peer = attempt(row.peer, trees["peer"], "peer")
            known = row.given and not isinstance(peer, Failed)
            given = {"given": peer.values} if known else {}
            runs = {"peer": peer} if row.peer else {}
            for side in ("parent", "this"):
                runs[side] = attempt(row.program, trees[side], side, **row.arguments, **given)
            for side, result in runs.items():
                found[row.question][side].append(result)
    return found


def attempt(program, tree, side, **arguments):
    """One run, or why there is none."""
    try:
        result = run_row(SPEED + program, tree, **arguments)
    except (Failed, subprocess.TimeoutExpired) as error:
        print(f"  {program}, {side}: {error}", flush=True)
        return Failed(str(error))
    print(f"  {program}, {side}: {result.wall:.4g} s, {result.scores}", flush=True)
    return result


def complete(results):
    """Whether there are results, and none failed."""
    return bool(results) and not any(isinstance(result, Failed) for result in results)


def figure(row, found, side):
    """The row's figure of a side, in its unit; None where a run failed."""
    results = found[row.question][side]
    if not complete(results):
        return None
    wall = statistics.median(result.wall for result in results)
    if row.unit == "us":
        return 1e6 * wall
    if row.unit == "processor s":
        return statistics.median(result.processor for result in results)
    if row.unit == "over":
        peers = found[row.question]["peer"]
        if not complete(peers):
            return None
        return wall / statistics.median(result.wall for result in peers)
    return wall


def shown(value, text="{:.3g}"):
    """A figure, or that there is none."""
    return "failed" if value is None else text.format(value)


def busy(results):
    """Threads that the side kept busy."""
    if not complete(results):
        return ""
    share = statistics.median(result.processor / result.wall for result in results)
    return f"{share:.1f}"


def figures(report, rows, found):
    """The table of the issue."""
    lines = []
    for row in rows:
        before, now = figure(row, found, "parent"), figure(row, found, "this")
        gain = before / now if before and now else None
        sides = found[row.question]
        lines.append(
            [row.question, {"over": "ratio"}.get(row.unit, row.unit), row.today, row.reach,
             shown(before), shown(now), shown(gain, "{:.2f}"),
             *(busy(sides[side]) for side in SIDES), row.rounds]
        )  # fmt: skip
    header = ["", "unit", "today", "reach", "earlier commit", "this commit", "times faster",
              "threads busy: alternative", "earlier", "this", "rounds"]  # fmt: skip
    report.table(header, lines, "Every row")
    lines = []
    for row in rows:
        sides = found[row.question]
        if row.peer and complete(sides["peer"]):
            walls = [
                f"{statistics.median(result.wall for result in sides[side]):.2f}"
                if complete(sides[side])
                else "failed"
                for side in SIDES
            ]
            lines.append([row.question, *walls])
    if lines:
        header = ["", "alternative, s", "earlier commit, s", "this commit, s"]
        report.table(header, lines, "Seconds behind the ratios")


def difference(row, found):
    """Largest difference of the values of the commits over the largest value, last round."""
    before, now = (found[row.question][side] for side in ("parent", "this"))
    if not complete(before) or not complete(now) or not now[-1].values.size:
        return None
    values = [np.asarray(results[-1].values, dtype=np.float64) for results in (before, now)]
    finite = np.isfinite(values[0]) & np.isfinite(values[1])
    if not np.array_equal(values[0][~finite], values[1][~finite]):
        return np.inf
    scale = max(np.abs(values[0][finite]).max(initial=0.0), np.finfo(float).tiny)
    return np.abs(values[0] - values[1])[finite].max(initial=0.0) / scale


def agreement(report, rows, found):
    """Whether the commits give the same, and what the results are worth."""
    lines = []
    for row in rows:
        scores = []
        for side in SIDES:
            results = found[row.question][side]
            last = results[-1].scores if complete(results) else {}
            scores.append(", ".join(f"{name} {value:.5g}" for name, value in last.items()))
        lines.append([row.question, shown_difference(row, found), *scores])
    header = ["", "largest difference", "alternative", "earlier commit", "this commit"]
    report.table(
        header, lines, "Results: values on test rows, relative to the largest; scores of each side"
    )


def shown_difference(row, found):
    """The difference, or nothing."""
    value = difference(row, found)
    return "" if value is None else f"{value:.1e}"


def at_the_limit(report, rows, found, rates):
    """What the machine's rates allow, beside what was measured."""
    lines = []
    for row in rows:
        parts = row.work.parts(rates)
        results = found[row.question]["this"]
        if not parts or not complete(results):
            continue
        wall = statistics.median(result.wall for result in results)
        floor = sum(parts.values())
        work = row.work
        lines.append(
            [row.question, f"{work.float32 / 1e9:.0f}", f"{work.float64 / 1e9:.0f}",
             f"{work.exponentials / 1e6:.0f}", f"{work.reading / 1e9:.1f}", f"{floor:.2f}",
             f"{wall:.2f}", f"{100 * floor / wall:.0f}"]
        )  # fmt: skip
    if lines:
        header = ["", "float32 Gflop", "float64 Gflop", "million exponentials", "GB read",
                  "at the limit, s", "this commit, s", "share of the limit, %"]  # fmt: skip
        report.table(header, lines, "The limit: what the algorithm needs, two threads")


def bounds(report, rows, found, rates):
    """Each row against its bound; a miss says what bounds it."""
    for row in rows:
        now = figure(row, found, "this")
        report.check(f"{row.question}, {row.unit}", np.inf if now is None else now,
                     at_most=row.reach)  # fmt: skip
        if now is None or now > row.reach:
            report.add(f"Missed: {row.question}: {reason(row, found, rates)}")
        apart = difference(row, found)
        if row.agree is not None and apart is not None:
            report.check(f"{row.question}, difference", apart, at_most=row.agree)


def reason(row, found, rates):
    """What bounds a row that missed."""
    results = found[row.question]["this"]
    if not complete(results):
        return f"{next((str(r) for r in results if isinstance(r, Failed)), 'not run')}."
    parts = row.work.parts(rates)
    if not parts:
        return "no operations that the machine's rates would bound; what is left is Python."
    wall = statistics.median(result.wall for result in results)
    largest = max(parts, key=parts.get)
    text = "; ".join(f"{name} {part:.2f} s" for name, part in parts.items())
    target = row.reach
    if row.unit == "over":
        peers = found[row.question]["peer"]
        target = row.reach * statistics.median(result.wall for result in peers)
    return (
        f"{wall:.2f} s where the bound allows {target:.2f} s; at the machine's rates {text}, "
        f"together {sum(parts.values()):.2f} s, of which most is {largest}."
    )
