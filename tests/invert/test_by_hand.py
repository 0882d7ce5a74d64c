"""If these fail, an inversion counts other faces, other steps or other people than it says."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tests.encode.tiny import DIM, SIZE
from tests.invert.test_decoder import world
from tests.invert.test_diffmi import Blank
from tests.invert.test_view import projection
from tests.invert.toy import LATENT, SLOTS, ToyEncoder, ToyPrior, toy_case
from tests.probe.small import Told
from tests.refusals.table import refused
from unface.invert import Invert, Ledger, Need, Reconstructions, Targets, Threat, Train, load_attack, require
from unface.invert.alsuv import PRESETS, Alsuv, Search, read_preset, style_prior
from unface.invert.decoder import Decoder, Network, refined, trained
from unface.invert.decoder import Preset as DecoderPreset
from unface.invert.decoder import _bytes as in_bytes
from unface.invert.decoder import _generated as generated
from unface.invert.decoder import _people as people_of
from unface.invert.decoder import read_preset as read_decoder
from unface.invert.diffmi import DiffMI, apgd, checkpoints_of, normal_noises
from unface.invert.diffmi import _finds_face as finds_face
from unface.invert.diffmi import read_preset as read_diffmi
from unface.invert.indirect import Bob, Translate, near_orthogonal
from unface.invert.material import assign, spaces_of
from unface.invert.measure import (
    Judged,
    Juror,
    People,
    changes,
    embed_faces,
    equal_error_point,
    median,
    passes,
    real_cosines,
    shared_fars,
)
from unface.invert.run import Batch, CellRun, PoolFaces, all_changes, invert, plan_of, run_cell, space_facts
from unface.invert.run import _findings as findings_of
from unface.invert.run import _not_measured as not_measured
from unface.invert.run import _slug as slug
from unface.invert.view import FFHQ, Pool, View, Window, as_pictures, frame_size, in_parts, require_size
from unface.invert.view import _window as window_for
from unface.judge import threshold_facts
from unface.judge.template import Tally
from unface.metrics import zero_bound
from unface.output.place import place_at
from unface.result.file import NO_RATE
from unface.result.inversion import EqualError, InversionCell, InversionSuccess, Passes
from unface.result.numbers import Estimate, Interval, Rate, Share
from unface.score import Threshold
from unface.seeds import stream

Vectors = NDArray[np.float32]


def at(*degrees: float) -> Vectors:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def cosine(degrees: float) -> float:
    return float(np.cos(np.radians(degrees)))


def juror(name: str, *within: float, equal: float | None = None) -> Juror:
    thresholds = tuple(Threshold.known(10.0 ** -(2 + n), cosine(one), 1000, 1) for n, one in enumerate(within))
    error = None if equal is None else EqualError(rate=0.1, cosine=cosine(equal), far=0.1)
    return Juror(name, thresholds, error)


def accepted(judged: Tally, kind: str) -> list[list[int]]:
    """(thresholds, people)"""
    return [getattr(judged, kind).accepts(one.cosine).tolist() for one in judged.thresholds]


# Two people: pictures at 0°, 20° and 40°, of which the second is attacked; and at 90° and 100°. One has no face.
SEEN = np.concatenate([at(0, 20, 40, 90, 100), np.zeros((1, 2), np.float32)])
PEOPLE = People(np.array([0, 0, 0, 1, 1, 1]), np.array([1, 3]), SEEN, {"a": SEEN, "b": SEEN})


def test_reconstructions_are_compared_with_the_attacked_picture_others_and_strangers() -> None:
    made = {"a": np.concatenate([at(25), np.zeros((1, 2), np.float32)]), "b": at(60, 95)}
    jury = [juror("a", 10, 22), juror("b", 12, 22, equal=50)]
    assert shared_fars(jury) == [1e-2, 1e-3], "one judge has no EER threshold"
    judged = Judged.of(made, PEOPLE, jury)
    one, two = judged.by["a"], judged.by["b"]
    assert accepted(one, "same") == [[1, 0], [1, 0]]
    assert accepted(one, "other") == [[0, 0], [1, 0]]
    assert ([len(part.scores) for part in (one.same, one.other)], one.stranger_of.tolist()) == ([2, 3], [2, 3])
    assert (accepted(two, "same"), accepted(two, "other")) == ([[0, 1], [0, 1]], [[0, 1], [1, 1]])
    found = {(point.judge, point.far): point for point in judged.success()}
    assert list(found) == [(name, far) for name in ("a", "b", "all") for far in (1e-2, 1e-3)]
    assert found["all", 1e-2].same.numerator == 2
    assert found["all", 1e-2].same.denominator == 4
    strict = found["all", 1e-3].other
    assert strict is not None
    assert (strict.numerator, strict.denominator) == (3, 6)
    alone = Judged.of({"a": made["b"]}, PEOPLE, [juror("a", 12, equal=50)])
    assert [(point.judge, point.far) for point in alone.success()] == [("all", 1e-2), ("all", None)]
    assert alone.success()[1].derangement.numerator == 2, "60° passes for 90° and 100° within 50°"
    ceiling = Judged.of({"a": SEEN[PEOPLE.rows]}, PEOPLE, [juror("a", 12, 21)]).ceiling()
    assert [(one.judge, one.far, one.other.numerator, one.other.denominator) for one in ceiling] == [
        ("all", 1e-2, 1, 3), ("all", 1e-3, 3, 3),
    ]  # fmt: skip
    both = Judged.of({"a": SEEN[PEOPLE.rows], "b": SEEN[PEOPLE.rows]}, PEOPLE, [juror("a", 12), juror("b", 21)])
    assert [(one.judge, one.other.numerator) for one in both.ceiling()] == [("a", 1), ("b", 3), ("all", 4)]
    single = People(np.arange(2), np.arange(2), at(0, 90), {"a": at(0, 90)})
    nobody = Judged.of({"a": at(0, 90)}, single, [juror("a", 12)])
    assert nobody.ceiling() == []
    assert nobody.success()[0].other is None
    assert changes("x", "y", nobody, nobody)[0].other is None


def test_a_change_is_raw_less_erased_over_the_same_people() -> None:
    raw = Judged.of({"a": at(20, 90)}, PEOPLE, [juror("a", 12, 22)])
    erased = Judged.of({"a": at(60, 90)}, PEOPLE, [juror("a", 12, 22)])
    first, second = changes("alsuv", "isp", raw, erased)
    assert (first.attack, first.space, first.far, second.far) == ("alsuv", "isp", 1e-2, 1e-3)
    assert first.same.value == 0.5
    assert first.other is not None
    assert second.other is not None
    assert [first.other.value, second.other.value] == pytest.approx([0, 1 / 3])
    bound = zero_bound(2)
    assert (first.other.low, first.other.high) == (-bound, bound), "nobody changed, but two people are few"
    assert first.same.low <= 0.5 <= first.same.high
    assert first.same.low < first.same.high


def test_cosines_of_real_pictures_leave_the_attacked_one_out() -> None:
    second, strangers = real_cosines(5 * SEEN[:5], replace(PEOPLE, identities=PEOPLE.identities[:5]))
    np.testing.assert_allclose(second, [cosine(20), cosine(10)], atol=1e-6)
    apart = [np.mean([cosine(70), cosine(80)]), np.mean([cosine(90), cosine(70), cosine(50)])]
    np.testing.assert_allclose(strangers, apart, atol=1e-6)
    alone, _ = real_cosines(at(0, 90), People(np.arange(2), np.arange(2), at(0, 90), {}))
    assert np.isnan(alone).all()


def test_the_equal_error_threshold_is_where_both_errors_agree() -> None:
    draw = stream(1, "equal error")
    people = np.repeat(np.arange(20), 2)
    vectors = np.repeat(draw.standard_normal((20, 4)), 2, axis=0) + 0.9 * draw.standard_normal((40, 4))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    found = equal_error_point(vectors, people)
    assert found is not None
    cosines = (vectors @ vectors.T)[np.tril_indices(40, -1)]
    same = (people[:, None] == people)[np.tril_indices(40, -1)]
    mated, strangers = cosines[same], cosines[~same]
    gaps = [abs((strangers >= t).mean() - (mated < t).mean()) for t in cosines]
    far, frr = float((strangers >= found.cosine - 1e-6).mean()), float((mated < found.cosine - 1e-6).mean())
    assert frr > 0.05
    assert abs(far - frr) == pytest.approx(min(gaps), abs=1e-6)
    assert found.far == pytest.approx(far)
    assert found.rate == pytest.approx((far + frr) / 2)
    assert equal_error_point(at(0, 90), np.arange(2)) is None


def test_a_juror_is_calibrated_on_pictures_with_a_face() -> None:
    draw = stream(0, "juror")
    vectors = draw.standard_normal((60, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    people = np.repeat([7, 9, *range(20, 38)], 3)
    whole = Juror.calibrated("j", np.concatenate([vectors, np.zeros((2, 4), np.float32)]), np.append(people, [7, 99]))
    assert [one.impostors for one in whole.thresholds] == [60 * 57 // 2]
    assert whole.independent
    assert whole.equal_error is not None
    facts = Juror.calibrated("j", vectors, people, independent=False).facts()
    assert (facts.name, facts.independent, facts.equal_error) == ("j", False, whole.equal_error)
    assert facts.thresholds == [threshold_facts(one) for one in whole.thresholds]
    assert [one.cosine for one in whole.at([1e-2, None])] == [whole.thresholds[0].cosine, whole.equal_error.cosine]
    with refused("inversion", "judge 'j'", "6", "0.01"):
        Juror.calibrated("j", vectors[:6], people[:6])


def test_faces_are_shown_to_each_recogniser_as_it_wants_them() -> None:
    from tests.validate.test_material import BrightFaces, Colours

    pictures = np.zeros((3, 20, 20, 3), np.uint8)
    pictures[0, ..., 0], pictures[2, ..., 1] = 200, 9
    one, other = Colours("one", (0, 1, 2)), Colours("other", (2, 1, 0))
    found = embed_faces(pictures, {"a": one, "b": other}, BrightFaces())
    np.testing.assert_allclose(found["a"], [[1, 0, 0], [0, 0, 0], [0, 1, 0]], atol=1e-6)
    np.testing.assert_allclose(found["b"], [[0, 0, 1], [0, 0, 0], [0, 1, 0]], atol=1e-6)
    assert one.asked == [2]
    assert embed_faces(pictures[1:2], {"a": one}, BrightFaces())["a"].tolist() == [[0, 0, 0]]


def test_a_median_has_the_interval_of_its_resamples_and_passes_are_for_one_target() -> None:
    values = np.arange(101, dtype=np.float32)
    found = median(np.append(values, np.nan))
    assert found is not None
    # The 95 % interval of a median of 101: order statistics 50 ± 1.96 · √101 / 2.
    assert found.value == 50
    assert found.low == pytest.approx(40, abs=3)
    assert found.high == pytest.approx(60, abs=3)
    assert found.level == 0.95
    assert median(np.array([np.nan])) is None
    ledger = Ledger(4, seconds=8.0)
    ledger.count("encoder", 40, 20)
    ledger.count("prior", 12, 4)
    assert passes(ledger, 4) == Passes(
        encoder_forward=10, encoder_backward=5, prior_forward=3, prior_backward=1, seconds=2
    )
    assert passes(ledger).seconds == 8


@pytest.mark.parametrize(
    ("alignment", "face", "window"),
    [
        ("none", FFHQ, Window(0, 0, 1)),
        ("arcface112", FFHQ, FFHQ),
        ("chip150", Window(0.3, 0.2, 0.4), Window(0.25, 0.15, 0.5)),
        ("box160", Window(0.3, 0.2, 0.4), Window(0.24, 0.14, 0.52)),
        ("chip150", Window(0.0, 0.6, 0.4), Window(0.0, 0.5, 0.5)),
        ("chip150", Window(0.6, 0.0, 0.4), Window(0.5, 0.0, 0.5)),
        ("box160", Window(0.05, 0.1, 0.9), Window(0.0, 0.0, 1.0)),
    ],
)
def test_a_wider_crop_is_around_the_same_middle_and_within_the_picture(
    alignment: str, face: Window, window: Window
) -> None:
    found = window_for(ToyEncoder(alignment=alignment).card.input, face)
    assert [found.left, found.top, found.side] == pytest.approx([window.left, window.top, window.side])
    picture = torch.arange(100.0).reshape(1, 1, 10, 10)
    assert Window(0.1, 0.3, 0.5).cut(picture)[0, 0, 0].tolist() == [31, 32, 33, 34, 35]
    assert Window(0.1, 0.3, 0.5).cut(picture).shape == (1, 1, 5, 5)


class Sized:
    """A prior by its sizes alone."""

    name = "sized"

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes


def test_pictures_are_taken_near_256_pixels_and_must_show_a_face_to_the_encoder() -> None:
    assert [frame_size(cast(Any, Sized(*sizes))) for sizes in ((64, 128), (128, 256, 512), (192, 320), (1024,))] == [
        128, 256, 320, 1024,
    ]  # fmt: skip
    view = View(ToyEncoder(alignment="arcface112", size=48), face=Window(0.25, 0.25, 0.5))
    require_size(cast(Any, Sized(16)), view)  # 8 px, times six, are 48
    with refused("inversion", "prior 'sized'", "of 7", "least 8"):
        require_size(cast(Any, Sized(14)), view)
    whole = torch.arange(10)
    asked: list[slice] = []

    def some(part: slice) -> Tensor:
        asked.append(part)
        return whole[part]

    assert in_parts(10, some, 4).tolist() == list(range(10))
    assert asked == [slice(0, 4), slice(4, 8), slice(8, 10)]
    bright = torch.tensor([-0.2, 0.001, 0.5, 1.3]).reshape(4, 1, 1, 1).expand(4, 3, 1, 2)
    assert as_pictures(bright)[:, 0, 1, 2].tolist() == [0, 0, 128, 255]
    assert as_pictures(bright).shape == (4, 1, 2, 3)


def test_a_pool_gives_the_nearest_first_and_is_drawn_once() -> None:
    prior, view, ledger = ToyPrior(), View(ToyEncoder()), Ledger()
    pool = Pool.drawn(prior, view, 70, 3, ledger)
    assert pool.size == SIZE
    assert torch.equal(pool.latents, prior.sample(70, 3))
    assert ledger.passes == {
        "encoder forward": 70, "encoder backward": 0, "prior forward": 70, "prior backward": 0,
    }  # fmt: skip
    places, cosines = pool.best(view, pool.vectors[5:7], 3)
    expected = (pool.vectors[5:7] @ pool.vectors.T).sort(dim=1, descending=True)
    assert torch.equal(places, expected.indices[:, :3])
    assert torch.allclose(cosines, expected.values[:, :3])
    assert pool.best(view, pool.vectors[:1], 99)[0].shape == (1, 70)
    threat = Threat("raw", "tiny", view, prior, seed=3)
    assert torch.equal(threat.pool(70, Ledger()).latents, pool.latents)
    assert list(threat.pools) == [("tiny", "toy", 70, 3)]
    with pytest.raises(ValueError, match="a pool needs a view and a prior"):
        Threat("raw", "tiny", view).pool(1, Ledger())
    assert Threat("raw", "tiny", view, prior, second=view).knows == {
        Need.GRADIENTS, Need.SCORES, Need.PRIOR, Need.OWN,
    }  # fmt: skip
    assert Threat("raw", "tiny").knows == set()


def reference_walk(preset: str, start: Tensor, wanted: Tensor, *, flips: bool) -> Tensor:
    """The search of one start by torch's own Adam, step by step."""
    chosen, prior, view = read_preset(preset), ToyPrior(), View(ToyEncoder())
    latents = start[None, None].expand(-1, SLOTS, -1).clone().requires_grad_()
    adam = torch.optim.Adam([latents], lr=chosen.rate, weight_decay=chosen.decay)
    kept = []
    for step in range(chosen.steps):
        if step == chosen.drop_at:
            for group in adam.param_groups:
                group["lr"] /= 10
        adam.zero_grad()
        pictures = prior.decode(latents, SIZE)
        vectors = view.encode(pictures)
        if flips:
            vectors = functional.normalize(vectors + view.encode(pictures.flip(3)), dim=1)
        (-(vectors * wanted).sum()).backward()  # type: ignore[no-untyped-call]
        adam.step()
        kept.append(latents.detach().clone())
    return torch.stack(kept[-chosen.averaged :]).mean(dim=0)[0]


@pytest.mark.parametrize("flips", [0, 1])
def test_a_walk_is_adams_with_a_rate_that_drops_and_its_last_positions_are_averaged(flips: int) -> None:
    prior, view = ToyPrior(), View(ToyEncoder())
    preset = f"pool=0,starts=3,rate=0.05,decay=0.01,steps=12,drop_at=7,averaged=4,flips={flips}"
    wanted = view(prior.decode(prior.sample(2, 9), SIZE))
    starts = prior.sample(6, 4).reshape(2, 3, LATENT)
    ledger = Ledger()
    found, cosines = Search(prior, view, read_preset(preset))(starts, wanted, ledger)
    assert (found.shape, cosines.shape) == ((2, 3, SLOTS, LATENT), (2, 3))
    for target, number in ((0, 0), (0, 2), (1, 1)):
        expected = reference_walk(preset, starts[target, number], wanted[target], flips=bool(flips))
        assert torch.allclose(found[target, number], expected, atol=1e-5)
    each = 1 + flips
    assert ledger.passes == {
        "encoder forward": each * 6 * 13, "encoder backward": each * 6 * 12, "prior forward": 6 * 13,
        "prior backward": 6 * 12,
    }  # fmt: skip
    if not flips:
        pictures = prior.decode(found.flatten(0, 1), SIZE)
        seen = (view(pictures) * wanted.repeat_interleave(3, dim=0)).sum(dim=1)
        assert torch.allclose(cosines.flatten(), seen, atol=1e-6)


def test_of_the_best_candidates_the_one_nearest_to_their_mean_in_a_second_encoder_counts() -> None:
    prior, view, second = ToyPrior(), View(ToyEncoder()), View(ToyEncoder(channels="BGR"))
    found = prior.sample(10, 2).reshape(2, 5, 1, LATENT).expand(-1, -1, SLOTS, -1)
    cosines = torch.tensor([[0.1, 0.9, 0.3, 0.8, 0.7], [0.5, 0.4, 0.9, 0.2, 0.8]])
    attack, ledger = Alsuv("pool=0,starts=5,candidates=3"), Ledger()
    threat = Threat("raw", "tiny", view, prior, second=second)
    chosen = attack._chosen(prior, threat, found, cosines, ledger)
    for row, best in enumerate(([1, 3, 4], [2, 4, 0])):
        seen = second(prior.decode(found[row, best], SIZE))
        expected = best[int((seen @ functional.normalize(seen.mean(dim=0), dim=0)).argmax())]
        assert int(chosen[row]) == expected
    assert ledger.passes["prior forward"] == ledger.passes["encoder forward"] == 6
    first = Alsuv("pool=0,starts=5")._chosen(prior, threat, found, cosines, Ledger())
    assert first.tolist() == [1, 2]
    without = attack._chosen(prior, replace(threat, second=None), found, cosines, Ledger())
    assert without.tolist() == [1, 2]


def test_presets_that_cannot_be_run_are_refused_and_names_keep_their_changes() -> None:
    assert (Alsuv().name, Alsuv("paper").name, Alsuv("steps=5").name) == ("alsuv", "alsuv:paper", "alsuv:steps=5")
    assert [Alsuv(name).batch for name in ("pool", "paper", "alsuv", "starts=101,pool=200")] == [25, 10, 1, 1]
    assert "precision" not in Alsuv().settings
    assert Alsuv(precision="bf16").settings["precision"] == "bf16"
    assert Alsuv("alsuv").settings["candidates"] == 10
    assert read_preset(" alsuv , rate=0.25 ,starts=7") == replace(PRESETS["alsuv"], rate=0.25, starts=7)
    assert read_preset("") == PRESETS["pool"]
    assert read_preset("pool=4").pool == 4
    with refused("inversion", None, "'x'"):
        style_prior(object(), "x")
    settings = Translate("decode").settings
    assert settings["alsuv starts"] == 4
    assert (Translate().settings, Bob().settings) == ({}, {"probes": 99, "pool": 2000})
    assert (Translate().name, Translate("decode").name, Bob().name, Bob("template").name) == (
        "translate", "translate:decode", "bob", "bob:template",
    )  # fmt: skip
    assert (Translate().batch, Translate("decode").batch, Bob().batch) == (1 << 30, 25, 25)
    assert Translate().needs == {Need.TRAIN}
    assert Translate("decode").needs == {Need.TRAIN, Need.PRIOR, Need.OWN}
    assert Bob().needs == {Need.SCORES, Need.PRIOR}
    assert Alsuv.needs == {Need.GRADIENTS, Need.PRIOR}
    for attack in (Translate("decode"), Bob()):
        attack.refuse_prior(ToyPrior())
        with refused("inversion", None, "searches"):
            attack.refuse_prior(Blank())
    Translate().refuse_prior(Blank())
    Bob("template").refuse_prior(Blank())
    with refused("inversion", None, "'diffmi'"):
        DiffMI().refuse_prior(ToyPrior())
    with refused("inversion", None, "'alsuv'"):
        require(Alsuv(), Threat("raw", "tiny", View(ToyEncoder()), cast(Any, Blank())))
    with refused("inversion", None, "'translate:decode'", "needs"):
        require(Translate("decode"), Threat("raw", "tiny"))
    with refused("name", None, "'x'", "alsuv, bob, decoder, diffmi, translate"):
        load_attack("x")


class Tuned(ToyPrior):
    """Offers itself in other precisions, and compiled where that works."""

    def __init__(self, works: bool = True) -> None:
        super().__init__()
        self.made, self.works = list[tuple[torch.dtype, bool]](), works

    def tuned(self, dtype: torch.dtype, *, compiled: bool = False) -> ToyPrior:
        self.made.append((dtype, compiled))
        other = ToyPrior(dtype)
        if compiled and not self.works:
            other.decode = lambda latents, size: 1 / 0  # type: ignore[assignment,method-assign,return-value]
        return other


def test_a_compiled_network_is_used_where_it_runs_and_batches_then_have_one_size() -> None:
    view = View(ToyEncoder())
    preset = read_preset("pool=0,starts=1,steps=3,averaged=1")
    wanted = view(ToyPrior().decode(ToyPrior().sample(3, 9), SIZE))
    starts = ToyPrior().sample(3, 4)[:, None]
    plain = Search(ToyPrior(), view, preset)
    assert plain.network[2:] == (torch.float32, 4)
    expected, _ = plain(starts, wanted, Ledger())
    for works in (True, False):
        prior = Tuned(works)
        search = Search(prior, view, preset, "bf16", compiled=True)
        assert prior.made == [(torch.bfloat16, False), (torch.bfloat16, True)]
        found, _ = search(starts, wanted, Ledger())
        assert search._one_size is works
        assert found.shape == expected.shape
        assert torch.allclose(found, expected, atol=0.05)
        assert search.network[2] is torch.bfloat16
    exact = Tuned()
    assert Search(exact, view, preset, "fp32").network[0] is exact
    assert exact.made == [], "a CPU takes the prior as it is"


def reference_apgd(
    value: Callable[[NDArray[np.float64]], float],
    slope: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    start: NDArray[np.float64],
    radius: float,
    steps: int,
) -> tuple[NDArray[np.float64], float]:
    """Algorithm 1 of Croce and Hein 2020 for one point, in its own words."""

    def within(x: NDArray[np.float64]) -> NDArray[np.float64]:
        away = x - start
        return start + away * min(1.0, radius / max(float(np.linalg.norm(away)), 1e-300))

    def uphill(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return slope(x) / np.linalg.norm(slope(x))

    shares = [0.0, 0.22]
    while shares[-1] < 1:
        shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
    checks = [math.ceil(round(share * steps, 6)) for share in shares[1:] if share <= 1]
    pace, before, x = 2 * radius, start, start
    best, top = start, value(start)
    now = top
    last_top, kept, gains, since = top, False, 0, 0
    for step in range(1, steps + 1):
        ahead = within(x + pace * uphill(x))
        moved = ahead if step == 1 else within(x + 0.75 * (ahead - x) + 0.25 * (x - before))
        before, x = x, moved
        then, now = now, value(x)
        gains += now > then
        if now > top:
            best, top = x, now
        if step in checks:
            halve = gains < 0.75 * (step - since) or (kept and top <= last_top)
            if halve:
                pace /= 2
                x = before = best
                now = top
            kept, last_top, gains, since = not halve, top, 0, step
    return best, top


def test_the_walk_is_that_of_the_published_algorithm() -> None:
    draw = stream(5, "apgd")
    starts = draw.standard_normal((3, 6))
    turn = np.linalg.qr(draw.standard_normal((6, 6)))[0]
    bend = turn @ np.diag([1.0, 3, 9, 27, 2, 5]) @ turn.T
    summit = starts + 0.8 * draw.standard_normal((3, 6))
    wave = draw.standard_normal(6)
    bent, waves = torch.from_numpy(bend), torch.from_numpy(wave)

    def objective(x: Tensor) -> Tensor:
        away = x - torch.from_numpy(summit)
        return -torch.einsum("nd,de,ne->n", away, bent, away) + 2 * torch.sin(3 * (x @ waves))

    for steps in (7, 40):
        found = apgd(objective, torch.from_numpy(starts), 1.5, steps)
        assert found.forward == found.backward == 3 * (steps + 1)
        for row in range(3):

            def value(x: NDArray[np.float64], row: int = row) -> float:
                away = x - summit[row]
                return float(-away @ bend @ away + 2 * np.sin(3 * (x @ wave)))

            def slope(x: NDArray[np.float64], row: int = row) -> NDArray[np.float64]:
                return np.asarray(-2 * bend @ (x - summit[row]) + 6 * np.cos(3 * (x @ wave)) * wave)

            point, top = reference_apgd(value, slope, starts[row], 1.5, steps)
            np.testing.assert_allclose(found.points[row].numpy(), point, atol=1e-7)
            assert float(found.values[row]) == pytest.approx(top, abs=1e-8)
    assert sorted(checkpoints_of(10)) == [3, 5, 6, 7, 8, 9, 10]


def test_the_noise_search_says_what_it_does_and_refuses_what_it_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (DiffMI().name, DiffMI("true").name, DiffMI("true,top=5").name) == (
        "diffmi",
        "diffmi:true",
        "diffmi:true,top=5",
    )
    assert [DiffMI(f"top={top}").batch for top in (3, 5, 97)] == [32, 19, 1]
    assert DiffMI("true").settings == {
        "pool": 1000, "p": 0.999, "top": 3, "radius": 35 / 256, "steps": 100, "stop": 0.99, "gradient": "true",
    }  # fmt: skip
    gradient, preset = read_diffmi("true, straight-through , p=0.5,steps=1,pool=1,top=1,radius=0.001")
    assert gradient == "straight-through"
    assert (preset.p, preset.steps, preset.pool, preset.top, preset.radius) == (0.5, 1, 1, 1, 0.001)
    for text in ("pool=0", "top=0", "steps=0", "p=-0.1", "p=1", "radius=0"):
        with refused("inversion", "diffmi", "least 1", "below 1", "above 0"):
            read_diffmi(text)
    assert read_diffmi("p=0")[1].p == 0
    with refused("inversion", "diffmi", "settings"):
        read_diffmi("steps=1.5")
    monkeypatch.setattr("unface.invert.diffmi._PATIENCE", 0)
    with refused("inversion", "diffmi", "0.999999"):
        normal_noises(Blank(), 5, 0.999999, seed=0)
    monkeypatch.setattr("unface.invert.diffmi._PATIENCE", 200)
    assert normal_noises(Blank(), 5000, 0.0, seed=0).shape == (5000, 3, SIZE, SIZE)


def test_a_pool_of_noises_is_shared_by_test_and_size_and_tells_its_passes() -> None:
    prior, view, ledger = Blank(), View(ToyEncoder()), Ledger()
    threat = Threat("raw", "tiny", view, cast(Any, prior), seed=2)

    def left(made: NDArray[np.uint8]) -> NDArray[np.bool_]:
        return np.asarray(np.arange(len(made)) % 2 == 0)

    attack = DiffMI("pool=10,p=0.2,top=2,steps=4", detect=left)
    inner = attack.prepare(threat, ledger)
    assert ledger.passes == {
        "encoder forward": 10, "encoder backward": 0, "prior forward": 20, "prior backward": 0,
    }  # fmt: skip
    assert ledger.seconds > 0
    ((key, pool),) = threat.pools.items()
    assert key == ("tiny", "blank K² 0.2", 10, 2)
    expected = torch.cat([normal_noises(prior, 10, 0.2, 2, round_)[::2] for round_ in (0, 1)])
    assert torch.equal(pool.latents, expected)
    assert torch.allclose(pool.vectors, view.encode(prior.decode(expected)), atol=1e-6)
    again = Ledger()
    attack.prepare(threat, again)
    assert sum(again.passes.values()) == 0
    counted = Ledger()
    wanted = view(prior.decode(prior.sample(3, 8))).numpy()
    made = inner(Targets(wanted, np.arange(3)), counted)
    assert counted.passes == {
        "encoder forward": 3 * 2 * 5, "encoder backward": 3 * 2 * 5, "prior forward": 3 * 2 * 5 + 3,
        "prior backward": 0,
    }  # fmt: skip
    starts, _ = pool.best(view, torch.from_numpy(wanted), 2)
    each = torch.from_numpy(wanted).repeat_interleave(2, dim=0)
    walked = apgd(
        lambda x: (view(prior.decode(x)) * each).sum(dim=1),
        pool.latents[starts].flatten(0, 1),
        35 / 256 * SIZE,
        4,
        0.99,
    )
    best = walked.values.reshape(3, 2)
    np.testing.assert_allclose(made.reached, best.amax(dim=1).numpy(), atol=1e-6)
    chosen = walked.points.reshape(3, 2, 3, SIZE, SIZE)[torch.arange(3), best.argmax(dim=1)]
    assert made.pictures is not None
    np.testing.assert_array_equal(made.pictures, as_pictures(prior.decode(chosen)))


def test_a_decoder_needs_a_prior_only_for_generated_faces_and_learns_from_others_than_the_pools() -> None:
    assert Decoder().needs == {Need.GRADIENTS, Need.TRAIN, Need.PRIOR}
    assert Decoder("generated=0").needs == {Need.GRADIENTS, Need.TRAIN}
    assert (Decoder().name, Decoder("steps=3").name) == ("decoder", "decoder:steps=3")
    assert Decoder().settings == {
        "size": 64, "width": 512, "steps": 2000, "batch": 64, "rate": 1e-3, "generated": 4000, "features": 0.5,
        "cosine": 1.0, "refine": 0, "refine_rate": 0.01,
    }  # fmt: skip
    assert read_decoder("size=128, width=64,steps=1,batch=1,generated=0,refine=0,rate=0.5").rate == 0.5
    prior, ledger = ToyPrior(), Ledger()
    threat = Threat("raw", "tiny", View(ToyEncoder()), prior, seed=6)
    made = generated(threat, prior, DecoderPreset(generated=5), ledger)
    latents = prior.sample(5, 7)
    shown = functional.interpolate(
        prior.decode(latents, SIZE), (64, 64), mode="bilinear", align_corners=False, antialias=True
    )
    assert torch.equal(made, (shown * 255).round().clamp(0, 255).to(torch.uint8))
    assert ledger.passes["prior forward"] == 5
    pictures = stream(0, "held").integers(0, 256, (1030, 4, 4, 3), dtype=np.uint8)
    asked: list[int] = []

    def held(rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        asked.append(len(rows))
        return pictures[rows]

    vectors, shown = people_of(Train(np.ones((1030, 2), np.float32), np.arange(1030), {}, held), 4)
    assert asked == [1024, 6]
    assert vectors.shape == (1030, 2)
    np.testing.assert_array_equal(shown.permute(0, 2, 3, 1).numpy(), pictures)


class Fixed:
    """Gives the same pictures to every target, in order; knows how often it was prepared."""

    name, batch = "fixed", 2
    needs = frozenset({Need.PRIOR})

    def __init__(self, pictures: NDArray[np.uint8]) -> None:
        self.pictures, self.prepared, self.asked = pictures, 0, list[tuple[list[int], Vectors]]()
        self.settings: Mapping[str, float | str] = {"a": 1.0}

    def prepare(self, threat: Threat, ledger: Ledger) -> Invert:
        self.prepared += 1
        ledger.count("prior", forward=11)

        def invert(targets: Targets, ledger: Ledger) -> Reconstructions:
            self.asked.append((targets.numbers.tolist(), targets.vectors))
            ledger.count("encoder", 2 * len(targets.numbers), len(targets.numbers))
            return Reconstructions(0.1 * targets.numbers.astype(np.float32), self.pictures[targets.numbers])

        return invert


def test_a_cell_is_judged_target_by_target_and_says_what_it_cost(tmp_path: Path) -> None:
    case = toy_case(people=4)
    assert case.prior is not None
    assert case.embed is not None
    pictures = as_pictures(case.prior.decode(cast(Any, case.prior).sample(4, 1), SIZE))
    pictures[2] = 0
    inner = case.embed

    def embed(made: NDArray[np.uint8]) -> dict[str, Vectors]:
        seen = inner(made)["judge"]
        dark = ~np.asarray(made.any(axis=(1, 2, 3)))
        seen[dark] = 0
        return {"judge": seen}

    case = replace(case, embed=embed)
    attack, told = Fixed(pictures), Told()
    threat = case.threat("raw", None, None, 0)
    run = run_cell(cast(Any, attack), threat, case, None, place_at(tmp_path), keep_pictures=True, progress=told)
    cell = run.cell
    assert [numbers for numbers, _ in attack.asked] == [[0], [1], [2], [3]], "a CPU takes one at a time"
    np.testing.assert_array_equal(
        np.concatenate([one for _, one in attack.asked]), case.people.vectors[case.people.rows]
    )
    assert (cell.attack, cell.space, cell.settings, cell.gives) == ("fixed", "raw", {"a": 1.0}, "pictures")
    assert (cell.targets, cell.no_face, cell.knows) == (4, 1, ["a face prior"])
    assert cell.reached is not None
    assert cell.reached.value == pytest.approx(0.15)
    assert cell.converged is False
    assert (cell.each.encoder_forward, cell.each.encoder_backward, cell.shared.prior_forward) == (2, 1, 11)
    assert cell.each.prior_forward == 0
    assert cell.controls == []
    assert run.pictures is not None
    np.testing.assert_array_equal(run.pictures, pictures)
    assert told.advanced == {"inverting": 4}
    assert run.judged.by["judge"].same.people.tolist() == [0, 1, 2, 3]
    expected = Judged.of(embed(pictures), case.people, case.jury)
    np.testing.assert_array_equal(run.judged.by["judge"].same.scores, expected.by["judge"].same.scores)
    again = Fixed(pictures)
    second = run_cell(cast(Any, again), threat, case, None, place_at(tmp_path), keep_pictures=True)
    assert (again.prepared, attack.prepared) == (0, 1), "everything was there"
    assert second.cell.at == cell.at
    assert second.pictures is not None
    np.testing.assert_array_equal(second.pictures, pictures)


def test_an_erased_space_is_attacked_with_erased_vectors_and_changes_are_to_the_raw_one() -> None:
    case, erased = toy_case(people=4), projection(2)
    assert case.prior is not None
    pictures = as_pictures(case.prior.decode(cast(Any, case.prior).sample(4, 1), SIZE))
    threat = case.threat("raw", None, None, 0)
    run = run_cell(cast(Any, Fixed(pictures)), threat, case, None, None)
    other = case.threat("isp", erased, threat, 0)
    third = Fixed(pictures)
    found = run_cell(cast(Any, third), other, case, erased, None)
    np.testing.assert_allclose(third.asked[1][1][0], erased.apply(case.people.vectors)[case.people.rows[1]], atol=1e-6)
    assert found.cell.knows == ["a face prior", "the projection"]
    assert found.pictures is None
    assert other.train is not None
    assert case.train is not None
    np.testing.assert_allclose(other.train.vectors, erased.apply(case.train.vectors), atol=1e-6)
    (changed, *_) = all_changes([run, found])
    assert (changed.attack, changed.space) == ("fixed", "isp")
    assert all_changes([found]) == []
    blind = replace(case, embed=None)
    with refused("inversion", None, "were"):
        run_cell(cast(Any, Fixed(pictures)), threat, blind, None, None)


def test_templates_are_judged_by_the_recogniser_they_are_of() -> None:
    case = toy_case(people=3)
    seen = case.people.seen["judge"][case.people.rows]

    class Gives(Fixed):
        def prepare(self, threat: Threat, ledger: Ledger) -> Invert:
            def invert(targets: Targets, ledger: Ledger) -> Reconstructions:
                templates = seen[targets.numbers].copy()
                templates[targets.numbers == 1] = np.nan
                return Reconstructions(
                    np.full(len(templates), np.nan, np.float32), templates=templates, recogniser="judge",
                    thresholds=self.limits,
                )  # fmt: skip

            return invert

        limits: tuple[Threshold, ...] = (Threshold.known(1e-2, 0.5, 900, 9),)

    attack = Gives(np.zeros((0, 1, 1, 3), np.uint8))
    threat = case.threat("raw", None, None, 0)
    cell = run_cell(cast(Any, attack), threat, case, None, None, controls=[]).cell
    assert (cell.gives, cell.no_face, cell.reached, cell.converged) == ("templates of judge", 0, None, None)
    assert [(one.far, one.same.numerator) for one in cell.at] == [(1e-2, 2)], "one template is none"
    attack.limits = ()
    usual = run_cell(cast(Any, attack), threat, case, None, None).cell
    assert [one.far for one in usual.at] == [one.far for one in case.template_jury["judge"].thresholds] + [None]
    with refused("inversion", "templates of 'judge'"):
        run_cell(cast(Any, attack), threat, replace(case, template_jury={}), None, None)


def test_parts_on_disk_hold_all_that_a_continued_run_needs(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    ledger = Ledger(2, seconds=1.5)
    ledger.count("prior", 3, 4)
    pictures = np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3)
    first = Batch(np.array([0.5, 0.25], np.float32), {"a b": at(0, 10)}, None, (), ledger, pictures)
    first.write(place, "one.npz")
    found = Batch.read(place, "one.npz", 2)
    assert found is not None
    assert (found.recogniser, found.thresholds, found.ledger) == (None, (), ledger)
    assert found.pictures is not None
    np.testing.assert_array_equal(found.pictures, pictures)
    np.testing.assert_array_equal(found.seen["a b"], at(0, 10))
    np.testing.assert_array_equal(found.reached, first.reached)
    assert Batch.read(place, "one.npz", 3) is None
    assert Batch.read(place, "two.npz", 2) is None
    joined = Batch.joined([first, found])
    assert (joined.ledger.targets, joined.ledger.seconds, joined.ledger.passes["prior backward"]) == (4, 3.0, 8)
    assert joined.pictures is not None
    assert joined.pictures.shape == (4, 2, 2, 3)
    assert joined.reached.tolist() == [0.5, 0.25, 0.5, 0.25]
    assert Batch.joined([first, replace(found, pictures=None)]).pictures is None
    content = BytesIO()
    np.savez(content, reached=first.reached)
    (tmp_path / "three.npz").write_bytes(content.getvalue())
    assert Batch.read(place, "three.npz", 2) is None
    assert slug("a b/c:d") != slug("a b/c d")
    assert slug("a b/c:d").startswith("a-b-c-d.")
    assert len(slug("x" * 200)) == 80 + 1 + 8


def test_controls_are_the_first_faces_of_the_pool_and_the_nearest_of_all() -> None:
    case = toy_case(people=5)
    threat = case.threat("raw", None, None, 3)
    shown: list[int] = []
    inner = case.embed
    assert inner is not None
    assert case.prior is not None
    assert case.view is not None

    def embed(made: NDArray[np.uint8]) -> dict[str, Vectors]:
        shown.append(len(made))
        return inner(made)

    faces = PoolFaces(threat, replace(case, embed=embed), 40)
    random, best = faces.controls(threat, None)
    pool = threat.pool(40, Ledger())
    targets = torch.from_numpy(case.people.vectors[case.people.rows])
    cosines = targets @ pool.vectors.T
    assert (random.name, best.name) == ("random face", "best of pool")
    assert random.cosine is not None
    assert best.cosine is not None
    assert random.cosine.value == pytest.approx(float(cosines.diag().median()), abs=1e-6)
    assert best.cosine.value == pytest.approx(float(cosines.amax(dim=1).median()), abs=1e-6)
    near = cosines.argmax(dim=1)
    assert sum(shown) == len({*range(5), *near.tolist()}), "each face is shown once"
    pictures = as_pictures(case.prior.decode(pool.latents[near], SIZE))
    expected = Judged.of(inner(pictures), case.people, case.jury).success()
    assert best.at == expected
    erased = projection(2)
    faces.controls(case.threat("isp", erased, threat, 3), erased)
    few = PoolFaces(threat, case, 2)
    few.controls(threat, None)
    assert ("tiny", "toy", 5, 3) in threat.pools, "at least one face for each target"


def test_a_space_says_what_was_removed_and_what_real_pictures_reach() -> None:
    case, erased = toy_case(people=4), projection(3)
    raw, other = space_facts("raw", None, case), space_facts("isp", erased, case)
    assert (raw.name, raw.kind, raw.rank, raw.dim, raw.projection_sha256) == ("raw", None, 0, DIM, None)
    assert (other.name, other.kind, other.rank, other.dim) == ("isp", "random", 3, erased.released_dim)
    assert other.projection_sha256 == erased.sha256
    second, strangers = real_cosines(erased.apply(case.people.vectors), case.people)
    assert other.second is not None
    assert other.second.value == pytest.approx(float(np.median(second)))
    assert other.strangers.value == pytest.approx(float(np.median(strangers)))
    assert case.train is not None
    plan = plan_of(case, [Alsuv("steps=5")], {"raw": None, "isp": erased}, 7, keep_pictures=True)
    assert plan["encoder"] == ["tiny", case.space.weights_sha256]
    assert (plan["pictures"], plan["judges"], plan["prior"], plan["seed"]) == ("ab", ["judge"], "toy", 7)
    assert plan["projections"] == {"raw": None, "isp": erased.sha256}
    assert plan["show_faces"] is True
    assert plan["attacks"] == {"alsuv:steps=5": dict(Alsuv("steps=5").settings)}


def cell(reached: float, converged: bool | None, *points: tuple[float | None, str, float]) -> InversionCell:
    share = Share.counted(1, 2, Interval(0.1, 0.9, 0.95), 2)
    return InversionCell(
        attack="x", space="isp", settings={}, knows=[], gives="pictures", targets=2, no_face=0,
        reached=Estimate(reached, reached, reached, 0.95), converged=converged,
        at=[
            InversionSuccess(
                far=far, judge=judge, same=share, other=None, derangement=Rate.counted(round(1e4 * rate), 10_000)
            )
            for far, judge, rate in points
        ],
        each=passes(Ledger()), shared=passes(Ledger()),
    )  # fmt: skip


def test_findings_say_what_makes_a_result_worth_less() -> None:
    case, erased = toy_case(people=3), projection(2)
    jury = (*case.jury, juror("second", 10))
    two = replace(case, jury=jury)
    both = {"random": replace(erased, kind="random"), "pca": replace(erased, kind="pca")}

    def said(given: Any, cells: list[InversionCell], spaces: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [(one.severity, one.about) for one in findings_of(given, cells, spaces)]

    fine = cell(0.5, True, (1e-2, "all", 0.1), (1e-3, "all", 0.01), (1e-4, "all", 0.9), (None, "all", 0.9))
    assert said(two, [fine], {"raw": None, **both, "isp": replace(erased, kind="isp")}) == []
    assert said(two, [fine], both) == []
    assert said(case, [fine], {}) == [("note", "judges")]
    many = cell(0.5, None, (1e-2, "all", 0.11), (1e-3, "all", 0.02), (1e-2, "one", 0.9))
    assert findings_of(two, [many], {}) == [], "of two people that is luck"
    (found,) = findings_of(two, [many.model_copy(update={"targets": 100})], {})
    assert (found.severity, found.about) == ("invalid", NO_RATE)
    assert found.text.startswith("reconstructions (x, isp) pass for strangers in 11.0 %, more than 10 times the FAR")
    for drawn_by, number in (("toy", 1), ("another", 0), (None, 0)):
        said_of = findings_of(replace(two, drawn_by=drawn_by), [fine], {})
        assert [one.about for one in said_of] == [NO_RATE] * number
    (short,) = findings_of(two, [cell(0.256, False)], {})
    assert (short.severity, short.about) == ("warning", "not converged")
    assert short.text.startswith("x on isp reached a median cosine of 0.26, less than another real picture")
    for spaces in ({"isp": replace(erased, kind="isp")}, {"isp": replace(erased, kind="isp"), "pca": both["pca"]}):
        assert said(two, [], spaces) == [("warning", "controls")]
    real = replace(two, facts=two.facts.model_copy(update={"generated": False}))
    assert said(real, [], {}) == [("note", "people")]
    assert not_measured(two) == []
    alone = People(np.arange(3), np.arange(3), case.people.vectors[:3], {"judge": case.people.seen["judge"][:3]})
    assert not_measured(replace(two, people=alone, view=None)) == [
        "other pictures of the people: only one picture of each was given",
        "attacks that need the encoder: only vectors were given",
    ]


def test_a_whole_run_tells_its_progress_and_judges(tmp_path: Path) -> None:
    case, told = toy_case(people=3), Told()
    assert case.prior is not None
    pictures = as_pictures(case.prior.decode(cast(Any, case.prior).sample(3, 1), SIZE))
    spaces = {"raw": None, "isp": projection(2)}
    done = invert(
        case, [cast(Any, Fixed(pictures))], spaces, place_at(tmp_path), controls=10, keep_pictures=True, progress=told
    )
    assert (told.started, told.advanced) == ([("inverting", 6)], {"inverting": 6})
    result = done.result
    assert set(done.pictures) == {("fixed", "raw"), ("fixed", "isp")}
    assert [(one.name, one.independent) for one in result.judges] == [("judge", True), ("judge", False)]
    assert (result.encoder.name, result.encoder.dim, result.encoder.aligned) == ("tiny", DIM, False)
    assert result.encoder.weights_sha256 == case.space.weights_sha256
    assert result.prior is not None
    assert (result.prior.name, result.prior.size) == ("toy", SIZE)
    assert [one.name for one in result.spaces] == ["raw", "isp"]
    assert [len(one.controls) for one in result.cells] == [2, 2]
    threat = case.threat("raw", None, None, 0)
    faces = PoolFaces(threat, case, 10)
    for one, (name, removed) in zip(result.cells, spaces.items(), strict=True):
        assert one.controls == faces.controls(case.threat(name, removed, threat, 0), removed)
    assert result.cells[0].controls[0].cosine != result.cells[1].controls[0].cosine
    assert {one.space for one in result.changes} == {"isp"}
    itself = {"judge": case.people.seen["judge"][case.people.rows]}
    assert result.ceiling == Judged.of(itself, case.people, case.jury).ceiling()
    without = invert(case, [cast(Any, Fixed(pictures))], {"raw": None}, place_at(tmp_path / "b"), controls=10)
    assert without.pictures == {}


def test_beside_a_projection_stand_a_random_subspace_and_pca_of_its_rank() -> None:
    from unface.data import EmbeddingSet

    vectors = stream(0, "spaces").standard_normal((12, 6)).astype(np.float32)
    train = EmbeddingSet.from_arrays(vectors, list("aabbccddeeff"))
    isp = replace(projection(2), kind="isp")
    found = spaces_of({"mine": isp}, train)
    assert list(found) == ["raw", "mine", "random 2", "pca 2"]
    assert found["raw"] is None
    assert found["mine"] is isp
    kinds = [(one.kind, one.rank) for name, one in found.items() if one is not None and name != "mine"]
    assert kinds == [("random", 2), ("pca", 2)]
    assert list(spaces_of({"mine": replace(isp, kind="pca")}, train)) == ["raw", "mine"]
    assert list(spaces_of({"mine": isp, "other": isp}, train)) == ["raw", "mine", "other", "random 2", "pca 2"]
    many = replace(projection(7), kind="isp")
    assert list(spaces_of({"mine": many}, train)) == ["raw", "mine"], "six dimensions have no seven to remove"


def test_a_cell_run_is_what_changes_are_made_of() -> None:
    judged = Judged.of({"a": at(20, 90)}, PEOPLE, [juror("a", 12, 22)])
    coarse = Judged.of({"a": at(20, 90)}, PEOPLE, [juror("a", 12)])
    raw = CellRun(cell(0.5, True).model_copy(update={"space": "raw"}), judged, None)
    assert len(all_changes([raw, CellRun(cell(0.5, True), judged, None)])) == 2
    assert all_changes([raw, CellRun(cell(0.5, True), coarse, None)]) == [], "other rates cannot be subtracted"


def test_the_decoder_learns_pixels_features_and_the_attacked_cosine_by_its_schedule() -> None:
    threat, _ = world()
    second = View(ToyEncoder(channels="BGR"))
    threat = replace(threat, second=second, seed=2)
    view, prior, train = threat.view, threat.prior, threat.train
    assert view is not None
    assert prior is not None
    assert train is not None
    preset, ledger = read_decoder("width=64,steps=4,batch=5,rate=0.01,generated=7,features=0.25,cosine=0.75"), Ledger()
    found = trained(threat, preset, ledger)
    # half of five pictures are three of each kind
    assert ledger.passes == {
        "encoder forward": 7 + 4 * 6, "encoder backward": 4 * 6, "prior forward": 7, "prior backward": 0,
    }  # fmt: skip
    made = generated(threat, prior, preset, Ledger()).float() / 255
    vectors, pictures = people_of(train, 64)
    sources = [(vectors, pictures.float() / 255), (view(made), made)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(stream(2, "decoder", "weights").integers(1 << 62)))
        network = Network(DIM, 64, 64)
    adam = torch.optim.Adam(network.parameters(), lr=0.01, betas=(0.9, 0.99))
    draw = stream(2, "decoder", "batches")
    for step in range(4):
        rows = [draw.integers(len(known), size=3) for known, _ in sources]
        given = torch.cat([known[row] for (known, _), row in zip(sources, rows, strict=True)])
        shown = torch.cat([held[row] for (_, held), row in zip(sources, rows, strict=True)])
        drawn = network(given)
        loss = (drawn - shown).abs().mean()
        loss = loss + 0.75 * (1 - (view(drawn) * given).sum(dim=1)).mean()
        loss = loss + 0.25 * (1 - (second(drawn) * second(shown)).sum(dim=1)).mean()
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        adam.param_groups[0]["lr"] = 0.01 * min(20 * (step + 1) / 4, 1 - step / 4)
        adam.step()
    for ours, theirs in zip(found.parameters(), network.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)
        assert not ours.requires_grad
    assert not found.training
    bright = torch.tensor([-0.5, 0.5, 1.5]).reshape(1, 3, 1, 1)
    assert in_bytes(bright).flatten().tolist() == [0, 128, 255]


def test_attacks_of_other_packages_on_scores_are_sent_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = EntryPoints(
        [
            EntryPoint("best", "unface.validate.attacks:BestOfN", "unface.attacks"),
        ]
    )
    monkeypatch.setattr("unface.functions.entry_points", given.select)
    with refused("name", "attack 'best'"):
        load_attack("best")
    with refused("name", None, "'x'"):
        load_attack("x")
    assert load_attack("alsuv:paper").name == "alsuv:paper"
    assert load_attack("bob:template").name == "bob:template"


def test_a_compiled_search_and_its_precision_are_those_that_were_asked_for() -> None:
    view, prior = View(ToyEncoder()), Tuned()
    threat = Threat("raw", "tiny", view, prior)
    Alsuv("pool=0,starts=1", precision="bf16", compiled=True).prepare(threat, Ledger())
    assert prior.made == [(torch.bfloat16, False), (torch.bfloat16, True)]
    prior.made.clear()
    Alsuv("pool=0,starts=1", precision="bf16").prepare(threat, Ledger())
    assert prior.made == [(torch.bfloat16, False)]
    with refused("inversion", "diffmi", "finds 0"):
        DiffMI("pool=2,p=0", detect=lambda made: np.zeros(len(made), bool)).prepare(
            Threat("raw", "tiny", view, cast(Any, Blank())), Ledger()
        )


def test_starts_are_the_best_of_the_pool_or_drawn_by_the_targets_number() -> None:
    view, prior = View(ToyEncoder()), ToyPrior()
    wanted = view(prior.decode(prior.sample(2, 9), SIZE))
    for preset in ("pool=30,starts=3,steps=2,averaged=1", "pool=0,starts=3,steps=2,averaged=1"):
        threat, ledger = Threat("raw", "tiny", view, prior, seed=5), Ledger()
        inner = Alsuv(preset).prepare(threat, ledger)
        made = inner(Targets(wanted.numpy(), np.array([4, 6])), Ledger())
        if preset.startswith("pool=30"):
            pool = threat.pool(30, Ledger())
            starts = pool.latents[pool.best(view, wanted, 3)[0]]
            assert ledger.passes["encoder forward"] == 30
        else:
            seeds = [int(stream(5, "alsuv", number).integers(1 << 31)) for number in (4, 6)]
            starts = torch.stack([prior.sample(3, seed) for seed in seeds])
        found, cosines = Search(prior, view, read_preset(preset))(starts, wanted, Ledger())
        best = cosines.argmax(dim=1)
        np.testing.assert_allclose(made.reached, cosines.amax(dim=1).numpy(), atol=1e-6)
        assert made.pictures is not None
        expected = as_pictures(prior.decode(found[torch.arange(2), best], SIZE))
        np.testing.assert_array_equal(made.pictures, expected)


def test_a_template_is_decoded_in_the_attackers_own_recogniser_and_judged_in_the_attacked_space(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both ways round: by a map learned on train people, and from the scores of probe faces."""
    monkeypatch.setattr("unface.invert.indirect._POOL", 60)
    monkeypatch.setitem(cast(Any, PRESETS), "pool", replace(PRESETS["pool"], pool=40, steps=30, drop_at=20, averaged=5))
    case = toy_case(people=3, train=80)
    assert case.train is not None
    assert case.view is not None
    assert case.prior is not None
    own = View(ToyEncoder(channels="BGR", name="own"))
    shown = case.prior.decode(cast(Any, case.prior).sample(240, 1), SIZE)
    with torch.inference_mode():
        vectors, features = case.view(shown).numpy(), own(shown).numpy()
    train = Train(vectors, np.arange(240) // 3, {"judge": features[::-1].copy(), "own": features})
    threat = replace(case.threat("raw", None, None, 0), train=train, second=own)
    wanted = vectors[:3]
    for attack in (Translate("decode"), Bob(probes=30)):
        ledger = Ledger()
        made = attack.prepare(threat, Ledger())(Targets(wanted, np.arange(3)), ledger)
        assert made.pictures is not None
        with torch.inference_mode():
            seen = case.view(torch.from_numpy(made.pictures).permute(0, 3, 1, 2) / 255).numpy()
        np.testing.assert_allclose(made.reached, (seen * wanted).sum(axis=1), atol=1e-5)
        assert made.reached.min() > 0.5
        walked = Alsuv().preset
        assert ledger.passes["encoder forward"] == 3 * walked.starts * (walked.steps + 1) + 3
    template = Translate().prepare(threat, Ledger())(Targets(wanted, np.arange(3)), Ledger())
    assert template.templates is not None
    assert template.recogniser == "own", "the recogniser that the attacker holds, not another one of the train people"
    assert (template.templates * features[:3]).sum(axis=1).min() > 0.99
    assert np.isnan(template.reached).all()
    assert template.thresholds
    np.testing.assert_allclose(np.linalg.norm(template.templates, axis=1), 1, atol=1e-5)
    first = Translate().prepare(replace(threat, second=None), Ledger())(Targets(wanted, np.arange(3)), Ledger())
    assert first.recogniser == "judge"
    with refused("inversion", None, "'translate'"):
        Translate().prepare(replace(threat, train=replace(train, features={})), Ledger())
    solved = Bob("template", probes=30).prepare(threat, Ledger())(Targets(wanted, np.arange(3)), Ledger())
    assert solved.templates is not None
    assert solved.recogniser == "own"
    drawn = case.prior.decode(cast(Any, case.prior).sample(60, 0), SIZE)
    with torch.inference_mode():
        asked, mine = case.view(drawn).double().numpy(), own(drawn).double().numpy()
    chosen = near_orthogonal(mine, 30)
    expected = np.linalg.pinv(mine[chosen], rcond=1e-5) @ (asked[chosen] @ wanted.T.astype(np.float64))
    expected /= np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(solved.templates, expected.T, atol=1e-4)


def test_the_same_seed_gives_everybody_the_same_role_in_every_version() -> None:
    from tests.invert.test_material import seen_by

    made = assign(seen_by("attacked"), {"judge": seen_by("judge")}, None, 4, seed=1)
    assert made.attacked == ("p6/0", "p40/0", "p59/0", "p51/0")
    assert len(made.facts.sha256) == 64
    assert assign(seen_by("attacked"), {"judge": seen_by("judge")}, None, 4, seed=2).attacked != made.attacked
    values = median(stream(0, "golden").standard_normal(9))
    assert values is not None
    assert (round(values.low, 6), round(values.high, 6)) == (-1.381043, 1.065711)


def test_faces_are_looked_for_on_pictures_of_at_least_256_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.validate.test_material import BrightFaces

    sizes: list[tuple[int, ...]] = []

    class Looks(BrightFaces):
        def detect(self, image: NDArray[np.uint8]) -> Any:
            sizes.append(image.shape)
            return super().detect(image)

    monkeypatch.setattr("unface.invert.diffmi.load_detector", Looks)
    detect = finds_face()
    for side, seen in ((64, 256), (100, 300), (256, 256), (300, 300)):
        pictures = np.zeros((2, side, side, 3), np.uint8)
        pictures[1] = 200
        assert detect(pictures).tolist() == [False, True]
        assert sizes == 2 * [(seen, seen, 3)]
        sizes.clear()


def test_the_attacker_holds_what_the_case_says() -> None:
    case = toy_case(people=3)
    second = View(ToyEncoder(channels="BGR"))
    threat = replace(case, second=second).threat("raw", None, None, 7)
    assert (threat.space, threat.encoder, threat.seed) == ("raw", "tiny", 7)
    assert threat.view is case.view
    assert threat.prior is case.prior
    assert threat.train is case.train
    assert threat.second is second
    erased = replace(case, second=second).threat("isp", projection(2), threat, 7)
    assert erased.second is second
    assert erased.pools is threat.pools
    assert erased.view is not None
    assert erased.view.projection is not None
    assert replace(case, view=None).threat("isp", projection(2), None, 0).view is None


def test_refining_keeps_the_best_step_of_each_target_by_itself() -> None:
    """At a rate that overshoots: the targets are at their best at different steps."""
    threat, targets = world()
    view = threat.view
    assert view is not None
    torch.manual_seed(3)
    network = Network(DIM, 64, 64).eval().requires_grad_(False)
    wanted, preset = torch.from_numpy(targets[:6]), DecoderPreset(refine=12, refine_rate=0.6)
    given = wanted.clone().requires_grad_()
    adam = torch.optim.Adam([given], lr=0.6)
    inputs, reached = [], []
    for _ in range(12):
        cosines = (view(network(given)) * wanted).sum(dim=1)
        inputs.append(given.detach().clone())
        reached.append(cosines.detach())
        (given.grad,) = torch.autograd.grad(-cosines.sum(), given)
        adam.step()
    best = torch.stack(reached).argmax(dim=0)
    assert len(set(best.tolist())) > 1
    expected = torch.stack(inputs)[best, torch.arange(6)]
    ledger = Ledger()
    assert torch.allclose(refined(network, view, wanted, preset, ledger), expected, atol=1e-4)
    assert ledger.passes["encoder forward"] == ledger.passes["encoder backward"] == 72


def test_of_an_odd_number_of_others_one_more_sets_thresholds_than_is_learned_from() -> None:
    from tests.invert.test_material import seen_by

    made = assign(seen_by("attacked"), {"judge": seen_by("judge")}, None, 19)
    assert (made.facts.targets, made.facts.calibrate, made.facts.train) == (19, 21, 20)
    assert [one.impostors for one in made.jury[0].thresholds][:1] == [63 * 60 // 2]
    assert len(made.train.vectors) == 60
