"""Pictures of fitted models, in the form of scikit-learn's displays.

`paths` shows losses and bounds against the number of vectors, `frontier` errors against the size of
models, `decision` a fitted function of two features, `density` a density of two features, `images`
the vectors of a model as images, `relevances` what each feature counts for; `_axes` holds what they
share. Read `paths` first. matplotlib is imported when something is drawn.
"""

from pursuit.displays.decision import SupportDisplay
from pursuit.displays.density import DensityDisplay
from pursuit.displays.frontier import FrontierDisplay
from pursuit.displays.images import VectorImageDisplay
from pursuit.displays.paths import BoundDisplay, PursuitPathDisplay
from pursuit.displays.relevances import FeatureRelevanceDisplay

__all__ = [
    "BoundDisplay",
    "DensityDisplay",
    "FeatureRelevanceDisplay",
    "FrontierDisplay",
    "PursuitPathDisplay",
    "SupportDisplay",
    "VectorImageDisplay",
]
