"""Every document that has a snapshot: which result, judged by which rule, beside which earlier results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from tests.kit.gating import FAILS, PASSES, UNKNOWN, Rule, gated
from tests.kit.results import (
    INVALID,
    NOTE,
    WARNING,
    AlbumResults,
    AnyResult,
    AttackResult,
    AuditResult,
    Hardening,
    PastResult,
    accuracy,
    album,
    albums,
    attacker,
    attribution,
    audited,
    averaged,
    cell,
    certificate,
    certified,
    change,
    counted,
    encoder,
    enriched,
    erased,
    erased_source,
    every_part,
    exact_copies,
    exposures,
    face_gate,
    facts,
    fit_overlap,
    full_audit,
    full_inversion,
    full_release,
    in_context,
    invalid_audit,
    inversion,
    kept,
    of_400,
    past_result,
    point,
    protection,
    raw,
    raw_audit,
    refused,
    release,
    result,
    searched,
    searches,
    translated,
    translated_at,
    validation,
    view,
    with_evil_words,
    with_parts,
)
from unface.gate import GateResult

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)></script>"
ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2028[bold]"


@dataclass(frozen=True)
class Document:
    """One page and what the terminal says of the same result."""

    make: Callable[[], AnyResult]
    rule: Rule | None = None
    state: str = "none"
    """How the page opens; without a policy it is warned if the suggested one would not pass."""
    past: Sequence[Callable[[], AnyResult]] = ()

    @property
    def decision(self) -> GateResult | None:
        return None if self.rule is None else gated(self.make(), self.rule)  # type: ignore[arg-type] # Readable

    @property
    def history(self) -> list[PastResult]:
        return [past_result(one()) for one in self.past]  # type: ignore[arg-type] # Readable


def _two_erasers() -> AuditResult:
    """The one that leaves least on calibrate leaves most on test."""
    isp = erased("isp", point(0.04, 0.03, 0.05, calibrate_tar=0.04), changes=[change(-0.02, -0.03, -0.01)])
    leace = erased("leace", point(0.041, 0.03, 0.05, calibrate_tar=0.02))
    return audited(raw(), isp, leace, erased("random", point(0.06, 0.05, 0.07), control=True))


def _coarse_audit() -> AuditResult:
    """One rate is coarse and one refused; another k leaks more than the quoted one; the shoot is adjusted for."""
    shoot = in_context(0.21, 0.18, 0.24, overlap=0.9, suspects=0.3)
    points = (
        point(0.3, 0.28, 0.32, context_adjusted=shoot),
        point(0.31, 0.29, 0.33, k=1, calibrate_tar=0.2, context_adjusted=in_context(0.3, 0.2, 0.4, overlap=0.3)),
        point(0.02, 0.01, 0.03, probe="cosine", worst=False),
        point(0.1, 0.05, 0.2, far=1e-5, resolution="coarse"),
        refused(),
    )
    left = (point(0.02, 0.015, 0.025), point(0.03, 0.02, 0.04, k=1, calibrate_tar=0.5), refused(needed=None))
    return audited(raw(*points), erased("isp", *left, fit_identities=5), findings=[WARNING, NOTE])


def _uneven_audit() -> AuditResult:
    """People have 2 to 37 pictures, and those with many are linked less often; one space is coarse."""
    first = point(0.3, 0.28, 0.32, k=37, over_people=0.41)
    second = point(0.02, 0.015, 0.025, k=37, over_people=0.021)
    other = point(0.06, 0.05, 0.07, k=37, resolution="coarse", over_people=0.08)
    made = audited(
        raw(first),
        erased("isp", second, changes=[change(-0.04, -0.05, -0.03, k=37)]),
        erased("random", other, control=True),
    )
    used = made.curated.model_copy(update={"images": 9, "most": 37, "rows": 1_630, "rows_dropped": 400})
    return made.model_copy(update={"curated": used})


def _compared() -> AuditResult:
    """An eraser that beats one control, loses to another and is level with a third space; and a gate for faces."""
    changes = [
        change(-0.02, -0.03, -0.01),
        change(0.02, 0.01, 0.03, against="pca"),
        change(-0.003, -0.01, 0.004, against="leace"),
        change(-0.08, -0.09, -0.07, against="raw"),
        change(0.01, -0.01, 0.02, against="raw", far=1e-3),
    ]
    points = [point(0.004, 0.003, 0.005), point(0.2, 0.1, 0.3, far=1e-3)]
    isp = erased(
        "isp",
        *points,
        changes=changes,
        utility=[kept(0.9, 0.85, 0.95), kept(0.5, 0.4, 0.6, measure="neighbour overlap@10", on="faces.parquet")],
        certificate=certified(),
        spectrum=[8.0, 6.0, 4.0, 2.0, 1.0],
        rank=3,
        gate=face_gate((3, 1_000)),
        degenerate=1_234,
        overlap=fit_overlap(),
    )
    keeper = erased("leace", *points, kept=2, mu=0.3, spectrum=[3.0, 1.0], fit_identities=None, fitted_on="unknown")
    first = raw(point(), point(0.3, 0.2, 0.4, far=1e-3, resolution="coarse"))
    controls = [erased(name, point(0.03, 0.02, 0.04), control=True) for name in ("random", "pca")]
    odd = erased("pca@2", point(0.05, 0.04, 0.06), control=True, method="pca", rank=2)
    return audited(first, isp, keeper, *controls, odd)


def _broken_audit() -> AuditResult:
    """Every part was measured and none can be trusted."""
    verdict = f"The audit is invalid: {INVALID.text}"
    return every_part().model_copy(update={"valid": False, "findings": [INVALID], "verdict": verdict})


def _without_swaps() -> AnyResult:
    return attribution().model_copy(update={"encoders": [encoder(swapped=False)]})


def _odd_attribution() -> AnyResult:
    """A crossover with one end, a face that counts for less than what is around it, and no swap left out."""
    one = encoder()
    first = one.spaces[0]
    assert first.cpi is not None
    assert first.fii is not None
    crossover = type(first.cpi.crossover)(value=3.26, low=None, high=4.0, crossing=0.125)
    odd = first.model_copy(
        update={
            "cpi": first.cpi.model_copy(update={"crossover": crossover}),
            "fii": first.fii.model_copy(update={"index": averaged(-0.2, 90), "face_drop": averaged(-0.1, 90)}),
        }
    )
    quality = one.quality.model_copy(update={"left_out": []})
    return attribution().model_copy(update={"encoders": [one.model_copy(update={"spaces": [odd], "quality": quality})]})


def _erased_before() -> AuditResult:
    source = raw_audit().source.model_copy(update={"encoder": "unknown encoder after isp 4", "notes": ["2 rows left"]})
    return raw_audit().model_copy(update={"erased_by": erased_source(fit_overlap()), "source": source})


def _bare_audit() -> AuditResult:
    """Nothing could be resolved, and nothing else was asked for."""
    return audited(raw(refused(), refused(k=1, needed=None)))


def _hardened() -> AnyResult:
    """Fewer questions than the budget, a chosen worst case, a target that rounds its scores."""
    made = validation()
    at = made.attacks[0].at[1].model_copy(update={"attacks": ["scores", "best-of-n"]})
    chosen = AttackResult(name="worst case", adaptive=False, settings=[], at=[at])
    rounded = Hardening(
        measure="scores rounded to 0.1",
        applies_to="answers of this run",
        far=1e-2,
        other=of_400(0.6),
        queries_to_half=None,
        largest=100,
    )
    asked = made.asked.model_copy(update={"budget": 500, "lost": 3, "ended": "403 Forbidden"})
    return made.model_copy(
        update={"worst_case": chosen, "hardening": [rounded], "asked": asked, "shuffled": [made.attacks[1]]}
    )


def _no_answer() -> AnyResult:
    """Nobody has another picture, so that nothing can be judged."""
    made = validation()
    return made.model_copy(update={"attacks": [], "ceiling": []})


def _exposing() -> AnyResult:
    """Exact copies, a trait that gives people away, and a holdout that is too small."""
    face = view(listed=0, least=1001)
    leak = face.model_copy(
        update={"membership": face.membership.model_copy(update={"share": counted(600, 1000, 0.56, 0.64)})}
    )
    return release(leak, enriched("eyes", 0.002, 40), exact=exact_copies(30, 20), findings=[WARNING])


def _every_release_test() -> AnyResult:
    people = facts("drawn", 40).model_copy(update={"clustered": True, "notes": ["3 rows left out"]})
    return release(enriched("face", 0.5), view("eyes", links=False), holds=False, synthetic=people, retrieval=[])


def _stuck_inversion() -> AnyResult:
    """No attack converged, the rate is coarse, and people have one picture each."""
    one = cell("alsuv", 0, converged=False)
    alone = one.model_copy(update={"at": [one.at[0].model_copy(update={"other": None})], "reached": None})
    return inversion(alone, resolution="coarse")


def _bare_protection() -> AnyResult:
    made = protection()
    bare = made.methods[0].model_copy(update={"attackers": [], "utility": []})
    return made.model_copy(update={"methods": [bare], "second": None})


def _large_protection() -> AnyResult:
    """3,000 people are released, and attackers look for 500 of them; the strongest links nobody."""
    made = protection(hits=0)
    methods = [one.model_copy(update={"pictures": 15_000, "people": 3_000}) for one in made.methods[:3]]
    unlearned = methods[2].model_copy(update={"utility": []})
    of_both = made.release.model_copy(update={"pictures": 15_000, "people": 3_000})
    return made.model_copy(
        update={
            "release": of_both,
            "methods": [*methods[:2], unlearned, made.methods[3]],
            "calibrate_people": 400,
            "measured_people": 500,
        }
    )


def _seeded_protection() -> AnyResult:
    made = protection()
    two = made.methods[0].model_copy(
        update={"utility": [accuracy(0.8, seeds=3), accuracy(0.7, "agedb_30")], "attackers": [attacker("tuned", 60)]}
    )
    return made.model_copy(update={"methods": [two, *made.methods[1:]], "findings": [WARNING]})


def _mapped() -> AnyResult:
    """Several maps with noise, and no pictures to try them on."""
    made = certificate()
    noisy = made.maps[0].model_copy(update={"name": "first", "condition": None, "noise_psnr": 31.4, "psnr": None})
    return made.model_copy(update={"maps": [noisy, made.maps[0]], "pictures": None, "noise": 2.5, "variant": None})


def _evil(kind: str) -> AnyResult:
    made: AnyResult = with_evil_words(_whole(kind), EVIL)
    return made


def _whole(kind: str) -> AnyResult:
    return every_part() if kind == "audit" else result(kind)  # type: ignore[arg-type]


@cache
def documents() -> dict[str, Document]:
    """By the name of their snapshots: the kind, then what is special."""
    questions: Rule = {"success_max": 0.05, "far": 1e-3, "queries": 100}
    inverted: Rule = {"inverted_max": 0.05, "far": 1e-3}
    linked: Rule = {"recognised_max": 0.05}
    broken = {"findings": [INVALID]}
    made: dict[str, Document] = {
        "audit/complete": Document(every_part, state="warned"),
        "audit/failed": Document(full_audit, FAILS, "failed", (raw_audit, full_audit, full_audit)),
        "audit/passed": Document(raw_audit, {"far": 1e-4, "tar_max": 0.1}, "inconclusive"),
        "audit/invalid": Document(invalid_audit, PASSES, "inconclusive"),
        "audit/invalid-no-policy": Document(_broken_audit, state="inconclusive"),
        "audit/uneven": Document(_uneven_audit, state="warned"),
        "audit/coarse": Document(_coarse_audit, UNKNOWN, "inconclusive"),
        "audit/empty": Document(_bare_audit),
        "audit/two-erasers": Document(_two_erasers, {**PASSES, "space": "isp"}, "passed"),
        "audit/two-erasers-no-policy": Document(_two_erasers, state="warned"),
        "audit/compared": Document(_compared, {"far": 1e-4, "tar_max": 0.0045, "space": "isp"}, "failed"),
        "audit/erased-before": Document(_erased_before, state="warned"),
        "audit/little-left": Document(lambda: audited(raw(), erased("isp", point(0.001, 0.0005, 0.002)))),
        "audit/wide": Document(lambda: audited(raw(), erased("isp", point(0.005, 0.001, 0.025))), state="warned"),
        "audit/too-few": Document(lambda: audited(raw(), erased("isp", point(0.005, 0.001, 0.03))), state="warned"),
        "audit/at-chance": Document(lambda: audited(raw(point(0.0001, 0.0, 0.0003)))),
        "audit/paper": Document(lambda: audited(raw(), erased(), variant="paper"), PASSES, "inconclusive"),
        "audit/parts-without-rows": Document(_parts_without_rows),
        "validation/failed": Document(validation, questions, "failed", (lambda: validation(0.3), validation)),
        "validation/no-policy": Document(lambda: validation(0.01), state="warned"),
        "validation/hardened": Document(_hardened, {**questions, "far": 1e-2}, "failed"),
        "validation/invalid": Document(lambda: validation(findings=(INVALID,)), questions, "inconclusive"),
        "validation/empty": Document(_no_answer, questions, "inconclusive"),
        "release/leaks": Document(full_release, {"exposed_max": 0.01}, "failed", (release, full_release)),
        "release/quiet": Document(release, {"exposed_max": 0.01}, "passed"),
        "release/copies": Document(_exposing, {"copies_max": 0.1, "far": 1e-4}, "passed"),
        "release/not-comparable": Document(_every_release_test, {"exposed_max": 0.01}, "inconclusive"),
        "inversion/failed": Document(full_inversion, inverted, "failed"),
        "inversion/held": Document(lambda: inversion(cell("bob", 0)), inverted, "passed"),
        "inversion/stuck": Document(_stuck_inversion, state="warned"),
        "inversion/invalid": Document(lambda: inversion().model_copy(update=broken), inverted, "inconclusive"),
        "certificate/failed": Document(lambda: certificate(0.99), linked, "failed"),
        "certificate/no-policy": Document(lambda: certificate(0.02)),
        "certificate/maps": Document(_mapped, linked, "inconclusive"),
        "certificate/no-encoder": Document(lambda: certificate(encoder=False)),
        "protection/failed": Document(protection, {"utility_min": 0.85}, "failed"),
        "protection/no-policy": Document(protection, state="warned"),
        "protection/large": Document(_large_protection, {"risk_max": 0.2, "k": 1}, "passed"),
        "protection/seeds": Document(_seeded_protection, {"risk_max": 0.02, "k": 1}, "failed"),
        "protection/bare": Document(_bare_protection, {"utility_min": 0.5}, "inconclusive"),
        "attribution/two-encoders": Document(lambda: attribution("made", "second")),
        "attribution/odd": Document(_odd_attribution),
        "attribution/no-swaps": Document(_without_swaps),
    }  # fmt: skip
    return made


def _parts_without_rows() -> AuditResult:
    """Parts that have little to show: one size of albums, no gallery at the rate, no groups, no pictures of others."""
    made = audited(raw(), erased("isp", utility=[kept(0.5, 0.4, 0.6, measure="neighbour overlap@10")]))
    return with_parts(
        made,
        albums=_albums_of_one(),
        search=searches(searched(opened=None)),
        exposure=exposures(None, single=3),
        translate=translated(translated_at(1e-2, None), encoder=None),
        inversion=_stuck_inversion(),
        attribution=encoder(swapped=False),
    )


def _albums_of_one() -> AlbumResults:
    """Albums of one size, of which one control failed."""
    return albums(album(0.05, (1, 1)), album(None, (1, 1), far=1e-5), failed=True).model_copy(update={"changes": []})
