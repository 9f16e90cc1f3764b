"""
Kernel PCA that keeps few of the rows
=====================================

How many rows are enough to span the digits, and what do they leave? The sample compression bound
says how many, before any test row is seen; the picture shows it beside the residuals.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from pursuit import BoundDisplay, SparseKernelPCA

X, _ = load_digits(return_X_y=True)
train, test = train_test_split(X, random_state=0)

gamma = 1e-4
pca = SparseKernelPCA(n_components="bound", gamma=gamma).fit(train)
print(
    f"the bound is lowest at {pca.n_components_} of {len(train)} rows: "
    f"{pca.bound_path_.min():.3f}, test residual {pca.residual(test).mean():.3f}"
)
BoundDisplay.from_estimator(SparseKernelPCA(100, gamma=gamma).fit(train), test)
plt.show()

# %%
# A larger model takes noise out of digits that it has not seen: their coordinates lead back to
# pixels.
noisy = test + 4 * np.random.default_rng(0).standard_normal(test.shape)
print(f"noise: squared error of a pixel {np.mean((noisy - test) ** 2):.1f}")
linear = PCA(20).fit(train)
flat = linear.inverse_transform(linear.transform(noisy))
print(f"there and back, linear PCA with 20 components: {np.mean((flat - test) ** 2):.1f}")
for k in (50, 200):
    pca = SparseKernelPCA(k, gamma=gamma, fit_inverse_transform=True).fit(train)
    clean = pca.inverse_transform(pca.transform(noisy))
    print(f"kernel PCA with {k} vectors: {np.mean((clean - test) ** 2):.1f}")

rows = {"as they are": test, "with noise": noisy, "linear PCA": flat, "kernel PCA": clean}
fig, axes = plt.subplots(len(rows), 8, figsize=(6.4, 3.8))
for line, (name, images) in zip(axes, rows.items(), strict=True):
    for ax, image in zip(line, images, strict=False):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
fig.suptitle("Noise taken out of digits by linear and by kernel PCA")
plt.show()
