"""The conclusion of an audit in sentences: how much the raw vectors reveal, and what the best eraser leaves of it."""

from unface.result.audit import AuditResult, ContextAdjusted, Headline, Point, SpaceResult
from unface.result.numbers import Kept, Share
from unface.result.parts import parts_of
from unface.result.words import count, interval, one_in, percent, times

# What a reader cares for most, first; the neighbours are always there.
_PREFERRED = {
    "knn": "Accuracy of k-NN",
    "linear": "Accuracy of a linear probe",
    "copy recall@1": "Copy recall@1",
    "copy µAP": "Copy µAP",
}
CONTROL_NAMES = {"random": "a random subspace", "pca": "label-free PCA"}


def verdict(result: AuditResult) -> str:
    """The worst case at the headline's k and rate, raw and after erasure."""
    broken = [finding for finding in result.findings if finding.severity == "invalid"]
    if broken:
        return f"The audit is invalid: {broken[0].text}"
    head = result.headline
    if head is None or head.raw.tar is None or head.raw.chance is None or head.raw.times_chance is None:
        return "Nothing could be measured at the rates asked for."
    tar = head.raw.tar
    matched = (
        f"Given two photos of the same stranger, an attacker matches them {percent(tar.value)} "
        f"{interval(tar.low, tar.high)} of the time, at {one_in(head.far)}"
    )
    coarse = "Few people set the threshold for this rate, so the number is coarse." if _coarse(head.raw) else ""
    if head.raw.above_chance:
        sentences = [f"{matched}: {times(head.raw.times_chance)} chance.", _over_people(head.raw)]
        sentences += [_attacker(result, head.raw), coarse]
        sentences += [_after(result, head), _apart(result, head), *(part.verdict(result) for part in parts_of(result))]
    else:
        chance = f"no measurable difference from chance, which is {percent(head.raw.chance)}"
        sentences = [f"{matched}: {chance}.", _attacker(result, head.raw), coarse]
    return " ".join(sentence for sentence in sentences if sentence)


def eraser_title(space: SpaceResult) -> str:
    """ISP, LEACE; as people write them."""
    return space.name.upper() if space.name in ("isp", "leace", "sal", "inlp", "rlace") else space.name


def kept_words(kept: Kept) -> str:
    """k-NN accuracy before and after, as one sentence."""
    if not kept.is_usefulness:
        share = f"{percent(kept.retained.value)} {interval(kept.retained.low, kept.retained.high)}"
        return f"{share} of the nearest audited pictures of other people stay the same."
    measure = _PREFERRED.get(kept.measure, kept.measure)
    return f"{measure} on {kept.on}: {percent(kept.raw.value)} → {percent(kept.erased.value)}."


def best_eraser(result: AuditResult, head: Headline) -> SpaceResult | None:
    """The eraser that leaves least on calibrate identities at the headline's k and rate."""
    least = head.least(result.spaces)
    return None if least is None else least[0]


def leaks_more(space: SpaceResult, head: Headline) -> Point | None:
    """The worst case of a space at the headline's rate, if it lies at another k than the headline's."""
    at = [point for point in space.points if point.worst and point.tar and point.far == head.far]
    worst = max(at, key=lambda point: point.calibrate_tar or 0.0, default=None)
    return None if worst is None or worst.k == head.k else worst


def _attacker(result: AuditResult, point: Point) -> str:
    """What the attacker learned from: comparing vectors as they are takes no pictures of anybody."""
    if point.probe == "cosine":
        return "The attacker only compares the vectors, without any training."
    learned = count(point.k, "picture")
    if point.k == result.curated.most:
        learned = f"all {point.k} pictures" if result.curated.equal else "all pictures"
    return f"The attacker was trained on {learned} of each of a group of other people."


def _after(result: AuditResult, head: Headline) -> str:
    """After the eraser that does best on calibrate identities: what is left, what controls leave, what it costs."""
    space = best_eraser(result, head)
    if space is None:
        return ""
    point, erasure = head.of(space), space.erasure
    assert erasure is not None
    assert point is not None
    assert point.tar is not None
    among = f", the best of {len(result.erased)} erasers" if len(result.erased) > 1 else ""
    removed = "removed from faces" if erasure.gate else "removed"
    sentences = [
        f"After {eraser_title(space)}{among} ({erasure.rank} of {erasure.dim} dimensions {removed}): "
        f"{percent(point.tar.value)} {interval(point.tar.low, point.tar.high)}, {times(point.times_chance or 0)} chance"
    ]
    more = leaks_more(space, head)
    if more is not None and more.tar is not None:
        sentences[0] += f" ({percent(more.tar.value)} with {count(more.k, 'picture')} each)"
    controls = [
        f"{percent(worst.tar.value)} after {CONTROL_NAMES[other.erasure.method]}"
        for other in result.spaces
        if other.erasure and other.erasure.control and other.erasure.rank == erasure.rank
        for worst in [head.of(other)]
        if worst and worst.tar
    ]
    sentences[0] += " (coarse)." if _coarse(point) and not _coarse(head.raw) else "."
    sentences.append(_over_people(point))
    if controls:
        sentences.append(f"Controls of equal rank: {', '.join(controls)}.")
    if space.utility:
        sentences.append(kept_words(_preferred(space.utility)))
    return " ".join(sentence for sentence in sentences if sentence)


def _coarse(point: Point) -> bool:
    return point.resolution == "coarse"


def _over_people(point: Point) -> str:
    """Where people with many pictures are linked more or less often than others, pairs alone do not tell."""
    if not point.differs_over_people or point.tar_over_people is None:
        return ""
    return f"Averaged over people instead of pairs: {percent(point.tar_over_people)}."


def _apart(result: AuditResult, head: Headline) -> str:
    """The same without pairs of one group, such as one photo shoot: alone, and weighted as strangers share it."""
    space = best_eraser(result, head)
    before, point = head.raw.context_adjusted, None if space is None else head.of(space)
    after = None if point is None else point.context_adjusted
    if before is None or before.apart is None:
        return ""
    text = (
        f"Of photo pairs from different groups ('{before.context}'): {_less_of(before.apart, after and after.apart)}."
    )
    if before.separable:
        text += f" Weighted to share a group as often as photos of strangers do: {_less_of(before, after)}."
    return text


def _less_of(before: Share | ContextAdjusted, after: Share | ContextAdjusted | None) -> str:
    words = [
        f"{percent(one.value)} {interval(one.low, one.high)}"
        for one in (before, after)
        if one is not None and one.value is not None
    ]
    return " → ".join(words)


def _preferred(utility: list[Kept]) -> Kept:
    for measure in _PREFERRED:
        for kept in utility:
            if kept.measure == measure:
                return kept
    return utility[0]
