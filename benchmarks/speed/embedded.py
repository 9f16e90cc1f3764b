"""Models outside Python: C with float32, two bytes and one byte a number, and ONNX.

The same fitted model each time: predictions of the test rows (10 000, repeated where there are
fewer), one row at a time and all at once. Bytes: of the constant arrays of the C header, and for
Python of the file that `pursuit.save` writes, where it takes the model. Differences: of decision
values, predictions or scores, over the largest of the model's. Microseconds: processor time a row;
Python's one row is ``predict(X[:1])``, C's is ``pursuit.export.compiled(model).predict_one(x)``,
ONNX's a call of onnxruntime on one thread, of a graph in single precision.

Sizes: program text of the header's functions with ``-Os``, constants included, for each compiler
that is installed. Where ``avr-gcc`` and ``simavr`` are, an ATmega2560 of 16 MHz is simulated:
cycles a row, and the largest difference of its outputs from Python's, read in units of 1e-4.

Sets. digits: the last 797 rows are the test. USPS: its own parts, pixels over their deviation as a
whole. letter: its own parts, standardised. churn: a generated table of numbers, words and missing
cells, 4000 rows. numbers: Friedman's first function, 2000 rows. novelty: digits of one class.
"""

import re
import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits, make_friedman1
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    SparseKernelClassifier,
    SparseOneClass,
    datasets,
    save,
)
from pursuit.export import compiled, plain, to_c
from pursuit.export.plain_model import outputs
from pursuit.export.stored_model import DTYPES
from pursuit.onnx import to_onnx

HEADER = [
    "",
    "form",
    "bytes",
    "answers that differ",
    "difference",
    "score",
    "us, one row",
    "us of 10 000",
]
N_ROWS = 10_000
MOST_LOST = 0.3  # points of accuracy
COMPILERS = {
    "host": ("cc", "size", ["-Os"]),
    "Cortex-M4F": (
        "arm-none-eabi-gcc",
        "arm-none-eabi-size",
        "-Os -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16".split(),
    ),
    "Cortex-M0": (
        "arm-none-eabi-gcc",
        "arm-none-eabi-size",
        "-Os -mcpu=cortex-m0 -mthumb".split(),
    ),
    "AVR (ATmega2560)": ("avr-gcc", "avr-size", ["-Os", "-mmcu=atmega2560"]),
}


def run(report):
    """All sets, then sizes."""
    warnings.simplefilter("ignore")
    rows, lost, models, rows_of = [], [], {}, {}
    for name, model, X, y in sets():
        models[name], rows_of[name] = model, (X[1] if isinstance(X, tuple) else X)[0]
        compare(rows, lost, name, model, X, y)
    report.table(HEADER, rows)
    for name, points in lost:
        report.check(f"{name}: points lost by one byte a number", points, at_most=MOST_LOST)
    sizes(report, models, rows_of)


# --- the sets -----------------------------------------------------------------------------------


def sets():
    """Names, fitted models, rows to predict as C takes them, and their answers."""
    X, y = load_digits(return_X_y=True)
    yield "digits", KernelMatchingPursuitClassifier(100).fit(X[:1000], y[:1000]), X[1000:], y[1000:]
    (X, y), test = datasets.load("usps", "train"), datasets.load("usps", "test")
    unit = X.std()
    moved = SparseKernelClassifier(100, random_state=0, max_iter=20).fit(X / unit, y)
    yield "USPS", moved, test[0] / unit, test[1]
    (X, y), test = datasets.load("letter", "train"), datasets.load("letter", "test")
    letters = SparseKernelClassifier(200, C=100, gamma=1 / 8, random_state=0, max_iter=20)
    yield "letter", make_pipeline(StandardScaler(), letters).fit(X, y), *test
    yield "churn", *churn()
    X, y = make_friedman1(2000, 10, noise=0.5, random_state=0)
    numbers = make_pipeline(StandardScaler(), KernelMatchingPursuitRegressor(100))
    yield "numbers", numbers.fit(X[:1000], y[:1000]), X[1000:], y[1000:]
    X, y = load_digits(return_X_y=True)
    yield "novelty", SparseOneClass(30, random_state=0).fit(X[y == 3]), X, np.where(y == 3, 1, -1)


def churn(n=4000):
    """A table of contracts, whose words are encoded before they reach the model in C."""
    rng = np.random.default_rng(0)
    months, price = rng.integers(1, 72, n), rng.gamma(4.0, 15.0, n)
    calls = np.where(rng.random(n) < 0.1, np.nan, rng.poisson(2.0, n))
    contract = rng.choice(["monthly", "yearly", "two years"], n, p=[0.5, 0.3, 0.2])
    payment = rng.choice(["card", "transfer", "invoice"], n)
    risk = 0.03 * price - 0.05 * months + 0.6 * np.nan_to_num(calls) + (contract == "monthly")
    y = np.where(risk - 2.5 + rng.logistic(size=n) > 0, "leaves", "stays")
    table = np.column_stack([months, price, calls, contract, payment]).astype(object)
    table[:, :3] = table[:, :3].astype(float)
    numbers = make_pipeline(StandardScaler(), SimpleImputer())
    columns = make_column_transformer((numbers, [0, 1, 2]), (OneHotEncoder(), [3, 4]))
    model = make_pipeline(columns, KernelMatchingPursuitClassifier(60)).fit(table[:2000], y[:2000])
    words = columns.named_transformers_["onehotencoder"].transform(table[2000:, 3:]).toarray()
    encoded = np.hstack([table[2000:, :3].astype(float), words])
    return model, (table[2000:], encoded), y[2000:]


# --- the comparison -----------------------------------------------------------------------------


def compare(rows, lost, name, model, X, y):
    """The lines of one set; `X` may be a pair: rows for Python, and as C takes them."""
    X, encoded = X if isinstance(X, tuple) else (X, X)
    answers, values = model.predict(X), numbers(model, X)
    expected = score(answers, y)
    with tempfile.TemporaryDirectory() as folder:
        one, many = timed(model.predict, lambda: model.predict(X[:1]), X)
        rows.append(
            [name, "Python", file_bytes(model, folder), "", "", f"{expected:.2f}", one, many]
        )
        for dtype in DTYPES:
            n_bytes = to_c(model, Path(folder) / "model.h", dtype).n_bytes
            found, cells = outside(compiled(model, dtype), n_bytes, encoded, answers, values, y)
            rows.append([name, f"C {dtype}", *cells])
        graph = Graph(model)
        rows.append([name, "ONNX", *outside(graph, graph.n_bytes, encoded, answers, values, y)[1]])
        if name in ("digits", "USPS", "letter"):
            lost.append((name, expected - score(found, y)))


def outside(fast, n_bytes, encoded, answers, values, y):
    """Answers of a model outside Python, and the cells of its line."""
    found = fast.predict(encoded)
    change = np.abs(numbers(fast, encoded) - values).max() / np.abs(values).max()
    row = encoded[0].astype(np.float32)
    one, many = timed(fast.predict, lambda: fast.predict_one(row), encoded)
    differ = "-" if found.dtype.kind == "f" else str(int((found != answers).sum()))
    return found, [f"{n_bytes:,}", differ, f"{change:.1e}", f"{score(found, y):.2f}", one, many]


class Graph:
    """A model as ONNX, with the methods of what `compiled` gives."""

    def __init__(self, model):
        record = plain(model)
        content = to_onnx(record, raw_scores=True).SerializeToString()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.n_bytes = len(content)
        self._run = onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"]).run
        self._one_output = len(record.intercept) == 1
        if record.task == "classifier":
            self.classes_ = record.classes
        elif record.task == "outlier_detector":
            self.offset_ = record.offset

    def predict(self, X):
        """Labels or numbers."""
        return self._run(None, {"X": np.asarray(X, dtype=np.float32)})[0].reshape(len(X))

    def predict_one(self, x):
        """Of one row."""
        return self._run(None, {"X": x[None]})[0]

    def decision_function(self, X):
        """The last column of one output, else all."""
        values = self._run(None, {"X": np.asarray(X, dtype=np.float32)})[1]
        return values[:, -1] if self._one_output else values


def numbers(model, X):
    """Decision values, or predictions."""
    return model.predict(X) if is_number(model) else model.decision_function(X)


def is_number(model):
    """Whether a model, or its machine code, predicts numbers."""
    return not hasattr(model, "classes_") and not hasattr(model, "offset_")


def score(found, y):
    """Per cent right, or R^2 in per cent."""
    if found.dtype.kind == "f":
        return 100.0 * (1.0 - np.mean((found - y) ** 2) / np.var(y))
    return 100.0 * np.mean(found == y)


def file_bytes(model, folder):
    """Bytes of a model file, where one holds the model."""
    path = Path(folder) / "model.pursuit"
    try:
        save(model, path)
    except ValueError:
        return "-"
    return f"{path.stat().st_size:,}"


def timed(predict, one, X):
    """Processor microseconds a row: one at a time, and of many at once; the best of five."""
    X = X[np.resize(np.arange(len(X)), N_ROWS)]
    single = min(spent(one, 200) for _ in range(5))
    together = min(spent(lambda: predict(X), 1) / N_ROWS for _ in range(5))
    return f"{1e6 * single:.2f}", f"{1e6 * together:.2f}"


def spent(call, times):
    """Processor seconds of a call."""
    start = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - start) / times


# --- sizes for small machines -------------------------------------------------------------------


def sizes(report, models, rows_of):
    """Program text of each compiler that is there; cycles where a simulator is."""
    missing = [name for name, (cc, _, _) in COMPILERS.items() if shutil.which(cc) is None]
    there = {name: tools for name, tools in COMPILERS.items() if name not in missing}
    if missing:
        report.add(f"No compiler is installed for {', '.join(missing)}.")
    simulator = ["AVR: cycles a row", "difference"] if shutil.which("simavr") else []
    rows = []
    for name, model in models.items():
        for dtype in DTYPES:
            with tempfile.TemporaryDirectory() as folder:
                header = to_c(model, Path(folder) / "model.h", dtype)
                cells = [text_bytes(folder, *tools) for tools in there.values()]
                if simulator:
                    cells += simulated(folder, plain(model), rows_of[name])
                rows.append([name, dtype, header.n_bytes, header.stack_bytes, *cells])
    columns = ["", "form", "constants", "stack", *there, *simulator]
    report.table(columns, rows, "Bytes, and of program text")


AVR = """
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdlib.h>
#include "model.h"

static float x[MODEL_FEATURES] = {@X@};
static float f[MODEL_OUTPUTS];

static void say(int32_t number) {
    char digits[12], *c = digits;
    for (ltoa(number, digits, 10); *c; c++) {
        UDR0 = (uint8_t)*c;
    }
    UDR0 = '\\n';
}

int main(void) {
    uint16_t t;
    UCSR0B = 1 << TXEN0;
    TCCR1B = 5; /* a count is 1024 cycles */
    TCNT1 = 0;
    model_outputs(x, f);
    t = TCNT1;
    say((int32_t)t * 1024);
    for (t = 0; t < MODEL_OUTPUTS; t++) {
        say((int32_t)(f[t] * 1e4f));
    }
    cli();
    sleep_mode();
    return 0;
}
"""


def simulated(folder, record, row):
    """Cycles of a row on a simulated ATmega2560, and the largest difference from Python's."""
    row = row.astype(np.float32)
    source = AVR.replace("@X@", ", ".join(f"{value!s}f" for value in row))
    (Path(folder) / "avr.c").write_text(source)
    command = ["avr-gcc", "-std=c99", "-Os", "-mmcu=atmega2560", "avr.c", "-o", "avr.elf", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        return "-", "-"
    command = ["simavr", "-m", "atmega2560", "-f", "16000000", "avr.elf"]
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    said = re.sub(r"\x1b\[\d+m", "", told.stdout + told.stderr)
    found = [int(number) for number in re.findall(r"^(-?\d+)\.$", said, re.MULTILINE)]
    wanted = outputs(record, row[None].astype(float))[0]
    return f"{found[0]:,}", f"{np.abs(np.array(found[1:]) / 1e4 - wanted).max():.1e}"


def text_bytes(folder, cc, size, flags):
    """Text and data of the function that gives the outputs, and all it calls."""
    source = '#include "model.h"\nvoid outputs(const float *x, float *f);\n'
    source += "void outputs(const float *x, float *f) { model_outputs(x, f); }\n"
    (Path(folder) / "m.c").write_text(source)
    command = [cc, "-std=c99", *flags, "-c", "m.c", "-o", "m.o"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        return "too large" if "32767" in done.stderr or "too large" in done.stderr else "fails"
    told = subprocess.run([size, "m.o"], cwd=folder, capture_output=True, text=True, check=True)
    return sum(map(int, told.stdout.splitlines()[1].split()[:2]))
