"""Densities that follow the data, and the classical methods beside them.

Read in this order: ``gaussian_mixture`` (log-densities of oriented Gaussians, the heart),
``bandwidth`` (leave-one-out likelihoods), ``covariance`` (windows of one shape), ``parzen`` (Parzen
and manifold Parzen windows), ``local_gaussian`` (a Gaussian fitted at the query),
``bayes_classifier`` (classes by densities), ``kernel_regression`` (Nadaraya-Watson) and
``nearest_centroid`` (centroids in feature space).
"""
