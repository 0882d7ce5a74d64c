"""If these fail, the page's sentences do not follow from its numbers, or an audit cannot be repeated from it."""

import hashlib
import inspect
import shlex
from pathlib import Path

import pytest
from typer.main import get_command
from unface.auditing.schema import Change
from unface.report.cells import difference
from unface.report.comparisons import comparisons
from unface.report.figures import key_figures
from unface.report.frontier import frontiers
from unface.report.looks import looks

import unface
from tests.cli_page import commands
from tests.report.made_audit import full_audit, raw_audit
from unface.auditing import AuditResult
from unface.cli.app import app
from unface.report.repeat import citation, repeat, sha256_of


def changed(low: float, high: float, against: str = "pca") -> AuditResult:
    """isp against one control, with this interval."""
    full = full_audit()
    change = Change(
        against=against,
        k=4,
        far=1e-4,
        probe="lda",
        against_probe="lda",
        value=(low + high) / 2,
        low=low,
        high=high,
        level=0.95,
    )
    spaces = [s.model_copy(update={"changes": [change] if s.name == "isp" else []}) for s in full.spaces]
    return full.model_copy(update={"spaces": spaces})


def said(result: AuditResult) -> str:
    return " ".join(one.text for one in comparisons(result))


@pytest.mark.parametrize(
    ("low", "high", "sentence", "won"),
    [
        (-0.03, -0.01, "isp beats label-free PCA of the same rank: −2.0 [−3.0, −1.0] percentage points", True),
        (-0.01, 0.004, "isp cannot be told from label-free PCA of the same rank: −0.3 [−1.0, +0.4]", False),
        (-0.01, 0.0, "isp cannot be told from label-free PCA of the same rank", False),
        (0.01, 0.03, "isp leaves more than label-free PCA of the same rank: +2.0 [+1.0, +3.0]", False),
    ],
)
def test_an_eraser_beats_a_control_only_if_the_whole_interval_does(
    low: float, high: float, sentence: str, won: bool
) -> None:
    first = comparisons(changed(low, high))[0]
    assert first.text.startswith(sentence)
    assert first.won is won


def test_the_raw_vectors_are_not_beaten_but_leak_more() -> None:
    assert said(changed(-0.05, -0.03, "raw")).startswith("isp leaves less than the raw vectors: −4.0 [−5.0, −3.0]")


def test_two_erasers_are_put_against_each_other_once() -> None:
    full = full_audit()
    raw, isp, random, pca = full.spaces
    at = isp.changes[0]
    first = isp.model_copy(update={"changes": [at.model_copy(update={"against": "other"})]})
    second = isp.model_copy(update={"name": "other", "changes": [at.model_copy(update={"against": "isp"})]})
    text = said(full.model_copy(update={"spaces": [raw, first, second, random, pca]}))
    assert text.count("percentage points") == 1
    assert text.startswith("isp ")


def test_a_control_that_was_not_compared_is_named() -> None:
    text = said(changed(-0.03, -0.01, "pca"))
    assert "isp was not compared with the random subspace of the same rank." in text
    assert "isp was not compared with the raw vectors." in text
    assert "not compared" not in said(full_audit())


def test_an_eraser_without_controls_is_said_to_prove_nothing() -> None:
    alone = full_audit().model_copy(update={"spaces": full_audit().spaces[:2]})
    assert "isp was not put against a control of equal rank" in said(alone)


def test_controls_of_another_rank_are_not_called_equal() -> None:
    result = changed(-0.03, -0.01)
    pca = result.spaces[-1]
    assert pca.erasure is not None
    other = pca.model_copy(update={"erasure": pca.erasure.model_copy(update={"rank": 100})})
    assert "beats label-free PCA of rank 100" in said(
        result.model_copy(update={"spaces": [*result.spaces[:-1], other]})
    )


def test_differences_have_two_digits_of_their_largest_end() -> None:
    assert difference(-0.04, -0.043, -0.037) == "−4.0 [−4.3, −3.7]"
    assert difference(-0.002, -0.005, 0.001) == "−0.20 [−0.50, +0.10]"
    assert difference(0.0, 0.0, 0.0) == "+0.0 [+0.0, +0.0]"
    assert difference(-0.31, -0.33, -0.28) == "−31.0 [−33.0, −28.0]"


def test_a_space_that_leaks_more_at_another_k_says_so_beside_the_figure() -> None:
    full = full_audit()
    isp = full.spaces[1]
    points = [p.model_copy(update={"calibrate_tar": 0.5}) if (p.k, p.worst) == (16, True) else p for p in isp.points]
    spaces = [full.raw, isp.model_copy(update={"points": points}), *full.spaces[2:]]
    figure = key_figures(full.model_copy(update={"spaces": spaces}))[1]
    assert figure.value == "2.6 %"
    assert "2.5 % at k = 16, where this space leaks most" in figure.counted
    assert "leaks most" not in key_figures(full)[1].counted


def test_raw_stands_beside_every_rank_and_methods_missing_at_one_are_not_measured() -> None:
    full = full_audit()
    sweep = full.sweeps[0]
    points = [point for point in sweep.points if (point.method, point.rank) != ("pca", 256)]
    shown = frontiers(full.model_copy(update={"sweeps": [sweep.model_copy(update={"points": points})]}))[0]
    assert shown.ranks == [64, 128, 192, 256]
    assert shown.methods == ["raw", "isp", "random", "pca"]
    assert {rank[0][0] for rank in shown.cells} == {"6.6 % [6.2, 7.1]"}
    assert shown.cells[3][3] == ["not measured"] * 4
    assert shown.said[3] == "rank 256: raw 6.6 %, isp 1.8 %, random 4.8 %"


def test_a_sweep_without_usefulness_is_drawn_over_rank_alone() -> None:
    full = full_audit()
    bare = [point.model_copy(update={"utility": []}) for point in full.sweeps[0].points]
    shown = frontiers(full.model_copy(update={"sweeps": [full.sweeps[0].model_copy(update={"points": bare})]}))[0]
    assert [figure.title for figure in shown.figures] == ["Over dimensions removed"]
    assert shown.columns == ["worst-case TAR", "times chance"]


def test_spaces_differ_in_look_and_a_method_looks_like_the_space_it_made() -> None:
    full = full_audit()
    renamed = [space.model_copy(update={"name": f"{space.name}@192"}) for space in full.spaces[1:]]
    found = looks(full.model_copy(update={"spaces": [full.raw, *renamed]}))
    assert len({(look.colour, look.dash) for look in looks(full).values()}) == 4
    assert (found["pca"].colour, found["pca"].dash) == (found["pca@192"].colour, found["pca@192"].dash)


def test_the_call_that_repeats_an_audit_is_one_that_audit_takes() -> None:
    call = repeat(full_audit()).call
    keywords = dict(line.strip().rstrip(",").split("=", 1) for line in call.splitlines() if "=" in line)
    inspect.signature(unface.audit).bind("faces.parquet", **keywords)
    assert keywords["fars"] == "[0.001, 0.0001]"
    assert keywords["erasers"] == "['isp']"
    assert keywords["rank"] == "192"
    assert keywords["images"] == "20"
    assert keywords["transfer"] == "'strangers.parquet'"


def test_a_quota_of_impostors_is_repeated_too() -> None:
    protocol = full_audit().protocol.model_copy(update={"impostor_quota": 7})
    again = repeat(full_audit().model_copy(update={"protocol": protocol}))
    assert "--impostor-quota 7" in again.command
    assert "    quota=7," in again.call


def test_the_command_that_repeats_an_audit_has_only_options_there_are() -> None:
    known = next(one.options for one in commands(get_command(app)) if one.name == "unface audit")
    for result in (full_audit(), raw_audit()):
        given = [word for word in repeat(result).command.split() if word.startswith("--")]
        assert set(given) <= known
    assert "--eraser isp" in repeat(full_audit()).command
    assert "--fit-counts 210,420,840,1680" in repeat(full_audit()).command


def test_what_is_usual_but_was_not_done_is_turned_off() -> None:
    again = repeat(raw_audit())
    assert "erasers=[]" in again.call
    for option in ("--eraser none", "--no-sweep", "--no-maps"):
        assert option in again.command
        assert option not in repeat(full_audit()).command


def test_names_in_the_command_stay_one_word_for_the_shell() -> None:
    source = full_audit().source.model_copy(update={"name": "my faces; rm -rf x.parquet"})
    words = shlex.split(repeat(full_audit().model_copy(update={"source": source})).command.replace("\\\n", " "))
    assert words[:3] == ["unface", "audit", "my faces; rm -rf x.parquet"]
    assert words[words.index("--far") + 1] == "1e-3,1e-4"
    assert words[words.index("--k") + 1] == "1,4,16"


def test_what_cannot_be_known_from_the_audit_is_listed() -> None:
    full = full_audit()
    own_roles = full.model_copy(update={"roles": full.roles.model_copy(update={"seed": None})})
    assert "the column that held your own roles" in repeat(own_roles).unknown
    assert "the column that held your own roles" not in repeat(full).unknown


def test_the_hash_on_the_page_is_that_of_the_file(tmp_path: Path) -> None:
    path = full_audit().save(tmp_path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert sha256_of(full_audit()) == digest
    assert digest in citation(full_audit())
    assert f"split sha256 {full_audit().roles.sha256}" in citation(full_audit())
