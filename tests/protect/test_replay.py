"""Training steps as CUDA graphs."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from unface.protect.recogniser import RecogniserRecipe, train_recogniser
from unface.protect.replay import Replayed
from unface.seeds import stream


def losses_of(device: str, *, recording: bool) -> tuple[list[float], Tensor, bool]:
    """Eight steps of a least-squares fit, whose inputs and learning rate change from step to step."""
    random = torch.Generator().manual_seed(0)
    weight = nn.Parameter(torch.zeros(3, device=device))
    adam = torch.optim.AdamW([weight], 0.1)

    def gradients(given: Tensor, wanted: Tensor) -> Tensor:
        loss = ((given @ weight - wanted) ** 2).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    learn = Replayed(gradients, [weight], possible=recording)
    found = []
    for step in range(8):
        given = torch.randn((5, 3), generator=random).to(device)
        found.append(float(learn(given, given.sum(dim=1))))
        adam.param_groups[0]["lr"] = 0.1 / (1 + step)
        adam.step()
        adam.zero_grad(set_to_none=True)
    return found, weight.detach().cpu(), learn.recorded


def test_each_call_leaves_the_gradients_of_its_own_inputs() -> None:
    """None is added to those of the call before: after one step on x² at 1 and again, the gradient is 2, not 4."""
    weight = nn.Parameter(torch.ones(1))

    def gradients(factor: Tensor) -> Tensor:
        loss = (factor * weight**2).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    learn = Replayed(gradients, [weight])
    for factor in (1.0, 1.0, 3.0):
        loss = learn(torch.tensor([factor]))
        assert (float(loss), float(weight.grad)) == (factor, 2 * factor)  # type: ignore[arg-type]
    assert not learn.recorded
    assert not loss.requires_grad


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_replayed_steps_learn_what_plain_ones_learn() -> None:
    (plain, first, _), (replayed, second, recorded) = (losses_of("cuda", recording=one) for one in (False, True))
    assert recorded
    assert replayed == pytest.approx(plain, rel=1e-5)
    torch.testing.assert_close(first, second)


def test_what_is_learned_on_a_cpu_does_not_depend_on_the_number_of_threads() -> None:
    frames = stream(0, "threads").integers(0, 256, (64, 16, 16, 3), dtype=np.uint8)
    recipe = RecogniserRecipe(size=16, width=0.25, dim=16, epochs=2, batch=32)
    before, learned = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            trained = train_recogniser(frames, np.arange(64) // 2, recipe)
            assert torch.get_num_threads() == threads, "the caller's number is its own again"
            learned.append(trained.embed(frames))
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(learned[0], learned[1])
