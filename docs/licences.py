"""Writes docs/licences.md: the licence of every package that unface or an extra installs, and of all weights.

    python -m docs.licences

Packages are read from the metadata of this environment, which has to hold every extra; weights from the model cards.
"""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from unface.models.own import shipped

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"
NOT_FOR_USERS = {"test", "dev", "all"}
_LONGEST = 60


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The page."""
    found = packages()
    lines = [
        "# Licences",
        "",
        "unface is under the [Apache License 2.0](../LICENSE). This page lists what `pip` installs beside it, and the",
        "weights that it fetches when asked. `python -m docs.licences` generates it from the metadata of the packages",
        "and from the model cards.",
        "",
        "## Packages",
        "",
        "Direct requirements are in bold. *Core* comes with `pip install unface`, others with the extra of that name.",
        "",
        "| package | installed by | licence |",
        "|---|---|---|",
    ]
    direct = {name for needed in requirements().values() for name, _ in needed}
    for name, extras in sorted(found.items()):
        shown = f"**{name}**" if name in direct else name
        lines.append(f"| {shown} | {', '.join(extras)} | {licence(distribution(name))} |")
    lines += [
        "",
        "## Weights",
        "",
        "Weights for research only, or with an unclear licence, are fetched only with `--accept-licence`.",
        "",
        "| model | licence of the weights | research only | note |",
        "|---|---|---|---|",
    ]
    for card in shipped():
        only = "yes" if card.licence.research_only else "no"
        lines.append(f"| {card.name} | {card.licence.name} | {only} | {card.licence.note} |")
    lines += [
        "",
        "The vectors inside the package are of people who do not exist: see [the demo's people](data.md).",
        "",
    ]
    return "\n".join(lines)


def requirements() -> dict[str, list[tuple[str, set[str]]]]:
    """By extra, ``core`` without one: the packages that it names, with their own extras."""
    return _needs(distribution("unface"))


def packages() -> dict[str, list[str]]:
    """Every package that a user may get, with the extras of unface that bring it; core ones come with all of them."""
    found: dict[str, list[str]] = {}
    for extra, needed in requirements().items():
        waiting, seen = list(needed), set[tuple[str, frozenset[str]]]()
        while waiting:
            name, extras = waiting.pop()
            key = (name, frozenset(extras))
            if key in seen or name == "unface":
                continue
            seen.add(key)
            try:
                theirs = _needs(distribution(name))
            except PackageNotFoundError:
                if (name, extras) in needed:
                    raise SystemExit(f"{name}: is not installed; pip install 'unface[all]' first") from None
                seen.discard(key)
                continue
            waiting += [one for part in ("core", *extras) for one in theirs.get(part, [])]
        for name in {name for name, _ in seen}:
            found.setdefault(name, []).append(extra)
    return {name: ["core"] if "core" in extras else extras for name, extras in found.items()}


def _needs(package: Distribution) -> dict[str, list[tuple[str, set[str]]]]:
    """Requirements that hold on this machine, by extra."""
    found: dict[str, list[tuple[str, set[str]]]] = {"core": []}
    parsed = [Requirement(text) for text in package.requires or []]
    extras = [canonicalize_name(name) for name in package.metadata.get_all("Provides-Extra") or []]
    plain = [one for one in parsed if one.marker is None or one.marker.evaluate({"extra": ""})]
    found["core"] = [(canonicalize_name(one.name), set(one.extras)) for one in plain]
    for extra in extras:
        if package.name == "unface" and extra in NOT_FOR_USERS:
            continue
        added = [one for one in parsed if one.marker is not None and one.marker.evaluate({"extra": extra})]
        found[extra] = [(canonicalize_name(one.name), set(one.extras)) for one in added if one not in plain]
    return found


def licence(package: Distribution) -> str:
    """As its metadata says: an expression, a short text, or its classifiers."""
    about = package.metadata.json
    text, classifiers = str(about.get("license", "")), about.get("classifier", [])
    names = [one.rpartition(" :: ")[2] for one in classifiers if one.startswith("License :: ")]
    short = text if len(text) <= _LONGEST and text.upper() != "UNKNOWN" else ""
    return re.sub(r"\s+", " ", str(about.get("license_expression", "")) or short or ", ".join(names))


if __name__ == "__main__":
    main()
