"""Stores by URL: which collection, in which of the stores we know or that other packages register.

faiss:faces.faiss?identities=people.csv          a FAISS index file; identities are read by audit and fit alone
npy:faces.npy?identities=people.csv              a numpy array on disk
lancedb:data/lance?table=faces&column=vector     a LanceDB table
qdrant:data/qdrant?collection=faces              the local mode of Qdrant's client
qdrant+https://host:6333?collection=faces        a Qdrant server, key in QDRANT_API_KEY
postgresql://user@host/db?table=faces&column=embedding    password in PGPASSWORD or a service file
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from unface.data.collection import Collection
from unface.data.embeddings import Columns
from unface.errors import HIDDEN, UNESCAPED, UnfaceError, is_unescaped, without_secrets
from unface.functions import registered
from unface.stores.ports import Readable, Store

_SERVERS = ("postgresql", "postgres", "qdrant+http", "qdrant+https")


def open_store(url: str, *, lossy_ok: bool = False) -> Store:
    """The store that a URL names; nothing is read before ``inspect``."""
    scheme = url.partition("://")[0].lower()
    if scheme in _SERVERS and is_unescaped(url):
        variable = "QDRANT_API_KEY" if scheme.startswith("qdrant") else "PGPASSWORD or PGSERVICE"
        raise UnfaceError(f"{scheme}: {UNESCAPED}; better leave the password out and set {variable}")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise UnfaceError("--store: not a URL, a [ has no matching ]; write %5B for a [ in a name") from None
    scheme = parts.scheme.lower()
    if parts.fragment:
        raise UnfaceError(f"{scheme}: everything after # would be ignored; write %23 for a # in a name")
    options = _Options(scheme, parts.query)
    path = unquote(parts.netloc + parts.path)
    if lossy_ok and scheme != "faiss":
        raise UnfaceError("--lossy-ok: only FAISS indexes hold lossy codes; leave it out")
    others: Store | None = registered("store", scheme, lambda make: make(url))
    if others is not None:
        return others
    match scheme:
        case "faiss":
            from unface.stores.faiss_index import FaissStore

            people = options.take("identities")
            options.require_all_used()
            return FaissStore(Path(_required_path(scheme, path)), lossy_ok=lossy_ok, identities=people)
        case "npy":
            from unface.stores.npy import NpyStore

            people = options.take("identities")
            options.require_all_used()
            return NpyStore(Path(_required_path(scheme, path)), identities=people)
        case "lancedb":
            from unface.stores.lance import LanceStore

            table, column, key = options.require("table"), options.take("column"), options.take("id")
            options.require_all_used()
            return LanceStore(_required_path(scheme, path), table, column or "vector", key)
        case "qdrant" | "qdrant+http" | "qdrant+https":
            from unface.stores.qdrant import QdrantStore

            collection, vector = options.require("collection"), options.take("vector")
            options.require_all_used()
            server = urlunsplit((scheme.partition("+")[2], parts.netloc, parts.path, "", ""))
            place = _required_path(scheme, path) if scheme == "qdrant" else server
            return QdrantStore(place, collection, vector or "")
        case "postgresql" | "postgres":
            from unface.stores.postgres import PostgresStore

            table, column, reject = options.require("table"), options.take("column"), options.take("reject_raw")
            if reject not in (None, "yes", "no"):
                raise UnfaceError("postgresql: reject_raw is yes or no; correct the URL")
            # All other options, such as sslmode, are for the driver.
            # Not urlunsplit, which drops the slashes before an empty host.
            uri = f"{scheme}://{parts.netloc}{parts.path}?{urlencode(options.unused, quote_via=quote)}".rstrip("?")
            return PostgresStore(uri, table, column or "embedding", reject_raw=reject == "yes")
    known = "faiss:, npy:, lancedb:, qdrant:, qdrant+https:// or postgresql://"
    if not scheme:
        raise UnfaceError(f"{without_secrets(url)}: does not say which store; write {known} before it")
    raise UnfaceError(f"{scheme}: not a store; give {known}")


@contextmanager
def open_collection(url: str, columns: Columns) -> Iterator[Collection]:
    """The rows of a store, to be read by an audit or a fit."""
    if columns.vector != Columns.vector:
        raise UnfaceError("--vector-column: the URL of a store says which vectors (column=, vector=); leave it out")
    store = open_store(url)
    if not isinstance(store, Readable):
        raise UnfaceError(f"{shown_url(url)}: this kind of store can be sanitised, but not read; export it to Parquet")
    with store.reading(columns) as collection:
        yield replace(collection, name=shown_url(url))


def shown_url(url: str) -> str:
    """A store's URL as results and messages quote it: no user, no password, no path of this machine."""
    parts = urlsplit(url)
    scheme, options = parts.scheme.lower(), dict(parse_qsl(parts.query))
    names = ("table", "collection", "column", "vector", "id")
    kept: dict[str, str] = {name: value for name, value in options.items() if name in names}
    if "identities" in options:
        kept["identities"] = Path(options["identities"]).name
    if scheme in _SERVERS:
        place = without_secrets(f"{scheme}://{parts.netloc}{parts.path}")
    else:
        place = f"{scheme}:{Path(unquote(parts.netloc + parts.path)).name}"
    return f"{place}?{urlencode(kept, quote_via=quote)}".rstrip("?")


class _Options:
    """The query of a URL; an option that no store takes is a mistake."""

    def __init__(self, scheme: str, query: str) -> None:
        pairs = parse_qsl(query, keep_blank_values=True)
        self._scheme, self.unused = scheme, dict(pairs)
        if len(self.unused) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise UnfaceError(f"{scheme}: the URL gives {_option(twice)} more than once; give it once")

    def require(self, name: str) -> str:
        if not self.unused.get(name):
            raise UnfaceError(f"{self._scheme}: the URL does not say which {name}; add ?{name}=NAME")
        return self.unused.pop(name)

    def take(self, name: str) -> str | None:
        return self.unused.pop(name, None)

    def require_all_used(self) -> None:
        if self.unused:
            unknown = ", ".join(sorted({_option(name) for name in self.unused}))
            raise UnfaceError(f"{self._scheme}: unknown option {unknown}; remove it from the URL")


def _option(name: str) -> str:
    """For messages: what is no name at all may be the rest of a password with a "?" in it."""
    return name if name.replace("-", "_").isidentifier() else HIDDEN


def _required_path(scheme: str, path: str) -> str:
    if not path:
        raise UnfaceError(f"{scheme}: the URL has no path; write {scheme}:PATH")
    return path
