"""If these fail, a number in a cell is rounded or signed otherwise than its neighbours."""

from unface.page.tables import Cell, difference, table


def test_differences_have_two_digits_of_their_largest_end() -> None:
    assert difference(-0.04, -0.043, -0.037) == "−4.0 [−4.3, −3.7]"
    assert difference(-0.002, -0.005, 0.001) == "−0.20 [−0.50, +0.10]"
    assert difference(0.0, 0.0, 0.0) == "+0.0 [+0.0, +0.0]"
    assert difference(-0.31, -0.33, -0.28) == "−31.0 [−33.0, −28.0]"


def test_plain_text_stands_for_a_cell_of_nothing_else() -> None:
    made = table("caption", ["a", "b"], [["one", Cell("two", "small", strong=True)]])
    assert made.columns == ("a", "b")
    assert made.rows == ((Cell("one"), Cell("two", "small", strong=True)),)
