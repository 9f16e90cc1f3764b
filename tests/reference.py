"""Each algorithm as plainly as its paper states it.

Slow and independent of the library: nothing here imports `pursuit`. The numbered equations are
those of P. Vincent and Y. Bengio, "Kernel matching pursuit", Machine Learning 48 (2002), where
no other paper is named.

A dictionary is the matrix D with D[i, k] = d_k(x_i), targets are a matrix Y with one column an
output, `weights` are one number a row, `alpha` is the ridge on the coefficients of the atoms and
`intercept` tells whether an unpenalised constant is fitted.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from sklearn.svm import SVC

# A gain within this share of the best one is a tie; the lowest index wins.
TIE = 1e-9
# An atom with less than this share of its squared norm outside the span is dependent.
DEPENDENT = 1e-6


# Kernels, entry by entry.


def _table(X, Z, function):
    return np.array([[function(x, z) for z in Z] for x in X], dtype=float).reshape(len(X), len(Z))


def linear(X, Z):
    return _table(X, Z, lambda x, z: np.sum(x * z))


def polynomial(X, Z, gamma, degree, coef0):
    return _table(X, Z, lambda x, z: (gamma * np.sum(x * z) + coef0) ** degree)


def rbf(X, Z, gamma):
    return _table(X, Z, lambda x, z: np.exp(-gamma * np.sum((x - z) ** 2)))


def laplacian(X, Z, gamma):
    return _table(X, Z, lambda x, z: np.exp(-gamma * np.sum(np.abs(x - z))))


def chi2(X, Z, gamma):
    def distance(x, z):
        return sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)

    return _table(X, Z, lambda x, z: np.exp(-gamma * distance(x, z)))


def sigmoid(X, Z, gamma, coef0):
    return _table(X, Z, lambda x, z: np.tanh(gamma * np.sum(x * z) + coef0))


def _cosine(x, z):
    lengths = np.sqrt(np.sum(x * x)) * np.sqrt(np.sum(z * z))
    return np.sum(x * z) / lengths if lengths > 0 else 0.0


def cosine(X, Z):
    return _table(X, Z, _cosine)


def cosine_polynomial(X, Z, degree, coef0):
    """Kovacs and Kocsor, "Convex networks" (2006), equation 19."""
    return _table(X, Z, lambda x, z: (_cosine(x, z) + coef0) ** degree)


# Least squares.


class Model(NamedTuple):
    """Atoms in order of choice, coefficients (n_outputs, n_atoms), intercept (n_outputs,)."""

    support: list
    coefficients: np.ndarray
    intercept: np.ndarray

    def values(self, D):
        """Outputs from the values of the whole dictionary on some rows."""
        return D[:, self.support] @ self.coefficients.T + self.intercept


def least_squares(D, Y, weights, alpha=0.0, intercept=True):
    """Minimise sum_i w_i |y_i - D_i a - b|^2 + alpha |a|^2 over a and b (eq. 6)."""
    root = np.sqrt(weights)[:, None]
    n_atoms = D.shape[1]
    constant = np.ones((len(D), 1)) if intercept else np.empty((len(D), 0))
    design = np.vstack(
        [
            root * np.hstack([D, constant]),
            np.sqrt(alpha) * np.eye(n_atoms, n_atoms + constant.shape[1]),
        ]
    )
    targets = np.vstack([root * Y, np.zeros((n_atoms, Y.shape[1]))])
    solution = np.linalg.lstsq(design, targets, rcond=None)[0]
    b = solution[n_atoms] if intercept else np.zeros(Y.shape[1])
    return solution[:n_atoms].T, b


def objective(model, D, Y, weights, alpha=0.0):
    """Sum_i w_i |y_i - f(x_i)|^2 + alpha |a|^2."""
    residual = Y - model.values(D)
    return np.sum(weights[:, None] * residual**2) + alpha * np.sum(model.coefficients**2)


def loss(model, D, Y, weights):
    """Weighted mean squared error, averaged over the outputs."""
    return objective(model, D, Y, weights) / (np.sum(weights) * Y.shape[1])


def fit(D, Y, weights, support, alpha=0.0, intercept=True):
    """Give the best coefficients of the atoms in `support`."""
    return Model(list(support), *least_squares(D[:, support], Y, weights, alpha, intercept))


# The three pursuits. Each returns the models after 1, 2, ... steps.


def _first_best(gains):
    gains = np.asarray(gains)
    return int(np.flatnonzero(gains >= gains.max() - TIE * abs(gains.max()))[0])


def _deviations(D, weights, intercept):
    return D - np.average(D, axis=0, weights=weights) if intercept else D


def _squared_norms(D, weights, intercept):
    """Squared norms of the atoms less their means; exactly zero where an atom is constant."""
    own = np.sum(weights[:, None] * _deviations(D, weights, intercept) ** 2, axis=0)
    return np.where(own > 1e-12 * np.sum(weights[:, None] * D**2, axis=0), own, 0.0)


def _independent(D, weights, support, alpha, intercept):
    """Tell which atoms are no combination of the constant and of the atoms in `support`."""
    own = _squared_norms(D, weights, intercept)
    model = fit(D, D, weights, support, alpha, intercept)
    outside = np.sum(weights[:, None] * (D - model.values(D)) ** 2, axis=0)
    outside += alpha * np.sum(model.coefficients**2, axis=1)
    free = (own > 0) & (outside + alpha > DEPENDENT * (own + alpha))
    return free & ~_copies(D, support)


def _copies(D, support):
    """Tell which atoms equal one in `support`; a ridge would split a coefficient among them."""
    return np.array(
        [any(np.allclose(d, D[:, k], rtol=1e-12, atol=0) for k in support) for d in D.T]
    )


def prefit(D, Y, weights, n_steps, alpha=0.0, intercept=True, barred=()):
    """Pre-fitting: try every atom with all coefficients free, keep the best (eq. 7)."""
    models = []
    support = []
    for _ in range(n_steps):
        current = objective(fit(D, Y, weights, support, alpha, intercept), D, Y, weights, alpha)
        free = _independent(D, weights, support, alpha, intercept)
        free[list(barred)] = False
        if not free.any():
            break
        gains = np.full(D.shape[1], -np.inf)
        for k in np.flatnonzero(free):
            trial = fit(D, Y, weights, [*support, k], alpha, intercept)
            gains[k] = current - objective(trial, D, Y, weights, alpha)
        support.append(_first_best(gains))
        models.append(fit(D, Y, weights, support, alpha, intercept))
    return models


def backfit(D, Y, weights, n_steps, alpha=0.0, intercept=True, barred=()):
    """Back-fitting: the atom most collinear with the residual (eq. 3), then eq. 6."""
    models = []
    support = []
    squared_norms = _squared_norms(D, weights, intercept)
    for _ in range(n_steps):
        residual = Y - fit(D, Y, weights, support, alpha, intercept).values(D)
        free = _independent(D, weights, support, alpha, intercept)
        free[list(barred)] = False
        if not free.any():
            break
        gains = np.full(D.shape[1], -np.inf)
        for k in np.flatnonzero(free):
            products = np.sum(weights[:, None] * D[:, [k]] * residual, axis=0)
            gains[k] = np.sum(products**2) / (squared_norms[k] + alpha)
        support.append(_first_best(gains))
        models.append(fit(D, Y, weights, support, alpha, intercept))
    return models


def basic(D, Y, weights, n_steps, alpha=0.0, intercept=True, barred=()):
    """Basic matching pursuit (figure 1); an atom may come back.

    With a ridge each step lowers sum w |R|^2 + alpha |a|^2 along one coefficient. `support` of
    the models lists the distinct atoms in order of first choice.
    """
    E = _deviations(D, weights, intercept)
    mean_y = np.average(Y, axis=0, weights=weights) if intercept else np.zeros(Y.shape[1])
    mean_d = np.average(D, axis=0, weights=weights) if intercept else np.zeros(D.shape[1])
    R = Y - mean_y
    a = np.zeros((Y.shape[1], D.shape[1]))
    squared_norms = _squared_norms(D, weights, intercept)
    models = []
    order = []
    for _ in range(n_steps):
        gains = np.full(D.shape[1], -np.inf)
        copies = set(np.flatnonzero(_copies(D, order))) - set(order)
        for k in set(range(D.shape[1])) - set(barred) - copies:
            if squared_norms[k] > 0:
                slopes = np.sum(weights[:, None] * E[:, [k]] * R, axis=0) - alpha * a[:, k]
                gains[k] = np.sum(slopes**2) / (squared_norms[k] + alpha)
        g = _first_best(gains)
        slopes = np.sum(weights[:, None] * E[:, [g]] * R, axis=0) - alpha * a[:, g]
        step = slopes / (squared_norms[g] + alpha)
        a[:, g] += step
        R = R - E[:, [g]] * step
        if g not in order:
            order.append(g)
        models.append(Model(list(order), a[:, order].copy(), mean_y - a @ mean_d))
    return models


PURSUITS = {"prefit": prefit, "backfit": backfit, "basic": basic}


def norm_least_squares(D, K, Y, weights, alpha):
    """Least sum_i w_i |y_i - b - D a|^2 + alpha tr a'K a: the penalty as rows with targets 0."""
    values, axes = np.linalg.eigh(K)
    root = axes * np.sqrt(np.maximum(values, 0.0))
    scale = np.sqrt(weights)[:, None]
    above = np.hstack([scale * D, scale])
    below = np.hstack([np.sqrt(alpha) * root.T, np.zeros((len(K), 1))])
    targets = np.vstack([scale * Y, np.zeros((len(K), Y.shape[1]))])
    solution = np.linalg.lstsq(np.vstack([above, below]), targets, rcond=None)[0]
    left = targets - np.vstack([above, below]) @ solution
    return solution[:-1], solution[-1], np.sum(left**2)


def norm_prefit(D, K, Y, weights, n_steps, alpha):
    """Figure 3 with the second term of eq. 13: each candidate is tried with all before it."""
    support = []
    for _ in range(n_steps):
        left = np.full(D.shape[1], np.inf)
        for k in range(D.shape[1]):
            if k not in support and not any(np.array_equal(D[:, k], D[:, s]) for s in support):
                chosen = [*support, k]
                among = K[np.ix_(chosen, chosen)]
                left[k] = norm_least_squares(D[:, chosen], among, Y, weights, alpha)[2]
        support.append(_first_best(-left))
    return support


def norm_prefit_on(D, K, Y, weights, n_steps, alpha):
    """As `norm_prefit`, where D are parts of the functions whose products are K: no constant."""
    support = []
    for _ in range(n_steps):
        left = np.full(D.shape[1], np.inf)
        for k in range(D.shape[1]):
            if k not in support and not any(np.array_equal(K[:, k], K[:, s]) for s in support):
                chosen = [*support, k]
                E, P = D[:, chosen], alpha * K[np.ix_(chosen, chosen)]
                a = np.linalg.solve(E.T @ (weights[:, None] * E) + P, E.T @ (weights[:, None] * Y))
                left[k] = np.sum(weights[:, None] * (Y - E @ a) ** 2) + np.sum(a * (P @ a))
        support.append(_first_best(-left))
    return support


def norm_gradient_pursuit(loss, slope, D, K, y, weights, n_steps, alpha):
    """Figure 4 for sum_i w_i L(y_i, f_i) + alpha a'K a (eq. 13); one output, back-fitting.

    ||d_k|| is that of the objective under squared error: |d_k - mean|^2 + alpha K[k, k].
    """
    lengths = np.sqrt(_squared_norms(D, weights, True) + alpha * K.diagonal())

    def fitted(support):
        def objective(a):
            value = weights @ loss(y, D[:, support] @ a[:-1] + a[-1])
            return value + alpha * a[:-1] @ K[np.ix_(support, support)] @ a[:-1]

        return minimize(objective, np.zeros(len(support) + 1), tol=1e-12).x

    support, a = [], fitted([])
    for _ in range(n_steps):
        residual = -weights * slope(y, D[:, support] @ a[:-1] + a[-1])
        products = D.T @ residual - 2 * alpha * K[:, support] @ a[:-1]
        scores = np.abs(products) / lengths
        scores[support] = -np.inf
        support.append(_first_best(scores))
        a = fitted(support)
    return support, a


def one_vs_rest(fitting, D, Y, budgets, *args, **kwargs):
    """One basis an output, the outputs taking turns; the models after 1, 2, ... steps."""
    weights = args[0]
    paths = [
        PURSUITS[fitting](D, Y[:, [t]], weights, n, *args[1:], **kwargs)
        for t, n in enumerate(budgets)
    ]
    intercept = kwargs.get("intercept", True)
    mean = np.average(Y, axis=0, weights=weights) if intercept else np.zeros(Y.shape[1])
    taken = [0] * len(budgets)
    models = []
    while taken != list(budgets):
        for t, n in enumerate(budgets):
            if taken[t] < n:
                taken[t] += 1
                models.append(_together(paths, taken, mean, models))
    return models


def _together(paths, taken, mean, earlier):
    """One model from the prefixes of several, with the union of their atoms in order."""
    order = list(earlier[-1].support) if earlier else []
    parts = [path[n - 1] if n else Model([], np.zeros((1, 0)), mean[[t]])
             for t, (path, n) in enumerate(zip(paths, taken, strict=True))]  # fmt: skip
    order += [k for part in parts for k in part.support if k not in order]
    coefficients = np.zeros((len(paths), len(order)))
    for t, part in enumerate(parts):
        coefficients[t, [order.index(k) for k in part.support]] = part.coefficients[0]
    return Model(order, coefficients, np.concatenate([part.intercept for part in parts]))


# Other losses (section 3). Each is a pair of functions of targets and outputs: the loss of each
# entry (of each row for the cross-entropy), and its derivative in the outputs.


def _softmax(F):
    powers = np.exp(F)
    return powers / powers.sum(axis=1, keepdims=True)


LOSSES = {
    "squared_error": (lambda Y, F: (Y - F) ** 2, lambda Y, F: 2 * (F - Y)),
    "squared_error_tanh": (
        lambda Y, F: (np.tanh(F) - 0.65 * Y) ** 2,
        lambda Y, F: 2 * (np.tanh(F) - 0.65 * Y) * (1 - np.tanh(F) ** 2),
    ),
    "exponential": (lambda Y, F: np.exp(-Y * F), lambda Y, F: -Y * np.exp(-Y * F)),
    "squared_hinge": (
        lambda Y, F: np.maximum(0, 1 - Y * F) ** 2,
        lambda Y, F: -2 * Y * np.maximum(0, 1 - Y * F),
    ),
    "log_loss": (lambda Y, F: np.log(1 + np.exp(-Y * F)), lambda Y, F: -Y / (1 + np.exp(Y * F))),
    "cross_entropy": (
        lambda Y, F: -np.log(np.sum(_softmax(F) * (Y > 0), axis=1)),
        lambda Y, F: _softmax(F) - (Y > 0),
    ),
    "huber": (
        lambda Y, F: np.where(np.abs(F - Y) <= 1, (F - Y) ** 2 / 2, np.abs(F - Y) - 0.5),
        lambda Y, F: np.clip(F - Y, -1, 1),
    ),
    "poisson": (
        lambda Y, F: np.exp(F) - Y * F + np.where(Y > 0, Y * np.log(np.maximum(Y, 1)) - Y, 0),
        lambda Y, F: np.exp(F) - Y,
    ),
}


def _minimum(loss, E, Y, weights, fixed, held, alpha, intercept, starts):
    """The lowest sum_i w_i L(y_i, fixed_i + E_i a + b) + alpha |held + a|^2; eq. 10 or 11."""
    value, gradient = loss
    shape = (E.shape[1] + intercept, Y.shape[1])
    design = np.hstack([E, np.ones((len(E), 1))]) if intercept else E

    def function(x):
        x = x.reshape(shape)
        F = fixed + design @ x
        a = np.zeros(shape)
        a[: E.shape[1]] = held + x[: E.shape[1]]
        total = np.sum(weights * value(Y, F).reshape(len(Y), -1).sum(axis=1))
        slope = design.T @ (weights[:, None] * gradient(Y, F)) + 2 * alpha * a
        return total + alpha * np.sum(a**2), slope.ravel()

    lowest = None
    for start in starts:
        found = minimize(function, start.ravel(), method="BFGS", jac=True, options={"gtol": 1e-8})
        if lowest is None or found.fun < lowest.fun:
            lowest = found
    x = lowest.x.reshape(shape)
    return (x[:-1], x[-1]) if intercept else (x, np.zeros(Y.shape[1]))


def gradient_pursuit(
    loss, D, Y, weights, n_steps, every=1, alpha=0.0, intercept=True, fitting="backfit", convex=True
):
    """Figure 4, with the constant always in the expansion; the models after 1, 2, ... steps.

    For a loss that is not convex the start is the mean of the targets, and each full re-fit is
    tried from least squares as well. "basic" never re-fits; "prefit" measures the atoms by what
    of them is outside the span of those chosen.
    """
    E = _deviations(D, weights, intercept)
    mean_d = np.average(D, axis=0, weights=weights) if intercept else np.zeros(D.shape[1])
    level = np.average(Y, axis=0, weights=weights) if intercept else np.zeros(Y.shape[1])
    if intercept and convex:
        none = E[:, :0]
        _, level = _minimum(loss, none, Y, weights, 0.0, 0.0, 0.0, True, [level])
    a = np.zeros((D.shape[1], Y.shape[1]))
    own = _squared_norms(D, weights, intercept)
    models, order = [], []
    for n in range(1, n_steps + 1):
        R = -weights[:, None] * loss[1](Y, E @ a + level)
        if fitting == "basic":
            free = (own > 0) & ~(_copies(D, order) & ~np.isin(np.arange(len(own)), order))
            products = E.T @ R - 2 * alpha * a
        else:
            free = _independent(D, weights, order, alpha, intercept)
            products = E.T @ R
        norms = own
        if fitting == "prefit":
            span = fit(D, D, weights, order, alpha, intercept)
            norms = np.sum(weights[:, None] * (D - span.values(D)) ** 2, axis=0)
            norms = norms + alpha * np.sum(span.coefficients**2, axis=1)
        gains = np.full(len(own), -np.inf)
        gains[free] = (np.sum(products**2, axis=1) / (norms + alpha))[free]
        g = _first_best(gains)
        order = order if g in order else [*order, g]
        if fitting != "basic" and (n % every == 0 or n == n_steps):
            starts = [np.vstack([a[order], level]) if intercept else a[order]]
            if not convex:
                squares = fit(E, Y, weights, order, alpha, intercept)
                constant = [squares.intercept] if intercept else []
                starts.append(np.vstack([squares.coefficients.T, *constant]))
            a[order], level = _minimum(
                loss, E[:, order], Y, weights, 0.0, 0.0, alpha, intercept, starts
            )
        else:
            start = [np.zeros((1, Y.shape[1]))]
            current = E @ a + level
            step, _ = _minimum(loss, E[:, [g]], Y, weights, current, a[[g]], alpha, False, start)
            a[g] += step[0]
        models.append(Model(list(order), a[order].T.copy(), level - mean_d @ a))
    return models


# Sparse kernel principal components: Hussain and Shawe-Taylor, "Theory of matching pursuit" (2008).

# A point with less than this share of K(x, x) outside the span of the chosen ones is spanned.
SPANNED = 1e-10


class Deflation(NamedTuple):
    """Chosen points, sum_j w_j K^[j,j] after each step, and the deflated matrix at the end."""

    picks: list
    traces: list
    matrix: np.ndarray


def rayleigh_quotients(matrix, weights):
    """Give |W^1/2 K^[:, i]|^2 / K^[i, i] (eq. 2); minus infinity where K^[i, i] is zero."""
    d = np.diag(matrix)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(d > 0, np.sum(weights[:, None] * matrix**2, axis=0) / d, -np.inf)


def deflation(K, weights, n_steps):
    """Algorithm 1, whole matrix: the best point (eq. 2), then K^ - t t' / K^[i, i] (eq. 3)."""
    matrix = np.array(K)
    picks, traces = [], []
    for _ in range(n_steps):
        quotients = rayleigh_quotients(matrix, weights)
        quotients[np.diag(matrix) <= SPANNED * np.diag(K)] = -np.inf
        if np.isneginf(quotients).all():
            break
        i = _first_best(quotients)
        matrix = matrix - np.outer(matrix[:, i], matrix[i]) / matrix[i, i]
        picks.append(i)
        traces.append(np.sum(weights * np.diag(matrix)))
    return Deflation(picks, traces, matrix)


def sparse_greedy_matrix_approximation(K, n_steps):
    """Algorithm 2 of Smola and Schoelkopf (ICML 2000), without sub-sampling.

    Every function k(x_j, .) is approximated by sum_i alpha_ij k(x_i, .) over the basis; the next
    basis function is the one with which sum_j |k(x_j, .) - sum_i alpha_ij k(x_i, .)|^2 is least.
    """
    basis, errors = [], []
    for _ in range(n_steps):
        left = np.full(len(K), np.inf)
        for i in set(range(len(K))) - set(basis):
            trial = [*basis, i]
            inner, cross = K[np.ix_(trial, trial)], K[trial]
            alpha = np.linalg.lstsq(inner, cross, rcond=None)[0]
            left[i] = np.sum(
                np.diag(K)
                - 2 * np.sum(alpha * cross, axis=0)
                + np.sum(alpha * (inner @ alpha), axis=0)
            )
        basis.append(int(np.argmin(left)))
        errors.append(left.min())
    return basis, errors


# Model choice by brute force.


def leave_one_out(D, Y, weights, support, alpha=0.0, intercept=True, scales=None):
    """Output at each row of the model refitted without one copy of that row.

    The atoms stay those of `support`. A row of weight 2 counts as two rows of which one is left
    out; a row of weight below 1 is left out whole. `scales` are the weights of one copy of each
    row, if they are not 1.
    """
    scales = np.ones(len(D)) if scales is None else scales
    outputs = np.empty(Y.shape)
    for i in range(len(D)):
        left = np.array(weights, dtype=float)
        left[i] -= min(left[i], scales[i])
        outputs[i] = fit(D, Y, left, support, alpha, intercept).values(D[[i]])[0]
    return outputs


def cross_validation(pursuit, D, Y, weights, splits, n_steps):
    """Losses on the test rows after 1, 2, ... steps, (n_folds, n_steps).

    `pursuit(D, Y, weights, barred)` gives the models of a path on some rows, on which the atoms
    centred on rows outside the training part are barred; atom k is centred on row k.
    """
    table = np.empty((len(splits), n_steps))
    for f, (train, test) in enumerate(splits):
        outside = np.setdiff1d(np.arange(D.shape[1]), train)
        models = pursuit(D[train], Y[train], weights[train], outside)
        losses = [loss(model, D[test], Y[test], weights[test]) for model in models]
        table[f] = losses + losses[-1:] * (n_steps - len(losses))
    return table


# Probabilities.


def probabilities(values, temperature):
    """Softmax of decision values over the temperature; a sigmoid of a single column."""
    if values.shape[1] == 1:
        positive = 1.0 / (1.0 + np.exp(-values[:, 0] / temperature))
        return np.stack([1.0 - positive, positive], axis=1)
    powers = np.exp(values / temperature)
    return powers / powers.sum(axis=1, keepdims=True)


def smooth_temperature(values, codes, weights):
    """Give the temperature where each other class has the probability 1 / (W + K) at a row."""
    n_classes = max(values.shape[1], 2)
    share = 1 / (np.sum(weights) + n_classes)
    rows, labels, masses = [], [], []
    for row, code, weight in zip(values, codes, weights, strict=True):
        for label in range(n_classes):
            rows.append(row)
            labels.append(label)
            masses.append(weight * (1 - (n_classes - 1) * share if label == code else share))
    return temperature(np.array(rows), np.array(labels), np.array(masses))


def temperature(values, codes, weights):
    """Give the temperature in [1e-3, 1e3] of the highest weighted likelihood."""

    def negative_log_likelihood(log_temperature):
        p = probabilities(values, np.exp(log_temperature))[np.arange(len(codes)), codes]
        return -np.sum(weights * np.log(np.maximum(p, 1e-300)))

    bounds = (np.log(1e-3), np.log(1e3))
    found = minimize_scalar(
        negative_log_likelihood, bounds=bounds, method="bounded", options={"xatol": 1e-10}
    )
    return float(np.exp(found.x))


# Sparse large margin classifiers: Wu, Schoelkopf and Bakir (2005).


class Machine(NamedTuple):
    """W(Z), the coefficients beta of the vectors and the constant b."""

    objective: float
    beta: np.ndarray
    intercept: float


def machine_on_vectors(kernel, Z, X, y, bounds):
    """The SVM whose kernel is psi' K_z^{-1} psi (eq. 28), solved by LIBSVM; beta is eq. 33."""
    K_z, K_zx = kernel(Z, Z) + 1e-10 * np.eye(len(Z)), kernel(Z, X)
    modified = K_zx.T @ np.linalg.solve(K_z, K_zx)
    svc = SVC(C=1.0, kernel="precomputed", tol=1e-8).fit(modified, y, sample_weight=bounds)
    a = np.zeros(len(y))
    a[svc.support_] = svc.dual_coef_[0]
    objective = np.sum(np.abs(a)) - a @ modified @ a / 2
    return Machine(objective, np.linalg.solve(K_z, K_zx @ a), svc.intercept_[0])


def sparse_large_margin(kernel, Z, X, y, bounds):
    """The vectors where W (eq. 10) is lowest, from a start, by a simplex of values alone."""
    found = minimize(
        lambda z: machine_on_vectors(kernel, z.reshape(Z.shape), X, y, bounds).objective,
        Z.ravel(),
        method="Nelder-Mead",
        options={"maxiter": 2000, "xatol": 1e-5, "fatol": 1e-7},
    )
    return found.x.reshape(Z.shape)


# Convex networks: K. Kovacs and A. Kocsor, "Classification using a sparse combination of basis
# functions" (2005); the numbers are theirs.

MARGIN_LOSSES = {
    "log_loss": lambda m: np.log1p(np.exp(-m)),
    "exponential": lambda m: np.exp(-m),
    "smooth_hinge": lambda m: np.log1p(np.exp(10 * (1 - m))) / 10,
}


def gauss_seidel(Phi, y, weights, alpha, A, box, gamma, n_sweeps):
    """Definition 2 for the logistic loss, with a constant step, from zero."""
    beta = np.clip(np.zeros(Phi.shape[1]), *box)
    for _ in range(n_sweeps):
        for j in range(len(beta)):
            slopes = -weights * y / (1 + np.exp(y * (Phi @ beta)))
            gradient = Phi[:, j] @ slopes + 2 * alpha * A[j] @ beta
            beta[j] = np.clip(beta[j] - gamma * gradient, box[0][j], box[1][j])
    return beta


def gram_schmidt(F, q):
    """GRAMM of section 3.1: the column with the longest residual after orthogonalisation."""
    chosen, orthogonal = [], []
    for _ in range(q):
        lengths = np.full(F.shape[1], -np.inf)
        for j in set(range(F.shape[1])) - set(chosen):
            residual = F[:, j] - sum((F[:, j] @ f) / (f @ f) * f for f in orthogonal)
            lengths[j] = np.linalg.norm(residual)
        t = _first_best(lengths)
        orthogonal.append(F[:, t] - sum((F[:, t] @ f) / (f @ f) * f for f in orthogonal))
        chosen.append(t)
    return chosen


def correlation(F, q):
    """CORR of section 3.1 as printed; the first column is the longest."""
    chosen = [_first_best(np.linalg.norm(F, axis=0))]
    while len(chosen) < q:
        sums = np.full(F.shape[1], np.inf)
        for j in set(range(F.shape[1])) - set(chosen):
            sums[j] = sum(
                (F[:, j] @ F[:, t]) ** 2 / ((F[:, j] @ F[:, j]) * (F[:, t] @ F[:, t]))
                for t in chosen
            )
        chosen.append(_first_best(-sums))
    return chosen
