"""Sparse kernel machines: kernel methods with a strict budget of kernel functions.

A public name is imported when it is first used (PEP 562), so that ``import pursuit`` costs next to
nothing. What stands under ``TYPE_CHECKING`` says the same to type checkers and editors; a test
holds the two together.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pursuit import bounds, dictionary, displays, export, kernels, losses, model_file
    from pursuit.base.arrays import to_device_of, to_numpy
    from pursuit.base.callbacks import interruptible
    from pursuit.callbacks import Checkpoint, TargetScore, TimeBudget
    from pursuit.checkpoints import StatisticsCheckpoint
    from pursuit.convex_network.convex_network import ConvexNetworkClassifier
    from pursuit.decomposition.kernel_cca import SparseKernelCCA
    from pursuit.decomposition.kernel_pca import SparseKernelPCA
    from pursuit.decomposition.novelty import KernelPCANovelty
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
    from pursuit.displays.relevances import FeatureRelevanceDisplay
    from pursuit.greedy.statistics import KernelStatistics
    from pursuit.io.parquet_blocks import ParquetBlocks
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
    from pursuit.neighbors.condensed_rows import condensed_rows
    from pursuit.neighbors.feature_lines import NearestFeatureLineClassifier
    from pursuit.neighbors.image_tangents import ImageTangents
    from pursuit.neighbors.reference_rows import reference_rows
    from pursuit.neighbors.regressors import HyperplaneKNeighborsRegressor
    from pursuit.online.estimators import OnlineKernelClassifier, OnlineKernelRegressor
    from pursuit.reports import Report, report
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

    __version__: str

__all__ = [
    "BoundDisplay",
    "Checkpoint",
    "CompressedClassifier",
    "CompressedOutlierDetector",
    "CompressedRegressor",
    "ConvexKNeighborsClassifier",
    "ConvexNetworkClassifier",
    "DensityClassifier",
    "DensityDisplay",
    "FeatureRelevanceDisplay",
    "Frontier",
    "FrontierDisplay",
    "GreedyNystroem",
    "HyperplaneKNeighborsClassifier",
    "HyperplaneKNeighborsRegressor",
    "ImageTangents",
    "KernelCentroidClassifier",
    "KernelMatchingPursuitClassifier",
    "KernelMatchingPursuitClassifierCV",
    "KernelMatchingPursuitRegressor",
    "KernelMatchingPursuitRegressorCV",
    "KernelMetric",
    "KernelPCANovelty",
    "KernelStatistics",
    "LocalGaussianDensity",
    "ManifoldParzenDensity",
    "ManifoldParzenDensityCV",
    "ModelFileError",
    "NadarayaWatsonRegressor",
    "NearestFeatureLineClassifier",
    "OnlineKernelClassifier",
    "OnlineKernelRegressor",
    "OrientedGaussians",
    "ParquetBlocks",
    "ParzenDensity",
    "PursuitPathDisplay",
    "ReducedSetClassifier",
    "ReducedSupportVectorClassifier",
    "RelevanceVectorClassifier",
    "RelevanceVectorRegressor",
    "Report",
    "SparseKernelCCA",
    "SparseKernelClassifier",
    "SparseKernelClassifierCV",
    "SparseKernelPCA",
    "SparseKernelRegressor",
    "SparseKernelRegressorCV",
    "SparseLargeMarginClassifier",
    "SparseOneClass",
    "StatisticsCheckpoint",
    "SupportDisplay",
    "TableModel",
    "TargetScore",
    "TimeBudget",
    "VectorImageDisplay",
    "bounds",
    "compress",
    "condensed_rows",
    "dictionary",
    "displays",
    "export",
    "frontier",
    "interruptible",
    "kernels",
    "load",
    "losses",
    "model_file",
    "reference_rows",
    "report",
    "save",
    "to_device_of",
    "to_numpy",
]

# The module that each public name comes from.
_HOMES = {
    "base.callbacks": ("interruptible",),
    "callbacks": ("Checkpoint", "TargetScore", "TimeBudget"),
    "checkpoints": ("StatisticsCheckpoint",),
    "base.arrays": ("to_device_of", "to_numpy"),
    "convex_network.convex_network": ("ConvexNetworkClassifier",),
    "decomposition.kernel_cca": ("SparseKernelCCA",),
    "decomposition.kernel_pca": ("SparseKernelPCA",),
    "decomposition.novelty": ("KernelPCANovelty",),
    "decomposition.nystroem": ("GreedyNystroem",),
    "density.bayes_classifier": ("DensityClassifier",),
    "density.kernel_regression": ("NadarayaWatsonRegressor",),
    "density.local_gaussian": ("LocalGaussianDensity",),
    "density.nearest_centroid": ("KernelCentroidClassifier",),
    "density.parzen": ("ManifoldParzenDensity", "ManifoldParzenDensityCV", "ParzenDensity"),
    "dictionary": ("OrientedGaussians",),
    "displays": ("BoundDisplay", "PursuitPathDisplay", "SupportDisplay"),
    "displays.density": ("DensityDisplay",),
    "displays.frontier": ("FrontierDisplay",),
    "displays.images": ("VectorImageDisplay",),
    "displays.relevances": ("FeatureRelevanceDisplay",),
    "greedy.statistics": ("KernelStatistics",),
    "io.parquet_blocks": ("ParquetBlocks",),
    "matching_pursuit.estimators": (
        "KernelMatchingPursuitClassifier",
        "KernelMatchingPursuitClassifierCV",
        "KernelMatchingPursuitRegressor",
        "KernelMatchingPursuitRegressorCV",
    ),
    "model_file": ("ModelFileError", "load", "save"),
    "moving_vectors.cross_validation": ("SparseKernelClassifierCV", "SparseKernelRegressorCV"),
    "moving_vectors.estimators": ("SparseKernelClassifier", "SparseKernelRegressor"),
    "moving_vectors.frontier": ("Frontier", "frontier"),
    "moving_vectors.kernel_metric": ("KernelMetric",),
    "moving_vectors.one_class": ("SparseOneClass",),
    "neighbors.classifiers": ("ConvexKNeighborsClassifier", "HyperplaneKNeighborsClassifier"),
    "neighbors.condensed_rows": ("condensed_rows",),
    "neighbors.feature_lines": ("NearestFeatureLineClassifier",),
    "neighbors.image_tangents": ("ImageTangents",),
    "neighbors.reference_rows": ("reference_rows",),
    "neighbors.regressors": ("HyperplaneKNeighborsRegressor",),
    "online.estimators": ("OnlineKernelClassifier", "OnlineKernelRegressor"),
    "reports": ("Report", "report"),
    "sparse_bayes.relevance_vector": ("RelevanceVectorClassifier", "RelevanceVectorRegressor"),
    "svm.compression": (
        "CompressedClassifier",
        "CompressedOutlierDetector",
        "CompressedRegressor",
        "compress",
    ),
    "svm.reduced_set": ("ReducedSetClassifier", "ReducedSupportVectorClassifier"),
    "svm.sparse_large_margin": ("SparseLargeMarginClassifier",),
    "table.model": ("TableModel",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # to a type checker this function would make every name right

    def __getattr__(name: str) -> Any:
        """Import what a name stands for when it is first asked for."""
        from importlib import import_module
        from importlib.util import find_spec

        if name == "__version__":
            from importlib.metadata import version

            value = version(__name__)
        elif name in _HOME_OF:
            value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        elif not name.startswith("_") and find_spec(f"{__name__}.{name}"):
            value = import_module(f"{__name__}.{name}")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Name what is public, imported or not."""
    return sorted({*globals(), *__all__, "__version__"})
