"""The model file: what goes in comes out, and damage is always one clear error."""

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from test_value_tree import Holder, Pair, assert_same, holding, known_classes

from pursuit import model_file
from pursuit.model_file import (
    ModelFileError,
    describe,
    load,
    load_attachments,
    replacing,
    save,
)

__all__ = ["known_classes"]  # a fixture that every test uses


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.pursuit"


def test_path_is_dropped_without_staged(path):
    model = holding(1)
    model.path_ = np.zeros((500, 500)) + np.arange(500.0)
    save(model, path)
    assert_array_equal(load(path).path_, model.path_)
    large = path.stat().st_size
    save(model, path, staged=False)
    assert load(path).path_ is None
    assert path.stat().st_size < large / 10
    assert model.path_ is not None


def test_equal_models_give_equal_bytes(path):
    save(holding(np.arange(5.0)), path, attachments={"a": b"1"})
    first = path.read_bytes()
    save(holding(np.arange(5.0)), path, attachments={"a": b"1"})
    assert path.read_bytes() == first
    with zipfile.ZipFile(path) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_subclasses_of_known_classes_are_refused(path):
    mine = type("Holder", (Holder,), {})
    with pytest.raises(ValueError, match="save takes an estimator of pursuit, got Holder"):
        save(mine().fit(1), path)


def test_unfitted_and_foreign_models_are_refused(path):
    with pytest.raises(NotFittedError):
        save(Holder(), path)
    with pytest.raises(ValueError, match="save takes an estimator of pursuit, got Linear"):
        save(LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0]), path)
    with pytest.raises(ValueError, match="got int"):
        save(3, path)


# Attachments and descriptions


def test_attachments(path):
    attachments = {"pipeline.skops": os.urandom(500), "empty": b""}
    save(holding(1), path, attachments=attachments)
    assert load_attachments(path) == attachments
    assert load(path).value_ == 1
    assert describe(path)["attachments"] == {"pipeline.skops": 500, "empty": 0}
    save(holding(1), path)
    assert load_attachments(path) == {}


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a\nb"])
def test_attachment_names_are_checked(path, name):
    with pytest.raises(ValueError, match="attachments has the name"):
        save(holding(1), path, attachments={name: b""})


def test_describe(path):
    value = Pair(np.zeros((2, 3)), sparse.csr_matrix((4, 5)))
    model = holding(value, param=Pair(0.5))
    model.gone_, model.size_, model.nan_ = None, np.int64(3), float("nan")
    model.weights_ = {"a": (1, np.zeros(2))}
    save(model, path)
    about = describe(path)
    assert about["class"] == "Holder"
    assert about["bytes"] == path.stat().st_size
    assert about["params"] == {"param": "Pair(first=0.5, second=2)", "other": 1}
    assert about["shapes"] == {"value_.first": (2, 3), "value_.second": (4, 5)}
    assert about["fitted"]["size_"] == 3
    assert np.isnan(about["fitted"]["nan_"])
    assert set(about["fitted"]) == {"size_", "nan_"}
    assert about["schema"] == 1


# Writing is all or nothing


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_interrupted_save_leaves_the_old_file(path, monkeypatch, error, call):
    save(holding("old"), path)

    def interrupt(*_):
        raise error

    monkeypatch.setattr(os, call, interrupt)
    with pytest.raises(error):
        save(holding("new"), path)
    assert load(path).value_ == "old"
    assert list(path.parent.iterdir()) == [path]


def test_replacing_follows_links_and_keeps_usual_permissions(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    usual = real.stat().st_mode
    link.symlink_to(real)
    with replacing(link) as stream:
        stream.write(b"new")
        assert real.read_bytes() == b"old"
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode == usual


def test_where_a_file_cannot_be(tmp_path):
    with pytest.raises(FileNotFoundError, match="folder of .* does not exist"):
        save(holding(1), tmp_path / "no" / "model")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save(holding(1), tmp_path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


# Damage


def rewrite(path, change):
    """Change a model file as an attacker could: with right checksums."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["model.json"])
    header = change(header, members) or header
    members["model.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def put(header, members, name, content):
    members[name] = content
    header["members"][name] = {"bytes": len(content), "sha256": model_file._digest(content)}


def npy(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


def newer(header, members):
    header["schema"], header["version"] = 7, "9.8"


def object_array(header, members):
    put(header, members, "arrays/0.npy", npy(np.array([1, None]), allow_pickle=True))


def object_array_stated(header, members):
    object_array(header, members)
    header["model"]["state"]["value_"] |= {"dtype": "|O", "shape": [2]}


def other_shape(header, members):
    put(header, members, "arrays/0.npy", npy(np.zeros(4)))


def other_dtype(header, members):
    put(header, members, "arrays/0.npy", npy(np.zeros(3, dtype=np.int64)))


def short_array(header, members):
    put(header, members, "arrays/0.npy", members["arrays/0.npy"][:-8])


def huge_array(header, members):
    content = npy(np.zeros(3)).replace(b"(3,), }", b"(10**14,), }".replace(b"10**14", b"9" * 15))
    put(header, members, "arrays/0.npy", content)
    header["model"]["state"]["value_"]["shape"] = [int("9" * 15)]


def no_text(header, members):
    content = npy(np.array(["abc"])).replace(b"a\0\0\0", b"\xff\xff\xff\xff")
    put(header, members, "arrays/0.npy", content)
    header["model"]["state"]["value_"] |= {"dtype": "<U3", "shape": [1], "object": True}


def missing_array(header, members):
    del members["arrays/0.npy"]


def missing_entry(header, members):
    del members["arrays/0.npy"], header["members"]["arrays/0.npy"]


def added_member(header, members):
    members["extra.pkl"] = b"cos\nsystem\n"


def long_entry(header, members):
    header["members"]["arrays/0.npy"]["bytes"] += 1


def short_entry(header, members):
    header["members"]["arrays/0.npy"]["bytes"] -= 1


def wrong_digest(header, members):
    members["arrays/0.npy"] = members["arrays/0.npy"][:-8] + bytes(8)


def bomb(header, members):
    put(header, members, "arrays/0.npy", bytes(30_000_000))


def deep(header, members):
    for _ in range(50):
        header["model"]["state"]["value_"] = [header["model"]["state"]["value_"]]


def foreign_class(header, members):
    header["model"]["class"] = "os.system"


def value_as_model(header, members):
    header["model"] = {"type": "value", "class": "Pair", "fields": {"first": 1}}


def estimator_as_value(header, members):
    header["model"]["state"]["value_"] = {"type": "value", "class": "Holder", "fields": {}}


def value_as_estimator(header, members):
    header["model"]["class"] = "Pair"


def unknown_field(header, members):
    fields = {"first": 1, "third": 3}
    header["model"]["state"]["value_"] = {"type": "value", "class": "Pair", "fields": fields}


def unknown_parameter(header, members):
    header["model"]["params"]["later"] = 1


def unknown_type(header, members):
    header["model"]["state"]["value_"] = {"type": "pickle"}


def odd_scalar(header, members):
    header["model"]["state"]["value_"] = {"type": "scalar", "dtype": "O", "value": 1}


def unhashable_key(header, members):
    header["model"]["state"]["value_"] = {"type": "dict", "items": [[[1], 2]]}


def wild_csr(header, members):
    put(header, members, "arrays/0.npy", npy(np.array([0, 1, 2])))
    whole = {"member": "arrays/0.npy", "dtype": "<i8", "shape": [3], "object": False}
    parts = dict.fromkeys(("data", "indices", "indptr"), whole)
    header["model"]["state"]["value_"] = {"type": "csr", "array": False, "shape": [2, 1], **parts}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (newer, "was written by pursuit 9.8 with schema 7.* reads schema 1"),
        (lambda header, members: {"format": "other"}, "another program"),
        (lambda header, members: [1], "another program"),
        (lambda header, members: {"format": "pursuit-model"}, "is damaged"),
        (object_array, "is not the array it should be"),
        (object_array_stated, "is not the array it should be"),
        (other_shape, "is not the array it should be"),
        (other_dtype, "is not the array it should be"),
        (short_array, "stated length"),
        (huge_array, "stated length"),
        (no_text, "holds no text"),
        (missing_array, "members are missing"),
        (missing_entry, "is damaged: 'arrays/0.npy'"),
        (added_member, "members are missing or were added"),
        (wrong_digest, "digest of arrays/0.npy differs"),
        (long_entry, "length or the digest of arrays/0.npy differs"),
        (short_entry, "arrays/0.npy claims 152 bytes"),
        (bomb, "claims 30000000 bytes"),
        (deep, "nested too deeply"),
        (foreign_class, "names the class 'os.system'"),
        (value_as_model, "holds no estimator"),
        (estimator_as_value, "Holder is not a plain value"),
        (value_as_estimator, "Pair is not an estimator"),
        (unknown_field, "third"),
        (unknown_parameter, "parameter 'later' that the installed pursuit does not know"),
        (unknown_type, "is damaged: 'pickle'"),
        (odd_scalar, "no scalar has the type 'O'"),
        (unhashable_key, "unhashable"),
        (wild_csr, "is damaged"),
    ],
)
def test_forged_file(path, change, message):
    save(holding(np.array([1.0, 2.0, 3.0])), path)
    rewrite(path, lambda header, members: None)
    assert_array_equal(load(path).value_, [1.0, 2.0, 3.0])
    rewrite(path, change)
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("text", [b"[" * 10**5, b"{", b"\xff", b'{"format": 1e999}', b"1" * 9999])
def test_forged_header(path, text):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", text)
    with pytest.raises(ModelFileError, match="is damaged|another program"):
        load(path)


def test_lying_length_is_not_unfolded(path, monkeypatch):
    """The archive's own directory says 30 MB in 30 kB; it is refused before it is read."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", b" " * 30_000_000)
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    with pytest.raises(ModelFileError, match="claims 30000000 bytes"):
        load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x80\x04N.", "is not a pursuit model file"),
        (b"PK\x03\x04 and then nothing", "is cut off or damaged"),
        (b'{"format": "pursuit-model"}', "is not a pursuit model file"),
    ],
)
def test_foreign_file(path, content, message):
    path.write_bytes(content)
    for read in (load, load_attachments, describe):
        with pytest.raises(ModelFileError, match=f"{path.name} {message}"):
            read(path)


def test_foreign_archive(path):
    np.savez(path.with_suffix(".npz"), a=np.zeros(3))
    with pytest.raises(ModelFileError, match="ZIP file of another program"):
        load(path.with_suffix(".npz"))


def load_or_refuse(path, content, expected):
    path.write_bytes(content)
    try:
        model = load(path)
    except ModelFileError:
        return 1
    assert_same(model.value_, expected)
    assert model.get_params() == {"param": 0.1, "other": 1}
    return 0


@pytest.fixture
def small_file(path):
    value = [np.arange(3.0), np.array(["a", "b"], dtype=object), Pair(float("nan"), (1, "x"))]
    save(holding(value, param=0.1), path, attachments={"a": b"b"})
    return path, path.read_bytes(), value


def test_every_cut_is_refused(small_file):
    path, content, value = small_file
    refused = [load_or_refuse(path, content[:end], value) for end in range(len(content))]
    assert all(refused)


def test_every_flipped_byte_is_refused_or_harmless(small_file):
    path, content, value = small_file
    rng = np.random.default_rng(0)
    refused = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= int(rng.choice([1, 2, 4, 8, 16, 32, 64, 128, 255]))
        refused += load_or_refuse(path, damaged, value)
    assert refused > len(content) / 2


def test_damaged_attachment_is_refused(path):
    save(holding(1), path, attachments={"a": b"0123456789"})
    content = path.read_bytes()
    path.write_bytes(content.replace(b"0123456789", b"0123456780"))
    with pytest.raises(ModelFileError, match="is damaged"):
        load_attachments(path)


def test_random_rubbish_is_refused(path):
    rng = np.random.default_rng(0)
    for _ in range(100):
        path.write_bytes(b"PK\x03\x04" * bool(rng.integers(2)) + rng.bytes(rng.integers(400)))
        with pytest.raises(ModelFileError):
            load(path)


def test_path_as_text(tmp_path):
    path = os.fspath(tmp_path / "a model")
    save(holding(1), path)
    assert load(path).value_ == 1
    assert Path(path).exists()
