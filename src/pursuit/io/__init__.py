"""Files: models, tables, and machines of scikit-learn.

Read `files` (a file takes its place in one piece) and `tree` (an estimator as a tree of plain
values, which `pursuit.model_file` writes) first; `tables` reads data with the place of every fault,
and `skops_file` the machines of scikit-learn. The last two need the ``cli`` extra.
"""
