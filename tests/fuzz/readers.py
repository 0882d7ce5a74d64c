"""Every reader of files from outside: small files that it accepts, and a call that reads one to the end.

A reader either returns or raises UnfaceError with one line; anything else is a finding.
"""

import io
import tarfile
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tests.fuzz.checkpoints import CHECKPOINT_READERS
from tests.fuzz.mutate import Reader
from tests.fuzz.results import POLICIES, RESULT_READERS
from unface.data import (
    EmbeddingSet,
    make_identities,
    opened_archive,
    read_embeddings,
    read_images,
    write_embeddings,
)
from unface.data.images import BadPicture, decode
from unface.erase import Projection
from unface.erase.file import load_projection, to_bytes
from unface.errors import UnfaceError


@cache
def embeddings() -> EmbeddingSet:
    return make_identities(20, 5, 8)


@cache
def projection() -> Projection:
    directions = np.linalg.qr(np.random.default_rng(5).normal(size=(8, 2)))[0]
    space = embeddings().space
    return Projection("isp", directions, space=space, spectrum=np.array([2.0, 1.0]))


def _npz(folder: Path) -> list[bytes]:
    names = np.array([embeddings().names[code] for code in embeddings().identities])
    path, files = folder / "original.npz", []
    for save in (np.savez, np.savez_compressed):
        for identities in (names, embeddings().identities, names.astype("S")):
            save(path, vectors=embeddings().vectors, identities=identities, ids=embeddings().ids.astype(str))
            files.append(path.read_bytes())
    return files


def _read_npz(path: Path) -> None:
    with opened_archive(path) as archive:
        assert sum(len(block) for block in archive.blocks(30)) == archive.rows
    _read_embeddings(path)


def _read_embeddings(path: Path) -> None:
    if path.stat().st_size % 2:  # for half of the mutants, what a row that is not whole does otherwise
        try:
            assert np.isfinite(read_embeddings(path, bad_rows="fail").vectors).all()
        except UnfaceError as error:
            if not str(error).startswith(f"{path.name}: "):
                raise AssertionError(f"does not name the file: {error}") from None
    read = read_embeddings(path, bad_rows="drop")
    assert np.isfinite(read.vectors).all()


def _parquet(folder: Path) -> list[bytes]:
    path = folder / "original"
    write_embeddings(embeddings(), path)
    files = [path.read_bytes()]
    write_embeddings(embeddings(), path, dtype="float16")
    files.append(path.read_bytes())
    # As others write it: no checksums, variable lists with nulls, dictionaries, several row groups, compression.
    vectors = [row.tolist() if number != 3 else None for number, row in enumerate(embeddings().vectors)]
    names = pa.array([embeddings().names[code] for code in embeddings().identities])
    table = pa.table({"identity": names.dictionary_encode(), "vector": vectors, "age": [20, None] * 50})
    for options in ({"compression": "none"}, {"compression": "zstd", "data_page_version": "2.0", "row_group_size": 30}):
        pq.write_table(table, path, **options)
        files.append(path.read_bytes())
    return files


def _complete_parquet(folder: Path) -> list[bytes]:
    """Without null vectors, which ``apply`` refuses."""
    files = _parquet(folder)[:2]
    names = pa.array([embeddings().names[code] for code in embeddings().identities])
    pq.write_table(
        pa.table({"vector": embeddings().vectors.tolist(), "name": names.dictionary_encode()}), folder / "original"
    )
    return [*files, (folder / "original").read_bytes()]


def _apply(path: Path) -> None:
    from unface.scale import sanitise_file

    out = path.with_name("erased")
    out.unlink(missing_ok=True)
    sanitise_file(projection(), path, out, threads=1)


def _picture(kind: str, **options: object) -> bytes:
    pixels = np.random.default_rng(1).integers(0, 256, (12, 10, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


def _pictures(_: Path) -> list[bytes]:
    return [_picture(kind) for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")]


def _members() -> dict[str, bytes]:
    return {"ann/1.png": _picture("PNG"), "ann/2.jpg": _picture("JPEG"), "bob/1.png": _picture("PNG"), "notes": b"text"}


def _zips(_: Path) -> list[bytes]:
    files = []
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for name, content in _members().items():
                archive.writestr(name, content)
        files.append(buffer.getvalue())
    return files


def _tars(_: Path) -> list[bytes]:
    files = []
    for mode in ("w", "w:gz", "w:xz", "w:bz2"):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode=mode) as archive:
            for name, content in _members().items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        files.append(buffer.getvalue())
    return files


def _picture_tables(folder: Path) -> list[bytes]:
    pictures = [content for name, content in _members().items() if "/" in name]
    files = []
    for column in (pictures, [{"bytes": content, "path": "x"} for content in pictures]):
        table = pa.table({"image": column, "identity": ["ann", "ann", "bob"]})
        pq.write_table(table, folder / "original", row_group_size=2)
        files.append((folder / "original").read_bytes())
    return files


def _read_images(path: Path) -> None:
    for image in read_images(path):
        try:
            decode(image.read())
        except BadPicture:
            continue


def _decode(path: Path) -> None:
    pixels = decode(path.read_bytes())
    assert pixels.dtype == np.uint8


def _audits(_: Path) -> list[bytes]:
    from tests.kit.results import NOTE, audited, erased, kept, point, raw

    result = audited(raw(point(0.3, 0.28, 0.32)), erased("isp", utility=[kept(0.9, 0.8, 1.0)]), findings=[NOTE])
    return [result.file_text().encode()]


def _read_audit(path: Path) -> None:
    from rich.console import Console

    from unface.gate import decide, make_policy
    from unface.report.html import render_report
    from unface.report.table import print_audit
    from unface.result.audit import AuditResult

    result = AuditResult.load(path)
    decide(result, make_policy({"require": [{"tar_max": 0.01, "far": 1e-3}]}, lambda table, key: table))
    print_audit(result, Console(file=io.StringIO()))
    render_report(result)


_POLICY = """[gate]
findings = "no-warnings"

[[require]]
tar_max = 0.01
far = 1e-4
k = 1

[[require]]
utility = "knn"
retained_min = 0.9
"""
_CONFIG = """far = [1e-3, 1e-4]
k = [1, 4]
seed = 7
eraser = ["isp"]
bad-rows = "drop"
"""


def _read_policy(path: Path) -> None:
    from unface.gate import read_policy

    read_policy(path)


def _read_config(path: Path) -> None:
    import typer.main

    from unface.cli.app import app
    from unface.cli.options import CONFIG

    command = typer.main.get_command(app).commands["audit"]  # type: ignore[attr-defined]
    CONFIG.callback(command.make_context("audit", [], resilient_parsing=True), path)


def _indexes(folder: Path) -> list[bytes]:
    import faiss

    files = []
    for kind in ("Flat", "IDMap,Flat", "IVF4,Flat", "HNSW4,Flat", "IDMap2,HNSW4,Flat", "IVF4,PQ4x4,RFlat", "SQ8"):
        index = faiss.index_factory(8, kind)
        index.train(np.resize(embeddings().vectors, (700, 8)))
        numbered = kind.startswith("IDMap")
        index.add_with_ids(embeddings().vectors, np.arange(100)) if numbered else index.add(embeddings().vectors)
        faiss.write_index(index, str(folder / "original"))
        files.append((folder / "original").read_bytes())
    return files


def _arrays(folder: Path) -> list[bytes]:
    files = []
    for array in (embeddings().vectors, np.asfortranarray(embeddings().vectors.astype(np.float16))):
        np.save(folder / "original.npy", array)
        files.append((folder / "original.npy").read_bytes())
    return files


def _sanitise(path: Path, kind: str) -> None:
    """A whole run on a copy in a folder of its own."""
    import shutil

    from unface.stores import sanitise_store
    from unface.stores.faiss_index import FaissStore
    from unface.stores.npy import NpyStore

    folder = path.with_name("store")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copyfile(path, folder / "mutant")
    store = FaissStore(folder / "mutant", lossy_ok=True) if kind == "faiss" else NpyStore(folder / "mutant")
    sanitise_store(projection(), store)


def _collection(folder: Path) -> tuple[Path, Path]:
    """A small collection to sanitise, and where its copy is made."""
    import shutil

    raw, out = folder / "raw", folder / "out"
    raw.mkdir(exist_ok=True)
    write_embeddings(embeddings(), raw / "a.parquet")
    shutil.rmtree(out, ignore_errors=True)
    return raw, out


def _outputs(folder: Path) -> list[bytes]:
    """What a run leaves in its output and the next one reads."""
    from unface.scale import sanitise_directory

    raw, out = _collection(folder)
    sanitise_directory(projection(), raw, out, threads=1)
    return [(out / "_unface" / name).read_bytes() for name in ("manifest.json", "done/a.parquet.json", "receipt.json")]


def _continue(path: Path) -> None:
    from unface.scale import sanitise_directory

    raw, out = _collection(path.parent)
    (out / "_unface/done").mkdir(parents=True)
    content = path.read_bytes()
    name = next((name for name, key in _RECORDS.items() if key in content), "manifest.json")
    (out / "_unface" / name).write_bytes(content)
    sanitise_directory(projection(), raw, out, threads=1, force=True)


_RECORDS = {"done/a.parquet.json": b"source_bytes", "receipt.json": b"raw_purged"}


def _projections(_: Path) -> list[bytes]:
    return [to_bytes(projection())]


READERS = {
    **RESULT_READERS,
    **CHECKPOINT_READERS,
    "npz": Reader(_npz, _read_npz),
    "parquet": Reader(_parquet, _read_embeddings),
    "apply": Reader(lambda folder: [*_complete_parquet(folder), *_npz(folder)[:1]], _apply),
    "picture": Reader(_pictures, _decode),
    "zip": Reader(_zips, _read_images),
    "tar": Reader(_tars, _read_images),
    "picture-parquet": Reader(_picture_tables, _read_images),
    "projection": Reader(_projections, load_projection),
    "audit": Reader(_audits, _read_audit, is_text=True, is_json=True),
    "policy": Reader(lambda _: [_POLICY.encode(), *POLICIES], _read_policy, is_text=True),
    "config": Reader(lambda _: [_CONFIG.encode()], _read_config, is_text=True),
    "output": Reader(_outputs, _continue, is_text=True, is_json=True),
    "npy": Reader(_arrays, lambda path: _sanitise(path, "npy")),
    "faiss": Reader(_indexes, lambda path: _sanitise(path, "faiss")),
}
