"""Models of tables: from the raw columns of a frame or a file to predictions.

Read `preparation` (how columns become features) first, then `model_selection` (how a model is
chosen); `frames` makes tables of data frames, and `model` ties all together. It needs the ``table``
extra when it runs, not when `pursuit` imports it.
"""
