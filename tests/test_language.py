"""If these fail, something that people read is not plain English: a long-winded page, or a word the rules exclude."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from tests import cli_page, prose

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")), *sorted(ROOT.glob("docs/*.md"))]
TEMPLATES = sorted((ROOT / "src").rglob("*.jinja"))
MOST_WORDS = 20  # in an average sentence of a page, counted by tests/prose.py

# What not to write, and what to write instead.
PLAIN = {
    r"(is|are|was|were|be|being|been) told\b": "say, show, report",
    r"told (apart|from)\b": "distinguish, separate",
    r"(cannot|can|not) tell (\w+ ){0,3}(apart|from)\b": "distinguish, separate",
    r"cannot tell:|cannot be told": "inconclusive, could not be evaluated",
    r"whom|whence|thus|hence|lest|thereof|whilst|albeit": "who, from where, so",
    r"rid(e|es|ing) along": "is added, is measured too",
    r"(give|gives|gave|giving) (\w+ )?away": "reveal",
    r"speaks? (for|of|against|about)|the first speaks": "support, describe, decide",
    r"(go|goes|gone|going) on (with|by|after|where|when|writing)|(command|call|run) goes on": "continue",
    r"nobody knows here": "it does not record",
    r"asks? nobody": "makes no network requests",
    r"not found to matter": "gave no measurable benefit",
    r"of each of some other people": "trained on k pictures of each person",
    r"tell pictures of": "re-identify",
    r"more need more identities|directions of \d+ fit identities go": "rank is capped at … because …",
    r"keeps [\d.]+ % of its": "accuracy: before → after",
    r"(no|a) sure (change|difference)|is not sure\b": "clear, significant",
}
NOT_PLAIN = re.compile("|".join(rf"\b(?:{words})(?!\w)" for words in PLAIN), re.IGNORECASE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_an_average_sentence_of_a_page_is_short(page: Path) -> None:
    average = prose.average(page.read_text(encoding="utf-8"))
    assert average < MOST_WORDS, f"{average:.1f} words; the longest sentence: {longest(page)}"


@pytest.mark.parametrize("file", [*PAGES, *TEMPLATES], ids=lambda file: file.name)
def test_no_page_has_a_word_that_the_rules_exclude(file: Path) -> None:
    text = re.sub(r"\s+", " ", file.read_text(encoding="utf-8"))
    assert list(not_plain(text)) == []


def test_no_command_explains_itself_with_one() -> None:
    from unface.cli.app import app

    names = [command.name for command in cli_page.commands(typer.main.get_command(app))]
    assert len(names) > 10
    helps = {name: help_of(name) for name in names}
    assert {name: found for name, text in helps.items() if (found := list(not_plain(text)))} == {}


def longest(page: Path) -> str:
    """The sentence to shorten first."""
    return max(prose.sentences(page.read_text(encoding="utf-8")), key=prose.words)


def not_plain(text: str) -> Iterator[str]:
    """Each place where a text has a word that is not plain, with what is around it."""
    for found in NOT_PLAIN.finditer(text):
        yield text[max(found.start() - 30, 0) : found.end() + 20]


def help_of(name: str) -> str:
    """What ``--help`` of a command prints, in one line."""
    from typer.testing import CliRunner

    from unface.cli.app import app

    shown = CliRunner().invoke(app, [*name.split()[1:], "--help"])
    assert shown.exit_code == 0, shown.output
    return re.sub(r"[\s│╭╮╰╯─]+", " ", shown.output)


PAGE = """\
# A heading of four words

One two three. Four `some code` six [seven eight](page.html)?
Nine, e.g. ten: 1.5 eleven.

| a table | is not | counted |
|---|---|---|

```console
$ neither is code. Nor this.
```

- an item without a stop
- **Bold.** Two sentences

One two. `code` begins three.
"""


def test_sentences_are_counted_as_the_module_says() -> None:
    found = prose.sentences(PAGE)
    assert [prose.words(sentence) for sentence in found] == [3, 5, 5, 5, 1, 2, 2, 3]
    assert prose.average(PAGE) == pytest.approx(26 / 8)


@pytest.mark.parametrize(
    "text", ["the ledger is told", "It can tell one from another.", "a run goes on", "what vectors give away", "Whom?"]
)
def test_words_that_are_not_plain_are_found(text: str) -> None:
    assert list(not_plain(text))


@pytest.mark.parametrize("text", ["a toll road", "The run continues.", "on the whole", "Go on top", "given a way"])
def test_plain_words_are_not(text: str) -> None:
    assert not list(not_plain(text))
