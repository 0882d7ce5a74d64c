"""The one exception a user is meant to see: a single line that says what, where, and what to do."""

import os
import unicodedata
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


def printable(text: str, most: int = 2_000) -> str:
    """Text that may hold names from anywhere, safe for a terminal: no control characters, no endless lines.

    Control characters (other than line ends), marks that turn the direction of writing and halves of letters are shown
    by their codes. A long text loses its middle: it begins with what it is about and ends with what to do.
    """
    if len(text) > most:
        end = most // 4
        text = f"{text[: most - end]} […] {text[-end:]}"
    return "".join(letter if _is_safe(letter) else ascii(letter)[1:-1] for letter in text)


def _is_safe(letter: str) -> bool:
    return letter.isprintable() or letter == "\n" or unicodedata.category(letter) == "Zs"
