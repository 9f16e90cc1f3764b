"""Files: models, tables, and machines of scikit-learn.

Read `files` (a file takes its place in one piece) and `tree` (an estimator as a tree of plain
values, which `pursuit.model_file` writes) first; `tables` reads data with the place of every fault,
`columns` and `column_formats` say what the cells of a table mean, and `skops_file` reads the
machines of scikit-learn. The last four need the ``cli`` extra.
"""
