"""Figure 1 of Building Sparse Large Margin Classifiers: 12 vectors that part 3 from 8.

Source: M. Wu, B. Schoelkopf and G. Bakir, ICML 2005, section 7.7, example 2. Fixed by the paper:
USPS, digits 3 and 8 alone, the customary training and test part, Gaussian kernel, gamma = 1/128,
C = 10. SVM: 116 support vectors, 1.8 % test errors; SLMC with 12 vectors: 1.8 %, and the vectors
look like digits.
The digits are the paper's, as its number of vectors tells, when they are smoothed (a Gaussian
filter of 0.75 pixel, as in ``usps_table1``); the set as it is published (raw) stands below.
Our choice: the paper draws its start at random once; here the best of five random starts by the
objective, beside the single ones. The pictures show the vectors by their coefficients, from the
one that speaks most for a 3 to the one that speaks most for an 8.
"""

import warnings

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from benchmarks.report import percent
from benchmarks.timing import seconds
from benchmarks.usps import FORMS, load
from pursuit import SparseLargeMarginClassifier

OPTIONS = {"gamma": 1 / 128, "C": 10.0}
N_VECTORS, N_STARTS = 12, 5


def run(report):
    """Both forms of the digits."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # max_iter may end a fit
    for form in FORMS:
        run_form(report, form)


def run_form(report, form):
    """Both machines, and the vectors as pictures."""
    (X, y), (X_test, y_test) = (two_digits(part, form) for part in ("train", "test"))
    svc_time, svc = seconds(lambda: SVC(**OPTIONS).fit(X, y))
    svc_error = 100 * np.mean(svc.predict(X_test) != y_test)
    rows = [
        ["SVM, paper", 116, "1.80", "", ""],
        ["SVC", len(svc.support_), f"{svc_error:.2f}", "", f"{svc_time:.2f}"],
        ["SLMC, paper", N_VECTORS, "1.80", "", ""],
    ]
    models = []
    for seed in range(N_STARTS):
        model = SparseLargeMarginClassifier(N_VECTORS, random_state=seed, **OPTIONS)
        elapsed, _ = seconds(lambda model=model: model.fit(X, y))
        models.append(model)
        error = percent(model.predict(X_test) != y_test)
        rows.append([f"SLMC, start {seed}", N_VECTORS, error, f"{model.objective_:.1f}",
                     f"{elapsed:.2f}"])  # fmt: skip
    report.table(["", "vectors", "test error %", "objective", "s"], rows, f"3 against 8, {form}")
    best = min(models, key=lambda model: model.objective_)
    report.figure("slmc_figure1" + "_raw" * (form == "raw"), draw(best))
    error = 100 * np.mean(best.predict(X_test) != y_test)
    report.published(f"{form} digits: vectors of the SVM", 116, len(svc.support_))
    report.published(f"{form} digits: error of the SVM, %", 1.8, svc_error)
    report.published(f"{form} digits: error of SLMC with 12 vectors, %", 1.8, error)
    report.check(f"{form} digits: error with 12 vectors over the SVM's, points",
                 error - svc_error, at_most=0.6, paper=0)  # fmt: skip


def two_digits(part, form):
    """Rows and labels of 3 and 8."""
    X, y = load(part, form)
    chosen = np.isin(y, (3, 8))
    return X[chosen], y[chosen]


def draw(model):
    """The vectors as images, in the order of their coefficients."""
    order = np.argsort(model.dual_coef_[0])
    figure = Figure(figsize=(8, 3), layout="constrained")
    for axes, k in zip(figure.subplots(2, 6).flat, order, strict=True):
        axes.imshow(model.support_vectors_[k].reshape(16, 16), cmap="gray_r")
        axes.set_title(f"{model.dual_coef_[0, k]:+.1f}", fontsize=9)
        axes.set_axis_off()
    figure.suptitle("3 (negative) against 8 (positive): vectors and their coefficients")
    return figure
