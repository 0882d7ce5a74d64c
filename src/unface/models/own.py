"""Adding one's own file: for a model that has a card, or for a new one whose card is made here."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from unface.errors import UnfaceError
from unface.models.card import Alignment, Card, Channels, Family, Input, Licence, Part, Resize, Triple
from unface.models.inspect_file import graph_of, kind_of
from unface.models.resolve import require_accepted
from unface.models.shelf import CARD_FILE, card_json, shipped
from unface.models.store import Mismatch, blocks_of, place, sha256_of, staging

_NOTHING_BUT_WEIGHTS = ("safetensors", "state dict")
_GRAPHS = ("onnx", "torchscript")


@dataclass(frozen=True)
class Description:
    """What a file cannot say of itself. ``architecture`` and ``dim`` are for weights that come without a graph."""

    size: int | None = None
    mean: Triple | None = None
    std: Triple | None = None
    alignment: Alignment = "none"
    channels: Channels = "RGB"
    resize: Resize = "crop"
    family: Family = "general"
    licence: str = "not stated"
    architecture: str | None = None
    dim: int | None = None


def add_model(path: Path, name: str, description: Description, *, accept_licence: bool = False) -> Card:
    """Copy a file into the cache under ``name``, verified, and give back its card."""
    known = next((one for one in shipped() if one.name == name), None)
    if known is not None:
        require_accepted(known, accept_licence)
        _require_fitting(path, known)
        _copy(path, known)
        return known
    made = _described(path, name, description)
    _copy(path, made, card_json(made))
    return made


def _described(path: Path, name: str, said: Description) -> Card:
    kind = kind_of(path)
    if kind in _NOTHING_BUT_WEIGHTS:
        if said.architecture is None or said.dim is None or said.size is None:
            raise UnfaceError(f"{path.name}: holds weights without a graph; say --architecture, --dim and --size")
        architecture, dim = said.architecture, said.dim
        given = Input(said.size, "NCHW", said.channels, "float32", *_scale(path, said), said.alignment, said.resize)
    else:
        graph = graph_of(path, kind, said.size)
        architecture, dim = kind, graph.dim
        scale = _scale(path, said) if graph.dtype == "float32" else ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
        given = Input(graph.size, graph.layout, said.channels, graph.dtype, *scale, said.alignment, said.resize)
    cautions = ["a program as well as weights: it runs when it encodes"] if kind == "torchscript" else []
    try:
        return Card(
            name=name,
            task="encoder",
            architecture=architecture,
            family=said.family,
            input=given,
            output=None,
            pool="none",
            dim=dim,
            licence=Licence(said.licence, research_only=False),
            paper="",
            cautions=("added by hand", *cautions),
            sources=(),
            file=path.name,
            bytes=path.stat().st_size,
            sha256=sha256_of(path),
        )
    except ValueError as error:
        raise UnfaceError(f"{path.name}: {error}") from None


def _scale(path: Path, said: Description) -> tuple[Triple, Triple]:
    if said.mean is None or said.std is None:
        raise UnfaceError(f"{path.name}: takes numbers, so say --mean and --std of pixels from 0 to 255")
    if max(said.std) < 1:
        suggested = ",".join(f"{255 * value:g}" for value in said.std)
        raise UnfaceError(f"{path.name}: --std is for pixels from 0 to 255; yours times 255 is {suggested}")
    if min(said.std) <= 0:
        raise UnfaceError(f"{path.name}: --std has {min(said.std):g}; expected numbers above 0")
    return said.mean, said.std


def _require_fitting(path: Path, known: Card) -> None:
    """A pinned file is known by its hash; any other must be safe to load and give the right vectors."""
    if known.sha256:
        return
    kind = kind_of(path)
    if kind in _NOTHING_BUT_WEIGHTS and known.architecture not in _GRAPHS:
        return
    if kind != known.architecture:
        raise UnfaceError(f"{path.name}: is {kind}, {known.name} is {known.architecture}")
    graph = graph_of(path, kind, known.input.size)
    if (graph.dim, graph.layout, graph.dtype) != (known.dim, known.input.layout, known.input.dtype):
        found = f"{graph.dim} dimensions from {graph.layout} {graph.dtype}"
        expected = f"{known.dim} from {known.input.layout} {known.input.dtype}"
        raise UnfaceError(f"{path.name}: gives {found}, {known.name} {expected}")


def _copy(path: Path, card: Card, own_card: bytes | None = None) -> None:
    try:
        with staging() as aside:
            for part in card.parts:
                source = path if part.file == card.file else path.with_name(part.file)
                aside.write(part, blocks_of(source))
            if own_card is not None:
                aside.write(_card_part(own_card), [own_card])
            aside.publish(place(card).parent)
    except Mismatch as wrong:
        raise UnfaceError(f"{path.name}: not {card.name}, {wrong}; nothing was kept") from None
    except FileNotFoundError as missing:
        raise UnfaceError(f"{Path(missing.filename).name}: no such file; {card.name} needs it") from None


def _card_part(content: bytes) -> Part:
    return Part(CARD_FILE, len(content), sha256(content).hexdigest())
