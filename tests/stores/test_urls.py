"""If these fail, a URL opens another collection than the one it names, or a mistake in it goes unnoticed."""

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pytest

from tests.refusals.table import refused
from unface import UnfaceError
from unface.stores import open_store


def test_a_relative_an_absolute_and_a_quoted_path_name_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("the faces.npy", np.ones((3, 4), np.float32))
    for url in ("npy:the%20faces.npy", f"npy:{tmp_path}/the faces.npy", f"npy://{tmp_path}/the%20faces.npy"):
        assert open_store(url).inspect().rows == 3


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:pri@vate@localhost:1/db?table=faces",
        "postgresql://me:pri#vate@localhost:1/db?table=faces",
        "postgresql://me:pri/vate@localhost:1/db?table=faces",
        "postgresql://me:12/vate@localhost:1/db?table=faces",
        "postgresql://me:pri?vate@localhost:1/db?table=faces",
        "postgresql://me:12?vate@localhost:1/db?table=faces",
        "postgresql://me:pri[vate@localhost:1/db?table=faces",
        "postgresql://localhost:private/db?table=faces",
        "postgresql://one:1,two:private/db?table=faces",
        "postgresql://localhost:1/db?table=faces&pri@vate=1",
        "postgresql://localhost:1/db?table=faces&password=private&pasword=private",
        "qdrant+https://me:pri@vate@localhost:1?collection=faces",
        "qdrant+https://me:12?vate@localhost:1&collection=faces",
        "qdrant+https://localhost:1?collection=faces&vate@localhost=1",
        "qdrant+https://localhost:private?collection=faces",
    ],
)
def test_no_part_of_a_password_is_printed_however_it_is_written(url: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(UnfaceError) as raised:
        open_store(url)
    assert not {part for part in ("pri", "vate") if part in str(raised.value)}


def test_several_hosts_and_addresses_of_version_6_are_no_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str, str]] = []
    monkeypatch.setattr("unface.stores.postgres.PostgresStore", lambda *given, reject_raw: seen.append(given))
    for hosts in ("one:5432,two:5433", "[::1]:5432", "me:pass%40word@one,two"):
        open_store(f"postgresql://{hosts}/db?table=faces")
    assert len(seen) == 3


def test_lossy_codes_are_allowed_only_where_there_are_any() -> None:
    with refused("store", "--lossy-ok"):
        open_store("npy:faces.npy", lossy_ok=True)


def test_the_driver_gets_its_own_options_as_libpq_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str, str]] = []
    monkeypatch.setattr("unface.stores.postgres.PostgresStore", lambda *given, reject_raw: seen.append(given))
    open_store("postgresql://me@host/db?table=media.faces&column=v&sslmode=require&options=-c%20lock_timeout%3D10s")
    assert seen == [("postgresql://me@host/db?sslmode=require&options=-c%20lock_timeout%3D10s", "media.faces", "v")]


def test_a_host_that_is_not_named_stays_unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str, str]] = []
    monkeypatch.setattr("unface.stores.postgres.PostgresStore", lambda *given, reject_raw: seen.append(given))
    open_store("postgresql:///db?host=/run/postgresql&table=faces")
    open_store("postgresql:///db?table=faces")
    assert [uri for uri, *_ in seen] == ["postgresql:///db?host=%2Frun%2Fpostgresql", "postgresql:///db"]


def test_another_package_brings_a_store_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = EntryPoint("milvus", "tests.stores.test_urls:opened", "unface.stores")

    def registered(*, group: str, name: str) -> EntryPoints:
        return EntryPoints([own]).select(group=group, name=name)

    monkeypatch.setattr("unface.functions.entry_points", registered)
    found: object = open_store("milvus://host/faces")
    assert found == "opened milvus://host/faces"
    with refused("store", "--lossy-ok"):
        open_store("milvus://host/faces", lossy_ok=True)


def opened(url: str) -> str:
    return f"opened {url}"
