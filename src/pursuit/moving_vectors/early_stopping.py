"""Early stopping of vectors that move: the step that held-out rows like best."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import check_scoring

from pursuit._typing import Array
from pursuit._validation import Samples
from pursuit.losses import Loss
from pursuit.moving_vectors.setting import Setting
from pursuit.optimize.variable_projection import Descent, Step

__all__ = ["Ends", "HeldOutWatch"]

# Held-out rows are looked at after every so many iterations.
LOOK_EVERY = 5


class Ends(NamedTuple):
    """What the end of a fit needs beside the descent: all rows, their places, those held out."""

    samples: Samples
    used: Array
    held_out: Samples | None
    loss: Loss


class HeldOutWatch:
    """Looks at held-out rows after every few iterations and keeps the best step."""

    def __init__(self, model: Any, setting: Setting, held_out: Samples) -> None:
        self.model, self.setting, self.held_out = copy.copy(model), setting, held_out
        self.score = check_scoring(model, scoring=model.scoring)
        self.n_calls, self.n_worse, self.highest = 0, 0, -np.inf
        self.best: Step | None = None

    def __call__(self, step: Step) -> str | None:
        """Why to stop, if there is a reason."""
        self.n_calls += 1
        if self.n_calls % LOOK_EVERY:
            return None
        self.model._store_step(step, self.setting)
        self.model._calibrate(self.held_out, fresh=True)
        targets = self.model._seen(self.held_out)
        score = float(self.score(self.model, self.held_out.X, targets))
        better = score > self.highest
        if better or self.best is None:
            self.best, self.highest = step, score
        self.n_worse = 0 if better else self.n_worse + 1
        return "early_stopping" if self.n_worse >= self.model.n_iter_no_change else None

    def kept(self, descent: Descent) -> Descent:
        """The descent with the step that the held-out rows like best."""
        return descent if self.best is None else descent._replace(best=self.best)
