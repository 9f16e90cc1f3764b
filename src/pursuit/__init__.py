"""Sparse kernel machines: kernel methods with a strict budget of kernel functions."""

from importlib.metadata import version

from pursuit import bounds, dictionary, displays, export, kernels, losses, model_file
from pursuit.convex_network.convex_network import ConvexNetworkClassifier
from pursuit.decomposition.kernel_cca import SparseKernelCCA
from pursuit.decomposition.kernel_pca import SparseKernelPCA
from pursuit.decomposition.nystroem import GreedyNystroem
from pursuit.density.bayes_classifier import DensityClassifier
from pursuit.density.kernel_regression import NadarayaWatsonRegressor
from pursuit.density.local_gaussian import LocalGaussianDensity
from pursuit.density.nearest_centroid import KernelCentroidClassifier
from pursuit.density.parzen import (
    ManifoldParzenDensity,
    ManifoldParzenDensityCV,
    ParzenDensity,
)
from pursuit.dictionary import OrientedGaussians
from pursuit.displays import BoundDisplay, PursuitPathDisplay, SupportDisplay
from pursuit.displays.density import DensityDisplay
from pursuit.displays.frontier import FrontierDisplay
from pursuit.displays.images import VectorImageDisplay
from pursuit.matching_pursuit.estimators import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
)
from pursuit.model_file import ModelFileError, load, save
from pursuit.moving_vectors.cross_validation import (
    SparseKernelClassifierCV,
    SparseKernelRegressorCV,
)
from pursuit.moving_vectors.estimators import SparseKernelClassifier, SparseKernelRegressor
from pursuit.moving_vectors.frontier import Frontier, frontier
from pursuit.moving_vectors.kernel_metric import KernelMetric
from pursuit.moving_vectors.one_class import SparseOneClass
from pursuit.neighbors.classifiers import (
    ConvexKNeighborsClassifier,
    HyperplaneKNeighborsClassifier,
)
from pursuit.neighbors.reference_rows import reference_rows
from pursuit.sparse_bayes.relevance_vector import (
    RelevanceVectorClassifier,
    RelevanceVectorRegressor,
)
from pursuit.svm.compression import (
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    compress,
)
from pursuit.svm.reduced_set import ReducedSetClassifier, ReducedSupportVectorClassifier
from pursuit.svm.sparse_large_margin import SparseLargeMarginClassifier
from pursuit.table.model import TableModel

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
    "Frontier",
    "FrontierDisplay",
    "GreedyNystroem",
    "HyperplaneKNeighborsClassifier",
    "KernelCentroidClassifier",
    "KernelMatchingPursuitClassifier",
    "KernelMatchingPursuitClassifierCV",
    "KernelMatchingPursuitRegressor",
    "KernelMatchingPursuitRegressorCV",
    "KernelMetric",
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
    "SparseKernelClassifier",
    "SparseKernelClassifierCV",
    "SparseKernelPCA",
    "SparseKernelRegressor",
    "SparseKernelRegressorCV",
    "SparseLargeMarginClassifier",
    "SparseOneClass",
    "SupportDisplay",
    "TableModel",
    "VectorImageDisplay",
    "bounds",
    "compress",
    "dictionary",
    "displays",
    "export",
    "frontier",
    "kernels",
    "load",
    "losses",
    "model_file",
    "reference_rows",
    "save",
]
