"""Section 11.2.4 of Vincent's thesis: hyperplanes with tangents beside the neighbours, on USPS.

Source: P. Vincent, Modeles a noyaux a structure locale, thesis, Montreal, 2003, section 11.2.4: "It
should be interesting (and relatively easy) to combine both approaches", that is HKNN and the
tangent distance of P. Simard, Y. LeCun and J. Denker (NIPS 5, 1993). The thesis has no figures of
it.
Fixed by the source: the seven transformations of Simard et al.; hyperplanes with weight decay
(equation 11.5), the tangents as further columns.
Our choice: all 7291 training rows of USPS in [-1, 1], raw and after a Gaussian filter of 0.75 pixel
as for table 11.1; tangents by derivatives of a Gaussian of 0.75 pixel, at the centroid of the
neighbours. K and lambda have the lowest error over three folds of the training rows, stratified and
shuffled, for K from 4 to 30 and lambda from 0 to 100; the 2007 test rows are for the last columns
alone. "Tangent distance" is the one-sided one to the nearest row of each class: K = 1 with
tangents. Beside them the nearest feature line (Li and Lu, 1999), which the same section names, with
K from 2 to 20.
The bounds were set before the run: tangents do not make errors more, neither of the nearest
neighbour nor of HKNN.
"""

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.timing import seconds
from benchmarks.usps import FORMS, load
from pursuit import HyperplaneKNeighborsClassifier, ImageTangents, NearestFeatureLineClassifier

TANGENTS = ImageTangents((16, 16))
SIZES, ALPHAS = [4, 6, 8, 10, 12, 15, 20, 25, 30], [0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]
METHODS = {
    "KNN": (KNeighborsClassifier(algorithm="brute"), [1, 3, 5], None),
    "NFL": (NearestFeatureLineClassifier(), [2, 3, 5, 8, 12, 20], None),
    "tangent distance": (HyperplaneKNeighborsClassifier(tangents=TANGENTS), [1], ALPHAS),
    "HKNN": (HyperplaneKNeighborsClassifier(), SIZES, ALPHAS),
    "HKNN with tangents": (HyperplaneKNeighborsClassifier(tangents=TANGENTS), SIZES, ALPHAS),
}
PLAIN = {"tangent distance": "KNN", "HKNN with tangents": "HKNN"}


def run(report):
    """The two forms of the digits."""
    for form in FORMS:
        errors = one_form(report, form)
        for method, plain in PLAIN.items():
            what = f"USPS {form}, {method}: test error, % (at most that of {plain})"
            report.check(what, errors[method], at_most=errors[plain], peers=f"{errors[plain]:.2f}")


def one_form(report, form):
    """One table; the test errors in % are returned."""
    X, y = load("train", form)
    X_test, y_test = load("test", form)
    rows, errors = [], {}
    for method, (model, sizes, alphas) in METHODS.items():
        parameters, lowest = chosen(model, X, y, sizes, alphas)
        model.set_params(**parameters).fit(X, y)
        time, predicted = seconds(lambda model=model: model.predict(X_test))
        errors[method] = 100 * np.mean(predicted != y_test)
        words = [f"{parameters['n_neighbors']}", f"{parameters.get('alpha', ''):}"]
        figures = [f"{100 * lowest:.2f}", f"{errors[method]:.2f}", f"{time:.1f}"]
        rows.append([method, *words, *figures])
    header = ["", "K", "lambda", "three folds, %", "test, %", "2007 predictions, s"]
    report.table(header, rows, f"USPS, {form}")
    return errors


def chosen(model, X, y, sizes, alphas):
    """Parameters of the lowest error over three folds, the first of equals, and that error."""
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    errors = np.zeros((len(sizes), len(alphas or [None])))
    for rows, held_out in folds.split(X, y):
        model.fit(X[rows], y[rows])
        wrong = fold_errors(model, X[held_out], y[held_out], sizes, alphas)
        errors += wrong * len(held_out) / len(y)
    i, j = np.unravel_index(errors.argmin(), errors.shape)
    penalty = {} if alphas is None else {"alpha": alphas[j]}
    return {"n_neighbors": sizes[i], **penalty}, errors.min()


def fold_errors(model, X, y, sizes, alphas):
    """Shares of wrong labels for every K and lambda, (n_sizes, n_alphas)."""
    if alphas is not None:
        return model.validation_curve(X, y, n_neighbors=sizes, alphas=alphas).errors
    return np.array([[1 - model.set_params(n_neighbors=k).score(X, y)] for k in sizes])
