"""If these fail, a rule passes what is outside its limit, or one that could not be evaluated counts as a pass."""

import pytest

from tests.gate.outcomes import outcomes
from tests.kit.golden import declare, golden

(REASONS,) = declare("gate/rules.txt")


@pytest.mark.parametrize("name", list(outcomes()))
def test_a_rule_ends_with_its_verdict_and_the_number_that_decided(name: str) -> None:
    outcome = outcomes()[name]
    found = outcome.found
    assert found.verdict is outcome.verdict, found.reason
    assert "\n" not in found.rule + found.limit + found.meaning + found.reason
    if outcome.measured is not None:
        assert found.measured is not None
        assert (found.measured.value, found.measured.low, found.measured.high) == pytest.approx(outcome.measured)
    if outcome.verdict == "passed":
        assert found.measured is not None


def test_every_rule_says_what_it_limits_and_why_it_ended_as_it_was() -> None:
    said = []
    for name, outcome in outcomes().items():
        found = outcome.found
        said += [f"{name}: {found.verdict}", f"  {found.rule}: {found.limit}", f"  {found.meaning}"]
        said += [f"  {found.reason}", f"  {found.measured or '–'}", ""]
    golden("\n".join(said), REASONS)
