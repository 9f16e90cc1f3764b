"""What the machine cannot hold is refused before it is made."""

import numpy as np
import pytest

from pursuit import KernelMatchingPursuitRegressor, KernelStatistics, ReducedSetClassifier
from pursuit.linalg import memory
from pursuit.linalg.memory import machine_bytes, require_memory

X = np.linspace(0, 1, 80)[:, None]
Y = np.sin(9 * X[:, 0])


def test_the_machine_has_memory():
    assert machine_bytes() > 1e8


def test_a_container_has_less(monkeypatch, tmp_path):
    (tmp_path / "max").write_text("1000\n")
    monkeypatch.setattr(memory, "LIMITS", (tmp_path / "none", tmp_path / "max"))
    assert machine_bytes() == 1000.0
    (tmp_path / "max").write_text("max\n")
    assert machine_bytes() > 1e8


def test_the_error_says_what_and_what_to_do():
    with pytest.raises(MemoryError, match=r"a table takes 1e\+21 GB.*: buy more"):
        require_memory(1e30, "a table", "buy more")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: KernelMatchingPursuitRegressor(3, route="gram").fit(X, Y),
            "Gram matrix of 80 functions.*n_candidates",
        ),
        (lambda: KernelStatistics(X).update(X, Y), "Gram matrix of 80 functions"),
        (
            lambda: ReducedSetClassifier(3, kernel="laplacian").fit(X, Y > 0),
            "kernel matrix of 80 rows",
        ),
    ],
)
def test_a_matrix_of_all_rows(monkeypatch, call, message):
    monkeypatch.setattr(memory, "machine_bytes", lambda: 8.0 * 80 * 80 - 1)
    with pytest.raises(MemoryError, match=message):
        call()


def test_stages_of_many_rows(monkeypatch):
    model = KernelMatchingPursuitRegressor(3).fit(X, Y)
    monkeypatch.setattr(memory, "machine_bytes", lambda: 8.0 * 80 * 3 - 1)
    with pytest.raises(MemoryError, match="80 rows at every step of 3 vectors.*in parts"):
        next(model.staged_predict(X))
