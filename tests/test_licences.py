"""If these fail, the page of licences leaves out a package or a file of weights, or names other terms than theirs."""

import tomllib
from importlib.metadata import distribution

from docs.licences import NOT_FOR_USERS, PAGE, ROOT, licence, packages, page
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from unface.models.own import shipped

TEXT = PAGE.read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("* "): cells[1:] for line in TEXT.splitlines() if len(cells := line.strip("| ").split(" | ")) > 1
}


def test_every_requirement_in_pyproject_is_listed_with_its_licence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: needed for name, needed in project["optional-dependencies"].items() if name not in NOT_FOR_USERS}
    named = [*project["dependencies"], *(one for needed in extras.values() for one in needed)]
    assert named
    for text in named:
        by, licences = ROWS[canonicalize_name(Requirement(text).name)]
        assert by, text
        assert licences, text


def test_everything_that_they_install_here_is_listed_as_its_metadata_says() -> None:
    found = packages()
    assert {"numpy", "pydantic-core", "torch"} <= found.keys()
    for name in found:
        assert ROWS[name][1] == licence(distribution(name)), name


def test_every_model_card_is_listed_with_its_terms() -> None:
    for card in shipped():
        name, only = ROWS[card.name][:2]
        assert (name, only) == (card.licence.name, "yes" if card.licence.research_only else "no")


def test_the_page_is_what_the_command_writes() -> None:
    """On another platform torch brings other packages; models are the same everywhere."""
    assert page().partition("## Weights")[2] == TEXT.partition("## Weights")[2]
