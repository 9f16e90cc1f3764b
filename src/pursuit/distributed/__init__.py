"""Fits and predictions on dask collections.

After `import pursuit.distributed`, which needs the ``dask`` extra, estimators take them:

- ``fit`` of `KernelMatchingPursuitClassifier`, `KernelMatchingPursuitRegressor`,
  `SparseKernelClassifier`, `SparseKernelRegressor`, `SparseKernelPCA` and `GreedyNystroem`, and
  ``update`` of `KernelStatistics`, take dask arrays and data frames. Tasks make sums over blocks, a
  tree adds them up, and nothing that grows with the rows comes to the client. Fitted attributes
  are NumPy arrays.
- ``predict``, ``predict_proba``, ``predict_log_proba``, ``decision_function``, ``transform``,
  ``residual`` and ``score_samples`` of every fitted estimator give dask arrays in the blocks of X,
  and ``score`` sums over them.

Whatever runs dask's graphs runs these: threads, or a cluster whose client is open.

Read `parts` first (blocks, and the tree), then `reading` (the first pass), `matching_pursuit`,
`landmarks` and `moving_vectors` (the fits), and `predictions`.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec

from pursuit.base.collections import BLOCK_BY_BLOCK, WAYS

__all__: list[str] = []

if find_spec("dask") is None:
    raise ImportError("pursuit.distributed needs dask: pip install 'pursuit[dask]'")

from pursuit.distributed.fits import fit  # noqa: E402  after the check of what it needs
from pursuit.distributed.matching_pursuit import update  # noqa: E402
from pursuit.distributed.predictions import block_by_block, score  # noqa: E402

WAYS.update(fit=fit, update=update, score=score)
WAYS.update({name: partial(block_by_block, name) for name in BLOCK_BY_BLOCK})
