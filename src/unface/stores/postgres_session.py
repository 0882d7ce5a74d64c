"""A session with a PostgreSQL server: its failures as one line, and no password in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from unface.data.files import reason
from unface.errors import UnfaceError

if TYPE_CHECKING:
    import psycopg

Session: TypeAlias = "psycopg.Connection[tuple[object, ...]]"

_SETTINGS = {
    # Rows that a policy hides must be an error, never left out.
    "row_security": "off",
    # Hosted servers cut statements off after minutes; a table is rewritten in one.
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    # A server that does not notice its killed client would hold that client's locks to the statement's end.
    "client_connection_check_interval": "1s",
}


def place(uri: str, table: str) -> str:
    """``host/database/table`` for sentences."""
    driver()
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        given = conninfo_to_dict(uri)
    except psycopg.Error:
        # What the driver says of a bad address quotes from it, the password too.
        raise UnfaceError(
            f"{table}: the address of its database cannot be read; write postgresql://user:password@host:port/database"
            "?table=TABLE&column=COLUMN, and behind these only what libpq knows"
        ) from None
    host = str(given.get("host") or os.environ.get("PGHOST") or "localhost")
    database = given.get("dbname") or os.environ.get("PGDATABASE") or given.get("user") or "default database"
    return f"{'localhost' if host.startswith(('/', '@')) else host}/{database}/{table}"


@contextmanager
def session(uri: str, where: str) -> Iterator[Session]:
    """Outside of a transaction until one is asked for."""
    driver()
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        with psycopg.connect(uri, autocommit=True, client_encoding="utf8", application_name="unface") as opened:
            # Older servers do not know all of them.
            opened.execute(
                "SELECT set_config(name, value, false)"
                " FROM pg_settings JOIN unnest(%s::text[], %s::text[]) wanted(name, value) USING (name)",
                (list(_SETTINGS), list(_SETTINGS.values())),
            )
            yield opened
    except psycopg.Error as error:
        # The rest of what it says is the statement, which is ours and not the user's.
        said = error.diag.message_primary or reason(error)
        for secret in (conninfo_to_dict(uri).get("password"), os.environ.get("PGPASSWORD")):
            said = said.replace(str(secret), "…") if secret else said
        raise UnfaceError(f"{where}: PostgreSQL says: {said}") from None


def number(opened: Session, query: str) -> int:
    """The one that a query counts."""
    (found,) = opened.execute(query).fetchone() or (0,)
    return int(str(found))


def literal(opened: Session, text: str) -> str:
    """A text as SQL writes it, for statements that take no parameters."""
    (quoted,) = opened.execute("SELECT quote_literal(%s)", (text,)).fetchone() or ("",)
    return str(quoted)


def driver() -> None:
    """Refuse, in our words, where psycopg is not installed."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise UnfaceError("PostgreSQL needs psycopg, which is not installed: pip install 'unface[stores]'") from None
