"""A PostgreSQL database of nothing but faces, and the store on it."""

from collections.abc import Iterator

import pytest

from tests.stores.postgres_server import Database, emptied
from unface.stores.postgres import PostgresStore


@pytest.fixture
def database() -> Iterator[Database]:
    with emptied() as made:
        yield made


@pytest.fixture
def store(database: Database) -> PostgresStore:
    return PostgresStore(database.uri, "faces", "seen")
