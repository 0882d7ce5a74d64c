"""If these fail, a number in a cell is rounded or signed otherwise than its neighbours."""

from io import StringIO

import pytest
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from unface.page.tables import Cell, difference, print_safely, table


def test_differences_have_two_digits_of_their_largest_end() -> None:
    assert difference(-0.04, -0.043, -0.037) == "−4.0 [−4.3, −3.7]"
    assert difference(-0.002, -0.005, 0.001) == "−0.20 [−0.50, +0.10]"
    assert difference(0.0, 0.0, 0.0) == "+0.0 [+0.0, +0.0]"
    assert difference(-0.31, -0.33, -0.28) == "−31.0 [−33.0, −28.0]"


def test_plain_text_stands_for_a_cell_of_nothing_else() -> None:
    made = table("caption", ["a", "b"], [["one", Cell("two", "small", strong=True)]])
    assert made.columns == ("a", "b")
    assert made.rows == ((Cell("one"), Cell("two", "small", strong=True)),)


@pytest.mark.parametrize("boxed", [False, True])
def test_no_line_of_the_terminal_ends_inside_a_number(boxed: bool) -> None:
    said = "An attacker matches them 92.1 % [89.2, 94.2] of the time at FAR 1e-4, k = 12; pass --far."
    for width in range(30, 60):
        out = StringIO()
        print_safely(
            Console(file=out, width=width, color_system=None), Panel(Text(said)) if boxed else Text(said, style="bold")
        )
        lines = [line.strip("│╭╰╮╯─ ") for line in out.getvalue().splitlines()]
        assert " ".join(filter(None, lines)) == said
        for whole in ("92.1 % [89.2, 94.2]", "FAR 1e-4", "k = 12"):
            assert any(whole in line for line in lines), width
