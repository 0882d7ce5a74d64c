"""A rule about a certificate: its upper end decides, and a recogniser that knows nobody proves nothing."""

import json
from pathlib import Path

import pytest

from tests.page.read_page import Page
from unface.errors import UnfaceError
from unface.gate import Verdict, compare, decide, make_policy
from unface.report.certificate import render_certificate
from unface.result.certificate import CertificateResult, Identity, MapResult, PicturesResult
from unface.result.file import Clock, find_result
from unface.result.numbers import Interval, Mean, Share
from unface.result.readings import read_result


def certificate(recognised: float = 0.02, originals: float = 1.0, *, encoder: bool = True) -> CertificateResult:
    rank = 765 if recognised > 0.5 else 9

    def share(value: float) -> Share:
        hits = round(1000 * value)
        return Share.counted(hits, 1000, Interval(max(value - 0.01, 0), min(value + 0.01, 1), 0.95), 100)

    quality = Mean(20.0, 19.0, 21.0, 0.95, 100, 50)
    identity = Identity(
        encoder="sface",
        far=1e-3,
        cosine=0.4,
        impostors=10_000,
        originals=share(originals),
        guesses=share(0.0),
        reconstructions=share(recognised),
    )
    return CertificateResult(
        front_end="dctdp",
        variant="published",
        kind="linear",
        size=16,
        inputs=768,
        noise=None,
        maps=[MapResult(name="all pictures", outputs=rank, rank=rank, condition=1.0, noise_psnr=None, psnr=quality)],
        pictures=PicturesResult(
            name="people",
            sha256="ab" * 32,
            pictures=100,
            people=50,
            psnr=quality,
            guess_psnr=quality,
            identity=identity if encoder else None,
        ),
        findings=[],
        run=Clock().run(),
    )


def verdict(result: CertificateResult, limit: float = 0.05) -> tuple[Verdict, str]:
    (rule,) = decide(result, make_policy({"require": [{"recognised_max": limit}]}, lambda _, key: key)).rules
    return rule.verdict, rule.reason


@pytest.mark.parametrize(
    ("result", "expected", "why"),
    [
        (certificate(0.02), Verdict.PASSED, "is within the limit"),
        (certificate(0.045), Verdict.FAILED, "above 5.0 %"),
        (certificate(0.99), Verdict.FAILED, "99.0 % is more than 5.0 %"),
        (certificate(0.02, originals=0.03), Verdict.INCONCLUSIVE, "sface does not link originals of these people"),
        (certificate(encoder=False), Verdict.INCONCLUSIVE, "certify with --pictures and --encoder"),
    ],
)
def test_a_rule_holds_fails_or_cannot_be_evaluated(result: CertificateResult, expected: Verdict, why: str) -> None:
    found, reason = verdict(result)
    assert found is expected
    assert why in reason


def test_rules_about_other_files_are_inconclusive_on_it_and_the_other_way_round() -> None:
    policy = make_policy({"require": [{"tar_max": 0.1, "far": 1e-3}]}, lambda _, key: key)
    (rule,) = decide(certificate(), policy).rules
    assert rule.reason == "this file is a certificate; the rule is about what 'unface audit' wrote"


def test_it_is_found_read_and_compared(tmp_path: Path) -> None:
    before, after = certificate(0.02), certificate(0.5)
    for name, result in (("old", before), ("new", after)):
        result.save(tmp_path / name)
        assert find_result(tmp_path / name)[0] == tmp_path / name / "certificate.json"
        assert read_result(tmp_path / name)[0] == result
    assert compare(before, after).exit_code == 3, "recognised more often"
    assert compare(before, before).exit_code == 0


def test_its_page_opens_with_the_verdict_and_suggests_a_policy_that_it_would_fail() -> None:
    text = render_certificate(certificate(0.99))
    assert {"verdict", "maps", "limits", "method"} <= {one.attributes.get("id") for one in Page(text).elements}
    assert "recognised_max = 0.05" in text
    assert "It would fail the suggested limit" in text
    assert "99 of 100" in text


@pytest.mark.parametrize(
    ("where", "value"),
    [(("psnr", "level"), 1.0), (("psnr", "level"), 0.0), (("identity", "far"), 0.0), (("identity", "far"), 1e-320)],
)
def test_a_level_or_a_rate_that_nothing_can_be_computed_with_is_refused(
    tmp_path: Path, where: tuple[str, str], value: float
) -> None:
    content = json.loads(certificate().file_text())
    content["pictures"][where[0]][where[1]] = value
    (tmp_path / "certificate.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UnfaceError, match="was the file changed by hand"):
        CertificateResult.load(tmp_path / "certificate.json")
