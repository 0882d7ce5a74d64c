"""FaceMAE's deployment: pictures of unseen people → a release folder, made from visible patches alone.

What reads the pictures hands on visible patches and nothing else; what reconstructs never has a whole picture.
"""

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unface._version import __version__
from unface.data import ImageRef, ImageSet
from unface.erase.fitted_on import too_many
from unface.errors import UnfaceError, reason, short_name
from unface.faces import Detector
from unface.output.lock import run_lock
from unface.output.manifest import agree
from unface.output.place import OWN, Place, place_at
from unface.output.taken import refuse_link, require_folder
from unface.output.write import SEE_TO_IT, OutputError, publish, staged
from unface.progress import Progress, Silent
from unface.protect.facemae import Visible, reconstruct
from unface.protect.facemae_frames import Frame, each_face, require_faces
from unface.protect.facemae_train import Trained

RELEASE = "manifest.json"
SCHEMA = "unface.facemae-release/1"
_CHUNK = 32  # pictures that are reconstructed together, and made again after a cut
_KEY_BYTES = 32
_COMMITMENT = b"unface facemae mask seed\n"


def mask_seed(path: Path) -> bytes:
    """The secret that decides every picture's mask: read, or drawn and kept in a file for its owner alone.

    Two releases of a picture with one seed show the same pixels; with two seeds, about 44 % of them instead of 25 %.
    """
    if not path.exists():
        with staged(path, private=True, option="--mask-seed", replace=False) as unfinished:
            unfinished.write_text(os.urandom(_KEY_BYTES).hex() + "\n", encoding="ascii")
    return read_mask_seed(path)


def read_mask_seed(path: Path) -> bytes:
    """The seed that ``mask_seed`` keeps."""
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise UnfaceError(f"{short_name(path)}: holds no mask seed; expected {2 * _KEY_BYTES} hexadecimal digits")
    return key


def read_manifest(folder: Path) -> dict[str, Any]:
    """manifest.json of a release folder."""
    try:
        manifest = json.loads((folder / RELEASE).read_text(encoding="utf-8"))
        if manifest["schema"] != SCHEMA:
            raise ValueError
        for part, keys in (("model", ("sha256", "size", "preset", "loss")), ("mask", ("ratio", "seed_commitment"))):
            [manifest[part][key] for key in keys]
        str(manifest["files_sha256"])
    except OSError as error:
        raise UnfaceError(f"{folder}: holds no FaceMAE release ({RELEASE}: {reason(error)})") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UnfaceError(f"{folder}/{RELEASE}: is not of {SCHEMA}; give a folder that deploy wrote") from None
    return dict(manifest)


def commitment(key: bytes) -> str:
    """What a release says of its seed: anybody who is shown the seed can check it, nobody can find it from this."""
    return hashlib.sha256(_COMMITMENT + key).hexdigest()


def masked(
    refs: Sequence[ImageRef], trained: Trained, key: bytes, detector: Detector | None, threads: int | None
) -> Iterator[Visible | str]:
    """The visible patches of each picture, or why it has none. The rest of a picture is dropped where it is read."""

    def seen(frame: Frame) -> Visible:
        return Visible.of(frame.pixels, trained.masking.positions(trained.preset, key, frame.content), trained.preset)

    return each_face(refs, trained.preset.size, detector, threads, seen)


@dataclass(frozen=True)
class Shared:
    """How many of the deployed people the model's training set seems to hold; ``certain`` beyond chance."""

    people: int
    matches: int
    certain: bool


def shared_people(images: ImageSet, trained: Trained) -> Shared:
    """By the names of identities, of which the model keeps keyed bits only: about 12 % match by chance."""
    names = images.identities
    matches = int(trained.trained_on.matches(names).sum())
    return Shared(len(names), matches, too_many(matches, len(names), trained.trained_on.chance))


def require_free(out: Path) -> None:
    """Refuse a folder that exists: before the work, not after it."""
    require_folder(out)
    if out.exists() and any(out.iterdir()):
        raise UnfaceError(f"{out}: is not empty; choose another --out")


def deploy(
    images: ImageSet,
    trained: Trained,
    out: Path,
    *,
    key: bytes,
    licence: str,
    detector: Detector | None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the release and give its manifest. The folder appears whole; an interrupted run continues.

    ``<person>/<picture>.png`` by numbers in an order that the seed decides, so that names and their order stay here.
    """
    require_free(out)
    if not licence.strip():
        raise UnfaceError("the licence of the pictures is empty; state under which terms they may be published")
    progress, task = progress or Silent(), "reconstructing"
    shared = shared_people(images, trained)
    plan: dict[str, object] = {
        "unface": __version__,
        "pictures": images.sha256(),
        "model": trained.sha256,
        "mask_seed": commitment(key),
        "licence": licence,
        "detector": None if detector is None else detector.name,
    }
    folder = out.with_name(f".{out.name}.parts")
    refuse_link(folder)
    place = place_at(folder, short_name(out))
    names, left_out, files = released_names(images, key), Counter[str](), dict[str, str]()
    try:
        with run_lock(place), _advised(short_name(out)):
            place.drop_unfinished()
            agree(place, plan, otherwise="another --out")
            progress.start(task, len(images))
            for start in range(0, len(images), _CHUNK):
                refs = images.images[start : start + _CHUNK]
                record = _chunk_done(place, start) or _chunk(place, start, refs, names, trained, key, detector, threads)
                left_out.update(record["left_out"])
                files.update(record["files"])
                progress.advance(task, len(refs))
            require_faces(images, len(files), left_out)
            manifest = _manifest(trained, key, licence, files, left_out, shared)
            place.write(RELEASE, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())
            shutil.rmtree(folder / OWN)
            if out.is_dir():
                out.rmdir()
            publish(folder, out)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written ({reason(error)}); choose another --out") from None
    return manifest


@contextmanager
def _advised(name: str) -> Iterator[None]:
    """Add to an error of writing where it happened and what to do about it."""
    try:
        yield
    except OutputError as error:
        raise OutputError(f"{name}: {error}; {SEE_TO_IT}") from None


def _chunk_done(place: Place, start: int) -> dict[str, Any] | None:
    content = place.read(f"{OWN}/chunks/{start:09d}.json")
    try:
        record = None if content is None else json.loads(content)
        whole = record is not None and all(place.look(name) for name in record["files"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None  # damaged: made again
    return record if whole else None


def _chunk(
    place: Place,
    start: int,
    refs: Sequence[ImageRef],
    names: dict[str, str],
    trained: Trained,
    key: bytes,
    detector: Detector | None,
    threads: int | None,
) -> dict[str, Any]:
    """Some pictures, then the record that says so."""
    shown: dict[str, Visible] = {}
    left_out: Counter[str] = Counter()
    for ref, seen in zip(refs, masked(refs, trained, key, detector, threads), strict=True):
        if isinstance(seen, str):
            left_out[seen] += 1
        else:
            shown[names[ref.id]] = seen
    files = {}
    if shown:
        made = reconstruct(trained.model, Visible.stacked(list(shown.values())))
        for name, picture in zip(shown, made, strict=True):
            content = _png(picture)
            place.write(name, content)
            files[name] = hashlib.sha256(content).hexdigest()
    record = {"files": files, "left_out": dict(left_out)}
    place.write(f"{OWN}/chunks/{start:09d}.json", json.dumps(record).encode())
    return record


def released_names(images: ImageSet, key: bytes) -> dict[str, str]:
    """The name in the release of each id: person and picture are numbered in the order of keyed hashes."""

    def hashed(text: str) -> bytes:
        return hashlib.blake2b(text.encode(), key=key).digest()

    people = {name: number for number, name in enumerate(sorted(images.identities, key=hashed))}
    pictures: Counter[str] = Counter()
    names = {}
    for image in sorted(images, key=lambda one: hashed(one.id)):
        names[image.id] = f"{people[image.identity]:06d}/{pictures[image.identity]:04d}.png"
        pictures[image.identity] += 1
    return names


def _manifest(
    trained: Trained, key: bytes, licence: str, files: dict[str, str], left_out: Counter[str], shared: Shared
) -> dict[str, Any]:
    """What the release says to its readers; no names, no paths."""
    header, preset, masking = trained.header, trained.preset, trained.masking
    listing = "".join(f"{digest}  {name}\n" for name, digest in sorted(files.items()))
    return {
        "schema": SCHEMA,
        "unface": __version__,
        "people": len({name.partition("/")[0] for name in files}),
        "pictures": len(files),
        "left_out": dict(sorted(left_out.items())),
        "licence_of_inputs": licence,
        "model": {
            "sha256": trained.sha256,
            "preset": header["recipe"]["preset"],
            "size": preset.size,
            "loss": header["recipe"]["loss"],
            "beta": header["recipe"]["beta"],
            "recogniser": header["recogniser"],
            "training_people": header["data"]["people"],
        },
        "mask": {
            "ratio": masking.ratio,
            "hidden": masking.hidden,
            "visible_patches": masking.shown(preset),
            "patches": preset.tokens,
            "seed_commitment": commitment(key),
        },
        "visible_pixels_pasted": False,
        "people_shared_with_training": "yes" if shared.certain else "not found",
        "files_sha256": hashlib.sha256(listing.encode()).hexdigest(),
    }


def _png(picture: NDArray[np.uint8]) -> bytes:
    from PIL import Image

    content = BytesIO()
    Image.fromarray(picture).save(content, "PNG")
    return content.getvalue()
