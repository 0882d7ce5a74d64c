"""If these fail, a release shows more than its masks allow, names somebody, or is left half-written."""

import hashlib
import json
import resource
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.protect.test_facemae_train import TOY
from tests.refusals.table import refused
from unface.data import ImageRef, ImageSet, decode, read_images
from unface.faces import Face
from unface.protect import facemae, facemae_deploy
from unface.protect.facemae import Masking, Visible
from unface.protect.facemae_deploy import commitment, deploy, mask_seed, masked, shared_people
from unface.protect.facemae_frames import Faces
from unface.protect.facemae_train import Recipe, Trained, Training, load_facemae
from unface.seeds import stream

KEY = bytes(range(32))


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trained:
    """A toy that was trained on p0 … p5."""
    monkeypatch.setitem(facemae.PRESETS, "tiny", TOY)
    frames = stream(0, "faces").integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
    faces = Faces(frames, tuple(f"p{number % 6}" for number in range(12)), Counter())
    training = Training(Recipe(preset="tiny", loss="mse", masking=Masking(0.5), epochs=1), faces, None)
    training.run(training.steps)
    training.save(tmp_path / "model")
    return load_facemae(tmp_path / "model")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Ada has three pictures and Bob two, of 16 × 16; one of Bob's cannot be decoded."""
    random = stream(1, "deployed")
    for name in ("Ada Lovelace/x1", "Ada Lovelace/x2", "Ada Lovelace/x3", "Bob/y1", "Bob/y2"):
        path = tmp_path / "people" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(path)
    path.write_bytes(b"cut")
    return tmp_path / "people"


def released(source: Path, trained: Trained, out: Path, key: bytes = KEY) -> dict[str, bytes]:
    deploy(read_images(source), trained, out, key=key, licence="CC0", detector=None)
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.png"))}


def test_a_release_holds_whole_decoder_pictures_and_says_how_they_were_made(
    people: Path, trained: Trained, tmp_path: Path
) -> None:
    out = tmp_path / "release"
    files = released(people, trained, out)
    assert sorted(Counter(name.partition("/")[0] for name in files).values()) == [1, 3]
    assert sorted(path.name for path in out.iterdir()) == ["000000", "000001", "manifest.json"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    text = (out / "manifest.json").read_text()
    manifest = json.loads(text)
    assert (manifest["people"], manifest["pictures"]) == (2, 4)
    assert sum(manifest["left_out"].values()) == 1
    assert manifest["licence_of_inputs"] == "CC0"
    assert (
        manifest["model"]["sha256"] == hashlib.sha256((tmp_path / "model/model.safetensors").read_bytes()).hexdigest()
    )
    assert manifest["mask"]["seed_commitment"] == commitment(KEY)
    assert (manifest["mask"]["visible_patches"], manifest["mask"]["patches"]) == (8, 16)
    listing = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()))
    assert manifest["files_sha256"] == hashlib.sha256(listing.encode()).hexdigest()
    for hidden in ("Ada", "Bob", "x1", str(tmp_path), KEY.hex()):
        assert hidden not in text
    originals = {decode(image.read()).tobytes() for image in list(read_images(people))[:4]}
    assert not originals & {decode(content).tobytes() for content in files.values()}
    assert len(read_images(out)) == 4


def test_a_second_release_with_the_same_seed_shows_the_same_bytes(
    people: Path, trained: Trained, tmp_path: Path
) -> None:
    first = released(people, trained, tmp_path / "one")
    assert released(people, trained, tmp_path / "two") == first
    assert released(people, trained, tmp_path / "three", bytes(32)) != first


def test_only_visible_patches_leave_the_reader(people: Path, trained: Trained) -> None:
    images = read_images(people)
    found = list(masked(images.images, trained, KEY, None, 1))
    picture = decode(images.images[0].read())
    assert isinstance(found[0], Visible)
    assert found[0].patches.nbytes == picture.nbytes // 2
    cells = picture.reshape(4, 4, 4, 4, 3).swapaxes(1, 2).reshape(16, 48)
    np.testing.assert_array_equal(found[0].patches[0], cells[found[0].positions[0]])
    assert isinstance(found[4], str)


def test_a_run_that_was_cut_off_goes_on_and_ends_in_the_same_bytes(
    people: Path, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facemae_deploy, "_CHUNK", 2)
    whole = released(people, trained, tmp_path / "whole")
    images, out = read_images(people), tmp_path / "parts"
    reads: list[str] = []

    def counted(image: ImageRef, last: int) -> ImageRef:
        def read() -> bytes:
            reads.append(image.id)
            if len(reads) > last:
                raise KeyboardInterrupt
            return image.read()

        return replace(image, read=read)

    with pytest.raises(KeyboardInterrupt):
        deploy(
            ImageSet(tuple(counted(one, 3) for one in images), images.source),
            trained, out, key=KEY, licence="CC0", detector=None,
        )  # fmt: skip
    assert not out.exists()
    with refused("output", "parts"):
        deploy(images, trained, out, key=KEY, licence="other", detector=None)
    reads.clear()
    deploy(
        ImageSet(tuple(counted(one, 9) for one in images), images.source),
        trained, out, key=KEY, licence="CC0", detector=None,
    )  # fmt: skip
    assert reads == [one.id for one in images.images[2:]]
    assert {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.png"))} == whole
    assert (out / "manifest.json").read_bytes() == (tmp_path / "whole/manifest.json").read_bytes()


class Nobody:
    """A detector that finds no face."""

    name = "nobody"

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        return []


def test_pictures_without_faces_are_refused_in_one_line(people: Path, trained: Trained, tmp_path: Path) -> None:
    with refused("protection", "people", "of 5", "4", "1", "--detector"):
        deploy(read_images(people), trained, tmp_path / "out", key=KEY, licence="CC0", detector=Nobody())
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_one_line_and_leaves_no_release(
    people: Path, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(facemae_deploy, "publish", full)
    with refused("output", ..., "--out", "cannot"):
        deploy(read_images(people), trained, tmp_path / "out", key=KEY, licence="CC0", detector=None)
    assert not (tmp_path / "out").exists()


def test_a_picture_that_cannot_be_written_is_one_line_with_what_to_do(
    people: Path, trained: Trained, tmp_path: Path
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # a full disk, for files of more bytes
    try:
        with refused("output", "out", "File too large"):
            deploy(read_images(people), trained, tmp_path / "out", key=KEY, licence="CC0", detector=None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "out").exists()


def test_people_of_the_training_set_are_noticed(people: Path, trained: Trained) -> None:
    def set_of(names: Sequence[str]) -> ImageSet:
        return ImageSet(tuple(ImageRef(f"{name}/1", name, bytes) for name in names), "set")

    assert not shared_people(read_images(people), trained).certain
    again = shared_people(set_of([f"p{number}" for number in range(6)]), trained)
    assert (again.people, again.matches) == (6, 6)


def test_a_mask_seed_is_drawn_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "seed"
    key = mask_seed(path)
    assert len(key) == 32
    assert mask_seed(path) == key
    assert path.stat().st_mode & 0o077 == 0
    assert mask_seed(tmp_path / "other") != key
    path.write_text("12\n")
    with refused("protection", "seed", "expected 64"):
        mask_seed(path)


def test_an_output_that_is_taken_and_an_empty_licence_are_refused(
    people: Path, trained: Trained, tmp_path: Path
) -> None:
    with refused("protection", ..., "is not"):
        deploy(read_images(people), trained, people, key=KEY, licence="CC0", detector=None)
    with refused("protection"):
        deploy(read_images(people), trained, tmp_path / "out", key=KEY, licence=" ", detector=None)
