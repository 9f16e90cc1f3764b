"""Nearest neighbours that follow the local shape of each class (HKNN, CKNN and lines).

Read in this order: ``hyperplane`` (squared distances to the hyperplane and the convex hull of
neighbours: the paper), ``tangents`` (known directions beside the neighbours: the tangent distance)
and ``image_tangents`` (those of images), ``classifiers`` (rows by class, decisions, probabilities,
grids), ``feature_lines`` (lines through pairs of rows), ``regressors`` (the same combination of
targets), ``reference_rows`` (fewer reference rows, from the vectors of another classifier) and
``condensed_rows`` (fewer reference rows on which a classifier has the others right).
"""
