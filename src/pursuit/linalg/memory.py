"""Refusing an array that the machine cannot hold, before it is made.

An operating system hands out more memory than there is and ends the process when it is used; an
error that says what is too large, and what to do, comes before.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["machine_bytes", "require_memory"]

# Where Linux says how much a container may use.
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def machine_bytes() -> float:
    """The memory of this machine, or what its container may use; infinite where nobody says."""
    found = [float("inf")]
    if hasattr(os, "sysconf") and {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= os.sysconf_names.keys():
        found.append(float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE"))
    for limit in LIMITS:
        text = limit.read_text().strip() if limit.exists() else ""
        if text.isdigit():
            found.append(float(text))
    return min(found)


def require_memory(n_bytes: float, what: str, instead: str) -> None:
    """Raise where an array takes more than the machine has.

    Parameters
    ----------
    n_bytes : float
        Its size.
    what : str
        What it is.
    instead : str
        What to do.

    Raises
    ------
    MemoryError
        If there is not as much.

    Examples
    --------
    >>> from pursuit.linalg.memory import require_memory
    >>> require_memory(8e6, "a matrix", "take fewer rows")
    """
    total = machine_bytes()
    if n_bytes > total:
        raise MemoryError(
            f"{what} takes {n_bytes / 1e9:.3g} GB, and this machine has {total / 1e9:.3g} GB: "
            f"{instead}"
        )
