"""The cards there are, and a user's own file of weights: for a model that has a card, or for a new one.

Only safetensors, ONNX graphs and plain tensors are loaded; TorchScript and pickles that run code are refused unread.
"""

import tomllib
import zipfile
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open

from unface.errors import UnfaceError, reason
from unface.models.card import (
    Alignment,
    Card,
    Channels,
    Family,
    Input,
    Layout,
    Licence,
    Local,
    Part,
    Pixels,
    Resize,
    Triple,
)
from unface.models.resolve import require_accepted
from unface.models.store import Mismatch, blocks_of, models_folder, place, sha256_of, staging

Kind = Literal["onnx", "safetensors", "state dict"]
_NOTHING_BUT_WEIGHTS = ("safetensors", "state dict")


@dataclass(frozen=True)
class Description:
    """What a file does not say itself; what is left out is none, RGB, crop, general and "not stated".

    ``architecture`` and ``dim`` are for weights that come without a graph.
    """

    size: int | None = None
    mean: Triple | None = None
    std: Triple | None = None
    alignment: Alignment | None = None
    channels: Channels | None = None
    resize: Resize | None = None
    family: Family | None = None
    licence: str | None = None
    architecture: str | None = None
    dim: int | None = None

    def refuse(self, *names: str, why: str) -> None:
        """An option that would have no effect is refused."""
        given = [f"--{name}" for name in names if getattr(self, name) is not None]
        if given:
            raise UnfaceError(f"{why}; leave out {', '.join(given)}")


def add_model(path: Path, name: str, description: Description, *, accept_licence: bool = False) -> Card:
    """Copy a file into the cache under ``name``, verified, and return its card."""
    known = next((one for one in shipped() if one.name == name), None)
    if known is not None:
        everything = [field.name for field in fields(description)]
        description.refuse(*everything, why=f"{name}: has a card that describes it")
        require_accepted(known, accept_licence)
        _require_fitting(path, known)
        _copy(path, known)
        return known
    made = _described(path, name, description)
    _copy(path, made, card_json(made))
    return made


def _described(path: Path, name: str, description: Description) -> Card:
    kind = _kind_of(path)
    channels, alignment, resize = (
        description.channels or "RGB",
        description.alignment or "none",
        description.resize or "crop",
    )
    if kind in _NOTHING_BUT_WEIGHTS:
        if description.architecture is None or description.dim is None or description.size is None:
            raise UnfaceError(f"{path.name}: holds weights without a graph; give --architecture, --dim and --size")
        architecture, dim = description.architecture, description.dim
        pixels = Input(description.size, "NCHW", channels, "float32", *_scale(path, description), alignment, resize)
    else:
        description.refuse("architecture", "dim", why=f"{path.name}: its graph says that itself")
        graph = _run_onnx(path, description.size)
        architecture, dim = kind, graph.dim
        if graph.dtype == "float32":
            scale = _scale(path, description)
        else:
            description.refuse("mean", "std", why=f"{path.name}: takes bytes, which are not scaled")
            scale = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
        pixels = Input(graph.size, graph.layout, channels, graph.dtype, *scale, alignment, resize)
    try:
        return Card(
            name=name,
            task="encoder",
            architecture=architecture,
            family=description.family or "general",
            input=pixels,
            output=None,
            pool="none",
            dim=dim,
            licence=Licence(description.licence or "not stated", research_only=False),
            paper="",
            cautions=("added by hand",),
            sources=(),
            file=path.name,
            bytes=path.stat().st_size,
            sha256=sha256_of(path),
        )
    except ValueError as error:
        raise UnfaceError(f"{path.name}: {error}") from None


def _scale(path: Path, description: Description) -> tuple[Triple, Triple]:
    if description.mean is None or description.std is None:
        raise UnfaceError(f"{path.name}: takes numbers, so give --mean and --std of pixels from 0 to 255")
    if max(description.std) < 1:
        suggested = ",".join(f"{255 * value:g}" for value in description.std)
        raise UnfaceError(f"{path.name}: --std is for pixels from 0 to 255; yours times 255 is {suggested}")
    if min(description.std) <= 0:
        raise UnfaceError(f"{path.name}: --std has {min(description.std):g}; expected numbers above 0")
    return description.mean, description.std


def _require_fitting(path: Path, known: Card) -> None:
    """A pinned file is known by its hash; any other must be safe to load and give the right vectors."""
    if known.sha256:
        return
    kind = _kind_of(path)
    if kind in _NOTHING_BUT_WEIGHTS and known.architecture != "onnx":
        return
    if kind != known.architecture:
        raise UnfaceError(f"{path.name}: is {kind}, {known.name} is {known.architecture}")
    graph = _run_onnx(path, known.input.size)
    if (graph.dim, graph.layout, graph.dtype) != (known.dim, known.input.layout, known.input.dtype):
        actual = f"{graph.dim} dimensions from {graph.layout} {graph.dtype}"
        expected = f"{known.dim} from {known.input.layout} {known.input.dtype}"
        raise UnfaceError(f"{path.name}: gives {actual}, {known.name} {expected}")


def _copy(path: Path, card: Card, own_card: bytes | None = None) -> None:
    try:
        with staging() as aside:
            for part in card.parts:
                source = path if part.file == card.file else path.with_name(part.file)
                aside.write(part, blocks_of(source))
            if own_card is not None:
                aside.write(Part(CARD_FILE, len(own_card), sha256(own_card).hexdigest()), [own_card])
            aside.publish(place(card).parent)
    except Mismatch as wrong:
        raise UnfaceError(f"{path.name}: not {card.name}, {wrong}; nothing was kept") from None
    except FileNotFoundError as missing:
        raise UnfaceError(f"{Path(missing.filename).name}: no such file; {card.name} needs it") from None


@dataclass(frozen=True)
class _Graph:
    """What running a model once on an empty picture shows."""

    size: int
    layout: Layout
    dtype: Pixels
    dim: int


def _kind_of(path: Path) -> Kind:
    """By its suffix; TorchScript, and a pickle that would run code, are refused before anything of them is loaded."""
    if not path.is_file():
        raise UnfaceError(f"{path.name}: {'is a folder; name the file in it' if path.is_dir() else 'no such file'}")
    if path.suffix == ".onnx":
        return "onnx"
    if path.suffix == ".safetensors":
        _require_safetensors(path)
        return "safetensors"
    if path.suffix in (".pt", ".pth", ".bin"):
        if _is_torchscript(path):
            raise UnfaceError(
                f"{path.name}: TorchScript is a program, so it is never loaded; export the model to ONNX and add that"
            )
        _require_plain_tensors(path)
        return "state dict"
    raise UnfaceError(f"{path.name}: expected .onnx, .safetensors, .pt, .pth or .bin")


def _run_onnx(path: Path, size: int | None) -> _Graph:
    try:
        import onnxruntime
    except ImportError:
        raise UnfaceError(f"{path.name}: an .onnx file needs onnxruntime; pip install 'unface[images]'") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        # From bytes, so that a graph cannot name other files of this machine as its weights.
        session = onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise UnfaceError(f"{path.name}: ONNX Runtime cannot load it alone ({type(error).__name__})") from None
    inputs = session.get_inputs()
    shape = list(inputs[0].shape) if inputs else []
    kinds: dict[str, Pixels] = {"tensor(float)": "float32", "tensor(uint8)": "uint8"}
    if len(inputs) != 1 or len(shape) != 4 or 3 not in (shape[1], shape[3]) or inputs[0].type not in kinds:
        raise UnfaceError(f"{path.name}: takes {[one.shape for one in inputs]}; expected one batch of colour pictures")
    layout: Layout = "NCHW" if shape[1] == 3 else "NHWC"
    dtype = kinds[inputs[0].type]
    side = _agreed(path, shape[2] if layout == "NCHW" else shape[1], size)
    picture = np.zeros((1, 3, side, side) if layout == "NCHW" else (1, side, side, 3), np.dtype(dtype))
    try:
        given = session.run([session.get_outputs()[0].name], {inputs[0].name: picture})[0]
    except Exception as error:
        raise UnfaceError(f"{path.name}: does not run on one {side} px picture ({type(error).__name__})") from None
    return _Graph(side, layout, dtype, _dim(path, np.shape(given)))


def _agreed(path: Path, fixed: object, size: int | None) -> int:
    if not isinstance(fixed, int):
        if size is None:
            raise UnfaceError(f"{path.name}: takes pictures of any size; give one with --size")
        return size
    if size not in (None, fixed):
        raise UnfaceError(f"{path.name}: takes pictures of {fixed} px, --size says {size}")
    return fixed


def _dim(path: Path, shape: tuple[int, ...]) -> int:
    if len(shape) < 2 or shape[0] != 1 or any(side != 1 for side in shape[2:]):
        raise UnfaceError(f"{path.name}: gives {shape} for one picture; expected one vector, export the model with it")
    return shape[1]


def _require_safetensors(path: Path) -> None:
    try:
        with safe_open(path, framework="numpy") as opened:
            opened.keys()
    except (SafetensorError, OSError) as error:
        kind = type(error).__name__
        raise UnfaceError(f"{path.name}: not a whole .safetensors file ({kind}); copy it again") from None


def _is_torchscript(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as opened:
            return any(name.rpartition("/")[2] == "constants.pkl" for name in opened.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False  # then torch refuses it too, since it only looks for tensors


def _require_plain_tensors(path: Path) -> None:
    torch = _torch(path)
    try:
        torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # whatever it is, it is not what may be loaded
        raise UnfaceError(
            f"{path.name}: holds more than tensors, so loading it could run code; it was not loaded, "
            "save its state dict as .safetensors"
        ) from None


def _torch(path: Path) -> Any:
    try:
        import torch
    except ImportError:
        raise UnfaceError(f"{path.name}: needs PyTorch to be inspected; pip install 'unface[torch]'") from None
    return torch


CARD_FILE = "card.json"
CARD_SUFFIX = ".card.json"
_SCHEMA = "unface.card/1"
_LARGEST = 1 << 20  # bytes; a card is a page of text
_ADAPTER = TypeAdapter(Card)


def cards() -> tuple[Card, ...]:
    """Every card, unface's own first."""
    return (*shipped(), *(read_card(path) for path in _added().values()))


def card(name: str) -> Card:
    """A card by its name, or by the path of a file that has ``<file>.card.json`` beside it."""
    known = {one.name: one for one in shipped()}
    if name in known:
        return known[name]
    path = Path(name)
    if path.suffix and path.is_file():
        return _of_file(path)
    added = _added()
    if name in added:
        return read_card(added[name])
    names = [*known, *added]
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
    raise UnfaceError(f"{name}: no model of that name; {hint}")


@cache
def shipped() -> tuple[Card, ...]:
    """The cards that come with unface."""
    known = []
    for source in sorted(files("unface.models").joinpath("cards").iterdir(), key=lambda file: file.name):
        if source.name.endswith(".toml"):
            for fields in tomllib.loads(source.read_text(encoding="utf-8"))["card"]:
                known.append(_validated(_filled(fields), f"{source.name}: {fields.get('name')}"))
    if len({one.name for one in known}) != len(known):
        raise UnfaceError("cards: two have the same name")
    return tuple(known)


def read_card(path: Path) -> Card:
    """A card from a JSON file."""
    where = f"{path.parent.name}/{path.name}"
    try:
        if path.stat().st_size > _LARGEST:
            raise UnfaceError(f"{where}: {path.stat().st_size} bytes are too many for a card")
        fields = _JSON.validate_json(path.read_bytes())
    except OSError as error:
        raise UnfaceError(f"{where}: cannot be read ({reason(error)})") from None
    except ValidationError:
        raise UnfaceError(f"{where}: not a card; expected one JSON object") from None
    if fields.pop("schema", None) != _SCHEMA:
        raise UnfaceError(f"{where}: not a card; expected schema {_SCHEMA!r}")
    return _validated(fields, where)


def card_json(one: Card) -> bytes:
    """The file that ``read_card`` reads."""
    return _JSON.dump_json({"schema": _SCHEMA, **_ADAPTER.dump_python(one, mode="json")}, indent=2) + b"\n"


_JSON = TypeAdapter(dict[str, Any])


def _added() -> dict[str, Path]:
    """The cards of added models by name; folders with a dot are files on their way in."""
    return {path.parent.name: path for path in sorted(models_folder().glob(f"[!.]*/{CARD_FILE}"))}


def _of_file(path: Path) -> Card:
    beside = path.with_name(path.name + CARD_SUFFIX)
    if not beside.is_file():
        raise UnfaceError(f"{path.name}: has no {beside.name} beside it; add the model with `unface models add {path}`")
    described = read_card(beside)
    if not described.sha256:
        raise UnfaceError(f"{beside.name}: has no sha256; add the model with `unface models add {path}`")
    return replace(described, file=path.name, sources=(Local(str(path)),))


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    """What a shipped card leaves out because it is nearly always the same, or said once for card and source."""
    pinned = {"bytes": fields.get("bytes"), "sha256": fields.get("sha256")}
    sources = [source | (pinned if source["kind"] == "package" else {}) for source in fields["sources"]]
    return {"output": None, "pool": "none", **fields, "sources": sources}


def _validated(fields: dict[str, Any], where: str) -> Card:
    try:
        return _ADAPTER.validate_python(fields)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise UnfaceError(f"{where}: {field or 'card'}: {first['msg'].lower()}; correct the card") from None
