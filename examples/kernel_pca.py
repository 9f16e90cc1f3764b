"""Kernel PCA that keeps few of the rows: how many, what it leaves, and digits without noise.

The sample compression bound says how many rows are enough to span the clean digits; a picture
shows it beside the residuals. A larger model takes noise out of digits that it has not seen: their
coordinates lead back to pixels. Needs matplotlib: pip install ".[plot]". Writes bound.png.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from pursuit import BoundDisplay, SparseKernelPCA


def main():
    X, _ = load_digits(return_X_y=True)
    train, test = train_test_split(X, random_state=0)

    gamma = 1e-4
    pca = SparseKernelPCA(n_components="bound", gamma=gamma).fit(train)
    print(
        f"the bound is lowest at {pca.n_components_} of {len(train)} rows: "
        f"{pca.bound_path_.min():.3f}, test residual {pca.residual(test).mean():.3f}"
    )
    BoundDisplay.from_estimator(SparseKernelPCA(100, gamma=gamma).fit(train), test)
    plt.savefig("bound.png")
    plt.close("all")

    noisy = test + 4 * np.random.default_rng(0).standard_normal(test.shape)
    print(f"noise: squared error of a pixel {np.mean((noisy - test) ** 2):.1f}")
    linear = PCA(20).fit(train)
    clean = linear.inverse_transform(linear.transform(noisy))
    print(f"there and back, linear PCA with 20 components: {np.mean((clean - test) ** 2):.1f}")
    for k in (25, 50, 100, 200):
        pca = SparseKernelPCA(k, gamma=gamma, fit_inverse_transform=True).fit(train)
        clean = pca.inverse_transform(pca.transform(noisy))
        print(f"{k:4d} vectors: {np.mean((clean - test) ** 2):.1f}")


if __name__ == "__main__":
    main()
