"""If these fail, a collection on S3 is sanitised by two runs at once, or a killed run leaves something half there."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from pyarrow import fs

from tests.kit.forks import ForkServer
from tests.scale.collection import NAMES, collection, hashes
from tests.scale.stored import projection
from unface import UnfaceError
from unface.data import make_identities, write_embeddings
from unface.output import lock
from unface.output.lock import run_lock
from unface.output.place import Place, place_at
from unface.scale import sanitise_directory

pytestmark = pytest.mark.slow
pytest.importorskip("obstore", reason="obstore is not installed")
ROOT = Path(__file__).resolve().parents[2]
MOTO = os.environ.get("MOTO_SERVER") or shutil.which(
    "moto_server", path=os.pathsep.join([f"{sys.prefix}/moto/bin", os.environ.get("PATH", "")])
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if MOTO is None:
        pytest.skip("moto_server is not installed; make test puts it into .venv/moto, or name it by MOTO_SERVER")
    with (
        subprocess.Popen([MOTO, "-H", "127.0.0.1", "-p", "0"], stderr=subprocess.PIPE, text=True) as serving,
        pytest.MonkeyPatch.context() as patch,
    ):
        assert serving.stderr is not None
        try:
            running = (re.search(r"Running on (http://127\.0\.0\.1:\d+)", line) for line in serving.stderr)
            url = next(found[1] for found in running if found)
            # Or the server stops once nobody reads what it says.
            threading.Thread(target=serving.stderr.read, daemon=True).start()
            patch.setenv("AWS_ENDPOINT_URL", url)
            patch.setenv("AWS_REGION", "us-east-1")
            patch.setenv("AWS_ACCESS_KEY_ID", "somebody")
            patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
            yield url
        finally:
            serving.terminate()


@pytest.fixture
def bucket(server: str, request: pytest.FixtureRequest) -> str:
    name = f"b{abs(hash(request.node.name)):x}"
    urllib.request.urlopen(urllib.request.Request(f"{server}/{name}", method="PUT")).close()
    return name


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_RENEWED_S", 0.2)
    # So long that a renewal is late on no machine; whoever finds the lock leaves at the first renewal that it sees.
    monkeypatch.setattr(lock, "_ABANDONED_S", 10.0)


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(forks: ForkServer) -> Run:
    """Its exit code and what it said, of a command that is killed at a step, or at none."""

    def ended(step: int, *words: str | Path) -> tuple[int, str]:
        done = forks.call("tests.scale.s3_run:run", str(step), *words)
        return done.returncode, done.stderr

    return ended


def begun(until: Path, *words: str | Path) -> "subprocess.Popen[str]":
    """A command that waits at its first write until there is that file."""
    command = [sys.executable, "-m", "tests.scale.s3_run", str(until), *map(str, words)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT), str(ROOT / "src")])}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True)


def on(bucket: str) -> fs.FileSystem:
    return fs.FileSystem.from_uri(f"s3://{bucket}")[0]


def on_s3(bucket: str, source: Path) -> str:
    for name in NAMES:
        content = (source / name).read_bytes()
        with on(bucket).open_output_stream(f"{bucket}/raw/{name}") as out:
            out.write(content)
    return f"s3://{bucket}/raw"


def copied(bucket: str, folder: Path) -> dict[str, str]:
    """Hashes of the sanitised files of a bucket, by a copy on this machine."""
    fs.copy_files(f"{bucket}/clean", str(folder), source_filesystem=on(bucket))
    return hashes(folder)


def test_a_killed_run_on_s3_goes_on_and_ends_with_the_same_bytes(bucket: str, tmp_path: Path, run: Run) -> None:
    source = collection(tmp_path / "raw")
    projection().save(tmp_path / "P")
    sanitise_directory(projection(), source, tmp_path / "here")
    url = on_s3(bucket, source)
    command = ("apply", tmp_path / "P", url, f"s3://{bucket}/clean", "--verify")
    assert [run(step, *command) for step in (5, 14)] == [(-signal.SIGKILL, "")] * 2
    assert run(0, *command) == (0, "")
    assert copied(bucket, tmp_path / "clean") == hashes(tmp_path / "here")
    left = on(bucket).get_file_info(fs.FileSelector(f"{bucket}/clean/_unface", recursive=True))
    assert not [one.path for one in left if "unfinished/" in one.path or one.path.endswith("/lock")]
    code, said = run(0, *command)
    assert (code, said) == (
        1,
        f"unface: s3://{bucket}/clean: is finished already; choose another OUT or pass --force\n",
    )


def test_of_two_whole_commands_at_once_one_works_and_the_other_says_one_line(
    bucket: str, tmp_path: Path, run: Run
) -> None:
    source = collection(tmp_path / "raw")
    projection().save(tmp_path / "P")
    sanitise_directory(projection(), source, tmp_path / "here")
    command = ("apply", tmp_path / "P", on_s3(bucket, source), f"s3://{bucket}/clean")
    first = begun(tmp_path / "go on", *command)
    assert first.stderr is not None
    assert first.stderr.readline() == "held\n"
    refusal = f"unface: s3://{bucket}/clean: another process is writing it; wait for it or choose another OUT\n"
    assert run(0, *command) == (1, refusal)
    assert run(0, *command, "--force") == (1, refusal)
    (tmp_path / "go on").touch()
    first.communicate()
    assert first.returncode == 0
    assert copied(bucket, tmp_path / "clean") == hashes(tmp_path / "here")


def test_a_fit_reads_a_collection_on_s3(bucket: str, tmp_path: Path, run: Run) -> None:
    source = tmp_path / "raw"
    people = make_identities(40, 4, 8, seed=3)
    for name, rows in zip(NAMES, np.array_split(np.arange(160), len(NAMES)), strict=True):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        write_embeddings(people.take(rows), source / name)
    url = on_s3(bucket, source)
    words = ("--rank", "2", "--hold-out", "0", "--quiet")
    assert run(0, "fit", url, "--out", tmp_path / "there", *words) == (0, "")
    assert run(0, "fit", source, "--out", tmp_path / "here", *words) == (0, "")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def ends_of_two(place: Place) -> list[str]:
    """How two runs end that ask for the lock at once, neither of which gives it back before both have ended."""
    begin, end = threading.Barrier(2, timeout=120), threading.Barrier(2, timeout=120)
    ends: list[str] = []

    def one() -> None:
        begin.wait()
        try:
            with run_lock(place, "OUT"):
                ends.append("won")
                end.wait()
        except UnfaceError as error:
            ends.append(str(error))
            end.wait()

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(ends)


@pytest.mark.usefixtures("_impatient")
def test_of_two_runs_at_once_exactly_one_gets_the_lock(bucket: str) -> None:
    for pair in range(20):
        place = place_at(f"s3://{bucket}/{pair}")
        refusal = f"{place.shown}: another process is writing it; wait for it or choose another OUT"
        assert ends_of_two(place) == [refusal, "won"]
        assert place.look("_unface/lock") is None


@pytest.mark.usefixtures("_impatient")
def test_a_run_whose_lock_was_taken_over_while_it_was_paused_is_stopped_before_it_finishes(bucket: str) -> None:
    place = place_at(f"s3://{bucket}/paused")
    told = "another process took it over while this one was paused"
    refused: list[str] = []

    def run() -> None:
        with run_lock(place, "OUT") as still_held:
            still_held()
            with on(bucket).open_output_stream(f"{bucket}/paused/_unface/lock") as other:
                other.write(b"somebody 0")
            time.sleep(1)
            try:
                still_held()
            except UnfaceError as error:
                refused.append(str(error))

    with pytest.raises(UnfaceError, match=told):
        run()
    assert told in "".join(refused)
    assert on(bucket).open_input_stream(f"{bucket}/paused/_unface/lock").read() == b"somebody 0"


@pytest.mark.usefixtures("_impatient")
def test_a_renewal_that_arrived_twice_is_not_taken_for_another_run(bucket: str) -> None:
    """The answer to a request is lost, and the client sends it again: by then the tag is another."""
    place = place_at(f"s3://{bucket}/twice")
    with run_lock(place, "OUT") as still_held:
        name = f"{bucket}/twice/_unface/lock"
        content = on(bucket).open_input_stream(name).read()
        with on(bucket).open_output_stream(name) as again:
            again.write(content + b"9")
        time.sleep(1)
        still_held()
        assert on(bucket).open_input_stream(name).read() not in (content, content + b"9")


@pytest.mark.usefixtures("_impatient")
def test_of_two_runs_that_find_the_lock_of_a_killed_one_exactly_one_takes_it_over(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one loses by its condition, however late a renewal is."""
    monkeypatch.setattr(lock, "_ABANDONED_S", 1.0)
    for pair in range(3):
        with on(bucket).open_output_stream(f"{bucket}/{pair}/_unface/lock") as left:
            left.write(b"somebody 3")
        assert [end == "won" for end in ends_of_two(place_at(f"s3://{bucket}/{pair}"))] == [False, True]
