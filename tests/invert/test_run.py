"""If these fail, success is counted that is chance, a control is missing, or a killed run loses or repeats work."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.encode.tiny import DIM
from tests.invert.test_view import projection
from tests.invert.toy import toy_case
from tests.refusals.table import refused
from unface.data import Space
from unface.gate import compare
from unface.invert import Invert, Ledger, Reconstructions, Targets, Threat, load_attack
from unface.invert.alsuv import Alsuv
from unface.invert.measure import Judged, People
from unface.invert.run import Batch, finish, invert
from unface.judge.template import chance, stranger_thresholds
from unface.output.place import place_at
from unface.result.inversion import InversionResult
from unface.score import Draws
from unface.seeds import stream

FAST = "alsuv:pool=100,steps=120,drop_at=80,averaged=30"


def test_generated_people_are_found_and_every_control_is_there(tmp_path: Path) -> None:
    case = toy_case()
    spaces = {"raw": None, "random": projection(2)}
    done = invert(case, [load_attack(FAST)], spaces, place_at(tmp_path), controls=100)
    raw, erased = done.result.cells
    assert (raw.space, erased.space) == ("raw", "random")
    point = raw.point(1e-2)
    assert point is not None
    assert point.other is not None
    assert point.same.value >= 0.95
    assert point.other.value >= 0.95
    assert point.derangement.value < 0.1
    assert raw.reached is not None
    assert raw.reached.value > 0.999
    assert raw.converged
    names = {control.name: control for control in raw.controls}
    assert set(names) == {"random face", "best of pool"}
    drawn = next(one for one in names["random face"].at if one.far == 1e-2)
    assert drawn.same.value < 0.3
    best, chance = names["best of pool"].cosine, names["random face"].cosine
    assert best is not None
    assert chance is not None
    assert chance.value < best.value < raw.reached.value
    ceiling = next(one for one in done.result.ceiling if one.far == 1e-2)
    assert ceiling.other.value >= 0.95
    second, strangers = done.result.spaces[0].second, done.result.spaces[0].strangers
    assert second is not None
    assert second.value > strangers.value
    assert raw.each.encoder_backward == 4 * 120
    assert raw.shared.prior_forward == 0, "the pool was drawn for the controls before"
    changed = {one.far: one for one in done.result.changes}
    assert changed[1e-2].same.value == pytest.approx(point.same.value - erased.at[0].same.value, abs=1e-9)
    assert None in changed, "the paper's threshold"
    saved = InversionResult.load(done.result.save(tmp_path / "kept"))
    assert any(one.headline and one.found for one in saved.readings())
    assert compare(saved, saved).exit_code in (0, 4)
    assert saved == done.result
    assert "matches other photos of the person" in saved.verdict


class Shuffled(Alsuv):
    """Inverts everybody's neighbour: what an attack without any information looks like."""

    def prepare(self, threat: Threat, ledger: Ledger) -> Invert:
        inner = super().prepare(threat, ledger)
        return lambda targets, counted: inner(Targets(np.roll(targets.vectors, 1, axis=0), targets.numbers), counted)

    batch = 1 << 20


def test_shuffled_targets_sit_at_the_derangement_rate(tmp_path: Path) -> None:
    case = toy_case(people=30)
    attack = Shuffled(FAST.partition(":")[2])
    # On a CPU targets come one by one, and one alone has no neighbour.
    inner = attack.prepare(case.threat("raw", None, None, 0), Ledger())
    made = inner(Targets(case.people.vectors[case.people.rows], np.arange(30)), Ledger())
    assert made.pictures is not None
    assert case.embed is not None
    judged = Judged.of(case.embed(made.pictures), case.people, case.jury)
    honest = invert(
        case, [Alsuv(FAST.partition(":")[2])], {"raw": None}, place_at(tmp_path), controls=100
    ).result.cells[0]
    at = judged.fars.index(1e-2)
    point = honest.point(1e-2)
    assert point is not None
    assert point.same.value >= 0.9
    same = judged.measured("same", at)
    assert same is not None
    assert same.value <= chance(list(judged.by.values()), at).value + 0.1


class Killed(Alsuv):
    """Stops after some targets, as a killed process does; counts what it inverted."""

    def __init__(self, preset: str, stop: int | None) -> None:
        super().__init__(preset)
        self.stop, self.done = stop, list[int]()

    def prepare(self, threat: Threat, ledger: Ledger) -> Invert:
        inner = super().prepare(threat, ledger)

        def invert(targets: Targets, counted: Ledger) -> Reconstructions:
            if self.stop is not None and len(self.done) >= self.stop:
                raise KeyboardInterrupt
            self.done.extend(targets.numbers.tolist())
            return inner(targets, counted)

        return invert


def test_a_killed_run_goes_on_and_inverts_nobody_twice(tmp_path: Path) -> None:
    case, preset = toy_case(people=6), "pool=100,steps=10,averaged=5"
    whole = invert(case, [Killed(preset, None)], {"raw": None}, place_at(tmp_path / "whole"), controls=100).result
    killed, rest = Killed(preset, 2), Killed(preset, None)
    place = place_at(tmp_path / "cut")
    with pytest.raises(KeyboardInterrupt):
        invert(case, [killed], {"raw": None}, place, controls=100)
    kept = [path for path in (tmp_path / "cut" / "_unface").rglob("*") if path.suffix == ".npz"]
    assert kept
    assert {path.stat().st_mode & 0o777 for path in (*kept, kept[0].parent)} == {0o600, 0o700}
    with refused("output", "cut"):
        invert(case, [Killed("pool=100,steps=11", None)], {"raw": None}, place, controls=100)
    left = tmp_path / "cut" / "_unface" / "unfinished" / "0123abcd"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half a part")
    result = invert(case, [rest], {"raw": None}, place, controls=100).result
    assert not left.exists()
    over = Killed("pool=100,steps=11", None)
    invert(case, [over], {"raw": None}, place, controls=100, again=True)
    assert over.done == [0, 1, 2, 3, 4, 5]
    assert (killed.done, rest.done) == ([0, 1], [2, 3, 4, 5])
    assert result.cells[0].at == whole.cells[0].at
    assert result.cells[0].each.encoder_backward == whole.cells[0].each.encoder_backward == 40
    finish(place)
    assert not list((tmp_path / "cut").rglob("*.npz"))


def test_an_attack_that_stops_short_of_a_second_picture_says_nothing(tmp_path: Path) -> None:
    case = toy_case(people=4)
    attack = Alsuv("pool=0,starts=1,rate=0.00001,steps=2,averaged=1")
    result = invert(case, [attack], {"raw": None}, place_at(tmp_path), controls=50).result
    assert result.cells[0].converged is False
    assert [one.about for one in result.findings] == ["not converged", "judges"]
    assert "says nothing about privacy" in result.findings[0].text


def test_a_projection_of_another_space_is_refused_before_any_work(tmp_path: Path) -> None:
    other = replace(projection(), space=Space("sface", None, DIM, normalised=True))
    with refused("projection", "projection"):
        invert(toy_case(people=4), [Alsuv()], {"isp": other}, place_at(tmp_path))
    assert not list(tmp_path.iterdir())


def test_vectors_without_pictures_leave_translate_alone(tmp_path: Path) -> None:
    case = replace(toy_case(train=300), view=None, prior=None, embed=None)
    with refused("inversion", None, "'alsuv'"):
        invert(case, [Alsuv()], {"raw": None}, place_at(tmp_path / "a"))
    cell = invert(case, [load_attack("translate")], {"raw": None}, place_at(tmp_path / "b")).result.cells[0]
    assert cell.gives == "templates of judge"
    assert cell.reached is None
    point = cell.at[0]
    assert point.same.value > 0.9
    assert point.derangement.value < 0.05


def test_some_people_keep_their_pictures() -> None:
    people = toy_case(people=6).people
    few = people.between(2, 4)
    assert few.identities.tolist() == [0, 0, 0, 1, 1, 1]
    assert few.rows.tolist() == [0, 3]
    np.testing.assert_array_equal(few.vectors, people.vectors[6:12])
    bad = {"judge": np.zeros_like(people.seen["judge"])}
    with refused("inversion", "judge 'judge'"):
        People(people.identities, people.rows, people.vectors, bad)


def test_a_damaged_part_of_an_earlier_run_is_made_again(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    seen = {"judge": np.zeros((3, 4), np.float32)}
    draw = stream(0, "part")
    templates, pictures = draw.standard_normal((2, 40, 4))
    thresholds = stranger_thresholds(templates, pictures, np.arange(40) // 2, role="train")
    whole = Batch(np.ones(3, np.float32), seen, "judge", thresholds, Ledger(3), None)
    whole.write(place, "part.npz")
    content = (tmp_path / "part.npz").read_bytes()
    again = Batch.read(place, "part.npz", 3)
    assert again is not None
    assert again.ledger == whole.ledger
    for kept, made in zip(again.thresholds, whole.thresholds, strict=True):
        assert (kept.cosine, kept.resolution, kept.role) == (made.cosine, made.resolution, "train")
        np.testing.assert_array_equal(kept.replicates(Draws()), made.replicates(Draws()))
    for damaged in (content[: len(content) // 2], content.replace(b"PK\x01\x02", b"PK\x01\x03"), b"no archive"):
        (tmp_path / "part.npz").write_bytes(damaged)
        assert Batch.read(place, "part.npz", 3) is None
    replace(whole, seen={"judge": np.zeros((2, 4), np.float32)}).write(place, "part.npz")
    assert Batch.read(place, "part.npz", 3) is None, "a judge has seen fewer than were inverted"
