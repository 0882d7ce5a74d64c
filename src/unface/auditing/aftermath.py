"""What erasure came to, in sentences: for the verdict, and what a reader must know of it."""

from collections.abc import Sequence

from unface.auditing.schema import Change, Erasure, Finding, Kept, Point, SpaceResult
from unface.auditing.strangers import vectors_again
from unface.auditing.words import count, interval, percent, signed_points, times
from unface.data import EmbeddingSet

# What a reader cares for most, first; the neighbours are always there.
_PREFERRED = ("knn", "linear", "copy recall@1", "copy µAP")
_CONTROL_NAMES = {"random": "a random subspace", "pca": "label-free PCA"}
_TELLING = 0.01  # of the largest singular value


def after_sentence(spaces: list[SpaceResult], head: Point) -> str:
    """After the eraser that does best on calibrate identities: what is left, what a control leaves, what it costs."""
    erasers = [space for space in spaces if space.by_eraser]
    left = {space.name: _worst(space, head) for space in erasers}
    known = [space for space in erasers if left[space.name] is not None]
    if not known:
        return ""
    space = min(known, key=lambda one: _calibrate(left[one.name]))
    found, erasure = left[space.name], space.erasure
    assert found is not None
    assert erasure is not None
    assert found.tar is not None
    among = f", the best of {len(erasers)} on calibrate" if len(erasers) > 1 else ""
    parts = [
        f"After {title(space)}{among} ({erasure.rank} of {erasure.dim} dimensions removed): {percent(found.tar.value)} "
        f"{interval(found.tar.low, found.tar.high)}, {times(found.times_chance or 0)} chance{_at(found, head)}"
    ]
    controls = [
        f"{percent(worst.tar.value)} after {_CONTROL_NAMES[other.erasure.method]}"
        for other in spaces
        if other.erasure and other.erasure.control and other.erasure.rank == erasure.rank
        for worst in [_worst(other, head)]
        if worst and worst.tar
    ]
    if controls:
        parts.append(f"{' and '.join(controls)} of equal rank")
    if space.utility:
        parts.append(kept_words(_telling(space.utility)))
    return "; ".join(parts) + "."


def _at(found: Point, head: Point) -> str:
    return "" if found.k == head.k else f" (worst with {count(found.k, 'picture')})"


def title(space: SpaceResult) -> str:
    """ISP, LEACE; as people write them."""
    return space.name.upper() if space.name in ("isp", "leace", "sal", "inlp", "rlace") else space.name


def kept_words(kept: Kept) -> str:
    """k-NN keeps 87 % of its accuracy, in one clause."""
    share = f"{percent(kept.retained.value)} {interval(kept.retained.low, kept.retained.high)}"
    if kept.measure.startswith("overlap"):
        return f"{share} of nearest neighbours stay"
    return f"{kept.measure} on {kept.on} keeps {share} of its {percent(kept.raw.value)}"


def erasure_findings(spaces: list[SpaceResult], head: Point | None) -> list[Finding]:
    """Erasers that do no better than a control, or than nothing."""
    found = []
    for space in spaces:
        erasure = space.erasure
        if erasure is None:
            continue
        if erasure.degenerate:
            text = f"{erasure.degenerate:,} vectors have nothing left after it; they become zero and match nobody"
            found.append(Finding(severity="warning", about=space.name, text=text))
        if erasure.fit_identities is None:
            text = "nobody knows here whom this projection was fitted on; if on people of this set, it leaves more of "
            text += "others than these numbers say"
            found.append(Finding(severity="warning", about=space.name, text=text))
        if erasure.control or head is None:
            continue
        at = [change for change in space.changes if (change.k, change.far) == (head.k, head.far)]
        found += [
            _beaten_by(space.name, change, spaces) for change in at if change.high >= 0 and _is_base(change, spaces)
        ]
        found += [*_limited(space.name, erasure), *_exhausted(space.name, erasure)]
    return found


def spared_findings(spared: EmbeddingSet | None, utility: Sequence[EmbeddingSet]) -> list[Finding]:
    """An eraser that was to spare the very vectors its usefulness is measured on."""
    if spared is None:
        return []
    found = []
    for source in utility:
        again = vectors_again(spared, source)
        if again:
            text = f"{count(again, 'vector')} of {source.source} were also given to be spared; what is kept there "
            text += "flatters erasers that spare a task: measure on other pictures, best of other classes"
            found.append(Finding(severity="warning", about="utility", text=text))
    return found


def _beaten_by(name: str, change: Change, spaces: list[SpaceResult]) -> Finding:
    apart = f"{signed_points(change.value)} [{signed_points(change.low)}, {signed_points(change.high)}] points of TAR"
    surely = change.low > 0
    if change.against == "raw":
        text = "raises what the attacker gets" if surely else "does not surely lower what the attacker gets"
        return Finding(severity="warning", about=name, text=f"{text}: {apart}")
    control = next(space.erasure for space in spaces if space.name == change.against)
    assert control is not None
    other = _CONTROL_NAMES[control.method]
    if surely:
        text = f"leaves the attacker more than {other} of equal rank does ({apart})"
        return Finding(severity="warning", about=name, text=text)
    text = f"cannot be told from {other} of equal rank ({apart})"
    why = "any dimensions would do" if control.method == "random" else "more than variance is not found to matter"
    return Finding(severity="warning", about=name, text=f"{text}: here {why}")


def _is_base(change: Change, spaces: list[SpaceResult]) -> bool:
    other = next((space for space in spaces if space.name == change.against), None)
    return other is not None and not other.by_eraser


def _limited(name: str, erasure: Erasure) -> list[Finding]:
    if erasure.fit_identities is None or erasure.rank < erasure.fit_identities - 1:
        return []
    text = f"all {erasure.rank} directions of {erasure.fit_identities} fit identities go; more need more identities"
    return [Finding(severity="note", about=name, text=text)]


def _exhausted(name: str, erasure: Erasure) -> list[Finding]:
    """Some encoders write more numbers than they have directions; past those, only a remainder is left to measure."""
    sizes = erasure.spectrum[: erasure.rank]
    telling = sum(size >= _TELLING * sizes[0] for size in sizes) if sizes else 0
    if telling == len(sizes):
        return []
    text = f"only {telling} of the {erasure.rank} directions removed carry 1 % of the first or more: what is left may "
    text += "be a remainder too small to matter in raw vectors, which attackers still read at unit length; ask for a "
    text += "lower rank"
    return [Finding(severity="warning", about=name, text=text)]


def _worst(space: SpaceResult, head: Point) -> Point | None:
    """At the headline's rate, and at the k that is worst in this space itself, by calibrate."""
    at = [point for point in space.points if point.worst and point.tar and point.far == head.far]
    return max(at, key=lambda point: point.calibrate_tar or 0.0, default=None)


def _calibrate(point: Point | None) -> float:
    return point.calibrate_tar or 0.0 if point else 1.0


def _telling(utility: list[Kept]) -> Kept:
    for measure in _PREFERRED:
        for kept in utility:
            if kept.measure == measure:
                return kept
    return utility[0]
