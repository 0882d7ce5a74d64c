"""If these fail, long sentences are cut in the middle of a word on a terminal, or broken for programs."""

import sys
from io import StringIO

import pytest

from unface.cli.show import say

SENTENCE = "clean: 49,958 vectors, 24 of 96 dimensions removed (isp); 3 have nothing left and are zero"


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "lines"), [(Terminal, 3), (StringIO, 1)])
def test_a_sentence_is_broken_between_words_on_a_terminal_alone(
    stream: type[StringIO], lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = stream()
    monkeypatch.setattr(sys, "stdout", written)
    monkeypatch.setenv("COLUMNS", "40")
    say(SENTENCE)
    assert len(written.getvalue().splitlines()) == lines
    assert " ".join(written.getvalue().split()) == SENTENCE
