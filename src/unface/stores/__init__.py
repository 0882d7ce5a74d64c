"""Collections people already have, one adapter each: erased vectors take the raw ones' place."""

from unface.stores.ports import Erase, Holding, Readable, Store
from unface.stores.run import StorePlan, plan_store, sanitise_store
from unface.stores.urls import open_collection, open_store

__all__ = [
    "Erase",
    "Holding",
    "Readable",
    "Store",
    "StorePlan",
    "open_collection",
    "open_store",
    "plan_store",
    "sanitise_store",
]
