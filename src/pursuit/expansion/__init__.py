"""The function f(x) = b + sum_k a_k k(x, z_k) that every fit ends in.

Read ``basis_functions.py`` (what an atom may be), ``expansion.py`` (the sum), ``path.py`` (the
coefficients of every prefix of a greedy fit), ``leave_one_out.py``, ``probabilities.py`` (from
decision values to classes) and ``design_matrix.py`` (atoms on all samples); then what a sum tells
of itself: ``intervals.py``, ``gradients.py``, ``explanations.py``.
"""
