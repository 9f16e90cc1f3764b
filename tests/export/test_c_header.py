"""Exported C, compiled without a warning and run under sanitizers, says what Python says."""

import re
import subprocess
import sys

import numpy as np
import pytest
from c_program import CODED, ODD, WARNINGS, build, constants, headers, needs_cc, run, source
from exported import CASES, blobs, fitted
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pursuit as p
from pursuit.export import plain, stored_model, to_c
from pursuit.export.c_header import margins
from pursuit.export.c_text import identifier
from pursuit.export.plain_model import (
    class_codes,
    class_probabilities,
    decision_values,
    outputs,
    predictions,
)
from pursuit.export.stored_model import largest_outputs, stored
from pursuit.kernels import RBF, Laplacian

RELATIVE = 1e-5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("headers")


@pytest.fixture(scope="module")
def found(folder):
    return headers(folder)


@pytest.fixture(scope="module")
def answered(folder, found):
    return run(folder, found)


def names(dtype):
    return [f"{identifier(name)}_{dtype}" for name in (CASES if dtype == "float32" else CODED)]


def compared(answered, found, name, dtype):
    """Compare all answers of one model with those of its numbers as they are stored."""
    (values, *rest), failures, _ = answered[name]
    assert failures == 0
    record, X = found[name]
    X = X.astype(np.float32).astype(np.float64)
    kept = stored(record, dtype)
    expected = outputs(record if dtype == "float32" else kept.model, X)
    filled = np.where(np.isnan(X), 0.0 if record.fill is None else record.fill, X)
    bound = RELATIVE * largest_outputs(kept, filled).max()
    assert_allclose(values, expected, rtol=0, atol=bound)
    check_answers(record, rest, expected, values, bound)
    return expected, values


def check_answers(record, rest, expected, values, bound):
    """What the C code makes of its outputs."""
    if record.task in ("regressor", "transformer"):
        wanted = predictions(record, values.astype(float)).reshape(rest[0].shape)
        assert_allclose(rest[0], wanted, rtol=1e-5)
        return
    codes = rest[0][:, 0].astype(int)
    if record.task == "outlier_detector":
        codes = (codes + 1) // 2
        assert_allclose(rest[1], values + record.offset, rtol=1e-5, atol=1e-6)
    certain = margins(record, expected) > 2.0 * bound
    assert certain.mean() > 0.5 or not expected.any()
    assert_array_equal(codes[certain], class_codes(record, expected)[certain])
    decision = rest[2] if record.task == "outlier_detector" else rest[1]
    assert_allclose(decision, decision_values(record, values.astype(float)), rtol=1e-5, atol=1e-5)
    if record.probabilities:
        wanted = class_probabilities(record, values.astype(float))
        assert_allclose(rest[2], wanted, rtol=2e-5, atol=1e-7)


@needs_cc
@pytest.mark.parametrize("name", names("float32"))
def test_single_precision_equals_python(answered, found, name):
    expected, values = compared(answered, found, name, "float32")
    kinds = [part.kernel for part in found[name][0].parts]
    if all(isinstance(kind, (RBF, Laplacian)) for kind in kinds) and "one_class" not in name:
        assert_allclose(values, expected, rtol=0, atol=RELATIVE * np.abs(expected).max())


@needs_cc
@pytest.mark.parametrize("dtype", ["int16", "int8"])
def test_codes_are_computed_as_they_are_stored(answered, found, dtype):
    for name in names(dtype):
        compared(answered, found, name, dtype)


@needs_cc
def test_two_bytes_change_little(answered, found):
    for name in names("int16"):
        if "poly" not in name:
            outputs_of_two, outputs_of_four = (
                answered[one][0][0] for one in (name, name.replace("int16", "float32"))
            )
            largest = np.abs(outputs_of_four).max()
            assert_allclose(outputs_of_two, outputs_of_four, rtol=0, atol=2e-3 * largest)


@needs_cc
def test_names_of_classes_arrive_as_they_are(answered):
    _, failures, found = answered["odd"]
    assert failures == 0
    assert [name.decode() for name in found] == ODD


@needs_cc
def test_lengths_of_long_rows(answered, found):
    compared(answered, found, "wide", "float32")


@needs_cc
def test_ties_go_where_the_model_sends_them_and_nothing_overflows(answered):
    classes = {name: set(answered[name][0][1].ravel()) for name in answered if "_" in name}
    ties = {name: found for name, found in classes.items() if name.startswith("tie_")}
    high = {"tie_votes": {2.0}, "tie_high": {1.0}}
    assert ties == {name: high.get(name, {0.0}) for name in ties} and len(ties) == 5
    for name in ("far_sigmoids", "far_softmax", "far_two"):
        record = constants()[name]
        wanted = class_probabilities(record, record.intercept[None])
        assert_allclose(answered[name][0][3][:1], wanted, rtol=1e-5, atol=1e-30)


@needs_cc
def test_the_same_text_is_cpp(folder, found):
    (folder / "all.cpp").write_text(source(found))
    flags = [flag for flag in WARNINGS if flag != "-Wdouble-promotion"]
    command = ["c++", "-std=c++11", *flags, "-DPURSUIT_SELFTEST", "-DPURSUIT_NO_MAIN"]
    build(folder, [*command, "-fsyntax-only", "all.cpp"])


AVR = """
#include <stdint.h>
#define PROGMEM __attribute__((section(".progmem")))
static inline float pgm_read_float(const float *p) { return *p; }
static inline uint8_t pgm_read_byte(const int8_t *p) { return (uint8_t)*p; }
static inline uint16_t pgm_read_word(const int16_t *p) { return (uint16_t)*p; }
"""


@needs_cc
def test_reads_from_flash_go_by_the_macros_of_avr(folder, found):
    (folder / "avr").mkdir()
    (folder / "avr" / "pgmspace.h").write_text(AVR)
    (folder / "avr.c").write_text(source(found))
    command = ["cc", "-std=c99", *WARNINGS, "-D__AVR__", "-I.", "-fsyntax-only", "avr.c"]
    build(folder, [*command, "-DPURSUIT_SELFTEST", "-DPURSUIT_NO_MAIN"])
    text = (folder / "kmp_poly_int16.h").read_text()
    assert not re.search(r"\b(vectors|coefficients|steps|zeros|shift|map|lengths)\[", text)


def test_an_array_too_large_for_avr_says_so(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 30))
    model = p.KernelCentroidClassifier().fit(X, X[:, 0] > 0)
    for dtype, large in (("float32", True), ("int8", False)):
        to_c(model, tmp_path / "model.h", dtype)
        assert ("#error" in (tmp_path / "model.h").read_text()) == large


def test_a_change_worth_a_warning_is_said(tmp_path):
    with pytest.warns(UserWarning, match="dtype='int8' changes an output by"):
        to_c(fitted("kmp poly")[0], tmp_path / "model.h", "int8")


@needs_cc
def test_self_test_of_one_header_prints_ok_and_finds_a_change(tmp_path):
    path = tmp_path / "my model-2.h"
    header = to_c(fitted("kmp ovr")[0], path, "int8")
    assert header.name == "my_model_2"
    command = ["cc", "-std=c99", "-DPURSUIT_SELFTEST", "-x", "c", path.name, "-o", "test", "-lm"]
    assert said(tmp_path, command) == (0, "OK\n")
    text = path.read_text()
    path.write_text(re.sub(r"(my_model_2_intercept\[4\].*\{\n    )", r"\g<1>0.5f + ", text))
    code, words = said(tmp_path, command)
    assert code == 1 and re.fullmatch(r"my_model_2: (1[6-9]|2\d) answers differ\n", words)


def said(folder, command):
    build(folder, command)
    done = subprocess.run([folder / "test"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_text_has_no_double_and_calls_expf_alone(tmp_path):
    for name in ("kmp kernels", "kmp cosine", "compress ties", "rvm", "steps"):
        path = tmp_path / "model.h"
        to_c(fitted(name)[0], path)
        code = re.sub(r"/\*.*?\*/|\"[^\"]*\"", "", path.read_text(), flags=re.S)
        assert not re.search(r"\bdouble\b|malloc|\d\.\d*(e-?\d+)?[,;) ]", code)
        called = set(re.findall(r"\b([a-z]\w*)\(", code)) - {"defined", "main", "printf", "puts"}
        own = {word for word in called if word.startswith("model_")}
        assert called - own <= {"pgm_read_float", "pgm_read_byte", "pgm_read_word", "if", "for"}


def test_a_power_that_is_no_whole_number_calls_powf(tmp_path):
    to_c(fitted("kmp cosine_polynomial")[0], tmp_path / "model.h")
    assert "powf(s + 1.0f, 2.5f)" in (tmp_path / "model.h").read_text()


@pytest.mark.parametrize("dtype", ["float32", "int16", "int8"])
def test_too_many_bytes_are_refused_with_the_number_that_fits(tmp_path, dtype):
    X, y = blobs()
    model = p.KernelMatchingPursuitClassifier(30).fit(X, y)
    path = tmp_path / "model.h"
    path.write_text("kept")
    with pytest.raises(ValueError, match=r"max_bytes=200.* (\d+) vectors would fit") as error:
        to_c(model, path, dtype, max_bytes=200)
    assert (path.read_text(), [f.name for f in tmp_path.iterdir()]) == ("kept", ["model.h"])
    n = int(re.search(r"(\d+) vectors would fit", str(error.value))[1])
    assert to_c(model.truncate(n), path, dtype, max_bytes=200).n_bytes <= 200
    with pytest.raises(ValueError, match=f"{n} vectors would fit"):
        to_c(model.truncate(n + 1), path, dtype, max_bytes=200)
    with pytest.raises(ValueError, match="0 vectors"):
        to_c(model, path, dtype, max_bytes=10)


def test_bytes_are_those_of_the_arrays(tmp_path):
    header = to_c(fitted("moving")[0], tmp_path / "model.h")
    text = (tmp_path / "model.h").read_text().partition("#ifdef PURSUIT_SELFTEST")[0]
    assert header.n_bytes == 4 * sum(map(int, re.findall(r"\[(\d+)\] PURSUIT_FLASH", text)))
    assert f"Flash: {header.n_bytes} bytes" in text and "RAM: about" in text


def test_nothing_is_written_on_failure(tmp_path):
    path = tmp_path / "model.h"
    model, _ = fitted("kmp ovr")
    for wrong in ({"dtype": "float16"}, {"name": "Has Space"}, {"max_bytes": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            to_c(model, path, **wrong)
    X, y = blobs()
    huge = p.KernelMatchingPursuitRegressor(3, kernel="linear").fit(X * 1e-40, y)
    with pytest.raises(ValueError, match="beyond single precision"):
        to_c(huge, path)
    assert list(tmp_path.iterdir()) == []


def test_equal_models_give_equal_bytes_also_elsewhere(tmp_path):
    """A pickle, a model file and a file of skops, read in a new process, give the same C."""
    import pickle

    import skops.io

    X, y = blobs()
    one, other = (make_pipeline(StandardScaler(), p.KernelCentroidClassifier()) for _ in range(2))
    one.fit(X, y), other.fit(X, y)
    alone = p.SparseKernelClassifier(5, random_state=0, max_iter=3).fit(X, y)
    p.save(alone, tmp_path / "alone.pursuit")
    skops.io.dump(one, tmp_path / "one.skops")
    (tmp_path / "one.pickle").write_bytes(pickle.dumps(one))
    for model, name in ((one, "one"), (other, "other"), (alone, "alone")):
        to_c(model, tmp_path / f"{name}.h", "int8", name="model")
    code = (
        "import pickle, skops.io, pursuit\n"
        "from pursuit.export import to_c\n"
        "types = skops.io.get_untrusted_types(file='one.skops')\n"
        "models = {'one': pickle.load(open('one.pickle', 'rb')),\n"
        "    'other': skops.io.load('one.skops', trusted=types),\n"
        "    'alone': pursuit.load('alone.pursuit')}\n"
        "for name, model in models.items(): to_c(model, name + '2.h', 'int8', name='model')\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    texts = {name: (tmp_path / f"{name}.h").read_bytes() for name in ("one", "other", "alone")}
    assert texts["one"] == texts["other"] != texts["alone"]
    for name, text in texts.items():
        assert (tmp_path / f"{name}2.h").read_bytes() == text


def test_coefficients_of_one_byte_make_good_for_the_vectors(monkeypatch):
    for name in ("regressor", "scaled"):
        model, X = fitted(name)
        record, errors = plain(model), []
        for _ in range(2):
            change = outputs(stored(record, "int8").model, X) - outputs(record, X)
            errors.append(float(np.square(change).mean()))
            monkeypatch.setattr(stored_model, "_made_good", lambda part, kept: part.coefficients)
        monkeypatch.undo()
        assert errors[0] < 0.8 * errors[1]


def test_record_and_model_give_one_text(tmp_path):
    model, _ = fitted("columns")
    to_c(model, tmp_path / "a.h", name="model")
    to_c(plain(model), tmp_path / "b.h", name="model")
    text = (tmp_path / "a.h").read_text()
    assert text == (tmp_path / "b.h").read_text()
    assert "onehotencoder__x1_0.0" in text
