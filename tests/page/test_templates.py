"""If these fail, a template puts values into a page unescaped, or a page is not one that stands on its own."""

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from tests.page.read_page import Page
from tests.report.made import raw_audit
from unface.page.tables import Cell, table
from unface.page.templates import _unbroken, page_file, render, render_page
from unface.report.opening import encoders_opening

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
    opening, template = encoders_opening({"a": raw_audit()}, {}), "unface.report:side_by_side.html.jinja"
    page = render_page(template, opening=opening, audits={}, links={}, charts=[], table=table("", [], []))
    assert type(page) is str  # not Markup, which would escape what is added to it
    assert page_file("report.css") in page
    assert "default-src &#39;none&#39;" in page


def test_no_line_ends_inside_a_rate_a_share_or_an_option() -> None:
    said = "TAR at FAR 1e-4, k = 12: 92.1 % [89.2, 94.2], 1e-3 with --far, --no-such; &#39;7 %&#39;"
    page = Page(_unbroken(f"<html><body><p title='FAR 1e-4'>{said}</p><pre>--far 1e-4</pre></body></html>"))
    whole = [one.text for one in page.all("span", **{"class": "one"})]
    assert whole == ["FAR 1e-4", "k = 12", "92.1 % [89.2, 94.2]", "1e-3", "--far", "--no-such", "7 %"]
    assert page.one("pre").text == "--far 1e-4", "what is copied stays as it is"
    assert page.one("p").words == "TAR at FAR 1e-4, k = 12: 92.1 % [89.2, 94.2], 1e-3 with --far, --no-such; '7 %'"
