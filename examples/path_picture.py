"""Two pictures: the loss against the number of vectors, and where the vectors lie.

Needs matplotlib: pip install ".[plot]". Writes path.png and support.png into this folder.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from pursuit import KernelMatchingPursuitClassifier, PursuitPathDisplay, SupportDisplay


def main():
    X, y = make_moons(600, noise=0.25, random_state=0)
    model = KernelMatchingPursuitClassifier(n_components=40, gamma=2.0, early_stopping=True)
    model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])

    PursuitPathDisplay.from_estimator(model)
    plt.savefig("path.png")
    SupportDisplay.from_estimator(model.truncate(min(12, model.n_iter_)), X[300:], y[300:])
    plt.savefig("support.png")
    plt.close("all")
    print("wrote path.png and support.png")


if __name__ == "__main__":
    main()
