"""The one exception a user is meant to see: a single line that says what, where, and what to do."""

import os
from pathlib import Path


class UnfaceError(Exception):
    """Bad input or failed work; the command line prints it alone and exits 1."""


def reason(error: Exception) -> str:
    """The message of a library or the operating system, cleaned for use inside one line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    words = " ".join(text.split())[:160]
    return "".join(letter if letter.isprintable() else "?" for letter in words) or type(error).__name__


def short_name(path: Path) -> str:
    """The file name alone (paths reveal too much), on one line whatever it contains."""
    name = path.name or os.fspath(path)
    return name if name.isprintable() else ascii(name)
