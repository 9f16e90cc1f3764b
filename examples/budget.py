"""How many vectors does a problem need? One fit answers for every budget.

Fits one model to the digits with at most 300 vectors, shows the test error at some budgets beside
a support vector machine's, and cuts the model where the leave-one-out loss has come near its best.
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
    print(
        f"leave-one-out keeps {model.n_components_} of 300 vectors, stopped by {model.stop_reason_}"
    )
    for n in (25, 50, 100, 200):
        if n <= len(errors):
            print(f"{n:4d} vectors: test error {errors[n - 1]:.3f}")

    losses = model.leave_one_out_loss_path_
    n = int(np.argmax(losses <= 1.5 * losses.min())) + 1
    small = model.truncate(n)
    print(f"cut to {small.n_components_} vectors: accuracy {small.score(X_test, y_test):.3f}")


if __name__ == "__main__":
    main()
