"""If these fail, an audit is quoted at another point, or one space is taken for another."""

from pathlib import Path

import pytest

from tests.auditing.made import change, in_context, kept, point
from tests.gate.made import audited, erased, raw
from unface.auditing.albums import AlbumPoint, AlbumResults
from unface.result.audit import Curve, ErasedSource, FitOverlap, Headline, Point, SpaceResult
from unface.result.face_gate import GateCertificate
from unface.result.numbers import Estimate, Kept, Rate
from unface.result.verdict import best_eraser, eraser_title, kept_words, leaks_more, verdict

GATE = GateCertificate(0.01, Rate.counted(0, 9), 0.1, Rate.counted(0, 9), 0.1, Rate.counted(0, 9))


def test_a_point_counts_the_pairs_of_one_draw_and_is_above_chance_beyond_both_rates() -> None:
    one = point(0.03, 0.02, 0.04)
    assert (one.pairs, point(None, resolution="refused").pairs) == (100_000, 0)
    assert one.model_copy(update={"tar_by_seed": [0.03] * 4}).pairs == 25_000
    for far, achieved, baseline, above in (
        (1e-3, 0.02, 0.02, False),
        (0.02, 1e-3, 0.02, False),
        (1e-3, 0.0199, 0.0199, True),
    ):
        found = point(0.03, 0.02, 0.04, far=far, achieved=achieved)
        assert (found.baseline, found.above_chance) == (baseline, above)
    bare = one.model_copy(update={"achieved_far": None})
    assert (bare.baseline, bare.above_chance) == (1e-4, True)
    assert not point(None, resolution="refused").above_chance


def test_a_rate_adjusted_for_context_is_said_with_its_interval_or_not_at_all() -> None:
    found = in_context(0.031, 0.022, 0.043)
    assert found.words == "3.1 % [2.2, 4.3]"
    assert found.model_copy(update={"value": None}).words == "cannot be separated"


def test_a_curve_has_a_value_for_each_rate() -> None:
    Curve(probe="lda", k=4, far=[0.1, 0.2], tar=[0.3, 0.4], eer=0.2)
    with pytest.raises(ValueError, match="2 rates but 1 values of TAR"):
        Curve(probe="lda", k=4, far=[0.1, 0.2], tar=[0.3], eer=0.2)


def test_people_a_projection_was_fitted_on_are_estimated_beyond_chance() -> None:
    """Of 100 people, 10 match by chance if none was fitted on: 20 matches are (20 − 10) / 0.9 = 11 people."""
    found = FitOverlap(people=50, compared=100, matches=20, chance=0.1, overlap=True)
    assert found.estimate == 11
    assert found.model_copy(update={"matches": 5}).estimate == 0
    assert found.model_copy(update={"matches": 100}).estimate == 100


def test_released_vectors_are_named_by_what_erased_them() -> None:
    found = ErasedSource(kind="isp", rank=12, gated=False, projection_sha256=None, overlap=None)
    assert found.name == "erased by isp 12"
    assert found.model_copy(update={"gated": True, "rank": None}).name == "erased by gated isp"


def test_spaces_are_found_by_name_and_told_apart() -> None:
    random, isp = erased("random", control=True), erased("isp")
    at_1 = point(0.2, 0.1, 0.3, k=1)
    first = raw(point(0.1, 0.05, 0.2, worst=False, probe="cosine"), point(), at_1)
    result = audited(first, isp, random)
    assert (result.raw, result.space("isp"), result.space("none")) == (first, isp, None)
    assert (result.erased, result.control_names) == ([isp], {"random"})
    assert [(one.by_eraser, one.is_control) for one in result.spaces] == [(False, False), (True, False), (False, True)]
    assert result.worst == [point(), at_1]
    assert (first.worst_at(1, 1e-4), first.worst_at(1, 1e-3), first.worst_at(2, 1e-4)) == (at_1, None, None)
    assert (result.subject, result.conditions()) == (
        "faces.parquet",
        {"variant": "unface", "attackers": "cosine, lda"},
    )
    assert (result.k_words(4), result.k_words(8)) == ("4", "8 (all)")
    assert audited(first, variant="paper").k_words(8) == "8"
    head = Headline(point(k=4, far=1e-3))
    changes = [change(-0.1, -0.2, 0.0, k=k, far=far) for k in (1, 4) for far in (1e-4, 1e-3)]
    assert head.changes(erased("isp", changes=changes)) == [changes[3]]


def test_a_page_is_written_beside_an_audit_only_where_there_is_one(tmp_path: Path) -> None:
    audited(raw()).save(tmp_path / "bare")
    assert [one.name for one in (tmp_path / "bare").iterdir()] == ["audit.json"]
    path = audited(raw()).save(str(tmp_path / "out"), "<p>")
    assert path == tmp_path / "out" / "audit.json"
    assert (tmp_path / "out" / "report.html").read_text() == "<p>"


def test_the_repr_names_eight_spaces() -> None:
    others = [erased(f"e{number}") for number in range(8)]
    said = ", ".join(f"e{number} 0.80 %" for number in range(7))
    assert repr(audited(raw(), *others[:7])) == (
        f"<AuditResult faces.parquet: TAR at FAR 1e-4, k = 4: raw 30.0 %, {said}; 0 findings>"
    )
    assert repr(audited(raw(), *others)).endswith(f"{said}, …; 0 findings>")
    other_rate = erased("isp", point(0.1, far=1e-3))
    assert repr(audited(raw(), other_rate)).endswith("k = 4: raw 30.0 %; 0 findings>")


def test_the_frame_holds_every_number_of_photo_pairs_and_of_albums() -> None:
    found = [
        AlbumPoint(
            space=space, first=first, second=second, probe="lda", far=1e-4, resolution="resolved", worst=True,
            tar=point().tar, achieved_far=point().achieved_far, chance=1e-4, times_chance=840.0, threshold=0.5,
            calibrate_tar=0.1,
        )
        for space, first, second in (("raw", 1, 1), ("raw", 2, 5), ("gone", 2, 5))
    ]  # fmt: skip
    albums = AlbumResults(k=4, images=20, deals=3, points=found, changes=[], shuffled_identities=[])
    made = audited(raw(), erased("random", point(None, resolution="refused", worst=False), control=True))
    rows = made.model_copy(update={"parts": {"albums": albums}}).to_frame().astype(object).to_numpy().tolist()
    assert rows[0] == [
        *("raw", False, 0, "lda", True, 4, 1, 1, 1e-4, "resolved"),
        *(0.3, 0.28, 0.32, 30_000, 100_000, 1e-4, 1e-4, pytest.approx(3000)),
    ]
    assert rows[1][:10] == ["random", True, 4, "lda", False, 4, 1, 1, 1e-4, "refused"]
    assert rows[2] == [
        *("raw", False, 0, "lda", True, 4, 2, 5, 1e-4, "resolved"),
        *(0.084, 0.071, 0.099, 8_400, 100_000, 1e-4, 1e-4, 840.0),
    ]
    assert len(rows) == 3, "an album of one is a photo pair, and a space that is not there has no row"


RAW = "The attacker was trained on 4 pictures of each of a group of other people. "


def after(*spaces: SpaceResult, at: Point | None = None) -> str:
    return verdict(audited(raw(at or point()), *spaces)).partition(RAW)[2]


def test_the_sentence_after_erasure_is_about_the_eraser_that_leaves_least_on_calibrate() -> None:
    isp = erased("isp", point(0.02, 0.01, 0.03, calibrate_tar=0.01))
    mine = erased("mine", point(0.01, 0.005, 0.02, calibrate_tar=0.02))
    said = "(4 of 8 dimensions removed): 2.0 % [1.0, 3.0], 200 times chance."
    assert after(isp) == f"After ISP {said}"
    assert after(mine, isp) == after(isp, mine) == f"After ISP, the best of 2 erasers {said}"
    assert after() == ""
    none_left = erased("leace", point(0.03, 0.02, 0.04, calibrate_tar=0.0))
    assert after(isp, none_left).startswith("After LEACE, the best of 2 erasers "), "nothing is less than a little"
    gone = erased("isp", point(0.02, 0.01, 0.03, far=1e-3))
    assert after(gone) == "", "not measured at the headline's rate"
    head = Headline(point())
    assert best_eraser(audited(raw(), gone), head) is None
    names = ("isp", "leace", "sal", "inlp", "rlace", "utility-leace", "pca")
    titles = [eraser_title(erased(name)) for name in names]
    assert titles == ["ISP", "LEACE", "SAL", "INLP", "RLACE", "utility-leace", "pca"]


def test_faces_alone_are_erased_behind_a_gate() -> None:
    isp = erased("isp", point(0.02, 0.01, 0.03))
    assert isp.erasure is not None
    use = {"certificate": GATE, "missed_here": Rate.counted(0, 9)}
    gate = type(isp.erasure).model_validate(isp.erasure.model_dump() | {"gate": use})
    assert after(isp.model_copy(update={"erasure": gate})).startswith(
        "After ISP (4 of 8 dimensions removed from faces): 2.0 %"
    )


def test_only_controls_of_the_same_rank_are_put_beside_an_eraser() -> None:
    isp = erased("isp", point(0.02, 0.01, 0.03))
    random, pca = (erased(name, point(0.03, 0.02, 0.04), control=True) for name in ("random", "pca"))
    assert after(isp, random, pca).endswith(
        "chance. Controls of equal rank: 3.0 % after a random subspace, 3.0 % after label-free PCA."
    )
    assert pca.erasure is not None
    other = pca.model_copy(update={"erasure": pca.erasure.model_copy(update={"rank": 5})})
    refused = erased("random", point(None, resolution="refused"), control=True)
    assert after(isp, other, refused).endswith("200 times chance.")


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ("knn", "Accuracy of k-NN on objects.parquet: 80.0 % → 60.0 %."),
        ("linear", "Accuracy of a linear probe on objects.parquet: 80.0 % → 60.0 %."),
        ("copy recall@1", "Copy recall@1 on objects.parquet: 80.0 % → 60.0 %."),
        ("copy µAP", "Copy µAP on objects.parquet: 80.0 % → 60.0 %."),
        ("mine", "mine on objects.parquet: 80.0 % → 60.0 %."),
        (
            "neighbour overlap@10",
            "75.0 % [70.0, 81.0] of nearest neighbours among the audited pictures stay the same.",
        ),
    ],
)
def test_what_is_kept_is_one_sentence_and_the_measure_that_readers_want_most_is_said(measure: str, said: str) -> None:
    before, left = Estimate(0.8, 0.7, 0.9, 0.95), Estimate(0.6, 0.5, 0.7, 0.95)
    one = Kept(measure, "objects.parquet", 9, before, left, Estimate(0.75, 0.7, 0.81, 0.95))
    assert kept_words(one) == said
    order = ["knn", "linear", "copy recall@1", "copy µAP"]
    less = (
        [kept(0.9, 0.8, 1.0, measure=other) for other in order[order.index(measure) + 1 :]] if measure in order else []
    )
    assert after(erased("isp", point(0.02, 0.01, 0.03), utility=[*less, one])).endswith(f" {said}")


def test_the_worst_case_at_another_k_is_added_where_it_leaks_more() -> None:
    head = Headline(point())
    most = point(0.05, 0.04, 0.06, k=1, calibrate_tar=0.5)
    others = [
        point(0.02, 0.01, 0.03, calibrate_tar=0.1),
        point(0.9, k=2, calibrate_tar=0.9, worst=False),
        point(0.9, k=2, calibrate_tar=0.9, far=1e-3),
        point(None, k=2, calibrate_tar=0.9, resolution="refused"),
    ]
    space = erased("isp", *others, most)
    assert leaks_more(space, head) is most
    assert leaks_more(erased("isp", *others), head) is None
    assert leaks_more(erased("isp", others[1]), head) is None
    assert after(space).endswith("2.0 % [1.0, 3.0], 200 times chance (5.0 % with 1 picture each).")


def test_an_attacker_who_learns_from_every_picture_is_told_so() -> None:
    assert verdict(audited(raw(point(k=8)))).endswith(
        "The attacker was trained on all 8 pictures of each of a group of other people."
    )
