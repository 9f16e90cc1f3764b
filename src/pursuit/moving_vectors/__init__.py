"""Kernel machines whose vectors move: a budget of kernel functions, placed by descent.

Read `pursuit.optimize.moving` (growing parts of the rows, dead vectors; the energy itself is in
`pursuit.optimize.variable_projection`), then ``metric.py`` (kernels that learn their metric),
``leave_one_out.py`` (what a fit without a row would say there) and ``estimators.py``. On these
build ``cross_validation.py``, ``few_bytes.py``, ``frontier.py`` (from many to few),
``kernel_metric.py`` and ``one_class.py``.
"""
