"""If these fail, a run over a folder that is cut off loses rows, doubles them, or leaves half a file behind."""

import random
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.forks import ForkServer
from tests.scale.collection import hashes
from unface.data import Space, make_identities, write_embeddings
from unface.erase import Projection
from unface.output.lock import run_lock
from unface.scale import place_at

FILES, ROWS, DIM = 6, 240, 16
PEOPLE = make_identities(FILES * ROWS // 8, 8, DIM, rank=4, between=2.0, seed=8)
DONE = 0


Run = Callable[..., int]
"""The words of a command to its exit code, the step on disk or the call at which it is killed, if any."""


@pytest.fixture(scope="module")
def forked(forks: ForkServer) -> Run:
    """Where the exit code says all."""

    def run(*command: str | Path, step: int = 0, call: int = 0) -> int:
        number = ("call", call) if call else ("step", step)
        return forks.call("tests.faults.killed:run", *number, *command).returncode

    return run


@pytest.fixture(scope="module")
def unface(forks: ForkServer) -> "Unface":
    """Exit code and what was said."""

    def run(*words: str | Path, limit: int | None = None) -> tuple[int, str]:
        done = forks.unface(*words, file_size=limit)
        return done.returncode, (done.stdout + done.stderr).strip().removeprefix("unface: ")

    return run


Unface = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, forked: Run) -> Path:
    """raw/, a projection P fitted on it, and clean/, what a run that nothing disturbed makes of it."""
    here = tmp_path_factory.mktemp("made")
    (here / "raw").mkdir()
    for number in range(FILES):
        rows = PEOPLE.take(np.arange(number * ROWS, (number + 1) * ROWS))
        write_embeddings(rows, here / "raw" / f"part-{number}.parquet")
    assert forked("fit", here / "raw", "--out", here / "P", "--rank", "4") == DONE
    assert forked("apply", here / "P", here / "raw", here / "clean") == DONE
    return here


def ids(folder: Path) -> list[str]:
    tables = [pq.read_table(folder / name, columns=["id"]) for name in hashes(folder)]
    return sorted(pa.concat_tables(tables).column("id").to_pylist())


def require_same(out: Path, made: Path) -> None:
    """Every row once, the bytes of an undisturbed run, nothing else, and a receipt."""
    assert ids(out) == sorted(PEOPLE.ids.tolist())
    assert hashes(out) == hashes(made / "clean")
    assert (out / "_unface/receipt.json").exists()
    left = [path for path in (out / "_unface").rglob("*") if "unfinished" in path.parts and path.is_file()]
    assert left == []


def require_nothing_half(out: Path, made: Path) -> None:
    whole = hashes(made / "clean")
    assert all(whole[name] == found for name, found in hashes(out).items())


def test_a_run_killed_at_twenty_points_ends_with_every_row_once(made: Path, tmp_path: Path, forked: Run) -> None:
    """Each run goes on where the last was killed; a receipt means that all is there, and another output is begun."""
    points = random.Random(3)
    kills = outputs = 0
    out = tmp_path / "0"
    while kills < 20:
        code = forked("apply", made / "P", made / "raw", out, "--verify", step=points.randint(1, 90))
        assert code in (DONE, -signal.SIGKILL)
        if code == DONE:
            require_same(out, made)
            outputs += 1
            out = tmp_path / str(outputs)
        else:
            kills += 1
            require_nothing_half(out, made)
            if (out / "_unface/receipt.json").exists():  # killed when all was done but ending
                require_same(out, made)
                outputs += 1
                out = tmp_path / str(outputs)
    assert forked("apply", made / "P", made / "raw", out) == DONE
    require_same(out, made)


def test_a_run_killed_at_any_time_ends_with_every_row_once(
    made: Path, tmp_path: Path, forked: Run, forks: ForkServer
) -> None:
    """At any call of any function, so also where no step on disk is being made."""
    whole = forks.call("tests.faults.killed:run", "call", 10**9, "apply", made / "P", made / "raw", tmp_path / "whole")
    calls = random.Random(4)
    command = ("apply", made / "P", made / "raw", tmp_path / "out", "--force")
    codes = []
    for _ in range(12):
        codes.append(forked(*command, call=calls.randint(1, int(whole.stdout))))
        require_nothing_half(tmp_path / "out", made)
    assert set(codes) <= {DONE, -signal.SIGKILL}
    assert codes.count(-signal.SIGKILL) > 6
    assert forked(*command) == DONE
    require_same(tmp_path / "out", made)


def test_a_fit_killed_at_twenty_points_leaves_nothing_and_gives_the_same_when_it_is_run_again(
    made: Path, tmp_path: Path, forked: Run
) -> None:
    expected = (made / "P").read_bytes()
    points, kills, out = random.Random(5), 0, tmp_path / "P"
    while kills < 20:
        code = forked("fit", made / "raw", "--out", out, "--rank", "4", step=points.randint(1, 9))
        kills += code == -signal.SIGKILL
        assert code in (DONE, -signal.SIGKILL)
        # The rename is the last step but one.
        assert not out.exists() or out.read_bytes() == expected
        out.unlink(missing_ok=True)
    assert forked("fit", made / "raw", "--out", out, "--rank", "4") == DONE
    assert out.read_bytes() == expected


def test_a_full_disk_is_one_line_and_no_half_file_and_the_same_command_goes_on(
    made: Path, tmp_path: Path, forked: Run, unface: Unface
) -> None:
    out = tmp_path / "out"
    code, told = unface("apply", made / "P", made / "raw", out, "--threads", "1", limit=12_000)
    assert code == 1
    assert told.splitlines() == [told]
    assert "cannot be written (File too large); 0 of 6 files are done, see to that and give the same command" in told
    assert [path.name for path in out.rglob("*") if path.is_file()] == ["lock", "manifest.json"]
    assert forked("apply", made / "P", made / "raw", out) == DONE
    require_same(out, made)


def test_a_corrupt_file_in_the_middle_is_named_and_after_repair_the_rest_is_done(
    made: Path, tmp_path: Path, forked: Run, unface: Unface
) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.mkdir()
    for path in (made / "raw").iterdir():
        (raw / path.name).write_bytes(path.read_bytes())
    whole = (raw / "part-2.parquet").read_bytes()
    (raw / "part-2.parquet").write_bytes(whole[: len(whole) // 2])
    code, told = unface("apply", made / "P", raw, out, "--verify")
    assert (code, len(told.splitlines())) == (1, 1)
    assert told.startswith("part-2.parquet: not a readable Parquet file")
    assert "5 of 6 files are done" in told
    assert len(hashes(out)) == 5
    require_nothing_half(out, made)
    (raw / "part-2.parquet").write_bytes(whole)
    assert forked("apply", made / "P", raw, out, "--verify") == DONE
    require_same(out, made)


def test_a_second_run_on_one_output_is_refused_and_the_first_one_undisturbed(
    made: Path, tmp_path: Path, unface: Unface
) -> None:
    out = tmp_path / "out"
    with run_lock(place_at(out)):
        code, told = unface("apply", made / "P", made / "raw", out)
    assert code == 1
    assert told == "out: another process is writing it; wait for it or choose another OUT"
    assert hashes(out) == {}


def test_a_projection_of_another_space_is_refused_before_a_byte_is_written(
    made: Path, tmp_path: Path, unface: Unface
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    write_embeddings(replace(PEOPLE, space=Space("clip", None, DIM, False)), raw / "a.parquet")
    named = replace(Projection.load(made / "P"), space=Space("arcface", None, DIM, True))
    named.save(tmp_path / "P")
    code, told = unface("apply", tmp_path / "P", raw, tmp_path / "out")
    assert code == 1
    assert told.startswith("projection: fitted in 'arcface'")
    assert not (tmp_path / "out").exists()
