"""A policy: what an audit must show before its embeddings may be released, one rule for each ``[[require]]``.

Policies come from TOML or from flags; a mistake in one becomes a line that names the place and the keys.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unface.errors import UnfaceError
from unface.result.file import read_toml

# A limit of 1 would let everything pass, and is more likely meant as one percent.
Share = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(min_length=1)]

_SPACE = "the name of a space of the audit, such as 'raw' or 'isp'"
_FAR = "a false-accept rate above 0 and below 1, such as 1e-4"
_K = "a whole number of support images, from 1"
_COARSE = "'allow', or left out"


class _Table(BaseModel):
    """A table of the file; errors quote a field's description as what is expected there."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class LeakageRule(_Table):
    """The upper end of TAR, or of its multiple of chance, is at most a limit."""

    far: Share = Field(description=_FAR)
    tar_max: Share | None = Field(default=None, description="a share above 0 and below 1, such as 0.01 for 1 %")
    times_chance_max: float | None = Field(default=None, gt=0, description="a number above 0, such as 10")
    space: Name | None = Field(default=None, description=_SPACE)
    probe: Name = Field(default="worst", description="the name of a probe, or 'worst'")
    k: Count | None = Field(default=None, description=_K)
    coarse: Literal["allow"] | None = Field(default=None, description=_COARSE)
    context_adjusted: bool = Field(default=False, description="true or false")
    different_groups: bool = Field(default=False, description="true or false")


class UtilityRule(_Table):
    """The lower end of what is kept of a measure of usefulness is at least a limit."""

    utility: Name = Field(description="the name of a measure, such as 'knn'")
    retained_min: Annotated[float, Field(gt=0, le=1)] = Field(description="a share above 0, such as 0.9 for 90 %")
    on: Name | None = Field(default=None, description="the name of the set it was measured on")
    space: Name | None = Field(default=None, description=_SPACE)


class ImprovementRule(_Table):
    """Worst-case TAR is lower than in another space, by an interval over the same pairs that stays below 0."""

    beats: Name = Field(description="the name of the other space, such as 'random', 'pca' or 'raw'")
    far: Share = Field(description=_FAR)
    space: Name | None = Field(default=None, description=_SPACE)
    k: Count | None = Field(default=None, description=_K)
    coarse: Literal["allow"] | None = Field(default=None, description=_COARSE)


class ValidationRule(_Table):
    """Of a validation: the upper end of an attack's success after some questions is at most a limit."""

    success_max: Share = Field(description="a share above 0 and below 1, such as 0.05 for 5 %")
    far: Share = Field(description=_FAR)
    queries: Count = Field(description="a whole number of questions for each person, from 1")
    attack: Name = Field(default="worst", description="the name of an attack, or 'worst'")
    pictures: Literal["other", "same"] = Field(default="other", description="'other' or 'same'")
    coarse: Literal["allow"] | None = Field(default=None, description=_COARSE)


class ExposedRule(_Table):
    """Of a release: the upper end of the share of training people who are exposed is at most a limit."""

    exposed_max: Share = Field(description="a share above 0 and below 1, such as 0.01 for 1 % of the training people")
    view: Name | None = Field(default=None, description="the name of a view, such as 'eyes'")


class CopiesRule(_Table):
    """Of a release: the upper end of the share of copies beyond what the holdout explains is at most a limit."""

    copies_max: Share = Field(description="a share above 0 and below 1, such as 0.001 for one face in 1,000")
    far: Share = Field(description=_FAR)
    view: Name | None = Field(default=None, description="the name of a view, such as 'eyes'")
    coarse: Literal["allow"] | None = Field(default=None, description=_COARSE)


class RiskRule(_Table):
    """Of a release or a protection: the upper end of the retrieval risk among all its people is at most a limit."""

    risk_max: Share = Field(description="a share above 0 and below 1, such as 0.05 for 5 %")
    k: Count = Field(description="a whole number of nearest faces, from 1")
    pictures: Literal["other", "same", "any"] = Field(default="other", description="'other', 'same' or 'any'")


class InversionRule(_Table):
    """Of an inversion: the upper end of an attack's success on stored vectors is at most a limit."""

    inverted_max: Share = Field(description="a share above 0 and below 1, such as 0.05 for 5 %")
    far: Share = Field(description=_FAR)
    space: Name = Field(default="raw", description="the name of a space, such as 'raw'")
    attack: Name = Field(default="worst", description="the name of an attack, or 'worst'")
    pictures: Literal["other", "same"] = Field(default="other", description="'other' or 'same'")
    coarse: Literal["allow"] | None = Field(default=None, description=_COARSE)


class CertificateRule(_Table):
    """Of a certificate: the upper end of the share of reconstructions that are recognised is at most a limit."""

    recognised_max: Share = Field(description="a share above 0 and below 1, such as 0.05 for 5 %")


class UtilityMinRule(_Table):
    """Of a protection: the lower end of the pair verification of a recogniser trained on it is at least a limit."""

    utility_min: Share = Field(description="a share above 0 and below 1, such as 0.9 for 90 % of the pairs")
    pairs: Name | None = Field(default=None, description="the name of a set of pairs, such as 'lfw'")


ReleaseRule = ExposedRule | CopiesRule | RiskRule
ProtectRule = CertificateRule | UtilityMinRule
Rule = LeakageRule | UtilityRule | ImprovementRule | ValidationRule | ReleaseRule | InversionRule | ProtectRule


class Gate(_Table):
    """What holds for the audit as a whole."""

    findings: Literal["allow", "no-warnings"] = Field(default="allow", description="'allow' or 'no-warnings'")


class Policy(_Table):
    """All rules must pass."""

    gate: Gate
    require: tuple[Rule, ...]


Place = Callable[[str, str], str]
"""(table, key) as the reader of an error would look for it; the key is empty where the whole table is meant."""

# The key that decides which kind of rule a table is.
_KINDS: dict[str, type[Rule]] = {
    "tar_max": LeakageRule,
    "times_chance_max": LeakageRule,
    "utility": UtilityRule,
    "retained_min": UtilityRule,
    "beats": ImprovementRule,
    "success_max": ValidationRule,
    "exposed_max": ExposedRule,
    "copies_max": CopiesRule,
    "risk_max": RiskRule,
    "inverted_max": InversionRule,
    "recognised_max": CertificateRule,
    "utility_min": UtilityMinRule,
}
_Model = TypeVar("_Model", bound=_Table)


def read_policy(path: Path) -> Policy:
    """A policy file."""
    return make_policy(read_toml(path), lambda table, key: ": ".join(part for part in (str(path), table, key) if part))


def make_policy(content: Mapping[str, object], place: Place) -> Policy:
    """A policy from the tables of a file; ``place`` says where a table's key stands."""
    for key in content:
        if key not in Policy.model_fields:
            raise UnfaceError(f"{place('', '')}: unknown key {_shown(key)}; a policy has [[require]] and [gate]")
    tables = content.get("require", [])
    if isinstance(tables, Mapping):
        raise UnfaceError(f"{place('', '')}: [require] is one table; each rule starts with [[require]]")
    if not isinstance(tables, list) or not tables:
        raise UnfaceError(f"{place('', '')}: has no rules; each rule starts with [[require]]")
    rules = tuple(_make_rule(table, f"rule {number}", place) for number, table in enumerate(tables, 1))
    return Policy(gate=_validated(Gate, content.get("gate", {}), "gate", place), require=rules)


def _make_rule(table: object, name: str, place: Place) -> Rule:
    if not isinstance(table, Mapping):
        raise UnfaceError(f"{place(name, '')}: {_shown(table)} is not a table; each rule starts with [[require]]")
    known = sorted({field for kind in _KINDS.values() for field in kind.model_fields})
    unknown = next((key for key in table if key not in known), None)
    if unknown is not None:
        raise UnfaceError(f"{place(name, '')}: unknown key {_shown(unknown)}; a rule takes {', '.join(known)}")
    limit = next((key for key in _KINDS if key in table), None)
    if limit is None:
        raise UnfaceError(
            f"{place(name, '')}: sets no limit; give tar_max or times_chance_max, utility with retained_min, beats, "
            "success_max for a validation, inverted_max for an inversion, recognised_max for a certificate, "
            "exposed_max, copies_max or risk_max for a release, or utility_min or risk_max for a protection"
        )
    return _validated(_KINDS[limit], table, name, place)


def _validated(model: type[_Model], table: object, name: str, place: Place) -> _Model:
    try:
        return model.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
    known = ", ".join(sorted(model.model_fields))
    if not first["loc"]:
        raise UnfaceError(f"{place(name, '')}: {_shown(table)} is not a table; it takes {known}")
    key = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        conflict = "is unknown" if model is Gate else "conflicts with the other keys of the rule"
        raise UnfaceError(f"{place(name, '')}: {_shown(key)} {conflict}; such a table takes {known}")
    expected, value = model.model_fields[key].description, first["input"]
    if first["type"] == "missing":
        raise UnfaceError(f"{place(name, key)}: is missing; give {expected}")
    hint = ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if key in ("tar_max", "retained_min", "far", "success_max") and is_number and 1 <= value <= 100:
        hint = f"; {value:g} % is {value / 100:g}"
    raise UnfaceError(f"{place(name, key)}: {_shown(value)} is not {expected}{hint}")


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool | float) else ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
