"""Stores by URL: which collection, in which of the stores we know or that other packages register.

faiss:faces.faiss                                a FAISS index file
npy:faces.npy                                    a numpy array on disk
lancedb:data/lance?table=faces&column=vector     a LanceDB table
qdrant:data/qdrant?collection=faces              the local mode of Qdrant's client
qdrant+https://host:6333?collection=faces        a Qdrant server, key in QDRANT_API_KEY
postgresql://user@host/db?table=faces&column=embedding
"""

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from unface.errors import UnfaceError
from unface.stores.ports import Store


def open_store(url: str, *, lossy_ok: bool = False) -> Store:
    """The store that a URL names; nothing is looked at before ``inspect``."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise UnfaceError("--store: not a URL, as its [ has no ]; write %5B for one in a name") from None
    scheme = parts.scheme.lower()
    if parts.fragment:
        raise UnfaceError(f"{scheme}: what follows a # would be left out; write %23 for one in a name")
    asked = Asked(scheme, _given(scheme, parts.query))
    path = unquote(parts.netloc + parts.path)
    if lossy_ok and scheme != "faiss":
        raise UnfaceError("--lossy-ok: only FAISS indexes hold lossy codes; leave it out")
    for registered in entry_points(group="unface.stores", name=scheme):
        made: Store = registered.load()(url)
        return made
    match scheme:
        case "faiss":
            from unface.stores.faiss_index import FaissStore

            return asked.whole(lambda: FaissStore(Path(asked.path(path)), lossy_ok=lossy_ok))
        case "npy":
            from unface.stores.npy import NpyStore

            return asked.whole(lambda: NpyStore(Path(asked.path(path))))
        case "lancedb":
            from unface.stores.lance import LanceStore

            table, column, key = asked.must("table"), asked.may("column", "vector"), asked.may("id")
            return asked.whole(lambda: LanceStore(asked.path(path), table, column or "vector", key))
        case "qdrant" | "qdrant+http" | "qdrant+https":
            from unface.stores.qdrant import QdrantStore

            collection, vector = asked.must("collection"), asked.may("vector", "")
            server = urlunsplit((scheme.partition("+")[2], parts.netloc, parts.path, "", ""))
            place = asked.path(path) if scheme == "qdrant" else server
            return asked.whole(lambda: QdrantStore(place, collection, vector or ""))
        case "postgresql" | "postgres":
            from unface.stores.postgres import PostgresStore

            table, column = asked.must("table"), asked.may("column", "embedding")
            # What is left over, such as sslmode, is the driver's.
            # Put together by hand: urlunsplit leaves out the slashes before a host that is not named.
            uri = f"{scheme}://{parts.netloc}{parts.path}?{urlencode(asked.left, quote_via=quote)}".rstrip("?")
            return PostgresStore(uri, table, column or "embedding")
    raise UnfaceError(
        f"{scheme or 'no scheme'}: not a store; give faiss:, npy:, lancedb:, qdrant:, qdrant+https:// or postgresql://"
    )


def _given(scheme: str, query: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    given = dict(pairs)
    if len(given) != len(pairs):
        twice = next(name for name in given if [one for one, _ in pairs].count(name) > 1)
        raise UnfaceError(f"{scheme}: the URL says {twice} more than once; leave all but one out")
    return given


class Asked:
    """What a URL asks for behind its question mark; what nobody takes is a mistake."""

    def __init__(self, scheme: str, given: dict[str, str]) -> None:
        self._scheme, self.left = scheme, given

    def must(self, name: str) -> str:
        if not self.left.get(name):
            raise UnfaceError(f"{self._scheme}: the URL does not say which {name}; add ?{name}=NAME")
        return self.left.pop(name)

    def may(self, name: str, default: str | None = None) -> str | None:
        return self.left.pop(name, default)

    def path(self, path: str) -> str:
        if not path:
            raise UnfaceError(f"{self._scheme}: the URL has no path; write {self._scheme}:PATH")
        return path

    def whole(self, make: Callable[[], Store]) -> Store:
        if self.left:
            raise UnfaceError(f"{self._scheme}: does not know {', '.join(sorted(self.left))}; leave it out of the URL")
        return make()
