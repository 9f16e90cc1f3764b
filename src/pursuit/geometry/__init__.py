"""Where samples lie: distances, equal rows, neighbours, local covariances, convex hulls.

Read in this order: ``distances`` (squared distances that keep their digits), ``unique_rows``
(equal rows are one row of their weight), ``nearest`` (the k nearest rows), ``tangents`` (known
directions at a row), ``local_covariance`` (the shape of the data around a row), ``convex_hull``
(the nearest point of a hull) and ``kd_tree`` (compact groups of rows). Nothing here knows of
kernels or of learning.
"""
