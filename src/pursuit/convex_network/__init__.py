"""Convex networks: sparse combinations of given functions under any convex loss.

Read `convex_network` first (the problem and the estimator), then `basis_selection` (which
functions); the solver is `pursuit.optimize.coordinate_descent`.
"""

from pursuit.convex_network.convex_network import ConvexNetworkClassifier

__all__ = ["ConvexNetworkClassifier"]
