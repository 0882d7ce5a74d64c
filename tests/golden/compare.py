"""Compares what a case gives with what was recorded, after listed renames and removals."""

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.golden.flatten import Path as NamePath
from tests.golden.flatten import Value
from tests.golden.values import Damaged, text_of

# Scores and vectors are float32, whose last digit depends on the BLAS kernel.
_FLOAT32 = frozenset({"threshold", "cosine", "vectors", "applied"})
_ROUNDING = 1e-6
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Rule:
    """A line of ``renames.toml`` (``new`` is the path's new form) or ``removed.toml`` (``new`` is None)."""

    case: str
    path: str
    new: str | None
    why: str

    def renamed(self, case: str, path: str) -> str | None:
        """The new path of one that this rule is about; None if it is about others."""
        if not re.fullmatch(self.case, case):
            return None
        matched = re.fullmatch(self.path, path)
        return None if matched is None else path if self.new is None else matched.expand(self.new)


def read_rules(folder: Path = _HERE) -> list[Rule]:
    """All renames and removals, in the order in which they are tried."""
    rules = []
    for name, key, needs in (("removed.toml", "removed", "reason"), ("renames.toml", "rename", "new")):
        try:
            tables = tomllib.loads((folder / name).read_text(encoding="utf-8")).get(key, [])
            rules += [
                Rule(one.get("case", ".*"), one["path"], one.get("new"), one["reason" if needs == "reason" else "path"])
                for one in tables
                if one[needs]
            ]
        except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
            raise Damaged(f"{name}: cannot be used ({error!r}); each [[{key}]] needs 'path' and '{needs}'") from None
    return rules


def differences(
    case: str,
    recorded: Mapping[NamePath, Value],
    current: Mapping[NamePath, Value],
    tolerance: float,
    rules: list[Rule],
) -> tuple[list[str], set[Rule]]:
    """Return one line for each difference, and the rules that were about a recorded path."""
    lines, used = [], set()
    left = {"/".join(path): value for path, value in current.items()}
    for path, value in recorded.items():
        old = "/".join(path)
        new, removed = old, False
        for rule in rules:
            renamed = rule.renamed(case, old)
            if renamed is not None:
                used.add(rule)
                new, removed = renamed, rule.new is None
                break
        if removed:
            if new in left:
                lines.append(f"{case}: {new}: listed as removed, and still there")
                left.pop(new)
        elif new not in left:
            lines.append(f"{case}: {new}: missing, was {text_of(value)[:80]}")
        else:
            allowed = max(tolerance, _ROUNDING) if _FLOAT32.intersection(path[-2:]) else tolerance
            lines += [f"{case}: {new}{said}" for said in _unequal(value, left.pop(new), allowed)]
    lines += [f"{case}: {path}: not recorded, is {text_of(value)[:80]}" for path, value in left.items()]
    return lines, used


def _unequal(recorded: Value, current: Value, tolerance: float) -> list[str]:
    if isinstance(recorded, list) and isinstance(current, list) and len(recorded) == len(current):
        return [
            f"[{place}]{said}"
            for place, (one, other) in enumerate(zip(recorded, current, strict=True))
            for said in _unequal(one, other, tolerance)
        ]
    if type(recorded) is type(current) and recorded == current:
        return []
    if isinstance(recorded, float) and isinstance(current, float):
        # Differences of equal numbers are rounding itself: nothing to be relative to.
        if math.isclose(recorded, current, rel_tol=tolerance, abs_tol=tolerance * 1e-2):
            return []
        if math.isnan(recorded) and math.isnan(current):
            return []
    return [f": {text_of(recorded)[:80]} recorded, now {text_of(current)[:80]}"]
