"""A whole audit with made-up numbers that agree with each other: every part of audit.json is there."""

from functools import cache

from unface.auditing.schema import (
    ControlPoint,
    Controls,
    Curated,
    Duplicates,
    Protocol,
    RoleCounts,
    Run,
)

from tests.report.made_beside import given, identity_sweep, map_of, rank_sweep, swap_of, transfer
from tests.report.made_spaces import FARS, KS, LEAKED, PROBES, erased_space, estimate, raw_space
from unface.auditing import AuditResult, Finding, Point


@cache
def full_audit() -> AuditResult:
    """Raw vectors, isp and its two controls, and everything that can be asked of them."""
    spaces = [raw_space(), *(erased_space(method) for method in LEAKED)]
    return AuditResult(
        valid=True,
        verdict=(
            "An attacker with 4 pictures of each of some other people can link 6.6 % [6.2, 7.1] of photo pairs of one "
            "person at one false match in 10,000: 660 times chance. After isp 2.6 % [2.4, 2.8] are left: 260 times."
        ),
        findings=[
            Finding(severity="warning", about="near-duplicates", text="12 pairs of nearly the same vector"),
            Finding(severity="note", about="resolution", text="FAR 1e-6 at k = 16 is refused"),
        ],
        not_measured=["template inversion", "face-context attribution"],
        source=given("faces.parquet", 9_600),
        curated=Curated(images=20, identities=480, identities_dropped=3, rows=9_600),
        roles=RoleCounts(fit=144, train=120, calibrate=96, test=120, seed=0, sha256="5" * 64),
        protocol=Protocol(
            variant="unface",
            fars=FARS,
            ks=KS,
            seeds=5,
            seed=0,
            probes=PROBES,
            score="cosine of each probe's vectors",
            bootstrap="double-or-nothing",
            bootstraps=2000,
            level=0.95,
            impostor_quota=None,
        ),
        spaces=spaces,
        sweeps=[rank_sweep(), identity_sweep()],
        transfers=[transfer()],
        maps=[map_of("raw", 1.0), map_of("isp", 4.0)],
        attribute_swaps=[swap_of("raw", 0.31), swap_of("isp", 0.12)],
        utility_sources=[given("objects.parquet", 10_000)],
        controls=Controls(
            shuffled_identities=[
                ControlPoint(probe=p, k=4, far=1e-3, tar=estimate(0.001), chance=0.001, passed=True) for p in PROBES
            ],
            near_duplicates=Duplicates(cosine=0.999, across_identities=0, within_identities=12, mated=91_200),
            lookalike_identities=0,
            stray_pictures=0,
        ),
        run=Run(unface="0.2.0", started="2026-01-02T03:04:05+00:00", seconds=61.5),
    )


@cache
def raw_audit() -> AuditResult:
    """Nothing erased; the lower rate is refused at the largest k."""
    raw = full_audit().raw
    points = [_refused(point) if (point.k, point.far) == (16, 1e-4) else point for point in raw.points]
    return full_audit().model_copy(
        update={
            "spaces": [raw.model_copy(update={"points": points})],
            "verdict": "An attacker with 4 pictures of each of some other people can link 6.6 % [6.2, 7.1] of pairs.",
            "not_measured": ["what an eraser leaves: this is the space as it is", "template inversion"],
            **{part: [] for part in ("sweeps", "transfers", "maps", "attribute_swaps", "utility_sources")},
        }
    )


@cache
def invalid_audit() -> AuditResult:
    """One control did better than chance."""
    text = "scores depend on something other than identity"
    first, *others = full_audit().controls.shuffled_identities
    failed = full_audit().controls.model_copy(
        update={"shuffled_identities": [first.model_copy(update={"passed": False}), *others]}
    )
    return raw_audit().model_copy(
        update={
            "valid": False,
            "verdict": f"The audit is invalid: {text}",
            "findings": [Finding(severity="invalid", about="shuffled identities", text=text)],
            "controls": failed,
        }
    )


def _refused(point: Point) -> Point:
    unknown = dict.fromkeys(("tar", "achieved_far", "chance", "times_chance", "threshold", "calibrate_tar"))
    return point.model_copy(
        update={**unknown, "resolution": "refused", "worst": False, "tar_by_seed": [], "identities_needed": 1234}
    )
