import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pursuit.linalg.rounding import encode, n_bytes, round_in_turn, rounded

RNG = np.random.default_rng(0)
B = RNG.normal(size=(30, 2)) * [1.0, 100.0]


@pytest.mark.parametrize("matrix", [B, B.T, np.full((3, 2), 7.0), B[:1], B[:, :1]])
def test_codes_are_within_half_a_step_and_take_a_byte(matrix):
    for axis in (0, 1):
        codes = encode(matrix, axis=axis)
        assert codes.codes.dtype == np.int8
        error = np.abs(codes.decoded() - matrix)
        assert (error <= 0.51 * codes.step + 1e-6 * np.abs(matrix)).all()
        assert n_bytes(matrix.shape, "int8", axis) == matrix.size + 8 * matrix.shape[1 - axis]


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_a_rounded_matrix_stays_as_it_is(precision):
    H = np.eye(30) + 0.9
    for once in (rounded(B + 50.0, precision), round_in_turn(B, H, precision)):
        assert_allclose(
            rounded(once.T, precision, axis=1).T, once, rtol=0, atol=2e-6 * np.abs(B).max()
        )


def test_half_precision_is_relative_to_the_middle():
    assert_allclose(rounded(B + 1e4, "float16"), B + 1e4, rtol=0, atol=0.13)
    assert_array_equal(rounded(np.full((3, 1), 1000.25), "float16"), np.full((3, 1), 1000.25))


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_floating_types(precision):
    assert_array_equal(rounded(B, precision), B.astype(precision).astype(float))
    assert n_bytes((30, 2), precision) == np.dtype(precision).itemsize * 60


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_coefficients_in_turn_change_the_outputs_less(precision):
    X = RNG.normal(size=(200, 30)) @ (np.eye(30) + 0.9)  # columns much alike
    H = X.T @ X

    def cost(kept):
        return np.trace((kept - B).T @ H @ (kept - B))

    kept = round_in_turn(B, H, precision)
    assert cost(kept) < 0.2 * cost(rounded(B, precision))
    assert_allclose(rounded(kept, precision), kept, rtol=1e-2, atol=1e-2)
    assert round_in_turn(B[:0], H[:0, :0], precision).shape == (0, 2)


def test_independent_columns_are_rounded_as_they_are():
    assert_allclose(round_in_turn(B, np.eye(30), "int8"), rounded(B, "int8"), rtol=1e-6, atol=1e-6)


def test_two_bytes_have_65534_steps(rng):
    matrix = rng.normal(size=(50, 3)) * [1e-3, 1.0, 1e6] + [0.0, 5.0, -1e6]
    codes = encode(matrix, "int16")
    assert codes.codes.dtype == np.int16
    assert_array_equal(codes.codes.min(axis=0), -32767)
    assert_array_equal(codes.codes.max(axis=0), 32767)
    ranges = np.ptp(matrix, axis=0)
    error = np.abs(codes.decoded() - matrix).max(axis=0)
    assert (error <= ranges / 65534 / 2 + 1e-6 * np.abs(matrix).max(axis=0)).all()
    assert (error > ranges / 65534 / 3).all()
