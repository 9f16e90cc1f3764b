"""Going on from the last fit: the pursuit itself is kept, and grown where it may be.

A pursuit of N steps is the beginning of one of more steps on the same rows with the same
candidates. With ``warm_start=True`` a fit leaves its pursuit (the Gram matrix and the factor; no
more than the fit held anyway), and the next fit grows it if nothing has changed but the budget and
how the path ends. Otherwise, or where the path could not be one of more steps, it starts anew: a
re-fit that came only because the path ended (``refit_every`` above 1) changes what follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import joblib
import numpy as np

from pursuit._typing import Array
from pursuit._validation import Samples
from pursuit.dictionary import Dictionary
from pursuit.greedy.multi_output import MultiOutputPursuit

__all__ = ["Search", "fingerprint"]

# Parameters that say when a path ends, or nothing of it.
ENDS = {"n_components", "tol", "n_iter_no_change", "warm_start", "error_tolerance", "scoring"}


class Search(NamedTuple):
    """What a fit leaves to the next one.

    Attributes
    ----------
    pursuit : MultiOutputPursuit
        As far as it was grown.
    dictionary : Dictionary
        Its candidates.
    rows : ndarray of int
        Rows that it was grown on.
    validation : Samples or None
        Rows that early stopping watched.
    data : str
        Fingerprint of the training rows.
    parameters : mapping
        Those of the estimator.
    """

    pursuit: MultiOutputPursuit
    dictionary: Dictionary
    rows: Array
    validation: Samples | None
    data: str
    parameters: Mapping[str, Any]

    def continues(self, data: str, parameters: Mapping[str, Any], budgets: list[int]) -> bool:
        """Whether a fit to such data would begin with these steps."""
        unchanged = data == self.data and all(
            _equal(value, self.parameters[name])
            for name, value in parameters.items()
            if name not in ENDS
        )
        return unchanged and self.pursuit.can_grow(budgets)


def fingerprint(samples: Samples) -> str:
    """A text that tells rows, targets and weights from others, changed in place or not."""
    return str(joblib.hash([samples.X, samples.Y, samples.weights]))


def _equal(one: Any, other: Any) -> bool:
    """Whether two values of a parameter are the same."""
    return one is other or bool(type(one) is type(other) and np.array_equal(one, other))
