"""Finished cells of studies.inversion as tables: blocks of targets joined, intervals over all of them.

python -m studies.inversion_table ROWS … [--record WHERE]
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from studies.counted import CountedJudges, CountedTally
from studies.inversion import ENCODERS, ERASED, FAR, Row, read_rows
from studies.measured import Cell, Table, Value, markdown, write_findings
from unface.result.inversion import InversionCell, InversionSuccess
from unface.result.numbers import Estimate, Share

ATTACKED = (ENCODERS[0], "edgeface-s", *ENCODERS[1:])
KEY = {"people": "", "encoder": "", "attack": "", "space": ""}
POOL = "best of pool"
SUCCESS = {
    "targets": ".0f",
    "same": ".1f",
    "other": ".1f",
    "derangement": ".2f",
    POOL: ".1f/",
    "random face": ".1f",
    "ceiling": ".1f",
    "raw − erased": ".1f",
}
REACHED = {
    "cosine reached": ".3f",
    POOL: ".3f",
    "second picture": ".3f",
    "strangers": ".3f",
    "converged": "",
    "passes": ",.0f",
    "seconds": ".2f",
}


def main() -> None:
    """docs/measured/inversion.json."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("rows", type=Path, nargs="+")
    given.add_argument("--record", metavar="WHERE")
    asked = given.parse_args()
    tables = made_tables(widest([row for path in asked.rows for row in read_rows(path)]))
    for name, table in tables.items():
        print(f"\n{name}\n" + "\n".join(markdown(table)))
    if asked.record:
        command = "python -m studies.inversion run DATA --out OUT"
        write_findings("inversion", command=command, where=asked.record, tables=tables)


def widest(rows: Sequence[Row]) -> list[Row]:
    """Each target once: of blocks that overlap the one with more targets counts, of equal ones the first."""
    kept: list[Row] = []
    for row in sorted(rows, key=lambda one: -int(one["cell"]["targets"])):
        mine = _block(row)
        if all(_cell(one) != _cell(row) or mine.isdisjoint(_block(one)) for one in kept):
            kept.append(row)
    return kept


@dataclass(frozen=True, eq=False)
class Joined:
    """All blocks of one attack on one space."""

    people: str
    encoder: str
    attack: str
    space: str
    parts: Sequence[Row]

    @cached_property
    def judged(self) -> CountedJudges:
        """Counts of all targets."""
        return joined([part["tally"] for part in self.parts])

    @cached_property
    def ceiling(self) -> CountedTally:
        """Other real pictures."""
        return joined([part["ceiling"] for part in self.parts]).all

    @property
    def first(self) -> InversionCell:
        """Settings, passes and controls are those of the first block."""
        return InversionCell.model_validate(self.parts[0]["cell"])

    def control(self, name: str, far: float | None) -> InversionSuccess | None:
        """Of the first block."""
        found = (point for one in self.first.controls if one.name == name for point in one.at)
        return next((point for point in found if (point.far, point.judge) == (far, "all")), None)

    def mean(self, where: str, what: str) -> Value:
        """Of the blocks' medians."""
        known = [part[where][what]["value"] for part in self.parts if part[where][what] is not None]
        return _rounded(float(np.mean(known))) if known else None

    @property
    def key(self) -> list[Cell]:
        """The first columns."""
        return [self.people, self.encoder, self.attack, self.space]

    def common(self, other: "Joined") -> tuple[CountedJudges, CountedJudges]:
        """The other's and these counts of the targets that both have."""
        mine, theirs = ([target for part in one.parts for target in sorted(_block(part))] for one in (self, other))
        both = sorted(set(mine) & set(theirs))
        return other.judged_of([theirs.index(one) for one in both]), self.judged_of([mine.index(one) for one in both])

    def judged_of(self, places: Sequence[int]) -> CountedJudges:
        """Counts of some targets, by their places among these."""
        by = {
            judge: CountedTally(*(getattr(tally, kind)[..., places] for kind in CountedTally.__dataclass_fields__))
            for judge, tally in self.judged.by.items()
        }
        return CountedJudges(self.judged.fars, by)


def joined(tallied: Sequence[Row]) -> CountedJudges:
    """Blocks of targets as one."""
    by = {}
    for judge in tallied[0]["by"]:
        parts = [one["by"][judge] for one in tallied]
        by[judge] = CountedTally(
            *(
                np.concatenate([np.array(part[kind]) for part in parts], axis=-1)
                for kind in CountedTally.__dataclass_fields__
            )
        )
    return CountedJudges(tuple(tallied[0]["fars"]), by)


def made_tables(rows: Sequence[Row]) -> dict[str, Table]:
    """Success by attack, encoder and space; each judge alone; the paper's threshold; budgets; what judges rest on."""
    blocks: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in sorted(rows, key=_place):
        blocks.setdefault(_cell(row), []).append(row)
    cells = {key: Joined(*key, parts) for key, parts in blocks.items()}
    success = {key: _success(cell, cells.get((*key[:3], "raw"))) for key, cell in cells.items()}
    # Other numbers of steps have a table of their own.
    drawn = [cell for cell in cells.values() if cell.first.gives == "pictures" and ":steps=" not in cell.attack]
    alone = [[*cell.key, judge, *_by_far(cell, tally)] for cell in drawn for judge, tally in cell.judged.by.items()]
    paper = [_paper(cell) for cell in drawn if None in cell.judged.fars]
    judges = dict.fromkeys(_judge(one) for cell in drawn for one in cell.parts[0]["judges"])
    made = {
        "success": Table(columns={**KEY, **SUCCESS}, rows=[row for key, row in success.items() if cells[key] in drawn]),
        "templates": Table(
            columns={**KEY, **SUCCESS},
            rows=[row for key, row in success.items() if cells[key].first.gives != "pictures"],
        ),
        "against pca": Table(
            columns={**KEY, "same": ".1f", "other": ".1f"},
            rows=[_against(cell, cells[*key[:3], "pca"]) for key, cell in cells.items() if _beside_pca(key, cells)],
        ),
        "reached": Table(columns={**KEY, **REACHED}, rows=[_reached(cell) for cell in drawn]),
        "judges": Table(
            columns={**KEY, "judge": "", **{f"FAR {far}": ".1f/" for far in ("1e-2", "1e-3", "1e-4")}}, rows=alone
        ),
        "paper": Table(
            columns={**KEY, "same": ".1f", "other": ".1f", "derangement": ".1f", "random face": ".1f"}, rows=paper
        ),
        "budget": Table(
            columns={"encoder": "", "steps": ".0f", "same": ".1f", "other": ".1f", "cosine reached": ".3f"},
            rows=[_budget(cell) for cell in _by_budget(list(cells.values()))],
        ),
        "thresholds": Table(
            columns={"judge": "", "1e-2": ".3f", "1e-3": ".3f", "1e-4": ".3f", "at EER": ".3f", "FAR at EER": ".1f"},
            rows=[list(one) for one in judges],
        ),
    }
    return {name: table for name, table in made.items() if table.rows}


def _cell(row: Row) -> tuple[str, str, str, str]:
    return str(row["people"]), str(row["encoder"]), str(row["cell"]["attack"]), str(row["cell"]["space"])


def _place(row: Row) -> tuple[bool, str, int, int, int]:
    people, encoder, attack, space = _cell(row)
    return people == "generated", attack, ATTACKED.index(encoder), ("raw", *ERASED).index(space), int(row["start"])


def _block(row: Row) -> set[int]:
    return set(range(int(row["start"]), int(row["start"]) + int(row["cell"]["targets"])))


def _beside_pca(key: tuple[str, str, str, str], cells: Mapping[tuple[str, str, str, str], Joined]) -> bool:
    return key[3] in ("isp", "keeper") and (*key[:3], "pca") in cells


def _against(cell: Joined, pca: Joined) -> list[Cell]:
    """What label-free PCA leaves less what this space leaves, paired."""
    return [*cell.key, *(_points(_change(cell, pca, kind)) for kind in ("same", "other"))]


def _change(cell: Joined, other: Joined, kind: str) -> Estimate | None:
    """What the other leaves less what this leaves, paired; None where neither succeeds: that has no interval."""
    theirs, mine = cell.common(other)
    at = cell.judged.fars.index(FAR)
    if not any(getattr(one.all, kind)[at].any() for one in (theirs, mine)):
        return None
    return theirs.all.less(mine.all, kind, at) if getattr(mine.all, f"{kind}_of").sum() else None


def _success(cell: Joined, raw: Joined | None) -> list[Cell]:
    judged = cell.judged
    at = judged.fars.index(FAR)
    best, drawn = cell.control(POOL, FAR), cell.control("random face", FAR)
    lost: Estimate | None = None
    if raw is not None and raw is not cell and raw.judged.fars == judged.fars:
        lost = _change(cell, raw, "other")
    return [
        *cell.key,
        int(judged.all.same_of.sum() / len(judged.by)),
        _points(judged.all.share("same", at).share),
        _points(judged.all.share("other", at).share if judged.all.other_of.sum() else None),
        _percent(judged.all.chance(at).value),
        None
        if best is None
        else [_percent(best.same.value), None if best.other is None else _percent(best.other.value)],
        None if drawn is None else _percent(drawn.same.value),
        _percent(cell.ceiling.rate("other", at)) if cell.ceiling.other_of.sum() else None,
        _points(lost),
    ]


def _reached(cell: Joined) -> list[Cell]:
    reached, second, passes = cell.mean("cell", "reached"), cell.mean("space", "second"), cell.first.each
    converged = ""
    if isinstance(reached, float) and isinstance(second, float):
        converged = "yes" if reached >= second else "no"
    return [
        *cell.key,
        reached,
        next((_rounded(one.cosine.value) for one in cell.first.controls if one.name == POOL and one.cosine), None),
        second,
        cell.mean("space", "strangers"),
        converged,
        _rounded(passes.encoder_forward + passes.encoder_backward),
        _rounded(passes.seconds),
    ]


def _by_far(cell: Joined, tally: CountedTally) -> list[Cell]:
    shown: list[Cell] = []
    for n, far in enumerate(cell.judged.fars):
        if far is not None:
            other = _percent(tally.rate("other", n)) if tally.other_of.sum() else None
            shown.append([_percent(tally.rate("same", n)), other, _percent(tally.chance(n).value)])
    return [*shown, *([None] * (3 - len(shown)))]


def _paper(cell: Joined) -> list[Cell]:
    n, found = cell.judged.fars.index(None), cell.judged.all
    drawn = cell.control("random face", None)
    return [
        *cell.key,
        _percent(found.rate("same", n)),
        _percent(found.rate("other", n)) if found.other_of.sum() else None,
        _percent(found.chance(n).value),
        None if drawn is None else _percent(drawn.same.value),
    ]


def _by_budget(cells: Sequence[Joined]) -> list[Joined]:
    """Latent search on raw vectors of photographs, by encoder and steps."""
    chosen = [
        cell
        for cell in cells
        if cell.attack.startswith("alsuv") and "paper" not in cell.attack and cell.space == "raw"
        if cell.people == "photographs"
    ]
    tried = Counter(cell.encoder for cell in chosen)
    chosen = [cell for cell in chosen if tried[cell.encoder] > 1]
    return sorted(chosen, key=lambda cell: (cell.encoder, float(cell.first.settings["steps"])))


def _budget(cell: Joined) -> list[Cell]:
    at, found = cell.judged.fars.index(FAR), cell.judged.all
    shares = [_points(found.share(kind, at).share) for kind in ("same", "other")]
    return [cell.encoder, int(cell.first.settings["steps"]), *shares, cell.mean("cell", "reached")]


def _judge(facts: Row) -> tuple[Value, ...]:
    error, known = facts["equal_error"], {one["far"]: one["cosine"] for one in facts["thresholds"]}
    at = [None if far not in known else _rounded(known[far]) for far in (1e-2, 1e-3, 1e-4)]
    equal = (None, None) if error is None else (_rounded(error["cosine"]), _percent(error["far"]))
    return facts["name"], *at, *equal


def _points(share: Share | Estimate | None) -> Cell:
    return None if share is None else [_percent(end) for end in (share.value, share.low, share.high)]


def _percent(share: float) -> float:
    return _rounded(100 * share)


def _rounded(number: float) -> float:
    return float(f"{number:.4g}")


if __name__ == "__main__":
    main()
