"""Targets by name: a face system on this machine or another, made from what an operator can write in one line.

module:function                    called as function(person, [picture, …]) -> [score, …], pictures as bytes
command:PROGRAM ARGUMENT {person}  picture on standard input, score on standard output
https://host/score/{person}        POST of the picture, score in the JSON that comes back
encoder:sface                      an encoder of unface: cosine to the enrolled picture
ppfr:dctdp/as-attacked/sface       the same behind a front end of privacy-preserving face recognition
"""

import base64
import binascii
import hashlib
import html
import ipaddress
import json
import math
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable
from urllib.parse import quote, urlsplit

import numpy as np
from numpy.typing import NDArray

from unface.errors import HIDDEN, UnfaceError, reason, redact, without_secrets
from unface.functions import imported_function, registered
from unface.validate.ports import Lost, Picture, Refused, Target

_LARGEST_ANSWER = 1 << 16
_LARGEST_SCORE = 1e12
_BATCH = 64
_LONGEST_QUOTE = 200
_SHORTEST_SECRET = 4


class Quoting:
    """What a target said, fit to be printed and saved: without its secrets, on one line, and not long.

    A service may send a key back as it came, after a word such as Bearer, escaped or in base64. What it says ends up in
    a message, in the ledger, in the result and on its page.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)

    def __call__(self, said: bytes | str, most: int = _LONGEST_QUOTE) -> str:
        """At most so many characters of it; empty if nothing can be printed."""
        text = said.decode(errors="replace") if isinstance(said, bytes) else said
        text = "".join(letter if letter.isprintable() else " " for letter in redact(text, *self._forms))
        words = " ".join(text.split())
        return words if len(words) <= most else words[: most - 1] + HIDDEN


def _forms(secret: str) -> set[str]:
    """A secret, and its last word alone: as they are, escaped for JSON, HTML and URLs, and in base64 both ways."""
    found = set()
    for text in {secret, secret.rsplit(maxsplit=1)[-1] if secret.split() else ""}:
        if len(text) < _SHORTEST_SECRET:
            continue
        content = text.encode(errors="surrogateescape")
        encoded = [base64.b64encode(content).decode(), base64.urlsafe_b64encode(content).decode()]
        found |= {text, json.dumps(text)[1:-1], html.escape(text), quote(content, safe=""), quote(content)}
        found |= {form.rstrip("=") for form in encoded}
        try:
            plain = base64.b64decode(text, validate=True).decode()
        except (binascii.Error, ValueError):
            continue
        found |= {word for word in (plain, plain.rpartition(":")[2]) if len(word) >= _SHORTEST_SECRET}
    return found


@dataclass(frozen=True)
class HttpForm:
    """How a picture is put into a request, and where the score stands in the answer."""

    score_path: str = "score"
    """Keys and positions with dots between: ``data.matches.0.similarity``."""
    body: str = "picture"
    """picture: the bytes alone; form: multipart/form-data; json: an object with the picture in base64."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Of a form or an object, by name; {picture} and {person} are filled in."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """By name: the environment variable that holds the value."""
    timeout: float = 30.0


@dataclass(frozen=True, eq=False)
class OpenedTarget:
    """A target with what results and ledgers say about it."""

    target: Target
    kind: str
    local: bool
    sha256: str
    """Of everything that decides what is asked and how; the values of headers are not in it."""
    encoder: str | None = None
    """Of a built-in target: no judge may be the same."""
    cautions: tuple[str, ...] = ()
    """What a result says of it as warnings."""


@runtime_checkable
class Enrollable(Protocol):
    """A target that people can be enrolled in from here; of any other, its operator enrols them."""

    def enrol(self, people: Mapping[str, Picture]) -> None:
        """One picture for each person."""
        ...


Embed = Callable[[Sequence[Picture]], NDArray[np.float32]]
"""Pictures to (n, d) unit vectors; zeros where there is no face."""


def open_target(
    text: str,
    *,
    decisions_only: bool = False,
    form: HttpForm | None = None,
    embed: Callable[[str], Embed] | None = None,
) -> OpenedTarget:
    """The target that ``text`` names; nothing is asked yet. ``embed`` makes a built-in one from ``text``.

    Other packages register a function of the text after the colon under the entry point ``unface.targets``; its target
    has the attribute ``local = True`` if it runs on this machine.
    """
    form = form or HttpForm()
    asked = {"text": text, "decisions_only": decisions_only, **asdict(form), "timeout": None}
    sha256 = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    scheme, _, rest = text.partition(":")
    others: Target | None = registered("target", scheme, lambda make: make(rest), Target)
    if others is not None:
        # Only the package knows where its target runs; one that does not say so needs --authorised-by.
        return OpenedTarget(others, scheme, bool(getattr(others, "local", False)), sha256)
    if scheme in ("http", "https"):
        from unface.validate.http import HttpTarget

        return OpenedTarget(HttpTarget(text, form, decisions_only=decisions_only), "http", _is_loopback(text), sha256)
    if form != HttpForm(timeout=form.timeout):
        raise UnfaceError(f"{scheme}: --score-path, --body, --field and --header-env are for http; leave them out")
    if scheme == "command":
        program = CommandTarget(rest, decisions_only=decisions_only, timeout=form.timeout)
        return OpenedTarget(program, "command", True, sha256)
    if scheme in ("encoder", "ppfr"):
        if embed is None:
            raise UnfaceError(f"{text}: there are no pictures to encode here")
        built_in = EncoderTarget(text, embed(text), decisions_only=decisions_only)
        return OpenedTarget(built_in, "built-in", True, sha256, rest.rpartition("/")[2])
    if rest.isidentifier() and all(part.isidentifier() for part in scheme.split(".")):
        return OpenedTarget(FunctionTarget(scheme, rest, decisions_only=decisions_only), "function", True, sha256)
    raise UnfaceError(
        f"{without_secrets(text)!r}: not a target; give https://HOST/PATH, command:PROGRAM, module:function, "
        "encoder:NAME or ppfr:SCHEME/VARIANT/NAME"
    )


class FunctionTarget:
    """A function of Python: the quickest way to put any client in front of unface."""

    batch = _BATCH

    def __init__(self, module: str, function: str, *, decisions_only: bool = False) -> None:
        self.name, self.decisions_only = f"{module}:{function}", decisions_only
        self._quoted = Quoting()
        self._function: Callable[[str, list[bytes]], Sequence[float]] = imported_function(self.name)

    def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        """See ``Target``."""
        try:
            answer = list(self._function(person, [picture.content for picture in pictures]))
        except Exception as error:  # whatever somebody's function raises
            raise Refused(f"{self.name} raised {type(error).__name__}: {self._quoted(reason(error))}") from None
        if len(answer) != len(pictures):
            raise Refused(f"{self.name} gave {len(answer)} scores for {len(pictures)} pictures")
        numbers = [number_of(each, self.name, self._quoted, decisions_only=self.decisions_only) for each in answer]
        return np.array(numbers, dtype=np.float64)


class CommandTarget:
    """A program, started for each picture. It is never given to a shell."""

    batch = 1

    def __init__(self, command: str, *, decisions_only: bool = False, timeout: float = 30.0) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UnfaceError(f"command:{command}: cannot be split into words ({reason(error)})") from None
        if not self._words:
            raise UnfaceError("command: names no program; write command:PROGRAM {person}")
        # Arguments may hold a key, so results show the program alone.
        self.name, self.decisions_only = f"command:{self._words[0]}", decisions_only
        self._timeout = timeout
        values = (word.partition("=")[2] if word.startswith("-") else word for word in self._words[1:])
        self._quoted = Quoting(value for value in values if "{person}" not in value and not Path(value).exists())

    def reach(self) -> None:
        """See ``Reachable``."""
        if shutil.which(self._words[0]) is None:
            raise Refused(f"{self.name}: there is no such program")

    def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        """See ``Target``."""
        return np.array([self._one(person, picture) for picture in pictures], dtype=np.float64)

    def _one(self, person: str, picture: Picture) -> float:
        words = [self._words[0], *(word.replace("{person}", person) for word in self._words[1:])]
        try:
            ended = subprocess.run(
                words, input=picture.content, capture_output=True, timeout=self._timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise Lost(f"{self.name} gave no score within {self._timeout:g} s") from None
        except OSError as error:
            raise Refused(f"{self.name}: cannot be started ({reason(error)})") from None
        if ended.returncode:
            said = self._quoted((ended.stderr.strip().splitlines() or [b""])[-1])
            raise Refused(f"{self.name} ended with exit code {ended.returncode}" + (f": {said}" if said else ""))
        text = ended.stdout[:_LARGEST_ANSWER].decode(errors="replace").strip()
        try:
            return float(text)
        except ValueError:
            raise Refused(f"{self.name} printed {self._quoted(text, 40)!r}; expected a number alone") from None


class EncoderTarget:
    """The cosine of a query and the enrolled picture, by an encoder of unface: a face system without a defence."""

    batch = _BATCH

    def __init__(
        self, name: str, embed: Embed, *, decisions_only: bool = False, threshold: float | None = None
    ) -> None:
        self.name, self.decisions_only = name, decisions_only
        if decisions_only and threshold is None:
            raise UnfaceError(f"{self.name}: decides nothing by itself; leave --decisions-only out")
        self._threshold = threshold
        self._embed, self._seen = embed, dict[str, NDArray[np.float32]]()
        self._enrolled: dict[str, NDArray[np.float32]] = {}

    def enrol(self, people: Mapping[str, Picture]) -> None:
        """See ``Enrollable``."""
        vectors = self._vectors(list(people.values()))
        self._enrolled.update(zip(people, vectors, strict=True))

    def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        """See ``Target``."""
        if person not in self._enrolled:
            raise Refused(f"{self.name}: {person!r} is not enrolled")
        scores = (self._vectors(pictures) @ self._enrolled[person]).astype(np.float64)
        return scores if self._threshold is None else (scores >= self._threshold).astype(np.float64)

    def _vectors(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        new = {picture.sha256: picture for picture in pictures if picture.sha256 not in self._seen}
        if new:
            self._seen.update(zip(new, self._embed(list(new.values())), strict=True))
        return np.stack([self._seen[picture.sha256] for picture in pictures])


def number_of(value: object, where: str, quoted: Quoting | None = None, *, decisions_only: bool = False) -> float:
    """A score or a decision as a float. NaN and infinity pass, and end the run as such."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) and not decisions_only:
        raise Refused(f"{where} answered with {json.dumps(value)}, a decision and no score; pass --decisions-only")
    if not isinstance(value, bool | int | float):
        shown = (quoted or Quoting())(json.dumps(value, default=str), 40)
        raise Refused(f"{where} answered with {shown}, which is not a number")
    if _LARGEST_SCORE < abs(value) < math.inf:
        raise Refused(f"{where} answered with a number beyond {_LARGEST_SCORE:g}, which is no score")
    return float(value)


def _is_loopback(url: str) -> bool:
    """Whether an address is this machine by its own words; names are not looked up."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
