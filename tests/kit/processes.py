"""Processes that are forked from one that has imported what their functions import, for tests that kill them.

There is one such process for all tests of a worker, and it imports once, when it is first needed: what is preloaded is
therefore listed here and nowhere else. A module that is missing costs every fork its imports, two seconds and more.
It computes nothing and has no thread but that of Arrow's allocator, which is why
lancedb is not among them: it starts one.
"""

import multiprocessing

_PRELOADED = [
    "tests.stores.killed",
    "tests.faults.test_store_crashes_lance",
    "tests.faults.test_store_crashes_postgres",
    *(f"tests.fire.{name}" for name in ("held_run", "pairs", "kills", "lance_steps", "postgres")),
    "unface.cli.app",
    "unface.auditing.fit",
    "unface.scale.sanitise",
    *(f"unface.stores.{name}" for name in ("npy", "lance", "qdrant", "postgres", "faiss_index", "faiss_trial")),
    *("psycopg", "lance", "qdrant_client", "faiss"),
]

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(_PRELOADED)


def preload(*modules: str) -> None:
    """Further modules, before the first process is started."""
    PROCESSES.set_forkserver_preload([*_PRELOADED, *modules])
