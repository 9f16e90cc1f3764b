"""Pipelines, options, types of labels, and what is refused; round trips in a new process."""

import pickle
import shutil
import subprocess
import sys

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import skl2onnx
import skops.io
from exported import fitted
from mapie.classification import SplitConformalClassifier
from mapie.regression import SplitConformalRegressor
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import pursuit as p
from pursuit.export import compiled
from pursuit.onnx import register, to_onnx

X, y = load_iris(return_X_y=True)
SINGLE = X.astype(np.float32)


def session_of(converted):
    return onnxruntime.InferenceSession(
        converted.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def run(converted, **inputs):
    return session_of(converted).run(None, inputs)


# --- tables ------------------------------------------------------------------------------------


def table(n=150):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n).astype(np.float32),
            "city": rng.choice(["Bonn", "Ulm", "Köln"], n),
            "rooms": rng.integers(1, 6, n),
        }
    )
    return frame, np.where((frame["size"] > 0) ^ (frame["city"] == "Ulm"), "yes", "no")


def columns():
    numbers = ("numbers", StandardScaler(), ["size", "rooms"])
    words = ("words", OneHotEncoder(handle_unknown="ignore"), ["city"])
    return ColumnTransformer([numbers, words])


TAILS = {
    "kmp": [p.KernelMatchingPursuitClassifier(12)],
    "nystroem": [p.GreedyNystroem(n_components=12), LogisticRegression()],
    "scaled": [StandardScaler(with_mean=False), p.SparseLargeMarginClassifier(5, random_state=0)],
}


@pytest.mark.parametrize("name", TAILS)
def test_pipelines_of_tables(name):
    frame, labels = table()
    model = make_pipeline(columns(), *TAILS[name]).fit(frame, labels)
    session = session_of(to_onnx(model, frame))
    kinds = {"size": "tensor(float)", "city": "tensor(string)", "rooms": "tensor(int64)"}
    assert {each.name: each.type for each in session.get_inputs()} == kinds
    other = frame.assign(city=frame["city"].replace("Köln", "Rom"))  # a word that is not known
    for rows in (frame, other):
        feed = {c: rows[[c]].to_numpy(object if c == "city" else None) for c in frame.columns}
        found, numbers = session.run(None, feed)
        assert_array_equal(found, model.predict(rows))
        if hasattr(model, "predict_proba"):
            assert_allclose(numbers, model.predict_proba(rows), atol=1e-5)
        else:
            assert_allclose(numbers[:, 1], model.decision_function(rows), atol=1e-5)


def test_a_matrix_with_a_column_of_codes():
    rows = np.column_stack([SINGLE[:, :3], np.rint(SINGLE[:, 3])])
    steps = make_pipeline(StandardScaler(), SimpleImputer())
    encoded = ColumnTransformer([("n", steps, [0, 1, 2]), ("c", OneHotEncoder(), [3])])
    model = make_pipeline(encoded, p.KernelMatchingPursuitClassifier(8)).fit(rows, y)
    found, numbers = run(to_onnx(model, rows), X=rows)
    assert_array_equal(found, model.predict(rows))
    assert_allclose(numbers, model.predict_proba(rows), atol=1e-5)


def test_searches_and_targets():
    search = GridSearchCV(make_pipeline(StandardScaler(), TAILS["kmp"][0]), {}, cv=2).fit(X, y)
    assert_allclose(run(to_onnx(search), X=SINGLE)[1], search.predict_proba(X), atol=1e-5)
    frame, _ = table()
    numbers = 100 * frame["size"].to_numpy(np.float64) + 5
    steps = make_pipeline(columns(), p.KernelMatchingPursuitRegressor(8))
    model = TransformedTargetRegressor(steps, transformer=StandardScaler()).fit(frame, numbers)
    feed = {c: frame[[c]].to_numpy(object if c == "city" else None) for c in frame.columns}
    found = run(to_onnx(model, frame), **feed)[0][:, 0]
    assert_allclose(found, model.predict(frame), atol=1e-5 * np.abs(numbers).max())


# --- options and labels ------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [["b", "a", "é"], [3, -1, 10**12], [1.0, 2.0, 4.0]])
def test_types_of_labels(labels):
    classes = np.array(labels)[y]
    model = p.KernelMatchingPursuitClassifier(6).fit(X, classes)
    found = run(to_onnx(model), X=SINGLE)[0]
    assert_array_equal(found, model.predict(X))
    truths = p.KernelMatchingPursuitClassifier(6).fit(X, y == 1)
    assert run(to_onnx(truths), X=SINGLE)[0].dtype == bool


def test_options_of_a_classifier():
    model = p.KernelMatchingPursuitClassifier(6).fit(X, np.array(["u", "v", "w"])[y])
    expected = model.predict_proba(X)
    mappings = run(to_onnx(model, zipmap=True), X=SINGLE)[1]
    assert_allclose([[row[c] for c in "uvw"] for row in mappings], expected, atol=1e-5)
    apart = run(to_onnx(model, zipmap="columns"), X=SINGLE)[1:]
    assert_allclose(np.array(apart).T, expected, atol=1e-5)
    raw = run(to_onnx(model, raw_scores=True), X=SINGLE)[1]
    assert_allclose(raw, model.decision_function(X), atol=1e-5)
    two = p.KernelMatchingPursuitClassifier(6).fit(X, y > 0)
    raw = run(to_onnx(two, raw_scores=True), X=SINGLE)[1]
    assert_allclose(raw, np.outer(two.decision_function(X), [-1, 1]), atol=1e-5)


def test_registered_estimators_go_where_scikit_learn_has_converters():
    register()
    kmp = p.KernelMatchingPursuitClassifier(6)
    models = {
        "calibrated": CalibratedClassifierCV(kmp, cv=2),
        "one against the rest": OneVsRestClassifier(p.SparseKernelClassifier(4, random_state=0)),
        "pipeline": make_pipeline(
            StandardScaler(), p.GreedyNystroem(n_components=6), LogisticRegression()
        ),
    }
    for model in models.values():
        model.fit(X, y)
        converted = skl2onnx.to_onnx(model, SINGLE[:1], options={"zipmap": False})
        found, numbers = run(converted, X=SINGLE)
        assert_array_equal(found, model.predict(X))
        assert_allclose(numbers, model.predict_proba(X), atol=1e-5)


# --- what is refused ---------------------------------------------------------------------------


def test_refusals_are_one_line():
    labels = np.array(["no", "yes"])[y % 2]
    indicator = make_pipeline(
        ColumnTransformer([("i", SimpleImputer(add_indicator=True), [0, 1, 2, 3])]), TAILS["kmp"][0]
    ).fit(np.where(X > 6, np.nan, X), labels)
    refused = {
        "HyperplaneKNeighborsClassifier is no kernel expansion; only models with a kernel exp": (
            p.HyperplaneKNeighborsClassifier().fit(X, y),
            {},
        ),
        r"functions of the kind Precomputed\(\) cannot be exported": (
            p.KernelMatchingPursuitClassifier(3, kernel="precomputed").fit(X @ X.T, y),
            {},
        ),
        "of a model of a table convert the estimator_": (
            p.TableModel(3, gamma=0.1, C=1.0).fit(X, labels),
            {},
        ),
        "X is needed: the inputs of a ColumnTransformer": (
            make_pipeline(columns(), TAILS["kmp"][0]).fit(*table()),
            {},
        ),
        r"SimpleImputer\(add_indicator=True\) is not in skl2onnx; convert pursuit.export.pl": (
            indicator,
            {"X": X},
        ),
        "dtype must be 'float32' or 'float64', got 'float16'": (
            fitted("kmp ovr")[0],
            {"dtype": "float16"},
        ),
        "target_opset must be at least 13, got 9": (fitted("kmp ovr")[0], {"target_opset": 9}),
    }
    for message, (model, options) in refused.items():
        with pytest.raises(ValueError, match=message) as caught:
            to_onnx(model, **options)
        assert "\n" not in str(caught.value)
    register()
    with pytest.raises(ValueError, match="HyperplaneKNeighborsClassifier is no kernel expansion"):
        skl2onnx.to_onnx(p.HyperplaneKNeighborsClassifier().fit(X, y), SINGLE[:1])


def test_older_operators():
    model = fitted("kmp ovr")[0]
    converted = to_onnx(model, target_opset=13)
    assert {each.domain: each.version for each in converted.opset_import}[""] == 13
    rows = fitted("kmp ovr")[1].astype(np.float32)
    assert_allclose(run(converted, X=rows)[1], run(to_onnx(model), X=rows)[1], atol=1e-6)


def test_without_the_extra_a_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("pursuit.onnx.find_spec", lambda name: None)
    for call in (register, lambda: to_onnx(fitted("kmp ovr")[0])):
        with pytest.raises(ImportError, match=r"needs skl2onnx, onnx: pip install 'pursuit\[onnx"):
            call()


# --- others' tools, and a new process ----------------------------------------------------------

CLASSIFIERS = {
    "kmp": p.KernelMatchingPursuitClassifier(6),
    "moving": p.SparseKernelClassifier(4, random_state=0),
    "slmc": p.SparseLargeMarginClassifier(5, random_state=0),
    "reduced set": p.ReducedSetClassifier(6),
    "rsvm": p.ReducedSupportVectorClassifier(6, random_state=0),
    "rvm": p.RelevanceVectorClassifier(6),
    "network": p.ConvexNetworkClassifier(n_components=10, random_state=0),
    "hyperplanes": p.HyperplaneKNeighborsClassifier(5),
    "hulls": p.ConvexKNeighborsClassifier(5),
    "densities": p.DensityClassifier(p.ParzenDensity(bandwidth=0.3)),
    "centroid": p.KernelCentroidClassifier(),
    "svc": p.CompressedClassifier(SVC(), 6),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_can_be_calibrated(name):
    calibrated = CalibratedClassifierCV(CLASSIFIERS[name], cv=2).fit(X[::2], y[::2])
    assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    assert np.mean(calibrated.predict(X) == y) > 0.85


def test_conformal_sets_and_intervals_of_mapie():
    half = np.arange(len(X)) % 2 == 0
    for model in (
        p.KernelMatchingPursuitClassifier(9),
        p.SparseKernelClassifier(4, random_state=0),
    ):
        sets = SplitConformalClassifier(model, confidence_level=0.9, prefit=False)
        sets.fit(X[half], y[half]).conformalize(X[~half], y[~half])
        _, inside = sets.predict_set(X[~half])
        covered = inside[np.arange((~half).sum()), y[~half], 0]
        assert 0.9 <= covered.mean() <= 1.0
    target = X[:, 0] + np.random.default_rng(0).normal(size=len(X))
    interval = SplitConformalRegressor(
        p.KernelMatchingPursuitRegressor(5), confidence_level=0.9, prefit=False
    )
    interval.fit(X[half], target[half]).conformalize(X[~half], target[~half])
    _, bounds = interval.predict_interval(X[~half])
    inside = (bounds[:, 0, 0] <= target[~half]) & (target[~half] <= bounds[:, 1, 0])
    assert 0.9 <= inside.mean() <= 0.95


SCRIPT = """
import pickle, sys
import numpy as np
import pursuit, pursuit.onnx
assert not {"skl2onnx", "onnx", "onnxruntime", "skops", "polars"} & set(sys.modules)
import onnxruntime, skops.io
X = np.load("X.npy")
found = {"pursuit": pursuit.load("m.pursuit").predict_proba(X)}
with open("m.pickle", "rb") as stream:
    found["pickle"] = pickle.load(stream).predict_proba(X)
trusted = skops.io.get_untrusted_types(file="m.skops")
assert all(name.startswith("pursuit.") for name in trusted if name != "numpy.dtype"), trusted
found["skops"] = skops.io.load("m.skops", trusted=trusted).predict_proba(X)
if len(sys.argv) > 1:
    with open("c.pickle", "rb") as stream:
        found["C"] = pickle.load(stream).predict_proba(X)
session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
found["onnx"] = session.run(["probabilities"], {"X": X.astype(np.float32)})[0]
np.savez("found.npz", **found)
"""


def test_files_of_every_kind_agree_in_a_new_process(tmp_path):
    model = make_pipeline(StandardScaler(), p.SparseKernelClassifier(6, random_state=0)).fit(X, y)
    p.save(model, tmp_path / "m.pursuit")
    (tmp_path / "m.pickle").write_bytes(pickle.dumps(model))
    skops.io.dump(model, tmp_path / "m.skops")
    (tmp_path / "m.onnx").write_bytes(to_onnx(model).SerializeToString())
    np.save(tmp_path / "X.npy", X)
    with_c = ["C"] if shutil.which("cc") else []
    if with_c:
        (tmp_path / "c.pickle").write_bytes(pickle.dumps(compiled(model)))
    subprocess.run([sys.executable, "-c", SCRIPT, *with_c], check=True, cwd=tmp_path)
    expected = model.predict_proba(X)
    with np.load(tmp_path / "found.npz") as found:
        assert set(found) == {"pursuit", "pickle", "skops", "onnx", *with_c}
        for kind, values in found.items():
            tolerance = 1e-5 if kind in ("onnx", "C") else 1e-14
            assert_allclose(values, expected, rtol=0, atol=tolerance)
