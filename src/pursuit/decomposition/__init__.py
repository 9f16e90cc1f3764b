"""Unsupervised features in the span of few rows.

Read `_landmarks`, which chooses the rows, then `kernel_pca`, which turns their span to principal
axes, `nystroem`, whose features have inner products that approximate the kernel, and `kernel_cca`,
which does it for two views at once.
"""
