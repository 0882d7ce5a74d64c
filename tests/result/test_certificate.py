"""If these fail, a certificate says that a front end hides what it reveals."""

import pytest

from tests.gate.made import INVALID, WARNING
from tests.gate.test_certificate import certificate
from unface.result.certificate import CertificateResult


def with_maps(inputs: int, *maps: tuple[int, float | None]) -> CertificateResult:
    """Maps by rank and dB under noise; nobody looked at pictures."""
    made = certificate(encoder=False)
    (one,) = made.maps
    found = [one.model_copy(update={"rank": rank, "noise_psnr": psnr}) for rank, psnr in maps]
    return made.model_copy(update={"inputs": inputs, "maps": found, "pictures": None})


@pytest.mark.parametrize(
    ("inputs", "maps", "said"),
    [
        (768, [(765, None)], "hides almost nothing: all but 3 of the 768 dimensions|it adds no noise"),
        (200, [(198, None)], "hides almost nothing: all but 2 of the 200 dimensions|it adds no noise"),
        (200, [(197, None)], "hides part of a picture: all but 3 of the 200 dimensions|it adds no noise"),
        (1, [(1, None)], "hides almost nothing: all 1 dimension|it adds no noise"),
        (200, [(200, 30.0)], "hides almost nothing: all 200 dimensions|its noise leaves them at 30 dB"),
        (200, [(200, 29.6)], "hides part of a picture: all 200 dimensions|its noise leaves them at 30 dB"),
        (
            3000,
            [(2990, None), (1000, 12.3), (1500, 11.0)],
            "hides part of a picture: all but 10 to 2,000 of the 3,000 dimensions|its noise leaves them at 12 dB",
        ),
    ],
)
def test_the_verdict_follows_from_algebra(inputs: int, maps: list[tuple[int, float | None]], said: str) -> None:
    dimensions, noise = said.split("|")
    verdict = f"This front end {dimensions} of a picture can be computed back, and {noise}."
    assert with_maps(inputs, *maps).verdict == verdict


def test_a_recogniser_is_quoted_beside_what_it_links_of_originals() -> None:
    said = (
        "This front end hides almost nothing: all but 3 of the 768 dimensions of a picture can be computed back, and "
        "it adds no noise."
    )
    assert certificate(0.99).verdict == (
        f"{said} A recogniser links 99.0 % of the photos computed back to other photos of the same person, at one "
        "false match in 1,000. Of the originals it links about as many, 100.0 %."
    )
    assert certificate(0.98).verdict.endswith("Of the originals it links 100.0 %."), "from 97 to 99 %"
    assert certificate(0.9, originals=0.89).verdict.endswith("it links about as many, 89.0 %."), "from 89 to 91 %"
    assert certificate(0.99, encoder=False).verdict == said


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
    assert repr(broken) == f"<CertificateResult INVALID, dctdp (published): {broken.verdict} 2 findings>"
    assert (with_maps(9, (4, 8.0), (7, 9.0)).lost, with_maps(9, (4, 8.0), (7, 9.0)).noise_psnr) == ((2, 5), 9.0)
