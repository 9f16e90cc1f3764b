"""Kernel machines that learn from one row after another, with vectors that come and go.

``tracker.py`` is the algorithm: recursive least squares in a feature space, with a budget and
forgetting; ``estimators.py`` holds `OnlineKernelRegressor` and `OnlineKernelClassifier`.
"""
