"""What every test shares: thread limits, random generators and the data folder.

This file is read before anything imports NumPy, which is the last moment at which
the number of BLAS threads can still be set through the environment.
"""

import os

# Small matrices: BLAS threads that wait for each other cost more than they bring, above all
# beside other test processes.
if "OMP_NUM_THREADS" not in os.environ:
    for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(_variable, "1")

from pathlib import Path

import numpy as np
import pytest


def pytest_configure(config):
    """Let workers that have nothing left to do take tests from the others, where there are some."""
    if getattr(config.option, "dist", None) == "load":
        config.option.dist = "worksteal"


@pytest.fixture
def rng():
    """Give the same random numbers to every test, whatever ran before it."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data_folder():
    """Give the folder of real data sets; the test is skipped where there is none."""
    folder = os.environ.get("PURSUIT_DATA")
    if not folder:
        pytest.skip("PURSUIT_DATA names no folder of data sets")
    if not Path(folder).is_dir():
        pytest.fail(f"PURSUIT_DATA={folder} is not a folder")
    return Path(folder)


def pytest_collection_modifyitems(config, items):
    """Leave scikit-learn's checks of array libraries to tests/test_array_api.py."""
    theirs = [item for item in items if "check_array_api_" in item.name]
    if theirs:
        config.hook.pytest_deselected(items=theirs)
        items[:] = [item for item in items if "check_array_api_" not in item.name]
