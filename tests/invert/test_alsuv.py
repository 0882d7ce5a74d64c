"""If these fail, the search stops short of faces that it could reach, or says that it reached what it did not."""

import numpy as np
import pytest
import torch

from tests.encode.tiny import SIZE
from tests.invert.test_view import projection
from tests.invert.toy import LATENT, ToyEncoder, ToyPrior
from tests.prior.tiny import mapping, mobile_constants
from tests.refusals.table import refused
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
    with refused("inversion", "alsuv", "'best'"):
        Alsuv("best")
    with refused("inversion", "alsuv", "'steps=many'"):
        Alsuv("steps=many")


def test_priors_of_the_wrong_kind_or_size_are_refused() -> None:
    view = View(ToyEncoder())
    with refused("inversion", "prior 'toy'", "of 2", "least 3"):
        Alsuv().prepare(Threat("raw", "tiny", view, ToyPrior(size=2)), Ledger())
    noise = ToyPrior()
    del noise.slots
    with refused("inversion"):
        Alsuv().prepare(Threat("raw", "tiny", view, noise), Ledger())
