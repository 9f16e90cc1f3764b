"""Sparse kernel machines: kernel methods with a strict budget of kernel functions."""

from importlib.metadata import version

from pursuit import bounds, dictionary, displays, kernels, losses, model_file
from pursuit.classical import KernelCentroidClassifier, NadarayaWatsonRegressor
from pursuit.compression import (
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    compress,
)
from pursuit.convex_network import ConvexNetworkClassifier
from pursuit.density_display import DensityDisplay
from pursuit.dictionary import OrientedGaussians
from pursuit.displays import BoundDisplay, PursuitPathDisplay, SupportDisplay
from pursuit.image_display import VectorImageDisplay
from pursuit.local_gaussian import LocalGaussianDensity
from pursuit.local_neighbors import (
    ConvexKNeighborsClassifier,
    HyperplaneKNeighborsClassifier,
    reference_rows,
)
from pursuit.matching_pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
)
from pursuit.model_file import ModelFileError, load, save
from pursuit.parzen import (
    DensityClassifier,
    ManifoldParzenDensity,
    ManifoldParzenDensityCV,
    ParzenDensity,
)
from pursuit.reduced_set import ReducedSetClassifier, ReducedSupportVectorClassifier
from pursuit.relevance_vector import RelevanceVectorClassifier, RelevanceVectorRegressor
from pursuit.sparse_kernel_cca import SparseKernelCCA
from pursuit.sparse_kernel_pca import GreedyNystroem, SparseKernelPCA
from pursuit.sparse_large_margin import SparseLargeMarginClassifier

__version__ = version("pursuit")

__all__ = [
    "BoundDisplay",
    "CompressedClassifier",
    "CompressedOutlierDetector",
    "CompressedRegressor",
    "ConvexKNeighborsClassifier",
    "ConvexNetworkClassifier",
    "DensityClassifier",
    "DensityDisplay",
    "GreedyNystroem",
    "HyperplaneKNeighborsClassifier",
    "KernelCentroidClassifier",
    "KernelMatchingPursuitClassifier",
    "KernelMatchingPursuitClassifierCV",
    "KernelMatchingPursuitRegressor",
    "KernelMatchingPursuitRegressorCV",
    "LocalGaussianDensity",
    "ManifoldParzenDensity",
    "ManifoldParzenDensityCV",
    "ModelFileError",
    "NadarayaWatsonRegressor",
    "OrientedGaussians",
    "ParzenDensity",
    "PursuitPathDisplay",
    "ReducedSetClassifier",
    "ReducedSupportVectorClassifier",
    "RelevanceVectorClassifier",
    "RelevanceVectorRegressor",
    "SparseKernelCCA",
    "SparseKernelPCA",
    "SparseLargeMarginClassifier",
    "SupportDisplay",
    "VectorImageDisplay",
    "bounds",
    "compress",
    "dictionary",
    "displays",
    "kernels",
    "load",
    "losses",
    "model_file",
    "reference_rows",
    "save",
]
