"""If these fail, a certificate says that a front end hides what it reveals."""

from tests.kit.results import INVALID, WARNING, certificate
from unface.result.certificate import CertificateResult


def with_maps(inputs: int, *maps: tuple[int, float | None]) -> CertificateResult:
    """Maps by rank and dB under noise; nobody looked at pictures."""
    made = certificate(encoder=False)
    (one,) = made.maps
    found = [one.model_copy(update={"rank": rank, "noise_psnr": psnr}) for rank, psnr in maps]
    return made.model_copy(update={"inputs": inputs, "maps": found, "pictures": None})


def test_a_certificate_is_compared_by_recognition_and_psnr() -> None:
    found = certificate(0.02)
    first, second = found.readings()
    assert found.pictures is not None
    assert found.pictures.identity is not None
    assert (first.name, first.found, first.headline) == (
        "recognised, sface, FAR 1e-3",
        found.pictures.identity.reconstructions,
        True,
    )
    assert (second.name, second.is_share, second.headline) == ("PSNR of least squares, 16 × 16", False, False)
    assert second.found is not None
    assert (second.found.value, second.found.low, second.found.high, second.found.level) == (20.0, 19.0, 21.0, 0.95)
    assert found.conditions() == {"size": "16", "pictures": "abababababab"}
    bare = with_maps(768, (9, None))
    assert [(one.name, one.found) for one in bare.readings()] == [
        ("recognised, no recogniser", None),
        ("PSNR of least squares, 16 × 16", None),
    ]
    assert bare.conditions() == {"size": "16", "pictures": "none"}
    assert bare.to_frame().empty
    seen = certificate(encoder=False).readings()
    assert (seen[0].found, seen[0].at, seen[1].found) == (None, "no recogniser", second.found)


def test_it_is_named_by_its_variant_and_valid_unless_a_finding_says_otherwise() -> None:
    found = certificate()
    assert found.subject == "dctdp (published)"
    assert found.model_copy(update={"variant": None}).subject == "dctdp"
    assert found.model_copy(update={"findings": [WARNING]}).valid
    broken = found.model_copy(update={"findings": [WARNING, INVALID]})
    assert not broken.valid
    assert (with_maps(9, (4, 8.0), (7, 9.0)).lost, with_maps(9, (4, 8.0), (7, 9.0)).noise_psnr) == ((2, 5), 9.0)
