"""Paths of moved vectors, from many to few."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits, make_moons
from sklearn.svm import SVC

from pursuit import (
    Frontier,
    KernelMatchingPursuitClassifier,
    SparseKernelClassifier,
    SparseKernelRegressor,
    frontier,
)
from pursuit._validation import Samples
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.kernels import RBF
from pursuit.moving_vectors.frontier import expansion_bytes, removal_order


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(400, noise=0.2, random_state=0)
    return X[:200], y[:200], X[200:], y[200:]


@pytest.fixture(scope="module")
def path(moons):
    X, y, X_val, y_val = moons
    model = SparseKernelClassifier(16, gamma=2.0, max_iter=30, random_state=0)
    return frontier(model, X, y, X_val=X_val, y_val=y_val)


def energy_of(Z, kernel, X, Y, weights):
    """Lowest energy on given vectors, plainly."""
    K = np.column_stack([kernel(X, Z), np.ones(len(X))])
    penalty = np.zeros((len(Z) + 1,) * 2)
    penalty[:-1, :-1] = kernel(Z, Z)
    H = penalty + 2 * K.T @ (weights[:, None] * K)
    point = np.linalg.solve(H, 2 * K.T @ (weights[:, None] * Y))
    left = Y - K @ point
    return 0.5 * np.trace(point.T @ penalty @ point) + weights @ (left**2).sum(axis=1), point


def test_the_vector_goes_whose_removal_raises_the_energy_least(rng):
    X, Y, weights = rng.normal(size=(60, 2)), rng.normal(size=(60, 2)), rng.uniform(0.1, 3, size=60)
    Z, kernel = rng.normal(size=(7, 2)), RBF(0.5)
    point = energy_of(Z, kernel, X, Y, weights)[1]
    expansion = KernelExpansion(Atoms(kernel, Z), point[:-1].T.copy(), point[-1])
    found = removal_order(expansion, Samples(X, Y, weights), 4)
    left = list(range(7))
    for dropped in found:
        energies = [
            energy_of(Z[[i for i in left if i != j]], kernel, X, Y, weights)[0] for j in left
        ]
        assert dropped == left[int(np.argmin(energies))]
        left.remove(dropped)


def test_sizes_bytes_scores_and_energies_are_those_of_the_models(path, moons):
    X, y, X_val, y_val = moons
    assert isinstance(path, Frontier)
    assert path.n_components.tolist() == [16, 11, 8, 6, 4, 3, 2, 1]
    for i, model in enumerate(path.models):
        n = path.n_components[i]
        assert model.support_vectors_.shape == (n, 2) and model.n_components == n
        assert path.nbytes[i] == 4 * (2 * n + n + 1)
        assert path.scores[i] == model.score(X_val, y_val)
        assert path.energies[i] == model.energy_
        assert not model.warm_start and model.max_iter == 30
    assert (np.diff(path.energies) > 0).all()
    assert repr(path).startswith("Frontier of 8 models with [16, 11")


def test_few_vectors_do_nearly_as_well_as_if_they_were_fitted_alone(path, moons):
    X, y, _, _ = moons
    i = path.n_components.tolist().index(6)
    alone = SparseKernelClassifier(6, gamma=2.0, max_iter=100, n_init=3, random_state=0).fit(X, y)
    assert path.energies[i] < 1.05 * alone.energy_
    assert path.scores[i] > 0.9


def test_moving_again_lowers_the_energy(moons):
    X, y, _, _ = moons
    model = SparseKernelClassifier(12, gamma=2.0, random_state=0).fit(X, y)
    still, moved = (frontier(model, X, y, [4], max_iter=n).energies[0] for n in (0, 20))
    assert moved < 0.98 * still


def test_the_order_of_removal_beats_a_random_one(moons):
    X, y, _, _ = moons
    model = SparseKernelClassifier(12, gamma=2.0, random_state=0).fit(X, y)
    chosen = frontier(model, X, y, [9], max_iter=0).energies[0]
    rng = np.random.RandomState(0)
    for _ in range(5):
        Z = model.support_vectors_[rng.permutation(12)[:9]]
        other = SparseKernelClassifier(9, gamma=2.0, init=Z, max_iter=0).fit(X, y)
        assert chosen < other.energy_


def test_a_fitted_model_is_the_first_and_stays_as_it_is(moons):
    X, y, X_val, _ = moons
    model = SparseKernelClassifier(10, gamma=2.0, max_iter=10, random_state=0).fit(X, y)
    before = model.decision_function(X_val)
    path = frontier(model, X, y, [10, 5])
    assert path.models[0] is model
    assert_array_equal(model.decision_function(X_val), before)
    assert path.scores[0] == model.score(X, y)
    unfitted = SparseKernelClassifier(10, gamma=2.0, max_iter=10, random_state=0)
    same = frontier(unfitted, X, y, (5, 10, 5))
    assert not hasattr(unfitted, "expansion_")
    assert_array_equal(same.scores, path.scores)
    assert_array_equal(same.energies, path.energies)


def test_the_pareto_front_and_the_best_within_a_budget():
    models = ["a", "b", "c", "d"]
    sizes, scores = np.array([8, 4, 2, 1]), np.array([0.9, 0.95, 0.7, 0.7])
    path = Frontier(models, sizes, 10 * sizes, scores, np.zeros(4))
    assert path.pareto().tolist() == [1, 3]
    assert path.best() == "b"
    assert path.best(max_bytes=39) == "d"
    assert path.best(max_components=4) == path.best(max_bytes=40) == "b"
    assert path.best(max_components=4, max_bytes=20) == "d"
    with pytest.raises(ValueError, match="the smallest has 1 vectors and 10 bytes"):
        path.best(max_bytes=9)


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "log_loss"},
        {"loss": "squared_hinge", "class_weight": "balanced"},
        {"learn_gamma": True},
        {"metric": 3},
        {"early_stopping": True, "scoring": "neg_log_loss"},
    ],
)
def test_losses_metrics_and_widths_go_on(settings):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:200] / 16, y[:200]
    model = SparseKernelClassifier(8, max_iter=10, random_state=0, **settings)
    path = frontier(model, X, y, [8, 4], max_iter=5, sample_weight=np.ones(200))
    assert path.models[1].n_components_ == 4
    assert path.scores[1] > 0.9
    gammas = [m.kernel_.gamma for m in path.models]
    assert (gammas[0] != gammas[1]) == bool(settings.get("learn_gamma"))
    if "metric" in settings:
        assert path.nbytes[1] == 4 * (64 * 3 + 4 * 3 + 3 * 4 + 3)


def test_numbers_and_scoring(rng):
    X = rng.uniform(-3, 3, size=(150, 1))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 0]])
    model = SparseKernelRegressor(12, gamma=1.0, C=100.0, random_state=0)
    path = frontier(model, X, Y, [12, 6, 2], scoring="neg_mean_squared_error")
    assert_allclose(path.scores[0], -np.mean((path.models[0].predict(X) - Y) ** 2))
    assert (np.diff(path.scores) < 0).all()
    assert path.scoring == "neg_mean_squared_error"


def test_bytes_of_other_models(moons):
    X, y, _, _ = moons
    svc = SVC().fit(X, y)
    assert expansion_bytes(svc) == 4 * (len(svc.support_) * 3 + 1)
    few = SVC().fit(sparse.csr_matrix(np.maximum(X, 0)), y)
    stored = few.support_vectors_.nnz + few.dual_coef_.nnz + 1
    assert expansion_bytes(few) == 4 * stored


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": KernelMatchingPursuitClassifier()}, "model must be a SparseKernelClassifier"),
        ({"sizes": [5, 9]}, "sizes: the model has 8 vectors, fewer than 9"),
        ({"sizes": [0]}, "sizes must be an integer of at least 1"),
        ({"sizes": [2.5]}, "sizes must be an integer"),
        ({"sizes": []}, "sizes is empty"),
        ({"max_iter": -1}, "max_iter must be an integer"),
        ({"X_val": np.zeros((2, 2))}, "X_val and y_val must be given together"),
    ],
)
def test_arguments_that_are_no_good(arguments, message, moons):
    model = SparseKernelClassifier(8, max_iter=2, random_state=0)
    settings = {"model": model, "X": moons[0], "y": moons[1], **arguments}
    with pytest.raises(ValueError, match=message):
        frontier(**settings)
