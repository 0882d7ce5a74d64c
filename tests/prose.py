"""The prose of a Markdown page as sentences, and the words of each: how tests/test_language.py counts.

Counted are paragraphs, list items and quotations. Not counted are headings, tables, code blocks, HTML and pictures.
A link counts as its text and inline code as one word. A list item, and a paragraph, ends a sentence even without a full
stop; inside them a sentence ends at ``.``, ``!`` or ``?`` before a space and a capital, a digit, a bracket or a quote.
A colon or semicolon does not end a sentence. A word is a run of characters between spaces that holds a letter or digit.
"""

import re
from collections.abc import Iterator

FENCE = re.compile(r"^\s*(```|~~~)")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
NOT_PROSE = re.compile(r"^\s*(?:#|\||<|!\[|:::|\{[%{#]|---|===)")
END = re.compile(r"(?<=[.!?])[\"”)*_]*\s+(?=[\"“(\[*_]*[A-Z0-9`])")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|vs|cf|al|No|Fig|eq|approx)\.$")


def sentences(page: str) -> list[str]:
    """The sentences of a Markdown page, in order."""
    return [sentence for block in blocks(page) for sentence in split(plain(block))]


def words(sentence: str) -> int:
    """How many words a sentence has."""
    return sum(any(character.isalnum() for character in word) for word in sentence.split())


def average(page: str) -> float:
    """Words in an average sentence of a page; 0 for a page without prose."""
    counts = [count for sentence in sentences(page) if (count := words(sentence))]
    return sum(counts) / len(counts) if counts else 0.0


def blocks(page: str) -> Iterator[str]:
    """Paragraphs and list items, each as one line."""
    block: list[str] = []
    fenced = False
    for line in page.splitlines():
        if FENCE.match(line):
            fenced = not fenced
            yield from joined(block)
        elif fenced or not line.strip() or NOT_PROSE.match(line):
            yield from joined(block)
        else:
            if ITEM.match(line):
                yield from joined(block)
            block.append(ITEM.sub("", line).strip(" >"))
    yield from joined(block)


def joined(block: list[str]) -> Iterator[str]:
    """The lines of a block as one, if there are any; the block is empty afterwards."""
    if block:
        yield " ".join(block)
        block.clear()


def plain(block: str) -> str:
    """Markdown as a reader sees it: links as their text, code as one word, no emphasis."""
    text = re.sub(r"<[^>]*>", " ", block)
    text = re.sub(r"`[^`]*`", "Code", text)  # as it may begin a sentence
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*\*|__", "", text)


def split(block: str) -> list[str]:
    """The sentences of one block."""
    found: list[str] = []
    for part in END.split(block):
        if found and ABBREVIATION.search(found[-1]):
            found[-1] += f" {part}"
        else:
            found.append(part)
    return [sentence for sentence in found if sentence.strip()]
