"""How many vectors does a problem need? One fit answers for every budget.

Fits one model to the digits with at most 300 vectors, shows the test error at some budgets beside
a support vector machine's, and cuts the model to the smallest budget that is about as good.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from pursuit import KernelMatchingPursuitClassifier


def main():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

    machine = SVC(C=10).fit(X_train, y_train)
    limit = np.mean(machine.predict(X_test) != y_test)
    print(f"SVC: test error {limit:.3f} with {len(machine.support_)} vectors")

    model = KernelMatchingPursuitClassifier(n_components=300, early_stopping="loo")
    model.fit(X_train, y_train)
    errors = np.array([np.mean(labels != y_test) for labels in model.staged_predict(X_test)])
    print(f"leave-one-out keeps {model.n_components_} of 300 vectors: {model.stop_reason_}")
    for n in (25, 50, 100, 200):
        if n <= len(errors):
            print(f"{n:4d} vectors: test error {errors[n - 1]:.3f}")

    n = int(np.argmax(errors <= errors.min() + 0.005)) + 1
    small = model.truncate(n)
    print(f"cut to {small.n_components_} vectors: accuracy {small.score(X_test, y_test):.3f}")


if __name__ == "__main__":
    main()
