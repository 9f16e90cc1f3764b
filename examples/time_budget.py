"""
So much time and no more
========================

A fit under a loss of its own takes a while, and how long is hard to say beforehand. A callback
ends it when the time is up; the model is that of the vectors chosen by then. Here one fit is
watched: how many vectors it has when, where it would have been stopped, and how good that is on
rows that it has not seen.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from pursuit import KernelMatchingPursuitClassifier, TimeBudget


class Stopwatch:
    """A callback of one's own: when each step was over."""

    def setup(self, estimator, context):
        self.start, self.times = time.perf_counter(), []

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "step":
            self.times.append(time.perf_counter() - self.start)

    def teardown(self, estimator, context):
        pass


X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)

# %%
# The whole fit, watched.
watch = Stopwatch()
whole = KernelMatchingPursuitClassifier(
    n_components=40, loss="log_loss", refit_every=5, n_candidates=300, random_state=0
)
whole.set_callbacks(watch).fit(X_train, y_train)
errors = [100 * np.mean(labels != y_test) for labels in whole.staged_predict(X_test)]

# %%
# The same fit with a third of the time: it ends by itself, fits all its coefficients once more, and
# can be used.
seconds = watch.times[-1] / 3
short = KernelMatchingPursuitClassifier(**whole.get_params()).set_callbacks(TimeBudget(seconds))
short.fit(X_train, y_train)
error = 100 * np.mean(short.predict(X_test) != y_test)
print(f"{whole.n_components_} vectors: {errors[-1]:.1f} % errors")
print(f"a third of the time: {short.stop_reason_=}, {error:.1f} % errors")

# %%
# Most of what can be learned is learned early.
figure, (left, right) = plt.subplots(2, 1, sharex=True, figsize=(6.4, 5.6))
seen = np.array(watch.times)
left.step(seen, np.arange(1, len(seen) + 1), where="post")
left.set(ylabel="vectors", title="One fit of 40 vectors, log-loss, digits")
right.step(seen, errors, where="post")
right.set(xlabel="time since the beginning of the fit (s)", ylabel="test errors (%)", ylim=(0, 60))
for axis in (left, right):
    axis.axvline(seconds, color="C1", linestyle="--", label="TimeBudget: a third")
right.plot(seconds, error, "o", color="C1", label="the model that was stopped")
right.legend()
plt.show()
