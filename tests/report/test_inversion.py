"""If these fail, the page or table of an inversion leaves out a number, or shows a name as markup."""

from io import StringIO

from rich.console import Console

from tests.gate.test_inversion import cell, result
from unface.report.inversion import print_inversion, render_inversion


def test_the_page_has_the_heat_map_the_budget_and_escapes_names() -> None:
    slow = cell("alsuv:steps=300", 62).model_copy(update={"settings": {"steps": 300}})
    fast = cell("alsuv:steps=30", 41).model_copy(update={"settings": {"steps": 30}})
    found = result(fast, slow, cell("<b>mine</b>", 3, "<i>own</i>", converged=False))
    page = render_inversion(found)
    assert page == render_inversion(found)
    assert page.count('class="chart"') == 2, "attack by space, and success over steps"
    for said in ("62.0 % [60.0, 65.0]", "41.0 %", "attack 3 on space 2 3.0 %", "did not converge", "&lt;b&gt;mine"):
        assert said in page, said
    assert "<b>mine" not in page
    assert 'fill="black">3.0</text>' in page, "legible on its light cell, which stays light on dark paper"


def test_a_search_that_does_not_say_its_steps_is_left_out_of_the_budget() -> None:
    page = render_inversion(result(cell("alsuv", 20).model_copy(update={"settings": {}})))
    assert page.count('class="chart"') == 1


def test_the_terminal_shows_the_same_in_eighty_columns() -> None:
    console = Console(file=StringIO(), width=80)
    print_inversion(result(cell("alsuv", 62), cell("alsuv", 4, "isp")), console)
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue()
    assert "62.0 [60.0, 65.0]" in shown
    assert "4.0 [2.0, 7.0]" in shown
    assert max(map(len, shown.splitlines())) <= 80
