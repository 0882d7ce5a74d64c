"""The defender: erasers that learn which directions tell people apart, and the Projection that removes them."""

from unface.erase.certify import certificate
from unface.erase.controls import LabelFreePCA, RandomSubspace
from unface.erase.eraser import ClosedFormEraser, Eraser, fit_projection
from unface.erase.fair_pca import FairPCA
from unface.erase.inlp import INLP
from unface.erase.isp import ISP
from unface.erase.leace import LEACE
from unface.erase.named import CONTROLS, ERASERS, UTILITY_AWARE, make_eraser, usual_rank
from unface.erase.principal import PrincipalCosines, chance_cosine, principal_cosines
from unface.erase.projection import Projection
from unface.erase.rank import FitError
from unface.erase.rlace import RLACE
from unface.erase.sal import SAL
from unface.erase.utility_aware import UtilityLEACE, UtilityPCA

__all__ = [
    "CONTROLS",
    "ERASERS",
    "INLP",
    "ISP",
    "LEACE",
    "RLACE",
    "SAL",
    "UTILITY_AWARE",
    "ClosedFormEraser",
    "Eraser",
    "FairPCA",
    "FitError",
    "LabelFreePCA",
    "PrincipalCosines",
    "Projection",
    "RandomSubspace",
    "UtilityLEACE",
    "UtilityPCA",
    "certificate",
    "chance_cosine",
    "fit_projection",
    "make_eraser",
    "principal_cosines",
    "usual_rank",
]
