"""Tangents of images: differences of moved images, exact cases, units, errors."""

import pickle

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, map_coordinates, rotate, shift

from pursuit import ImageTangents
from pursuit.neighbors.image_tangents import TRANSFORMATIONS

HEIGHT, WIDTH = 30, 24
HALF = (HEIGHT - 1) / 2
INSIDE = (slice(3, -3), slice(3, -3))
ROWS, COLUMNS = np.mgrid[:HEIGHT, :WIDTH].astype(float)
Y, X = (ROWS - (HEIGHT - 1) / 2) / HALF, (COLUMNS - (WIDTH - 1) / 2) / HALF


@pytest.fixture
def image(rng):
    """A smooth image of a few blobs."""
    points = rng.uniform(-0.5, 0.5, size=(5, 2))
    signs = rng.choice([-1.0, 1.0, 2.0], 5)
    return sum(
        s * np.exp(-8 * ((X - a) ** 2 + (Y - b) ** 2))
        for s, (a, b) in zip(signs, points, strict=True)
    )


def tangent(image, name, smoothing=0.75):
    found = ImageTangents(image.shape, (name,), smoothing)(image.reshape(1, -1))
    assert found.shape == (1, 1, image.size)
    return found[0, 0].reshape(image.shape)


def assert_near(found, wanted):
    """Equal to a hundredth of the largest, away from the border."""
    atol = 0.01 * np.abs(wanted[INSIDE]).max()
    np.testing.assert_allclose(found[INSIDE], wanted[INSIDE], atol=atol)


def test_shifts_and_a_turn_of_scipy(image):
    smooth = gaussian_filter(image, 0.75, mode="nearest")
    t = 0.02
    for name, by in (("x_translation", (0, -t)), ("y_translation", (-t, 0))):
        back = [-part for part in by]
        moved = (shift(smooth, by, mode="nearest") - shift(smooth, back, mode="nearest")) / (2 * t)
        assert_near(tangent(image, name), moved)
    degrees = np.rad2deg(t / HALF)  # a pixel at the middle of the longer border moves by t
    turned = [rotate(smooth, angle, reshape=False, mode="nearest") for angle in (-degrees, degrees)]
    wanted = (turned[0] - turned[1]) / (2 * t)
    found = tangent(image, "rotation")
    sign = np.sign(np.sum(found * wanted))
    assert_near(sign * found, wanted)


FIELDS = {
    "x_translation": (1.0 + 0 * X, 0 * X),
    "y_translation": (0 * X, 1.0 + 0 * X),
    "rotation": (Y, -X),
    "scaling": (X, Y),
    "parallel_hyperbolic": (X, -Y),
    "diagonal_hyperbolic": (Y, X),
}


@pytest.mark.parametrize("name", FIELDS)
def test_differences_of_deformed_images(name, image):
    smooth = gaussian_filter(image, 0.75, mode="nearest")
    u, v = FIELDS[name]
    assert max(np.abs(u).max(), np.abs(v).max()) <= 1.0
    t = 0.02
    ends = [
        map_coordinates(smooth, [ROWS + s * t * v, COLUMNS + s * t * u], order=5, mode="nearest")
        for s in (1, -1)
    ]
    assert_near(tangent(image, name), (ends[0] - ends[1]) / (2 * t))


def test_thicker_lines(image):
    """Each pixel looks uphill: along the gradient, at most one pixel far."""
    smooth = gaussian_filter(image, 0.75, mode="nearest")
    along_y, along_x = np.gradient(smooth)
    steepest = np.hypot(along_x, along_y).max()
    t = 0.02
    where = [ROWS + t * along_y / steepest, COLUMNS + t * along_x / steepest]
    uphill = map_coordinates(smooth, where, order=5, mode="nearest")
    assert_near(tangent(image, "thickness"), (uphill - smooth) / t)
    assert tangent(image, "thickness").min() >= 0.0


def test_a_round_image_does_not_turn():
    round_one = np.exp(-6 * (X**2 + Y**2))
    largest = np.abs(tangent(round_one, "scaling")).max()
    assert np.abs(tangent(round_one, "rotation")[INSIDE]).max() < 1e-3 * largest


def test_units_types_and_blank_images(image, rng):
    several = np.stack([image.ravel(), rng.normal(size=image.size), np.full(image.size, 3.0)])
    tangents = ImageTangents((HEIGHT, WIDTH))
    found = tangents(several)
    assert found.shape == (3, 7, image.size) and found.dtype == np.float64
    np.testing.assert_allclose(found[2], 0.0, atol=1e-12)
    for factor in (2.0**-300, 2.0**300):
        np.testing.assert_allclose(tangents(factor * several[:2]), factor * found[:2], rtol=1e-12)
    np.testing.assert_allclose(tangents(several + 5.0)[:2], found[:2], atol=1e-11)
    narrow = tangents(several.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, found, atol=1e-5)
    whole = tangents((100 * several).astype(int))
    np.testing.assert_array_equal(whole, tangents((100 * several).astype(int).astype(float)))
    one_by_one = np.concatenate([tangents(row[None]) for row in several])
    np.testing.assert_array_equal(one_by_one, found)
    for j, name in enumerate(TRANSFORMATIONS):
        np.testing.assert_array_equal(
            ImageTangents((HEIGHT, WIDTH), (name,))(several)[:, 0], found[:, j]
        )


def test_a_value():
    tangents = ImageTangents([4, 5], ["rotation"])
    assert tangents == ImageTangents((4, 5), ("rotation",), 0.75)
    assert hash(tangents) == hash(ImageTangents((4, 5), ("rotation",)))
    assert repr(tangents) == (
        "ImageTangents(shape=(4, 5), transformations=('rotation',), smoothing=0.75)"
    )
    assert pickle.loads(pickle.dumps(tangents)) == tangents


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"shape": 16}, "shape"),
        ({"shape": (16,)}, "shape"),
        ({"shape": (16, 1)}, "shape"),
        ({"shape": (4.0, 4)}, "shape"),
        ({"transformations": "rotation"}, "transformations"),
        ({"transformations": ("shear",)}, "transformations"),
        ({"transformations": ()}, "transformations"),
        ({"transformations": ("scaling", "scaling")}, "transformations"),
        ({"smoothing": 0.0}, "smoothing"),
    ],
)
def test_an_error_names_the_parameter(arguments, name):
    with pytest.raises(ValueError, match=name):
        ImageTangents(**{"shape": (4, 4), **arguments})


def test_rows_that_are_no_such_images():
    for X in (np.zeros((2, 15)), np.zeros(16)):
        with pytest.raises(ValueError, match="16 pixels"):
            ImageTangents((4, 4))(X)
