"""If this fails, a run that was cut off loses or doubles a picture, or ends in another file than one that was not."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.encode.encoded import Found, counted
from tests.refusals.table import refused
from unface.data import ImageSet
from unface.data.images import ImageRef
from unface.encode import encode_images
from unface.encode.onnx import OnnxEncoder
from unface.errors import UnfaceError


def test_a_finished_file_is_refused_and_with_force_replaced(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet
) -> None:
    out = tmp_path / "e.parquet"
    encode_images(pictures, encoder, out, detector=None)
    with refused("output", ..., "e.parquet", "--out", "--force"):
        encode_images(pictures, encoder, out, detector=None)
    encode_images(pictures.take(range(20)), encoder, out, detector=None, force=True)
    assert pq.read_metadata(out).num_rows == 20
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["e.parquet", "faces.zip", "tiny.onnx"]


@pytest.mark.parametrize("keep", [False, True])
def test_parts_that_a_run_left_when_it_was_killed_after_its_last_rename_are_removed(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet, keep: bool
) -> None:
    out, parts = tmp_path / "e.parquet", tmp_path / ".e.parquet.parts" / "_unface"
    encode_images(pictures, encoder, out, detector=None)
    parts.mkdir(parents=True)
    (parts / "manifest.json").write_text("{}", encoding="ascii")
    with contextlib.nullcontext() if keep else refused("output", ..., "--force"):
        encode_images(pictures, encoder, out, detector=None, keep=keep)
    assert not parts.parent.exists()


def test_what_was_done_before_a_cut_is_not_done_again(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unface.encode.pipeline._PART", 8)
    whole, cut = tmp_path / "whole.parquet", tmp_path / "cut.parquet"
    encode_images(pictures, encoder, whole, detector=Found(), batch=4)
    first: list[str] = []
    with pytest.raises(RuntimeError, match="pulled the plug"):
        encode_images(counted(pictures, first, stop_at=38), encoder, cut, detector=Found(), batch=4, threads=2)
    assert not cut.exists()
    second: list[str] = []
    encode_images(counted(pictures, second), encoder, cut, detector=Found(), batch=4)
    assert 0 < len(second) < 45
    assert second == [image.id for image in pictures][-len(second) :]
    assert cut.read_bytes() == whole.read_bytes()
    assert not (tmp_path / ".cut.parquet.parts").exists()


def test_a_failed_run_leaves_nothing_unless_a_part_is_done(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "new" / "deep" / "e.parquet"
    with pytest.raises(RuntimeError, match="pulled the plug"):
        encode_images(counted(pictures, [], stop_at=30), encoder, out, detector=None, batch=4)
    assert not (tmp_path / "new").exists()
    (tmp_path / "new").mkdir()
    empty = ImageSet(tuple(ImageRef(ref.id, ref.identity, lambda: b"") for ref in pictures), pictures.source)
    with refused("encoder", "faces.zip", "of 45"):
        encode_images(empty, encoder, out, detector=None)
    assert not list((tmp_path / "new").iterdir()), "and a folder that was there before stays"
    monkeypatch.setattr("unface.encode.pipeline._PART", 8)
    with pytest.raises(RuntimeError, match="pulled the plug"):
        encode_images(counted(pictures, [], stop_at=30), encoder, out, detector=None, batch=4)
    assert len(list(out.parent.glob(".e.parquet.parts/part-*"))) >= 1, "what the next run continues from"


def test_a_private_file_is_its_owners_alone_at_every_moment(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unface.encode.pipeline._PART", 8)
    out = tmp_path / "vectors" / "e.parquet"
    bad = ImageSet((ImageRef("bad", "nobody", lambda: b""), *pictures), pictures.source)
    with pytest.raises(RuntimeError, match="pulled the plug"):
        encode_images(counted(bad, [], stop_at=38), encoder, out, detector=None, batch=4, private=True)
    before = modes(tmp_path / "vectors")
    assert len([name for name in before if "part-" in name]) >= 1
    encode_images(bad, encoder, out, detector=None, batch=4, private=True)
    after = modes(tmp_path / "vectors")
    assert after == {".": 0o700, "e.parquet": 0o600, "e.parquet.skipped.csv": 0o600}
    assert {mode & 0o077 for name, mode in before.items() if "_unface/lock" not in name} == {0}
    encode_images(pictures, encoder, tmp_path / "e.parquet", detector=None)
    assert (tmp_path / "e.parquet").stat().st_mode & 0o777 == 0o666 & ~current_umask(), "as any other output"


def modes(folder: Path) -> dict[str, int]:
    every = [folder, *folder.rglob("*")]
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in every}


def current_umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_an_unfinished_file_of_other_pictures_or_settings_is_not_gone_on_with(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unface.encode.pipeline._PART", 8)
    out = tmp_path / "e.parquet"
    with pytest.raises(RuntimeError):
        encode_images(counted(pictures, [], stop_at=30), encoder, out, detector=None, batch=4)
    with refused("output", "e.parquet", "--force", "batch"):
        encode_images(pictures, encoder, out, detector=None, batch=5)
    with refused("output", "e.parquet", "pictures"):
        encode_images(pictures.take(range(9)), encoder, out, detector=Found(), batch=4)
    encode_images(pictures.take(range(9)), encoder, out, detector=Found(), batch=4, force=True)
    assert pq.read_metadata(out).num_rows == 9


def test_two_processes_do_not_write_one_file(tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet) -> None:
    out, begun, go = tmp_path / "e.parquet", threading.Event(), threading.Event()

    def slow(ref: ImageRef) -> ImageRef:
        def read() -> bytes:
            begun.set()
            go.wait(20)
            return ref.read()

        return ImageRef(ref.id, ref.identity, read)

    waiting = ImageSet(tuple(slow(ref) for ref in pictures), pictures.source)
    worker = threading.Thread(target=lambda: encode_images(waiting, encoder, out, detector=None))
    worker.start()
    assert begun.wait(20)
    with refused("output", "e.parquet", "another"):
        encode_images(pictures, encoder, out, detector=None)
    go.set()
    worker.join(20)
    assert pq.read_metadata(out).num_rows == 45


SCRIPT = """
import os, signal, sys
from pathlib import Path
from tests.encode.tiny import card
from unface.data import read_images
from unface.encode import encode_images, pipeline
from unface.encode.onnx import OnnxEncoder

pipeline._PART = 8
folder = Path(sys.argv[1])
encoder = OnnxEncoder(card(), folder / "tiny.onnx")
plain, batches = encoder.encode, 0

def dying(images):
    global batches
    batches += 1
    if batches == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(images)

encoder.encode = dying
encode_images(read_images(folder / "faces.zip"), encoder, folder / sys.argv[2], detector=None, batch=4)
"""


def run(folder: Path, out: str, *, killed_at: int = 0) -> int:
    """The exit code of a process that dies before that batch of four pictures; two batches make a part."""
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    words = [sys.executable, "-c", SCRIPT, str(folder), out, str(killed_at)]
    return subprocess.run(words, env=environment, check=False).returncode


@pytest.mark.usefixtures("encoder", "pictures")
def test_killed_without_warning_and_run_again_it_ends_in_the_same_bytes(tmp_path: Path) -> None:
    assert run(tmp_path, "whole.parquet") == 0
    parts = tmp_path / ".cut.parquet.parts"
    assert run(tmp_path, "cut.parquet", killed_at=8) == -signal.SIGKILL
    assert not (tmp_path / "cut.parquet").exists()
    assert 2 <= len(list(parts.glob("part-*.parquet"))) < 6
    assert run(tmp_path, "cut.parquet") == 0
    assert (tmp_path / "cut.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert not parts.exists()


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("name", ["", "_unface", "_unface/lock", "_unface/manifest.json", "part-000000.parquet"])
def test_a_link_among_the_parts_is_refused_and_nothing_behind_it_changes(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet, name: str, force: bool
) -> None:
    elsewhere, parts = tmp_path / "elsewhere", tmp_path / ".e.parquet.parts"
    elsewhere.mkdir()
    for precious in ("part-000000.parquet", "lock", "manifest.json"):
        (elsewhere / precious).write_bytes(b"precious")
    (parts / name).parent.mkdir(parents=True, exist_ok=True)
    (parts / name).symlink_to(elsewhere / Path(name).name if "." in name or "lock" in name else elsewhere)
    with refused("output", ..., "symbolic"):
        encode_images(pictures, encoder, tmp_path / "e.parquet", detector=None, force=force)
    assert {path.name: path.read_bytes() for path in elsewhere.iterdir()} == {
        "part-000000.parquet": b"precious",
        "lock": b"precious",
        "manifest.json": b"precious",
    }


@pytest.mark.parametrize(
    "name", [".e.parquet.parts/part-000000.tmp", ".e.parquet.parts/joined.tmp", "e.parquet.skipped.csv", "e.parquet"]
)
def test_a_link_where_something_is_written_is_not_written_through(
    tmp_path: Path, encoder: OnnxEncoder, pictures: ImageSet, name: str
) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    (tmp_path / ".e.parquet.parts").mkdir()
    (tmp_path / name).symlink_to(precious)
    with contextlib.suppress(UnfaceError):
        bad = ImageRef("bad", "nobody", lambda: b"not a picture")  # so that there is something to list
        images = ImageSet((*pictures, bad), pictures.source)
        encode_images(images, encoder, tmp_path / "e.parquet", detector=Found(), force=True)
    assert precious.read_bytes() == b"precious"
