"""If these fail, an inversion attack uses what it was not given, hides its cost, or depends on who else is there."""

import json
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.invert import (
    ATTACKS,
    Attack,
    Invert,
    Ledger,
    Need,
    Reconstructions,
    Targets,
    Threat,
    Train,
    load_attack,
    require,
)
from unface.seeds import stream

if TYPE_CHECKING:
    import torch

pytest.importorskip("torch")
QUICK = "pool=30,starts=2,steps=6,averaged=3"
NAMES = [
    f"alsuv:{QUICK}",
    "alsuv:pool=0,starts=3,steps=6,averaged=3,candidates=2",
    "bob",
    "bob:template",
    "decoder:width=64,steps=3,batch=8,generated=0",
    "decoder:width=64,steps=3,batch=8,generated=10,refine=2",
    "diffmi:pool=6,p=0,steps=4",
    "diffmi:true,pool=6,p=0,steps=4",
    "translate",
    "translate:decode",
    "toy",
]
assert {name.partition(":")[0] for name in NAMES} == {*ATTACKS, "toy"}
TEMPLATES = {"bob:template", "translate"}
FEW = 3

each = pytest.mark.parametrize("name", NAMES)


class Nearest:
    """An attack as another package would bring it: the face of a pool that scores highest."""

    name, batch = "toy", 7
    needs = frozenset({Need.PRIOR, Need.SCORES})
    settings: ClassVar[dict[str, float | str]] = {"pool": 20}

    def prepare(self, threat: Threat, ledger: Ledger) -> Invert:
        from unface.invert.view import as_pictures

        pool, prior = threat.pool(20, ledger), threat.prior
        assert prior is not None

        def invert(targets: Targets, ledger: Ledger) -> Reconstructions:
            scores = targets.vectors @ pool.vectors.numpy().T
            best = scores.argmax(axis=1)
            ledger.count("prior", forward=len(best))
            return Reconstructions(scores.max(axis=1), as_pictures(prior.decode(pool.latents[best], pool.size)))

        return invert


@dataclass(eq=False)
class World:
    """A threat that knows everything, targets, and how many pictures really went through each network."""

    threat: Threat
    targets: NDArray[np.float32]
    passes: dict[str, int]


@cache
def pictured() -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.float32]]:
    """Pictures of 60 people on the prior, their vectors, and those of the attacker's own recogniser."""
    import torch

    from tests.encode.tiny import SIZE
    from tests.invert.toy import LATENT, ToyEncoder, ToyPrior
    from unface.invert.view import as_pictures
    from unface.judge.template import unit_rows

    latents = torch.from_numpy(stream(0, "people of the attack").standard_normal((60, LATENT))).float()
    pictures = as_pictures(ToyPrior().decode(latents, SIZE))
    raw, own = (unit_rows(ToyEncoder(**card).encode(list(pictures))) for card in ({}, {"channels": "BGR"}))
    return pictures, raw.astype(np.float32), own.astype(np.float32)


def world(name: str) -> World:
    from tests.encode.tiny import SIZE
    from tests.invert.test_diffmi import Blank
    from tests.invert.toy import ToyEncoder, ToyPrior
    from unface.invert.view import View

    passes = {"encoder forward": 0, "prior forward": 0}

    class Counted(ToyEncoder):
        def torch_module(self) -> "torch.nn.Module":
            module = super().torch_module()

            def count(_: object, given: "tuple[torch.Tensor]", __: object) -> None:
                passes["encoder forward"] += len(given[0])

            module.register_forward_hook(count)
            return module

    prior = Blank() if name.startswith("diffmi") else ToyPrior()
    decode = prior.decode

    def counted(latents: "torch.Tensor", size: int = SIZE, *gradient: Any) -> "torch.Tensor":
        passes["prior forward"] += len(latents)
        return decode(latents, size, *gradient)

    prior.decode = counted  # type: ignore[method-assign] # counted on its way
    pictures, raw, own = pictured()
    train = Train(raw[FEW:], np.arange(60 - FEW), {"own": own[FEW:]}, lambda rows: pictures[FEW:][rows])
    second = View(Counted(name="own", channels="BGR"))
    threat = Threat("raw", "tiny", View(Counted()), prior, train, second)
    return World(threat, raw[:FEW], passes)


def attack_of(name: str) -> Attack:
    if name.startswith("diffmi"):
        from unface.invert.diffmi import DiffMI

        # The detector's weights are not needed to see that every noise is a face.
        return DiffMI(name.partition(":")[2], detect=lambda made: np.ones(len(made), bool))
    return load_attack(name)


def with_no_more_than(threat: Threat, needs: frozenset[Need]) -> Threat:
    """All that is not asked for is None."""
    return replace(
        threat,
        pools={},
        view=threat.view if needs & {Need.GRADIENTS, Need.SCORES} else None,
        prior=threat.prior if Need.PRIOR in needs else None,
        train=threat.train if Need.TRAIN in needs else None,
        second=threat.second if Need.OWN in needs else None,
    )


def inverted(name: str, rows: list[int], made: World | None = None) -> tuple[Reconstructions, Ledger]:
    """Prepared anew, knowing only what it needs; the ledger holds both the shared work and that of these targets."""
    made = made or world(name)
    attack, ledger = attack_of(name), Ledger()
    threat = with_no_more_than(made.threat, attack.needs)
    require(attack, threat)
    invert = attack.prepare(threat, ledger)
    return invert(Targets(made.targets[rows], np.array(rows)), ledger), ledger


@each
def test_it_says_what_it_is_what_it_needs_and_how_it_is_repeated(name: str) -> None:
    attack = attack_of(name)
    assert isinstance(attack, Attack)
    assert attack.name == name
    assert attack.needs
    assert attack.needs <= set(Need)
    assert json.loads(json.dumps(dict(attack.settings))) == dict(attack.settings)
    assert attack.batch >= 1


@each
def test_without_any_one_thing_that_it_needs_it_is_refused(name: str) -> None:
    attack, whole = attack_of(name), world(name).threat
    require(attack, whole)
    for need in attack.needs:
        by_view = frozenset({Need.GRADIENTS, Need.SCORES})
        lacking = with_no_more_than(whole, frozenset(Need) - (by_view if need in by_view else {need}))
        with pytest.raises(UnfaceError) as caught:
            require(attack, lacking)
        assert repr(name) in str(caught.value)
        assert need in str(caught.value)


@each
def test_each_target_gets_a_picture_or_a_template_and_the_cosine_that_it_reaches(name: str) -> None:
    import torch

    made = world(name)
    before = made.targets.tobytes()
    found, _ = inverted(name, [0, 1, 2], made)
    assert made.targets.tobytes() == before
    assert found.reached.shape == (FEW,)
    assert found.reached.dtype == np.float32
    if name in TEMPLATES:
        assert found.templates is not None
        assert found.templates.shape[0] == FEW
        assert np.isfinite(found.templates).all()
        assert found.recogniser in {"tiny", "own"}
        assert np.isnan(found.reached).all()
        return
    assert found.pictures is not None
    side = found.pictures.shape[1]
    assert found.pictures.shape == (FEW, side, side, 3)
    assert found.pictures.dtype == np.uint8
    if name != "translate:decode":  # it does not see the attacked space, and says what it reaches in its own
        assert made.threat.view is not None
        again = made.threat.view(torch.from_numpy(found.pictures).permute(0, 3, 1, 2) / 255).numpy()
        np.testing.assert_allclose((again * made.targets).sum(axis=1), found.reached, atol=0.02)


@each
def test_a_target_is_inverted_alike_alone_among_others_and_again(name: str) -> None:
    together, alone, turned = (inverted(name, rows)[0] for rows in ([0, 1, 2], [2], [2, 0, 1]))
    for other in (alone, turned):
        np.testing.assert_allclose(other.reached[:1], together.reached[2:], atol=1e-4)
        for mine, whole, near in (
            (other.pictures, together.pictures, 1),
            (other.templates, together.templates, 1e-5),
        ):
            if whole is not None and mine is not None:
                np.testing.assert_allclose(mine[0].astype(float), whole[2].astype(float), atol=near)


@each
def test_the_ledger_counts_every_picture_that_went_through_a_network(name: str) -> None:
    made = world(name)
    _, ledger = inverted(name, [0, 1, 2], made)
    assert {part: ledger.passes[part] for part in made.passes} == made.passes
    climbs = Need.GRADIENTS in attack_of(name).needs
    assert (ledger.passes["encoder backward"] > 0) is (climbs or name in {"bob", "translate:decode"})
    assert ledger.passes["encoder backward"] <= ledger.passes["encoder forward"]
    assert ledger.passes["prior backward"] <= ledger.passes["prior forward"]


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnfaceError) as caught:
        load_attack("nbnet")
    assert set(str(caught.value).partition("choose from ")[2].split(", ")) == {*ATTACKS, "toy"}
