"""Kernel machines whose vectors move: a budget of kernel functions, placed by descent.

Read ``descent.py`` (starts, growing parts of the rows, dead vectors), then ``metric.py`` (kernels
<<<<<<< HEAD
that learn their metric), then ``estimators.py``, ``cross_validation.py``, ``kernel_metric.py`` and
``one_class.py``.
=======
that learn their metric), then ``estimators.py``, ``kernel_metric.py`` and ``one_class.py``;
``frontier.py`` goes from many vectors to few.
>>>>>>> moving-frontier
The energy itself is in `pursuit.optimize.variable_projection`.
"""
