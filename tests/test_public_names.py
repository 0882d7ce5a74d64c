"""If this fails, a name others rely on has gone, moved, lost its explanation, or appeared without being meant."""

import ast
from pathlib import Path

import pytest

import unface

PUBLIC = [
    "AuditResult",
    "EmbeddingSet",
    "FairPCA",
    "INLP",
    "ISP",
    "Keeper",
    "LEACE",
    "LabelFreePCA",
    "Projection",
    "Protocol",
    "RLACE",
    "RandomSubspace",
    "SAL",
    "TarAtFar",
    "UnfaceError",
    "UtilityLEACE",
    "UtilityPCA",
    "Verification",
    "__version__",
    "audit",
    "copy_covariance",
    "load_encoder",
    "make_identities",
    "read_embeddings",
    "tar_at_far",
    "task_covariance",
    "verify",
    "write_embeddings",
]
EXPLAINED = [name for name in PUBLIC if name != "__version__"]


def test_exported_names_are_exactly_these() -> None:
    assert sorted(unface.__all__) == PUBLIC


@pytest.mark.parametrize("name", EXPLAINED)
def test_every_name_resolves_and_explains_itself(name: str) -> None:
    explanation = getattr(unface, name).__doc__
    assert explanation, f"unface.{name} has no docstring"
    assert not explanation.startswith(f"{name}("), f"unface.{name} has only the docstring dataclass generates"


def test_dir_lists_every_name() -> None:
    assert set(PUBLIC) <= set(dir(unface))


def test_audit_is_the_function() -> None:
    assert callable(unface.audit)


def test_type_checkers_see_the_names_that_resolve() -> None:
    root = ast.parse(Path(unface.__file__).read_text(encoding="utf-8"))
    seen = {
        name.asname: node.module
        for branch in root.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert seen == unface._HOMES


def test_a_misspelt_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'unface' has no attribute 'adit'"):
        getattr(unface, "adit")  # noqa: B009 - a plain attribute would not pass the type checker
