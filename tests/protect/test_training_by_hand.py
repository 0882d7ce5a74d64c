"""If these fail, networks learn by another schedule, or certificates show other pictures and people than were given."""

import math
from collections import Counter
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.nn import functional

from tests.invert.toy import ToyEncoder
from tests.probe.small import Told
from tests.protect.test_facemae_train import TOY
from tests.refusals.table import refused
from tests.validate.test_material import BrightFaces, shown
from unface.data import ImageSet
from unface.data.embeddings import Space
from unface.judge.template import picture_thresholds
from unface.models import Input
from unface.progress import Silent
from unface.protect import facemae
from unface.protect.baselines import MaskedFaces, contents_of
from unface.protect.certificate import MatrixFrontEnd, SchemeFrontEnd, load_function, probe
from unface.protect.facemae import Features, MaskedAutoencoder, Masking, feature_loss, patches_of
from unface.protect.facemae_frames import Faces, each_face, read_faces, require_faces
from unface.protect.facemae_train import Recipe, Training, samples_png, train
from unface.protect.frequency import scheme
from unface.protect.measure import FAR, Portraits, _identity, _Solved, measure_certificate, portraits
from unface.protect.recogniser import (
    RECOGNISERS,
    MobileFaceNet,
    RecogniserRecipe,
    _initialise,
    _rate,
    arcface_loss,
    train_recogniser,
)
from unface.protect.replay import Replayed
from unface.protect.server import ReconstructingServer, open_server, require_recognition, same_answers
from unface.result.file import note
from unface.seeds import stream

Frames = NDArray[np.uint8]


@pytest.fixture(autouse=True)
def _toy_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(facemae.PRESETS, "tiny", TOY)


def faces(count: int = 12) -> Faces:
    frames = stream(0, "faces").integers(0, 256, (count, 16, 16, 3), dtype=np.uint8)
    return Faces(frames, tuple(f"p{number % 6}" for number in range(count)), Counter())


def reference(recipe: Recipe, given: Faces, steps: int, recogniser: Features | None, from_step: int) -> list[Any]:
    """The training loop in plain torch: its weights after so many of the recipe's steps."""
    model = MaskedAutoencoder(TOY).initialise(recipe.seed).train()
    rate = recipe.learning_rate or TOY.learning_rate
    adam = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.95), weight_decay=recipe.weight_decay)
    pictures = torch.from_numpy(given.frames).permute(0, 3, 1, 2)
    whole = math.ceil(recipe.epochs * len(pictures) / TOY.batch)  # type: ignore[operator]
    warm_up = math.ceil(0.2 * whole)
    random = torch.Generator()
    for step in range(steps):
        random.manual_seed(int(stream(recipe.seed, "facemae", "train", step).integers(2**62)))
        chosen = torch.randint(len(pictures), (TOY.batch,), generator=random)
        mirrored = torch.rand(TOY.batch, generator=random) < 0.5
        positions = recipe.masking.drawn(TOY, TOY.batch, random)
        batch = pictures[chosen].float() / 255
        batch = torch.stack([one.flip(2) if flip else one for one, flip in zip(batch, mirrored, strict=True)])
        seen = patches_of(batch, TOY.patch)
        made = model(torch.stack([one[place] for one, place in zip(seen, positions, strict=True)]), positions)
        if recogniser is None or step < from_step:
            loss = ((made - batch) ** 2).mean()
        else:
            loss = feature_loss(recipe.loss, recogniser(batch), recogniser(made), recipe.beta)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(model.parameters()), 1.0)
        if step < warm_up:
            share = (step + 1) / warm_up
        else:
            share = 0.5 * (1 + math.cos(math.pi * (step - warm_up) / (whole - warm_up)))
        adam.param_groups[0]["lr"] = rate * share
        adam.step()
    return list(model.parameters())


@pytest.mark.parametrize("loss", ["mse", "irm"])
def test_the_autoencoder_is_trained_by_the_schedule_of_its_recipe(loss: Any) -> None:
    recipe = Recipe(preset="tiny", loss=loss, beta=0.5, masking=Masking(0.5), epochs=5, seed=3, weight_decay=0.1)
    recogniser = None if loss == "mse" else Features(ToyEncoder())
    training = Training(recipe, faces(), recogniser)
    assert (training.steps, training.warm_up, training.pixels_until) == (15, 3, 3)
    for _ in range(7):
        training.one()
    assert training.step == 7
    expected = reference(recipe, faces(), 7, recogniser, 3)
    for ours, theirs in zip(training.model.parameters(), expected, strict=True):
        assert torch.allclose(ours, theirs, atol=2e-5)
    faster = Training(replace(recipe, learning_rate=0.01), faces(), recogniser)
    faster.one()
    faster.one()
    for ours, theirs in zip(
        faster.model.parameters(),
        reference(replace(recipe, learning_rate=0.01), faces(), 2, recogniser, 3),
        strict=True,
    ):
        assert torch.allclose(ours, theirs, atol=2e-5)


def test_a_whole_training_tells_its_steps_and_shows_samples_at_each_checkpoint(tmp_path: Path) -> None:
    recipe = Recipe(preset="tiny", loss="mse", masking=Masking(0.5), epochs=5)
    training, told = Training(recipe, faces(), None), Told()
    samples = faces(10).frames
    assert train(training, tmp_path, samples=samples, progress=told)
    assert (told.started, told.advanced) == ([("training FaceMAE", 15)], {"training FaceMAE": 15})
    assert {"model.safetensors", "samples.png", "training.json"} <= {path.name for path in tmp_path.iterdir()}
    picture = np.asarray(Image.open(BytesIO((tmp_path / "samples.png").read_bytes())))
    assert picture.shape == (3 * 16, 8 * 16, 3), "eight samples, in three rows"
    np.testing.assert_array_equal(picture[:16, 16:32], samples[1])
    masked = MaskedFaces.of(samples[:8], contents_of(samples[:8]), Masking(0.5), TOY, bytes(32))
    np.testing.assert_array_equal(picture[16:32, :16], masked.masks()[0])
    np.testing.assert_array_equal(picture[32:, 112:], masked.made_by(training.model)[7])
    assert (tmp_path / "samples.png").read_bytes() == samples_png(training, samples)
    again = Training(recipe, faces(), None)
    before = (tmp_path / "model.safetensors").stat().st_mtime_ns
    assert train(again, tmp_path, progress=Told())
    assert again.step == 15
    assert (tmp_path / "model.safetensors").stat().st_mtime_ns == before, "nothing was left to do"
    assert not train(Training(recipe, faces(), None), tmp_path / "stopped", seconds=0)


def test_recipes_that_cannot_be_trained_are_refused() -> None:
    assert (Recipe().preset, Recipe().loss, Recipe().beta, Recipe().weight_decay) == ("small", "irm", 1.0, 0.05)
    assert Recipe(preset="tiny", beta=0, epochs=1).beta == 0
    with refused("protection", None, "'irm'", "--recogniser"):
        Training(Recipe(preset="tiny"), faces(), None)
    assert Training(Recipe(preset="tiny", loss="mse", epochs=1), faces(), Features(ToyEncoder())).recogniser is None


def test_a_recogniser_is_trained_by_its_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([5.0, 17.26])
    monkeypatch.setattr("unface.protect.recogniser.time", SimpleNamespace(monotonic=lambda: next(ticks)))
    frames = stream(1, "learn").integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
    people = np.array([7, 7, 3, 3, 9, 9] * 2)
    recipe = RecogniserRecipe(size=16, width=0.25, dim=16, epochs=3, batch=5, learning_rate=1e-2, seed=4)
    told = Told()
    found = train_recogniser(frames, people, recipe, progress=told)
    assert (told.started, told.advanced) == ([("training a recogniser", 6)], {"training a recogniser": 6})
    network, head = MobileFaceNet(recipe), torch.nn.Parameter(torch.empty(3, 16))
    _initialise(network, head, 4)
    network.train().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    weights = [*network.parameters(), head]
    adam = torch.optim.AdamW(weights, 1e-2, weight_decay=0.05)
    labels, random = torch.tensor([1, 1, 0, 0, 2, 2] * 2), torch.Generator()
    losses: list[float] = []
    for step in range(6):
        epoch, at = divmod(step, 2)
        if at == 0:
            random.manual_seed(int(stream(4, "recogniser", "epoch", epoch).integers(2**62)))
            order = torch.randperm(12, generator=random)
            losses = []
        chosen = order[5 * at : 5 * at + 5]
        mirrored = torch.rand(len(chosen), generator=random) < 0.5
        batch = torch.from_numpy(frames)[chosen].permute(0, 3, 1, 2).float() / 255
        batch = torch.stack([one.flip(2) if flip else one for one, flip in zip(batch, mirrored, strict=True)])
        batch = batch.contiguous(memory_format=torch.channels_last)
        cosines = functional.normalize(network(batch), dim=1) @ functional.normalize(head, dim=1).T
        loss = arcface_loss(cosines, labels[chosen], 32.0, 0.4 * min(5 * step / 6, 1))
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(weights, 5.0)
        adam.param_groups[0]["lr"] = 1e-2 * _rate(step, 6)
        adam.step()
        losses.append(float(loss.detach()))
    assert found.loss == pytest.approx(np.mean(losses), rel=1e-3)
    assert found.seconds == 12.3
    network.eval()
    with torch.no_grad():
        expected = functional.normalize(network(torch.from_numpy(frames).permute(0, 3, 1, 2).float() / 255), dim=1)
    np.testing.assert_allclose(found.embed(frames), expected.numpy(), atol=5e-3)
    assert [_rate(step, 20) for step in (0, 1, 2, 11)] == pytest.approx([0.5, 1, 1, 0.5])
    assert [_rate(step, 5) for step in (0, 1, 3)] == pytest.approx([1, 1, 0.5])
    assert _rate(0, 1) == 1
    monkeypatch.undo()
    with refused("protection", None, "pictures"):
        train_recogniser(frames, np.zeros(12, np.int64), recipe)
    with refused("protection", None, "is 20", "of 16"):
        replace(recipe, size=20)
    tiny = RECOGNISERS["tiny"]
    assert (tiny.size, tiny.width, tiny.epochs, tiny.batch, tiny.learning_rate) == (64, 0.5, 30, 64, 2e-3)
    assert RECOGNISERS["base"] == RecogniserRecipe()


def test_weights_begin_as_he_draws_them() -> None:
    recipe = RecogniserRecipe(size=16, width=0.25, dim=64)
    networks = []
    for seed in (1, 1, 2):
        network, head = MobileFaceNet(recipe), torch.nn.Parameter(torch.empty(500, 64))
        _initialise(network, head, seed)
        networks.append((network, head))
    assert torch.equal(networks[0][1], networks[1][1])
    assert not torch.equal(networks[0][1], networks[2][1])
    assert float(networks[0][1].detach().std()) == pytest.approx(0.05, rel=0.02)
    out = networks[0][0].out.weight
    assert float(out.detach().std()) == pytest.approx(math.sqrt(2 / out.shape[1]), rel=0.05)
    model = MaskedAutoencoder(TOY).initialise(3)
    for layer in (model.embed, model.pixels, model.bridge):
        bound = math.sqrt(6 / sum(layer.weight.shape))
        assert float(layer.weight.detach().abs().max()) <= bound
        assert float(layer.weight.detach().abs().max()) > 0.9 * bound
        assert float(layer.weight.detach().mean().abs()) < 0.1 * bound
        assert not layer.bias.any()
    assert 0.005 < float(model.unseen.detach().std()) < 0.05


def test_gradients_of_a_call_replace_those_of_the_one_before() -> None:
    weight = torch.nn.Parameter(torch.tensor([2.0]))

    def gradients(x: torch.Tensor) -> torch.Tensor:
        loss = (weight * x).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    learn = Replayed(gradients, [weight])
    for value in (3.0, 5.0):
        loss = learn(torch.tensor([value]))
        assert float(loss) == 2 * value
        assert not loss.requires_grad
        assert weight.grad is not None
        assert float(weight.grad) == value
    assert not learn.recorded


class Solves:
    """A front end that draws one of two maps, and gives back the picture plus its number, or the guess."""

    size, outputs, deviation = 2, (5, 7), 3.0

    def __init__(self) -> None:
        self.seen: list[int] = []

    def spectrum(self, number: int) -> Any:
        return MatrixFrontEnd(np.diag([4.0] * 6 + [2.0] * (6 - number)) @ np.eye(12 - number, 12), 2).spectrum()

    def reconstruct(
        self, pictures: NDArray[np.float64], guesses: NDArray[np.float64], random: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        self.seen.append(len(pictures))
        drawn = np.arange(len(pictures)) % 2
        return np.where(drawn[:, None, None, None] == 0, pictures + 10, guesses), drawn


def test_pictures_after_least_squares_stand_beside_a_guess_from_other_people() -> None:
    pixels = stream(2, "portraits").integers(0, 200, (20, 2, 2, 3)).astype(np.uint8)
    people = np.arange(20) // 4
    given = Portraits("set", "ab", pixels, people, without_face=2)
    front, told = Solves(), Told()
    solved = _Solved.of(cast(Any, front), given, 0, told)
    assert front.seen == [16, 4]
    assert told.advanced == {"least squares": 20}
    for row in (0, 7):
        expected = pixels[people != people[row]].mean(axis=0)
        np.testing.assert_array_equal(solved.guesses[row], np.rint(expected))
        error = ((expected - pixels[row]) ** 2).mean()
        assert solved.guess_psnr[row] == pytest.approx(10 * np.log10(255**2 / error))
    assert solved.psnr[0] == pytest.approx(10 * np.log10(255**2 / 100))
    np.testing.assert_array_equal(solved.pixels[0], pixels[0] + 10)
    assert solved.psnr[1] == solved.guess_psnr[1]
    alone = _Solved.of(cast(Any, Solves()), Portraits("set", "ab", pixels[:2], people[:2]), 0, Silent())
    assert (alone.guesses == 128).all()
    result = measure_certificate(
        cast(Any, front),
        name="mine",
        variant="v",
        kind="piecewise linear",
        notes=(note("channels", "n"),),
        given=given,
        progress=told,
    )
    assert (result.front_end, result.variant, result.kind, result.size, result.inputs) == (
        "mine", "v", "piecewise linear", 2, 12,
    )  # fmt: skip
    assert result.noise == 3.0
    assert [(one.name, one.outputs, one.rank) for one in result.maps] == [("subset 1", 5, 12), ("subset 2", 7, 11)]
    assert [one.condition for one in result.maps] == [2.0, 2.0]
    assert result.maps[0].noise_psnr == front.spectrum(0).psnr(3.0)
    assert result.maps[0].psnr is not None
    assert result.maps[0].psnr.value == pytest.approx(10 * np.log10(255**2 / 100))
    assert result.maps[0].psnr.of == 10
    shown_in = result.pictures
    assert shown_in is not None
    assert (shown_in.name, shown_in.sha256, shown_in.pictures, shown_in.people) == ("set", "ab", 20, 5)
    assert shown_in.psnr.value == pytest.approx(solved.psnr.mean())
    assert shown_in.guess_psnr.value == pytest.approx(solved.guess_psnr.mean())
    assert shown_in.identity is None
    assert result.not_measured == ["whether people are still recognised; give --encoder"]
    assert [(one.severity, one.about, one.text) for one in result.findings] == [
        ("note", "channels", "n"), ("note", "pictures", "2 pictures without a face left out"),
    ]  # fmt: skip
    bare = measure_certificate(MatrixFrontEnd(np.eye(12), 2), name="mine", progress=Silent())
    assert (bare.kind, bare.pictures, bare.noise, bare.maps[0].name) == ("linear", None, None, "all pictures")
    assert (bare.maps[0].psnr, bare.maps[0].noise_psnr) == (None, None)
    assert bare.not_measured == ["what pictures look like after least squares; give --pictures"]


class Sees:
    """A recogniser of small pictures: their numbers less the middle, as unit vectors."""

    name, space = "sees", Space("sees", None, 12, True)
    wanted = Input(2, "NHWC", "RGB", "uint8", (0.0,) * 3, (1.0,) * 3, "none", "crop")

    def embed(self, frames: Any) -> NDArray[np.float32]:
        flat = np.stack(frames).reshape(len(frames), -1).astype(np.float32) - 100
        return np.asarray(flat / np.linalg.norm(flat, axis=1, keepdims=True), np.float32)


def test_people_are_recognised_at_a_threshold_of_other_peoples_originals() -> None:
    random = stream(3, "identity")
    bases = random.integers(0, 200, (80, 1, 2, 2, 3))
    pixels = np.clip(bases + random.integers(-40, 40, (80, 2, 2, 2, 3)), 0, 245).astype(np.uint8).reshape(-1, 2, 2, 3)
    people = np.arange(160) // 2
    given = Portraits("set", "ab", pixels, people)
    solved = _Solved.of(cast(Any, Solves()), given, 0, Silent())
    found = _identity(given, solved, cast(Any, Sees()), 0)
    assert found is not None
    vectors = Sees().embed(pixels)
    chosen = np.isin(people, stream(0, "protect", "calibrate").permutation(80)[:40])
    (threshold,) = picture_thresholds(vectors[chosen], np.arange(80) // 2, (FAR,))
    assert (found.encoder, found.far, found.cosine, found.impostors) == ("sees", 1e-3, threshold.cosine, 40 * 39 * 2)
    assert (found.calibrate_people, found.resolution) == (40, "coarse")
    for share, seen in (
        (found.originals, vectors), (found.guesses, Sees().embed(solved.guesses)),
        (found.reconstructions, Sees().embed(solved.pixels)),
    ):  # fmt: skip
        scores = seen @ vectors.T
        linked = [bool(scores[row, row ^ 1] >= np.float32(threshold.cosine)) for row in np.flatnonzero(~chosen)]
        assert (share.numerator, share.denominator, share.identities) == (sum(linked), 80, 40), (
            "ordered pairs, none with itself, none of the people who set the threshold"
        )
    few = Portraits("set", "ab", pixels[:40], people[:40])
    assert _identity(few, _Solved.of(cast(Any, Solves()), few, 0, Silent()), cast(Any, Sees()), 0) is None
    single = replace(given, people=np.arange(160))
    assert _identity(single, solved, cast(Any, Sees()), 0) is None
    result = measure_certificate(
        cast(Any, Solves()), name="x", given=few, recogniser=cast(Any, Sees()), progress=Silent()
    )
    assert len(result.not_measured) == 1
    assert "one half of 40 pictures has too few pairs of strangers" in result.not_measured[0]


def test_portraits_are_cut_as_the_recogniser_takes_faces() -> None:
    images = ImageSet((shown("b/0", (9, 0, 0)), shown("a/0", (0, 0, 0)), shown("a/1", (0, 9, 0))), "set")
    told = Told()
    found = portraits(images, 4, recogniser=None, detector=None, progress=told)
    assert (found.name, found.sha256, found.pixels.shape) == ("set", images.sha256(), (3, 4, 4, 3))
    assert [images.identities[person] for person in found.people] == ["b", "a", "a"]
    assert found.without_face == 0
    assert told.advanced == {"pictures": 3}
    assert found.pixels[0, 1, 2].tolist() == [9, 0, 0]
    seen = portraits(images, 4, recogniser=cast(Any, Sees()), detector=BrightFaces(), progress=Silent())
    assert (len(seen.pixels), seen.without_face) == (2, 1)
    assert [images.identities[person] for person in seen.people] == ["b", "a"]
    dark = ImageSet(images.images[1:2], "dark")
    with refused("protection", "dark", "in 1"):
        portraits(dark, 4, recogniser=None, detector=BrightFaces(), progress=Silent())


def test_faces_for_training_are_in_order_with_what_was_left_out() -> None:
    images = ImageSet((shown("b/0", (9, 0, 0)), shown("a/0", (0, 0, 0)), shown("a/1", (0, 9, 0))), "set")
    told = Told()
    found = read_faces(images, 8, None, progress=told)
    assert (found.frames.shape, found.identities, found.left_out) == ((3, 8, 8, 3), ("b", "a", "a"), Counter())
    assert (told.started, told.advanced) == ([("finding faces", 3)], {"finding faces": 3})
    hashes = [
        frame.content for frame in each_face(images.images, 8, None, 1, lambda one: one) if not isinstance(frame, str)
    ]
    assert len(set(hashes)) == 3
    with refused("protection", "set", "of 3", "2", "1"):
        require_faces(images, 0, Counter({"no face": 2, "bad": 1}))
    with refused("protection", "set", "of 3", "3"):
        require_faces(images, 0, Counter({"bad": 3}))
    require_faces(images, 1, Counter({"bad": 2}))


def test_a_function_is_probed_for_its_matrix_or_refused() -> None:
    matrix = stream(0, "probed").standard_normal((7, 12))

    def linear(pictures: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(pictures.reshape(len(pictures), -1) @ matrix.T + 3)

    found = probe(linear, 2, name="f")
    assert found.kind == "linear"
    np.testing.assert_allclose(found.front_end._matrix, matrix, atol=1e-8)
    pictures = stream(1, "probed").uniform(0, 255, (2, 2, 2, 3))
    solved, drawn = found.front_end.reconstruct(pictures, np.zeros_like(pictures), stream(0, "x"))
    np.testing.assert_allclose(linear(solved), linear(pictures), atol=1e-6)
    assert drawn.tolist() == [0, 0]
    assert found.front_end.outputs == [7]
    bent = probe(lambda given: np.abs(linear(given) - linear(given[:1] * 0 + 128)), 2, name="f", seed=1)
    assert bent.kind == "piecewise linear"
    np.testing.assert_allclose(np.abs(bent.front_end._matrix), np.abs(matrix), atol=1e-6)
    assert load_function("json:dumps")([1]) == "[1]"  # type: ignore[arg-type]


def test_a_server_is_opened_by_its_three_names_where_its_accuracy_is_known() -> None:
    class Small(Sees):
        name = "arcface-mbf"
        wanted = replace(Sees.wanted, size=8, alignment="arcface112")

    asked: list[str] = []

    def recogniser(name: str) -> Any:
        asked.append(name)
        return Small()

    server = open_server("dctdp/as-attacked/arcface-mbf", recogniser)
    assert (server.name, server.deterministic, asked) == ("dctdp as-attacked arcface-mbf", True, ["arcface-mbf"])
    assert open_server("dctdp/published/arcface-mbf", recogniser, seed=3).deterministic is False
    require_recognition("s", 0.97)
    with refused("protection", "sees"):
        ReconstructingServer(scheme("dctdp"), cast(Any, Sees()))
    frames = stream(0, "served").integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)
    assert server.embed([]).shape == (0, 12)
    front = SchemeFrontEnd(scheme("dctdp", "as-attacked"), 8)
    guesses = np.broadcast_to(np.array([136.0, 108.0, 89.0]), (2, 8, 8, 3))
    dense, _ = front.reconstruct(frames.astype(float), guesses, stream(0, "x"))
    assert np.abs(server.reconstructed(frames).astype(float) - np.clip(dense, 0, 255)).max() < 0.6
    same_answers(server, list(frames))

    class Lies(ReconstructingServer):
        def embed(self, frames: Any) -> NDArray[np.float32]:
            self.count = getattr(self, "count", 0) + 1
            return np.full((len(frames), 2), self.count, np.float32)

    lying = Lies(scheme("dctdp", "as-attacked"), cast(Any, Small()))
    with refused("protection", "dctdp as-attacked arcface-mbf"):
        same_answers(lying, list(frames))
    honest = Lies(scheme("dctdp", "published"), cast(Any, Small()))
    same_answers(honest, list(frames))
