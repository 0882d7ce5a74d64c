"""If these fail, the search stops short of faces that it could reach, or says that it reached what it did not."""

import numpy as np
import pytest
import torch

from tests.encode.tiny import DIM, SIZE
from tests.invert.test_view import projection
from tests.invert.toy import LATENT, ToyEncoder, ToyPrior
from tests.prior.tiny import mapping, mobile_constants
from unface.errors import UnfaceError
from unface.invert import Ledger, Reconstructions, Targets, Threat, require
from unface.invert.alsuv import PRESETS, Alsuv, read_preset
from unface.invert.view import View, as_pictures
from unface.prior.mobilestylegan import MobileSynthesis
from unface.prior.style import StylePrior
from unface.seeds import stream


def inverted(attack: Alsuv, threat: Threat, vectors: torch.Tensor) -> tuple[Reconstructions, Ledger]:
    require(attack, threat)
    ledger = Ledger()
    invert = attack.prepare(threat, Ledger())
    with ledger.timed(len(vectors)):
        return invert(Targets(vectors.numpy(), np.arange(len(vectors))), ledger), ledger


@pytest.mark.parametrize("preset", ["pool,pool=50", "pool=0,starts=3,rate=0.1,candidates=3"])
@pytest.mark.parametrize("erased", [False, True], ids=["raw", "erased"])
def test_on_a_linear_prior_it_finds_the_face_that_the_vector_was_made_of(preset: str, erased: bool) -> None:
    prior, view = ToyPrior(), View(ToyEncoder(), projection(rank=1) if erased else None)
    truth = torch.from_numpy(0.8 * stream(3, "truth").standard_normal((3, LATENT))).float()
    pictures = prior.decode(truth, SIZE)
    threat = Threat("raw", "tiny", view, prior, second=View(ToyEncoder(channels="BGR")))
    found, ledger = inverted(Alsuv(preset + ",steps=300,drop_at=200,averaged=60"), threat, view(pictures))
    # One direction of the vectors fits one latent alone: 5 numbers are found from 8 (7 where one is erased) directions.
    assert found.reached.min() > 0.9999
    assert found.pictures is not None
    wrong = np.abs(found.pictures.astype(int) - as_pictures(pictures).astype(int))
    assert wrong.mean() < 3
    away = np.abs(as_pictures(pictures).astype(int) - as_pictures(prior.decode(0 * truth, SIZE)).astype(int))
    assert wrong.mean() < 0.3 * away.mean()
    starts = Alsuv(preset).preset.starts
    assert ledger.passes["encoder backward"] == ledger.passes["prior backward"] == 3 * starts * 300
    assert ledger.targets == 3


def test_the_reached_cosine_is_that_of_the_picture_it_returns() -> None:
    prior, view = ToyPrior(), View(ToyEncoder())
    vectors = torch.nn.functional.normalize(torch.from_numpy(stream(0, "far").standard_normal((2, DIM))).float(), dim=1)
    found, _ = inverted(Alsuv("pool=20,steps=30"), Threat("raw", "tiny", view, prior), vectors)
    assert found.pictures is not None
    seen = view(torch.from_numpy(found.pictures).permute(0, 3, 1, 2) / 255)
    np.testing.assert_allclose((seen * vectors).sum(dim=1), found.reached, atol=6e-3)


def test_a_target_is_inverted_alike_alone_and_among_others() -> None:
    prior, view = ToyPrior(), View(ToyEncoder())
    vectors = view(prior.decode(prior.sample(3, 9), SIZE))
    threat = Threat("raw", "tiny", view, prior)
    invert = Alsuv("pool=0,starts=2,steps=20,averaged=5").prepare(threat, Ledger())
    together = invert(Targets(vectors.numpy(), np.arange(3)), Ledger())
    alone = invert(Targets(vectors[2:].numpy(), np.array([2])), Ledger())
    np.testing.assert_allclose(alone.reached, together.reached[2:], atol=1e-6)


def test_bfloat16_finds_what_float32_finds() -> None:
    prior, view = StylePrior("tiny", mapping(), MobileSynthesis(mobile_constants())), View(ToyEncoder())
    vectors = view(prior.decode(prior.sample(2, 9), 64))
    threat = Threat("raw", "tiny", view, prior)
    preset = "pool=30,starts=2,steps=40,drop_at=25,averaged=10"
    exact, coarse = (inverted(Alsuv(preset, precision=precision), threat, vectors)[0] for precision in ("fp32", "bf16"))
    assert exact.reached.min() > 0.99
    np.testing.assert_allclose(coarse.reached, exact.reached, atol=0.01)
    assert (coarse.reached != exact.reached).all(), "the same numbers would mean that precision changes nothing"


def test_presets_are_those_of_the_papers() -> None:
    assert read_preset("pool,steps=25").steps == 25
    paper, published = PRESETS["paper"], PRESETS["alsuv"]
    assert (paper.starts, paper.rate, paper.decay, paper.steps, paper.averaged) == (10, 0.01, 1e-4, 100, 70)
    assert (published.starts, published.rate, published.decay, published.drop_at) == (100, 0.1, 5e-4, 50)
    with pytest.raises(UnfaceError, match="no preset 'best'; choose from pool, paper, alsuv"):
        Alsuv("best")
    with pytest.raises(UnfaceError, match="'steps=many' is not a setting and a number"):
        Alsuv("steps=many")


def test_priors_of_the_wrong_kind_or_size_are_refused() -> None:
    view = View(ToyEncoder())
    with pytest.raises(UnfaceError, match="prior 'toy': shows tiny a face of 2 px, at least 3 are needed"):
        Alsuv().prepare(Threat("raw", "tiny", view, ToyPrior(size=2)), Ledger())
    noise = ToyPrior()
    del noise.slots
    with pytest.raises(UnfaceError, match="searches W\\+ of a StyleGAN prior; toy has none, use diffmi with it"):
        Alsuv().prepare(Threat("raw", "tiny", view, noise), Ledger())
