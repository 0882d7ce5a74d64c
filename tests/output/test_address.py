"""If these fail, a password shows in a sentence or a manifest, or one place is taken for two."""

import hashlib
import json
from pathlib import Path

import fsspec
import pytest

from tests.refusals.table import refused
from tests.scale.collection import collection
from tests.scale.stored import projection
from unface.output.place import why, without_secrets
from unface.scale import place_at, sanitise_directory


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://bucket/a@b/c", "s3://bucket/a@b/c"),
        ("s3://key:secret@bucket/raw/?token=secret", "s3://bucket/raw"),
        ("s3://key:sec/secret+x@bucket/raw", "s3://bucket/raw"),
        ("hdfs://host:8020/raw//x/", "hdfs://host:8020/raw/x"),
        ("s3://bucket/", "s3://bucket"),
        ("hdfs://host:8020/a@b", "hdfs://host:8020/a@b"),
        ("s3://key:sec/ret@bucket", "s3://bucket"),
        ("s3://bucket/a/../b/./c", "s3://bucket/b/c"),
        ("s3://bucket/X", "s3://bucket/X"),
    ],
)
def test_what_is_shown_of_a_url_has_no_secret_and_one_form(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


def test_a_secret_does_not_come_back_in_a_library_s_own_words() -> None:
    url = "s3://key:hush@bucket/x?token=quiet"
    for said in (f"Cannot parse URI: '{url}'", "403 for key:hush", "GET /x?token=quiet failed"):
        told = why(ValueError(said), url)
        assert "hush" not in told
        assert "quiet" not in told


def test_a_secret_inside_another_leaves_nothing_of_it() -> None:
    assert why(ValueError("403 for akz"), "s3://k:akz@bucket/x") == "403 for …"
    assert why(ValueError("403 for akz"), "s3://bucket/x?a=akz&b=k&c=") == "403 for …"
    assert why(ValueError("403 for quiet=="), "s3://bucket/x?token=quiet==") == "403 for …"


def test_a_failure_without_words_is_told_by_its_name() -> None:
    assert why(TimeoutError(), "s3://bucket/x") == "TimeoutError"
    assert why(OSError(28, "in Arrow's own words"), "s3://bucket/x") == "No space left on device"


def test_a_path_may_be_part_of_what_a_library_says_and_is_no_secret() -> None:
    assert why(ValueError("bad magic"), "raw") == "bad magic"


def test_arrow_s_messages_are_told_without_the_path_in_them() -> None:
    said = OSError(13, "Failed to open local file '/somewhere/raw/a.parquet'. Detail: [errno 13] Permission denied")
    assert why(said, "/somewhere/raw") == "Permission denied"


def test_a_slash_at_the_end_does_not_hide_that_the_output_lies_in_the_source() -> None:
    with refused("apply", "memory://apart/raw/clean"):
        sanitise_directory(projection(), "memory://apart/raw/", "memory://apart/raw/clean")


def test_a_manifest_holds_no_hash_of_a_password_and_a_new_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = collection(tmp_path / "raw")
    memory = fsspec.filesystem("memory")
    for name in ("a.parquet", "b.parquet"):
        memory.pipe(f"memory://hashed/raw/{name}", (source / name).read_bytes())
    real = place_at("memory://hashed/raw")
    monkeypatch.setattr("unface.output.place._file_system", lambda url: (real.files, real.root))
    given = "memory://key:{}@hashed/raw"
    for secret in ("old", "new"):
        sanitise_directory(projection(), given.format(secret), tmp_path / "clean")
        (tmp_path / "clean/_unface/receipt.json").unlink()
    manifest = json.loads((tmp_path / "clean/_unface/manifest.json").read_text())
    assert manifest["source"] == hashlib.sha256(b"memory://hashed/raw").hexdigest()
    memory.rm("memory://hashed", recursive=True)


def test_a_file_url_without_a_root_is_a_folder_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would be locked in another way than the same folder by its path."""
    monkeypatch.chdir(tmp_path)
    assert place_at("file://raw-of-this-test").local
