"""Sparse kernel machines: kernel methods with a strict budget of kernel functions."""
