"""How to run the same audit again, put together from what audit.json says of itself, and how to name it."""

import hashlib
import shlex
from dataclasses import dataclass

from unface.result.audit import AuditResult
from unface.result.parts import Option, parts_of
from unface.result.words import rate


@dataclass(frozen=True)
class Repeat:
    """The same audit as a command and as a call, with what neither can know."""

    command: str
    call: str
    unknown: list[str]


def repeat(result: AuditResult) -> Repeat:
    """A file is called by its name; where it lay is not recorded."""
    protocol = _protocol(result)
    asked = [option for part in parts_of(result) for option in part.repeat(result)]
    words = [word for option in (*protocol, *asked) if option.flag for word in _words(option)]
    command = " \\\n    ".join([f"unface audit {shlex.quote(result.source.name)}", *words, "--out audit"])
    settings = "".join(f"        {option.keyword}={option.value},\n" for option in protocol)
    keywords = "".join(f"    {option.keyword}={option.value},\n" for option in asked if option.keyword)
    parts = "".join(f"        {option.value},\n" for option in asked if option.value and not option.keyword)
    parts = f"[\n{parts}    ]" if parts else "[]"
    call = f"import unface.auditing\n\nunface.audit(\n    {result.source.name!r},\n{keywords}    parts={parts},\n"
    call += f"    protocol=unface.Protocol(\n{settings}    ),\n)"
    return Repeat(command, call, _unknown(result))


def citation(result: AuditResult) -> str:
    """One paragraph that names the audit beyond doubt."""
    source, run = result.source, result.run
    sha256 = hashlib.sha256(result.file_text().encode()).hexdigest()
    return (
        f"unface {run.unface}, identity audit of {source.name} (vectors sha256 {source.sha256}), {run.started[:10]}; "
        f"variant {result.protocol.variant}, seed {result.protocol.seed}, split sha256 {result.roles.sha256}; "
        f"audit.json sha256 {sha256}."
    )


def _protocol(result: AuditResult) -> list[Option]:
    protocol = result.protocol
    settings: dict[str, str | int | list[float] | list[int] | list[str] | None] = {
        "far": protocol.far,
        "k": protocol.k,
        "seeds": protocol.seeds,
        "probe": protocol.probe,
        "images": result.curated.images,
        "variant": protocol.variant,
        "bootstrap": protocol.bootstrap,
        "bootstraps": protocol.bootstraps,
        "seed": protocol.seed,
        "impostor_quota": protocol.impostor_quota,
    }
    refused = {point.far for point in result.raw.points if point.resolution == "refused"}
    if refused:
        # Asked for by name, they would be refused; of the default ones they are left out.
        usual = protocol.far == [1e-3, 1e-4]
        settings["far"] = None if usual else [far for far in protocol.far if far not in refused]
    options = _reading(result)
    for name, value in settings.items():
        if value is not None:
            items = value if isinstance(value, list) else [value]
            text = ",".join(rate(item) if isinstance(item, float) else str(item) for item in items)
            options.append(Option(f"--{name.replace('_', '-')}", (text,), keyword=name, value=repr(value)))
    return options


def _reading(result: AuditResult) -> list[Option]:
    """How the source was read."""
    source, options = result.source, []
    for name, column in source.columns.items():
        flag = f"--{name}" if name in ("group", "context") else f"--{name}-column"
        options.append(Option(flag, (column,), keyword=name, value=repr(column)))
    if source.sample is not None:
        options.append(Option("--sample", (str(source.sample),), keyword="sample", value=str(source.sample)))
    if source.bad_rows is not None:
        options.append(Option("--bad-rows", ("drop",), keyword="bad_rows", value="'drop'"))
    return options


def _unknown(result: AuditResult) -> list[str]:
    unknown = ["in which folder the files are; run it there"]
    if "://" in result.source.name:
        unknown = ["the user, password and options of the connection; set PGHOST, PGUSER, PGPASSWORD or QDRANT_API_KEY"]
    if result.roles.seed is None:
        unknown.append("the column that held your own roles")
    if "attribution" in result.parts:
        unknown.append(
            "the pictures: face-context attribution needs them as the source, with --encoder and --attribution"
        )
    erasures = [space.erasure for space in result.erased if space.erasure]
    if any(erasure.fit_identities is None for erasure in erasures):
        unknown.append("the file of the ready projection, known by its sha256 alone")
    if len({erasure.rank for erasure in erasures}) > 1:
        rules = dict.fromkeys(erasure.rank_rule for erasure in erasures)
        unknown.append(f"the rule of the ranks as an option: {'; '.join(rules)}")
    return unknown


def _words(option: Option) -> list[str]:
    return [f"{option.flag} {shlex.quote(value)}" for value in option.values] or [option.flag]
