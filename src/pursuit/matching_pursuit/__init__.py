"""Kernel matching pursuit (Vincent and Bengio 2002).

Read ``estimators.py`` (the algorithm and the two ways to fit it), ``path_model.py`` (parameters,
stages and truncation) and ``cross_validation.py`` (exact K-fold paths). The pursuit itself is in
``pursuit.greedy``.
"""
