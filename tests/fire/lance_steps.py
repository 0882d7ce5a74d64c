"""The steps of a run on a LanceDB table.

Apart from the target, because the process that runs imports this module at each start, and lancedb takes a second.
"""

from pathlib import Path
from typing import Any

from tests.fire.held_run import Announce


def wrap(announce: Announce) -> None:
    import lance

    from unface.scale.receipt import Receipt
    from unface.stores.lance import LanceStore, Staging

    for name in ("drop_index", "commit", "create_index", "update_field_metadata", "cleanup_old_versions"):
        announce.around(lance.LanceDataset, name)
    announce.around(lance.LanceFragment, "merge_columns")
    announce.around(
        lance.dataset.DatasetOptimizer if hasattr(lance.dataset, "DatasetOptimizer") else _optimizer(), "compact_files"
    )
    announce.around(lance, "dataset", "open")
    announce.around(Staging, "save", "note")
    announce.around(Path, "unlink")
    announce.around(Receipt, "save")
    for name in ("stage", "swap", "erase_arrivals", "purge"):
        if hasattr(LanceStore, name):
            announce.around(LanceStore, name)


def _optimizer() -> Any:
    import importlib

    return importlib.import_module("lance.dataset").DatasetOptimizer
