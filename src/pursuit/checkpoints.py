"""Sums of rows on disk while a long pass goes on, so that a killed run loses little."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pursuit import model_file
from pursuit._validation import check_real
from pursuit.greedy.statistics import KernelStatistics

__all__ = ["StatisticsCheckpoint"]


class StatisticsCheckpoint:
    """A file that holds the sums over the rows read so far, for `fit_blocks`.

    Written beside its place and moved there when it is complete: a process that is killed at any
    moment leaves a whole file, of the last time or the time before. It costs M^2 numbers for M
    candidates a time.

    Parameters
    ----------
    path : str or path-like
        The file. If it is there, the pass goes on from it; its candidates must be those of the
        pass.
    every : float, default=60.0
        Seconds from one time to the next, at least.

    Examples
    --------
    >>> import os
    >>> import tempfile
    >>> import numpy as np
    >>> from pursuit import KernelMatchingPursuitRegressor, StatisticsCheckpoint
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> blocks = [(X[i::4], np.sin(X[i::4, 0])) for i in range(4)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = StatisticsCheckpoint(os.path.join(folder, "sums.pursuit"))
    ...     model = KernelMatchingPursuitRegressor(8).fit_blocks(blocks, checkpoint=kept)
    ...     kept.load().n_rows_
    200
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 60.0) -> None:
        check_real("every", every)
        self.path, self.every = Path(path), every
        self._last = time.monotonic()

    def load(self) -> KernelStatistics | None:
        """Read the sums that the file holds.

        Returns
        -------
        statistics : KernelStatistics or None
            None where there is no file.

        Raises
        ------
        ValueError
            If the file is damaged or holds something else.
        """
        self._last = time.monotonic()
        if not self.path.exists():
            return None
        found = model_file.load(self.path)
        if not isinstance(found, KernelStatistics):
            raise ValueError(f"{self.path}: holds no sums over rows but {type(found).__name__}")
        return found

    def seen(self, statistics: KernelStatistics) -> None:
        """Write the sums if it is time to.

        Parameters
        ----------
        statistics : KernelStatistics
            Over the rows read so far.
        """
        if time.monotonic() - self._last >= self.every:
            self.finish(statistics)

    def finish(self, statistics: KernelStatistics) -> None:
        """Write the sums.

        Parameters
        ----------
        statistics : KernelStatistics
            Over the rows read so far.
        """
        model_file.save(statistics, self.path)
        self._last = time.monotonic()
