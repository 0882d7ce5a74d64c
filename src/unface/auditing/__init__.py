"""The audit: a list of parts run on embeddings, each with its own folder here; and ``unface fit``.

Names are loaded on first use: reading a result needs the parts' formats, not the code that measures.
"""

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "Albums": "unface.auditing.albums",
    "Attribution": "unface.auditing.attribution",
    "AttributeSwap": "unface.auditing.attribute_swap",
    "Bench": "unface.auditing.bench",
    "Exposures": "unface.auditing.exposure",
    "Inversion": "unface.auditing.inversion",
    "Inverter": "unface.auditing.inversion.run",
    "Maps": "unface.auditing.maps",
    "Protocol": "unface.auditing.protocol",
    "Search": "unface.auditing.search",
    "Subjects": "unface.auditing.attribution.run",
    "Sweeps": "unface.auditing.sweeps",
    "Transfer": "unface.auditing.transfer",
    "Translate": "unface.auditing.translate",
    "attribute_pictures": "unface.auditing.attribution.run",
    "audit": "unface.auditing.run",
    "fit_audited": "unface.auditing.fit",
    "fit_certified": "unface.auditing.fit",
    "fit_streamed": "unface.auditing.fit",
    "is_streamed": "unface.auditing.fit",
    "require_people": "unface.auditing.protocol",
}

__all__ = list(_HOMES)

if TYPE_CHECKING:
    from unface.auditing.albums import Albums as Albums
    from unface.auditing.attribute_swap import AttributeSwap as AttributeSwap
    from unface.auditing.attribution import Attribution as Attribution
    from unface.auditing.attribution.run import Subjects as Subjects
    from unface.auditing.attribution.run import attribute_pictures as attribute_pictures
    from unface.auditing.bench import Bench as Bench
    from unface.auditing.exposure import Exposures as Exposures
    from unface.auditing.fit import fit_audited as fit_audited
    from unface.auditing.fit import fit_certified as fit_certified
    from unface.auditing.fit import fit_streamed as fit_streamed
    from unface.auditing.fit import is_streamed as is_streamed
    from unface.auditing.inversion import Inversion as Inversion
    from unface.auditing.inversion.run import Inverter as Inverter
    from unface.auditing.maps import Maps as Maps
    from unface.auditing.protocol import Protocol as Protocol
    from unface.auditing.protocol import require_people as require_people
    from unface.auditing.run import audit as audit
    from unface.auditing.search import Search as Search
    from unface.auditing.sweeps import Sweeps as Sweeps
    from unface.auditing.transfer import Transfer as Transfer
    from unface.auditing.translate import Translate as Translate
else:  # hidden from type checkers: every misspelt name would look real to them

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'unface.auditing' has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
