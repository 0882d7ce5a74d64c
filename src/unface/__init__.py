"""Measure and reduce what image embeddings reveal about identity.

The public names are listed here once and loaded on first use, so that ``import unface`` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from unface._version import __version__ as __version__

_HOMES = {
    "audit": "unface.auditing",
    "copy_covariance": "unface.erase",
    "AuditResult": "unface.result.audit",
    "EmbeddingSet": "unface.data",
    "FairPCA": "unface.erase",
    "INLP": "unface.erase",
    "ISP": "unface.erase",
    "Keeper": "unface.erase",
    "LabelFreePCA": "unface.erase",
    "LEACE": "unface.erase",
    "load_encoder": "unface.encode",
    "make_identities": "unface.data",
    "Projection": "unface.erase",
    "Protocol": "unface.auditing",
    "RandomSubspace": "unface.erase",
    "read_embeddings": "unface.data",
    "RLACE": "unface.erase",
    "SAL": "unface.erase",
    "tar_at_far": "unface.verification",
    "task_covariance": "unface.erase",
    "TarAtFar": "unface.verification",
    "UnfaceError": "unface.errors",
    "Verification": "unface.verification",
    "UtilityLEACE": "unface.erase",
    "UtilityPCA": "unface.erase",
    "verify": "unface.verification",
    "write_embeddings": "unface.data",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 - the keys are strings; a second list could drift

if TYPE_CHECKING:
    from unface.auditing import Protocol as Protocol
    from unface.auditing import audit as audit
    from unface.data import EmbeddingSet as EmbeddingSet
    from unface.data import make_identities as make_identities
    from unface.data import read_embeddings as read_embeddings
    from unface.data import write_embeddings as write_embeddings
    from unface.encode import load_encoder as load_encoder
    from unface.erase import INLP as INLP
    from unface.erase import ISP as ISP
    from unface.erase import LEACE as LEACE
    from unface.erase import RLACE as RLACE
    from unface.erase import SAL as SAL
    from unface.erase import FairPCA as FairPCA
    from unface.erase import Keeper as Keeper
    from unface.erase import LabelFreePCA as LabelFreePCA
    from unface.erase import Projection as Projection
    from unface.erase import RandomSubspace as RandomSubspace
    from unface.erase import UtilityLEACE as UtilityLEACE
    from unface.erase import UtilityPCA as UtilityPCA
    from unface.erase import copy_covariance as copy_covariance
    from unface.erase import task_covariance as task_covariance
    from unface.errors import UnfaceError as UnfaceError
    from unface.result.audit import AuditResult as AuditResult
    from unface.verification import TarAtFar as TarAtFar
    from unface.verification import Verification as Verification
    from unface.verification import tar_at_far as tar_at_far
    from unface.verification import verify as verify
else:  # hidden from type checkers: every misspelt name would look real to them

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'unface' has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
