"""Machines in files of skops: which are read, which are refused, and the rows they get."""

import io
import zipfile
import zlib

import numpy as np
import polars as pl
import pytest
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from pursuit import compress
from pursuit.io.skops_archive import checked_archive
from pursuit.io.skops_file import read_machine_file, rows_for, write_machine_file
from pursuit.io.tables import DataError, Matrix, Table
from pursuit.model_file import ModelFileError

X, y = load_iris(return_X_y=True)
PROCESS = GaussianProcessRegressor(
    ConstantKernel(2.0) * RBF(1.0) + WhiteKernel(0.1), optimizer=None
)


class Sneaky(SVC):
    """A class that no reader knows."""


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(),
        NuSVC(nu=0.1),
        SVR(),
        NuSVR(),
        OneClassSVM(),
        KernelRidge(kernel="rbf"),
        PROCESS,
        make_pipeline(StandardScaler(), SVC()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_what_skops_saved_is_read(estimator, tmp_path):
    estimator.fit(X, y)
    skops.io.dump(estimator, tmp_path / "machine.skops")
    same = read_machine_file(tmp_path / "machine.skops")
    assert_allclose(same.predict(X), estimator.predict(X), rtol=1e-9)
    assert compress(same, 5)


def test_other_types_are_refused_before_anything_is_built(tmp_path, monkeypatch):
    path = tmp_path / "machine.skops"
    monkeypatch.setattr(skops.io, "load", lambda *args, **options: pytest.fail("built"))
    for estimator in (Sneaky(), make_pipeline(FunctionTransformer(print), SVC())):
        skops.io.dump(estimator, path)
        with pytest.raises(ModelFileError, match="names the type .*, which is not trusted"):
            read_machine_file(path)


def test_damaged_and_foreign_files_are_told(tmp_path):
    path = tmp_path / "machine.skops"
    path.write_text("no archive")
    with pytest.raises(ModelFileError, match="not a file that skops.io.dump wrote"):
        read_machine_file(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
    with pytest.raises(ModelFileError, match="not a file that skops.io.dump wrote"):
        read_machine_file(path)
    skops.io.dump({"a": 1}, path)
    with pytest.raises(ModelFileError, match="holds no estimator but an object of class dict"):
        read_machine_file(path)


def test_a_compressed_pipeline_comes_back(tmp_path):
    small = compress(make_pipeline(StandardScaler(), SVC()).fit(X, y), 8)
    path = tmp_path / "small.skops"
    write_machine_file(small, path)
    same = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    assert_array_equal(same.predict(X), small.predict(X))
    assert list(tmp_path.iterdir()) == [path]


def table(**columns):
    return Table("rows.csv", pl.DataFrame(columns))


def test_columns_by_name_or_in_their_order():
    cells = {"b": ["1", "2"], "a": ["3", None], "kind": ["u", "v"]}
    named = SVC().fit(pl.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]}), ["u", "v"])
    rows = rows_for(named, table(**cells, other=["x", "y"]), "kind")
    assert rows.X.columns == ["a", "b"]
    assert_array_equal(rows.X.to_numpy(), [[3.0, 1.0], [np.nan, 2.0]])
    assert_array_equal(rows.y, ["u", "v"])
    bare = SVC().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    rows = rows_for(bare, table(b=["1", "2"], a=["3", "4"]), None)
    assert_array_equal(rows.X, [[1.0, 3.0], [2.0, 4.0]])
    assert rows.y is None


@pytest.mark.parametrize(
    ("labels", "cells", "expected"),
    [
        ([0, 7], ["7", "0"], [7, 0]),
        (["0", "7"], ["7", "0"], ["7", "0"]),
        ([False, True], ["True", "false"], [True, False]),
    ],
)
def test_targets_are_of_the_type_of_the_classes(labels, cells, expected):
    svc = SVC().fit([[0.0], [1.0]], labels)
    rows = rows_for(svc, table(x=["1", "2"], label=cells), "label")
    assert rows.y.tolist() == expected


def test_targets_of_a_regression_are_numbers():
    svr = SVR().fit([[0.0], [1.0]], [0.5, 1.5])
    rows = rows_for(svr, table(x=["1", "2"], price=["2.5", "3"]), "price")
    assert rows.y.tolist() == [2.5, 3.0]


@pytest.mark.parametrize("first", [0, 1])
def test_libsvm_text_counts_from_zero_or_one(first):
    svc = SVC().fit(sparse.csr_matrix([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]), [0, 1])
    read = sparse.csr_matrix(np.hstack([np.zeros((2, first)), [[1.0, 0.0], [0.0, 5.0]]]))
    rows = rows_for(svc, Matrix("rows.svm", read, np.array([0, 1])), None)
    assert_array_equal(rows.X.toarray(), [[1.0, 0.0, 0.0], [0.0, 5.0, 0.0]])
    assert_array_equal(rows.y, [0, 1])


def test_faults_name_the_file():
    svc = SVC().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    named = SVC().fit(pl.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]}), ["u", "v"])
    cases = [
        (svc, table(x=["1"]), None, "rows.csv: 1 columns, but the model has 2 features"),
        (svc, table(x=["1"], y=["1"]), "y", "rows.csv: 1 columns beside 'y', but the model has 2"),
        (svc, table(x=["1"], y=["word"]), None, "rows.csv: row 1.*word"),
        (svc, table(x=["1"], y=["1"], z=[None]), "z", "row 1: column 'z': no target"),
        (svc, table(x=["1"], y=["1"]), "z", "no column 'z'"),
        (named, table(a=["1"], c=["1"]), None, "no column 'b'"),
        (svc, Matrix("rows.npz", np.ones((2, 3)), None), None, "rows.npz: 3 features"),
        (svc, Matrix("r.svm", sparse.csr_matrix(np.ones((2, 3))), None), None, "r.svm: 3 features"),
    ]
    for estimator, data, target, message in cases:
        with pytest.raises(DataError, match=message):
            rows_for(estimator, data, target)


def test_rows_with_decimal_commas():
    table = Table("a.csv", pl.DataFrame({"a": ["1,5", "-2"], "y": ["1.000,5", "2"]}))
    model = KernelRidge().fit([[1.0], [2.0]], [1.0, 2.0])
    X, y = rows_for(model, table, "y")
    assert X.tolist() == [[1.5], [-2.0]]
    assert y.tolist() == [1000.5, 2.0]


def test_a_file_that_unfolds_to_too_much_is_refused(tmp_path):
    path = tmp_path / "bomb.skops"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b" " * 2**27)
    with pytest.raises(ModelFileError, match="schema.json claims 134217728 bytes"):
        read_machine_file(path)


def test_what_skops_reads_is_as_long_as_it_claims():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(1000))
    forged = packed.getvalue().replace((1000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    with pytest.raises(zipfile.BadZipFile, match="CRC"):
        checked_archive(forged)
    crc = zlib.crc32(bytes(1000)).to_bytes(4, "little")
    forged = forged.replace(crc, zlib.crc32(bytes(10)).to_bytes(4, "little"))
    with zipfile.ZipFile(io.BytesIO(checked_archive(forged))) as archive:
        assert (archive.read("a"), archive.getinfo("a").compress_size) == (bytes(10), 10)
