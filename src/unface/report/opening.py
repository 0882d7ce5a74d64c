"""How a page opens: the verdict of a policy, what was tested, how bad it is, one picture of it, and what to do next."""

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from unface.gate import GateResult, RuleResult, Verdict, decide, make_policy
from unface.result.audit import AuditResult, Headline, Point, SpaceResult
from unface.result.certificate import CertificateResult
from unface.result.file import Finding
from unface.result.inversion import RAW, InversionResult, inverted
from unface.result.protection import PAPER_K, ProtectionResult
from unface.result.readings import Readable
from unface.result.release import ReleaseResult
from unface.result.validation import ALL_JUDGES, ValidationResult, measured
from unface.result.words import count, one_in, percent, rate

_NO_POLICY = "No policy set"
_UNDECIDED = "No limit is set, so this result neither passes nor fails."
_SET_A_LIMIT = "Set a limit: begin with the suggested policy. Choose it by what a match would cost the person."
_ADJUSTED = "context_adjusted = true"
_MOST_STEPS = 3
_MOST_ENCODERS = 4  # drawn as squares on one screen
# Limits of a suggested policy. They are places to start from; no standard names them.
_TAR, _SUCCESS, _EXPOSED, _RISK, _UTILITY = 0.01, 0.05, 0.01, 0.01, 0.9
_TERMS = {
    "TAR": "TAR: share of photo pairs of one person that the attacker matches.",
    "FAR": "FAR: share of pairs of different people that are matched by mistake.",
    "k": "k: pictures of each person that the attacker learned from.",
    "probe": "Probe: one kind of attacker.",
}


@dataclass(frozen=True)
class Grid:
    """Out of 100, how many: drawn as squares, ten in a row."""

    title: str
    share: float
    what: str
    """What each square stands for and what the filled ones are, as in "photo pairs are matched"."""
    aside: bool = False
    """Drawn in grey: a number to compare with, neither good nor bad."""

    @property
    def filled(self) -> int:
        """The share in whole squares."""
        return round(100 * self.share)

    @property
    def percent(self) -> str:
        """The share itself."""
        return percent(self.share)

    @property
    def caption(self) -> str:
        """29 of 100; "about" where the squares round, and not a bare 0 for less than half a square."""
        if self.filled == 0 and self.share > 0:
            return "fewer than 1 of 100"
        rounded = self.percent != percent(self.filled / 100)
        return f"{'about ' if rounded else ''}{self.filled} of 100"

    @property
    def label(self) -> str:
        """For those who do not see it."""
        return f"{self.title}: {self.caption} ({self.percent}) {self.what}"


@dataclass(frozen=True)
class Opening:
    """What the first screen of a page shows."""

    state: str
    """passed, failed, inconclusive, warned (no policy, and the suggested one would fail), none"""
    title: str
    text: str
    rules: tuple[RuleResult, ...]
    suggestion: str
    """A policy to begin with, as TOML; empty where one is given."""
    command: str
    """That checks it."""
    tested: str
    how_bad: str
    grids: tuple[Grid, ...]
    footnote: str
    """What the words of the picture mean."""
    steps: tuple[str, ...]

    @property
    def squares(self) -> str:
        """What the squares of all pictures are, where they are the same."""
        return self.grids[0].what if len({grid.what for grid in self.grids}) == 1 else ""

    @property
    def terms(self) -> str:
        """What the words of the rules and of the picture mean."""
        said = " ".join(rule.rule if rule.measured else f"{rule.rule} {rule.reason}" for rule in self.rules)
        meanings = [meaning for word, meaning in _TERMS.items() if re.search(rf"\b{word}\b", said)]
        return " ".join([self.footnote, *meanings]).strip()

    @property
    def brackets(self) -> str:
        """What the intervals of the rules are."""
        level = next((rule.measured.level for rule in self.rules if rule.measured), None)
        if level is None:
            return ""
        interval = f"the {100 * level:g} % interval; all of it must lie within the limit."
        return f"Limits are those of the policy. In brackets: {interval}"


def audit_opening(result: AuditResult, decision: GateResult | None) -> Opening:
    """Of an audit."""
    head = result.headline if result.valid else None
    after = None if head is None else released_space(result, head, decision)
    unknown, _, erased = (result.source.encoder or "").partition("unknown encoder after ")
    encoder = f"{unknown} " if unknown else ""
    released = f" erased by {erased}," if erased else ""
    if result.erased_by is not None and " after " not in encoder:
        released = f" {result.erased_by.name},"
    tested = (
        f"Tested: {encoder}vectors{released} of {_photos(result)} ({result.source.name}). Can somebody who holds these "
        "vectors find out which photos show the same person?"
    )
    grids: list[Grid] = []
    if head is None or head.raw.tar is None:
        how_bad = "No number of this audit can be used." if not result.valid else NOTHING
    else:
        how_bad = matched_words(head, after)
        what = f"photo pairs of one person are matched, at {one_in(head.far)}"
        alone = "The vectors as they are" if result.erased_by is None else "After erasure"
        grids.append(Grid("Before erasure" if after else alone, head.raw.tar.value, what))
        point = None if after is None else head.of(after)
        if point is not None and point.tar is not None:
            assert after is not None
            named = f" ({after.name})" if len(result.erased) > 1 else ""
            grids.append(Grid(f"After erasure{named}", point.tar.value, what))
    suggestion = "" if head is None else _audit_policy(result, head, after)
    steps = _audit_steps(result, head, after, decision)
    footnote = "" if head is None else _VECTOR + _chosen(result, after, decision) + _false_match(head.far)
    return _opening(result, decision, suggestion, "audit.json", (tested, how_bad), grids, footnote, steps)


def _chosen(result: AuditResult, after: SpaceResult | None, decision: GateResult | None) -> str:
    """What erasure is, and why this eraser is drawn where there are several."""
    if after is None:
        return ""
    if len(result.erased) == 1:
        return _ERASURE
    named = decision is not None and any(rule.space == after.name for rule in decision.rules)
    why = "the policy is about it" if named else "it left least on the people set aside for choosing"
    return f"{_ERASURE}Shown is {after.name}, one of {len(result.erased)} erasers: {why}. "


def encoders_opening(audits: Mapping[str, AuditResult], decisions: Mapping[str, GateResult]) -> Opening:
    """Of several encoders on the same pictures: the gravest verdict, and a picture of each."""
    each = {name: audit_opening(result, decisions.get(name)) for name, result in audits.items()}
    heads = {name: result.headline for name, result in audits.items() if result.valid}
    found = {name: head.raw.tar.value for name, head in heads.items() if head and head.raw.tar}
    worst = max(found, key=found.__getitem__, default=next(iter(audits)))
    gravest = max(decisions, key=lambda name: decisions[name].verdict.gravity, default=worst)
    tested = (
        f"Tested: {len(audits)} encoders on the same photos, {_photos(audits[worst])}. Can somebody who holds the "
        "vectors of one of them find out which photos show the same person?"
    )
    how_bad, ranked = each[worst].how_bad, sorted(found, key=found.__getitem__, reverse=True)
    if len(ranked) > 1:
        others = ", ".join(f"{name} {percent(found[name])}" for name in ranked[1:])
        how_bad = f"{worst} reveals the most. {how_bad} Other encoders, before erasure: {others}."
    grids = [
        replace(grid, title=f"{name}, {at}")
        for name in ranked
        for at, grid in zip(("before", "after"), each[name].grids, strict=False)
    ]
    rules = [(name, rule) for name, one in each.items() for rule in one.rules]
    text, first = _UNDECIDED, "Set a limit: each report below suggests a policy."
    once = len({(rule.meaning, rule.limit) for _, rule in rules}) == 1  # said above the list, not in each line
    if decisions:
        held = sum(one.verdict is Verdict.PASSED for one in decisions.values())
        text, first = f"{held} of {count(len(decisions), 'encoder')} passed.", f"{gravest}: {each[gravest].steps[0]}"
        if once:
            text += f" Limit: {rules[0][1].meaning}, {rules[0][1].limit}."
        failed = [name for name, one in decisions.items() if one.verdict is Verdict.FAILED]
        if len(failed) > 1:
            first = f"Do not release vectors of {', '.join(failed[:-1])} or {failed[-1]}: each fails the policy."
    return replace(
        each[gravest],
        text=text,
        rules=tuple(
            replace(rule, rule=name, meaning=name)
            if once
            else replace(rule, rule=f"{name}: {rule.rule}", meaning=f"{name}: {rule.meaning}")
            for name, rule in rules
        ),
        suggestion="",
        tested=tested,
        how_bad=how_bad,
        grids=tuple(grids) if len(audits) <= _MOST_ENCODERS else (),
        footnote=each[worst].footnote,
        steps=(first, "Choose an encoder, open its report below, and follow what it says to do next."),
    )


def _photos(result: AuditResult) -> str:
    return f"{count(result.curated.rows, 'photo')} of {count(result.curated.identities, 'person', 'people')}"


def _false_match(far: float | None) -> str:
    """What "at one false match in 10,000" means."""
    if far is None:
        return ""
    of = f"1 of {round(1 / far):,} pairs of different people"
    return (
        f"{one_in(far).capitalize()} (FAR {rate(far)}): the threshold is set so that {of} is matched by mistake. "
        "Do not compare numbers at different rates."
    )


NOTHING = "Nothing could be measured at the rates asked for."


def matched_words(head: Headline, after: SpaceResult | None = None) -> str:
    """How often an attacker matches two photos of one stranger, as anybody would say it."""
    raw, at = head.raw.tar, one_in(head.far)
    assert raw is not None
    if not head.raw.above_chance:
        often = f"An attacker matches two photos of one stranger no more often than by chance, at {at}"
        return f"{often} ({percent(raw.value)}, at most {percent(raw.high)})."
    often = f"Given two photos of the same stranger, an attacker matches them {percent(raw.value)} of the time, at {at}"
    point = None if after is None else head.of(after)
    if point is None or point.tar is None:
        return f"{often}."
    left = f"After erasure: {percent(point.tar.value)}"
    left += "" if point.above_chance else ", no more often than by chance"
    return f"{often}. {left}.{_apart_words(head.raw, point)}"


def _apart_words(raw: Point, point: Point) -> str:
    """The same without pairs of one shoot, which say more of the shoot than of the person."""
    before, after = raw.context_adjusted, point.context_adjusted
    if before is None or before.apart is None or after is None or after.apart is None:
        return ""
    text = f" Of pairs from different groups ('{before.context}'): {percent(before.apart.value)}, after erasure"
    return f"{text} {percent(after.apart.value)}."


def released_space(result: AuditResult, head: Headline, decision: GateResult | None) -> SpaceResult | None:
    """The eraser to show: the one that the policy is about, or the one that did best on calibrate identities."""
    left = [(space, point) for space in result.erased if (point := head.of(space)) is not None and point.tar]
    named = {rule.space for rule in decision.rules} if decision else set()
    chosen = [one for one in left if one[0].name in named] or left
    return min(chosen, key=lambda one: one[1].calibrate_tar or 0.0)[0] if chosen else None


def _audit_policy(result: AuditResult, head: Headline, after: SpaceResult | None) -> str:
    limit = f"At most {percent(_TAR)} of photo pairs of one person"
    rules = {f"# {limit} may be matched, at {one_in(head.far)}.": ""}
    adjusted = (head.of(after or result.raw) or head.raw).context_adjusted
    if adjusted is not None and adjusted.apart is not None:
        # Pairs of one shoot are linked by the shoot, however much of the person is removed.
        rules = {f"# {limit}, from different groups, may be matched, at {one_in(head.far)}.": "different_groups = true"}
        if adjusted.separable:
            rules["# The same with pairs weighted to share a group as often as photos of strangers do."] = _ADJUSTED
    judged = [space.worst_at(k, head.far) for space in (result.raw, after) if space for k in result.protocol.k]
    coarse = any(point is not None and point.resolution == "coarse" for point in judged)
    lines = []
    for said, key in rules.items():
        lines += [said, "[[require]]", f"far = {rate(head.far)}", f"tar_max = {_TAR:g}", *([key] if key else [])]
        if after is not None and len(result.erased) > 1:
            lines.append(f"space = {_toml(after.name)}")
        if coarse:
            lines.append('coarse = "allow"  # few people for this rate')
    if any(rules.values()):
        lines.append("# Pairs of one group are not limited here; a rule without these keys counts them too.")
    return "\n".join(lines)


def _audit_steps(
    result: AuditResult, head: Headline | None, after: SpaceResult | None, decision: GateResult | None
) -> list[str]:
    if not result.valid:
        return [*_broken(result.findings), "Run the audit again. Do not quote any number of this page."]
    steps = _decided(decision, f"release {_refused(decision)}")
    point = None if head is None or after is None else head.of(after)
    passed = decision is not None and decision.verdict is Verdict.PASSED
    if head is None:
        steps.append("Add people, or ask for a higher rate with --far.")
    elif after is None and head.raw.above_chance and not passed:
        more = (
            "See what an eraser would leave: audit with --eraser isp."
            if result.erased_by is None
            else "To remove more, fit a higher --rank on the raw vectors."
        )
        steps.append(f"Treat these vectors as personal data. {more}")
    elif point is not None and point.above_chance and not passed:
        adjusted = point.context_adjusted
        apart = None if adjusted is None else adjusted.apart
        within = apart is not None and apart.high <= _TAR
        more = "Remove more and audit again (options --rank, --target), or do not release them."
        if adjusted is not None and within:
            more = (
                f"Nearly all pairs that are still matched share their '{adjusted.context}': decide whether those count."
            )
        steps.append(f"Do not call the erased vectors anonymous. {more}")
    steps += _warnings(result.findings)[:1]
    if after is not None and not any(one.is_usefulness for one in after.utility):
        steps.append("Find out what the erased vectors are still good for: audit with --utility.")
    return steps


def validation_opening(result: ValidationResult, decision: GateResult | None, advice: Sequence[str]) -> Opening:
    """Of a validation."""
    people = count(result.enrolled.people, "enrolled person", "enrolled people")
    sees = "decisions" if result.target.decisions_only else "scores"
    tested = (
        f"Tested: {result.target.name}, a face system, with {result.asked.counted:,} comparisons of faces with "
        f"{people}. Can somebody who sees only its {sees} rebuild the face template of an enrolled person?"
    )
    headline = result.headline if result.valid else None
    share = None if headline is None else measured(headline.point)
    grids, suggestion, how_bad = [], "", result.verdict
    if headline is not None and share is not None:
        point = headline.point
        pictures = "other photos of the person" if point.other is not None else "the enrolled photo"
        what = f"comparisons with {pictures} succeed, at {one_in(point.far)}"
        grids.append(Grid(f"Attacker, after {count(point.queries, 'question')}", share.value, what))
        ceiling = next((one for one in result.ceiling if (one.far, one.judge) == (point.far, ALL_JUDGES)), None)
        if ceiling is not None and point.other is not None:
            grids.append(Grid("For comparison: a real second photo", ceiling.other.value, what, aside=True))
            how_bad += _beside_a_photo(share.value, ceiling.other.value)
        lines = [
            f"# At most {percent(_SUCCESS)} of the comparisons may succeed, at {one_in(point.far)}.",
            "[[require]]",
            f"success_max = {_SUCCESS:g}",
            f"far = {rate(point.far)}",
            f"queries = {point.queries}",
        ]
        if point.other is None:
            lines.append('pictures = "same"')
        suggestion = "\n".join(lines)
    again = "Then validate again. Do not quote any number of this page."
    steps = advice if result.valid else [*_broken(result.findings), again]
    steps = [*_decided(decision, "put this system into service as it is"), *steps]
    footnote = _TEMPLATE + _false_match(headline.point.far if headline and grids else None)
    return _opening(result, decision, suggestion, "validation.json", (tested, how_bad), grids, footnote, steps)


def _beside_a_photo(attacker: float, photo: float) -> str:
    if percent(attacker) == percent(photo):
        return " A real second photo matches just as often."
    return f" A real second photo matches {percent(photo)} of the time."


_VECTOR = (
    "Vector: the numbers that an encoder stores for a photo. Matching: saying that two photos show the same person; it "
    "does not need the name. "
)
_ERASURE = "Erasure: removes from the vectors a part of what tells people apart. "
_TEMPLATE = (
    "Face template: the numbers by which a face system knows a person. Question: one comparison of a face with an "
    "enrolled person. "
)


def release_opening(result: ReleaseResult, decision: GateResult | None, advice: Sequence[str]) -> Opening:
    """Of a synthetic set."""
    people = count(result.training.people or 0, "person", "people")
    tested = (
        f"Tested: {result.synthetic.name}, {count(result.synthetic.rows, 'synthetic face')} made from photos of "
        f"{people}. Do they show any of these people? For comparison: "
        f"{count(result.holdout.people or 0, 'person', 'people')} the generator never saw."
    )
    exposed = result.exposure.exposed
    grids, suggestion = [], ""
    if result.valid and exposed is not None:
        grids.append(Grid("Exposed people", exposed.value, "training people are exposed by a synthetic face"))
        suggestion = "\n".join(
            [
                f"# At most {percent(_EXPOSED)} of the training people may be exposed.",
                "[[require]]",
                f"exposed_max = {_EXPOSED:g}",
            ]
        )
    steps = [*_decided(decision, "publish this set"), *advice]
    footnote = "Exposed: a synthetic face is so near to the person that chance does not explain it."
    return _opening(result, decision, suggestion, "release.json", (tested, result.verdict), grids, footnote, steps)


def protection_opening(result: ProtectionResult, decision: GateResult | None, advice: Sequence[str]) -> Opening:
    """Of a protected face set."""
    people = count(result.release.people, "person", "people")
    tested = (
        f"Tested: {result.release.name}, altered photos of {people}. Does it hide them from "
        f"{count(len(result.audited.attackers), 'attacker')} with real photos, and can a face recogniser still learn "
        "from it?"
    )
    grids, suggestion = [], ""
    if result.valid:
        for method, title in ((result.audited, "This release"), (result.originals, "For comparison: the originals")):
            worst = None if method is None else method.worst
            if worst is not None and worst.other is not None:
                what = f"faces are linked to another picture of their person, at {one_in(worst.far)}"
                grids.append(Grid(title, worst.other.value, what, aside=method is not result.audited))
        lines = []
        found = None if result.audited.worst is None else result.audited.worst.risk(PAPER_K, "other")
        if found is not None:
            limit = max(_RISK, math.ceil(200 * found.chance) / 100)  # a limit below chance could never be kept
            lines += [
                f"# The strongest attacker may find the person of at most {percent(limit)} of the real pictures; a",
                f"# guess finds {percent(found.chance)}.",
                "[[require]]",
                f"risk_max = {limit:g}",
                f"k = {PAPER_K}",
            ]
        if result.audited.utility:
            lines += [
                f"# A recogniser trained on the release verifies at least {percent(_UTILITY)} of the pairs.",
                "[[require]]",
                f"utility_min = {_UTILITY:g}",
            ]
        suggestion = "\n".join(lines)
    short = _yardstick(result, decision)
    refused = "count on this set for training" + " yet" * bool(short) if _useless(decision) else "publish this set"
    steps = [*short, *_decided(decision, refused), *_broken(result.findings), *advice]
    sentences = (tested, result.verdict)
    footnote = "Linked: the attacker says that a released face and a real photo show one person. "
    footnote += _false_match(next((one.far for one in result.audited.attackers), None) if grids else None)
    return _opening(result, decision, suggestion, "protection.json", sentences, grids, footnote, steps)


def _yardstick(result: ProtectionResult, decision: GateResult | None) -> list[str]:
    """Where a recogniser that learns from the originals misses the limit too, the test is too small, not the set."""
    found = None if result.originals is None else result.originals.accuracy
    rules = decision.rules if decision is not None and _useless(decision) else ()
    limits = [rule.measured.limit for rule in rules if rule.measured and rule.verdict is Verdict.FAILED]
    if found is None or not limits or found.value >= max(limits):
        return []
    return [
        f"Train on more pictures, or for longer: the originals miss the limit too ({percent(found.value)}), so this "
        "test cannot tell what the set is good for."
    ]


def inversion_opening(result: InversionResult, decision: GateResult | None) -> Opening:
    """Of an inversion."""
    tested = (
        f"Tested: stored {result.encoder.name} vectors of {count(result.people.targets, 'person', 'people')}, one "
        "each. Can somebody who steals them turn them back into faces?"
    )
    headline = result.headline if result.valid else None
    far = None if headline is None else headline.point.far
    grids, suggestion, steps = [], "", _decided(decision, f"release {_refused(decision)}")
    how_bad = result.verdict
    if headline is not None and far is not None:
        above = inverted(headline.point).low > max(headline.point.derangement.value, far)
        # Where nothing converged, few filled squares would look like safety.
        drawn = above or not headline.unconverged
        others = [space.name for space in result.spaces if space.name != headline.space]
        made = "faces" if headline.gives_pictures else "face templates"
        what = f"{made} made from a vector match the person, at {one_in(far)}"
        spaces = {headline.space: "Before erasure" if others else "The vectors as they are"}
        spaces |= {others[0]: f"After erasure ({others[0]})"} if others else {}
        for name, title in spaces.items():
            worst = result.worst(far, name)
            if worst is not None and drawn:
                grids.append(Grid(title, inverted(worst.point).value, what))
        if above and len(grids) > 1:
            how_bad += f" After erasure: {percent(grids[1].share)}."
        if above:
            how_bad += f" By chance: {percent(headline.point.derangement.value)}."
        if above and (decision is None or decision.verdict is not Verdict.PASSED):
            if len(grids) > 1 and grids[1].share > _SUCCESS and not _about(decision, others[0]):
                steps.append(f"Do not count on erasure alone: {others[0]} leaves {percent(grids[1].share)}.")
            both = ", erased or not," if len(grids) > 1 else ""
            steps.append(
                f"Protect the stored vectors{both} like photos of faces: encrypt them and limit who reads them."
            )
            steps += [] if others else ["See what an eraser would leave: invert with --projection."]
        suggestion = "\n".join(
            [
                f"# At most {percent(_SUCCESS)} of the vectors may be turned into a matching face, at {one_in(far)}.",
                "[[require]]",
                f"inverted_max = {_SUCCESS:g}",
                f"far = {rate(far)}",
                f"space = {_toml(others[0] if others else headline.space)}",
            ]
        )
    steps += _broken(result.findings)
    steps += _warnings(result.findings)[:2]
    footnote = "Vector: the numbers that an encoder stores for a photo. "
    if headline is not None and not headline.gives_pictures:
        footnote += "Face template: the numbers by which a face system knows a person. "
    footnote += _ERASURE if len(grids) > 1 else ""
    footnote += _false_match(far if grids else None)
    return _opening(result, decision, suggestion, "inversion.json", (tested, how_bad), grids, footnote, steps)


def certificate_opening(result: CertificateResult, decision: GateResult | None) -> Opening:
    """Of a front end."""
    tested = (
        f"Tested: {result.subject}, which sends numbers to a server in place of a photo of "
        f"{result.size}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}{result.size} pixels. Can the receiver "
        "compute the photo back?"
    )
    if result.pictures is not None:
        photos, people = count(result.pictures.pictures, "photo"), count(result.pictures.people, "person", "people")
        tested += f" Tried with {photos} of {people}."
    identity = None if result.pictures is None else result.pictures.identity
    grids, suggestion, steps = [], "", _decided(decision, "call this front end private")
    if identity is not None:
        what = f"pictures are linked to another photo of the same person, at {one_in(identity.far)}"
        grids.append(Grid("Photos computed back", identity.reconstructions.value, what))
        grids.append(Grid("For comparison: the originals", identity.originals.value, what, aside=True))
        suggestion = "\n".join(
            [
                f"# At most {percent(_SUCCESS)} of what is computed back may be recognised, at {one_in(identity.far)}.",
                "[[require]]",
                f"recognised_max = {_SUCCESS:g}",
            ]
        )
    else:
        steps = ["Find out whether people are recognised in what comes back: certify with --pictures and --encoder."]
    if result.decision == "hides almost nothing":
        steps.append(
            "Treat what this front end sends like the picture itself: send it only where the photo may go, and do not "
            "store it."
        )
    footnote = (
        "Front end: the part of a face system that sees the photo. Computed back: by least squares, which knows "
        "nothing about faces. " + _false_match(identity.far if identity else None)
    )
    opened = _opening(
        result, decision, suggestion, "certificate.json", (tested, result.verdict), grids, footnote, steps
    )
    if opened.state == "none" and result.decision == "hides almost nothing":
        return replace(opened, state="warned", title=f"{_NO_POLICY} (but it {result.decision})")
    return opened


def _opening(
    result: AuditResult | ValidationResult | ReleaseResult | InversionResult | CertificateResult | ProtectionResult,
    decision: GateResult | None,
    suggestion: str,
    file: str,
    sentences: tuple[str, str],
    grids: list[Grid],
    footnote: str,
    steps: Sequence[str],
) -> Opening:
    rules: tuple[RuleResult, ...] = ()
    if decision is not None:
        state, title, text = decision.verdict.value, decision.verdict.capitalize(), f"{decision.outcome}."
        title += _failed(decision)
        rules = tuple(sorted(decision.rules, key=lambda rule: -rule.verdict.gravity))
        text, suggestion = text[:1].upper() + text[1:], ""
    elif not result.valid:
        state, title, text = "inconclusive", "Inconclusive", "These numbers cannot be used. The findings say why."
    else:
        would, why = _would(result, suggestion)
        state = "none" if would in ("", "would pass the suggested one") else "warned"
        title = f"{_NO_POLICY} ({would})" if would else _NO_POLICY
        text = f"{_UNDECIDED} {why}".strip()
    command = f"unface gate {file} --policy policy.toml"
    tested, how_bad = sentences
    todo = [step for step in steps if suggestion or step != _SET_A_LIMIT][:_MOST_STEPS]
    return Opening(state, title, text, rules, suggestion, command, tested, how_bad, tuple(grids), footnote, tuple(todo))


def _about(decision: GateResult | None, space: str) -> bool:
    return decision is not None and any(rule.space == space for rule in decision.rules)


def _would(result: Readable, suggestion: str) -> tuple[str, str]:
    """What the suggested policy would decide, and a sentence with its numbers; empty where none is suggested."""
    if not suggestion:
        return "", ""
    rules = decide(result, make_policy(tomllib.loads(suggestion), lambda _, key: key)).rules
    rule = max(rules, key=lambda one: one.verdict.gravity)
    if rule.measured is None or rule.verdict is Verdict.INCONCLUSIVE:
        return "too little data for the suggested one", f"The suggested policy could not be evaluated: {rule.reason}."
    would = "pass" if rule.verdict is Verdict.PASSED else "fail"
    found = f"{rule.limit} allowed, {rule.measured} measured ({rule.meaning})"
    within = rule.limit.startswith("at most") and rule.measured.value <= rule.measured.limit
    wide = " The interval reaches beyond the limit; more people would narrow it." if would == "fail" and within else ""
    return f"would {would} the suggested one", f"It would {would} the suggested limit: {found}.{wide}"


def _decided(decision: GateResult | None, refused: str) -> list[str]:
    """What the verdict itself asks for; ``refused`` is what not to do where it did not pass."""
    if decision is None:
        return [_SET_A_LIMIT]
    if decision.verdict is Verdict.PASSED:
        return ["Keep this result with the release, and check it again after each change of data, model or settings."]
    first = next(rule for rule in decision.rules if rule.verdict is decision.verdict)
    if decision.verdict is Verdict.FAILED:
        found = f"measured {first.measured}, limit {first.limit}" if first.measured else first.reason
        wide = [" The interval includes the limit: measure more people to decide."] if _undecided(first) else []
        return [f"Do not {refused}: {found}.{''.join(wide)}"]
    return [f"Do not {refused} yet: {first.reason}."]


def _undecided(rule: RuleResult) -> bool:
    """Whether a rule failed only because its interval is wide: the limit lies in it."""
    found = rule.measured
    return found is not None and found.low <= found.limit <= found.high


def _failed(decision: GateResult) -> str:
    """What kind of failure it is, where the word alone would say too much."""
    failed = [rule for rule in decision.rules if rule.verdict is Verdict.FAILED]
    if failed and all(_undecided(rule) for rule in failed):
        return ": not shown to be within the limit"
    if _useless(decision):
        return " on usefulness"
    return ""


def _useless(decision: GateResult | None) -> bool:
    """Whether every rule that failed asks for a least usefulness, and none for privacy."""
    failed = [] if decision is None else [rule for rule in decision.rules if rule.verdict is Verdict.FAILED]
    return bool(failed) and all(rule.limit.startswith("at least") for rule in failed)


def _refused(decision: GateResult | None) -> str:
    """The vectors that the gravest rule is about."""
    first = next((one for one in decision.rules if one.verdict is decision.verdict), None) if decision else None
    if first is None or first.space is None:
        return "these vectors"
    return "the raw vectors" if first.space == RAW else f"the vectors erased by {first.space}"


def _broken(findings: Sequence[Finding]) -> list[str]:
    broken = [one for one in findings if one.severity == "invalid"]
    return [f"Find out why the check '{one.about}' failed: {one.text.rstrip('.')}." for one in broken[:1]]


def _warnings(findings: Sequence[Finding]) -> list[str]:
    warned = [one for one in findings if one.severity == "warning"]
    return [f"Look into the warning about {one.about}: {one.text.rstrip('.')}." for one in warned]


def _toml(text: str) -> str:
    """A basic string: a name may come from a file."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\u{ord(one):04X}" for one in escaped) + '"'
