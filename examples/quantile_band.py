"""A band that nine of ten targets lie in, from three small models.

The noise grows with x. Each quantile is a model of its own with few vectors; squared error with a
band of constant width stands beside them. The shares are those of rows that the fits have not
seen, for small and for large x.
"""

import numpy as np

from pursuit import KernelMatchingPursuitRegressor
from pursuit.losses import Quantile


def sample(n, rng):
    X = rng.uniform(0, 6, (n, 1))
    return X, np.sin(X[:, 0]) + (0.1 + 0.2 * X[:, 0]) * rng.standard_normal(n)


def main():
    rng = np.random.default_rng(0)
    X, y = sample(2000, rng)
    X_test, y_test = sample(10_000, rng)

    quantiles = {}
    for q in (0.05, 0.5, 0.95):
        model = KernelMatchingPursuitRegressor(n_components=6, gamma=0.5, loss=Quantile(q))
        quantiles[q] = model.fit(X, y).predict(X_test)
        below = np.mean(y_test <= quantiles[q])
        print(f"quantile {q}: {model.n_components_} vectors, {below:.3f} of the targets below")

    mean = KernelMatchingPursuitRegressor(n_components=6, gamma=0.5).fit(X, y)
    half = np.quantile(np.abs(y - mean.predict(X)), 0.9)
    bands = {
        "quantiles": (quantiles[0.05], quantiles[0.95]),
        "mean and constant width": (mean.predict(X_test) - half, mean.predict(X_test) + half),
    }
    left = X_test[:, 0] < 2
    for name, (low, high) in bands.items():
        inside = (low <= y_test) & (y_test <= high)
        print(
            f"{name}: {inside[left].mean():.3f} inside for x < 2, {inside[~left].mean():.3f} else"
        )


if __name__ == "__main__":
    main()
