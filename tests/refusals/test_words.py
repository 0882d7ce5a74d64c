"""If these fail, a sentence is kept for a refusal that is no longer tested, or a module's errors have no code."""

import copy
import os
import pickle
from importlib import import_module
from pathlib import Path

import pytest

from tests.kit.golden import REWRITE
from tests.refusals import words
from unface import errors
from unface.data import NoIdentities
from unface.errors import REFUSED, MissingColumn, UnfaceError

HERE = Path(__file__).parent
SOURCE = Path(errors.__file__).parent


def test_every_line_belongs_to_a_row() -> None:
    names = set()
    for file in sorted(HERE.glob("test_*.py")):
        refused = getattr(import_module(f"tests.refusals.{file.stem}"), "test_refused", None)
        if refused is not None:
            names |= {f"{refused.room}/{row.name}" for row in refused.rows}
    lines = words.read()
    if os.environ.get(REWRITE):
        words.write({name: line for name, line in lines.items() if name in names})
    else:
        assert sorted(lines) == sorted(names)


def test_every_module_that_refuses_something_has_a_code() -> None:
    kinds = {"UnfaceError", *(kind.__name__ for kind in subclasses(UnfaceError))}
    refusing = set()
    for file in SOURCE.rglob("*.py"):
        module = ".".join(("unface", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        text = file.read_text(encoding="utf-8")
        if module != errors.__name__ and any(f"{kind}(" in text for kind in kinds):
            refusing.add(module)
    assert len(refusing) > 100
    without = {module for module in refusing if not any(f"{module}.".startswith(f"{room}.") for room in REFUSED)}
    assert without == set()
    unused = {room for room in REFUSED if not any(f"{module}.".startswith(f"{room}.") for module in refusing)}
    assert unused == set(), "rows about modules that refuse nothing"


def subclasses(kind: type[UnfaceError]) -> set[type[UnfaceError]]:
    """Every kind of error of ours that is defined so far."""
    return {each for sub in kind.__subclasses__() for each in {sub, *subclasses(sub)}}


@pytest.mark.parametrize(
    ("message", "where", "fix"),
    [
        ("faces.parquet: row 17 has NaN in 'vector'; drop it", "faces.parquet", "drop it"),
        ("--far: 'one' is not a number", "--far", None),
        ("my score.npz: no rows: none at all", "my score.npz", None),
        ("probe 'forest' is not known; choose from: cosine, lda", None, "choose from: cosine, lda"),
        ("two embedding spaces never mix: a; and b; give one", None, "give one"),
        ("empty file", None, None),
    ],
)
def test_a_message_says_where_what_and_what_to_do(message: str, where: str | None, fix: str | None) -> None:
    error = UnfaceError(message)
    assert (error.where, error.fix) == (where, fix)
    assert str(error) == message


def refuse_in(module: str, kind: str = "UnfaceError") -> UnfaceError:
    """An error that a module made."""
    given: dict[str, object] = {"__name__": module, "kind": getattr(errors, kind)}
    exec("error = kind('x: y; z') if kind.__name__ == 'UnfaceError' else kind('x', 'y')", given)
    error = given["error"]
    assert isinstance(error, UnfaceError)
    return error


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("unface.data.embeddings", "vectors"),
        ("unface.data.images", "pictures"),
        ("unface.database", "plug-in"),
        ("somebodys.package", "plug-in"),
    ],
)
def test_the_code_is_that_of_the_longest_name_that_begins_the_modules(module: str, code: str) -> None:
    assert refuse_in(module).code == code


def test_a_kind_with_a_code_keeps_it_wherever_it_is_made() -> None:
    assert refuse_in("unface.data.arrow", "MissingColumn").code == "missing-column"
    assert NoIdentities("x").code == "no-identities"


@pytest.mark.parametrize("error", [refuse_in("unface.stores.npy"), MissingColumn("x.npz: no column 'who'", "who")])
def test_a_copy_keeps_everything_also_in_another_process(error: UnfaceError) -> None:
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(copied) is type(error)
        assert (str(copied), vars(copied)) == (str(error), vars(error))
        assert (copied.code, copied.where, copied.fix) == (error.code, error.where, error.fix)
