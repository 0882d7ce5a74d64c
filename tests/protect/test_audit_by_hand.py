"""If these fail, an audit of a release matches wrong pictures, leaves an attacker out, or misses what is missing."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.invert.toy import ToyEncoder
from tests.probe.small import Told
from tests.protect.test_facemae_train import TOY
from tests.refusals.table import refused
from unface.data import ImageSet, decode, read_images
from unface.protect import facemae, facemae_audit
from unface.protect.attackers import (
    Attacker,
    Deployed,
    FineTuning,
    Seen,
    _unfrozen,
    embedding,
    fine_tuned_attacker,
    imitating_attacker,
    registry_attacker,
    release_attacker,
)
from unface.protect.baselines import MaskedFaces, contents_of
from unface.protect.facemae import Features, Masking
from unface.protect.facemae_audit import (
    Crowd,
    OwnPeople,
    Plan,
    ReadRelease,
    _other_key,
    accuracy,
    assembled,
    audit,
    own_people,
    read_release,
    second_release,
    unchanged,
)
from unface.protect.facemae_deploy import commitment, deploy, read_manifest, released_names, shared_people
from unface.protect.facemae_frames import Faces
from unface.protect.facemae_train import Recipe, Trained, Training, load_facemae
from unface.protect.pair_sets import PairSet
from unface.protect.recogniser import RecogniserRecipe
from unface.result.file import Clock
from unface.result.numbers import Interval, Share
from unface.result.protection import AttackerResult, MethodResult, PairsResult, ReleaseFacts, SecondRelease
from unface.score import Threshold
from unface.seeds import stream

torch = pytest.importorskip("torch")
Frames = NDArray[np.uint8]
KEY, PEOPLE = bytes(range(32)), 64


@pytest.fixture(autouse=True)
def _toy_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(facemae.PRESETS, "tiny", TOY)


def faces(name: str, people: int) -> Frames:
    """(people, 2, 16, 16, 3): two pictures of one person differ by noise."""
    random = stream(3, "audited", name)
    bases = random.integers(0, 256, (people, 1, 4, 4, 3)).repeat(4, axis=2).repeat(4, axis=3)
    return np.asarray(np.clip(bases + random.integers(-20, 20, (people, 2, 16, 16, 3)), 0, 255), np.uint8)


def trained_in(folder: Path, loss: str = "mse", ratio: float = 0.5, seed: int = 0) -> Trained:
    given = Faces(faces("train", 6).reshape(-1, 16, 16, 3), tuple(f"t{n}" for n in range(12)), Counter())
    recogniser = None if loss == "mse" else Features(ToyEncoder())
    recipe = Recipe(preset="tiny", loss=facemae.loss_of(loss), masking=Masking(ratio), epochs=1, seed=seed)
    training = Training(recipe, given, recogniser)
    training.run(training.steps)
    training.save(folder)
    return load_facemae(folder)


@cache
def kept() -> TemporaryDirectory[str]:
    return TemporaryDirectory()


@cache
def folder() -> Path:
    """Pictures of 64 people, one of which cannot be read, and a release of them; made once."""
    made = Path(kept().name)
    for person, both in enumerate(faces("publish", PEOPLE)):
        for number, picture in enumerate(both):
            path = made / "people" / f"p{person:02d}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(path)
    (made / "people" / "p07" / "bad.png").write_bytes(b"cut")
    trained = trained_in(made / "model")
    deploy(read_images(made / "people"), trained, made / "out", key=KEY, licence="CC0", detector=None)
    return made


@cache
def given() -> tuple[ReadRelease, Trained]:
    made = folder()
    return read_release(made / "out", read_images(made / "people"), KEY, None), load_facemae(made / "model")


def test_released_pictures_stand_beside_their_originals() -> None:
    found, trained = given()
    images, told = read_images(folder() / "people"), Told()
    assert (found.name, len(found.real), sum(found.left_out.values())) == ("out", 2 * PEOPLE, 1)
    names = released_names(images, KEY)
    shown = [image for image in images if "bad" not in image.id]
    for row, image in enumerate(shown):
        np.testing.assert_array_equal(found.real[row], decode(image.read()))
        content = (folder() / "out" / names[image.id]).read_bytes()
        np.testing.assert_array_equal(found.released[row], decode(content))
    assert [f"p{person:02d}" for person in found.people] == [image.identity for image in shown]
    assert found.people.dtype == np.int64
    assert found.manifest == read_manifest(folder() / "out")
    masked = MaskedFaces.of(found.real, found.contents, trained.masking, trained.preset, KEY)
    np.testing.assert_array_equal(masked.made_by(trained.model), found.released)
    read_release(folder() / "out", images, KEY, None, threads=1, progress=told)
    assert (told.started, told.advanced) == ([("reading the release", 129)], {"reading the release": 129})
    with refused("protection", "out", "this"):
        read_release(folder() / "out", images, bytes(32), None)


def test_a_release_that_was_changed_or_is_of_others_is_refused(tmp_path: Path) -> None:
    import shutil

    shutil.copytree(folder() / "out", tmp_path / "out")
    images = read_images(folder() / "people")
    name = released_names(images, KEY)[images.images[0].id]
    other = released_names(images, KEY)[images.images[1].id]
    shutil.copy(tmp_path / "out" / other, tmp_path / "out" / name)
    with refused("protection", "out", "manifest.json"):
        read_release(tmp_path / "out", images, KEY, None)
    (tmp_path / "out" / name).unlink()
    with refused("protection", f"out/{name}"):
        read_release(tmp_path / "out", images, KEY, None)
    fewer = ImageSet(images.images[2:], images.source)
    with refused("protection", ...):
        read_release(tmp_path / "out", fewer, KEY, None)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    for part in ("schema", "files_sha256", "model", "mask"):
        (tmp_path / "out" / "manifest.json").write_text(
            json.dumps(
                {**manifest, part: None}
                if part == "schema"
                else {key: value for key, value in manifest.items() if key != part}
            )
        )
        with refused("protection", ..., "of unface.facemae-release/1"):
            read_manifest(tmp_path / "out")
    with refused("protection", ..., "holds"):
        read_manifest(tmp_path)


def test_people_of_the_attacker_are_faces_hashes_and_whose() -> None:
    found = own_people(read_images(folder() / "people"), 16, None)
    np.testing.assert_array_equal(found.frames, given()[0].real)
    assert found.contents == given()[0].contents
    assert found.people.tolist() == given()[0].people.tolist()
    (folder() / "bad" / "p").mkdir(parents=True, exist_ok=True)
    (folder() / "bad" / "p" / "a.png").write_bytes(b"x")
    with refused("protection", "bad", "of 1"):
        own_people(read_images(folder() / "bad"), 16, None)


class Pixels:
    """A recogniser that learned nothing: faces as vectors, turned by its seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def embed(self, frames: Frames) -> NDArray[np.float32]:
        flat = frames.reshape(len(frames), -1).astype(np.float32) - 120 - self.seed
        return np.asarray(flat / np.linalg.norm(flat, axis=1, keepdims=True), np.float32)


def pair_set() -> PairSet:
    frames = faces("pairs", 20).reshape(-1, 16, 16, 3)
    same = np.arange(40).reshape(20, 2)
    other = np.stack([np.arange(0, 40, 2), np.roll(np.arange(1, 40, 2), 1)], axis=1)
    pairs = np.stack([same, other], axis=1).reshape(40, 2)
    return PairSet("toy", frames, pairs, np.arange(40) % 2 == 0, np.arange(40) // 4)


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """Recognisers are not trained here; what they would have been trained on is kept."""
    calls: list[tuple[int, int, int]] = []

    def train(
        frames: Frames, people: NDArray[np.int64], recipe: RecogniserRecipe, device: str, *, progress: object
    ) -> Pixels:
        calls.append((len(frames), len(np.unique(people)), recipe.seed))
        return Pixels(recipe.seed)

    monkeypatch.setattr(facemae_audit, "train_recogniser", train)
    return calls


PLAN = Plan(RecogniserRecipe(size=16, width=0.25, dim=16, epochs=1), (1, 2), FineTuning(steps=2, people=8), seed=5)


def own() -> OwnPeople:
    frames = faces("own", 12).reshape(-1, 16, 16, 3)
    return OwnPeople(frames, contents_of(frames), np.arange(24) // 2)


def test_every_method_meets_every_attacker(learned: list[tuple[int, int, int]]) -> None:
    release, trained = given()
    found = audit(
        release, trained, KEY, encoders=[ToyEncoder()], pairs=[pair_set()], plan=PLAN, own=own(), plain=trained,
        nobody=own(),
    )  # fmt: skip
    by = {method.name: method for method in found.methods[1:]}
    assert [method.name for method in found.methods] == [
        "plain MAE", "originals", "masks", "mean-colour masks", "low-pass", "plain MAE", "people who do not exist",
    ]  # fmt: skip
    assert [method.audited for method in found.methods] == [True] + [False] * 6
    assert [method.ratio for method in found.methods] == [0.5, None, 0.5, 0.5, 0.5, 0.5, None]
    assert {(method.pictures, method.people) for method in found.methods[:-1]} == {(128, 64)}
    assert (by["people who do not exist"].pictures, by["people who do not exist"].people) == (24, 12)
    assert learned == [(128, 64, seed) for _ in range(6) for seed in (1, 2)] + [(24, 12, 1), (24, 12, 2)]
    usual = ["tiny", "trained on the release", "tiny, protected query", "tiny, fine-tuned"]
    for method in found.methods[:-1]:
        names = [one.name for one in method.attackers]
        assert names == [name for name in usual if method.name != "originals" or "query" not in name]
    assert by["people who do not exist"].attackers == []
    masked = MaskedFaces.of(release.real, release.contents, trained.masking, trained.preset, KEY)
    for name, frames in (
        ("masks", masked.masks()), ("mean-colour masks", masked.mean_colour()), ("low-pass", masked.low_pass()),
        ("originals", release.real), ("plain MAE", release.released),
    ):  # fmt: skip
        deployed = Deployed(release.real, frames, release.people)
        method = by[name]
        expected = Seen.of(registry_attacker(ToyEncoder()), deployed, 5).result(5)
        assert method.attackers[0] == expected
        trainee = Attacker("trained on the release", "trained on the release", Pixels(1).embed, Pixels(1).embed)
        assert method.attackers[1] == Seen.of(trainee, deployed, 5).result(5)
    theirs = _other_key(KEY)

    def imitated(frames: Frames) -> Frames:
        return MaskedFaces.of(frames, contents_of(frames), trained.masking, trained.preset, theirs).masks()

    deployed = Deployed(release.real, masked.masks(), release.people)
    expected = Seen.of(imitating_attacker(ToyEncoder(), imitated), deployed, 5).result(5)
    assert by["masks"].attackers[2] == expected
    assert by["masks"].utility == [accuracy(pair_set(), {1: Pixels(1), 2: Pixels(2)})]  # type: ignore[dict-item]
    assert (found.calibrate_people, found.measured_people) == (32, 32)
    assert found.not_measured == []
    assert found.second is not None
    assert found.methods[0].worst is not None
    assert found.second.attacker == found.methods[0].worst.name
    assert found.second.same_seed_shown == 0.5
    assert found.second.other_seed_shown == pytest.approx(0.75, abs=0.03)
    facts, model = found.release, release.manifest["model"]
    assert (facts.name, facts.people, facts.pictures, facts.preset, facts.loss) == ("out", 64, 128, "tiny", "mse")
    assert (facts.sha256, facts.model_sha256) == (release.manifest["files_sha256"], model["sha256"])
    assert facts.recogniser is None
    (left_out,) = [one.text for one in found.findings if one.about == "pictures"]
    assert left_out.startswith("1 left out: ")
    assert [one.text for one in found.findings if one.about == "seeds"] == [
        "2 recognisers learned from each set; intervals do not cover how recognisers differ"
    ]


def test_what_was_not_given_is_not_measured_and_is_said(learned: list[tuple[int, int, int]], tmp_path: Path) -> None:
    release, trained = given()
    found = audit(release, trained, KEY, encoders=[ToyEncoder()], pairs=[], plan=replace(PLAN, seeds=(1,)))
    assert [text.partition(";")[2] for text in found.not_measured] == [
        " train one with --loss mse and give it as --plain", " give --attacker-people", " give --pairs",
        " give --nobody",
    ]  # fmt: skip
    assert [method.name for method in found.methods] == [
        "plain MAE",
        "originals",
        "masks",
        "mean-colour masks",
        "low-pass",
    ]
    assert [one.name for one in found.methods[1].attackers] == ["tiny", "trained on the release"]
    other = replace(trained, sha256="00")
    coarse, learned_im = trained_in(tmp_path / "plain", ratio=0.75), trained_in(tmp_path / "im", "im")
    with refused("protection", "out", "another"):
        audit(release, other, KEY, encoders=[ToyEncoder()], pairs=[], plan=PLAN)
    with refused("protection", "--plain", "another"):
        audit(release, trained, KEY, encoders=[ToyEncoder()], pairs=[], plan=PLAN, plain=coarse)
    with refused("protection", "--plain", "'im'"):
        audit(release, trained, KEY, encoders=[ToyEncoder()], pairs=[], plan=PLAN, plain=learned_im)
    named = replace(release, manifest={**release.manifest, "model": {**release.manifest["model"], "loss": "irm"}})
    assert audit(named, trained, KEY, encoders=[ToyEncoder()], pairs=[], plan=PLAN).methods[0].name == "FaceMAE"


def test_attackers_without_a_published_recogniser_are_those_the_release_trains() -> None:
    crowd = Crowd([], PLAN)
    assert [one.name for one in crowd.against(unchanged, own(), {1: Pixels(1), 2: Pixels(2)})] == [  # type: ignore[dict-item]
        "trained on the release"
    ]
    assert list(crowd.against(unchanged, own(), {})) == []
    two = Crowd([ToyEncoder(), ToyEncoder()], PLAN)
    assert two.published is two.published
    kinds = [one.kind for one in two.against(lambda frames, contents: frames, None, {})]
    assert kinds == ["recogniser", "recogniser", "imitation"]


def share(value: int, of: int = 10) -> Share:
    return Share.counted(value, of, Interval(0.0, 1.0, 0.95), 5)


def attacker(kind: Any, hits: int) -> AttackerResult:
    return AttackerResult(
        name=f"the {kind}", kind=kind, far=1e-3, cosine=0.5, achieved_far=1e-3,
        same=Share.counted(hits, 10, Interval(hits / 10 - 0.05, 1.0, 0.95), 5),
        other=Share.counted(hits, 10, Interval(hits / 10 - 0.05, 1.0, 0.95), 5), calibrate_other=hits / 10,
        retrieval=[],
    )  # fmt: skip


def told(
    methods: list[MethodResult], second: SecondRelease | None = None, seeds: tuple[int, ...] = (1, 2, 3),
    left_out: Mapping[str, int] | None = None, **more: Any,
) -> Any:  # fmt: skip
    facts = ReleaseFacts(
        name="out", sha256="ab", people=9, pictures=18, preset="tiny", loss="irm", recogniser=None, model_sha256="cd"
    )
    return assembled(facts, methods, second, ["m"], replace(PLAN, seeds=seeds), Clock(), left_out or {}, **more)


def method(name: str, folds: Sequence[float], *attackers: AttackerResult, audited: bool = False) -> MethodResult:
    utility = [PairsResult(name="lfw", pairs=100, seeds=[1], by_seed=[list(folds)])] if folds else []
    return MethodResult(
        name=name, ratio=0.75, audited=audited, pictures=18, people=9, utility=utility, attackers=list(attackers)
    )


def test_findings_say_who_links_most_and_what_a_plain_model_does_as_well() -> None:
    strong, weak = attacker("fine-tuned", 9), attacker("recogniser", 2)
    high, low = [0.9, 0.91, 0.92, 0.9, 0.91] * 2, [0.7, 0.71, 0.72, 0.7, 0.71] * 2
    result = told([method("FaceMAE", high, strong, weak, audited=True), method("plain MAE", low)])
    assert (result.calibrate_people, result.measured_people, result.not_measured) == (4, 5, ["m"])
    assert [(one.severity, one.about) for one in result.findings] == [("warning", "worst attacker")]
    assert result.findings[0].text.startswith("the fine-tuned is worse than every published recogniser")
    alike = told([method("FaceMAE", low, attacker("recogniser", 9), audited=True), method("plain MAE", high)])
    assert [(one.severity, one.about) for one in alike.findings] == [("warning", "plain MAE")]
    assert "-20.0 points" in alike.findings[0].text.replace("−", "-")
    nothing = told([method("FaceMAE", [], weak, audited=True), method("plain MAE", high)])
    assert nothing.findings == []
    own_plain = told([method("plain MAE", low, weak, audited=True)])
    assert own_plain.findings == []
    twice = SecondRelease(attacker="a", same_seed_shown=0.25, other_seed_shown=0.4, one=share(2), both=share(3))
    again = told([method("FaceMAE", [], weak, audited=True)], twice, (1, 2), {"no face": 1200}, attacked_people=5)
    assert (again.calibrate_people, again.measured_people) == (2, 3)
    assert [(one.severity, one.about) for one in again.findings] == [
        ("warning", "second release"), ("note", "seeds"), ("note", "pictures"),
    ]  # fmt: skip
    assert "TAR rises from 20.0 % to 30.0 %; keep the seed" in again.findings[0].text
    assert again.findings[2].text == "1,200 left out: no face"
    same = SecondRelease(attacker="a", same_seed_shown=0.25, other_seed_shown=0.4, one=share(3), both=share(3))
    assert told([method("FaceMAE", [], weak, audited=True)], same).findings == []


def test_two_releases_are_averaged_and_get_a_threshold_of_their_own() -> None:
    random = stream(4, "twice")
    real = random.standard_normal((120, 12)).astype(np.float32)
    real /= np.linalg.norm(real, axis=1, keepdims=True)
    noisy = [np.asarray(real + 0.5 * random.standard_normal(real.shape), np.float32) for _ in range(2)]
    for one in noisy:
        one /= np.linalg.norm(one, axis=1, keepdims=True)
    frames = [np.full((120, 1, 1, 1), n, np.uint8) for n in range(3)]

    def embed(given: Frames) -> NDArray[np.float32]:
        return (real, *noisy)[int(given[0, 0, 0, 0])]

    people = np.arange(120) // 2
    deployed = Deployed(frames[0], frames[1], people)
    whole = MaskedFaces(np.zeros((120, 16, 16, 3), np.uint8), np.zeros((120, 1), np.int64), TOY, 0.5)
    found = second_release(Attacker("a", "recogniser", embed, embed), deployed, whole, whole, whole, frames[2], 3)
    calibrate = deployed.half(3)
    mean = noisy[0] + noisy[1]
    both = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    for share_found, released in ((found.one, noisy[0]), (found.both, both)):
        seen = Seen(Attacker("a", "recogniser", embed, embed), real, released, people, calibrate)
        _, other, _ = seen.linked(seen.threshold(), 3, calibrate=False)
        assert other is not None
        assert share_found == other.share
    assert found.same_seed_shown == found.other_seed_shown == 1 / 16
    assert found.attacker == "a"


def test_half_of_the_people_set_thresholds_and_depend_on_the_seed() -> None:
    deployed = Deployed(
        np.zeros((9, 1, 1, 3), np.uint8), np.zeros((9, 1, 1, 3), np.uint8), np.repeat([3, 5, 7, 8, 9], 2)[:9]
    )
    half = deployed.half(0)
    chosen = set(deployed.people[half].tolist())
    assert len(chosen) == 2
    assert half.tolist() == [int(one) in chosen for one in deployed.people]
    assert len({tuple(deployed.half(seed).tolist()) for seed in range(12)}) > 2


def test_pairs_of_a_person_are_counted_and_strangers_divided_by_all_their_pairs() -> None:
    people = np.array([0, 0, 1, 1, 1, 2])
    released = np.eye(6, dtype=np.float32)
    one = Seen(Attacker("a", "recogniser", embedding, embedding), released, released, people, np.zeros(6, bool))  # type: ignore[arg-type]
    same, other, strangers = one.linked(Threshold.known(0.5, 0.0), 0, calibrate=False)
    assert other is not None
    assert (same.hits, same.trials) == (6, 6)
    assert (other.hits, other.trials, other.people) == (8, 8, 2)
    assert strangers == 1.0
    alone = replace(one, people=np.arange(6))
    _, nothing, strangers = alone.linked(Threshold.known(0.5, 0.5), 0, calibrate=False)
    assert (nothing, strangers) == (None, 0)
    found = replace(one, people=np.arange(6) // 2, calibrate=np.arange(6) < 4).result
    with refused("protection", None, "8"):
        found(0)


def test_fine_tuning_is_adamw_on_both_directions_of_the_pairs() -> None:
    """Two steps by hand: one real and one released picture of each person, rates that fall in a line."""
    mine = own()
    deployed = Deployed(mine.frames, np.ascontiguousarray(255 - mine.frames), mine.people)
    tuning = FineTuning(steps=2, people=12, learning_rate=1e-2, seed=3)
    progress = Told()
    found = fine_tuned_attacker(ToyEncoder(), deployed, tuning, progress=progress)
    assert (found.name, found.kind) == ("tiny, fine-tuned", "fine-tuned")
    assert (progress.started, progress.advanced) == ([("fine-tuning tiny", 2)], {"fine-tuning tiny": 2})
    network = Features(ToyEncoder())
    weights = [one for one in network.parameters() if one.ndim >= 2]
    for one in weights:
        one.requires_grad_()
    adam = torch.optim.AdamW(weights, 1e-2, weight_decay=1e-4)
    for step in range(2):
        random = stream(3, "protect", "fine-tuning", step)
        chosen = random.permutation(12)[:12]
        both = [random.permutation(np.flatnonzero(deployed.people == person))[:2] for person in chosen]
        sides = [
            torch.from_numpy(side[[two[at] for two in both]]).permute(0, 3, 1, 2).float() / 255
            for side, at in ((deployed.real, 0), (deployed.released, -1))
        ]
        scores = network(sides[0]) @ network(sides[1]).T / 0.05
        place = torch.arange(12)
        entropy = torch.nn.functional.cross_entropy
        adam.zero_grad()
        (entropy(scores, place) + entropy(scores.T, place)).backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        adam.param_groups[0]["lr"] = 1e-2 * (1 - step / 2)
        adam.step()
    with torch.no_grad():
        expected = network(torch.from_numpy(mine.frames).permute(0, 3, 1, 2).float() / 255).numpy()
    np.testing.assert_allclose(found.real(mine.frames), expected, atol=1e-4)
    defaults = FineTuning()
    assert (defaults.steps, defaults.people, defaults.learning_rate, defaults.temperature) == (400, 96, 1e-4, 0.05)
    with refused("protection", None, "least"):
        fine_tuned_attacker(ToyEncoder(), replace(deployed, people=np.zeros(24, np.int64)), tuning)
    two = replace(deployed, people=np.arange(24) % 2)
    assert fine_tuned_attacker(ToyEncoder(), two, replace(tuning, steps=1)).kind == "fine-tuned"


def test_buffers_that_are_filters_learn_and_vectors_of_one_row_do_not() -> None:
    class Graph(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("filters", torch.ones(4, 3))
            self.register_buffer("mean", torch.ones(1, 3))
            self.register_buffer("bias", torch.ones(4))
            self.register_buffer("places", torch.ones(4, 3, dtype=torch.int64))
            self.register_buffer("none", None)

    graph = Graph()
    (only,) = _unfrozen(graph)
    assert only is graph.filters
    assert only.requires_grad
    assert {name for name, _ in graph.named_buffers()} == {"mean", "bias", "places"}
    with refused("protection", None, "recogniser"):
        _unfrozen(torch.nn.BatchNorm1d(3))


def test_the_release_attacker_and_a_published_one_see_pictures_as_their_networks_do() -> None:
    frames = own().frames
    found = release_attacker(Pixels(1))  # type: ignore[arg-type]
    assert (found.name, found.kind) == ("trained on the release", "trained on the release")
    np.testing.assert_array_equal(found.real(frames), Pixels(1).embed(frames))
    published = registry_attacker(ToyEncoder())
    with torch.no_grad():
        expected = Features(ToyEncoder())(torch.from_numpy(frames).permute(0, 3, 1, 2).float() / 255).numpy()
    for side in (published.real, published.released):
        np.testing.assert_allclose(side(frames), expected, atol=1e-5)
    assert published.real(frames) is published.real(frames.copy()), "the same real pictures are embedded once"
    assert published.real(frames[:3]).shape == (3, 8)
    imitation = imitating_attacker(ToyEncoder(), lambda given: 255 - given)
    np.testing.assert_allclose(imitation.real(frames), published.released(255 - frames), atol=1e-5)
    assert (imitation.name, imitation.kind) == ("tiny, protected query", "imitation")


def test_names_that_the_model_was_trained_on_are_counted_beyond_chance() -> None:
    _, trained = given()

    def named(names: Sequence[str]) -> ImageSet:
        images = read_images(folder() / "people").images
        return ImageSet(tuple(replace(images[n], identity=name) for n, name in enumerate(names)), "set")

    ours = shared_people(named([f"t{n}" for n in range(12)]), trained)
    assert (ours.people, ours.matches, ours.certain) == (12, 12, True)
    others = shared_people(named([f"x{n}" for n in range(60)]), trained)
    assert others.people == 60
    assert (others.matches < 20, others.certain) == (True, False)


def test_a_manifest_says_how_the_release_was_made_and_commits_to_the_seed() -> None:
    manifest = read_manifest(folder() / "out")
    trained = given()[1]
    assert {key: manifest[key] for key in ("schema", "people", "pictures", "licence_of_inputs")} == {
        "schema": "unface.facemae-release/1", "people": 64, "pictures": 128, "licence_of_inputs": "CC0",
    }  # fmt: skip
    assert manifest["model"] == {
        "sha256": trained.sha256, "preset": "tiny", "size": 16, "loss": "mse", "beta": 1.0, "recogniser": None,
        "training_people": 12,
    }  # fmt: skip
    assert manifest["mask"] == {
        "ratio": 0.5, "hidden": "none", "visible_patches": 8, "patches": 16, "seed_commitment": commitment(KEY),
    }  # fmt: skip
    assert commitment(KEY) == hashlib.sha256(b"unface facemae mask seed\n" + KEY).hexdigest()
    assert (manifest["visible_pixels_pasted"], manifest["people_shared_with_training"]) == (False, "not found")


def test_a_models_header_says_what_it_was_trained_on(tmp_path: Path) -> None:
    trained = trained_in(tmp_path, seed=2)
    summary = json.loads((tmp_path / "training.json").read_text())
    assert summary["data"] == {
        "people": 12, "pictures": 12,
        "sha256": hashlib.sha256(faces("train", 6).tobytes()).hexdigest(), "left_out": {},
    }  # fmt: skip
    steps = -(-12 // TOY.batch)
    assert (summary["step"], summary["steps"], summary["mse_until_step"]) == (steps, steps, steps)
    assert (summary["recogniser"], summary["recipe"]["seed"], summary["recipe"]["masking"]["ratio"]) == (None, 2, 0.5)
    assert summary["weights"] == sum(one.numel() for one in trained.model.parameters())
    assert set(summary) == {
        "recipe", "recogniser", "data", "step", "steps", "mse_until_step", "seconds", "weights", "steps_per_loss",
        "losses",
    }  # fmt: skip
    assert summary["seconds"] >= 0
    assert "losses" not in trained.header
    assert (trained.masking, trained.preset) == (Masking(0.5), TOY)


def test_places_are_sines_and_cosines_of_rows_and_columns() -> None:
    places = facemae._places(5, 16).numpy()
    for token in (0, 7, 24):
        row, column = divmod(token, 5)
        rates = 10_000.0 ** -(np.arange(4) / 4)
        expected = np.concatenate(
            [np.sin(row * rates), np.cos(row * rates), np.sin(column * rates), np.cos(column * rates)]
        )
        np.testing.assert_allclose(places[token], expected, atol=1e-7)
    assert places.dtype == np.float32
