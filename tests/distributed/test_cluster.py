"""Two worker processes, one of which is killed in the middle of a fit."""

import multiprocessing
import os
import signal

import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward

from pursuit import KernelMatchingPursuitRegressor

dask = pytest.importorskip("dask", reason="needs the dask extra")
distributed = pytest.importorskip("distributed", reason="needs the dask extra")
da = pytest.importorskip("dask.array")

import pursuit.distributed  # noqa: E402, F401  estimators take collections

P = awkward(400)


def killed_once(block, marker, block_info=None):
    """A block of rows; the process that is the first to ask for the last one dies."""
    if block_info[0]["chunk-location"][0] == 15 and not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.fixture
def _forked(monkeypatch):
    """Processes that have loaded what they need when they start, as in distributed's own tests."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["distributed.nanny", "dask.array", "pursuit.distributed"])
    monkeypatch.setattr("distributed.utils._forkserver_preload_set", True)
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        yield


@pytest.mark.usefixtures("_forked")
def test_a_worker_that_dies_changes_nothing(tmp_path):
    marker = str(tmp_path / "killed")
    X = da.from_array(P.X, chunks=(25, 4)).map_blocks(killed_once, marker, dtype=float)
    y = da.from_array(P.Y[:, 0], chunks=25)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options, processes=True) as cluster:
        with distributed.Client(cluster):
            found = KernelMatchingPursuitRegressor(6, gamma=0.2).fit(X, y)
            values = found.predict(X).compute()
    assert os.path.exists(marker)
    expected = KernelMatchingPursuitRegressor(6, gamma=0.2).fit(P.X, P.Y[:, 0])
    assert_array_equal(found.support_, expected.support_)
    assert_allclose(values, expected.predict(P.X), rtol=1e-8)
