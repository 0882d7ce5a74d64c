"""One rule against a release: what a synthetic set exposes must be within the limit."""

from unface.gate.policy import CopiesRule, ExposedRule, ReleaseRule, RiskRule
from unface.gate.rules import Measurement, Outcome, Verdict, amount, inconclusive, listed
from unface.result.numbers import Estimate
from unface.result.release import ReleaseResult, ViewResult
from unface.result.words import count, rate


def release_words(rule: ReleaseRule) -> tuple[str, str]:
    """What is required, and its limit."""
    if isinstance(rule, ExposedRule):
        return f"training people exposed{_by(rule.view)}", f"at most {amount(rule.exposed_max, 'share')}"
    if isinstance(rule, CopiesRule):
        what = f"copies beyond the holdout's at FAR {rate(rule.far)}{_by(rule.view)}"
        return what, f"at most {amount(rule.copies_max, 'share')}"
    pictures = {"other": "another picture", "same": "the same picture", "any": "a picture"}[rule.pictures]
    return f"retrieval risk for {pictures}, K = {rule.k}", f"at most {amount(rule.risk_max, 'share')}"


def evaluate_release(rule: ReleaseRule, result: ReleaseResult) -> Outcome:
    """The upper end of the interval decides; exact copies fail whatever the holdout is worth."""
    exact = _exact(rule, result)
    if exact is not None:
        return exact
    if not result.comparable:
        return inconclusive("training and holdout pictures differ by more than their people; give another holdout")
    if isinstance(rule, ExposedRule):
        return _exposed(rule, result)
    if isinstance(rule, CopiesRule):
        return _copies(rule, result)
    here = [one for one in result.retrieval if (one.k, one.pictures) == (rule.k, rule.pictures)]
    if not here:
        there = listed(sorted({f"K = {one.k} ({one.pictures})" for one in result.retrieval}))
        return inconclusive(f"this retrieval risk was not measured; the release has {there}")
    return bounded_by(max(here, key=lambda one: one.identities).share, rule.risk_max, k=rule.k)


def _exact(rule: ReleaseRule, result: ReleaseResult) -> Outcome | None:
    if not result.exact.found or isinstance(rule, RiskRule):
        return None
    if isinstance(rule, ExposedRule):
        number, of, limit, far = result.exact.people, result.training.people or 0, rule.exposed_max, None
    else:
        number, of, limit, far = result.exact.faces, result.synthetic.rows, rule.copies_max, rule.far
    share = number / max(of, 1)
    if share <= limit:
        return None
    faces = count(result.exact.faces, "synthetic face is", "synthetic faces are")
    measured = Measurement(share, share, share, 0.95, limit, "share", far=far)
    return Outcome(Verdict.FAILED, f"{faces} an exact copy of a training picture", measured, share)


def _copies(rule: CopiesRule, result: ReleaseResult) -> Outcome:
    view = _view(rule.view, result)
    if isinstance(view, Outcome):
        return view
    found = next((one for one in view.copies if one.far == rule.far), None)
    if found is None:
        there = listed(rate(one.far) for one in view.copies)
        return inconclusive(f"FAR {rate(rule.far)} was not measured; the release has {there}")
    if found.resolution == "coarse" and rule.coarse != "allow":
        return inconclusive(f"FAR {rate(rule.far)} is coarse; give more real people, or set coarse = 'allow'")
    return bounded_by(found.excess, rule.copies_max, far=rule.far)


def _exposed(rule: ExposedRule, result: ReleaseResult) -> Outcome:
    if rule.view is None:
        found = result.exposure
    else:
        view = _view(rule.view, result)
        if isinstance(view, Outcome):
            return view
        found = view.exposure
    outcome = bounded_by(found.exposed, rule.exposed_max)
    unseen = (found.least - 1) / found.exposed.denominator
    # Fewer than ``least`` exposed people cannot be listed, so an empty list bounds nothing below that.
    if outcome.verdict is Verdict.PASSED and unseen > rule.exposed_max:
        return inconclusive(
            f"this holdout lists nobody before {count(found.least, 'person is', 'people are')} exposed, "
            f"which is more than {amount(rule.exposed_max, 'share')}; give a larger holdout"
        )
    return outcome


def _view(name: str | None, result: ReleaseResult) -> ViewResult | Outcome:
    view = result.main if name is None else next((one for one in result.views if one.name == name), None)
    if view is None:
        return inconclusive(
            f"view '{name}' was not measured; the release has {listed(one.name for one in result.views)}"
        )
    if view.linking is not None and not view.linking.above_chance:
        return inconclusive(f"{view.name} does not link real people, so nothing follows from it")
    return view


def _by(view: str | None) -> str:
    return "" if view is None else f" by {view}"


def bounded_by(found: Estimate, limit: float, *, far: float | None = None, k: int | None = None) -> Outcome:
    """The upper end must be within the limit."""
    high = max(found.value, found.high)
    measured = Measurement(found.value, found.low, high, found.level, limit, "share", k=k, far=far)
    said = amount(limit, "share")
    if high <= limit:
        return Outcome(Verdict.PASSED, f"the upper end is within {said}", measured, high)
    why = "even the value is above" if found.value > limit else "the upper end is above"
    return Outcome(Verdict.FAILED, f"{why} {said}", measured, high)
