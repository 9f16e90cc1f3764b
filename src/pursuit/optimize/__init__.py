"""Solvers on valid arrays; none knows of estimators.

Read `newton` (any smooth loss), then `coordinate_descent` (a convex loss in a box) with `box_qp`
(a quadratic in a box), and `svm` (the soft margin by an interior point method).
"""
