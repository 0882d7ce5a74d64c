"""Tables of the frontier for the pages, from the cells that ``studies.frontier`` has finished.

    python -m studies.frontier_record OUT [--where "sixteen cores of a server"]

Replaces docs/measured/frontier.json; ``make figures`` draws docs/frontier.svg from it.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studies.frontier import FITTED_ON, GATED, KEPT, METHODS, PAIRS, RAW, REMOVED, SETS
from studies.frontier import spaces as study_spaces
from studies.measured import Cell, Table, write_findings
from unface.metrics import Replicates, difference_interval

FAR = 1e-4
ALBUM = "2 against 3"
PAIRS_AND_ALBUM = {"pairs": (PAIRS, FAR), ALBUM: (ALBUM, FAR)}
DIMENSIONS = (128, 384, 512, 1280)  # of the encoders
RIVALS = {"isp": "ISP", "leace": "LEACE", "pca": "label-free PCA", "random": "random subspace"}
ELSEWHERE_FAR = 1e-2  # the smaller sets resolve no lower one for their largest albums
_FOUND = "copy recall@1"


@dataclass(frozen=True)
class Space:
    """A finished cell."""

    result: dict[str, Any]
    draws: dict[tuple[str, float], Replicates]

    @property
    def name(self) -> str:
        return str(self.result["space"])

    @property
    def method(self) -> str:
        return self.name.split()[0]

    def tar(self, size: str, far: float) -> Cell:
        """With its interval; None where the rate is refused."""
        rows = [row["tar"] for row in self.result["TAR"] if (row["size"], row["far"]) == (size, far)]
        return rows[0] if rows else None

    def use(self, measure: str, on: str, side: str = "erased") -> Any:
        """With its interval; None where it was not measured."""
        rows = [one[side] for one in self.result["uses"] if one["measure"] == measure and _is_on(one["on"], on)]
        return rows[0] if rows else None

    @property
    def first_hit(self) -> Cell:
        """Among all pictures of the test people."""
        cell: Cell = self.result["search"]["rates"][-1]["first"]
        return cell


def read_spaces(out: Path, encoder: str, faces: str) -> dict[str, Space]:
    """In the order of the study: raw, then methods by strength."""
    found = []
    for path in sorted((out / f"{encoder}_{faces}").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        draws = np.load(path.with_suffix(".npy"), allow_pickle=False).astype(np.float64)
        keys = [(row["size"], row["far"]) for row in result["TAR"]]
        replicates = {key: Replicates(values, result["mirrored"]) for key, values in zip(keys, draws, strict=True)}
        found.append(Space(result, replicates))
    order = [RAW, *METHODS, "keeper"]

    def place(one: Space) -> tuple[bool, int, list[float]]:
        words = one.name.removesuffix(GATED).replace(",", "").split()
        numbers = [float(word) for word in words if word.replace(".", "").isdigit()]
        strength = [-numbers[0], numbers[-1]] if one.method == "keeper" else numbers
        return one.name.endswith(GATED), order.index(one.method), strength

    return {one.name: one for one in sorted(found, key=place)}


def tables_of(encoder: str, spaces: dict[str, Space]) -> Iterator[tuple[str, Table]]:
    """Of the set that erasers were fitted on: ungated spaces, low rates, search, gated ones, and equal use."""
    open_spaces = [one for name, one in spaces.items() if not name.endswith(GATED)]
    gated = [one for name, one in spaces.items() if name.endswith(GATED)]
    uses = {name: key for name, key in _USES.items() if _raw_use(open_spaces, *key) is not None}
    columns = {"space": "", "pairs": ".1%", "2 against 2": ".1%", ALBUM: ".1%"} | dict.fromkeys(uses, ".2%")
    common = common_strengths(one.name for one in open_spaces)
    parts = {
        encoder: [one for one in open_spaces if one.name in common],
        f"{encoder}, strengths between": [one for one in open_spaces if one.name not in common],
        f"{encoder}, gated": gated,
    }
    for title, listed in parts.items():
        if listed:
            rows = [
                [one.name, *(one.tar(size, FAR) for size in (PAIRS, "2 against 2", ALBUM))]
                + [_raw_use(open_spaces, *key) if one.name == RAW else one.use(*key) for key in uses.values()]
                for one in listed
            ]
            yield title, Table(columns=columns, rows=rows)
    rates = SETS[FITTED_ON].fars
    yield (
        f"{encoder}, low rates",
        Table(
            columns={"space": "", **{f"{far:g}".replace("e-0", "e-"): ".2%" for far in rates}},
            rows=[[one.name, *(one.tar(PAIRS, far) for far in rates)] for one in parts[encoder]],
        ),
    )
    yield (
        f"{encoder}, search",
        Table(
            columns={"space": "", "gallery": ",", "first hit": ".1%", "chance": ".2%", "found at FPIR 1e-2": ".1%"},
            rows=[
                [one.name, last["gallery"], last["first"], last["chance"], one.result["search"].get("at FPIR 1e-2")]
                for one in parts[encoder]
                for last in one.result["search"]["rates"][-1:]
            ],
        ),
    )
    yield f"{encoder}, at equal use", equal_use(open_spaces, copies_found(open_spaces), PAIRS_AND_ALBUM)


def common_strengths(names: Iterable[str]) -> set[str]:
    """Of an encoder's spaces, those at the strengths that all methods were first compared at, and every keeper."""
    there = set(names)
    listed = next(known for known in (study_spaces(dim, gated=False) for dim in DIMENSIONS) if there <= set(known))
    first = 1 + len(REMOVED) * len(METHODS) + len(KEPT)
    return {*listed[:first], *(name for name in there if name.startswith("keeper"))}


def _is_on(source: str, name: str) -> bool:
    """A utility set is named by its file, or by the name of the copies."""
    return source == name or source.endswith(f"_{name}.parquet")


_USES = {
    "copies found": (_FOUND, "copies"),
    "harder copies found": (_FOUND, "hardcopies"),
    "k-NN without faces": ("knn", "tiny"),
}


def _raw_use(spaces: list[Space], measure: str, on: str) -> Cell:
    found: list[Cell] = [use for one in spaces if (use := one.use(measure, on, "raw")) is not None]
    return found[0] if found else None


def copies_found(spaces: list[Space]) -> dict[str, float]:
    """By space, of the harder copies where there are some."""
    on = "hardcopies" if _raw_use(spaces, _FOUND, "hardcopies") is not None else "copies"
    use: dict[str, Any] = {
        one.name: (_raw_use(spaces, _FOUND, on) if one.name == RAW else one.use(_FOUND, on)) for one in spaces
    }
    return {name: float(ends[0]) for name, ends in use.items() if ends is not None}


def equal_use(spaces: list[Space], found: dict[str, float], sizes: Mapping[str, tuple[str, float]]) -> Table:
    """Each keeper less each rival method at the keeper's own share of copies found, paired over people.

    A rival's leakage there is interpolated between the two strengths that find the next more and the next fewer
    copies, replicate by replicate. Raw is the weakest strength of every method. A rival's strength is left out where
    another one of it finds as many copies and leaves less. ``sizes`` are the columns.
    """
    rows: list[list[Cell]] = []
    for keeper in (one for one in spaces if one.method == "keeper"):
        for method in METHODS:
            rivals = [one for one in spaces if one.method in (method, RAW)]
            if len(rivals) < 2:
                continue
            rivals = _worth_choosing(rivals, found, list(sizes.values()))
            more = [one for one in rivals if found[one.name] >= found[keeper.name]]
            fewer = [one for one in rivals if found[one.name] < found[keeper.name]]
            cells = [_difference(keeper, more, fewer, found, key) for key in sizes.values()]
            able = any(share >= found[keeper.name] for name, share in found.items() if name.split()[0] == method)
            between = "all find as many" if more else "not run where it does" if able else "none finds as many"
            if more and fewer:
                between = f"{_next(more, found).name} and {_next(fewer, found, -1).name}"
            rows.append([keeper.name, method, found[keeper.name], between, *cells])
    columns = {"keeper": "", "rival": "", "copies found": ".2%", "rival between": ""}
    return Table(columns=columns | dict.fromkeys(sizes, "+.2%"), rows=rows)


def verdicts(compared: Table, place: int) -> list[Cell]:
    """For each rival: at how many of the keepers that can be compared does the keeper significantly leave less."""
    cells: list[Cell] = []
    for method in RIVALS:
        ours = [row for row in compared.rows if row[1] == method]
        ends: list[Any] = [row[place] for row in ours if row[place] is not None]
        less, more = sum(end[2] < 0 for end in ends), sum(end[1] > 0 for end in ends)
        if ends:
            cells.append(f"{less} of {len(ends)}" + (f", {more} more" if more else ""))
        else:
            said = {row[3] for row in ours}
            cells.append("none finds as many" if said == {"none finds as many"} else "not run")
    return cells


def _worth_choosing(rivals: list[Space], found: dict[str, float], keys: list[tuple[str, float]]) -> list[Space]:
    left: dict[str, list[Any]] = {one.name: [one.tar(*key) for key in keys] for one in rivals}

    def beaten(one: Space, other: Space) -> bool:
        both = list(zip(left[one.name], left[other.name], strict=True))
        less = all(mine and theirs and theirs[0] < mine[0] for mine, theirs in both)
        return found[other.name] >= found[one.name] and less

    return [one for one in rivals if not any(beaten(one, other) for other in rivals)]


def _next(spaces: list[Space], found: dict[str, float], sign: int = 1) -> Space:
    """The one that finds the fewest copies, or with −1 the most; of equals the one that leaves the least."""

    def left(one: Space) -> float:
        tar: Any = one.tar(ALBUM, FAR)
        return float(tar[0]) if tar else 1.0

    return min(spaces, key=lambda one: (sign * found[one.name], left(one)))


def _difference(
    keeper: Space, more: list[Space], fewer: list[Space], found: dict[str, float], key: tuple[str, float]
) -> Cell:
    if not more or not fewer:
        return None
    above, below = _next(more, found), _next(fewer, found, -1)
    share = (found[keeper.name] - found[below.name]) / (found[above.name] - found[below.name])
    tars: list[Any] = [one.tar(*key) for one in (keeper, above, below)]
    if None in tars:
        return None
    mine, theirs, least = (float(ends[0]) for ends in tars)
    estimate = mine - share * theirs - (1 - share) * least
    values = keeper.draws[key].values - share * above.draws[key].values - (1 - share) * below.draws[key].values
    interval = difference_interval(estimate, Replicates(values, keeper.draws[key].mirrored), keeper.result["level"])
    return [estimate, interval.low, interval.high]


def elsewhere(spaces: list[Space], faces: str) -> Table:
    """The same erasers on other faces: pairs and every album at the rate that all resolve, and first hits."""
    sizes = [PAIRS, *(f"{size.first} against {size.second}" for size in SETS[faces].albums)]
    return Table(
        columns={"space": "", "pairs at FAR 1e-3": ".1%", **dict.fromkeys(sizes, ".1%"), "first hit": ".1%"},
        rows=[
            [one.name, one.tar(PAIRS, 1e-3), *(one.tar(size, ELSEWHERE_FAR) for size in sizes), one.first_hit]
            for one in spaces
        ],
    )


def record(out: Path, where: str) -> None:
    """All encoders and sets that are there."""
    tables: dict[str, Table] = {}
    figures: dict[str, Cell] = {}
    summary: dict[int, list[list[Cell]]] = {4: [], 5: []}
    found: dict[str, dict[str, float]] = {}
    names = [path.name.rsplit("_", 1) for path in out.iterdir() if path.is_dir()]
    for encoder, faces in sorted(names, key=lambda name: (name[1] != FITTED_ON, name)):
        spaces = read_spaces(out, encoder, faces)
        if RAW not in spaces:
            continue
        people = spaces[RAW].result["people"]
        not_gated = [one for name, one in spaces.items() if not name.endswith(GATED)]
        if faces == FITTED_ON:
            found[encoder] = copies_found(not_gated)
            tables |= dict(tables_of(encoder, spaces))
            figures |= {f"{encoder}, {role}": count for role, count in people.items()}
            gate = next((one.result["gate"] for one in spaces.values() if one.result["gate"]), None)
            figures |= {f"{encoder}, gate {key}": value for key, value in (gate or {}).items()}
            compared = tables[f"{encoder}, at equal use"]
        else:
            tables[f"{encoder}, {faces}"] = elsewhere(not_gated, faces)
            behind = [one for name, one in spaces.items() if name.endswith(GATED)]
            if behind:
                tables[f"{encoder}, {faces}, gated"] = elsewhere(behind, faces)
            figures |= {f"{encoder}, {faces}, {role}": count for role, count in people.items()}
            known = [one for one in not_gated if one.name in found.get(encoder, {})]
            keys = {"pairs": (PAIRS, ELSEWHERE_FAR), "2 against 2": ("2 against 2", ELSEWHERE_FAR)}
            compared = equal_use(known, found.get(encoder, {}), keys)
            shown = [row for row in compared.rows if row[4] is not None]  # why others are empty, the first set says
            tables[f"{encoder}, {faces}, at equal use"] = compared.model_copy(update={"rows": shown})
        for place, rows in summary.items():
            rows.append([encoder, faces, people["test"], *verdicts(compared, place)])
    columns = {"encoder": "", "faces": "", "test people": ","} | dict.fromkeys(RIVALS.values(), "")
    for title, rows in zip(("pairs", "albums"), summary.values(), strict=True):
        tables[f"{title}, keeper against rivals"] = Table(columns=columns, rows=sorted(rows, key=_encoder_first))
    tables = {name: one.model_copy(update={"rows": _rounded(one.rows)}) for name, one in tables.items()}
    command = "python -m studies.frontier EMBEDDINGS OUT"
    write_findings("frontier", command=command, where=where, tables=tables, figures=figures)


def _rounded(value: Any) -> Any:
    """To what tables show."""
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


def _encoder_first(row: list[Cell]) -> tuple[str, int]:
    return str(row[0]), list(SETS).index(str(row[1]))


def main() -> None:
    """Keep what is there."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("out", type=Path)
    given.add_argument("--where", default="sixteen cores of a server")
    asked = given.parse_args()
    record(asked.out, asked.where)


if __name__ == "__main__":
    main()
