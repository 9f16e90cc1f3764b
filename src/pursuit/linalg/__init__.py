"""Numerics that know no method: the partial Cholesky factorisation, factors, blocks of rows.

Read `partial_cholesky` first: it is what every greedy method of the library does. `factor` calls
BLAS and LAPACK; `blocks` makes the big temporaries, within scikit-learn's ``working_memory``.
"""
