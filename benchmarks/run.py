"""``make bench``: every claim of speed as a ratio measured in this run, and of truth on people of known truth; exits 1
when one does not hold.

    python benchmarks/run.py [--record WHERE] [BENCHMARK …]

``--record`` keeps what was found for the pages that show it; WHERE is the machine in words, and names none.
"""

import argparse
import importlib
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

BENCHMARKS = (
    "pairs_speed",
    "release_search",
    "release_truth",
    "panel_speed",
    "album_speed",
    "audit_speed",
    "start_speed",
    "erase_speed",
    "many_identities",
    "lda_speed",
    "encode_speed",
    "encode_memory",
    "scale_speed",
    "attribute_speed",
    "prior_speed",
    "inversion_speed",
    "synth_speed",
    "frequency_speed",
    "facemae_speed",
    "pgvector_speed",
    "ray_speed",
    "trust_coverage",
    "judged",
    "coverage_populations",
    "every_picture",
)


def main() -> None:
    """Run the benchmarks named on the command line, or all; each in a process of its own.

    A process that is started inherits the peak of memory of the one that starts it, so this one stays small.
    """
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("benchmarks", nargs="*", default=BENCHMARKS)
    given.add_argument("--record", metavar="WHERE")
    asked = given.parse_args()
    if len(asked.benchmarks) == 1:
        sys.exit(1 if _broken(asked.benchmarks[0], asked.record) else 0)
    record = [] if asked.record is None else ["--record", asked.record]
    ends = [subprocess.run([sys.executable, __file__, name, *record], check=False) for name in asked.benchmarks]
    sys.exit(1 if any(end.returncode for end in ends) else 0)


def _broken(name: str, where: str | None) -> int:
    """Run one, print what it found, and keep it if asked to; how many claims did not hold."""
    from benchmarks.record import write_ratios

    ratios = importlib.import_module(f"benchmarks.{name}").run()
    for ratio in ratios:
        sign = "≥" if ratio.at_least else "≤"
        state = "holds " if ratio.holds else "BROKEN"
        print(f"{state}  {ratio.value:8.2f} {sign} {ratio.bound:<6g} {ratio.name}  ({ratio.detail})", flush=True)
    if where is not None:
        write_ratios(name, ratios, where)
    return sum(not ratio.holds for ratio in ratios)


if __name__ == "__main__":
    main()
