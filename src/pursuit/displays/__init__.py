"""Pictures of fitted models."""

from pursuit.displays.density import DensityDisplay
from pursuit.displays.images import VectorImageDisplay
from pursuit.displays.paths import BoundDisplay, PursuitPathDisplay, SupportDisplay

__all__ = [
    "BoundDisplay",
    "DensityDisplay",
    "PursuitPathDisplay",
    "SupportDisplay",
    "VectorImageDisplay",
]
