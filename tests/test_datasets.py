"""The reader of data folders, on folders written here; the real ones where they are."""

import gzip
import os

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pursuit import datasets


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder that the environment variable names."""
    monkeypatch.setenv("PURSUIT_DATA", str(tmp_path))
    return tmp_path


def write_table(folder, name, text):
    (folder / name).mkdir()
    with gzip.open(folder / name / "data.csv.gz", "wt") as file:
        file.write(text)


def test_a_table_of_numbers(folder):
    write_table(folder, "small", "a,b,target\n1,2.5,0\n3,-4,1\n")
    X, y = datasets.load("small")
    assert_array_equal(X, [[1, 2.5], [3, -4]])
    assert X.dtype == np.float64
    assert_array_equal(y, [0, 1])
    assert y.dtype == np.int64


def test_missing_numbers_are_nan_and_other_targets_keep_their_type(folder):
    write_table(folder, "gaps", "a,b,target\n1,,x\n,2,y\n")
    X, y = datasets.load("gaps")
    assert_array_equal(X, [[1, np.nan], [np.nan, 2]])
    assert y.tolist() == ["x", "y"]
    write_table(folder, "real", "a,target\n1,0.5\n2,1\n")
    assert datasets.load("real")[1].dtype == np.float64


def test_text_stays_text_beside_numbers(folder):
    write_table(folder, "mixed", 'a,b,target\n1,"x, y",2\n,,3\n')
    X, y = datasets.load("mixed")
    assert X.dtype == object
    assert X[0].tolist() == [1.0, "x, y"]
    assert np.isnan(X[1, 0]) and X[1, 1] == ""
    assert_array_equal(y, [2, 3])


def test_the_parts_of_a_table_are_its_first_rows_and_the_rest(folder):
    rows = "".join(f"{i},{i % 2}\n" for i in range(130))
    write_table(folder, "monks1", "a,target\n" + rows)
    whole, train, test = (datasets.load("monks1", part)[0] for part in (None, "train", "test"))
    assert len(train) == 124
    assert_array_equal(np.concatenate([train, test]), whole)
    write_table(folder, "plain", "a,target\n1,2\n")
    with pytest.raises(ValueError, match="plain has no customary training and test part"):
        datasets.load("plain", "train")


def test_images_are_rows_of_pixels_in_two_files(folder):
    (folder / "pictures").mkdir()
    images = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
    np.savez(folder / "pictures" / "train.npz", X=images[:3], y=np.array([1, 2, 3]))
    np.savez(folder / "pictures" / "test.npz", X=images[3:], y=np.array([4]))
    X, y = datasets.load("pictures")
    assert X.dtype == np.uint8
    assert_array_equal(X, np.arange(24).reshape(4, 6))
    assert_array_equal(y, [1, 2, 3, 4])
    assert_array_equal(datasets.load("pictures", "test")[0], X[3:])


def test_a_set_with_splits(folder):
    (folder / "many").mkdir()
    np.savez(
        folder / "many" / "data.npz",
        X=np.arange(6).reshape(3, 2),
        y=np.array([-1, 1, 1]),
        train_splits=np.array([[0, 1], [2, 0]], dtype=np.uint16),
        test_splits=np.array([[2], [1]], dtype=np.uint16),
    )
    assert datasets.load("many")[0].dtype == np.float64
    train, test = datasets.splits("many", 1)
    assert_array_equal(train, [2, 0])
    assert_array_equal(test, [1])
    for wrong in (2, -1):
        with pytest.raises(ValueError, match=f"many has the splits 0 to 1, got {wrong}"):
            datasets.splits("many", wrong)
    with pytest.raises(ValueError, match="many has no parts but many splits"):
        datasets.load("many", "train")


def test_splits_of_a_set_without_them(folder):
    write_table(folder, "plain", "a,target\n1,2\n")
    with pytest.raises(ValueError, match="plain comes without splits"):
        datasets.splits("plain", 0)


def test_available_lists_the_folder_and_openml(folder):
    write_table(folder, "mine", "a,target\n1,2\n")
    (folder / "notes").mkdir()
    names = datasets.available()
    assert "mine" in names and "mnist" in names and "notes" not in names
    assert names == sorted(names)


def test_an_unknown_name_says_what_to_set(folder, monkeypatch):
    write_table(folder, "sonars", "a,target\n1,2\n")
    with pytest.raises(
        LookupError, match=r"PURSUIT_DATA is .*no folder 'sonnar'.*near names: sonar"
    ):
        datasets.load("sonnar")
    monkeypatch.delenv("PURSUIT_DATA")
    with pytest.raises(LookupError, match="set the environment variable PURSUIT_DATA to a folder"):
        datasets.splits("absent", 0)


def test_an_unknown_part_is_refused(folder):
    with pytest.raises(ValueError, match="part must be None, 'train' or 'test', got 'all'"):
        datasets.load("mnist", "all")


@pytest.fixture
def openml(monkeypatch):
    """Replace the download by a small answer, and note what was asked for."""
    monkeypatch.delenv("PURSUIT_DATA", raising=False)
    asked = []

    def fetch(name, **arguments):
        asked.append((name, arguments["version"]))
        return np.arange(40001.0).reshape(-1, 1), np.array(["1", "0", "2"] * 13333 + ["1", "0"])

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    return asked


def test_a_set_that_is_not_in_the_folder_comes_from_openml(openml):
    X, y = datasets.load("letter", "test")
    assert openml == [("letter", 1)]
    assert X[0, 0] == 16000
    assert y.dtype == np.int64
    assert_array_equal(y[:3], [0, 2, 1])


def test_no_network_says_what_to_set(openml, monkeypatch):
    def fail(name, **arguments):
        raise OSError("no route")

    monkeypatch.setattr(datasets, "fetch_openml", fail)
    with pytest.raises(LookupError, match=r"'sonar': OpenML cannot be reached \(no route\); set"):
        datasets.load("sonar")


SIZES = {
    "usps": ("train", (7291, 256)),
    "adult": ("test", (16281, 14)),
    "sonar": (None, (208, 60)),
    "ida_banana": (None, (5300, 2)),
}


@pytest.mark.skipif("PURSUIT_DATA" not in os.environ, reason="PURSUIT_DATA names no data folder")
@pytest.mark.parametrize("name", SIZES)
def test_sizes_of_real_sets(name):
    part, shape = SIZES[name]
    X, y = datasets.load(name, part)
    assert X.shape == shape
    assert y.shape == shape[:1]
