"""Numpydoc sections that several estimators share, written once.

`with_shared_sections` puts the description of every parameter of a class's ``__init__``, in
the order of its signature, and of its fitted attributes where the class docstring says
``{shared}``. A parameter without a description is an error at import time.

`with_inherited_sections` serves an estimator that adds a little to another one.

`with_entries` serves every other estimator: a line ``{gamma}`` in its docstring stands for the
entry of that name in `ENTRIES`. Only entries that are equal word for word are shared.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, TypeVar

__all__ = ["ENTRIES", "with_entries", "with_inherited_sections", "with_shared_sections"]

Class = TypeVar("Class", bound=type[Any])

PARAMETERS = {
    "n_components": """
n_components : int or (one-vs-rest) sequence of int, default=100
    The budget: the maximum number of vectors of the whole model. With
    ``multi_class="ovr"`` the classes take turns until it is spent, or each has the budget
    that a sequence of one integer a class gives it. For ``fitting="basic"`` it is the number
    of steps, some of which may come back to a function chosen before. The CV classes choose
    the number of components up to it.""",
    "kernel": """
kernel : str, Kernel, callable or mapping, default="rbf"
    ``"linear"``, ``"polynomial"`` (or ``"poly"``), ``"rbf"``, ``"laplacian"``,
    ``"sigmoid"``, ``"cosine"``, ``"cosine_polynomial"``, ``"precomputed"``, a value of
    `pursuit.kernels`, or a callable ``(X, Z, **kernel_params) -> matrix`` of shape
    (n_rows, n_centres), which need be neither symmetric nor positive definite, and for
    which rows may be objects of any kind, such as words: X is then a list of them. For a
    classifier also a mapping of each label to one of these: the kernel of functions centred
    on rows of that class.""",
    "gamma": """
gamma : {"scale", "auto"}, float or array of shape (n_features,), default="scale"
    Coefficient of the rbf, laplacian, polynomial and sigmoid kernels. ``"scale"`` is
    1 / (n_features * Var(X)) over the weighted rows, ``"auto"`` is 1 / n_features.
    An array holds one for each feature: rbf, laplacian, chi2.""",
    "degree": """
degree : float, default=3
    Degree of the polynomial and cosine polynomial kernels.""",
    "coef0": """
coef0 : float, default=1
    Constant of the polynomial, sigmoid and cosine polynomial kernels.""",
    "kernel_params": """
kernel_params : mapping, default=None
    Keyword arguments of a callable kernel.""",
    "fitting": """
fitting : {"prefit", "backfit", "basic"}, default="prefit"
    How a function is chosen. ``"prefit"``: together with the best coefficients of all
    (eq. 7); ``"backfit"``: by its own coefficient, then all are optimised (eq. 6);
    ``"basic"``: by its own coefficient, which alone is updated (eq. 3-5).""",
    "loss": """
loss : str or Loss, default="squared_error"
    What the fit minimises, by name or as a value of `pursuit.losses` (or any object with the
    methods ``value``, ``gradient`` and ``curvature`` of one). For classifiers
    ``"squared_error"``, ``"squared_error_tanh"``, ``"exponential"``, ``"logit_boost"``,
    ``"doom2"``, ``"hinge"`` (a support vector machine on the functions at every step),
    ``"smooth_hinge"``, ``"squared_hinge"`` and ``"log_loss"`` (the softmax cross-entropy for more
    than two classes on shared functions); for regressors
    ``"squared_error"``, ``"huber"``, ``"absolute_error"``, ``"quantile"`` and ``"poisson"``
    (whose output is the logarithm of the mean that ``predict`` gives).""",
    "refit_every": """
refit_every : int, default=1
    All coefficients are fitted anew after every so many steps and after the last one; in
    between only that of the new function is (figure 4). ``truncate(n)`` has optimal coefficients
    at multiples of it. Only 1 for ``fitting="basic"``.""",
    "selection": """
selection : {"loss", "squared_error"}, default="loss"
    What chooses the functions: the gradient of the loss, with one pass over the candidates a
    step, or the squared error on the same targets, with one pass in all. The coefficients
    are fitted under `loss` either way. No difference for ``loss="squared_error"``.""",
    "dictionary": """
dictionary : object, default=None
    The candidate functions. None: the kernel centred on training samples. A table of
    shape (n_centres, n_features): centres. A value of `pursuit.kernels`: that kernel, centred on
    the rows. ``OrientedGaussians()``: Gaussians shaped like the neighbourhood of each row. A
    mapping of names to functions of X. A list of such parts: all of them, of which
    ``component_names_`` says which were chosen.""",
    "n_candidates": """
n_candidates : int or float, default=None
    Number, or fraction in (0, 1], of training rows in the dictionary, drawn at random. None:
    all rows up to 10 000; above that 2500, or ``5 * n_components`` if that is more.""",
    "fit_intercept": """
fit_intercept : bool, default=True
    Whether to fit a constant, which is not penalised and not counted in `n_components`.""",
    "alpha": """
alpha : float or "auto", default="auto"
    Ridge: alpha times the squared norm of the coefficients (see `penalty`) is added to the
    weighted sum of the losses. ``"auto"`` is 0.01 for losses that need not have a finite minimum
    (all margin losses but ``"squared_error_tanh"``, and ``"poisson"``), and 0 for the others.""",
    "penalty": """
penalty : {"identity", "norm"}, default="identity"
    What the ridge counts as large: the coefficients, or the function. ``"norm"``: alpha times
    the squared norm ``a'Ka`` of the function in the space of the kernel, as in a support vector
    machine with C = 1/alpha (eq. 13); for functions of one positive semidefinite kernel.""",
    "always": """
always : mapping or sequence, default=None
    Functions that are always in, not penalised and not counted in `n_components`, as the constant
    is ("semi-parametric" models, section 4.1): functions of X by name, or a list of columns of
    X by number or name, and of such mappings. Not for ``fitting="basic"``.""",
    "multi_class": """
multi_class : {"shared", "ovr"}, default="shared"
    One set of functions for all classes, chosen by the error summed over them, or one set
    for each class against the rest (as in the paper). No difference for two classes.""",
    "class_weight": """
class_weight : mapping, "balanced" or None, default=None
    Weights of the classes, multiplied with the sample weights. ``"balanced"`` gives each
    class the same total weight.""",
    "early_stopping": """
early_stopping : {False, True, "loo", "bound"}, default=False
    Keep the number of functions with the lowest loss (the smallest such number) on held-out rows
    (True; or with the best `scoring`), in closed-form leave-one-out (``"loo"``, for
    ``loss="squared_error"`` with ``refit_every=1`` and not for ``fitting="basic"``), or with the
    lowest bound on the probability of an error (``"bound"``, theorem 3 of Hussain and Shawe-Taylor
    2008; see
    `pursuit.bounds.matching_pursuit_bound`). False: use the whole budget.""",
    "error_tolerance": """
error_tolerance : float, default=None
    For ``early_stopping="bound"``: a row is an error where a prediction is further from its target
    than this. None: half the standard deviation of the targets.""",
    "validation_fraction": """
validation_fraction : float, default=0.1
    Fraction of the rows held out for ``early_stopping=True`` where ``fit`` is given none;
    drawn by class for a classifier. These rows are not trained on.""",
    "warm_start": """
warm_start : bool, default=False
    Whether a further ``fit`` to the same rows with the same parameters and a larger
    `n_components` goes on from the last one, whose Gram matrix is kept for it. The model equals
    that of a fit from the beginning; if anything else has changed, the fit is one.""",
    "n_iter_no_change": """
n_iter_no_change : int, default=None
    With early stopping, look no further than this many steps after the best. None: look at
    the whole budget.""",
    "tol": """
tol : float, default=0.0
    With early stopping, the least improvement of the loss or score that counts. Without, the mean
    training loss at which the path ends (0: never).""",
    "route": """
route : {"auto", "gram", "direct"}, default="auto"
    ``"gram"`` computes the Gram matrix of the candidates once (memory M^2), ``"direct"`` only
    the rows of it that are needed. Both give the same model to rounding; ``"auto"`` takes
    the cheaper one that fits in scikit-learn's ``working_memory``.""",
    "gammas": """
gammas : sequence of float or array, default=None
    Values of `gamma` to try. None: seven multiples of ``"scale"`` from 1/256 to 16, or
    `gamma` alone where that is not ``"scale"`` or the kernel has none.""",
    "cv": """
cv : int, splitter or iterable, default=5
    Number of folds (by class for a classifier), a scikit-learn splitter, or pairs of index
    arrays.""",
    "scoring": """
scoring : str or callable, default=None
    What numbers of components are compared by, on the folds or the held-out rows of
    ``early_stopping=True``: a name of scikit-learn's, or a callable ``(estimator, X, y) -> float``,
    larger is better; with the sample weights where it takes them. None: the loss of the fit. A
    score costs a prediction a step, the loss next to nothing.""",
    "rule": """
rule : {"min", "one_se"}, default="min"
    ``"min"``: the best mean over the folds; ``"one_se"``: the smallest number of components whose
    mean is within one standard error of the best.""",
    "n_jobs": """
n_jobs : int, default=None
    Values of gamma that are searched at the same time, as in scikit-learn; the folds of one share
    their sums.""",
    "search_candidates": """
search_candidates : int, float or None, default=None
    Number, or fraction in (0, 1], of the candidates, drawn at random, with which gamma and the
    number of components are chosen; the fit on all rows then has all of them. None: 1000, or
    ``5 * n_components`` if that is more; 1.0: all.""",
    "random_state": """
random_state : int, RandomState or None, default=None
    For the random candidates and the held-out rows. None: the candidates follow from the rows
    themselves (those of smallest hash), so that two fits agree; held-out rows are drawn anew.""",
}

ATTRIBUTES = """
support_ : ndarray of int of shape (n_support,)
    Indices into the caller's X of the centres, in order of choice (-1 for a function without
    one); absent if none is a training row.
support_vectors_ : {ndarray, CSR matrix} of shape (n_support, n_features)
    The centres; absent for a precomputed kernel and where a function has none.
component_names_ : list of str
    What each function is: its kernel with its numbers, or the name that the user gave it. Those
    that are always in come first.
dual_coef_ : ndarray of shape (n_outputs, n_support)
    Coefficients of the kernel functions.
intercept_ : ndarray of shape (n_outputs,)
    Constants.
n_components_ : int
    Number of functions chosen; `always` ones are not counted.
n_candidates_ : int
    Number of functions that these were chosen among: with more than 10 000 rows not all of them
    by default.
n_iter_ : int
    Number of steps of the model: what ``staged_predict`` yields and ``truncate`` accepts.
stop_reason_ : str
    ``"n_components"`` (budget used up), ``"tol"``, ``"early_stopping"``, ``"rank"`` (no other
    candidate is independent), ``"zero_residual"`` (targets explained), ``"no_gain"``,
    ``"callback"`` or ``"interrupt"``.
train_loss_path_ : ndarray of shape (n_iter_,)
    Weighted mean loss (classes are targets +1 and -1), averaged over the outputs unless the loss
    couples them, after 1, 2, ... steps.
loss_ : Loss
    The loss with its numbers resolved.
kernel_ : Kernel or None
    The kernel with its numbers resolved, if all functions have one.
expansion_ : KernelExpansion
    The fitted function. ``expansion_(X)`` gives the outputs of shape (n_rows, n_outputs)
    without any check of X.
path_ : CoefficientPath
    What gives the coefficients of every prefix.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of str
    Names of the features, if X had them.
"""

HELD_OUT_ATTRIBUTES = """
validation_loss_path_, validation_score_path_, leave_one_out_loss_path_, bound_path_ : \
ndarray of shape (n_seen,)
    What early stopping followed, up to the last step examined; only the one that applies
    exists.
error_tolerance_ : float
    The tolerance of ``early_stopping="bound"``; regressors only.
"""

CLASS_ATTRIBUTES = """
classes_ : ndarray of shape (n_classes,)
    Sorted labels.
temperature_ : float
    Temperature of the softmax (sigmoid for two classes) of the probabilities. Losses that are
    likelihoods (log-loss, cross-entropy, LogitBoost) have their own, unless the rows were learned
    by heart; for the others it is fitted on leave-one-out decision values of at most 1000 evenly
    spaced training rows.
"""

INTERVAL_ATTRIBUTES = """
error_quantiles_ : ndarray of shape (n_levels, n_targets) or None
    Quantiles of the absolute leave-one-out errors, for `predict_interval`; None after
    ``truncate`` of a model that was saved without its path, or for a path of no steps.
"""

CV_ATTRIBUTES = """
gamma_ : float or str
    The gamma chosen.
gammas_ : list of length n_gammas
    Those tried.
cv_loss_path_ : ndarray of shape (n_gammas, n_folds, n_components)
    Mean loss on the test part of each fold after 1, 2, ... steps.
cv_results_ : dict of str to array
    The scores of each gamma and number of steps, in the columns of scikit-learn's searches.
best_index_, best_params_, best_score_ : int, dict, float
    The row of ``cv_results_`` that was chosen, its gamma and n_components, its mean score.
"""


def with_shared_sections(cls: Class) -> Class:
    """Replace ``{shared}`` in the docstring of an estimator class (a class decorator)."""
    names = list(inspect.signature(cls.__init__).parameters)[1:]
    attributes = ATTRIBUTES.strip()
    extras = (
        ("early_stopping", HELD_OUT_ATTRIBUTES),
        ("class_weight", CLASS_ATTRIBUTES),
        ("cv", CV_ATTRIBUTES),
    )
    for name, text in extras:
        if name in names:
            attributes += "\n" + text.strip()
    if "class_weight" not in names:
        attributes += "\n" + INTERVAL_ATTRIBUTES.strip()
    parameters = "\n".join(PARAMETERS[name].strip() for name in names)
    shared = f"Parameters\n----------\n{parameters}\n\nAttributes\n----------\n{attributes}"
    indented = shared.replace("\n", "\n    ").replace("\n    \n", "\n\n")
    cls.__doc__ = (cls.__doc__ or "").replace("{shared}", indented)
    return cls


ENTRIES = {
    "gamma": """
gamma : {"scale", "auto"}, float or array of shape (n_features,), default="scale"
    Coefficient of the rbf, laplacian, polynomial, sigmoid and chi2 kernels. ``"scale"`` is
    1 / (n_features * Var(X)) over the weighted samples, ``"auto"`` is 1 / n_features.
    An array holds one for each feature: rbf, laplacian, chi2.""",
    "degree": """
degree : float, default=3
    Degree of the polynomial and cosine polynomial kernels.""",
    "coef0": """
coef0 : float, default=1
    Constant of the polynomial, sigmoid and cosine polynomial kernels.""",
    "kernel_params": """
kernel_params : mapping, default=None
    Keyword arguments of a callable kernel.""",
    "class_weight": """
class_weight : mapping, "balanced" or None, default=None
    Weights of the classes, multiplied with the sample weights. ``"balanced"`` gives each
    class the same total weight.""",
    "classes_": """
classes_ : ndarray of shape (n_classes,)
    Sorted labels.""",
    "n_features_in_": """
n_features_in_ : int
    Number of features.""",
    "feature_names_in_": """
feature_names_in_ : ndarray of str of shape (n_features,)
    Names of the features, if X had them.""",
}


def with_entries(cls: Class) -> Class:
    """Replace each line ``{name}`` of a class's docstring by the entry of that name.

    The entries are those here, and those of the class's family in its ``_entries``.
    """
    entries: dict[str, str] = ENTRIES | getattr(cls, "_entries", {})

    def entry(match: re.Match[str]) -> str:
        indent = match[1]
        return indent + entries[match[2]].strip().replace("\n", "\n" + indent)

    cls.__doc__ = re.sub(r"^( +)\{(\w+)\}$", entry, cls.__doc__ or "", flags=re.MULTILINE)
    return cls


def with_inherited_sections(cls: Class) -> Class:
    """Put the base's entries where a docstring says ``{parameters}`` and ``{attributes}``.

    The base is the nearest one with a ``Parameters`` section; entries that the class has itself are
    left out.
    """
    own = set(re.findall(r"^    (\w+) : ", cls.__doc__ or "", flags=re.MULTILINE))
    base = next(b for b in cls.__mro__[1:] if "\n    Parameters\n" in (b.__doc__ or ""))
    for name in ("Parameters", "Attributes"):
        after = str(base.__doc__).partition(f"    {name}\n    {'-' * len(name)}\n    ")[2]
        entries = re.split(r"\n+    [A-Z][A-Za-z ]+\n    -+\n", after)[0]
        listed = re.split(r"\n(?=    \S)", entries)
        kept = (each for each in listed if each.split(" : ")[0].strip() not in own)
        entries = "\n".join(kept).lstrip()
        cls.__doc__ = (cls.__doc__ or "").replace(f"{{{name.lower()}}}", entries)
    return cls
