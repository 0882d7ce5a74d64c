"""Read mutated files in bounded children and report how each reader did: ``python -m tests.fuzz`` or ``make fuzz``.

A child may use 2 GB and 20 seconds of CPU time for one file; if it dies, the mutant is kept and the next child goes on
behind it. With ``--child`` this is such a child.
"""

import argparse
import json
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.fuzz.mutate import mutant_of
from tests.fuzz.readers import READERS
from tests.kit.warm_trials import WarmTrials
from tests.progress_line import EVERY, ProgressLine
from unface.errors import UnfaceError

MEMORY = 2 << 30
SECONDS = 20
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Tally:
    """How mutants ended, by (reader, outcome); ``changed`` ones were read although they were damaged."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    findings: list[tuple[int, str]] = field(default_factory=list)
    peak_mib: int = 0


def fuzz(names: Sequence[str], count: int, seed: int, folder: Path) -> Tally:
    """Read so many mutants in all, by these readers in turn."""
    tally, start = Tally(), 0
    progress = ProgressLine(f"mutants for {', '.join(dict.fromkeys(names))}", count, "findings")
    while start < count:
        settings = [",".join(names), str(start), str(count), str(seed), str(folder)]
        command = [sys.executable, "-m", "tests.fuzz", "--child", *settings]
        code, errors = _ended(command, lambda: progress.tell(_case(folder), len(tally.findings)))
        if code and not (folder / "case").exists():
            raise RuntimeError(f"a file that is not damaged cannot be read: {errors[-800:]}")
        for line in (folder / "outcomes").read_text(encoding="utf-8").splitlines():
            case, outcome, what = json.loads(line)
            if outcome == "peak":
                tally.peak_mib = max(tally.peak_mib, what)
                continue
            tally.outcomes[names[case % len(names)], outcome] += 1
            if outcome == "finding":
                tally.findings.append((case, what))
        start = count
        if code:
            case = _case(folder)
            tally.findings.append((case, f"the process ended with {code}: {errors[-300:]!r}"))
            start = case + 1
    return tally


def _ended(command: list[str], while_it_runs: Callable[[], None]) -> tuple[int, str]:
    """The exit status, and what was written on stderr."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "errors": "replace"}
    with subprocess.Popen(command, text=True, cwd=ROOT, **quiet) as process:  # type: ignore[call-overload]
        while True:
            try:
                _, errors = process.communicate(timeout=EVERY)
                return process.returncode, errors
            except subprocess.TimeoutExpired:
                while_it_runs()


def _case(folder: Path) -> int:
    """The case that the child reads now, or died of."""
    try:
        return int((folder / "case").read_text(encoding="ascii") or 0)
    except FileNotFoundError:
        return 0


def keep(tally: Tally, names: Sequence[str], seed: int, scratch: Path, folder: Path) -> None:
    """Write the mutants that were findings, to be read again."""
    folder.mkdir(exist_ok=True)
    originals = {name: READERS[name].originals(scratch) for name in names}
    for case, _ in tally.findings:
        (folder / f"{names[case % len(names)]}-{seed}-{case}").write_bytes(_mutant(names, originals, seed, case)[1])


def _mutant(names: Sequence[str], originals: Mapping[str, list[bytes]], seed: int, case: int) -> tuple[bytes, bytes]:
    """The file of a case as it was, and damaged."""
    name = names[case % len(names)]
    whole = originals[name][case // len(names) % len(originals[name])]
    return whole, mutant_of(READERS[name], whole, np.random.default_rng([seed, case]))


def _child(names: Sequence[str], start: int, count: int, seed: int, folder: Path) -> None:
    path = folder / "mutant"
    (folder / "case").unlink(missing_ok=True)
    (folder / "outcomes").write_text("", encoding="utf-8")
    originals = {name: READERS[name].originals(folder) for name in dict.fromkeys(names)}
    for name, files in originals.items():  # a control, and the libraries are loaded before memory is limited
        for whole in files[:1] if start else files:
            path.write_bytes(whole)
            READERS[name].read(path)
    if "faiss" in names:
        from unface.stores import faiss_index

        vars(faiss_index)["subprocess"] = WarmTrials()
    most = _status("VmSize") * 1024 + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    with (folder / "outcomes").open("w", encoding="utf-8", buffering=1) as outcomes:
        for case in range(start, count):
            (folder / "case").write_text(str(case), encoding="ascii")
            whole, mutant = _mutant(names, originals, seed, case)
            path.write_bytes(mutant)
            # Both end this process, also inside native code: seconds of its own, so that a busy machine is no finding.
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(20 * SECONDS)
            outcome, what = _outcome(READERS[names[case % len(names)]].read, path)
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            if outcome == "read" and mutant != whole:
                outcome = "changed"
            outcomes.write(json.dumps([case, outcome, what]) + "\n")
        outcomes.write(json.dumps([count - 1, "peak", _status("VmHWM") // 1024]) + "\n")


def _outcome(read: Callable[[Path], object], path: Path) -> tuple[str, str]:
    try:
        read(path)
    except UnfaceError as error:
        text = str(error)
        return ("refused", "") if len(text.splitlines()) == 1 else ("finding", f"not one line: {text[:200]!r}")
    except BaseException as error:
        trace, place = error.__traceback__, ""
        while trace is not None:
            place, trace = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}", trace.tb_next
        return "finding", f"{type(error).__name__}: {str(error)[:200]} ({place})"
    return "read", ""


def _status(key: str) -> int:
    """KiB of this process alone; what getrusage says is never less than what the parent held when it forked."""
    found = re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(found[1]) if found else 0


def main() -> int:
    """1 if anything was found."""
    if sys.argv[1:2] == ["--child"]:
        names, start, count, seed, folder = sys.argv[2:]
        _child(names.split(","), int(start), int(count), int(seed), Path(folder))
        return 0
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--mutants", type=int, default=1000, help="for each reader [1000]")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--reader", choices=sorted(READERS), action="append", help="one of them [all]")
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-findings"), help="folder for mutants that were findings"
    )
    asked = parser.parse_args()
    found = 0
    for name in asked.reader or READERS:
        with tempfile.TemporaryDirectory() as folder:
            tally = fuzz([name], asked.mutants, asked.seed, Path(folder))
            if tally.findings:
                keep(tally, [name], asked.seed, Path(folder), asked.keep)
        ways = ", ".join(f"{tally.outcomes[name, way]} {way}" for way in ("refused", "changed", "read"))
        print(f"{name}: {asked.mutants} mutants, {ways}, {len(tally.findings)} findings, peak {tally.peak_mib} MiB")
        print("".join(f"  {case}: {what}\n" for case, what in tally.findings), end="", flush=True)
        found += len(tally.findings)
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())
