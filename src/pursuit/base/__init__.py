"""What the estimators of all families share.

Read ``estimators.py`` (reading data, prediction from an expansion), ``parameters.py`` (constructors
as fields), ``cross_validation.py`` (folds, scores and the rule that chooses), ``intervals.py`` and
``docstrings.py`` (entries that are written once).
"""
