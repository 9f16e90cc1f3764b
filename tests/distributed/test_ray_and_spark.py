"""The programs of docs/ray_and_spark.md, on engines that carry everything by pickle."""

import functools
import pickle
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import awkward

from pursuit import KernelStatistics

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ray_and_spark.md"
PROGRAMS = re.findall(r"^```(?:python|py)\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
FUNCTIONS, RAY, SPARK, _ = PROGRAMS

P = awkward(90)
CLASSES = np.unique(P.labels)


def carried(value):
    return pickle.loads(pickle.dumps(value))


def fake_ray():
    """What the page uses of Ray; references are pickles."""

    def resolved(value):
        return pickle.loads(value) if isinstance(value, bytes) else value

    def remote(function):
        def call(*arguments):
            return pickle.dumps(function(*map(resolved, carried(arguments))))

        return SimpleNamespace(remote=call)

    ray = ModuleType("ray")
    ray.init, ray.put, ray.get, ray.remote = lambda **_: None, pickle.dumps, resolved, remote
    return ray


class FakeFrame:
    """What the page uses of a Spark frame."""

    def __init__(self, partitions):
        self.rdd, self.partitions = self, partitions

    def mapPartitions(self, function):
        return FakeFrame([carried(list(function(iter(part)))) for part in self.partitions])

    def treeReduce(self, function):
        items = [item for part in self.partitions for item in part]
        while len(items) > 2:  # pairs from the end
            items = [*items[:-2], carried(function(items[-2], items[-1]))]
        return functools.reduce(function, items)


def program(text, **names):
    names |= {"np": np, "vectors": P.X[:9], "classes": CLASSES}
    exec(compile(FUNCTIONS + text, PAGE.name, "exec"), names)
    return names["total"]


def parts(n):
    return [(P.X[rows], P.labels[rows]) for rows in np.array_split(np.arange(90), n)]


def assert_all_rows(total):
    expected = KernelStatistics(P.X[:9], CLASSES, gamma=5e-4).update(P.X, P.labels)
    assert total.n_samples_ == 90
    left, right = total.equations(alpha=0.1), expected.equations(alpha=0.1)
    assert_allclose(left.gram.gram, right.gram.gram, rtol=1e-10, atol=1e-10)
    assert_allclose(left.cross, right.cross, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_parts", [1, 2, 7])
def test_ray(n_parts, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", fake_ray())
    assert_all_rows(program(RAY, parts=parts(n_parts)))


def test_spark():
    rows = [[{"features": x, "label": c} for x, c in zip(X, y, strict=True)] for X, y in parts(5)]
    spark = SimpleNamespace(
        sparkContext=SimpleNamespace(broadcast=lambda value: SimpleNamespace(value=value))
    )
    assert_all_rows(program(SPARK, spark=spark, frame=FakeFrame([*rows, []])))


@pytest.mark.parametrize("text", [RAY, SPARK])
def test_the_programs_are_short(text):
    assert len([line for line in text.splitlines() if line.strip()]) <= 20
