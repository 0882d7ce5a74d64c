"""If this fails, a cluster loses or doubles work when a worker dies, or its troubles reach users as pages of text."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock, call

import numpy as np
import pyarrow as pa
import pytest

from tests.refusals.table import refused
from tests.scale import cluster_work
from tests.scale.cluster_work import Marked
from tests.scale.stored import PEOPLE, projection, table, written
from tests.scale.test_file import SPARED, gated
from unface._version import __version__
from unface.auditing import fit_streamed
from unface.data import make_identities
from unface.erase import Keeper
from unface.errors import UnfaceError
from unface.progress import Progress, Silent
from unface.scale.cluster import ray_executor
from unface.scale.executor import Job, Result
from unface.scale.sanitise import sanitise_directory
from unface.scale.sums import PartSums, SumsJob, merge_sums, part_sums
from unface.seeds import stream

# As ray_executor sets it: Ray reads what not to print when it is first imported, which here is now.
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
psutil = pytest.importorskip("psutil", reason="psutil is not installed")
Cluster = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed").Cluster

if TYPE_CHECKING:
    from unface.scale.ray_tasks import RayExecutor

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
SMALL = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head and one more machine, in processes of their own, with a core each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "src")]))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        made = Cluster(initialize_head=True, head_node_args=SMALL)
        try:
            made.add_node(**SMALL)
            yield made
        finally:
            made.shutdown()


@pytest.fixture(scope="module")
def joined(cluster: Any) -> Iterator["RayExecutor"]:
    with ray_executor(cluster.address) as executor:
        yield executor


def names(folder: Path, count: int, **deaths: int) -> list[Marked]:
    return [Marked("x" * (1 + n), folder, deaths.get("x" * (1 + n), 0)) for n in range(count)]


def test_every_job_gives_its_result_once(joined: "RayExecutor", tmp_path: Path) -> None:
    jobs = names(tmp_path, 9)
    found = list(joined(cluster_work.length_of_name, jobs))
    assert sorted(found) == [(n, n + 1) for n in range(9)]
    assert [job.begun() for job in jobs] == [1] * 9


def test_a_refused_job_yields_its_error_and_the_others_go_on(joined: "RayExecutor") -> None:
    found = dict(joined(cluster_work.odd_refused, [4, 5, 6]))
    assert (found[0], found[2]) == (2, 3)
    assert isinstance(found[1], UnfaceError)
    assert str(found[1]) == "5.parquet: is odd; give an even one"


def test_a_defect_is_told_in_one_line(joined: "RayExecutor") -> None:
    with refused("apply", "job 1", "ZeroDivisionError"):
        list(joined(cluster_work.divided, [1, 0]))
    with refused("apply", "job 0", "ValueError: job 7"):
        list(joined(cluster_work.wordy, [7]))


def test_jobs_of_killed_workers_run_again_and_one_that_kills_all_is_named(
    joined: "RayExecutor", tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    jobs = names(tmp_path, 8, xx=1, xxxxx=100)
    found = dict(joined(cluster_work.length_of_name, jobs))
    lost = found.pop(4)
    assert found == {n: n + 1 for n in range(8) if n != 4}
    expected = "xxxxx: 4 workers were lost over it (WorkerCrashedError); see that a worker has memory enough"
    assert str(lost) == expected
    assert [job.begun() for job in jobs] == [1, 2, 1, 1, 4, 1, 1, 1]
    assert capfd.readouterr() == ("", "")


class Counted(list[Marked]):
    """Jobs that know which of them were looked at."""

    def __init__(self, jobs: list[Marked]) -> None:
        super().__init__(jobs)
        self.seen: set[object] = set()

    def __getitem__(self, index: Any) -> Any:
        self.seen.add(index)
        return super().__getitem__(index)


@pytest.mark.parametrize("work", [cluster_work.gated, cluster_work.stubborn], ids=["interrupted", "interrupt lost"])
def test_few_jobs_are_handed_over_at_a_time_and_closing_drops_them(
    joined: "RayExecutor", tmp_path: Path, work: Callable[[Marked], int]
) -> None:
    """Jobs that were not dropped would hold the workers, and end before the next ones do."""
    (after,) = folders(tmp_path, "after")
    jobs = Counted(names(tmp_path, 20))
    results = joined(work, jobs)
    assert next(results) == (0, 1)
    assert len(jobs.seen) == 4  # two for each core
    while work is cluster_work.stubborn and not (tmp_path / "asked").exists():
        time.sleep(0.05)
    results.close()  # type: ignore[attr-defined]  # an iterator to mypy, a generator here
    (tmp_path / "open").touch()
    assert len(list(joined(cluster_work.length_of_name, names(after, 6)))) == 6
    assert [job.begun() for job in jobs] == [1] + [0] * 19


@pytest.mark.parametrize("count", [1, 2, 3, 6, 7])
def test_results_are_merged_on_the_cluster_in_order(joined: "RayExecutor", tmp_path: Path, count: int) -> None:
    jobs = names(tmp_path, count)
    progress = Mock(spec=Silent)
    found = joined.reduce(cluster_work.told, cluster_work.both_told, jobs, progress)
    assert progress.method_calls == [call.start("files", count), *[call.advance("files")] * count]
    assert found.jobs == [job.name for job in jobs]
    assert os.getpid() not in found.merged_by
    assert bool(found.merged_by) == (count > 1)
    np.testing.assert_allclose(found.total, 0.05 * count * (count + 1), rtol=1e-14)
    found.total += 1  # it is ours, no view of what the cluster holds


def test_sums_of_killed_workers_are_counted_once(joined: "RayExecutor", tmp_path: Path) -> None:
    jobs = names(tmp_path, 6, xx=1)
    found = joined.reduce(cluster_work.told, cluster_work.both_told, jobs)
    assert found.jobs == [job.name for job in jobs]
    np.testing.assert_allclose(found.total, 2.1, rtol=1e-14)
    assert [job.begun() for job in jobs] == [1, 2, 1, 1, 1, 1]


def test_one_refused_job_refuses_the_whole_sum(joined: "RayExecutor") -> None:
    with refused("plug-in", "5.parquet"):
        joined.reduce(cluster_work.odd_refused, max, [2, 4, 5, 6])


def test_a_directory_is_the_same_when_workers_die_over_it(joined: "RayExecutor", tmp_path: Path) -> None:
    source, deaths, here, there = folders(tmp_path, "source", "deaths", "here", "there")
    for number in range(6):
        written(table(PEOPLE.vectors * (1 + number)), source / f"{number}.parquet")
    deadly = Deadly(joined, deaths, {"2.parquet": "_rename", "4.parquet": "write"})
    found = sanitise_directory(projection(), source, there, verify=True, executor=deadly)
    assert len(list(deaths.iterdir())) == 2
    expected = sanitise_directory(projection(), source, here)
    assert (found.rows, found.files) == (expected.rows, expected.files) == (6 * len(PEOPLE.vectors), 6)
    assert contents(there) == contents(here)


def test_a_gate_and_a_keeper_do_on_a_cluster_what_they_do_here(joined: "RayExecutor", tmp_path: Path) -> None:
    (source,) = folders(tmp_path, "source")
    for number in range(3):
        written(table(PEOPLE.vectors * (1 + number)), source / f"{number}.parquet")
    nuisance = np.diag(np.linspace(1, 2, PEOPLE.space.dim))
    keeper = Keeper(4, nuisance=nuisance).fit(PEOPLE.unit().vectors, PEOPLE.identities).projection_
    keeper = replace(keeper, space=projection().space)
    for name, made in (("gated", gated()), ("keeper", keeper), ("both", replace(keeper, gate=gated().gate))):
        here, there = folders(tmp_path, f"{name} here", f"{name} there")
        if name == "both":
            made = made.in_same_dimension()
        found = sanitise_directory(made, source, there, verify=True, executor=joined)
        expected = sanitise_directory(made, source, here, verify=True)
        assert found.not_faces == expected.not_faces == (None if name == "keeper" else 3 * SPARED)
        assert contents(there) == contents(here)


def test_a_fit_is_the_same_when_workers_die_over_it(joined: "RayExecutor", tmp_path: Path) -> None:
    source, deaths = folders(tmp_path, "source", "deaths")
    people = make_identities(40, 12, 16, rank=5, seed=4)
    rows = stream(0, "shuffled").permutation(len(people.vectors))
    for number, part in enumerate(np.array_split(rows, 5)):
        identities = [people.names[code] for code in people.identities[part]]
        columns = {"identity": identities, "vector": people.vectors[part].tolist()}
        written(pa.table(columns), source / f"{number}.parquet")
    deadly = Deadly(joined, deaths, {"1.parquet": "opened", "2.parquet": "opened"})
    found = fit_streamed(source, rank=5, executor=joined, gather=deadly.gather)
    assert len(list(deaths.iterdir())) == 2
    here = fit_streamed(source, rank=5)
    assert np.abs(found.directions @ found.directions.T - here.directions @ here.directions.T).max() < 1e-12
    assert found.certificate == here.certificate


def test_the_command_says_one_sentence(cluster: Any, tmp_path: Path) -> None:
    source, here = folders(tmp_path, "source", "here")
    for number in range(2):
        written(table(), source / f"{number}.parquet")
    projection().save(tmp_path / "p.safetensors")
    sanitise_directory(projection(), source, here)
    command = [sys.executable, "-m", "unface", "apply", "p.safetensors", "source", "there", "--ray", cluster.address]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "there: 240 vectors, 5 of 16 dimensions removed (isp)\n"
    assert contents(tmp_path / "there") == contents(here)


def test_a_killed_command_goes_on_where_it_was_and_a_killed_worker_is_replaced(cluster: Any, tmp_path: Path) -> None:
    source, here = folders(tmp_path, "source", "here")
    for number in range(40):
        written(table(PEOPLE.vectors * (1 + number)), source / f"{number:02}.parquet")
    projection().save(tmp_path / "p.safetensors")
    sanitise_directory(projection(), source, here)

    def begun(out: str) -> "subprocess.Popen[str]":
        """A run of the command that has written a few of the files."""
        command = ["apply", "p.safetensors", "source", out, "--quiet", "--ray", cluster.address]
        run = subprocess.Popen(
            [sys.executable, "-m", "unface", *command], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        while run.poll() is None and len(done(tmp_path / out)) < 3:
            time.sleep(0.01)
        return run

    first = begun("there")
    first.kill()
    first.communicate()
    kept = done(tmp_path / "there")
    assert len(kept) < 40, "it was killed on the way"
    again = begun("there")
    assert (again.communicate()[1], again.returncode) == ("", 0)
    assert contents(tmp_path / "there") == contents(here)
    assert kept.items() <= done(tmp_path / "there").items(), "finished files were not made again"

    other = begun("elsewhere")
    while not (working := [one for one in psutil.Process().children(recursive=True) if "::_worked" in title(one)]):
        assert other.poll() is None, "no worker was seen at work"
    working[0].kill()
    assert (other.communicate()[1], other.returncode) == ("", 0)
    assert contents(tmp_path / "elsewhere") == contents(here)


def done(out: Path) -> dict[str, int]:
    """Finished files, and when."""
    return {path.name: (out / path.stem).stat().st_mtime_ns for path in (out / "_unface" / "done").glob("*")}


def title(process: Any) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@dataclass(frozen=True)
class Deadly:
    """An executor whose workers are killed over some files, each at a step of reading or writing it."""

    real: "RayExecutor"
    deaths: Path
    steps: dict[str, str]

    def __call__(
        self, work: Callable[[Job], Result], jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Result | UnfaceError]]:
        return self.real(partial(cluster_work.dying, work, self.deaths, self.steps), jobs)

    def gather(self, jobs: Sequence[SumsJob], progress: Progress) -> PartSums:
        work = partial(cluster_work.dying, part_sums, self.deaths, self.steps)
        return self.real.reduce(work, merge_sums, jobs, progress)


def folders(inside: Path, *names: str) -> list[Path]:
    for name in names:
        (inside / name).mkdir()
    return [inside / name for name in names]


def contents(out: Path) -> dict[str, bytes]:
    """Every sanitised file and every record."""
    kept = [*out.glob("*.parquet"), *out.glob("_unface/done/*")]
    return {str(file.relative_to(out)): file.read_bytes() for file in kept}


def test_a_worker_with_another_version_refuses() -> None:
    from unface.scale.ray_tasks import _worked

    refusal, result = _worked("0.0.0", cluster_work.divided, 1)
    assert str(refusal) == f"--ray: a worker has unface {__version__}, this is 0.0.0; install one on all machines"
    assert result is None


def test_work_on_a_lost_machine_is_done_on_another_in_silence(
    cluster: Any, joined: "RayExecutor", tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The last one here: the cluster is smaller afterwards."""
    (doomed,) = cluster.worker_nodes
    jobs = [cluster_work.Doomed(f"{n}", tmp_path, doomed.node_id) for n in range(5)]

    def lose_it() -> None:
        while not jobs[0].reached():
            time.sleep(0.05)
        cluster.remove_node(doomed, allow_graceful=False)

    losing = threading.Thread(target=lose_it)
    losing.start()
    found = list(joined(cluster_work.until_lost, jobs))
    losing.join()
    assert sorted(index for index, _ in found) == [0, 1, 2, 3, 4]
    assert doomed.node_id not in {machine for _, machine in found}
    assert capfd.readouterr() == ("", "")
