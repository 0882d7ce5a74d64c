"""Fire at runs: ``python -m tests.fire kills --store postgres --kills 100``, or ``pairs``, or ``commands``."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fire.target import Target

# Each run imports this file as its main module: what is slow to import is imported where it is used.


def _target(store: str, how: str, folder: Path) -> Target:
    if store == "postgres":
        from tests.fire.postgres import PostgresTarget

        return PostgresTarget(how)
    from tests.fire.lance import LanceTarget

    return LanceTarget(folder / "lance")


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    from tests.fire.commands import COMMANDS
    from tests.fire.pairs import KINDS

    parser = argparse.ArgumentParser(prog="python -m tests.fire")
    kinds = parser.add_subparsers(dest="kind", required=True)
    kills = kinds.add_parser("kills", help="kill runs while clients write")
    kills.add_argument("--store", choices=["postgres", "lance"], required=True)
    kills.add_argument("--how", choices=["client", "terminate", "backend"], default="client", help="[client]")
    kills.add_argument("--kills", type=int, default=100, help="[100]")
    kills.add_argument("--shorter", action="store_true", help="with a projection that keeps 12 of 32 dimensions")
    kills.add_argument("--seed", type=int, default=1)
    pairs = kinds.add_parser("pairs", help="start a second run while the first is in its swap")
    pairs.add_argument("--store", choices=[*KINDS, "all"], default="all")
    pairs.add_argument("--pairs", type=int, default=50, help="for each store [50]")
    pairs.add_argument("--seed", type=int, default=1)
    commands = kinds.add_parser("commands", help="kill commands that write files")
    commands.add_argument("--command", choices=[*COMMANDS, "all"], default="all")
    commands.add_argument("--kills", type=int, default=30, help="of each command [30]")
    commands.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    return {"pairs": _pairs, "kills": _kills, "commands": _commands}[asked.kind](asked)


def _commands(asked: argparse.Namespace) -> int:
    from tests.fire.commands import COMMANDS, fire_at

    found = 0
    for name in COMMANDS if asked.command == "all" else [asked.command]:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            tally = fire_at(name, asked.kills, asked.seed, Path(folder), _say)
        print(
            f"{name}: {tally.kills} kills at {len(tally.at)} kinds of steps, {tally.finished} after the output was"
            f" complete, {len(tally.violations)} violations, {time.monotonic() - begun:.0f} s",
            flush=True,
        )
        found += len(tally.violations)
    return min(found, 1)


def _pairs(asked: argparse.Namespace) -> int:
    from tests.fire.pairs import KINDS, fire_pairs

    found = 0
    for name in KINDS if asked.store == "all" else [asked.store]:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            tally = fire_pairs(name, asked.pairs, asked.seed, Path(folder), _say)
        print("".join(f"    {count} × {end}\n" for end, count in tally.ends.most_common()), end="")
        print(
            f"{name}: {tally.pairs} pairs at {len(tally.overlaps)} steps, {len(tally.violations)} violations,"
            f" {time.monotonic() - begun:.0f} s",
            flush=True,
        )
        found += len(tally.violations)
    return min(found, 1)


def _kills(asked: argparse.Namespace) -> int:
    from tests.fire.kills import PROJECTION, fire
    from tests.stores.contract import shorter

    begun, by = time.monotonic(), shorter() if asked.shorter else PROJECTION
    with tempfile.TemporaryDirectory() as folder:
        tally = fire(_target(asked.store, asked.how, Path(folder)), asked.kills, asked.seed, Path(folder), _say, by)
    print(", ".join(f"{count} at {name!r}" for name, count in tally.at.most_common()))
    print(
        f"{asked.store}, {asked.how}: {tally.kills} kills in {tally.trials} trials, {tally.changes} changes by clients,"
        f" {tally.arrived} rows listed as arrived, {len(tally.violations)} violations,"
        f" {time.monotonic() - begun:.0f} s"
    )
    return min(len(tally.violations), 1)


if __name__ == "__main__":
    sys.exit(main())
