import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose

from pursuit import losses
from pursuit.kernels import RBF, CosinePolynomial, Laplacian, Polynomial
from pursuit.optimize.kernel_blocks import Place, Table, homogeneous, kernel_values
from pursuit.optimize.svm_on_vectors import solve_on_vectors
from pursuit.optimize.variable_projection import Free, Hinge, Problem, descend, energy

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) + [3.0, -1.0, 0.0]
CENTRE = X.mean(axis=0)
WEIGHTS = 3.0 * RNG.uniform(0.5, 2.0, 40)
NUMBERS = np.stack([np.sin(2 * X[:, 0]), X[:, 1]], axis=1) + 0.1 * RNG.normal(size=(40, 2))
SIGNS = np.where(X - CENTRE + 0.5 * RNG.normal(size=X.shape) > 0, 1.0, -1.0)
CLASSES = np.where(np.eye(3)[(X - CENTRE).argmax(axis=1)] > 0, 1.0, -1.0)
Z = X[:5] - CENTRE + 0.05
KERNEL = RBF(0.4)
LS = losses.SquaredError()

LOSSES = {
    "squared_error": (NUMBERS, losses.SquaredError()),
    "squared_hinge": (SIGNS, losses.SquaredHinge()),
    "log_loss": (SIGNS[:, :1], losses.LogLoss()),
    "cross_entropy": (CLASSES, losses.CrossEntropy()),
    "hinge": (SIGNS, Hinge()),
    "smooth_hinge": (SIGNS, losses.SmoothHinge()),
    "exponential": (SIGNS, losses.Exponential()),
    "huber": (NUMBERS, losses.Huber(0.1)),
    "absolute_error": (NUMBERS, losses.AbsoluteError(0.02)),
    "quantile": (NUMBERS, losses.Quantile(0.8, 0.02)),
    "poisson": (np.round(np.exp(NUMBERS)), losses.Poisson()),
}


def problem(Y=NUMBERS, loss=LS, dtype=np.float64, **options):
    return Problem(Table(X, CENTRE, dtype), Y, WEIGHTS, loss, **options)


def slope_errors(given, place, learn_gamma=True):
    """Largest difference of the slopes from difference quotients, relative, of each kind."""
    step = energy(given, place, learn_gamma=learn_gamma)

    def quotient(changed, h=1e-5):
        return (energy(given, changed(h)).value - energy(given, changed(-h)).value) / (2 * h)

    def moved(name, index):
        def changed(h):
            array = getattr(place, name).copy()
            array[index] += h
            return place._replace(**{name: array})

        return quotient(changed)

    def compare(name, slopes):
        differences = np.array([moved(name, i) for i in np.ndindex(slopes.shape)])
        return np.abs(differences - slopes.ravel()).max() / np.abs(slopes).max()

    errors = [compare("Z", step.Z)]
    if learn_gamma:

        def widened(h):
            kernel = type(place.kernel)(
                **vars(place.kernel) | {"gamma": place.kernel.gamma * np.exp(h)}
            )
            return place._replace(kernel=kernel)

        errors.append(abs(quotient(widened) - step.log_gamma) / abs(step.log_gamma))
    if place.A is not None:
        errors.append(compare("A", step.A))
    return errors


@pytest.mark.parametrize("name", LOSSES)
def test_slopes_under_every_loss(name):
    assert max(slope_errors(problem(*LOSSES[name]), Place(KERNEL, Z))) < 2e-6


@pytest.mark.parametrize("loss", [Hinge(), losses.SquaredHinge()], ids=["hinge", "squared"])
def test_slopes_where_few_rows_pull(loss):
    given = problem(np.where(X[:, :1] > CENTRE[0], 1.0, -1.0), loss)
    given = given._replace(weights=10.0 * WEIGHTS)
    assert energy(given, Place(KERNEL, Z)).G.any(axis=1).mean() < 0.5
    assert max(slope_errors(given, Place(KERNEL, Z))) < 1e-6


@pytest.mark.parametrize(
    "kernel", [Laplacian(0.4), Polynomial(0.3, 3, 1.0), CosinePolynomial(3, 1.0)], ids=str
)
def test_slopes_under_other_kernels(kernel):
    errors = slope_errors(problem(), Place(kernel, Z), learn_gamma=hasattr(kernel, "gamma"))
    assert max(errors) < 1e-6


@pytest.mark.parametrize("kernel", [KERNEL, Laplacian(0.4)], ids=str)
@pytest.mark.parametrize("A", [RNG.normal(size=(3, 2)), np.array([0.5, 1.0, 2.0])], ids=["2", "d"])
def test_slopes_in_a_map(kernel, A):
    start = Z * A if A.ndim == 1 else Z @ A
    assert max(slope_errors(problem(), Place(kernel, start, A))) < 1e-6


def test_without_a_constant():
    given = problem(np.ones((40, 1)), losses.SquaredHinge(), intercept=False)
    assert max(slope_errors(given, Place(KERNEL, Z))) < 1e-6
    assert energy(given, Place(KERNEL, Z)).coefficients.b == 0.0


def whitened_features():
    rows = X - CENTRE
    gram = KERNEL(Z, Z) * (1 + 1e-8 * np.eye(len(Z)))
    return KERNEL(rows, Z) @ np.linalg.inv(np.linalg.cholesky(gram).T), gram


def test_squared_error_is_ridge_regression_in_the_whitened_features():
    phi, _ = whitened_features()
    total = WEIGHTS.sum()
    means, targets = WEIGHTS @ phi / total, NUMBERS - WEIGHTS @ NUMBERS / total
    centred = phi - means
    V = np.linalg.solve(
        np.eye(len(Z)) + 2 * centred.T * WEIGHTS @ centred, 2 * centred.T * WEIGHTS @ targets
    )
    value = 0.5 * (V**2).sum() + (WEIGHTS[:, None] * (targets - centred @ V) ** 2).sum()
    step = energy(problem(), Place(KERNEL, Z))
    assert_allclose(step.value, value, rtol=1e-10)
    fitted = KERNEL(X - CENTRE, Z) @ step.coefficients.B + step.coefficients.b
    assert_allclose(fitted, centred @ V + WEIGHTS @ NUMBERS / total, rtol=1e-6)


def test_the_hinge_loss_is_that_of_the_interior_point():
    step = energy(problem(SIGNS, Hinge()), Place(KERNEL, Z))
    solution = solve_on_vectors(KERNEL, Z, X - CENTRE, SIGNS, WEIGHTS, tol=1e-8)
    assert_allclose(step.value, solution.objective, rtol=1e-7)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "hinge"])
def test_the_coefficients_are_the_best(name):
    given = problem(*LOSSES[name])
    step = energy(given, Place(KERNEL, Z))
    _, gram = whitened_features()
    K, (B, b, objective, *_) = KERNEL(X - CENTRE, Z), step.coefficients

    def J(B, b):
        losses_of_rows = given.loss.value(given.Y, K @ B + b).reshape(40, -1).sum(axis=1)
        return 0.5 * (B * (gram @ B)).sum() + WEIGHTS @ losses_of_rows

    assert_allclose(J(B, b), objective, rtol=1e-9)
    for _ in range(5):
        assert J(B + 1e-3 * RNG.normal(size=B.shape), b + 1e-3 * RNG.normal(size=b.shape)) > J(B, b)


def test_a_nearby_start_gives_the_same():
    given = problem(CLASSES, losses.CrossEntropy())
    near = energy(given, Place(KERNEL, Z + 0.1))
    assert_allclose(
        energy(given, Place(KERNEL, Z), near).value, energy(given, Place(KERNEL, Z)).value,
        rtol=1e-12,
    )  # fmt: skip


def test_single_precision_and_memory_change_rounding_only():
    exact = energy(problem(), Place(KERNEL, Z), learn_gamma=True)
    single = energy(problem(dtype=np.float32), Place(KERNEL, Z), learn_gamma=True)
    assert_allclose(single.value, exact.value, rtol=1e-4)
    assert_allclose(single.Z, exact.Z, atol=1e-3 * np.abs(exact.Z).max())
    with sklearn.config_context(working_memory=0.001):
        small = energy(problem(), Place(KERNEL, Z), learn_gamma=True)
        assert problem().table.kept is None
    assert_allclose(small.value, exact.value, rtol=1e-12)
    assert_allclose(small.Z, exact.Z, rtol=1e-8)


def test_equal_weights_are_a_case_of_any_weights():
    equal = problem()._replace(weights=np.full(40, 3.0))
    nearly = equal._replace(weights=np.append(np.full(39, 3.0), 3.0 * (1 + 1e-12)))
    one, other = (energy(given, Place(KERNEL, Z)) for given in (equal, nearly))
    assert_allclose(one.value, other.value, rtol=1e-10)
    assert_allclose(one.coefficients.B, other.coefficients.B, rtol=1e-7)


def test_sums_in_single_precision_give_way_where_they_are_too_short():
    rows = np.random.default_rng(1).uniform(size=(300, 4))
    targets = np.sign(rows[:, :1] - 0.5)
    steps = []
    for dtype in (np.float32, np.float64):
        given = Problem(Table(rows, np.zeros(4), dtype), targets, np.full(300, 1e4), LS)
        steps.append(energy(given, Place(RBF(0.05), rows[:60])))
    assert steps[0].coefficients.exact
    assert_allclose(steps[0].value, steps[1].value, rtol=0.05)


def test_small_gaussians_are_zero():
    rows = homogeneous(np.array([[0.0], [100.0]], np.float32))
    far = kernel_values(RBF(1.0), rows, np.zeros((1, 1), "f4"))
    assert far.ravel().tolist() == [1.0, 0.0]


@pytest.mark.parametrize("free", [Free(), Free(gamma=True), Free(A=True), Free(True, True, 0.1)])
def test_the_energy_never_rises(free):
    A = np.eye(3)[:, :2]
    place = Place(KERNEL, Z @ A, A)
    descent = descend(problem(), place, 1.0, max_iter=15, tol=0.0, free=free)
    assert (np.diff(descent.values) <= 1e-12 * descent.values[0]).all()
    assert descent.values[-1] < 0.95 * descent.values[0]
    assert (descent.best.place.A is A) != free.A
    assert (descent.best.place.kernel == KERNEL) != free.gamma


def test_a_watch_may_end_the_descent():
    seen = []

    def watch(step):
        seen.append(step.value)
        return "watch" if len(seen) == 3 else None

    descent = descend(problem(), Place(KERNEL, Z), 1.0, max_iter=15, tol=0.0, watch=watch)
    assert descent.reason == "watch"
    assert len(seen) == 3
    assert_allclose(seen, descent.values[1:])
