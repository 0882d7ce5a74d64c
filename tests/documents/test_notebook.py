"""If these fail, a notebook shows a wall of text, another number than the file's, or loses a result on its way."""

import copy
import hashlib
import inspect
import pickle
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import unface
from tests.kit.documents import card, page, repeated, undrawn
from tests.kit.page import Page
from tests.kit.results import (
    KINDS,
    AuditResult,
    Kind,
    album,
    albums,
    audited,
    erased,
    face_gate,
    full_audit,
    given,
    identity_sweep,
    raw,
    raw_audit,
    result,
    sweeps,
    utility_sets,
    validation,
    with_parts,
)
from unface.auditing import AttributeSwap, Maps, Sweeps, Transfer
from unface.cli.app import app
from unface.result.audit import SpaceResult
from unface.result.file import Given

READ = [kind for kind in KINDS if kind != "attribution"]
OTHERS = [kind for kind in READ if kind not in ("audit", "validation")]


def made(kind: Kind) -> Any:
    return result(kind)


@pytest.mark.parametrize("kind", READ)
def test_a_card_takes_a_few_kilobytes_and_loads_nothing(kind: Kind) -> None:
    html = card(made(kind))
    assert len(html) < 8_000
    assert not any(word in html for word in ("http", "<script", "@import", "url("))
    assert len(repr(made(kind))) < 1_000


@pytest.mark.parametrize(("kind", "bars"), [("audit", 4), ("validation", 3)])
def test_a_card_has_a_bar_for_each_space_or_for_each_attack_and_the_ceiling(kind: Kind, bars: int) -> None:
    assert card(made(kind)).count("<svg") == bars


@pytest.mark.parametrize("kind", OTHERS)
def test_card_frame_and_chart_hold_every_share_of_a_result(kind: Kind) -> None:
    readings = [one for one in made(kind).readings() if one.found is not None]
    shares = [one.found.value for one in readings if one.is_share]
    assert card(made(kind)).count("<svg") == len(shares) > 0
    assert [*made(kind).to_frame()["value"]] == [one.found.value for one in readings]
    (rows,) = made(kind).plot().to_dict()["datasets"].values()
    assert [row["share"] for row in rows] == shares


@pytest.mark.parametrize("kind", READ)
def test_results_can_be_copied_and_pickled(kind: Kind) -> None:
    one = made(kind)
    for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert again == one
        assert again.file_text() == one.file_text()


def _rows(kind: Kind) -> list[dict[str, object]]:
    spec = made(kind).plot().to_dict()
    rows: list[dict[str, object]] = spec["datasets"][spec["data"]["name"]]
    return rows


def test_charts_hold_the_worst_attacker_of_each_space_and_every_attack() -> None:
    rows = _rows("audit")
    assert {(row["space"], row["k"], row["FAR"]) for row in rows} == {
        (space.name, one.k, f"1e-{3 if one.far == 1e-3 else 4}")
        for space in full_audit().spaces
        for one in space.points
    }
    assert {row["attacker"] for row in rows} == {"lda"}
    rows = _rows("validation")
    assert len(rows) == 2 * 2 * 2
    assert {"attack": "scores", "questions": 100, "FAR": "0.01", "recovered": 0.6}.items() <= rows[1].items()


def test_frames_are_tidy_and_albums_are_rows_of_their_own() -> None:
    frame = with_parts(full_audit(), albums=albums(album(0.2, (2, 3), "isp"))).to_frame()
    keys = ["space", "probe", "k", "album", "against", "far"]
    assert not frame.duplicated(keys).any()
    (row,) = frame[frame.album > 1].to_dict("records")
    assert [row[key] for key in keys] == ["isp", "lda", 4, 2, 3, 1e-4]
    found = validation().to_frame()
    assert not found.duplicated(["attack", "queries", "far", "judge", "pictures"]).any()
    assert len(found) == 8


def asked_for(result: AuditResult) -> dict[str, Any]:
    """Run the call, up to where ``unface.audit`` would begin: what it is given by name."""
    given: list[dict[str, Any]] = []
    signature = inspect.signature(unface.audit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unface, "audit", lambda *some, **named: given.append(signature.bind(*some, **named).arguments))
        exec(compile(repeated(result)[1], "call", "exec"), {})
    return given[0]


def command_options(result: AuditResult) -> dict[str, Any]:
    """Parse the command as the command line would, without running it."""
    program, verb, *words = shlex.split(repeated(result)[0].replace("\\\n", " "))
    command = get_command(app).commands[verb]  # type: ignore[attr-defined]
    assert program == "unface"
    return dict(command.make_context(verb, words).params)


def test_all_pictures_are_asked_for_by_that_word_where_people_have_unequal_numbers() -> None:
    """The largest number, which few people have, would be refused."""
    made = full_audit()
    used = made.curated.model_copy(update={"most": 16, "rows": made.curated.rows + 1})
    uneven = made.model_copy(update={"curated": used})
    assert asked_for(uneven)["protocol"].k == [1, 4, "all"]
    assert command_options(uneven)["k"] == ["1,4,all"]


def test_the_call_that_repeats_an_audit_is_one_that_audit_takes() -> None:
    called = asked_for(full_audit())
    assert called["source"] == "faces.parquet"
    assert called["eraser"] == ["isp"]
    assert called["rank"] == 192
    assert called["utility"] == ["objects.parquet"]
    assert called["protocol"] == unface.Protocol(
        far=[0.001, 0.0001], k=[1, 4, 16], seeds=5, probe=["cosine", "ridge", "lda"], images=20, bootstraps=2000
    )
    sweeps, transfer, maps, swap = called["parts"]
    assert isinstance(sweeps, Sweeps)
    assert (sweeps.ranks, sweeps.fit_counts) == (True, (210, 420, 840, 1680))
    assert isinstance(transfer, Transfer)
    assert transfer.second == "strangers.parquet"
    assert isinstance(maps, Maps)
    assert isinstance(swap, AttributeSwap)
    assert swap.column == "smiling"


def test_a_sweep_over_identities_alone_and_sets_that_others_gave_are_repeated_too() -> None:
    sets = utility_sets("one.parquet", "two.parquet", spared="spare.parquet")
    only = with_parts(full_audit(), sweeps=sweeps(identity_sweep()), utility=sets)
    result = only.model_copy(update={"fit_source": given("others.parquet", 9)})
    called = asked_for(result)
    assert (called["fit_on"], called["spare"]) == ("others.parquet", "spare.parquet")
    assert called["utility"] == ["one.parquet", "two.parquet"]
    assert (called["parts"][0].ranks, called["parts"][0].fit_counts) == (False, (210, 420, 840, 1680))
    options = command_options(result)
    assert options["utility"] == ["one.parquet", "two.parquet"]
    assert (options["fit_on"], options["spare"]) == ("others.parquet", "spare.parquet")
    assert (options["sweep"], options["fit_counts"]) == (False, ["210,420,840,1680"])


def test_a_quota_of_impostors_is_repeated_too() -> None:
    protocol = full_audit().protocol.model_copy(update={"impostor_quota": 7})
    again = full_audit().model_copy(update={"protocol": protocol})
    assert "--impostor-quota 7" in repeated(again)[0]
    assert asked_for(again)["protocol"].impostor_quota == 7


def test_the_command_that_repeats_an_audit_has_only_options_there_are() -> None:
    for made in (full_audit(), raw_audit()):
        options = command_options(made)
        assert options["source"] == "faces.parquet"
        # A default rate that the set cannot show would be refused if it were named.
        refused = any(point.resolution == "refused" for point in made.raw.points)
        assert options["far"] == ([] if refused else ["1e-3,1e-4"])
        assert (options["k"], options["probe"]) == (["1,4,16"], ["cosine,ridge,lda"])
    assert command_options(full_audit())["transfer"] == "strangers.parquet"
    assert command_options(full_audit())["attribute_swap"] == "smiling"
    assert "--eraser isp" in repeated(full_audit())[0]
    assert "--fit-counts 210,420,840,1680" in repeated(full_audit())[0]


def test_what_is_usual_but_was_not_done_is_turned_off() -> None:
    again, _ = repeated(raw_audit())
    assert (asked_for(raw_audit())["eraser"], asked_for(raw_audit())["parts"]) == ([], [])
    for option in ("--eraser none", "--no-sweep", "--no-maps"):
        assert option in again
        assert option not in repeated(full_audit())[0]


def test_what_was_fitted_is_asked_for_again_and_no_more_than_that() -> None:
    def asked(*spaces: SpaceResult, **sources: Given) -> dict[str, Any]:
        called = asked_for(audited(raw(), *spaces).model_copy(update=sources))
        return {name: called[name] for name in called if name not in ("source", "protocol", "parts")}

    isp, keeper = erased("isp"), erased("keeper", rank=3, mu=0.3, kept=5)
    assert asked(erased("ready", fit_identities=None)) == {"eraser": []}
    assert asked(isp, erased("leace"), erased("pca", control=True)) == {"eraser": ["isp", "leace"], "rank": 4}
    assert asked(isp, erased("leace", rank=3)) == {"eraser": ["isp", "leace"]}
    assert asked(keeper) == {"eraser": ["keeper"], "rank": 3, "mu": 0.3}, "its rank says what it keeps"
    assert asked(isp, keeper) == {"eraser": ["isp", "keeper"], "mu": 0.3, "keep": 5}
    sets = {f"{name}_source": given(name, 1) for name in ("copy", "gate", "fit")}
    found = asked(erased("isp", gate=face_gate(asked=0.01)), **sets)
    assert (found["copies"], found["gate"], found["miss"], found["fit_on"]) == ("copy", "gate", 0.01, "fit")
    assert "miss" not in asked(erased("isp", gate=face_gate()), **sets)


def test_names_in_the_command_stay_one_word_for_the_shell() -> None:
    source = full_audit().source.model_copy(update={"name": "my faces; rm -rf x.parquet"})
    words = shlex.split(repeated(full_audit().model_copy(update={"source": source}))[0].replace("\\\n", " "))
    assert words[:3] == ["unface", "audit", "my faces; rm -rf x.parquet"]
    assert words[words.index("--far") + 1] == "1e-3,1e-4"
    assert words[words.index("--k") + 1] == "1,4,16"


def test_the_hash_on_the_page_is_that_of_the_file(tmp_path: Path) -> None:
    path = full_audit().save(tmp_path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with undrawn():
        shown = Page(page(full_audit()))
    assert digest in shown.one("section", id="method").words
    cited = shown.one("section", id="repeat").words
    assert digest in cited
    assert full_audit().roles.sha256 in cited
