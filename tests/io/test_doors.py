"""Every door for files takes damaged and strange content with one clear error, or reads it.

200 inputs a door: bits flipped, cut off, bytes put in, parts repeated. A damaged model file is
refused, or its model answers as the whole one does.
"""

import io
import json
import os
import resource
import signal
import subprocess
import sys
import zipfile

import numpy as np
import polars as pl
import pytest

import pursuit
from pursuit.io.tables import DataError, read
from pursuit.model_file import ModelFileError

ROWS = "".join(
    f"{i},{i / 7:.3f},{'red' if i % 3 else 'blue'},2020-01-{i % 28 + 1:02}\n" for i in range(12)
)
COMMA = "n,x,colour,day\n" + ROWS


def content_of(name):
    stream = io.BytesIO()
    if name.endswith("csv"):
        return COMMA.encode()
    if name.endswith("tsv"):
        return COMMA.replace(",", "\t").encode()
    if name.endswith("svm"):
        return "".join(f"{i % 2} 1:{i} 3:{i / 7:.3f}\n" for i in range(12)).encode()
    if name.endswith("npz"):
        np.savez(stream, X=np.arange(24.0).reshape(12, 2), y=np.arange(12) % 2)
    else:
        pl.DataFrame({"n": range(12), "c": ["red", "blue"] * 6}).write_parquet(stream)
    return stream.getvalue()


def damaged(content, rng):
    """One of four kinds of damage."""
    at = int(rng.integers(len(content)))
    kind = rng.integers(4)
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]
    if kind == 2:
        return content[:at] + rng.bytes(int(rng.integers(1, 9))) + content[at:]
    end = at + int(rng.integers(1, 40))
    return content[:end] + content[at:end] * int(rng.integers(1, 4)) + content[end:]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.svm", "a.npz", "a.parquet"])
@pytest.mark.filterwarnings("ignore")  # of the readers, on what they still could read
def test_damaged_data_is_read_or_refused_in_a_line(tmp_path, name):
    rng = np.random.default_rng(0)
    content, path, refused = content_of(name), tmp_path / name, 0
    for _ in range(200):
        path.write_bytes(damaged(content, rng))
        try:
            assert len(read(path))
        except DataError as fault:
            refused += 1
            assert str(fault).startswith(str(path))
            assert "\n" not in str(fault) and len(str(fault)) < len(str(path)) + 300
    assert refused > 8


@pytest.fixture(scope="module")
def model_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m"
    X = np.arange(20.0)[:, None]
    pursuit.save(pursuit.KernelMatchingPursuitRegressor(3).fit(X, np.sin(X[:, 0])), path)
    return path.read_bytes()


def test_damaged_models_are_refused_in_a_line(tmp_path, model_bytes):
    rng = np.random.default_rng(0)
    path = tmp_path / "m"
    path.write_bytes(model_bytes)
    X = np.arange(0.0, 20.0, 0.7)[:, None]
    expected = pursuit.load(path).predict(X)
    for _ in range(200):
        path.write_bytes(damaged(model_bytes, rng))
        try:
            answer = pursuit.load(path).predict(X)
        except ModelFileError as fault:
            assert str(fault).startswith(str(path)) and "\n" not in str(fault)
        else:  # the damage is in what ZIP does not need
            np.testing.assert_array_equal(answer, expected)


def test_a_model_cut_anywhere_is_refused(tmp_path, model_bytes):
    path = tmp_path / "m"
    for end in range(0, len(model_bytes), 13):
        path.write_bytes(model_bytes[:end])
        with pytest.raises(ModelFileError):
            pursuit.load(path)


STRANGE = {
    "deep": "[" * 100_000,
    "no object": "[1, 2]",
    "foreign name": json.dumps(
        {
            "format": "pursuit-model",
            "schema": 1,
            "members": {},
            "version": "1",
            "model": {"type": "estimator", "class": "os.system", "params": {}, "state": {}},
        }
    ),
    "no members": json.dumps({"format": "pursuit-model", "schema": 1}),
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_headers_of_a_model_are_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "m", "w") as archive:
        archive.writestr("model.json", STRANGE[name])
    with pytest.raises(ModelFileError):
        pursuit.load(tmp_path / "m")


def test_an_array_that_claims_more_than_there_is_of_memory(tmp_path):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": (2**50, 2)}
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", stream.getvalue())
    with pytest.raises(DataError, match=r"a\.npz: not a readable NPZ file"):
        read(tmp_path / "a.npz")


# --- saving under misfortune ---------------------------------------------------------------------

SAVING = """
import sys, numpy as np, pursuit
X = np.arange(300.0)[:, None]
model = pursuit.KernelMatchingPursuitRegressor(60, gamma=1.0).fit(X, np.sin(X[:, 0]))
print("on", flush=True)
while True:
    pursuit.save(model, sys.argv[1], staged=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_process_killed_while_saving_leaves_a_whole_file(tmp_path, model_bytes):
    path = tmp_path / "m"
    rng = np.random.default_rng(0)
    for _ in range(2):
        path.write_bytes(model_bytes)
        process = subprocess.Popen(
            [sys.executable, "-c", SAVING, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "on\n"
        try:
            process.wait(timeout=rng.uniform(0.001, 0.2))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert pursuit.load(path).n_components_ in (3, 60)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX limits")
def test_a_disk_without_room_leaves_the_old_file(tmp_path, model_bytes):
    path = tmp_path / "m"
    path.write_bytes(model_bytes)
    X = np.random.default_rng(0).normal(size=(200, 20))
    model = pursuit.KernelMatchingPursuitRegressor(60).fit(X, X[:, 0])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            pursuit.save(model, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == model_bytes
    assert os.listdir(tmp_path) == ["m"]


def test_a_folder_that_may_not_be_written_gives_an_error(tmp_path, model_bytes, monkeypatch):
    path = tmp_path / "m"
    path.write_bytes(model_bytes)
    model = pursuit.load(path)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pursuit.io.files.open", refuse, raising=False)
    with pytest.raises(PermissionError, match="Permission denied"):
        pursuit.save(model, path)
    assert path.read_bytes() == model_bytes
