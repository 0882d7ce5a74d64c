"""If these fail, one of an audit's many small decisions is made otherwise than it says."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tests.auditing.audits import FEW, PEOPLE, RANK, axes, bare_refusal, looped, quick
from tests.auditing.made import erased, point, raw, result_of
from tests.report.made import given
from unface import UnfaceError, make_identities
from unface.auditing import Protocol, require_people
from unface.auditing.attack import resolution_word
from unface.auditing.defence import Defence, Defender, RankRule, Target, _keeper_rule, equal_controls, erased_source
from unface.auditing.exposure.run import _by_group, _Groups, accepts_share
from unface.auditing.fit import _also, _certified, _chosen, _same, is_streamed, require_use
from unface.auditing.protocol import _group_codes, _of_people, _signatures, fitting_ks, prepare
from unface.auditing.run import _known_copies, _left_out, _measured_on_gate_set, _padded, _require_different
from unface.auditing.search.run import _threshold_replicates
from unface.auditing.sweeps.run import _at_ranks
from unface.auditing.utility.run import _named_apart
from unface.data import Curation, EmbeddingSet, ImageRef, ImageSet
from unface.metrics import Resolution, Scheme
from unface.probe import SignatureContext, Variant, draw_bootstrap


def refused(what: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(UnfaceError) as caught:
        what(*arguments, **options)
    return str(caught.value)


# Ranks and keepers


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mu": float("inf")}, "--mu inf: expected 0 or more"),
        ({"mu": -0.5}, "--mu -0.5: expected 0 or more"),
        ({"keep": 0}, "--keep 0: keeper keeps at least one dimension"),
        ({"keep": 3, "rank": 3}, "--keep: --rank or --energy decides that too; give one of them"),
        ({"keep": 3, "energy": 0.5}, "--keep: --rank or --energy decides that too; give one of them"),
        ({"rank": 0}, "rank 0; an eraser removes at least one dimension"),
    ],
)
def test_a_rule_that_contradicts_itself_is_refused(options: dict[str, Any], said: str) -> None:
    assert refused(RankRule, **options) == said


def test_the_smallest_rules_are_taken() -> None:
    assert RankRule(rank=1, mu=0).mu == 0
    assert RankRule(keep=1, target=Target(0.1, 0.1)).keep == 1


def test_a_keeper_removes_all_but_what_it_keeps() -> None:
    assert RankRule(keep=5).keeper_rank(16) == 11
    assert RankRule().keeper_rank(16) == 14
    assert refused(RankRule(keep=16).keeper_rank, 16) == "--keep 16: of 16 dimensions; keep at most 15"
    assert RankRule(keep=15).keeper_rank(16) == 1
    for rule, option in ((RankRule(keep=2), "--keep"), (RankRule(mu=0.0), "--mu")):
        rule.require_keeper(("isp", "keeper"))
        told = f"{option}: is for --eraser keeper, which is not fitted here; leave it out"
        assert refused(rule.require_keeper, ("isp",)) == told


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (RankRule(), "usual: an eighth of the dimensions is kept"),
        (RankRule(keep=3), "dimensions to keep given"),
        (RankRule(rank=3), "given"),
        (RankRule(energy=0.5), "50.0 % of the energy of the class means"),
        (
            RankRule(target=Target(0.05, 1e-3)),
            "most useful on calibrate with a worst case there of at most 5.0 % at FAR 1e-3",
        ),
    ],
)
def test_a_keeper_says_by_which_rule_it_keeps(rule: RankRule, said: str) -> None:
    assert _keeper_rule(rule) == said


def defence(name: str, *which: int) -> Defence:
    return Defence(name, name, axes(*which), False, "given", "here", None)


def test_controls_are_named_by_rank_only_where_ranks_differ_and_none_is_made_twice() -> None:
    people = Defender(PEOPLE.unit())
    one = equal_controls([defence("isp", 0, 1), defence("leace", 2, 3)], people)
    assert [(made.name, made.method, made.projection.rank) for made in one] == [
        ("random", "random", 2),
        ("pca", "pca", 2),
    ]
    assert {(made.control, made.rank_rule, made.fitted_on) for made in one} == {
        (True, "that of the erasers", "synthetic")
    }
    two = equal_controls([defence("isp", 0, 1), defence("pca@3", 2, 3, 4)], people)
    assert [made.name for made in two] == ["random@2", "pca@2", "random@3"]


def test_a_sweep_fits_each_method_with_its_own_mu() -> None:
    asked: list[tuple[str, int, float | None]] = []

    class Spy:
        identities = 7

        def project(self, method: str, rank: int, mu: float | None) -> str:
            asked.append((method, rank, mu))
            return method

    wanted, mus = [("keeper", 3), ("random", 3)], {"keeper": 0.3, "isp": None}
    made = list(_at_ranks(wanted, cast(Any, Spy()), mus))
    assert made == [("raw", None, 7), ("keeper", "keeper", 7), ("random", "random", 7)]
    assert asked == [("keeper", 3, 0.3), ("random", 3, None)]


# Protocol


@pytest.mark.parametrize(
    ("ks", "images", "variant", "found"),
    [
        (None, 20, Variant.UNFACE, ((1, 4, 16, 20), 20)),
        (None, 16, Variant.UNFACE, ((1, 4, 16), 16)),
        (None, 18, Variant.PAPER, ((1, 4, 16), None)),
        (None, 17, Variant.PAPER, ((1, 4), None)),
        ((2, 2, "all"), 2, Variant.UNFACE, ((2,), 2)),
        ((1,), 3, Variant.PAPER, ((1,), None)),
    ],
)
def test_ks_are_those_that_leave_enough_to_compare(ks: Any, images: int, variant: Variant, found: object) -> None:
    assert fitting_ks(ks, images, variant) == found


def labelled(column: Any) -> EmbeddingSet:
    return replace(FEW.take(np.arange(10)), labels={"c": np.asarray(column)})


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.int8, np.uint8])
def test_signatures_may_be_any_numbers_and_nothing_else(kind: type) -> None:
    found = _signatures(labelled(np.ones((10, 2), kind)), "c")
    assert isinstance(found, SignatureContext)
    assert found.name == "c"
    assert found.signatures.dtype == np.float32
    told = "synthetic: 'c' is no column of vectors; --context needs one vector for each row, --group takes a name"
    wrong: tuple[Any, ...] = (np.ones(10, kind), np.full((10, 2), "X"), np.ones((10, 2), bool), np.ones((10, 2), "c8"))
    for column in wrong:
        assert refused(_signatures, labelled(column), "c") == told
    assert _signatures(FEW, None) is None


def test_groups_without_a_name_are_unknown_and_people_share_theirs() -> None:
    """Ten rows, two people of five pictures."""
    codes = _group_codes(labelled(np.array(["b", "a", None, "nan", ""] * 2, object)), "c")
    assert codes.tolist() == [codes[0], codes[1], -1, -1, -1] * 2
    assert codes[0] > codes[1] >= 0
    four = FEW.take(FEW.identities < 4)
    by_person = four.identities // 2
    assert _of_people(four, by_person)
    assert not _of_people(four, four.identities), "nobody shares a group"
    assert not _of_people(four, np.arange(len(four)) // 2), "it varies within a person"
    assert _of_people(four, np.where(np.arange(len(four)) % 5 == 0, -1, by_person)), "what is not known is no group"


def pictures(people: int, each: int, copies: int = 0) -> ImageSet:
    refs = [ImageRef(f"{who}/{row}", f"p{who}", bytes) for who in range(people) for row in range(each)]
    refs += [ImageRef(f"c{row}", "p0", bytes, copy_of="0/0") for row in range(copies)]
    return ImageSet(tuple(refs), "faces.zip")


def test_pictures_are_counted_by_the_paper_variants_own_shares_and_without_copies() -> None:
    """The paper fits erasers on its train identities: 54 of 80 people."""
    paper = Protocol(far=0.01, variant="paper", k=1)
    require_people(pictures(80, 5), paper, rank=52)
    assert refused(require_people, pictures(80, 5), paper, rank=60).startswith("faces.zip: rank 60 needs at least ")
    assert "rank 24 needs" in refused(require_people, pictures(80, 5), Protocol(far=0.01), rank=24)
    few = refused(require_people, pictures(80, 5), replace(Protocol(far=0.01), max_identities=30), rank=9)
    assert few.endswith("this set has 30. Use --rank 8 or add people")
    require_people(pictures(80, 5), replace(Protocol(far=1e-9), split="role"), rank=500)
    require_people(ImageSet((), "faces.zip"), Protocol())
    assert refused(require_people, pictures(1, 2, copies=9), Protocol(k=9)).startswith(
        "k = 9 needs 9 images for each identity, 2 are used"
    )


def test_a_policy_that_asks_for_a_k_that_is_not_measured_is_refused_with_what_would_do() -> None:
    asked = bare_refusal(k=(1, 2), needed_k=(2, 3))
    told = "synthetic: the policy asks for k = 3, and this audit measures k = 1, 2; "
    assert asked == f"{told}ask for it with --k 3, or change the policy"
    assert bare_refusal(k=(1, 2), needed_k=(6,)) == (
        f"{told.replace('3', '6')}give more pictures of each person and --images 6, or change the policy"
    )


def test_few_pairs_of_a_quota_resolve_less() -> None:
    """8 calibrate people, one pair of pictures for each two of them: 28 pairs do not resolve 0.1, but 112 do."""
    assert bare_refusal(far=0.1, impostor_quota=1).startswith("synthetic: FAR 0.1 needs at least ")
    assert bare_refusal(far=0.1, impostor_quota=1).endswith("this set has 40. Add people")
    assert bare_refusal(far=0.01, impostor_quota=4).endswith("Use --far 0.1 or add people")
    assert refused(Protocol, max_identities=24) == "max_identities is 24; an audit needs at least 25"
    assert refused(Protocol, bootstraps=1, bootstrap="multinomial").endswith("give an even number, not 1")
    assert Protocol(max_identities=25, bootstraps=3, bootstrap="multinomial").scheme() is Scheme.MULTINOMIAL


# Who is exposed, and searches


def test_groups_have_the_tar_of_their_people_and_the_widest_gap_is_named() -> None:
    """Groups 0 and 1 of two people, 2 of one, 3 of two; one person of none. Ten pairs each."""
    bootstrap = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, 5, 8, 200, 0)
    groups = _Groups("club", np.array([0, 0, 1, 1, 2, 3, 3, -1]), ("a", "b", "c", "d"))
    accepted = np.array([1.0, 3, 8, 10, 10, 5, 5, 10])
    pairs = np.full(8, 10)
    drawn = np.repeat(accepted[:, None], 200, axis=1)
    found, gap = _by_group(groups, accepted, pairs, drawn, bootstrap)
    assert [(one.group, one.people, one.tar.numerator, one.tar.denominator) for one in found] == [
        (1, 2, 4, 20),
        (2, 2, 18, 20),
        (4, 2, 10, 20),
    ]
    assert gap is not None
    assert (gap.higher, gap.lower, gap.level) == (2, 1, bootstrap.level)
    assert gap.value == pytest.approx(0.7)
    assert gap.low < 0.7 < gap.high
    assert _by_group(None, accepted, pairs, drawn, bootstrap) == ([], None)
    alone = _Groups("club", np.array([0, 0, 1, -1, -1, -1, -1, -1]), ("a", "b"))
    (only,), nothing = _by_group(alone, accepted, pairs, drawn, bootstrap)
    assert (only.tar.value, nothing) == (0.2, None)
    assert accepts_share(np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([4, 0])).tolist() == [[0.25, 0.5], [0, 0]]


def test_thresholds_of_searches_let_one_query_in_a_hundred_return_a_stranger() -> None:
    """400 queries of four people, with scores from 400 down to 1: four may pass, or two that weigh two each."""
    falling = np.arange(400, 0, -1, dtype=np.float32)
    identities = np.arange(400) % 4
    weights = np.array([[1.0, 1, 1, 1], [2, 0, 2, 0], [0, 2, 0, 2]])
    found = _threshold_replicates(falling, identities, weights)
    # just above the first that may not pass: the fifth, the third of the even ones, the third of the odd ones
    assert found == pytest.approx([396, 396, 395], rel=1e-6)
    assert (found > [396, 396, 395]).all()


def test_a_resolution_that_was_measured_is_resolved_or_coarse() -> None:
    assert [resolution_word(one) for one in (Resolution.RESOLVED, Resolution.COARSE)] == ["resolved", "coarse"]


# What is said of the sets


def curation(**given_: int) -> Curation:
    plain = {
        "images": 4,
        "identities_kept": 10,
        "identities_dropped": 1,
        "rows_kept": 40,
        "rows_dropped": 3,
        "fewest": 3,
    }
    return Curation(**{**plain, **given_})


@pytest.mark.parametrize(
    ("dropped", "said"),
    [
        (
            {"identities_dropped": 0},
            "3 of 43 pictures were left out, as 4 of each person are used. --images uses more of each, and leaves out "
            "people with fewer",
        ),
        (
            {},
            "3 of 43 pictures were left out, as 4 of each person are used; so were 1 person with fewer than 4. "
            "--images 3 uses everybody with at least two pictures. A larger --images uses more pictures of fewer "
            "people",
        ),
        (
            {"fewest": 4, "identities_dropped": 2},
            "3 of 43 pictures were left out, as 4 of each person are used; so were 2 people with fewer than 4. A "
            "larger --images uses more pictures of fewer people",
        ),
    ],
)
def test_what_was_left_out_is_counted(dropped: dict[str, int], said: str) -> None:
    assert _left_out(curation(**dropped)) == said


def test_columns_of_the_attackers_people_are_theirs_or_empty() -> None:
    theirs = replace(FEW.take(np.arange(2)), labels={"a": np.array(["x", "y"]), "n": np.array([3, 4])})
    assert _padded(np.array(["p"]), theirs, "a").tolist() == ["p", "x", "y"]
    assert _padded(np.array(["p"]), theirs, "b").tolist() == ["p", None, None]
    assert np.isnan(_padded(np.ones((1, 2), np.float32), theirs, "n")[1:]).all()
    assert _padded(np.ones((1, 2), np.float32), theirs, "n").shape == (3, 2)
    assert _padded(np.array([7]), theirs, "b").tolist() == [7, None, None]


def test_vectors_that_hardly_differ_are_the_same_and_one_that_does_is_enough() -> None:
    same = replace(FEW, vectors=np.tile(FEW.vectors[:1], (len(FEW), 1)))
    assert refused(_require_different, same).startswith("synthetic: all 200 vectors are the same")
    rounded = same.vectors.copy()
    rounded[-1] *= 1 + 5e-7
    assert "are the same" in refused(_require_different, replace(same, vectors=rounded))
    many = np.ones((9_000, 4), np.float32)
    many[-1, 0] = 2
    _require_different(EmbeddingSet.from_arrays(many, np.arange(9_000) % 30))


def test_usefulness_on_the_gate_set_is_a_warning_with_the_vectors_they_share() -> None:
    gate, apart = replace(FEW.take(np.arange(3)), source="gate"), make_identities(5, 5, 4, seed=77)
    (found,) = _measured_on_gate_set(gate, [replace(FEW, source="task"), replace(apart, source="other")])
    assert (found.severity, found.about) == ("warning", "utility")
    assert found.text == (
        "3 vectors of task also in the gate set, so utility looks better than it is: measure on other pictures"
    )
    assert _measured_on_gate_set(None, [FEW]) == []


def test_sets_of_one_name_are_numbered() -> None:
    named = _named_apart([replace(FEW, source=name) for name in ("a", "b", "a", "a")])
    assert [one.source for one in named] == ["a", "b", "a (2)", "a (3)"]


def test_a_store_that_remembers_only_a_hash_is_named_by_it_or_by_the_projection_at_hand() -> None:
    mark = axes(0).sha256
    erased_people = replace(
        PEOPLE, erased=json.dumps({"projection_sha256": mark}), space=replace(PEOPLE.space, weights_sha256=mark)
    )
    prepared = prepare(erased_people, Protocol(far=0.01, k=1))
    found, others = erased_source(prepared, [axes(1)])
    assert found is not None
    facts = (found.kind, found.rank, found.gated, found.projection_sha256, found.overlap)
    assert facts == (f"projection {mark[:8]}", None, False, mark, None)
    assert [one.sha256 for one in others] == [axes(1).sha256]
    found, others = erased_source(prepared, [axes(0), axes(1)])
    assert found is not None
    assert (found.kind, found.rank, found.gated, found.projection_sha256) == ("axes", 1, False, mark)
    assert [one.sha256 for one in others] == [axes(1).sha256]


# unface fit


def test_a_task_or_copies_that_nothing_is_done_with_are_refused() -> None:
    require_use("keeper", spare=True, copies=False)
    require_use("keeper", spare=False, copies=True)
    require_use("utility-pca", spare=True, copies=False)
    require_use("isp", spare=False, copies=False)
    told = "isp: does not preserve a task; leave --spare out, or use --eraser "
    assert refused(require_use, "isp", spare=True, copies=False).startswith(told)
    assert refused(require_use, "isp", spare=True, copies=False).endswith(" or keeper")
    told = "isp: does not learn from copies; leave --copies out, or use --eraser keeper"
    assert refused(require_use, "isp", spare=False, copies=True) == told
    told = "keeper: learns from copies of pictures or from a task; give --copies or --spare"
    assert refused(require_use, "keeper", spare=True, copies=True) == told


def test_what_is_fitted_from_sums_can_be_fitted_on_any_number_of_files() -> None:
    able = ("isp", "leace", "pca", "random", "keeper")
    assert [is_streamed(method) for method in (*able, "rlace", "magic")] == [True] * 5 + [False] * 2


def test_without_anybody_held_out_there_is_nothing_to_certify() -> None:
    nobody: Any = SimpleNamespace(held=[], held_names=[])
    told = "certificate: no rows; at least two identities are needed; raise --hold-out, or use 0 for no certificate"
    assert refused(_certified, axes(0), nobody, None) == told


def test_an_eraser_of_an_audit_is_chosen_by_name_where_there_are_several() -> None:
    isp, leace = erased("isp", point()), erased("leace", point())
    assert _chosen(result_of(raw(point()), isp), None).name == "isp"
    both = result_of(raw(point()), isp, leace, erased("pca", point(), control=True))
    assert _chosen(both, "leace").name == "leace"
    assert refused(_chosen, both, None) == "--from: the audit has isp, leace; choose one with --eraser"
    assert refused(_chosen, both, "sal") == "--from: the audit has no eraser 'sal'; it has isp, leace"
    none = "--from: no eraser was fitted in this audit; name an audit with one"
    assert refused(_chosen, result_of(raw(point())), None) == none


def test_sets_of_the_audit_are_asked_for_and_others_refused() -> None:
    audited = given("task.npz", 1_000)
    assert _also(None, None, "--spare") is None
    assert refused(_also, FEW, None, "--spare") == "--spare: the audit had none; leave it out with --from"
    again = "--from: the audit had --spare task.npz (aaaaaaaaaaaa…); give it again"
    assert refused(_also, None, audited, "--spare") == again
    assert refused(_also, FEW, audited, "--spare") == (
        "--spare synthetic: is not the set of the audit, which was task.npz of 1,000 rows (aaaaaaaaaaaa…); give that "
        "one"
    )
    own = audited.model_copy(update={"sha256": FEW.sha256()})
    assert _also(FEW, own, "--spare") is not None
    assert _same(FEW, own, "SRC") is FEW


def test_ready_projections_are_numbered_from_the_second_on() -> None:
    made = quick(eraser=(), projections=[axes(0), axes(1)], probe="cosine")
    assert [one.name for one in made.spaces] == ["raw", "projection", "projection 2", "random", "pca"]
    (first, second) = (one.erasure for one in made.spaces[1:3])
    assert first is not None
    assert (first.method, first.rank_rule, first.fitted_on, first.fit_identities) == (
        "axes",
        "of a ready projection",
        "elsewhere",
        None,
    )
    assert second is not None
    isp = looped().spaces[1].erasure
    assert isp is not None
    assert (isp.rank, isp.dim, isp.kept, isp.mu, isp.fit_identities, isp.overlap) == (RANK, 16, None, None, 36, None)


def test_changes_are_of_all_that_removed_as_many_dimensions() -> None:
    changes = {one.name: [change.against for change in one.changes] for one in looped().spaces}
    assert changes == {
        "raw": [],
        "isp": ["raw", "random", "pca"],
        "random": ["raw", "isp", "pca"],
        "pca": ["raw", "isp", "random"],
    }


def test_what_an_audit_fits_is_certified_on_its_test_identities() -> None:
    for one in looped().spaces[1:]:
        assert one.erasure is not None
        assert one.erasure.certificate is not None
        assert one.erasure.certificate.identities == looped().roles.test


def test_copies_are_given_in_one_place() -> None:
    some = FEW.take(np.arange(10))
    named = np.array(["", *[some.ids[0]] * 9], object)
    copied = replace(some, labels={"copy_of": named})
    told = "--copies: SRC itself has copies in 'copy_of'; leave one of them out"
    assert refused(_known_copies, copied, copied) == told
    pictures_alone, known = _known_copies(copied, None)
    assert known is not None
    assert (len(pictures_alone), len(known.copies)) == (1, 9)
    assert _known_copies(some, None) == (some, None)
