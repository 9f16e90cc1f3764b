"""Sparse kernel CCA of 2000 and of 50000 pairs, beside kernel CCA with all of them.

Two views of 50 features each of the same five signals, uniform in [-1, 1]: the first view holds
sin(3 u) and u of each signal u, the second cos(3 u) and u^2, each mixed by a random matrix, with
noise of standard deviation 0.5. The second view hides the sign of u, so that the linear
correlations are zero but for chance. 100 pairs are chosen, five canonical pairs found; RBF kernels
with gamma = "scale", alpha = 0.0001; another 2000 pairs tell what the functions are worth.

Dense kernel CCA solves, for the doubly centred matrices K_x and K_y with m rows and
R = K^2 / m + alpha K,

    [0, K_x K_y / m; K_y K_x / m, 0] v = rho [R_x, 0; 0, R_y] v,

by ``scipy.linalg.eigh`` for the largest five, as packages do. Every method runs in a process of
its own; the peak memory is that of the whole process.
"""

from statistics import median

import numpy as np
from scipy.linalg import eigh
from sklearn.cross_decomposition import CCA
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.timing import in_fresh_process, seconds
from pursuit import SparseKernelCCA
from pursuit.kernels import scale_gamma

N_MANY, N_FEW, N_TEST, N_FEATURES, N_SIGNALS = 50_000, 2000, 2000, 50, 5
N_BASIS = 100
ALPHA = 1e-4


def run(report):
    """Each method in a process of its own."""
    tasks = {
        f"SparseKernelCCA, {N_FEW} pairs, all scores": (sparse, N_FEW, None),
        f"SparseKernelCCA, {N_FEW} pairs, 59 candidates": (sparse, N_FEW, 59),
        f"SparseKernelCCA, {N_FEW} pairs, 1 candidate: at random": (sparse, N_FEW, 1),
        f"kernel CCA, {N_FEW} pairs": (dense, N_FEW),
        f"linear CCA, {N_FEW} pairs": (linear, N_FEW),
        f"SparseKernelCCA, {N_MANY} pairs": (sparse, N_MANY, None),
    }
    outcomes = {name: in_fresh_process(*task) for name, task in tasks.items()}
    report.table(
        ["", "fit, s", "peak memory, GB", *(f"rho {j + 1}" for j in range(N_SIGNALS))],
        [row(name, *outcome) for name, outcome in outcomes.items()],
        "Correlations of the scores of the other pairs",
    )
    (few, _), _, _, (full, _), _, (many, memory) = outcomes.values()
    report.add(f"Kernel CCA with all pairs takes {full['fit'] / few['fit']:.0f} times as long.")
    report.check(f"seconds of the fit, {N_FEW} pairs", few["fit"], at_most=1.0)
    report.check(f"seconds of the fit, {N_MANY} pairs", many["fit"], at_most=60.0)
    report.check(f"peak memory, {N_MANY} pairs, GB", memory / 1e9, at_most=2.0)


def row(name, outcome, memory):
    """A line of the table."""
    correlations = [f"{rho:.3f}" for rho in outcome["correlations"]]
    return [name, f"{outcome['fit']:.2f}", f"{memory / 1e9:.2f}", *correlations]


def load(n_rows):
    """Both views of the training pairs, and of the test pairs."""
    rng = np.random.default_rng(0)
    signal = rng.uniform(-1, 1, size=(N_TEST + N_MANY, N_SIGNALS))
    views = []
    for parts in ((np.sin(3 * signal), signal), (np.cos(3 * signal), signal**2)):
        mixing = rng.normal(size=(2 * N_SIGNALS, N_FEATURES))
        Z = np.hstack(parts) @ mixing
        views.append(Z + 0.5 * rng.normal(size=Z.shape))
    train, test = slice(N_TEST, N_TEST + n_rows), slice(0, N_TEST)
    return [Z[train] for Z in views], [Z[test] for Z in views]


def correlations(x_scores, y_scores):
    """Correlation of each pair of columns."""
    pairs = zip(x_scores.T, y_scores.T, strict=True)
    return [float(np.corrcoef(*pair)[0, 1]) for pair in pairs]


def sparse(n_rows, n_candidates):
    """The one that the bounds are for; of few pairs the median time of three fits."""
    train, test = load(n_rows)
    model = SparseKernelCCA(
        N_SIGNALS, n_basis=N_BASIS, alpha=ALPHA, n_candidates=n_candidates, random_state=0
    )
    times = [seconds(lambda: model.fit(*train))[0] for _ in range(3 if n_rows == N_FEW else 1)]
    return {"fit": median(times), "correlations": correlations(*model.transform(*test))}


def dense(n_rows):
    """Kernel functions at all pairs."""
    train, test = load(n_rows)
    gammas = [scale_gamma(Z) for Z in train]
    elapsed, (coefficients, means) = seconds(lambda: dense_coefficients(train, gammas))
    parts = zip(test, train, gammas, means, coefficients, strict=True)
    scores = [(rbf_kernel(new, Z, gamma=g) - mean) @ c for new, Z, g, mean, c in parts]
    return {"fit": elapsed, "correlations": correlations(*scores)}


def dense_coefficients(views, gammas):
    """Coefficients of the centred kernel functions, and the means of the kernel's columns."""
    matrices = [rbf_kernel(Z, gamma=gamma) for Z, gamma in zip(views, gammas, strict=True)]
    means = [K.mean(axis=0) for K in matrices]
    K_x, K_y = (K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean() for K in matrices)
    m = len(K_x)
    left, right = np.zeros((2, 2 * m, 2 * m))
    left[:m, m:] = K_x @ K_y / m
    left[m:, :m] = left[:m, m:].T
    for part, K in ((slice(0, m), K_x), (slice(m, 2 * m), K_y)):
        right[part, part] = K @ K / m + ALPHA * K + 1e-8 * np.eye(m)
    _, vectors = eigh(left, right, subset_by_index=[2 * m - N_SIGNALS, 2 * m - 1])
    vectors = vectors[:, ::-1]
    coefficients = [part - part.mean(axis=0) for part in (vectors[:m], vectors[m:])]
    return coefficients, means


def linear(n_rows):
    """scikit-learn's."""
    train, test = load(n_rows)
    model = CCA(n_components=N_SIGNALS)
    elapsed, _ = seconds(lambda: model.fit(*train))
    found = correlations(*model.transform(*test))
    return {"fit": elapsed, "correlations": found}
