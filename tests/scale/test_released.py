"""If these fail, vectors that cannot be erased are released, or erased ones pass for raw ones."""

from tests.scale.stored import ARCFACE, DIM, UNNAMED, projection
from unface.data import Space
from unface.scale import released_space
from unface.scale.released import is_named


def test_what_comes_out_is_a_space_of_its_own() -> None:
    by, sha = projection(), projection().sha256
    assert released_space(by, None) == Space("arcface after isp 5", sha, DIM, normalised=True)
    clip = Space("clip", None, DIM, normalised=False)
    assert released_space(by, clip) == Space("clip after isp 5", sha, DIM, normalised=True)
    nobody = projection(UNNAMED)
    assert released_space(nobody, None).encoder == "unknown encoder after isp 5"


def test_a_space_is_named_by_an_encoder_or_by_weights() -> None:
    assert not is_named(None)
    assert not is_named(UNNAMED)
    assert is_named(ARCFACE)
    assert is_named(Space("clip", None, DIM, normalised=False))
    assert is_named(Space(None, "ab" * 32, DIM, normalised=False))
