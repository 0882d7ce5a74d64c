"""If this fails, a page tells readers to do something that does not work, or leaves out something that does."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import typer

from tests import cli_page, pages

PAGES = [pages.ROOT / "README.md", *sorted((pages.ROOT / "docs").glob("*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_step_of_a_page_works(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if page.name == "audit-my-index.md":
        request.getfixturevalue("shop")
    # The page that is read first is followed as its reader does, with the installed program.
    found = list(pages.problems(page, tmp_path, in_this_process=page.name != "README.md"))
    assert not found, "\n\n".join(found)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A database of that name, which programs find by their environment."""
    from tests.stores.postgres_server import server

    given = parse_qs(urlsplit(server().uri).query)
    monkeypatch.setenv("PGHOST", given["host"][0])
    monkeypatch.setenv("PGUSER", "postgres")
    import psycopg

    with psycopg.connect("dbname=postgres", autocommit=True) as opened:
        opened.execute("CREATE DATABASE shop")
        yield
        opened.execute("DROP DATABASE shop WITH (FORCE)")


def test_the_command_line_page_tells_every_command_and_option_and_no_other() -> None:
    from unface.cli.app import app

    page = (pages.ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    found = list(cli_page.differences(page, list(cli_page.commands(typer.main.get_command(app)))))
    assert not found, "\n".join(found)


@pytest.fixture
def follow(tmp_path: Path) -> "Follow":
    return Follow(tmp_path)


class Follow:
    """Follows a made-up page with a stand-in ``unface`` that prints its arguments and exits with the last one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "unface"
        program.write_text('#!/bin/sh\necho "$@"\nfor last; do :; done\nexit $last\n')
        program.chmod(0o755)

    def __call__(self, text: str) -> list[str]:
        page = self.folder / "page.md"
        page.write_text(text)
        return list(pages.problems(page, self.folder, programs=self.folder))


WORKING = [
    "```console\n$ unface audit 0\nanything\n```",
    "```bash\nunface gate 3  # exit 3\n```",
    "```console exact\n$ unface audit 0\naudit 0\n$ unface \\\n>   gate 0\ngate 0\n```",
    "```bash\nmake test\npython -m json.tool\npython tests/pages.py\npip install nothing\n```",
    "```python\nx = 1\n```\ntext\n```python\nassert x == 1\n```",
    "```python\n>>> 1 + 1\n2\n```",
    "- in a list\n  ```python\n  if True:\n      y = 1\n  ```",
    "```python\nopen('made.txt', 'w').close()\n```\n```bash\nunface 0 && test -f made.txt\n```",
    "```text\nunface 1\n```",
]

BROKEN = {
    "exit 1, not 0": "```console\n$ unface audit 1\n```",
    "exit 0, not 3": "```bash\nunface gate 0  # exit 3\n```",
    "does not print what is shown": "```console exact\n$ unface audit 0\nleak found\n```",
    "no target tset": "```bash\nmake tset\n```",
    "no file absent.py": "```\n$ python absent.py\n```",
    "no module absent": "```bash\npython -m absent\n```",
    "its output cannot be exact": "```console exact\n$ make test\nok\n```",
    "NameError": "```python\nundefined\n```",
    "Expected:": "```python\n>>> 1 + 1\n3\n```",
}


@pytest.mark.parametrize("text", WORKING)
def test_a_page_that_works_has_no_problems(follow: Follow, text: str) -> None:
    assert follow(text) == []


@pytest.mark.parametrize(("complaint", "text"), BROKEN.items())
def test_a_page_that_does_not_work_is_caught(follow: Follow, complaint: str, text: str) -> None:
    (problem,) = follow(text)
    assert complaint in problem
    assert problem.startswith("page.md:1: ")


def test_a_command_run_in_this_process_is_held_to_the_same(tmp_path: Path) -> None:
    page, command = tmp_path / "page.md", 'unface fit "absent.parquet" --out P'
    page.write_text(f"```bash\nunface --help\n{command}  # exit 1\n{command}\n```")
    (problem,) = pages.problems(page, tmp_path, in_this_process=True)
    assert problem.startswith(f"page.md:1: exit 1, not 0, from:\n{command}\nunface: absent.parquet: no such file")


@pytest.mark.parametrize("text", ["```bash\nunface 0\n", "text\n\n    $ unface 0\n"])
def test_a_block_that_would_escape_the_test_is_refused(follow: Follow, text: str) -> None:
    with pytest.raises(AssertionError, match=r"never closed|```console block"):
        follow(text)


CLI = """\
All commands take `--quiet`.

## `unface audit SRC`

`--far`, `-f`

### More

`--out`

## `unface gate`
"""


def made_up_command_line() -> list[cli_page.Command]:
    app = typer.Typer(add_completion=False)

    @app.command()
    def audit(
        far: float = typer.Option(1e-4, "--far", "-f"),
        out: str = "",
        quiet: bool = typer.Option(False, "--quiet"),
        debug: bool = typer.Option(False, "--debug", hidden=True),
    ) -> None: ...

    @app.command()
    def gate(quiet: bool = typer.Option(False, "--quiet")) -> None: ...

    return list(cli_page.commands(typer.main.get_command(app)))


def test_a_full_command_line_page_has_no_differences() -> None:
    assert list(cli_page.differences(CLI, made_up_command_line())) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("## `unface gate`\n", "", "`unface gate` has no heading"),
        ("`--out`", "", "`unface audit` has an option --out that is not told"),
        ("`-f`", "", "`unface audit` has an option -f that is not told"),
        ("`--quiet`", "`--quiet`, `--loud`", "there is no option --loud"),
        ("## `unface gate`", "## `unface gate`\n## `unface fly`", "there is no command `unface fly`"),
        ("### More", "## `unface gate`", "`unface audit` has an option --out that is not told"),
    ],
)
def test_a_difference_is_told(old: str, new: str, complaint: str) -> None:
    found = list(cli_page.differences(CLI.replace(old, new), made_up_command_line()))
    assert found == [complaint]
