"""One C program of many exported models: rows in, all their answers out."""

import shutil
import subprocess
import warnings
from dataclasses import replace

import numpy as np
import pytest
from exported import CASES, blobs, fitted

from pursuit import KernelMatchingPursuitClassifier
from pursuit.export import PlainModel, plain, to_c
from pursuit.export.c_functions import n_decisions
from pursuit.export.c_text import identifier
from pursuit.export.plain_model import Part
from pursuit.kernels import Cosine

WARNINGS = "-Wall -Wextra -Werror -pedantic -Wdouble-promotion -Wconversion".split()
SANITIZERS = "-O0 -fsanitize=address,undefined -fno-sanitize-recover=all".split()
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler 'cc'")

# Models whose codes of one and two bytes are computed, too.
CODED = ["kmp linear", "kmp poly", "kmp laplacian", "kmp chi2", "kmp cosine_polynomial"]
CODED += ["kmp kernels", "moving metric", "novelty"]
ODD = [
    'a "b"',
    "back\\slash",
    "é",
    "-1",
    "*/",
    "/*",
    "??/",
    "%s%n",
    "new\nline",
    "\\",
    "",
    "\t",
    "'",
]
ODD += ["'", "日本", "\\n", "//", "#include", "\u2028", "0x", "\x7f", "end\\", "a" * 200, "@NAME@"]
NASTY = np.array(list("\"\\?/*\n\r\t%@'#{}<:0a \x01é日\U0001f600"))
ODD += ["".join(NASTY[np.random.default_rng(k).integers(len(NASTY), size=9)]) for k in range(60)]


def holes(X):
    """Rows with missing numbers."""
    return np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)


def inputs(name, model, X):
    """Rows as the record takes them: what a ColumnTransformer gives, before it scales."""
    if name != "columns":
        return X
    encoder = model[0].named_transformers_["onehotencoder"]
    return np.hstack([X[:, [0, 2, 3]], encoder.transform(X[:, [1]]).toarray(), X[:, [4]]])


def odd_names():
    """A record whose classes and features have names that C could read otherwise."""
    X, y = blobs()
    record = plain(KernelMatchingPursuitClassifier(3).fit(X, y))
    (part,) = record.parts
    few = np.resize(part.coefficients, (len(part.vectors), len(ODD)))
    wide = replace(part, coefficients=few)
    return replace(
        record,
        parts=(wide,),
        intercept=np.zeros(len(ODD)),
        classes=np.array(ODD),
        features=tuple(map("".join, np.array_split(ODD, 5))),
    )


def constants():
    """Records whose outputs are ties or far from zero, and what their class is."""
    model = PlainModel("classifier", (), np.zeros(3), tuple("abcde"), classes=np.arange(3))
    far = replace(model, intercept=np.array([-160.0, -150.0, -155.0]))
    two = replace(model, intercept=np.zeros(1), rule="sign", classes=np.arange(2))
    return {
        "tie_largest": replace(model, rule="largest"),
        "tie_votes": replace(model, rule="votes"),
        "tie_values": replace(model, rule="vote_values"),
        "tie_low": two,
        "tie_high": replace(two, zero_is_positive=True),
        "far_sigmoids": replace(far, rule="largest", probabilities="sigmoids"),
        "far_softmax": replace(far, rule="largest", probabilities="softmax", temperature=0.1),
        "far_two": replace(two, intercept=np.array([-300.0]), probabilities="softmax"),
    }


def wide():
    """Cosines of long rows whose entries are alike, and rows."""
    Z, X = 1.0 + 0.5 * np.random.default_rng(0).random((2, 9, 1200))
    part = Part(Cosine(), np.zeros(1200), np.ones(1200), Z[:2], np.eye(2))
    names = tuple(f"x{j}" for j in range(1200))
    return PlainModel("transformer", (part,), np.zeros(2), names), X


def headers(folder):
    """Write a header for every model; give their records and rows by their C names."""
    found = {}
    for dtype in ("float32", "int16", "int8"):
        for name in CASES if dtype == "float32" else CODED:
            model, X = fitted(name)
            X = holes(X) if name == "steps" else X
            called = identifier(f"{name}_{dtype}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what whole numbers do to wide products
                to_c(model, folder / f"{called}.h", dtype)
            found[called] = plain(model), inputs(name, model, X)
    for name, record in {"odd": odd_names(), **constants()}.items():
        to_c(record, folder / f"{name}.h")
        found[name] = record, blobs()[0]
    record, X = wide()
    to_c(record, folder / "wide.h")
    return found | {"wide": (record, X)}


def answers(record, name):
    """Calls that write what a model says of x to y, and the number of floats."""
    T, C = len(record.intercept), 0 if record.classes is None else len(record.classes)
    calls = [(f"{name}_outputs(x, y);", T)]
    if record.task == "classifier":
        calls += [(f"*y = (float){name}_predict(x);", 1)]
        calls += [(f"{name}_decision(x, y);", n_decisions(record))]
        if record.probabilities:
            calls += [(f"{name}_probabilities(x, y);", C)]
    elif record.task == "outlier_detector":
        calls += [(f"*y = (float){name}_predict(x);", 1), (f"*y = {name}_score(x);", 1)]
        calls += [(f"{name}_decision(x, y);", 1)]
    else:
        method = "predict" if record.task == "regressor" else "transform"
        calls += [(f"{name}_{method}(x, y);", T)]
    return calls


def source(found):
    """A program that answers for each model in turn, and tells its tests and names."""
    lines = ["#include <stdio.h>", "#include <stdlib.h>"]
    lines += [f'#include "{path}.h"' for path in sorted(found)]
    lines.append("static float x[1200], y[99];")
    get = "if (fread(x, sizeof(float), (size_t)n, stdin) != (size_t)n) { abort(); }"
    lines.append(f"static void get(int n) {{ {get} }}")
    lines.append("static void put(int n) { fwrite(y, sizeof(float), (size_t)n, stdout); }")
    for name, (record, X) in found.items():
        lines.append(f"static void run_{name}(void) {{ int i; for (i = 0; i < {len(X)}; i++) {{")
        lines.append(f"  get({X.shape[1]});")
        lines += [f"  {call} put({width});" for call, width in answers(record, name)]
        lines.append("} }")
    lines.append("int main(void) { int i;")
    for name, (record, _) in found.items():
        lines.append(f"  run_{name}();")
        lines.append(f'  fprintf(stderr, "%d", {name}_selftest()); fputc(0, stderr);')
        classes = len(record.classes) if record.task == "classifier" else 0
        lines.append(f"  for (i = 0; i < {classes}; i++) {{")
        called = f"{name}_class_name(i)" if classes else '""'
        lines.append(f"    fputs({called}, stderr); fputc(0, stderr); }}")
    return "\n".join([*lines, "  return 0; }", ""])


def run(folder, found):
    """Compile the program, run it; answers of each model, failures of its test, class names."""
    (folder / "all.c").write_text(source(found))
    command = ["cc", "-std=c99", *WARNINGS, *SANITIZERS, "-DPURSUIT_SELFTEST", "-DPURSUIT_NO_MAIN"]
    build(folder, [*command, "all.c", "-o", "all", "-lm"])
    rows = b"".join(X.astype(np.float32).tobytes() for _, X in found.values())
    done = subprocess.run([folder / "all"], input=rows, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return _split(found, np.frombuffer(done.stdout, np.float32), done.stderr.split(b"\0")[:-1])


def build(folder, command):
    """Run a compiler that must say nothing."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[:3000]) == (0, "")


def _split(found, numbers, words):
    """Answers, failures and names of each model."""
    answered = {}
    for name, (record, X) in found.items():
        widths = [width for _, width in answers(record, name)]
        table, numbers = np.split(numbers, [len(X) * sum(widths)])
        columns = np.split(table.reshape(len(X), -1), np.cumsum(widths)[:-1], axis=1)
        n_classes = len(record.classes) if record.task == "classifier" else 0
        failures, names = int(words[0]), words[1 : 1 + n_classes]
        words = words[1 + n_classes :]
        answered[name] = columns, failures, names
    assert not len(numbers) and not words
    return answered
