"""Entries of docstrings that the estimators of vectors that move share word for word."""

from __future__ import annotations

__all__ = ["ENTRIES"]

ENTRIES = {
    "n_components": """
n_components : int or "auto", default=50
    The budget: the number of vectors of the whole model. ``"auto"``: see `max_bytes`.""",
    "kernel": """
kernel : str or Kernel, default="rbf"
    ``"linear"``, ``"polynomial"`` (or ``"poly"``), ``"rbf"``, ``"laplacian"``, ``"cosine"``,
    ``"cosine_polynomial"`` or a value of `pursuit.kernels`: positive semidefinite, with a
    derivative.""",
    "kernel_params": """
kernel_params : mapping, default=None
    Refused: a callable has no derivative. Here so that all estimators take the same arguments.""",
    "C": """
C : float, default=10.0
    Price of the loss of a row of weight 1.""",
    "metric": """
metric : {None, "diagonal", "full", "auto"} or int, default=None
    Coordinates in which the kernel measures distances. None: those of X. ``"diagonal"`` and
    ``"full"``: learned from the slopes of the function in a few rounds, of which held-out
    rows choose the best. A number: the rank of a linear map that moves with the vectors, from
    the principal axes on. ``"auto"``: see `max_bytes`.""",
    "learn_gamma": """
learn_gamma : bool, default=False
    Whether the kernel's gamma moves with the vectors: the number, or each of those of the features
    where `gamma` is an array and there is no `metric`.""",
    "init": """
init : {"random", "kmeans", "matching_pursuit"}, array-like or fitted model, default="random"
    Where the vectors start: at rows drawn in proportion to their weights; at centres of
    clusters; at the rows that kernel matching pursuit chooses; at the rows of an array of
    shape (n_components, n_features); at the vectors of a fitted model, and at its map where
    both have a metric of one rank, or learn one of the same form.""",
    "n_init": """
n_init : int, default=1
    Number of starts with ``"random"`` and ``"kmeans"``; that of the lowest energy is kept.""",
    "early_stopping": """
early_stopping : bool, default=False
    Whether rows are held out, on which the best iteration is chosen. The coefficients are
    fitted to all rows in the end.""",
    "validation_fraction": """
validation_fraction : float, default=0.1
    Share of the rows that early stopping holds out.""",
    "n_iter_no_change": """
n_iter_no_change : int, default=5
    Early stopping looks at the held-out rows every 5 iterations, and ends after so many looks
    without a better one.""",
    "scoring": """
scoring : str or callable, default=None
    What held-out rows are scored by, as in scikit-learn. None: ``score``.""",
    "max_iter": """
max_iter : int, default=60
    Iterations of L-BFGS on all rows at most; 0 leaves the vectors where they start. With many
    rows, 30 on each growing part of them come first; with many features, nine in ten
    take place on the leading principal axes, where nothing is held out.""",
    "tol": """
tol : float, default=1e-4
    The iteration ends where the energy falls by no more than this share an iteration, on
    average over 5 of them.""",
    "warm_start": """
warm_start : bool, default=False
    Whether a second ``fit`` starts from the vectors, the kernel and the metric of the first.""",
    "max_bytes": """
max_bytes : int, default=None
    Budget for the model's numbers, in bytes. ``n_components="auto"`` then takes as many vectors
    as fit, ``metric="auto"`` the rank and ``precision=None`` the rounding that held-out rows
    like best.""",
    "precision": """
precision : {None, "float64", "float32", "float16", "int8"}, default=None
    How the model's numbers are rounded, after which the coefficients are fitted anew. With
    ``"int8"`` each takes a byte, beside two numbers for each column of the vectors and of the
    map and for each output. None: not at all, or what `max_bytes` chooses.""",
    "random_state": """
random_state : int, RandomState or None, default=None
    For the start and the parts of the rows.""",
    "support_vectors_": """
support_vectors_ : ndarray of shape (n_components_, n_features)
    The vectors, which are no rows of X. With a metric, in the coordinates ``X @ metric_``.""",
    "kernel_": """
kernel_ : Kernel
    The kernel with its numbers.""",
    "expansion_": """
expansion_ : KernelExpansion
    The fitted function.""",
    "n_components_": """
n_components_ : int
    Number of vectors, below `n_components` where there are fewer rows.""",
    "energy_": """
energy_ : float
    The energy.""",
    "energy_path_": """
energy_path_ : ndarray of shape (n_iter_ + 1,)
    The energy on all rows that are fitted and in all their coordinates, at the start of these
    iterations and after each.""",
    "n_iter_": """
n_iter_ : int
    Iterations on all rows in all their coordinates.""",
    "stop_reason_": """
stop_reason_ : {"tol", "max_iter", "early_stopping", "callback", "interrupt"}
    Why they ended.""",
    "metric_": """
metric_ : ndarray of shape (n_features, rank) or None
    The map to the kernel's coordinates.""",
    "metric_losses_": """
metric_losses_ : ndarray
    Mean held-out loss of each round of a learned metric, that of none (or of the metric of
    `init`) first.""",
    "feature_relevances_": """
feature_relevances_ : ndarray of shape (n_features,)
    Share of each feature in the mean squared slope of the function, by its standard deviation.""",
    "nearest_rows_": """
nearest_rows_ : ndarray of int of shape (n_components_,)
    The training row nearest to each vector, as an index into the caller's X.""",
    "error_quantiles_": """
error_quantiles_ : ndarray of shape (n_levels, n_targets)
    Quantiles of the absolute leave-one-out errors, for `predict_interval`.""",
    "loss_": """
loss_ : Loss
    The loss with its numbers.""",
    "nbytes_": """
nbytes_ : int
    Bytes of the numbers of the model: vectors, map, coefficients and constants.""",
    "precision_": """
precision_ : str
    How they are stored.""",
    "rounding_loss_": """
rounding_loss_ : float
    With `max_bytes`: what rounding takes from the score on rows that were held out when sizes
    were compared.""",
    "gammas": """
gammas : sequence of float or array, default=None
    Values of `gamma` to try. None: 1/4, 1 and 4 times ``"scale"``; `gamma` alone where that is
    not ``"scale"`` or the kernel has none; ``"scale"`` alone where the fit moves gamma
    (`learn_gamma`, or a metric that is learned).""",
    "Cs": """
Cs : sequence of float, default=None
    Values of `C` to try. None: `C` / 10, `C` and 10 `C`.""",
    "metrics": """
metrics : sequence, default=None
    Values of `metric` to try. None: `metric` alone. A metric that is learned is so in a fold's
    first point; every other one goes on from its neighbour's.""",
    "rule": """
rule : {"min", "one_se"}, default="min"
    ``"min"``: the best mean score over the folds; ``"one_se"``: of those within one standard
    error of the best the smallest C, then the smallest gamma. Of equal ones the smallest, too.""",
    "search_iter": """
search_iter : int, default=15
    Iterations at most at each point of the grid but the first of each fold, which has
    `max_iter`.""",
    "sizes": """
sizes : {None, "auto"} or sequence of int, default=None
    Numbers of vectors to choose from once the other parameters are chosen, none above
    `n_components`: vectors are dropped and the others move on, `search_iter` iterations a step,
    as in `pursuit.frontier`. The folds choose by `rule`, the fewest of equally good ones.
    ``"auto"``: `n_components` and eight more, each the last over the root of two. None:
    `n_components` as it is.""",
    "n_jobs": """
n_jobs : int, default=None
    Folds that are searched at the same time, as in scikit-learn.""",
    "cv_results_": """
cv_results_ : dict of str to array
    The scores of each point of the grid, in the columns of scikit-learn's searches.""",
    "best_index_": """
best_index_, best_params_, best_score_ : int, dict, float
    The row of ``cv_results_`` that was chosen, its C, gamma and metric, its mean score. With
    `sizes` the parameters and the score are those of the size chosen.""",
    "frontier_": """
frontier_ : Frontier
    With `sizes`: the winner on all rows at each size, with the mean scores over the folds.""",
}
