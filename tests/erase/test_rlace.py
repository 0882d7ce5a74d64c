"""If these fail, R-LACE plays another game than its authors', and beating it proves nothing."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.erase.people import Matrix, matrix_of, people
from unface.erase import RLACE
from unface.erase.rlace import _Classifier, fantope
from unface.seeds import stream

torch = pytest.importorskip("torch", reason="the peer works its gradients out with torch")


def played(vectors: NDArray[np.float32], codes: NDArray[np.int64], rank: int, steps: int, seed: int) -> Matrix:
    """The game as it is written down: cross-entropy, gradients by autograd, Adam for the classifier."""
    exact = torch.from_numpy(vectors.astype(np.float64))
    exact = exact - exact.mean(dim=0)
    exact = exact / exact.square().mean().sqrt()
    known, dim = torch.from_numpy(codes.copy()), vectors.shape[1]
    weights, bias = (torch.zeros(size, int(codes.max()) + 1, dtype=torch.float64).squeeze(0) for size in (dim, 1))
    adam = torch.optim.Adam([weights.requires_grad_(), bias.requires_grad_()], lr=0.02, eps=1e-12)
    rng = stream(seed, "rlace")
    hidden = torch.eye(dim, dtype=torch.float64) * rank / dim
    late = []

    def loss(erased: Any) -> Any:
        rows = torch.from_numpy(rng.integers(len(exact), size=min(512, len(exact))))
        seen = exact[rows] - exact[rows] @ erased
        return torch.nn.functional.cross_entropy(seen @ weights + bias, known[rows])

    for step in range(steps):
        for _ in range(5):
            adam.zero_grad()
            loss(hidden).backward()
            adam.step()
        moving = hidden.clone().requires_grad_()
        slope = torch.autograd.grad(loss(moving), moving)[0]
        slope = slope + slope.T
        stride = rank**0.5 / (1 + 0.1 * step) / slope.norm()
        hidden = torch.from_numpy(fantope((hidden + stride * slope).numpy(), rank))
        late.append(hidden)
    return np.asarray(torch.stack(late[steps // 2 :]).mean(dim=0).numpy())


@pytest.mark.parametrize(("identities", "images", "rank", "steps"), [(6, 8, 3, 1), (6, 8, 3, 5), (5, 120, 2, 4)])
def test_it_is_the_game_played_with_autograd(identities: int, images: int, rank: int, steps: int) -> None:
    """Batches of all vectors and of 512 of them, an odd and an even number of steps, far from the origin."""
    made = people(identities, images, 9, between=0.5, seed=identities)
    far = made.vectors + np.float32(1000)
    found = RLACE(rank, steps=steps, seed=3).fit(far, made.identities).projection_
    expected = played(far, made.identities, rank, steps, seed=3)
    values, vectors = np.linalg.eigh(expected)
    leading = vectors[:, ::-1][:, :rank]
    assert found.spectrum == pytest.approx(values[::-1], abs=1e-7)
    assert matrix_of(found) == pytest.approx(np.eye(9) - leading @ leading.T, abs=1e-6)


def test_eigenvalues_of_the_average_lie_between_0_and_1_and_add_up_to_the_rank() -> None:
    made = people(6, 8, 9)
    found = RLACE(4, steps=7).fit(made.vectors, made.identities).projection_.spectrum
    assert found.sum() == pytest.approx(4)
    assert 0 <= found.min() <= found.max() <= 1


def test_one_step_is_a_game_and_rank_zero_removes_nothing() -> None:
    made = people(6, 8, 9)
    assert RLACE(3, steps=1).fit(made.vectors, made.identities).projection_.rank == 3
    assert RLACE(0, steps=2).fit(made.vectors, made.identities).projection_.rank == 0


@pytest.mark.filterwarnings("error")
def test_a_classifier_that_is_sure_of_itself_does_not_overflow() -> None:
    """Logits of 1,000 and 0: sure of the first, so wrong by all of it about a vector of the second."""
    sure = _Classifier(1, 2)
    sure.weights[0, 0] = 1000
    assert sure.errors(np.ones((2, 1)), np.array([1, 0])).tolist() == [[0.5, -0.5], [0, 0]]


def test_the_fantope_of_known_eigenvalues() -> None:
    """Shifted by one number and cut to [0, 1], so that they add up: here 1, 0.7 and 0.3 of 2.5, 0.9 and 0.5."""
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    given = (turn * [2.5, 0.9, 0.5, -3]) @ turn.T
    assert fantope(given, 2) == pytest.approx((turn * [1, 0.7, 0.3, 0]) @ turn.T, abs=1e-12)
    assert fantope(given, 4) == pytest.approx(np.eye(4), abs=1e-12)
    assert fantope(given, 0) == pytest.approx(np.zeros((4, 4)), abs=1e-12)
