"""If these fail, an audit is quoted at another point, or one space is taken for another."""

import pytest

from tests.kit.results import audited, change, erased, in_context, point, raw
from unface.auditing.albums import AlbumPoint, AlbumResults
from unface.result.audit import Curve, ErasedSource, FitOverlap, Headline
from unface.result.verdict import verdict


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
    assert "%" not in found.model_copy(update={"value": None}).words


def test_a_curve_has_a_value_for_each_rate() -> None:
    Curve(probe="lda", k=4, far=[0.1, 0.2], tar=[0.3, 0.4], eer=0.2)
    with pytest.raises(ValueError, match="2 rates"):
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


@pytest.mark.parametrize("name", ["isp", "leace", "sal", "inlp", "rlace", "utility-leace", "pca"])
def test_an_eraser_is_written_in_capitals_where_its_authors_do(name: str) -> None:
    said = verdict(audited(raw(point()), erased(name, point(0.02, 0.01, 0.03))))
    assert f"After {name if name in ('utility-leace', 'pca') else name.upper()} (" in said
