"""What a reader must know before using the numbers, and the verdict in one sentence."""

from collections.abc import Sequence

from unface.auditing.aftermath import after_sentence, erasure_findings
from unface.auditing.schema import Controls, Finding, Point, SpaceResult
from unface.auditing.words import count, interval, one_in, percent, rate, times
from unface.metrics import wilson

# Of many numbers some lie above chance by luck; one that is to speak for all of them must be this certain.
_CERTAIN = 0.999
# Duplicates are told as a warning where they make up this share of the mated pairs.
_MANY_DUPLICATES = 0.001


def verdict(spaces: list[SpaceResult], findings: list[Finding]) -> str:
    """The worst case at the lowest resolved rate in words: as it is, and what erasure leaves of it."""
    broken = [finding for finding in findings if finding.severity == "invalid"]
    if broken:
        return f"The audit is invalid: {broken[0].text}"
    head = headline(spaces[0].points)
    if head is None or head.tar is None or head.chance is None or head.times_chance is None:
        return "Nothing could be measured at the rates asked for."
    said = (
        f"{_attacker(head)} can link {percent(head.tar.value)} "
        f"{interval(head.tar.low, head.tar.high)} of photo pairs of one person at {one_in(head.far)}"
    )
    coarse = " Calibrate identities are few for this rate; take it as coarse." if head.resolution == "coarse" else ""
    if not _above_chance(head):
        return f"{said}: this cannot be told from chance, which is {percent(head.chance)}.{coarse}"
    return f"{said}: {times(head.times_chance)} chance.{coarse} {after_sentence(spaces, head)}".rstrip()


def _attacker(point: Point) -> str:
    """Who does it: comparing vectors as they are takes no pictures of anybody."""
    if point.probe == "cosine":
        return "Anyone who can compare the vectors, having learned nothing,"
    return f"An attacker with {count(point.k, 'picture')} of each of some other people"


def headline(points: list[Point]) -> Point | None:
    """The worst case at the lowest resolved rate, at the k that is worst on calibrate; coarse if none is resolved."""
    for resolution in ("resolved", "coarse"):
        at = [point for point in points if point.worst and point.tar and point.resolution == resolution]
        if at:
            lowest = min(point.far for point in at)
            return max((point for point in at if point.far == lowest), key=lambda p: p.calibrate_tar or 0)
    return None


def find(
    spaces: list[SpaceResult], controls: Controls, dropped_ks: list[int], images: int, more: Sequence[Finding] = ()
) -> list[Finding]:
    """Everything worth saying, and ``more`` that others found, the gravest first."""
    points = spaces[0].points
    found = [*_control(controls), *_labels(points), *_duplicates(controls), *_context(points), *_rates(points)]
    found += [*erasure_findings(spaces, headline(points)), *more]
    if dropped_ks:
        listed = ", ".join(str(k) for k in dropped_ks)
        text = f"k = {listed} was left out: {images} images for each identity leave no pair to compare"
        found.append(_note("k", text))
    order = {"invalid": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda finding: order[finding.severity])


def _control(controls: Controls) -> list[Finding]:
    failed = [point for point in controls.shuffled_identities if not point.passed]
    if not failed:
        return []
    first = failed[0]
    return [
        Finding(
            severity="invalid",
            about="shuffled identities",
            text=(
                f"with identities shuffled among images {first.probe} still links {percent(first.tar.value)} "
                f"{interval(first.tar.low, first.tar.high)} of pairs where chance is {percent(first.chance)}; "
                "scores depend on something other than identity, so no number here can be trusted"
            ),
        )
    ]


def _labels(points: list[Point]) -> list[Finding]:
    head = headline(points)
    if head is None or _above_chance(head) or any(_surely_above_chance(point) for point in points):
        return []
    return [
        _warning(
            "labels",
            "no probe does better than chance at any rate: either these vectors hold no identity that the panel can "
            "read, or the identity column is wrong (shuffled, or not about people); check it before calling this safe",
        )
    ]


def _above_chance(point: Point) -> bool:
    return point.tar is not None and point.chance is not None and point.tar.low > max(point.chance, point.far)


def _surely_above_chance(point: Point) -> bool:
    """Also beside the other numbers, and also if the achieved FAR, itself a count, came out low by luck."""
    if point.tar is None or point.chance is None:
        return False
    worth = point.tar.effective_n
    return wilson(point.tar.value * worth, worth, _CERTAIN).low > max(point.chance, point.far)


def _duplicates(controls: Controls) -> list[Finding]:
    found = []
    duplicates = controls.near_duplicates
    if duplicates.across_identities:
        pairs = count(duplicates.across_identities, "pair")
        text = f"{pairs} of nearly the same vector (cosine ≥ {duplicates.cosine}) under different identities"
        found.append(_warning("near-duplicates", f"{text}: one picture under two names raises every threshold"))
    if controls.lookalike_identities:
        pairs = count(controls.lookalike_identities, "pair")
        text = f"{pairs} of identities resemble each other as much as themselves: one person under two names?"
        found.append(_warning("identities", f"{text} Such pairs count as impostors and hide leakage"))
    if controls.stray_pictures:
        some = count(controls.stray_pictures, "picture")
        text = f"{some} under one identity, but like another's own: under the wrong name?"
        found.append(_warning("identities", f"{text} A few such pictures set the threshold"))
    if duplicates.within_identities:
        text = f"{count(duplicates.within_identities, 'pair')} of nearly the same vector within one identity"
        if duplicates.within_identities >= _MANY_DUPLICATES * duplicates.mated:
            share = percent(duplicates.within_identities / duplicates.mated)
            text += (
                f", {share} of the mated pairs: the same picture twice is not leakage, and TAR is too high by as much"
            )
            found.append(_warning("near-duplicates", text))
        else:
            found.append(_note("near-duplicates", f"{text}: they raise the TAR"))
    return found


def _context(points: list[Point]) -> list[Finding]:
    head = headline(points)
    if head is None or head.context_adjusted is None or head.tar is None:
        return []
    adjusted, found = head.context_adjusted, []
    if adjusted.unknown:
        text = f"'{adjusted.context}' is not known for both pictures of {percent(adjusted.unknown)} of the mated pairs"
        found.append(_note("same shoot", f"{text}; they are left out of the adjusted TAR"))
    if adjusted.value is None or adjusted.overlap < 0.5:
        text = f"'{adjusted.context}' separates mated from impostor pairs almost wholly (overlap"
        text += f" {percent(adjusted.overlap)}); what is identity and what is the shoot cannot be told apart"
        found.append(_warning("same shoot", text))
    elif adjusted.high < head.tar.value and adjusted.suspects is not None:
        text = f"{percent(adjusted.suspects.value)} of the accepted pairs share their '{adjusted.context}'; with"
        text += f" surroundings as alike as those of strangers {percent(adjusted.value)}"
        text += f" {interval(adjusted.low, adjusted.high)} are linked, not {percent(head.tar.value)}"
        found.append(_warning("same shoot", text))
    return found


def _rates(points: list[Point]) -> list[Finding]:
    found = []
    refused = {(point.far, point.k, point.identities_needed) for point in points if point.resolution == "refused"}
    for far, k, needed in sorted(refused, key=lambda item: item[:2]):
        text = (
            f"FAR {rate(far)} at k = {k} is refused: fewer than 3 false accepts expected; {needed} calibrate identities"
        )
        found.append(_note("resolution", f"{text} would be needed"))
    coarse = sorted({(point.far, point.k) for point in points if point.resolution == "coarse"})
    if coarse:
        listed = ", ".join(f"{rate(far)} at k = {k}" for far, k in coarse)
        found.append(_note("resolution", f"coarse (3 to 30 false accepts expected on calibrate): FAR {listed}"))
    shifted = sorted(
        {
            (point.far, point.k)
            for point in points
            if point.worst and point.achieved_far and point.achieved_far.value > 3 * point.far
        }
    )
    if shifted:
        listed = ", ".join(f"{rate(far)} at k = {k}" for far, k in shifted)
        text = "on test identities more than three times the target FAR was accepted, so thresholds do not carry over"
        found.append(_warning("thresholds", f"{text}: {listed}"))
    return found


def _warning(about: str, text: str) -> Finding:
    return Finding(severity="warning", about=about, text=text)


def _note(about: str, text: str) -> Finding:
    return Finding(severity="note", about=about, text=text)
