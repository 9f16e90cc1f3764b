"""Greedy selection: one engine under every method that chooses functions one at a time.

Read in this order: ``linalg/partial_cholesky.py`` (the factorisation), `pivot_rules` (one table),
`pursuits` (a rule with targets) and `drafts` (its guess of what comes next), `deflation` (a rule
without), `normal_equations` and `gram_rows` (where G comes from); then `multi_output`,
`squared_error` and `any_loss` (bases that grow together), `stopping` and `path_losses` (which
prefix is kept), `make_pursuit` (the entry).
"""
