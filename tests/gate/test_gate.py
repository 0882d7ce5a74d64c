"""If these fail, a gate's verdict is about the wrong space, or passes a result that cannot be used."""

import itertools
import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.gate.outcomes import MAKERS
from tests.kit.gating import FAILS, PASSES, UNKNOWN, Rule, gated, mixed, policy, ruled
from tests.kit.golden import declare, golden
from tests.kit.results import (
    INVALID,
    NOTE,
    WARNING,
    Readable,
    attribution,
    audited,
    certificate,
    change,
    erased,
    kept,
    point,
    raw,
    release,
)
from unface import UnfaceError
from unface.gate import Asked, Verdict, decide, needed_far, needed_k, policy_for, require_asked

ASKED = Asked(far=[1e-3, 1e-4], k=[1, 4], erasers=1, utility=False, context=False)
TAR: Rule = {"far": 1e-4, "tar_max": 0.1}
COMMANDS = {
    "audit": "unface audit",
    "validation": "unface validate",
    "release": "unface release",
    "inversion": "unface invert",
    "certificate": "unface protect frequency certify",
    "protection": "unface protect facemae audit",
}

declare("gate/refused-before.txt")


@pytest.mark.parametrize(
    ("rules", "code"),
    [([PASSES, PASSES], 0), ([PASSES, FAILS], 3), ([UNKNOWN, FAILS, PASSES], 3), ([PASSES, UNKNOWN], 4)],
)
def test_failed_outweighs_inconclusive_and_both_outweigh_passed_in_any_order(rules: list[Rule], code: int) -> None:
    for order in itertools.permutations(rules):
        result = gated(audited(raw()), *order)
        assert (result.exit_code, result.verdict) == (code, {0: "passed", 3: "failed", 4: "inconclusive"}[code])
        counts = {rule.verdict: result.count(rule.verdict) for rule in result.rules}
        assert sum(counts.values()) == len(rules)


def test_every_rule_is_inconclusive_on_an_invalid_result_and_so_is_the_one_on_warnings() -> None:
    result = gated(audited(raw(), findings=[INVALID, WARNING]), PASSES, FAILS, UNKNOWN, findings="no-warnings")
    assert {rule.verdict for rule in result.rules} == {Verdict.INCONCLUSIVE}
    assert {rule.measured for rule in result.rules} == {None}
    assert all(INVALID.text in rule.reason for rule in result.rules)
    assert result.exit_code == 4


def test_a_rule_without_a_space_is_about_what_the_one_eraser_made() -> None:
    controls = [erased("random", control=True), erased("pca", control=True)]
    assert ruled(audited(raw(), erased("isp"), *controls), **PASSES).space == "isp"
    assert ruled(audited(raw(), *controls), **PASSES).space == "raw"
    assert ruled(audited(raw()), **PASSES).space == "raw"


def test_two_erasers_leave_it_open_which_space_is_meant() -> None:
    result = audited(raw(), erased("isp"), erased("leace"), erased("random", control=True))
    with pytest.raises(UnfaceError, match=r"rule 2 .*isp, leace"):
        gated(result, {**PASSES, "space": "isp"}, PASSES)


def test_warnings_are_counted_and_fail_only_where_the_policy_says_so() -> None:
    cases: list[tuple[Readable, Rule]] = [
        (audited(raw(), findings=[NOTE, WARNING]), PASSES),
        (release(findings=[NOTE, WARNING]), {"exposed_max": 0.01}),
    ]
    for warned, rule in cases:
        assert (gated(warned, rule).exit_code, gated(warned, rule).warnings) == (0, 1)
        strict = gated(warned, rule, findings="no-warnings")
        assert (strict.exit_code, strict.rules[-1].verdict) == (3, Verdict.FAILED)
        assert WARNING.text in strict.rules[-1].reason
    clean = gated(audited(raw(), findings=[NOTE]), PASSES, findings="no-warnings")
    assert (clean.exit_code, clean.rules[-1].verdict, clean.warnings) == (0, Verdict.PASSED, 0)


def test_a_gate_names_what_it_judged_by_its_hash() -> None:
    judged = gated(release(), {"exposed_max": 0.01})
    assert (judged.source, judged.source_sha256) == (release().synthetic.name, release().synthetic.sha256)
    made = certificate()
    assert made.pictures is not None
    assert gated(made, {"recognised_max": 0.5}).source_sha256 == made.pictures.sha256
    assert gated(made.model_copy(update={"pictures": None}), {"recognised_max": 0.5}).source_sha256 == ""
    for make, rule in MAKERS.values():
        assert gated(make(), rule).source in make().subject


def test_the_json_holds_verdict_exit_code_and_the_deciding_numbers() -> None:
    content = json.loads(json.dumps(mixed().as_dict()))
    assert (content["schema"], content["verdict"], content["exit_code"]) == ("unface.gate/2", "failed", 3)
    assert [rule["verdict"] for rule in content["rules"]] == ["passed", "failed", "inconclusive"]
    assert content["rules"][2]["measured"] is None
    assert content["rules"][1]["measured"] == {
        "value": 0.3,
        "low": 0.28,
        "high": 0.32,
        "level": 0.95,
        "limit": 0.01,
        "unit": "share",
        "probe": "lda",
        "k": 4,
        "far": 1e-4,
        "attack": None,
        "queries": None,
    }


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_command_takes_only_rules_about_what_it_writes(kind: str, tmp_path: Path) -> None:
    _, rule = MAKERS[kind]
    path = tmp_path / "policy.toml"
    path.write_text("[[require]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in rule.items()))
    for command in COMMANDS.values():
        if command == COMMANDS[kind]:
            found = policy_for(path, command)
            assert found is not None
            assert found == policy(*tomllib.loads(path.read_text())["require"])
        else:
            with pytest.raises(UnfaceError, match=f"rule 1 .*'{COMMANDS[kind]}'"):
                policy_for(path, command)
        assert policy_for(None, command) is None


@pytest.mark.parametrize(
    ("command", "taken"), [("unface release", True), (COMMANDS["protection"], True), ("unface validate", False)]
)
def test_retrieval_risk_is_about_releases_and_protections(command: str, taken: bool, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("[[require]]\nrisk_max = 0.1\nk = 1\n")
    if taken:
        assert policy_for(path, command)
    else:
        with pytest.raises(UnfaceError, match="rule 1"):
            policy_for(path, command)


REFUSED: list[tuple[Rule, dict[str, Any]]] = [
    ({"far": 1e-6, "tar_max": 0.1}, {}),
    ({**TAR, "k": 16}, {}),
    ({**TAR, "k": 2}, {}),
    ({**TAR, "context_adjusted": True}, {}),
    (TAR, {"erasers": 2}),
    ({"utility": "knn", "retained_min": 0.9}, {}),
    ({"exposed_max": 0.1}, {}),
]


def test_a_rule_that_an_audit_will_not_answer_is_refused_before_it_runs() -> None:
    said = []
    for rule, asked in REFUSED:
        with pytest.raises(UnfaceError) as refused:
            require_asked(policy({**TAR, "space": "raw"}, rule), Path("release.toml"), replace(ASKED, **asked))
        assert str(refused.value).startswith("--policy release.toml: rule 2 ")
        said.append(str(refused.value))
    golden("\n".join(said), "gate/refused-before.txt")


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        (TAR, {}),
        ({**TAR, "space": "isp"}, {"erasers": 2}),
        ({**TAR, "far": 1e-4 * (1 + 1e-12)}, {}),
        ({**TAR, "k": 4}, {}),
        ({**TAR, "k": 16}, {"k": []}),
        ({**TAR, "k": 16}, {"k": [1, "all"]}),
        ({**TAR, "context_adjusted": True}, {"context": True}),
        ({"utility": "knn", "retained_min": 0.9}, {"utility": True}),
    ],
)
def test_a_rule_that_the_audit_will_answer_is_not_refused(rule: Rule, asked: dict[str, Any]) -> None:
    require_asked(policy(rule), Path("release.toml"), replace(ASKED, **asked))


def test_what_rules_need_is_collected_from_those_about_tar() -> None:
    made = policy({**TAR, "k": 16}, {"far": 1e-3, "beats": "random", "k": 4}, {"utility": "knn", "retained_min": 0.9})
    assert (needed_far(made), needed_k(made)) == ([1e-4, 1e-3], [4, 16])


def test_of_several_ks_and_sets_the_one_nearest_to_failing_or_farthest_beyond_decides() -> None:
    def at(*highs: float) -> tuple[int | None, float]:
        points = [point(0.008, 0.006, 0.009, k=k) for k in (1, 2, 4)]
        changes = [change(-0.09, -0.1, high, k=k) for k, high in zip((1, 2, 4), highs, strict=True)]
        measured = ruled(audited(raw(*points), erased("isp", *points, changes=changes)), beats="random", far=1e-4)
        assert measured.measured is not None
        return measured.measured.k, measured.measured.high

    assert at(-0.02, -0.01, -0.03) == (2, -0.01)
    assert at(0.01, 0.0, 0.03) == (4, 0.03)
    sets = [kept(0.95, low, 0.99, on=on) for low, on in ((0.93, "a"), (0.91, "b"), (0.92, "c"))]
    found = ruled(audited(raw(), erased("isp", utility=sets)), utility="knn", retained_min=0.9)
    assert found.measured is not None
    assert found.measured.low == 0.91


def test_a_result_that_no_rule_is_about_is_refused() -> None:
    with pytest.raises(UnfaceError, match=r"unface\.attribution/1"):
        decide(attribution(), policy(PASSES))  # type: ignore[arg-type] # it cannot be judged, and that is the point
