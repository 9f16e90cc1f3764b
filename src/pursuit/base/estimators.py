"""What every estimator with a kernel expansion shares: reading data, and prediction.

A fit ends in a `KernelExpansion`, and a classifier has a temperature beside it; predictions,
probabilities and fitted attributes follow from these alone. What a path of expansions adds is in
``estimator.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from pursuit._objects import as_objects, check_coordinates
from pursuit._typing import Array
from pursuit._validation import (
    Samples,
    announced_classes,
    check_choice,
    check_integer,
    check_several_classes,
    check_weights,
    class_codes,
    class_numbers,
    class_weights,
    read_data,
    signed_targets,
)
from pursuit.base.arrays import FollowsX, native, through_host
from pursuit.expansion.expansion import KernelExpansion
from pursuit.expansion.explanations import (
    Explanation,
    ProductKernel,
    largest_terms,
    product_kernel,
)
from pursuit.expansion.gradients import relevances
from pursuit.expansion.leave_one_out import left_out_outputs
from pursuit.expansion.predictor import Answers, Classes, Numbers, Predictor, squeeze_binary
from pursuit.expansion.probabilities import fit_temperature, log_probabilities, probabilities
from pursuit.kernels import Kernel, Precomputed, is_precomputed, resolve_kernel

__all__ = [
    "ExpansionClassifier",
    "ExpansionEstimator",
    "ExpansionRegressor",
    "ProbabilisticClassifier",
    "squeeze_binary",
]


class ExpansionEstimator(FollowsX, BaseEstimator):
    """Base of estimators whose fitted model is a `KernelExpansion`.

    A subclass's ``fit`` reads its data by `_read` and ends with `_store_expansion`.
    """

    n_components: Any

    def __sklearn_tags__(self) -> Any:
        """Sparse input is accepted; a precomputed kernel makes the input pairwise."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(getattr(self, "kernel", None))
        return tags

    def _store_expansion(self, expansion: KernelExpansion, rows: Array | None = None) -> None:
        """Set the fitted attributes; `rows` are the training rows behind the vectors, if any."""
        atoms = expansion.atoms
        self.expansion_ = expansion
        self.kernel_ = atoms.kernel
        self.dual_coef_ = expansion.coefficients
        self.intercept_ = expansion.intercept
        self.n_components_ = len(atoms)
        for name in ("support_", "support_vectors_"):
            if hasattr(self, name):
                delattr(self, name)
        if rows is not None:
            self.support_ = rows
        if not isinstance(atoms.kernel, Precomputed) and atoms.centres is not None:
            self.support_vectors_ = as_objects(atoms.centres)

    @property
    def component_names_(self) -> list[str]:
        """What each function is: its kernel with its numbers, or the user's name for it."""
        return self.expansion_.atoms.names

    def _validated(self, X: Any) -> Any:
        """Rows for prediction, checked against those of ``fit``."""
        if not hasattr(self, "expansion_"):
            check_is_fitted(self)
        return read_data(self, X, reset=False, accept_sparse="csr")

    def _outputs(self, X: Any) -> Array:
        """Outputs of the expansion on checked rows, (n_rows, n_outputs)."""
        rows = self._validated(X)
        return self.expansion_(rows)

    def _answers(self) -> Answers:
        """What the outputs mean."""
        raise NotImplementedError

    def _decided(self, X: Any) -> Array:
        """Decision values of rows; the outputs first, which need a fitted model."""
        outputs = self._outputs(X)
        return self._answers().decision(outputs)

    def _predicted(self, X: Any) -> Array:
        """Labels or numbers of rows."""
        outputs = self._outputs(X)
        return self._answers().prediction(outputs)

    @through_host
    def predictor(self) -> Predictor:
        """Freeze the fitted function for one row, or few, at a time.

        Returns
        -------
        predictor : Predictor
            Its ``decision`` and ``predict`` take a row or rows and check their shape alone. It
            shares the arrays of the model and knows nothing of a later ``fit``.

        Raises
        ------
        ValueError
            If the rows of ``fit`` were objects.
        """
        check_is_fitted(self)
        if hasattr(self, "_fitted_on_objects"):
            raise ValueError("predictor needs rows of numbers: the rows of fit were objects")
        return Predictor(self.expansion_, self._answers(), self.n_features_in_)

    @through_host
    def explain(self, X: Any, n: int = 5) -> Explanation:
        """The largest terms a_k K(x, z_k) of the function at each row.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.
        n : int, default=5
            How many terms at most.

        Returns
        -------
        explanation : Explanation
            A named tuple: ``contributions`` (the terms, largest in absolute value first),
            ``vectors`` (which of the model's vectors each belongs to), ``rows`` (which training
            row that is, or of vectors that moved the nearest one; None where the model does not
            know), ``rest`` (the sum of the other terms) and ``intercept``. Contributions, rest and
            intercept sum to the outputs: the decision values, or what ``predict`` gives before the
            link of the loss.
        """
        check_integer("n", n)
        rows = self._validated(X)
        known = getattr(self, "support_", getattr(self, "nearest_rows_", None))
        return largest_terms(self.expansion_, rows, int(n), known)

    @through_host
    def feature_relevances(self, X: Any, sample_weight: Any = None) -> Array:
        """Share of each feature in the mean squared slope of the function over some rows.

        Slopes are measured by the standard deviation of each feature on these rows, and summed
        over the outputs.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        relevances : ndarray of shape (n_features,)
            They sum to 1, or are all zero where the function is constant.

        Raises
        ------
        ValueError
            If the kernel or a function of the dictionary has no derivative here.
        """
        rows = self._validated(X)
        check_coordinates(rows, "feature_relevances", "need")
        weights = check_weights(sample_weight, rows.shape[0])
        return relevances(self.expansion_, rows, weights / weights.sum())

    @through_host
    def product_kernel(self, output: int = 0) -> ProductKernel:
        """One output in the fields of ``shapiq``'s ``ProductKernelModel``, for Shapley values.

        Parameters
        ----------
        output : int, default=0
            Which output: the class, or the target; 0 for two classes.

        Returns
        -------
        product_kernel : ProductKernel
            A named tuple; with a diagonal metric its vectors and rows are in the coordinates
            ``X @ metric_``. Its ``shapley_values`` are exact, as shapiq's are.

        Raises
        ------
        ValueError
            If the kernel is not the rbf or the laplacian one, or a metric mixes features.
        """
        check_is_fitted(self)
        n_outputs = len(self.intercept_)
        if not (isinstance(output, int | np.integer) and 0 <= output < n_outputs):
            raise ValueError(f"output must be an integer from 0 to {n_outputs - 1}, got {output!r}")
        return product_kernel(self.expansion_, int(output))

    def _resolved_kernel(self, samples: Samples, **changed: Any) -> Kernel:
        """The kernel with its numbers taken from rows; some arguments may be `changed`."""
        names = ("kernel", "gamma", "degree", "coef0", "kernel_params")
        arguments = {name: getattr(self, name) for name in names} | changed
        return resolve_kernel(X=samples.X, sample_weight=samples.weights, **arguments)

    def _budgets(self, n_outputs: int) -> list[int]:
        """Budget of each basis: one basis for all outputs."""
        check_integer("n_components", self.n_components)
        return [int(self.n_components)]

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Checked training rows, targets as a table, weights."""
        raise NotImplementedError

    def _seen(self, samples: Samples) -> Array:
        """Targets as the user gave them."""
        raise NotImplementedError


class ProbabilisticClassifier:
    """Class probabilities, and their logarithms, by the softmax of decision values."""

    def _scaled_values(self, X: Any) -> tuple[Array, float]:
        """Decision values, one column for two classes, else one each; and what multiplies them."""
        raise NotImplementedError

    @native
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities: softmax of the decision values, over ``temperature_`` if any.

        The largest probability is always that of the class that ``predict`` gives.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        return probabilities(*self._scaled_values(X))

    @native
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the class probabilities, exact where these are too small for a number.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``; -inf for a class that is impossible.
        """
        return log_probabilities(*self._scaled_values(X))


class ExpansionClassifier(ProbabilisticClassifier, ExpansionEstimator):
    """Prediction of classes from decision values: one column for two classes, else one each."""

    classes_: Array
    temperature_: float
    multi_class: str
    class_weight: Mapping[Any, float] | str | None

    def _budgets(self, n_outputs: int) -> list[int]:
        """One budget for a shared basis, or one a class."""
        check_choice("multi_class", self.multi_class, ("shared", "ovr"))
        per_class = np.ndim(self.n_components) == 1
        if self.multi_class == "shared" or (n_outputs == 1 and not per_class):
            return super()._budgets(n_outputs)
        if not per_class:
            (total,) = super()._budgets(n_outputs)
            each, left = divmod(total, n_outputs)
            return [each + (b < left) for b in range(n_outputs)]
        if len(self.n_components) != n_outputs:
            raise ValueError(
                f"n_components has {len(self.n_components)} entries, but there are {n_outputs} "
                "one-vs-rest bases"
            )
        for budget in self.n_components:
            check_integer("n_components", budget)
        return [int(budget) for budget in self.n_components]

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Checked rows, targets +1 and -1, weights with those of the classes."""
        X, y = read_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        weights = check_weights(sample_weight, X.shape[0])
        self.classes_, codes = np.unique(y, return_inverse=True)
        present = np.bincount(codes, weights=weights > 0) > 0
        if not present.all():
            self.classes_ = self.classes_[present]
            codes = np.maximum(np.cumsum(present)[codes] - 1, 0)
        self._class_weights = class_weights(self.class_weight, self.classes_, codes, weights)
        check_several_classes(self.classes_)
        if not self._class_weights.all():
            unweighted = self.classes_[self._class_weights == 0][0]
            raise ValueError(f"class_weight is zero for the class {unweighted}")
        Y = signed_targets(codes, len(self.classes_))
        scales = self._class_weights[codes]
        return Samples(X, Y, weights * scales, scales)

    def _read_announced(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, *, first: bool
    ) -> Samples:
        """As `_read`, of rows of a stream, whose first call announces all classes."""
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight='balanced' needs all rows; for partial_fit give the weights as a "
                "mapping, or sample_weight"
            )
        X, y = read_data(self, X, y, reset=first, accept_sparse="csr")
        check_classification_targets(y)
        labels = announced_classes(classes, getattr(self, "classes_", None))
        codes = class_numbers(y, labels)
        weights = check_weights(sample_weight, X.shape[0])
        self._class_weights = class_weights(self.class_weight, labels, codes, weights)
        self.classes_, scales = labels, self._class_weights[codes]
        return Samples(X, signed_targets(codes, len(labels)), weights * scales, scales)

    def _seen(self, samples: Samples) -> Array:
        """Targets as the user gave them: labels."""
        labels: Array = self.classes_[class_codes(samples.Y)]
        return labels

    def _fit_temperature(self, samples: Samples) -> None:
        """The temperature of the highest likelihood on the training rows' decision values.

        Less the vectors on which a row has the only say: of these no other row knows anything.
        """
        values = left_out_outputs(self.expansion_, samples)
        self.temperature_ = fit_temperature(values, class_codes(samples.Y), samples.weights)

    @native
    def decision_function(self, X: Any) -> Array:
        """Decision values.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one value, positive for ``classes_[1]``.
        """
        return self._decided(X)

    @native
    def predict(self, X: Any) -> Array:
        """Class labels.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        return self._predicted(X)

    def _scaled_values(self, X: Any) -> tuple[Array, float]:
        """The decision values, over the temperature."""
        return self._outputs(X), 1.0 / self.temperature_

    def _answers(self) -> Answers:
        """Labels by the largest output."""
        return Classes(self.classes_)


class ExpansionRegressor(ExpansionEstimator):
    """Prediction of numbers: one column a target, or a vector for a 1-d target."""

    _one_dimensional: bool

    def __sklearn_tags__(self) -> Any:
        """Several targets are accepted."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _read(self, X: Any, y: Any, sample_weight: Any, *, first: bool = True) -> Samples:
        """Checked rows, targets as a table, weights; of a stream the `first` ones or later ones."""
        X, y = read_data(
            self, X, y, reset=first, accept_sparse="csr", multi_output=True, y_numeric=True
        )
        weights = check_weights(sample_weight, X.shape[0])
        if first:
            self._one_dimensional = y.ndim == 1
        return Samples(X, np.asarray(y, dtype=np.float64).reshape(X.shape[0], -1), weights)

    @native
    def predict(self, X: Any) -> Array:
        """Predicted targets.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            In the form of the training targets.
        """
        return self._predicted(X)

    def _seen(self, samples: Samples) -> Array:
        """Targets as the user gave them: numbers."""
        return samples.Y[:, 0] if self._one_dimensional else samples.Y

    def _answers(self) -> Answers:
        """Numbers in the form of the training targets, by the link of the loss."""
        return Numbers(self._one_dimensional, getattr(self, "loss_", None))
