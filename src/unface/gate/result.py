"""What a gate says: a verdict for each rule, and one for all of them."""

from dataclasses import asdict, dataclass

from unface.auditing.words import count
from unface.gate.outcome import GRAVITY, Found, Verdict

SCHEMA = "unface.gate/1"
_EXIT = {Verdict.PASSED: 0, Verdict.FAILED: 3, Verdict.CANNOT_TELL: 4}


@dataclass(frozen=True)
class Judged:
    """One rule in words, its verdict, why, and the number that decided it."""

    rule: str
    limit: str
    verdict: Verdict
    reason: str
    space: str | None
    found: Found | None


@dataclass(frozen=True)
class GateResult:
    """All rules, and what was held against them: the audited source by name and hash."""

    source: str
    source_sha256: str
    warnings: int
    rules: tuple[Judged, ...]

    @property
    def verdict(self) -> Verdict:
        """The gravest of the rules' verdicts."""
        return max((rule.verdict for rule in self.rules), key=GRAVITY.__getitem__)

    @property
    def exit_code(self) -> int:
        """0 passed, 3 failed, 4 cannot tell."""
        return _EXIT[self.verdict]

    @property
    def summary(self) -> str:
        """The verdict in one sentence, with the exit code."""
        total = count(len(self.rules), "rule")
        failed, unclear = (self.count(verdict) for verdict in (Verdict.FAILED, Verdict.CANNOT_TELL))
        said = {
            Verdict.PASSED: f"{total} held, for the probes, rates and people of this audit",
            Verdict.FAILED: f"{failed} of {total} failed" + (f", {unclear} cannot be told" if unclear else ""),
            Verdict.CANNOT_TELL: f"{unclear} of {total} cannot be told, and what is not measured does not pass",
        }
        return f"{self.verdict}: {said[self.verdict]} (exit {self.exit_code})"

    def count(self, verdict: Verdict) -> int:
        """How many rules ended like this."""
        return sum(rule.verdict is verdict for rule in self.rules)

    def as_dict(self) -> dict[str, object]:
        """For machines."""
        said = {"schema": SCHEMA, "verdict": self.verdict, "exit_code": self.exit_code, "summary": self.summary}
        return {**said, **asdict(self)}
