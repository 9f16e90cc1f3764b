"""Support vector machines with few vectors.

Read ``sparse_large_margin.py`` first (vectors that move), then ``reduction.py`` (the reduced set
method), ``reduced_set.py`` (its classifiers and RSVM), ``from_sklearn.py`` (fitted machines as
functions) and ``compression.py`` (these made small). The solver is ``pursuit.optimize.svm``.
"""
