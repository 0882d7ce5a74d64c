"""Show what differs from the recorded numbers, or write it down."""

import argparse
import sys
import time

from tests.golden.compare import differences, read_rules
from tests.golden.run import Case, all_cases, fresh_run
from tests.golden.values import Damaged, read, write
from unface.models import card
from unface.models.store import cached


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="cases to run [default: all]")
    parser.add_argument("--quick", action="store_true", help="only those of 'make check'")
    parser.add_argument("--record", action="store_true", help="write the numbers down; removed ones have to be listed")
    given = parser.parse_args()
    cases = {case.name: case for case in all_cases() if case.quick or not given.quick}
    unknown = [name for name in given.cases if name not in cases]
    if unknown:
        print(f"there is no case {unknown[0]!r}; there are {', '.join(cases)}", file=sys.stderr)
        return 2
    differ = sum(_looked_at(cases[name], record=given.record) for name in given.cases or cases)
    return int(differ > 0 and not given.record)


def _looked_at(case: Case, *, record: bool) -> int:
    """Print the differences of a case, and write its values if asked; returns how many there are."""
    absent = [name for name in case.weights.split(",") if cached(card(name)) is None] if case.weights else []
    if absent:
        print(f"{case.name}: skipped, no weights of {', '.join(absent)} here")
        return 0
    began = time.process_time()
    current = fresh_run(case)
    seconds = time.process_time() - began
    try:
        recorded = read(case.name)
    except Damaged as error:
        if not record:
            print(error)
            return 1
        recorded = {}
    rules = read_rules()
    lines, _ = differences(case.name, recorded, current, case.tolerance, rules)
    print(*lines, sep="\n", end="\n" if lines else "")
    print(f"{case.name}: {len(current)} values, {len(lines)} differences, {seconds:.1f} s", flush=True)
    if record:
        missing = [line for line in lines if ": missing, was " in line]
        if missing:
            print(f"{case.name}: not recorded: list {len(missing)} missing values in renames.toml or removed.toml")
            return len(lines)
        kept = {}
        for path, value in recorded.items():
            rule = next((rule for rule in rules if rule.renamed(case.name, "/".join(path)) is not None), None)
            if rule is None:
                kept[path] = current.pop(path)
            elif rule.new is None:
                kept[path] = value
            else:
                kept[path] = current.pop(tuple(str(rule.renamed(case.name, "/".join(path))).split("/")))
        write(case.name, kept | current)
    return len(lines)


if __name__ == "__main__":
    sys.exit(main())
