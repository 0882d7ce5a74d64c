"""How to run the same audit again, put together from what audit.json says of itself, and how to name it."""

import hashlib
import shlex
from dataclasses import dataclass

from unface.auditing.schema import AuditResult, Erasure
from unface.auditing.words import rate

Value = str | int | bool | list[str] | list[int] | list[float]


@dataclass(frozen=True)
class Repeat:
    """The same audit as a command and as a call, with what neither can know."""

    command: str
    call: str
    unknown: list[str]


@dataclass(frozen=True)
class _Given:
    option: str
    keyword: str
    value: Value


def repeat(result: AuditResult) -> Repeat:
    """A file is called by its name; where it lay is not recorded."""
    given = [*_protocol(result), *_erasing(result), *_beside(result)]
    words = [word for one in given for word in _options(one)]
    command = " \\\n    ".join([f"unface audit {shlex.quote(result.source.name)}", *words, "--out audit"])
    keywords = "".join(f"    {one.keyword}={one.value!r},\n" for one in given)
    return Repeat(command, f"unface.audit(\n    {result.source.name!r},\n{keywords})", _unknown(result))


def sha256_of(result: AuditResult) -> str:
    """Of audit.json as it is written."""
    return hashlib.sha256(result.file_text().encode()).hexdigest()


def citation(result: AuditResult) -> str:
    """One paragraph that names the audit beyond doubt."""
    source, run = result.source, result.run
    return (
        f"unface {run.unface}, identity audit of {source.name} (vectors sha256 {source.sha256}), {run.started[:10]}; "
        f"variant {result.protocol.variant}, seed {result.protocol.seed}, split sha256 {result.roles.sha256}; "
        f"audit.json sha256 {sha256_of(result)}."
    )


def _protocol(result: AuditResult) -> list[_Given]:
    protocol = result.protocol
    given = [
        _Given("--far", "fars", protocol.fars),
        _Given("--k", "ks", protocol.ks),
        _Given("--seeds", "seeds", protocol.seeds),
        _Given("--probe", "probes", protocol.probes),
        _Given("--images", "images", result.curated.images),
        _Given("--variant", "variant", protocol.variant),
        _Given("--bootstrap", "bootstrap", protocol.bootstrap),
        _Given("--bootstraps", "bootstraps", protocol.bootstraps),
        _Given("--seed", "seed", protocol.seed),
    ]
    if protocol.impostor_quota is not None:
        given.append(_Given("--impostor-quota", "quota", protocol.impostor_quota))
    return given


def _erasing(result: AuditResult) -> list[_Given]:
    """What was fitted for this audit; a ready projection is a file that only its owner has."""
    fitted = [erasure for erasure in _erasures(result) if erasure.fit_identities is not None]
    given = [_Given("--eraser", "erasers", list(dict.fromkeys(erasure.method for erasure in fitted)))]
    if len({erasure.rank for erasure in fitted}) == 1:
        given.append(_Given("--rank", "rank", fitted[0].rank))
    if result.fit_source is not None:
        given.append(_Given("--fit-on", "fit_on", result.fit_source.name))
    return given


def _beside(result: AuditResult) -> list[_Given]:
    """What was measured beside the spaces, and what that usually is was left out."""
    over = {sweep.over: sweep for sweep in result.sweeps}
    given = []
    if result.utility_sources:
        given.append(_Given("--utility", "utility", [source.name for source in result.utility_sources]))
    if result.utility_aware_source is not None:
        given.append(_Given("--utility-aware", "utility_aware", result.utility_aware_source.name))
    if result.transfers:
        given.append(_Given("--transfer", "transfer", result.transfers[0].second.name))
    if result.attribute_swaps:
        given.append(_Given("--attribute", "attribute", result.attribute_swaps[0].attribute))
    if "identities" in over:
        counts = sorted({point.fit_identities for point in over["identities"].points})
        given.append(_Given("--fit-counts", "fit_counts", counts))
    if "rank" not in over:
        given.append(_Given("--no-sweep", "sweep", False))
    if not result.maps:
        given.append(_Given("--no-maps", "maps", False))
    return given


def _unknown(result: AuditResult) -> list[str]:
    unknown = ["where the files lie, and what their columns of identities, vectors and ids are called"]
    contexts = [point.context_adjusted.context for point in result.raw.points if point.context_adjusted]
    if contexts:
        unknown.append(f"whether {contexts[0]!r} was given as a group or as a context column")
    if result.roles.seed is None:
        unknown.append("the column that held your own roles")
    if result.source.notes:
        unknown.append("rows that reading changed or left out, see the notes above")
    if result.attribution is not None:
        unknown.append(
            "the pictures: face-context attribution needs them as the source, with --encoder and --attribution"
        )
    erasures = _erasures(result)
    if any(erasure.fit_identities is None for erasure in erasures):
        unknown.append("the file of the ready projection, known by its sha256 alone")
    if len({erasure.rank for erasure in erasures}) > 1:
        unknown.append("the rule of the ranks as an option: " + "; ".join(dict.fromkeys(e.rank_rule for e in erasures)))
    return unknown


def _erasures(result: AuditResult) -> list[Erasure]:
    return [space.erasure for space in result.erased if space.erasure]


def _options(given: _Given) -> list[str]:
    """Paths are repeated, everything else stands in one word with commas."""
    value = given.value
    if value is False:
        return [given.option]
    if given.option == "--utility" and isinstance(value, list):
        return [f"{given.option} {shlex.quote(str(part))}" for part in value]
    if isinstance(value, list):
        value = ",".join(rate(part) if isinstance(part, float) else str(part) for part in value) or "none"
    return [f"{given.option} {shlex.quote(str(value))}"]
