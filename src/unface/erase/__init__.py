"""The defender: erasers that learn which directions tell people apart, and the Projection that removes them.

Erasers are loaded on first use: they are scikit-learn transformers, and a Projection is applied without scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from unface.erase.certify import certificate
from unface.erase.projection import PrincipalCosines, Projection, chance_cosine, principal_cosines

_HOMES = {
    "CONTROLS": "unface.erase.named",
    "ClosedFormEraser": "unface.erase.eraser",
    "ERASERS": "unface.erase.named",
    "Eraser": "unface.erase.eraser",
    "FairPCA": "unface.erase.class_means",
    "FitError": "unface.erase.eraser",
    "INLP": "unface.erase.inlp",
    "ISP": "unface.erase.class_means",
    "KEEPER": "unface.erase.named",
    "Keeper": "unface.erase.keeper",
    "LEACE": "unface.erase.class_means",
    "LabelFreePCA": "unface.erase.controls",
    "RLACE": "unface.erase.rlace",
    "RandomSubspace": "unface.erase.controls",
    "SAL": "unface.erase.class_means",
    "USUAL_MU": "unface.erase.named",
    "UTILITY_AWARE": "unface.erase.named",
    "UtilityLEACE": "unface.erase.utility_aware",
    "UtilityPCA": "unface.erase.utility_aware",
    "copy_covariance": "unface.erase.keeper",
    "fit_projection": "unface.erase.eraser",
    "make_eraser": "unface.erase.named",
    "task_covariance": "unface.erase.keeper",
    "usual_rank": "unface.erase.named",
    "usually_kept": "unface.erase.named",
}

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

if TYPE_CHECKING:
    from unface.erase.class_means import ISP as ISP
    from unface.erase.class_means import LEACE as LEACE
    from unface.erase.class_means import SAL as SAL
    from unface.erase.class_means import FairPCA as FairPCA
    from unface.erase.controls import LabelFreePCA as LabelFreePCA
    from unface.erase.controls import RandomSubspace as RandomSubspace
    from unface.erase.eraser import ClosedFormEraser as ClosedFormEraser
    from unface.erase.eraser import Eraser as Eraser
    from unface.erase.eraser import FitError as FitError
    from unface.erase.eraser import fit_projection as fit_projection
    from unface.erase.inlp import INLP as INLP
    from unface.erase.keeper import Keeper as Keeper
    from unface.erase.keeper import copy_covariance as copy_covariance
    from unface.erase.keeper import task_covariance as task_covariance
    from unface.erase.named import CONTROLS as CONTROLS
    from unface.erase.named import ERASERS as ERASERS
    from unface.erase.named import KEEPER as KEEPER
    from unface.erase.named import USUAL_MU as USUAL_MU
    from unface.erase.named import UTILITY_AWARE as UTILITY_AWARE
    from unface.erase.named import make_eraser as make_eraser
    from unface.erase.named import usual_rank as usual_rank
    from unface.erase.named import usually_kept as usually_kept
    from unface.erase.rlace import RLACE as RLACE
    from unface.erase.utility_aware import UtilityLEACE as UtilityLEACE
    from unface.erase.utility_aware import UtilityPCA as UtilityPCA
else:  # hidden from type checkers: every misspelt name would look real to them

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'unface.erase' has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
