"""Kernel machines whose vectors move: a budget of kernel functions, placed by descent.

Read ``descent.py`` (starts, growing parts of the rows, dead vectors), then ``metric.py`` (kernels
that learn their metric), then ``estimators.py``, ``kernel_metric.py`` and ``one_class.py``;
``frontier.py`` goes from many vectors to few.
The energy itself is in `pursuit.optimize.variable_projection`.
"""
