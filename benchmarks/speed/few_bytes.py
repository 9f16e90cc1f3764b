"""Models of a few kilobytes: accuracy within a budget of bytes, as fitted and as written to a file.

`SparseKernelClassifier("auto", metric="auto", max_bytes=..., precision="int8")`: rank and number of
vectors by held-out rows of the training part. MNIST (60 000 rows, pixels from 0 to 1) with gamma =
0.03, the best of three for 500 vectors on held-out training rows; USPS with 1/128; letter
standardised, C = 100 and gamma = 1/8 as in ``moving_vectors``. Two-class models tell even digits
from odd ones, and 3 from 8. Bytes: of the numbers, and of the file that `save` writes, which holds
paths of the energy, feature relevances and the parameters too. Accuracy is that of the model that
was read back from the file.

Published for MNIST-10: ProtoNN 95.88 % in 64 kB (Gupta and others, ICML 2017), Bonsai 97.01 % in
84 kB (Kumar, Goyal and Varma, ICML 2017).
"""

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

from pursuit import SparseKernelClassifier, datasets, load, save

HEADER = ["", "budget", "vectors", "rank", "bytes", "file", "accuracy %", "s"]
KB = 1024


def run(report):
    """All sets."""
    warnings.simplefilter("ignore")
    rows = []
    mnist, usps, letter = pixels("mnist"), parts("usps"), standardised(parts("letter"))
    found = {kb: row(rows, "MNIST", *mnist, kb, gamma=0.03) for kb in (16, 32, 64, 256)}
    row(rows, "USPS", *usps, 64, gamma=1 / 128)
    row(rows, "letter", *letter, 64, gamma=1 / 8, C=100)
    row(rows, "MNIST, even or odd", *two(mnist, lambda y: y % 2), 2, gamma=0.03)
    row(rows, "USPS, 3 or 8", *two(only(usps, (3, 8)), lambda y: y == 8), 2, gamma=1 / 128)
    report.table(HEADER, rows)
    report.check("MNIST, 32 kB: accuracy", found[32], at_least=97.6)
    report.check("MNIST, 64 kB: accuracy", found[64], at_least=98.1)
    report.check("MNIST, 64 kB: accuracy (a goal)", found[64], at_least=98.6)


def parts(name):
    """The training and the test part."""
    return datasets.load(name, "train"), datasets.load(name, "test")


def pixels(name):
    """The same, with pixels from 0 to 1."""
    return [(X.astype(np.float32) / 255, y) for X, y in parts(name)]


def standardised(given):
    """Both parts in the units of the first."""
    scaler = StandardScaler().fit(given[0][0])
    return [(scaler.transform(X), y) for X, y in given]


def two(given, label):
    """Both parts with two classes."""
    return [(X, label(y)) for X, y in given]


def only(given, classes):
    """The rows of some classes."""
    return [(X[np.isin(y, classes)], y[np.isin(y, classes)]) for X, y in given]


def row(rows, name, train, test, kb, **options):
    """Fit, write, read back, measure."""
    model = SparseKernelClassifier(
        "auto", metric="auto", max_bytes=kb * KB, precision="int8", random_state=0, **options
    )
    start = time.perf_counter()
    model.fit(*train)
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(model, path)
        size, accuracy = path.stat().st_size, 100 * load(path).score(*test)
    rank = "-" if model.metric_ is None else model.metric_.shape[1]
    numbers = [f"{model.nbytes_:,}", f"{size:,}", f"{accuracy:.2f}", f"{seconds:.0f}"]
    rows.append([name, f"{kb} kB", model.n_components_, rank, *numbers])
    return accuracy
