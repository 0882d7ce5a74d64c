"""Albums and search against the pair part of the same audit."""

from benchmarks.ratios import Ratio, cpu_seconds
from unface import Protocol, audit
from unface.auditing import Albums, Search
from unface.data import make_identities
from unface.result.parts import Part


def run() -> list[Ratio]:
    """300 identities × 10 images × 256 dimensions, the closed-form panel, no eraser."""
    people = make_identities(300, 10, 256, rank=64, between=0.5, seed=1)
    protocol = Protocol(probe=("cosine", "ridge", "lda", "plda"), threads=1)

    def audited(*parts: Part) -> float:
        return cpu_seconds(lambda: audit(people, eraser=(), parts=parts, protocol=protocol))

    pairs = audited()
    found = []
    for part in (Albums(), Search()):
        more = audited(part) - pairs
        name = f"{part.name} (300 × 10 × 256) / the audit's pair part and its control, CPU"
        found.append(Ratio(name, more / pairs, 2, detail=f"{more:.1f} against {pairs:.1f} s"))
    return found
