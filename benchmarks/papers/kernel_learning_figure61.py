"""Figure 6.1 of the thesis: the parameters of a global kernel learned with the weights.

Source: P. Vincent, thesis (2003), section 6.2 and figure 6.1: a network with one kernel function a
support vector, trained as a whole, that optimises the weights and the parameters of the kernel at
the same time. The thesis has no figures of it ("difficult to train in reasonable time"); its point,
that the form of the kernel decides and can be learned, is put to the test.
Here the kernel is a Gaussian: of a width that cross-validation chooses (gamma = 1/16, 1/4, 1, 4
times "scale"), of a width that moves with vectors and weights (`learn_gamma=True`, from "scale"),
or of one width a feature (`metric="diagonal"`: rounds of average slopes, then vectors and weights).
All three are `SparseKernelClassifier` with the same number of vectors, 10, 20 or 40.
As in the figure, with vectors that are training rows: kernel matching pursuit (pre-fitting) of a
width chosen in the same way, and on the coordinates of `KernelMetric(metric="diagonal")`.
Sets, chosen before the run: ida_splice (1000 training rows, 2175 test rows; 60 positions of a DNA
sequence as codes 1 to 4, of which biology says that few beside the junction in the middle matter)
and ida_image (1300 and 1010 rows; 18 features of image patches, of unequal use). The first five
splits of each. C (1, 10, 100) and the chosen width are those of the highest accuracy in 3-fold
cross-validation of the training rows, at each number of vectors; test rows only give the errors.
"""

import time

import numpy as np
from matplotlib.figure import Figure
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

from benchmarks.report import log_axis
from pursuit import (
    FeatureRelevanceDisplay,
    KernelMatchingPursuitClassifier,
    KernelMetric,
    SparseKernelClassifier,
    datasets,
)

N_SPLITS, BUDGETS = 5, (10, 20, 40)
PENALTIES = [1.0, 10.0, 100.0]
FACTORS = np.array([1 / 16, 1 / 4, 1.0, 4.0])
# The positions of the sequence around the junction, which lies between the 30th and the 31st.
JUNCTION = slice(25, 35)
# Error with a learned kernel over that with the chosen width, 20 vectors.
DIAGONAL = {"ida_splice": 0.7, "ida_image": 0.8}
WIDTH, SELECTED = 1.1, 0.8


def run(report):
    """Both sets, then the picture."""
    outcomes, relevances = {}, []
    for name in DIAGONAL:
        outcomes[name] = [one_split(name, i, relevances) for i in range(N_SPLITS)]
        tell(report, name, outcomes[name])
    shares = np.mean(relevances, axis=0)
    report.check(
        "ida_splice, 20 vectors: relevance of the 10 positions around the junction",
        shares[JUNCTION].sum(),
        at_least=0.5,
    )
    report.figure("kernel_learning_figure61", draw(outcomes, shares))


def methods(X, n):
    """Searches by name, whose winner is fitted to all training rows."""
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    gammas = list(FACTORS / (X.shape[1] * X.var()))
    moved = SparseKernelClassifier(n, random_state=0)
    metric = KernelMetric(metric="diagonal", n_components=n, random_state=0)
    selected = KernelMatchingPursuitClassifier(n)
    candidates = {
        "moved, chosen width": (moved, {"C": PENALTIES, "gamma": gammas}),
        "moved, learned width": (moved, {"C": PENALTIES, "learn_gamma": [True]}),
        "moved, a width a feature": (moved, {"C": PENALTIES, "metric": ["diagonal"]}),
        "selected, chosen width": (selected, {"gamma": gammas}),
        "selected, a width a feature": (
            make_pipeline(metric, selected),
            {"kernelmetric__C": PENALTIES},
        ),
    }
    return {
        title: GridSearchCV(model, grid, cv=folds) for title, (model, grid) in candidates.items()
    }


def one_split(name, i, relevances):
    """Test error and processor seconds of each method at each number of vectors, of one split."""
    X, y = datasets.load(name)
    train, test = datasets.splits(name, i)
    errors, times = {}, {}
    for n in BUDGETS:
        for title, search in methods(X[train], n).items():
            start = time.process_time()
            search.fit(X[train], y[train])
            times[title, n] = time.process_time() - start
            errors[title, n] = 100 * (1 - search.score(X[test], y[test]))
            if (name, title, n) == ("ida_splice", "moved, a width a feature", 20):
                relevances.append(search.best_estimator_.feature_relevances_)
    print(f"  {name}, split {i}", flush=True)
    return errors, times


def tell(report, name, outcome):
    """Table and bounds of one set."""
    titles = list(dict.fromkeys(title for title, _ in outcome[0][0]))
    errors = {key: np.array([split[key] for split, _ in outcome]) for key in outcome[0][0]}
    rows = []
    for title in titles:
        cells = [f"{errors[title, n].mean():.2f} ± {errors[title, n].std():.2f}" for n in BUDGETS]
        base = f"{title.split(',')[0]}, chosen width"
        lower = (errors[title, 20] < errors[base, 20]).sum()
        spent = np.mean([times[title, 20] for _, times in outcome])
        rows.append([title, *cells, "" if title == base else f"{lower}", f"{spent:.1f}"])
    report.table(
        ["", *(f"N = {n}" for n in BUDGETS), f"splits of {N_SPLITS} where lower, N = 20",
         "search and fit, processor s, N = 20"],
        rows,
        f"{name}: test error, %, mean and deviation over {N_SPLITS} splits",
    )  # fmt: skip
    for title, base, bound in [
        ("moved, learned width", "moved, chosen width", WIDTH),
        ("moved, a width a feature", "moved, chosen width", DIAGONAL[name]),
        ("selected, a width a feature", "selected, chosen width", SELECTED),
    ]:
        ratio = errors[title, 20].mean() / errors[base, 20].mean()
        report.check(f"{name}, 20 vectors: error, {title}, over {base}", ratio, at_most=bound)


def draw(outcomes, shares):
    """Mean errors against the number of vectors, and the relevances of the positions."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    *pair, last = figure.subplots(1, 3)
    for axes, (name, outcome) in zip(pair, outcomes.items(), strict=True):
        for k, title in enumerate(dict.fromkeys(title for title, _ in outcome[0][0])):
            means = [np.mean([split[title, n] for split, _ in outcome]) for n in BUDGETS]
            style = ("o-", "o-", "o-", "s--", "s--")[k]
            axes.plot(BUDGETS, means, style, color=f"C{(0, 1, 2, 0, 2)[k]}", label=title)
        log_axis(axes.xaxis, BUDGETS)
        axes.set(title=name, xlabel="vectors", ylabel="test error, %")
        axes.set_ylim(bottom=0)
    pair[0].legend(fontsize="small")
    names = [f"position {k + 1}" for k in range(len(shares))]
    FeatureRelevanceDisplay(
        relevances=shares, feature_names=names, max_features=12, name="ida_splice, 20 vectors",
        quantity="Share of the mean squared slope",
    ).plot(last)  # fmt: skip
    return figure
