"""The one exception a user is meant to see: a single line that says what, where, and what to do.

And the one place that takes passwords out of what is printed or saved.
"""

import inspect
import os
import re
import unicodedata
from pathlib import Path
from typing import Any

HIDDEN = "…"
_LONGEST_REASON = 160
UNESCAPED = (
    "the address holds a character that must be escaped (%40 for @, %3A for :, %2F for /, %3F for ?, %23 for #),"
    " or its port is no number"
)
_USER_INFO = re.compile(r"(?<=://)[^\s/'\"]*@")
_ADDRESS = re.compile(
    r"(?:(?P<scheme>[a-zA-Z][\w+.-]*)://)?(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<rest>.*)", re.DOTALL
)
_HOST = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>.*))?", re.DOTALL)


REFUSED = {
    "unface.attribute": "attribution",
    "unface.auditing": "audit",
    "unface.cli": "settings",
    "unface.data": "vectors",
    "unface.data.files": "file",
    "unface.data.images": "pictures",
    "unface.data.parquet": "file",
    "unface.data.read_images": "pictures",
    "unface.data.split": "split",
    "unface.encode": "encoder",
    "unface.erase": "eraser",
    "unface.erase.exported": "projection",
    "unface.erase.file": "projection",
    "unface.erase.projection": "projection",
    "unface.erase.torch_module": "projection",
    "unface.faces": "faces",
    "unface.functions": "name",
    "unface.gate": "policy",
    "unface.invert": "inversion",
    "unface.judge": "judge",
    "unface.memory": "memory",
    "unface.metrics": "scores",
    "unface.models": "weights",
    "unface.moments": "vectors",
    "unface.output": "output",
    "unface.pairs": "pairs",
    "unface.prior": "prior",
    "unface.probe": "probe",
    "unface.protect": "protection",
    "unface.release": "release",
    "unface.result": "result",
    "unface.scale": "apply",
    "unface.stores": "store",
    "unface.swap": "swap",
    "unface.synth": "synthesis",
    "unface.utility": "task",
    "unface.validate": "validation",
    "unface.verification": "vectors",
}
"""What a module refuses, by its name or the beginning of it (the longest counts): the ``code`` of its errors."""
OUTSIDE = "plug-in"
"""The code of an error that a module outside unface raised."""
# A colon can stand inside a sentence ("two embedding spaces never mix: …"): what is before it has a verb then.
_VERBS = frozenset(("cannot", "give", "has", "needs", "never", "score", "share", "wants"))


class UnfaceError(Exception):
    """Bad input or failed work; the command line prints it alone and exits 1.

    A message reads "WHERE: WHAT; FIX" and is for people. For programs there is ``code``, which stays when a message is
    reworded. No message holds the user name and password of a URL, whoever wrote it.
    """

    code = ""
    """What was refused, in one word such as "vectors" or "policy"; a kind of error with a class has its own."""

    def __init__(self, *given: object) -> None:
        super().__init__(*(without_user_info(each) if isinstance(each, str) else each for each in given))
        self.code = type(self).code or _code_of(_raising_module())

    @property
    def where(self) -> str | None:
        """The file, option or field that the message names before its first colon, if it names one."""
        place, colon, _ = str(self).partition(": ")
        names_it = colon and "; " not in place and _VERBS.isdisjoint(place.split())
        return place if names_it else None

    @property
    def fix(self) -> str | None:
        """What to do about it, if the message says so: what follows its last semicolon."""
        _, semicolon, advice = str(self).rpartition("; ")
        return advice if semicolon else None

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, also in another process, is not made anew: it would take its code from where it is unpickled."""
        return _copied, (type(self), self.args), self.__dict__


def _copied(kind: type[UnfaceError], given: tuple[object, ...]) -> UnfaceError:
    """An error with these arguments whose other attributes are still to be set."""
    return kind.__new__(kind, *given)


def _raising_module() -> str:
    """The name of the module that makes the error which is being made."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals.get("__name__"))


def _code_of(module: str) -> str:
    """What a module refuses; see ``REFUSED``."""
    while module:
        if module in REFUSED:
            return REFUSED[module]
        module = module.rpartition(".")[0]
    return OUTSIDE


class MissingColumn(UnfaceError):
    """A column or array that was asked for is not there; ``column`` is its name."""

    code = "missing-column"

    def __init__(self, text: str, column: str) -> None:
        super().__init__(text)
        self.column = column


def without_user_info(text: str) -> str:
    """A text in which every ``scheme://user:password@host`` is ``scheme://…@host``."""
    return _USER_INFO.sub(f"{HIDDEN}@", text)


def without_secrets(address: str) -> str:
    """Scheme, host, port and path of an address: anything else in it may be a password or a key.

    Passwords are often not escaped. A port that is no number begins a password with "/", "?" or "#" in it, if an "@"
    follows: then the host comes after the last "@". Otherwise it is the password itself.
    """
    parts = _split(address)
    host = _host(parts["authority"])
    if not _is_port(host["port"]) and "@" in parts["path"] + parts["rest"]:
        parts = _split((parts["path"] + parts["rest"]).rpartition("@")[2]) | {"scheme": parts["scheme"]}
        host = _host(parts["authority"])
    port = "" if host["port"] is None else f":{host['port'] if _is_port(host['port']) else HIDDEN}"
    return f"{parts['scheme']}://".removeprefix("://") + f"{host['host']}{port}{parts['path']}"


def is_unescaped(address: str) -> bool:
    """Whether a user name or password in it holds a character that must be escaped, so that readers disagree on it."""
    parts = _split(address)
    hosts = parts["authority"].rpartition("@")[2].split(",")
    return (
        parts["authority"].count("@") > 1
        or "@" in parts["path"]
        or not all(_is_port(_host(host)["port"]) for host in hosts)
    )


def redact(text: str, *secrets: str | None) -> str:
    """A text of a library or a server without these secrets in it."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return without_user_info(text)


def secrets_of(address: str) -> list[str]:
    """What ``without_secrets`` leaves out, in the pieces in which a library may quote it."""
    parts = _split(address)
    query, _, fragment = parts["rest"].removeprefix("?").partition("#")
    words = [*parts["authority"].rpartition("@")[0].split(":"), fragment]
    words += [pair.partition("=")[2] for pair in query.split("&")]
    port = _host(parts["authority"])["port"]
    if not _is_port(port):
        words += [str(port), *(parts["path"] + parts["rest"]).rpartition("@")[0].split("/")]
    return list(filter(None, words))


def _split(address: str) -> dict[str, str]:
    matched = _ADDRESS.fullmatch(address)
    assert matched is not None
    return {name: value or "" for name, value in matched.groupdict().items()}


def _host(authority: str) -> dict[str, str | None]:
    matched = _HOST.fullmatch(authority.rpartition("@")[2])
    return {"host": authority.rpartition("@")[2], "port": None} if matched is None else matched.groupdict()


def _is_port(text: str | None) -> bool:
    return not text or (text.isascii() and text.isdigit() and int(text[:9]) < 1 << 16)


def reason(error: Exception) -> str:
    """The message of a library or the operating system, cleaned for use inside one line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    words = " ".join(text.split())
    if len(words) > _LONGEST_REASON:
        words = (words[:_LONGEST_REASON].rpartition(" ")[0] or words[:_LONGEST_REASON]) + " …"
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
