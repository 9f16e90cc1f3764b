"""Sparse kernel PCA of 50000 rows: 200 points, 59 candidates a step.

50000 rows of 50 features: ten clusters with random covariance of rank 10 and noise. RBF kernel,
gamma = "scale". The fit runs in a process of its own; the peak memory is that of the whole process.
Beside it, on the same rows, scikit-learn's Nystroem with 200 random components (landmarks and
features), and on the first 5000 rows scikit-learn's KernelPCA with 200 components (its memory grows
with the square of the rows) and exact scores. The mean residual is what the span of the points
leaves of K(x, x) = 1; that of kernel PCA is the least possible.
"""

import numpy as np
from scipy.sparse.linalg import eigsh
from sklearn.decomposition import KernelPCA
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.timing import in_fresh_process, seconds
from pursuit import SparseKernelPCA
from pursuit.kernels import scale_gamma

N_ROWS, N_FEATURES, N_COMPONENTS, N_FEW = 50_000, 50, 200, 5000


def run(report):
    """Each method in a process of its own."""
    names = {
        many_rows: f"SparseKernelPCA, {N_ROWS} rows, 59 candidates",
        nystroem: f"Nystroem, {N_ROWS} rows, random",
        exact_scores: f"SparseKernelPCA, {N_FEW} rows, all scores",
        candidates: f"SparseKernelPCA, {N_FEW} rows, 59 candidates",
        kernel_pca: f"KernelPCA, {N_FEW} rows",
    }
    rows = []
    for task, name in names.items():
        (fit_seconds, residual), memory = in_fresh_process(task)
        rows.append([name, f"{fit_seconds:.1f}", f"{residual:.4f}", f"{memory / 1e9:.2f}"])
        if task is many_rows:
            report.check("seconds of the fit", fit_seconds, at_most=30.0)
            report.check("peak memory, GB", memory / 1e9, at_most=1.0)
    report.table(["", "fit, s", "mean residual", "peak memory, GB"], rows)


def load(n_rows=N_ROWS):
    """The rows."""
    rng = np.random.default_rng(0)
    centres = 3.0 * rng.normal(size=(10, N_FEATURES))
    spreads = rng.normal(size=(10, 10, N_FEATURES)) / np.sqrt(10)
    cluster = rng.integers(10, size=N_ROWS)
    latent = rng.normal(size=(N_ROWS, 10))
    X = centres[cluster] + np.einsum("ni,nij->nj", latent, spreads[cluster])
    return (X + 0.1 * rng.normal(size=X.shape))[:n_rows]


def sparse(n_rows, n_candidates):
    """Fit; the residual is known from the fit."""
    X = load(n_rows)
    model = SparseKernelPCA(N_COMPONENTS, n_candidates=n_candidates, random_state=0)
    fit_seconds, _ = seconds(lambda: model.fit(X))
    return fit_seconds, float(model.residual_path_[-1])


def many_rows():
    """The one that the bounds are for."""
    return sparse(N_ROWS, 59)


def exact_scores():
    """The kernel matrix of few rows fits in memory."""
    return sparse(N_FEW, None)


def candidates():
    """For the residual beside that of all scores."""
    return sparse(N_FEW, 59)


def nystroem():
    """Random landmarks."""
    X = load()
    model = Nystroem(gamma=scale_gamma(X), n_components=N_COMPONENTS, random_state=0)
    fit_seconds, features = seconds(lambda: model.fit_transform(X))
    return fit_seconds, float(1.0 - (features**2).sum(axis=1).mean())


def kernel_pca():
    """The eigenproblem of the centred matrix is timed; the residual is that of the plain one."""
    X = load(N_FEW)
    gamma = scale_gamma(X)
    model = KernelPCA(N_COMPONENTS, kernel="rbf", gamma=gamma, eigen_solver="arpack")
    fit_seconds, _ = seconds(lambda: model.fit(X))
    values = eigsh(rbf_kernel(X, gamma=gamma), N_COMPONENTS, return_eigenvectors=False)
    return fit_seconds, float(1.0 - values.sum() / N_FEW)
