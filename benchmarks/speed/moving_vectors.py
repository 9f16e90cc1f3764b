"""Vectors that move beside support vector machines: error, vectors and seconds.

All fits on raw features (kin40k, letter and covtype: standardised), `SparseKernelClassifier` and
`SparseKernelRegressor` with their defaults but for what a table names; seeds 0 to 2 where there
are three figures. SVC (LIBSVM, one thread) runs in turn with ours in the same process, once a seed;
ours takes as many threads as OMP_NUM_THREADS says, or one a core. Seconds are those of the clock,
"processor" those of all threads together, which other work on the machine disturbs less: ratios
are of these, and with one thread for both. On held-out rows of the training parts (four seeds) 50,
60, 80 and 120 iterations gave 1.44, 1.43, 1.37 and 1.33 % on USPS, 3.49, 3.44, 3.44 and 3.24 % on
MNIST, 8.31, 7.99, 7.86 and 7.59 % on letter: the default is 60, and letter has 120 here.

1. USPS: gamma = 1/128, C = 10 for SVC; 134, 117 and 24 vectors.
2. MNIST, the first 7000 and 10 000 rows, gamma = 1/(2 6.47^2), C = 10 for SVC; 140 and 179 vectors.
3. kin40k, 8000 training rows, 200 vectors, without and with a learned metric; letter, 8000 rows of
   the training part, 200 vectors, and all 16 000, beside SVC and boosted trees.
4. Covertype, the second class against the others, 522 000 training rows, 400 vectors, a metric
   from three rounds on a part of the rows, 10 iterations on all of them.
5. MNIST, all 60 000 rows, 500 and 50 vectors, gamma by held-out rows; SVC's gamma and C by held-out
   rows of the first 10 000.
"""

import resource
import time
import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pursuit import SparseKernelClassifier, SparseKernelRegressor, datasets

USPS_GAMMA, MNIST_GAMMA = 1 / 128, 1 / (2 * 6.47**2)
LETTER = {"C": 100, "gamma": 1 / 8}
SEEDS = range(3)
HEADER = ["", "vectors", "error %", "s", "processor, s", "iterations"]


def run(report):
    """All five questions."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    usps(report)
    for n_rows, n_vectors, bound in ((7000, 140, 3.9), (10_000, 179, 3.5)):
        mnist_part(report, n_rows, n_vectors, bound)
    tables(report)
    covertype(report)
    mnist(report)


def measured(model, train, test):
    """Error in percent, or R^2; seconds, processor seconds."""
    clock, processor = time.perf_counter(), time.process_time()
    model.fit(*train)
    elapsed = time.perf_counter() - clock, time.process_time() - processor
    score = model.score(*test)
    error = score if isinstance(model, SparseKernelRegressor) else 100 * (1 - score)
    return error, *elapsed


def line(name, n_vectors, figures, n_iter=""):
    """A row of a table from a list of figures of some seeds."""
    errors = ", ".join(f"{figure[0]:.3g}" for figure in figures)
    seconds = [f"{np.median([figure[k] for figure in figures]):.2f}" for k in (1, 2)]
    return [name, n_vectors, errors, *seconds, n_iter]


def beside_svc(report, caption, train, test, gamma, budgets):
    """SVC and ours in turn; the mean error and the ratio of processor seconds of each budget."""
    machine, svc, figures = SVC(gamma=gamma, C=10), [], {n: [] for n in budgets}
    for seed in SEEDS:
        svc.append(measured(machine, train, test))
        for n in budgets:
            model = SparseKernelClassifier(n, gamma=gamma, random_state=seed)
            figures[n].append(measured(model, train, test))
    rows = [line("SVC", len(machine.support_), svc)]
    rows += [line("moved", n, figures[n]) for n in budgets]
    report.table(HEADER[:-1], [row[:-1] for row in rows], caption)
    seconds = np.median([figure[2] for figure in svc])
    return {
        n: (np.mean([f[0] for f in found]), np.median([f[2] for f in found]) / seconds)
        for n, found in figures.items()
    }


def usps(report):
    """Line 1 of the bounds."""
    train, test = datasets.load("usps", "train"), datasets.load("usps", "test")
    found = beside_svc(report, "USPS, 7291 rows", train, test, USPS_GAMMA, (134, 117, 24))
    report.check("USPS, 134 vectors: error, mean of three", found[134][0], at_most=4.8)
    report.check("USPS, 134 vectors: processor seconds over SVC's", found[134][1], at_most=1.0)
    report.check("USPS, 117 vectors: error, mean of three", found[117][0], at_most=4.9)
    report.check("USPS, 24 vectors: error, mean of three (a goal)", found[24][0], at_most=6.0)


def pixels(part):
    """MNIST with pixels from 0 to 1."""
    X, y = datasets.load("mnist", part)
    return X.astype(np.float32) / 255, y


def mnist_part(report, n_rows, n_vectors, bound):
    """Line 2."""
    (X, y), test = pixels("train"), pixels("test")
    train = X[:n_rows], y[:n_rows]
    caption = f"MNIST, {n_rows} rows"
    error, ratio = beside_svc(report, caption, train, test, MNIST_GAMMA, (n_vectors,))[n_vectors]
    report.check(f"{caption}, {n_vectors} vectors: error, mean of three", error, at_most=bound)
    report.check(
        f"{caption}, {n_vectors} vectors: processor seconds over SVC's", ratio, at_most=1.0
    )


def standardised(train, test):
    """Both parts in the units of the first."""
    scaler = StandardScaler().fit(train[0])
    return (scaler.transform(train[0]), train[1]), (scaler.transform(test[0]), test[1])


def tables(report):
    """Line 4, the first two sets."""
    rows = []
    kin40k(rows, report)
    letter(rows, report)
    report.table(["", "vectors", "R^2 or error %", *HEADER[3:]], rows, "8000 training rows")
    letter_whole(report)


def kin40k(rows, report):
    """8000 rows, without and with a metric."""
    X, y = datasets.load("kin40k")
    order = np.random.default_rng(0).permutation(len(X))
    parts = [(X[part], y[part]) for part in (order[:8000], order[8000:])]
    train, test = standardised(*parts)
    for metric in (None, "diagonal", "full"):
        model = SparseKernelRegressor(200, metric=metric, random_state=0)
        figures = measured(model, train, test)
        rows.append(line(f"kin40k, metric={metric}", 200, [figures], model.n_iter_))
    report.check("kin40k, 200 vectors and a metric: R^2", figures[0], at_least=0.975)


def letter_fits(train, test, rows):
    """Ours without and with a metric; the higher accuracy."""
    found = []
    for metric in (None, "full"):
        model = SparseKernelClassifier(200, metric=metric, max_iter=120, random_state=0, **LETTER)
        figures = measured(model, train, test)
        found.append(100 - figures[0])
        name = f"letter, C=100, gamma=1/8, metric={metric}"
        rows.append(line(name, 200, [figures], model.n_iter_))
    return max(found)


def letter(rows, report):
    """8000 rows of the training part."""
    X, y = datasets.load("letter", "train")
    order = np.random.default_rng(0).permutation(len(X))[:8000]
    train, test = standardised((X[order], y[order]), datasets.load("letter", "test"))
    best = letter_fits(train, test, rows)
    report.check("letter, 8000 rows, 200 vectors: accuracy", best, at_least=93)


def letter_whole(report):
    """All 16 000 rows of the training part, beside SVC and boosted trees."""
    train, test = standardised(datasets.load("letter", "train"), datasets.load("letter", "test"))
    rows = []
    letter_fits(train, test, rows)
    machine = SVC(**LETTER)
    svc = measured(machine, train, test)
    rows.append(line("SVC, C=100, gamma=1/8", len(machine.support_), [svc]))
    trees = measured(HistGradientBoostingClassifier(random_state=0), train, test)
    rows.append(line("HistGradientBoostingClassifier", "-", [trees]))
    report.table(HEADER, rows, "letter, all 16 000 training rows")


def covertype(report):
    """Line 4, the last set."""
    X, y = datasets.load("covtype")
    order = np.random.default_rng(0).permutation(len(X))
    cut = 522_000
    y = y == 2
    parts = [(X[rows].astype(np.float32), y[rows]) for rows in (order[:cut], order[cut:])]
    train, test = standardised(*parts)
    options = {"gamma": 4 / 54, "metric": "full", "max_iter": 10, "random_state": 0}
    model = SparseKernelClassifier(400, **options)
    figures = measured(model, train, test)
    report.table(HEADER, [line("moved, metric='full'", 400, [figures], model.n_iter_)], "Covertype")
    report.check("covertype, 400 vectors: accuracy", 100 - figures[0], at_least=86.5)
    report.check("covertype, 400 vectors: seconds", figures[1], at_most=60)


def chosen(candidates, X, y):
    """The settings whose model, fitted to four rows in five, errs least on the fifth ones."""
    held = np.arange(len(X)) % 5 == 0
    scores = [
        make(**options).fit(X[~held], y[~held]).score(X[held], y[held])
        for make, options in candidates
    ]
    return candidates[int(np.argmax(scores))][1]


def mnist(report):
    """Line 3; gamma (and SVC's C, on 10 000 rows) by held-out rows of the training part."""
    train, test = pixels("train"), pixels("test")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gammas, rows, found = (MNIST_GAMMA, 0.02, 0.03), [], {}
    for n in (500, 50):
        grid = [{"n_components": n, "gamma": gamma, "random_state": 0} for gamma in gammas]
        options = chosen([(SparseKernelClassifier, each) for each in grid], *train)
        model = SparseKernelClassifier(**options)
        found[n] = measured(model, train, test)
        name = f"moved, gamma = {options['gamma']:.3g}"
        rows.append(line(name, n, [found[n]], model.n_iter_))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grid = [{"gamma": gamma, "C": C} for gamma in gammas for C in (3, 10, 30)]
    options = chosen([(SVC, each) for each in grid], *(part[:10_000] for part in train))
    machine = SVC(**options, cache_size=1000)
    svc = measured(machine, train, test)
    name = f"SVC, gamma = {options['gamma']:.3g}, C = {options['C']}"
    rows.append(line(name, len(machine.support_), [svc]))
    report.table(HEADER, rows, "MNIST, 60 000 rows")
    report.check("MNIST, 500 vectors: error", found[500][0], at_most=1.9)
    report.check("MNIST, 500 vectors: seconds", found[500][1], at_most=150)
    report.check("MNIST, 50 vectors: error", found[50][0], at_most=3.6)
    report.add(f"Peak memory rose by at most {(peak - before) / 2**20:.2f} GB over all before it.")
