"""``make bench``: every speed claim as a ratio measured in this run; exits 1 when one does not hold."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

BENCHMARKS = (
    "pairs_speed",
    "panel_speed",
    "erase_speed",
    "many_identities",
    "lda_speed",
    "encode_speed",
    "encode_memory",
    "scale_speed",
    "attribute_speed",
    "prior_speed",
    "synth_speed",
    "pgvector_speed",
    "ray_speed",
)


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    chosen = sys.argv[1:] or BENCHMARKS
    broken = 0
    for name in chosen:
        for ratio in importlib.import_module(f"benchmarks.{name}").run():
            broken += not ratio.holds
            sign = "≥" if ratio.at_least else "≤"
            state = "holds " if ratio.holds else "BROKEN"
            print(f"{state}  {ratio.value:8.2f} {sign} {ratio.bound:<6g} {ratio.name}  ({ratio.detail})", flush=True)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
