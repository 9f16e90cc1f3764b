"""The model file: what goes in comes out, and damage is always one clear error."""

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from trees import Holder, Pair, assert_same, holding, known_classes

from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
    kernels,
    model_file,
)
from pursuit.dictionary import OrientedGaussians
from pursuit.expansion.basis_functions import Atoms, FunctionAtoms, OrientedAtoms, unite
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
    save(model, path, staged=True)
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
    save(holding(1), path, staged=True)
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
    save(model, path, staged=True)
    about = describe(path)
    assert about["class"] == "Holder"
    assert about["bytes"] == path.stat().st_size
    assert about["params"] == {"param": "Pair(first=0.5, second=2)", "other": 1}
    assert about["shapes"] == {"value_.first": (2, 3), "value_.second": (4, 5)}
    assert about["fitted"]["size_"] == 3
    assert np.isnan(about["fitted"]["nan_"])
    assert set(about["fitted"]) == {"size_", "nan_"}
    assert about["schema"] == 1


# Functions


def column(X):
    return X[:, 0]


def energy(X):
    return (X**2).sum(axis=1)


NAMED = {"column": column, "energy": energy}


def test_functions_are_given_again(path):
    save(holding({"a": column}, param=NAMED), path, staged=True)
    assert describe(path)["functions"] == ["a", "column", "energy"]
    assert describe(path)["params"]["param"] == {
        "column": "function column",
        "energy": "function energy",
    }
    loaded = load(path, functions={**NAMED, "a": energy, "not needed": column})
    assert loaded.value_ == {"a": energy}
    assert loaded.param == NAMED


def test_missing_functions_are_named(path):
    save(holding({"a": column}, param=NAMED), path, staged=True)
    with pytest.raises(ModelFileError, match=r"load\(path, functions={'a': ..., 'energy': ...}\)"):
        load(path, functions={"column": column})
    with pytest.raises(ModelFileError, match=f"{path.name} names functions, which a model file"):
        load(path)
    with pytest.raises(ValueError, match="functions: 'a' must be a function, got 3"):
        load(path, functions={**NAMED, "a": 3})
    assert load_attachments(path) == {}


def test_a_file_without_functions_needs_none(path):
    save(holding(1), path, staged=True)
    assert describe(path)["functions"] == []
    assert load(path, functions=NAMED).value_ == 1


# Atoms of every kind


def turned(rng, n_atoms):
    centres, axes = rng.normal(size=(n_atoms, 4)), rng.normal(size=(n_atoms, 1, 4))
    return OrientedAtoms(centres, axes, np.ones((n_atoms, 1)), 0.5)


def test_atoms_round_trip(path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 4))
    for atoms in (
        turned(rng, 3),
        FunctionAtoms(NAMED, ("energy", "column", "energy")),
        unite([Atoms(kernels.RBF(0.5), X), FunctionAtoms(NAMED), turned(rng, 2)]),
        unite([Atoms(kernels.RBF(0.5), X[:2]), Atoms(kernels.Linear(), X)]),
    ):
        save(holding(atoms, param=OrientedGaussians(7)), path, staged=True)
        loaded = load(path, functions=NAMED)
        assert type(loaded.value_) is type(atoms)
        assert loaded.value_.names == atoms.names
        assert_array_equal(loaded.value_.functions(X), atoms.functions(X), strict=True)
        assert loaded.param == OrientedGaussians(7)


def test_chosen_oriented_gaussians_alone_are_in_the_file(path):
    rng = np.random.default_rng(0)
    few = turned(rng, 3)
    save(holding(few), path, staged=True)
    size = path.stat().st_size
    save(holding(unite([turned(rng, 5000), few]).take(np.arange(5000, 5003))), path, staged=True)
    assert path.stat().st_size == size


# Writing is all or nothing


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_interrupted_save_leaves_the_old_file(path, monkeypatch, error, call):
    save(holding("old"), path, staged=True)

    def interrupt(*_):
        raise error

    monkeypatch.setattr(os, call, interrupt)
    with pytest.raises(error):
        save(holding("new"), path, staged=True)
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


def function_without_a_name(header, members):
    header["model"]["state"]["value_"] = {"type": "function"}


def function_of_the_system(header, members):
    header["model"]["state"]["value_"] = {"type": "function", "name": "os.system"}


def function_with_an_odd_name(header, members):
    header["model"]["state"]["value_"] = {"type": "function", "name": [1]}


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
        (function_without_a_name, "is damaged: 'name'"),
        (function_of_the_system, "functions={'os.system': ...}"),
        (function_with_an_odd_name, "is damaged: unhashable"),
        (unknown_type, "is damaged: 'pickle'"),
        (odd_scalar, "no scalar has the type 'O'"),
        (unhashable_key, "unhashable"),
        (wild_csr, "is damaged"),
    ],
)
def test_forged_file(path, change, message):
    save(holding(np.array([1.0, 2.0, 3.0])), path, staged=True)
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
    save(holding(1), path, staged=True)
    assert load(path).value_ == 1
    assert Path(path).exists()


# The package's own estimators

IRIS, SPECIES = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"], dtype=object)[SPECIES]
TABLE = pd.DataFrame(IRIS, columns=["a", "b", "c", "d"])
SPARSE = sparse.csr_matrix(np.where(IRIS > 1.5, IRIS, 0.0))
AGES, PROGRESS = load_diabetes(return_X_y=True)
AGES = AGES[:150]
TARGETS = np.column_stack([PROGRESS[:150], AGES[:, 2]])
Classifier, Regressor = KernelMatchingPursuitClassifier, KernelMatchingPursuitRegressor
ClassifierCV, RegressorCV = KernelMatchingPursuitClassifierCV, KernelMatchingPursuitRegressorCV

CASES = {
    "prefit": (Classifier(12), IRIS, SPECIES),
    "backfit": (Classifier(12, fitting="backfit"), IRIS, SPECIES),
    "basic": (Classifier(12, fitting="basic"), IRIS, SPECIES),
    "two classes": (Classifier(12), IRIS, SPECIES == 1),
    "one-vs-rest": (Classifier(12, multi_class="ovr"), IRIS, NAMES),
    "one-vs-rest basic": (Classifier(12, multi_class="ovr", fitting="basic"), IRIS, SPECIES),
    "own budgets": (Classifier(np.array([2, 5, 4]), multi_class="ovr"), IRIS, SPECIES),
    "table and names": (Classifier(12, class_weight={"setosa": 2.0}), TABLE, NAMES),
    "class weights by number": (Classifier(12, class_weight={0: 2, 1: 1, 2: 0.5}), IRIS, SPECIES),
    "float32": (Classifier(12), IRIS.astype(np.float32), SPECIES),
    "fortran": (Classifier(12), np.asfortranarray(IRIS), SPECIES),
    "sparse": (Classifier(12), SPARSE, SPECIES),
    "sparse long": (Classifier(12), sparse.csr_array(SPARSE, dtype=np.float32), SPECIES),
    "precomputed": (Classifier(3, kernel="precomputed"), IRIS @ IRIS.T, SPECIES),
    "centres": (Classifier(12, dictionary=IRIS[::10] + 0.1), IRIS, SPECIES),
    "table of centres": (Classifier(12, dictionary=TABLE[::10]), TABLE, SPECIES),
    "leave-one-out": (Classifier(12, early_stopping="loo"), IRIS, SPECIES),
    "held-out": (Classifier(12, early_stopping=True, random_state=0), IRIS, SPECIES),
    "subset": (Classifier(5, n_candidates=0.2, random_state=np.random.RandomState(0)), IRIS, NAMES),
    "ridge": (Classifier(12, alpha=0.1, fit_intercept=False), IRIS, SPECIES),
    "laplacian": (Classifier(12, kernel="laplacian", gamma=0.3), IRIS, SPECIES),
    "polynomial": (Classifier(6, kernel="polynomial", gamma=0.1), IRIS, SPECIES),
    "sigmoid": (Classifier(5, kernel="sigmoid", gamma=0.01), IRIS, SPECIES),
    "cosine": (Classifier(5, kernel=kernels.CosinePolynomial(2, 0.5)), IRIS, SPECIES),
    "linear": (Classifier(2, kernel=kernels.Linear()), IRIS, SPECIES),
    "classifier cv": (ClassifierCV(12, cv=3, gammas=[0.1, 1.0]), IRIS, NAMES),
    "regressor": (Regressor(12), AGES, TARGETS[:, 0]),
    "regressor basic": (Regressor(12, fitting="basic"), AGES, TARGETS[:, 0]),
    "two targets": (Regressor(12), AGES, TARGETS),
    "regressor cv": (RegressorCV(12, cv=3, gammas=np.array([0.1, 1.0])), AGES, TARGETS),
}


@pytest.fixture(scope="module", params=CASES)
def fitted(request):
    model, X, y = CASES[request.param]
    return model.fit(X, y), X


def outputs(model, X):
    """Every prediction that a model can give, by name."""
    methods = ("predict", "decision_function", "predict_proba")
    values = {name: getattr(model, name)(X) for name in methods if hasattr(model, name)}
    return {"expansion": model.expansion_(np.asarray(X) if X is TABLE else X), **values}


def test_real_model_round_trip(path, fitted):
    model, X = fitted
    save(model, path, staged=True)
    loaded = load(path)
    assert type(loaded) is type(model)
    for (name, value), (_, expected) in zip(
        outputs(loaded, X).items(), outputs(model, X).items(), strict=True
    ):
        assert_array_equal(value, expected, strict=True, err_msg=name)
    for stage, expected in zip(loaded.staged_predict(X), model.staged_predict(X), strict=True):
        assert_array_equal(stage, expected, strict=True)
    half, expected = loaded.truncate(model.n_iter_ // 2), model.truncate(model.n_iter_ // 2)
    assert_array_equal(half.predict(X), expected.predict(X), strict=True)
    assert vars(loaded).keys() == vars(model).keys()
    again = path.with_suffix(".again")
    save(loaded, again, staged=True)
    if not isinstance(model.random_state, np.random.RandomState):
        assert again.read_bytes() == path.read_bytes()


def test_real_model_without_its_path(path, fitted):
    model, X = fitted
    save(model, path, staged=True)
    complete = path.stat().st_size
    save(model, path, staged=False)
    assert path.stat().st_size < complete
    loaded = load(path)
    assert_array_equal(loaded.predict(X), model.predict(X), strict=True)
    with pytest.raises(ValueError, match="staged=False"):
        next(loaded.staged_predict(X))
    with pytest.raises(ValueError, match="staged=False"):
        loaded.truncate(1)


def test_real_model_is_described(path, fitted):
    model, _ = fitted
    save(model, path, staged=True)
    about = describe(path)
    assert about["class"] == type(model).__name__
    assert about["params"].keys() == model.get_params(deep=False).keys()
    assert about["shapes"]["dual_coef_"] == model.dual_coef_.shape
    assert about["fitted"]["kernel_"] == repr(model.kernel_)
    assert about["fitted"]["stop_reason_"] == model.stop_reason_
    assert about["fitted"]["n_components_"] == model.n_components_


# Dictionaries of several kinds


MIXED = {
    "widths": Classifier(8, dictionary=[kernels.RBF(0.1), kernels.RBF(2.0)]),
    "oriented": Classifier(8, dictionary=OrientedGaussians(5, 2)),
    "functions": Classifier(2, dictionary=NAMED),
    "all kinds": Classifier(
        12, dictionary=(None, NAMED, OrientedGaussians(5), IRIS[:3], kernels.Linear())
    ),
    "class kernels": Classifier(8, kernel={0: "rbf", 1: "linear", 2: "laplacian"}),
    "one-vs-rest": Classifier(9, multi_class="ovr", dictionary=[None, NAMED, OrientedGaussians(5)]),
}


@pytest.mark.parametrize("name", MIXED)
def test_models_with_mixed_dictionaries(path, name):
    model = MIXED[name].fit(IRIS, SPECIES)
    save(model, path, staged=True)
    loaded = load(path, functions=NAMED)
    assert loaded.component_names_ == model.component_names_
    for other, expected in ((loaded, model), (loaded.truncate(2), model.truncate(2))):
        assert vars(other).keys() == vars(expected).keys()
        assert_array_equal(other.predict_proba(IRIS), expected.predict_proba(IRIS), strict=True)
    for stage, expected in zip(
        loaded.staged_decision_function(IRIS), model.staged_decision_function(IRIS), strict=True
    ):
        assert_array_equal(stage, expected, strict=True)
    again = path.with_suffix(".again")
    save(loaded, again, staged=True)
    assert again.read_bytes() == path.read_bytes()
    named = name in ("functions", "all kinds", "one-vs-rest")
    assert describe(path)["functions"] == (["column", "energy"] if named else [])


def test_size_does_not_depend_on_the_number_of_oriented_gaussians(path):
    rng = np.random.default_rng(0)
    sizes = []
    for n_rows in (100, 1000):
        X = rng.normal(size=(n_rows, 20))
        save(Classifier(10, dictionary=OrientedGaussians(5, 3)).fit(X, X[:, 0] > 0), path)
        sizes.append(path.stat().st_size)
    assert abs(sizes[1] - sizes[0]) < 0.05 * sizes[0]


PREDICT = """
import sys, pathlib, numpy as np
from pursuit import load
for path in pathlib.Path(sys.argv[1]).glob("*.pursuit"):
    X = np.load(path.with_suffix(".npy"))
    np.save(path.with_suffix(".out.npy"), load(path).expansion_(X))
"""


def test_fresh_process_gives_the_same_bits(tmp_path):
    expected = {}
    for number, (model, X, y) in enumerate(CASES.values()):
        if isinstance(X, np.ndarray):
            path = tmp_path / f"{number}.pursuit"
            save(model.fit(X, y), path)
            np.save(path.with_suffix(".npy"), X)
            expected[path.with_suffix(".out.npy")] = model.expansion_(X)
    subprocess.run([sys.executable, "-c", PREDICT, str(tmp_path)], check=True)
    for path, values in expected.items():
        assert_array_equal(np.load(path), values, strict=True)
    assert len(expected) > 20


def test_size_does_not_depend_on_the_number_of_training_rows(path):
    rng = np.random.default_rng(0)
    sizes = []
    for n_rows in (100, 2000):
        X = rng.normal(size=(n_rows, 20))
        model = Classifier(20, early_stopping=True, random_state=0).fit(X, X[:, 0] > 0)
        save(model.truncate(10), path, staged=True)
        sizes.append(path.stat().st_size)
    assert abs(sizes[1] - sizes[0]) < 0.05 * sizes[0]


def test_model_of_a_python_function_is_refused(path):
    model = Classifier(3, kernel=lambda X, Z: X @ Z.T).fit(IRIS, SPECIES)
    with pytest.raises(ValueError, match="parameter kernel is a Python function.*by name"):
        save(model, path, staged=True)
    model = Classifier(3, kernel=kernels.FunctionKernel(np.inner)).fit(IRIS, SPECIES)
    with pytest.raises(ValueError, match="parameter kernel is a Python function"):
        save(model, path, staged=True)
    assert list(path.parent.iterdir()) == []


def test_damage_to_a_real_model_is_refused_or_harmless(path):
    model = Classifier(8).fit(IRIS, NAMES)
    save(model, path, staged=True)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.integers(len(content), size=200):
        damaged = bytearray(content)
        damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            loaded = load(path)
        except ModelFileError:
            refused += 1
        else:
            assert_array_equal(loaded.predict_proba(IRIS), model.predict_proba(IRIS))
    assert refused > 100


def test_many_members_that_unfold_together_to_too_much(path):
    """Each of them is within its own limit."""
    model = KernelMatchingPursuitClassifier(1).fit([[0.0], [1.0]], [0, 1])
    zeros = {f"a{i}": bytes(2**20) for i in range(20)}
    save(model, path, attachments=zeros)
    assert load_attachments(path) == zeros  # stored, since they would unfold to too much
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    for read in (load, load_attachments, describe):
        with pytest.raises(ModelFileError, match="claims 1048576 bytes, all members 2"):
            read(path)
