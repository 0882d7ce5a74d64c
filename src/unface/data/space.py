"""Which space vectors live in: numbers from two encoders look alike and must never be compared."""

import json
from dataclasses import asdict, dataclass

from unface.errors import UnfaceError

METADATA_KEY = b"unface.space"


@dataclass(frozen=True)
class Space:
    """An encoder's output space; ``None`` where nobody said, and ``normalised`` False unless somebody did."""

    encoder: str | None
    weights_sha256: str | None
    dim: int
    normalised: bool

    def __str__(self) -> str:
        encoder = "unknown encoder" if self.encoder is None else repr(self.encoder)
        weights = "" if self.weights_sha256 is None else f" (weights {self.weights_sha256[:12]!r})"
        return f"{encoder}{weights}, {self.dim} dimensions, {'' if self.normalised else 'not '}normalised"

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def require_same_space(a: Space, b: Space) -> None:
    """Refuse to go on with two spaces; the sentence names both."""
    if a != b:
        raise UnfaceError(f"two embedding spaces never mix: {a}; and {b}")


def space_from_json(text: bytes, source: str) -> Space:
    """The ``unface.space`` metadata of a file, refused unless every field is there with its type."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise UnfaceError(f"{source}: metadata unface.space is not JSON; write the file again") from None
    if not isinstance(fields, dict):
        raise UnfaceError(f"{source}: metadata unface.space is not a JSON object; write the file again")
    for name, expected in _EXPECTED.items():
        if name not in fields:
            raise UnfaceError(f"{source}: metadata unface.space lacks {name!r}; write the file again")
        # bool is an int to isinstance, and `"dim": true` is not a dimension.
        if type(fields[name]) not in expected:
            found = json.dumps(fields[name])[:40]
            raise UnfaceError(f"{source}: metadata unface.space has {name} = {found}; write the file again")
    return Space(fields["encoder"], fields["weights_sha256"], fields["dim"], fields["normalised"])


_EXPECTED: dict[str, tuple[type, ...]] = {
    "encoder": (str, type(None)),
    "weights_sha256": (str, type(None)),
    "dim": (int,),
    "normalised": (bool,),
}
