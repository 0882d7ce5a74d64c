"""If these fail, the decoder does not learn what its pictures show, or refining makes reconstructions worse."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from tests.encode.tiny import SIZE
from tests.invert.toy import LATENT, ToyEncoder, ToyPrior
from tests.prior.gradients import relative_error
from tests.refusals.table import refused
from unface.invert import Ledger, Targets, Threat, Train, load_attack, require
from unface.invert.decoder import Decoder, Network, Preset, read_preset, refined
from unface.invert.view import View, as_pictures
from unface.seeds import stream

LEARN = "width=64,steps=50,rate=0.006,batch=8,generated=0,refine_rate=0.05"


def world(count: int = 60) -> tuple[Threat, NDArray[np.float32]]:
    """Faces of a prior that is linear in five numbers, seen by a linear encoder; ten of them are targets."""
    view, prior = View(ToyEncoder()), ToyPrior()
    latents = torch.from_numpy(stream(0, "decoder world").standard_normal((count, LATENT))).float()
    pictures = as_pictures(prior.decode(latents, SIZE))
    with torch.inference_mode():
        vectors = view(torch.from_numpy(pictures).permute(0, 3, 1, 2) / 255).numpy()
    learned = count - 10
    train = Train(vectors[:learned], np.arange(learned), {}, lambda rows: pictures[rows])
    return Threat("raw", "tiny", view, prior, train), vectors[learned:]


def test_it_learns_faces_of_people_it_has_not_seen_and_refining_comes_nearer() -> None:
    threat, targets = world()
    attack, ledger = Decoder(LEARN), Ledger()
    require(attack, threat)
    invert = attack.prepare(threat, ledger)
    assert ledger.passes == {
        "encoder forward": 50 * 8,
        "encoder backward": 50 * 8,
        "prior forward": 0,
        "prior backward": 0,
    }
    made = invert(Targets(targets, np.arange(10)), Ledger())
    assert made.pictures is not None
    assert made.pictures.shape == (10, 64, 64, 3)
    derangement = (np.roll(targets, 1, axis=0) * targets).sum(axis=1)
    assert np.median(made.reached) > 0.9 > np.median(derangement)
    counted = Ledger()
    finer = Decoder(f"{LEARN},refine=30").prepare(threat, Ledger())(Targets(targets, np.arange(10)), counted)
    assert (finer.reached >= made.reached - 1e-6).all()
    assert np.median(1 - finer.reached) < 0.5 * np.median(1 - made.reached)
    assert counted.passes["encoder backward"] == 300


@pytest.mark.filterwarnings("error::UserWarning")
def test_vectors_that_cannot_be_written_to_are_learned_from_without_a_warning() -> None:
    threat, _ = world()
    assert threat.train is not None
    threat.train.vectors.flags.writeable = False
    Decoder("width=64,steps=1,batch=2,generated=0").prepare(threat, Ledger())


def test_generated_faces_join_half_of_each_batch() -> None:
    threat, targets = world()
    ledger = Ledger()
    invert = Decoder("width=64,steps=2,batch=8,generated=20").prepare(threat, ledger)
    assert ledger.passes["prior forward"] == 20
    assert ledger.passes["encoder forward"] == 20 + 2 * 8
    again = Decoder("width=64,steps=2,batch=8,generated=20").prepare(threat, Ledger())
    first, second = (each(Targets(targets, np.arange(10)), Ledger()).pictures for each in (invert, again))
    assert first is not None
    np.testing.assert_array_equal(first, second)


def test_refining_finds_the_known_optimum_of_a_linear_decoder() -> None:
    """Picture = the input's numbers, view = the picture's direction: the target itself is the best input."""

    class Direction(nn.Module):
        device = torch.device("cpu")

        def forward(self, pictures: torch.Tensor) -> torch.Tensor:
            return functional.normalize(pictures, dim=1)

    turn = torch.linalg.qr(torch.from_numpy(stream(0, "turn").standard_normal((4, 4))).float()).Q
    network = nn.Linear(4, 4, bias=False)
    network.weight = nn.Parameter(turn, requires_grad=False)
    wanted = functional.normalize(torch.from_numpy(stream(1, "turn").standard_normal((3, 4))).float(), dim=1)
    found = refined(network, Direction(), wanted, Preset(refine=400, refine_rate=0.05), Ledger())  # type: ignore[arg-type]
    assert torch.allclose(functional.normalize(found, dim=1), wanted @ turn, atol=1e-2)


def test_gradients_through_the_network_and_the_encoder_are_those_of_finite_differences() -> None:
    torch.manual_seed(0)
    network, view = Network(8, 64, 64).double(), View(ToyEncoder()).double()
    view.dtype = torch.float64
    at = functional.normalize(torch.from_numpy(stream(0, "at").standard_normal((1, 8))), dim=1)
    assert relative_error(lambda z: (view(network(z)) * at).sum(), at) < 1e-5


def test_both_sizes_and_nothing_else() -> None:
    assert Network(8, 128, 64)(torch.zeros(2, 8)).shape == (2, 3, 128, 128)
    with refused("inversion", "decoder", "is 32", "expected 64", "or 128"):
        read_preset("size=32")
    with refused("inversion", "decoder", "'depth=3'"):
        load_attack("decoder:depth=3")


def test_vectors_alone_do_not_train_it() -> None:
    threat, _ = world()
    assert threat.train is not None
    bare = replace(threat, train=replace(threat.train, pictures=None))
    with refused("inversion", None, "'decoder'"):
        Decoder("steps=1").prepare(bare, Ledger())
