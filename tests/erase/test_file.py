"""If these fail, a saved projection comes back as another one, or a damaged file is applied to people's vectors."""

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load

from tests.erase.people import people
from tests.refusals.table import refused
from unface.data import Space
from unface.erase import ISP, LEACE, Eraser, Projection, certificate, file, fit_projection
from unface.errors import UnfaceError

KEY = "unface.projection"


def tiny() -> Projection:
    """Numbers that any machine writes alike."""
    return Projection(
        kind="isp",
        directions=np.array([[0.6], [0.8], [0.0]]),
        spectrum=np.array([2.0, 0.5]),
        space=Space(encoder="sscd", weights_sha256="ab" * 32, dim=3, normalised=True),
    )


GOLDEN = (
    "20020000000000007b225f5f6d657461646174615f5f223a7b22756e666163652e70726f6a656374696f6e223a227b5c226365727469"
    "6669636174655c223a206e756c6c2c205c22636f6e74656e745f7368613235365c223a205c2261336136613234383537626532316563"
    "6334343564393534616664643864666638663535396161616531323432393632656666646163373235643539363439625c222c205c22"
    "64696d5c223a20332c205c226b696e645c223a205c226973705c222c205c226e6f726d616c6973655c223a20747275652c205c227261"
    "6e6b5c223a20312c205c22736368656d615c223a205c22756e666163652e70726f6a656374696f6e2f315c222c205c2273706163655c"
    "223a207b5c2264696d5c223a20332c205c22656e636f6465725c223a205c22737363645c222c205c226e6f726d616c697365645c223a"
    "20747275652c205c22776569676874735f7368613235365c223a205c2261626162616261626162616261626162616261626162616261"
    "6261626162616261626162616261626162616261626162616261626162616261626162616261625c227d7d227d2c2264697265637469"
    "6f6e73223a7b226474797065223a22463634222c227368617065223a5b332c315d2c22646174615f6f666673657473223a5b302c3234"
    "5d7d2c22737065637472756d223a7b226474797065223a22463634222c227368617065223a5b325d2c22646174615f6f666673657473"
    "223a5b32342c34305d7d7d20333333333333e33f9a9999999999e93f00000000000000000000000000000040000000000000e03f"
)


def test_the_bytes_of_the_format_are_these(tmp_path: Path) -> None:
    """Whoever changes them changes the format: give it a new schema number."""
    path = tmp_path / "p.safetensors"
    tiny().save(path)
    assert path.read_bytes().hex() == GOLDEN


def test_the_golden_bytes_are_read() -> None:
    found = file.from_bytes(bytes.fromhex(GOLDEN), "golden")
    assert same(found, tiny())


@pytest.mark.parametrize(
    "eraser", [ISP(3), ISP(0), ISP(3, whitened=True), LEACE(), LEACE(3, normalise=False)], ids=repr
)
def test_saved_and_loaded_it_is_the_same_in_every_bit(eraser: Eraser, tmp_path: Path) -> None:
    made = people(12)
    found = fit_projection(eraser, made)
    found = replace(found, certificate=certificate(found, made.vectors, made.identities))
    path = tmp_path / "p.safetensors"
    found.save(path)
    loaded = Projection.load(path)
    assert same(loaded, found)
    assert loaded.sha256 == found.sha256
    assert np.array_equal(loaded.apply(made.vectors), found.apply(made.vectors))
    found.save(path)
    assert sorted(tmp_path.iterdir()) == [path]


def test_its_hash_is_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    tiny().save(path)
    assert tiny().sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert replace(tiny(), normalise=False).sha256 != tiny().sha256


def test_it_holds_no_name_and_no_vector_of_anybody(tmp_path: Path) -> None:
    made = people(12)
    path = tmp_path / "p.safetensors"
    names = np.array([f"person-{code}-x" for code in made.identities])
    ISP(11).fit(made.vectors, names).projection_.save(path)
    content = path.read_bytes()
    assert b"person-" not in content
    assert set(load(content)) == {"directions", "spectrum"}
    assert made.vectors[0].tobytes() not in content


def test_a_failed_save_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with refused("output", "folder"):
        tiny().save(tmp_path / "folder")
    with refused("output", "p"):
        tiny().save(tmp_path / "nowhere" / "p")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_a_file_larger_than_any_projection_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p"
    tiny().save(path)
    monkeypatch.setattr(file, "_LARGEST", len(path.read_bytes()))
    assert same(Projection.load(path), tiny())
    monkeypatch.setattr(file, "_LARGEST", len(path.read_bytes()) - 1)
    with refused("projection", "p", "592"):
        Projection.load(path)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    content, path = bytes.fromhex(GOLDEN), tmp_path / "p"
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with refused("projection", "p"):
            Projection.load(path)


def test_a_damaged_file_is_refused_or_says_exactly_the_same(tmp_path: Path) -> None:
    """500 files with bits flipped, bytes overwritten, cut out or put in."""
    content, path = bytes.fromhex(GOLDEN), tmp_path / "p"
    outcomes: Counter[str] = Counter()
    for case in range(500):
        path.write_bytes(damaged(content, np.random.default_rng([7, case])))
        outcomes[outcome(path)] += 1
    assert outcomes["refused"] > 450
    assert outcomes["read as another"] == outcomes["badly told"] == 0


def outcome(path: Path) -> str:
    try:
        return "same" if same(Projection.load(path), tiny()) else "read as another"
    except UnfaceError as error:
        told = str(error)
        return "refused" if told.startswith("p: ") and len(told.splitlines()) == 1 else "badly told"


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    data, how = bytearray(content), rng.integers(4)
    at, length = int(rng.integers(len(data))), int(rng.integers(1, 9))
    if how == 0:
        data[at] ^= 1 << int(rng.integers(8))
    elif how == 1:
        data[at : at + length] = rng.bytes(len(data[at : at + length]))
    elif how == 2:
        data[at:at] = rng.bytes(length)
    else:
        del data[at : at + length]
    return bytes(data)


def same(a: Projection, b: Projection) -> bool:
    plain = ("kind", "space", "normalise", "certificate", "rank", "dim")
    arrays = ((getattr(a, name), getattr(b, name)) for name in ("directions", "readers", "mean", "spectrum"))
    alike = all(x is y if x is None or y is None else np.array_equal(x, y) and x.dtype == y.dtype for x, y in arrays)
    return alike and all(getattr(a, name) == getattr(b, name) for name in plain)
