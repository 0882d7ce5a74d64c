"""If this fails, the example notebook does not run, or shows something else than its text says."""

import ast
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parents[1] / "examples" / "audit.ipynb"


def test_every_cell_runs_in_order_and_no_output_is_kept() -> None:
    """What a person does who copies the cells: each ends in the value that it shows."""
    names: dict[str, object] = {}
    shown = []
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), NOTEBOOK.name, "exec"), names)
        if last is not None:
            assert isinstance(last, ast.Expr)
            shown.append(eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names))
    assert "Given two photos of the same stranger" in shown[1]._repr_html_()
    assert set(shown[2].space) == {"raw", "isp", "random", "pca"}


@pytest.mark.slow
def test_jupyter_runs_it_and_shows_the_banner_and_the_chart() -> None:
    missing = [name for name in ("nbclient", "nbformat", "ipykernel") if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed, by which notebooks are run (pip install '.[test]')")
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(book)
    NotebookClient(book, timeout=180, kernel_name="python3").execute()
    outputs = [output.get("data", {}) for cell in book.cells for output in cell.get("outputs", [])]
    assert any("No policy set." in "".join(data.get("text/html", "")) for data in outputs)
    assert any("vega-embed" in "".join(data.get("text/html", "")) for data in outputs)
