"""The defender: erasers that learn which directions tell people apart, and the Projection that removes them."""

from unface.erase.certify import certificate
from unface.erase.class_means import ISP, LEACE, SAL, FairPCA
from unface.erase.controls import LabelFreePCA, RandomSubspace
from unface.erase.eraser import ClosedFormEraser, Eraser, FitError, fit_projection
from unface.erase.inlp import INLP
from unface.erase.keeper import Keeper, copy_covariance, task_covariance
from unface.erase.named import CONTROLS, ERASERS, KEEPER, USUAL_MU, UTILITY_AWARE, make_eraser, usual_rank, usually_kept
from unface.erase.projection import PrincipalCosines, Projection, chance_cosine, principal_cosines
from unface.erase.rlace import RLACE
from unface.erase.utility_aware import UtilityLEACE, UtilityPCA

__all__ = [
    "CONTROLS",
    "ERASERS",
    "INLP",
    "ISP",
    "KEEPER",
    "LEACE",
    "RLACE",
    "SAL",
    "USUAL_MU",
    "UTILITY_AWARE",
    "ClosedFormEraser",
    "Eraser",
    "FairPCA",
    "FitError",
    "Keeper",
    "LabelFreePCA",
    "PrincipalCosines",
    "Projection",
    "RandomSubspace",
    "UtilityLEACE",
    "UtilityPCA",
    "certificate",
    "chance_cosine",
    "copy_covariance",
    "fit_projection",
    "make_eraser",
    "principal_cosines",
    "task_covariance",
    "usual_rank",
    "usually_kept",
]
