"""If these fail, a saved projection comes back as another one, or a damaged file is applied to people's vectors."""

import hashlib
import json
import struct
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from tests.erase.people import people
from unface.data import Space
from unface.erase import ISP, LEACE, Eraser, Projection, certificate, file, fit_projection
from unface.errors import UnfaceError
from unface.result.numbers import Certificate, Estimate

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
    with pytest.raises(UnfaceError, match=r"^folder: cannot be written"):
        tiny().save(tmp_path / "folder")
    with pytest.raises(UnfaceError, match=r"^p: cannot be written \(No such file"):
        tiny().save(tmp_path / "nowhere" / "p")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def refused(path: Path) -> str:
    with pytest.raises(UnfaceError) as caught:
        Projection.load(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path.name}: ")
    assert len(sentence.splitlines()) == 1
    return sentence


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a whole .safetensors file"),
        (b"PAR1 and more of it", "not a whole .safetensors file"),
        (struct.pack("<Q", 2) + b"{}", "no metadata 'unface.projection'"),
        (save({"weight": np.ones(3)}), "no metadata 'unface.projection'"),
        (save({"weight": np.ones(3)}, {KEY: "{"}), "is not JSON"),
        (save({"weight": np.ones(3)}, {KEY: "[" * 100_000}), "is not JSON"),
        (save({"weight": np.ones(3)}, {KEY: "[]"}), "metadata unface.projection: "),
        (save({"weight": np.ones(3)}, {KEY: "{}"}), "metadata schema: field required"),
    ],
)
def test_other_files_are_refused(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    assert said in refused(path)


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "missing")
    assert "not a file" in refused(tmp_path)
    with pytest.raises(UnfaceError, match="null"):
        Projection.load("a\0b")


def test_numbers_that_no_projection_has_are_refused_by_their_name(tmp_path: Path) -> None:
    header = json.dumps({"weight": {"dtype": "F8_E8M0", "shape": [2], "data_offsets": [0, 2]}}).encode()
    path = tmp_path / "p"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0\0")
    assert "numbers of kind F8_E8M0; expected a projection that unface saved" in refused(path)


def test_a_file_larger_than_any_projection_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p"
    tiny().save(path)
    monkeypatch.setattr(file, "_LARGEST", len(path.read_bytes()))
    assert same(Projection.load(path), tiny())
    monkeypatch.setattr(file, "_LARGEST", len(path.read_bytes()) - 1)
    assert "592 bytes are too many for a projection" in refused(path)


def rewritten(path: Path, arrays: dict[str, np.ndarray | None], **fields: object) -> None:
    """A file with other content, or without some, whose hash is right: only its meaning can give it away."""
    content = file.to_bytes(tiny())
    held = {name: array for name, array in {**load(content), **arrays}.items() if array is not None}
    header = json.loads(json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"][KEY])
    header = {**header, **fields}
    header.pop("content_sha256")
    header["content_sha256"] = file._content_hash(header, held)
    path.write_bytes(save(held, {KEY: json.dumps(header, sort_keys=True)}))


NONE = Estimate(0.0, 0.0, 0.0, 0.95)
CERTIFIED = asdict(Certificate(4, 8, NONE, NONE, NONE))


@pytest.mark.parametrize(
    ("fields", "arrays", "said"),
    [
        ({"schema": "unface.projection/2"}, {}, "metadata schema: input should be 'unface.projection/1'"),
        ({"rank": "1"}, {}, "metadata rank: "),
        ({"rank": 2}, {}, "its metadata says (3, 2)"),
        ({"owner": "ann"}, {}, "metadata owner: extra inputs are not permitted"),
        ({"space": {"encoder": "sscd"}}, {}, "metadata space.weights_sha256: "),
        ({"certificate": CERTIFIED | {"images": "8"}}, {}, "metadata certificate.images: input should be a valid int"),
        ({"certificate": CERTIFIED | {"who": "ann"}}, {}, "metadata certificate.who: unexpected keyword argument"),
        ({"certificate": CERTIFIED | {"fisher_left": {"value": 0}}}, {}, "metadata certificate.fisher_left.low: "),
        ({"kind": "k" * 65}, {}, "metadata kind: string should have at most 64 characters"),
        ({}, {"weight": np.ones(3)}, "holds directions, spectrum, weight; expected"),
        ({}, {"w" * 200: np.ones(3)}, f"holds directions, spectrum, {'w' * 98}; expected"),
        ({}, {"spectrum": None}, "holds directions; expected directions, spectrum and perhaps readers and mean"),
        ({}, {"directions": np.ones((3, 1))}, "not those of a projection"),
        ({}, {"directions": np.ones((3, 1), np.float32)}, "directions is float32"),
        ({}, {"mean": np.full(3, np.nan)}, "mean has NaN"),
    ],
)
def test_content_that_is_whole_and_wrong_is_refused(
    fields: dict[str, object],
    arrays: dict[str, np.ndarray | None],
    said: str,
    tmp_path: Path,
) -> None:
    path = tmp_path / "p"
    rewritten(path, {})
    assert same(Projection.load(path), tiny())
    rewritten(path, arrays, **fields)
    assert said in refused(path)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    content, path = bytes.fromhex(GOLDEN), tmp_path / "p"
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        refused(path)


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
