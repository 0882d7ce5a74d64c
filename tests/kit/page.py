"""Reads a page as a browser would, without one: elements with their attributes, and the text that is shown."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

_INLINE = {"a", "b", "strong", "span", "code"}
_VOID = {"meta", "input", "link", "img", "br", "hr"}


@dataclass(eq=False)
class Element:
    """An element, where it stands, and all text within."""

    tag: str
    attributes: dict[str, str]
    within: tuple["Element", ...] = field(repr=False)
    text: str = field(default="", repr=False)

    @property
    def words(self) -> str:
        return " ".join(self.text.split())

    def inside(self, tag: str, **attributes: str) -> bool:
        return any(one.tag == tag and attributes.items() <= one.attributes.items() for one in self.within)


@dataclass(eq=False)
class Page(HTMLParser):
    """Every element in order."""

    source: str = field(repr=False)
    elements: list[Element] = field(default_factory=list, repr=False)
    open: list[Element] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.source)
        self.close()
        assert not self.open, f"never closed: {[one.tag for one in self.open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._apart(tag)
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(self.open))
        self.elements.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}, tuple(self.open)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()
        self._apart(tag)

    def handle_data(self, data: str) -> None:
        if not any(element.tag in ("script", "style") for element in self.open):
            for element in self.open:
                element.text += data
        elif self.open[-1].tag in ("script", "style"):
            self.open[-1].text += data

    def _apart(self, tag: str) -> None:
        """A block begins a new line."""
        for element in self.open if tag not in _INLINE else []:
            element.text += " "

    def all(self, *tags: str, **attributes: str) -> list[Element]:
        return [one for one in self.elements if one.tag in tags and attributes.items() <= one.attributes.items()]

    def one(self, tag: str, **attributes: str) -> Element:
        found = self.all(tag, **attributes)
        assert len(found) == 1, f"{len(found)} of <{tag} {attributes}>"
        return found[0]

    @property
    def words(self) -> str:
        return self.one("body").words
