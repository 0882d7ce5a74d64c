"""If this fails, an encoder that cannot be had by its name is not refused in one line that says why."""

from dataclasses import replace

import pytest

from tests.refusals.table import refused
from unface.encode import load_encoder
from unface.models import cards


def test_a_detector_is_no_encoder() -> None:
    with refused("encoder", "yunet"):
        load_encoder("yunet")


def test_an_unknown_name_is_one_sentence() -> None:
    with refused("weights", "arcface-mbv"):
        load_encoder("arcface-mbv")


def test_missing_libraries_are_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.encode.encoder._LIBRARIES", ("PIL", "surely_not_there"))
    with refused("encoder", None, "'unface[images]'"):
        load_encoder("sface")


def test_an_encoder_that_needs_torch_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.encode.encoder.find_spec", lambda name: None if name == "torch" else object())
    with refused("encoder", "augnet-r50"):
        load_encoder("augnet-r50")


def test_torchscript_is_a_program_and_never_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    program = replace(next(one for one in cards() if one.name == "sscd"), name="script", architecture="torchscript")
    monkeypatch.setattr("unface.encode.encoder.card", lambda name: program)
    with refused("encoder", "script"):
        load_encoder("script")
