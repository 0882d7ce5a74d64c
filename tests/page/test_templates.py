"""If these fail, a template puts values into a page unescaped, or a page is not one that stands on its own."""

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from unface.page.tables import Cell, table
from unface.page.templates import page_file, render, render_page

EVIL = "</script><b onclick=x>&'\""


def test_values_are_escaped_and_what_a_template_made_is_not_escaped_again() -> None:
    made = render("tables.jinja", text=EVIL, tables=[table(EVIL, [EVIL], [[Cell(EVIL, EVIL)]])])
    assert isinstance(made, Markup)
    assert "<b" not in made
    assert made.count(str(Markup.escape(EVIL))) == 6
    assert render("tables.jinja", text=made, tables=[]).count("&lt;b") == 6


def test_a_value_that_is_missing_is_an_error_and_no_empty_place() -> None:
    with pytest.raises(UndefinedError, match="tables"):
        render("tables.jinja")


def test_a_page_is_a_plain_string_with_its_style_and_its_policy() -> None:
    empty: dict[str, object] = {}
    nothing = table("", [], [])
    page = render_page("unface.report:side_by_side.html.jinja", audits=empty, links=empty, charts=[], table=nothing)
    assert type(page) is str  # not Markup, which would escape what is added to it
    assert page_file("report.css") in page
    assert "default-src &#39;none&#39;" in page
