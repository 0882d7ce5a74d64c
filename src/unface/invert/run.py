"""One measurement of inversion: every attack on every space, batch by batch on disk, judged, with all its controls."""

import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from unface.data import Space
from unface.erase import Projection
from unface.errors import UnfaceError
from unface.invert.measure import Judged, Juror, People, changes, median, passes, real_cosines
from unface.invert.ports import Attack, Generator, Ledger, Reconstructions, Targets, Threat, Train, require
from unface.invert.view import View, as_pictures, frame_size, in_parts, require_space
from unface.metrics import ImpostorTail, wilson
from unface.output.lock import run_lock
from unface.output.manifest import agree
from unface.output.place import OWN, Place
from unface.progress import Progress, Silent
from unface.result.file import NO_RATE, Clock, Finding, note, warning
from unface.result.inversion import (
    NOT_CONVERGED,
    RAW,
    Attacked,
    InversionCell,
    InversionChange,
    InversionControl,
    InversionResult,
    InversionWorst,
    PriorFacts,
    SpaceFacts,
    TargetPeople,
)
from unface.result.words import percent, rate
from unface.score import Threshold, worst
from unface.seeds import stream

Seen = dict[str, NDArray[np.float32]]
"""By judge: unit vectors of pictures; zeros where it found no face."""
_PARTS = f"{OWN}/inverted"
_FORMAT = 2  # of a part; the first one kept thresholds without the people who set them
_CONTROL_KINDS = ("random", "pca")
_TOO_MANY = 10  # times the FAR: reconstructions that pass for strangers so often show that thresholds do not fit


@dataclass(frozen=True, eq=False)
class Case:
    """What is attacked, who judges it, and what an attacker may know."""

    encoder: str
    space: Space
    aligned: bool
    people: People
    jury: tuple[Juror, ...]
    facts: TargetPeople
    embed: Callable[[NDArray[np.uint8]], Seen] | None = None
    """How judges see pictures; None where nothing but vectors is given."""
    view: View | None = None
    """Of the raw space."""
    prior: Generator | None = None
    drawn_by: str | None = None
    """The generator that drew the people, by the first part of its name; None for photographed ones."""
    second: View | None = None
    train: Train | None = None
    """With raw vectors."""
    template_jury: Mapping[str, Juror] = field(default_factory=dict)
    """Recognisers whose templates attacks may give, as judges of those alone."""

    def threat(self, name: str, projection: Projection | None, pools: Threat | None, seed: int) -> Threat:
        """The attacker before one space; pools are shared with another threat's."""
        view = self.view if projection is None or self.view is None else self.view.with_projection(projection)
        train = self.train
        if train is not None and projection is not None:
            train = Train(projection.apply(train.vectors), train.people, train.features, train.pictures)
        if pools is not None:
            return pools.of_space(name, view, train)
        return Threat(name, self.encoder, view, self.prior, train, self.second, seed)


@dataclass(frozen=True, eq=False)
class Inverted:
    """The result; and, where they were asked for, the pictures of each (attack, space)."""

    result: InversionResult
    pictures: Mapping[tuple[str, str], NDArray[np.uint8]]


@dataclass(frozen=True, eq=False)
class CellRun:
    """One attack on one space, as it was judged."""

    cell: InversionCell
    judged: Judged
    pictures: NDArray[np.uint8] | None


def invert(
    case: Case,
    attacks: Sequence[Attack],
    spaces: Mapping[str, Projection | None],
    place: Place,
    *,
    seed: int = 0,
    controls: int = 2000,
    keep_pictures: bool = False,
    again: bool = False,
    progress: Progress | None = None,
) -> Inverted:
    """Run every attack on every space; the same call continues a killed run in the same ``place``.

    ``controls`` is how many random faces of the prior the best is taken of; ``again`` starts over instead.
    """
    progress, clock = progress or Silent(), Clock()
    for projection in spaces.values():
        if projection is not None:
            require_space(projection, case.space)
    first = case.threat(RAW, None, None, seed)
    for attack in attacks:
        require(attack, first)
    place = replace(place, private=True)  # what is kept of the targets shows people
    with run_lock(place):
        if again:
            finish(place)
        agree(place, plan_of(case, attacks, spaces, seed, keep_pictures=keep_pictures))
        place.drop_unfinished()
        runs: list[CellRun] = []
        progress.start("inverting", len(attacks) * len(spaces) * len(case.people.rows))
        pool = PoolFaces(first, case, controls) if first.view is not None and first.prior is not None else None
        for space, projection in spaces.items():
            threat = case.threat(space, projection, first, seed)
            shown = None if pool is None else pool.controls(threat, projection)
            for attack in attacks:
                runs.append(
                    run_cell(
                        attack,
                        threat,
                        case,
                        projection,
                        place,
                        controls=shown,
                        keep_pictures=keep_pictures,
                        progress=progress,
                    )
                )
        result = conclude(case, runs, spaces, clock, seed)
    pictures = {(one.cell.attack, one.cell.space): one.pictures for one in runs if one.pictures is not None}
    return Inverted(result, pictures)


def finish(place: Place) -> None:
    """Once the result is written: drop what a killed run would have continued from."""
    for entry in place.listed(_PARTS):
        place.drop(f"{_PARTS}/{entry.name}")
    place.drop(f"{OWN}/manifest.json")


def run_cell(
    attack: Attack,
    threat: Threat,
    case: Case,
    projection: Projection | None,
    place: Place | None,
    *,
    controls: "Sequence[InversionControl] | None" = None,
    keep_pictures: bool = False,
    progress: Progress | None = None,
) -> CellRun:
    """One attack on one space: inverted in batches, each kept in ``place`` once done, then judged."""
    progress, people = progress or Silent(), case.people
    released = people.vectors if projection is None else projection.apply(people.vectors)
    shared, done = Ledger(), list[Batch]()
    prepared = None
    on_gpu = threat.prior is not None and threat.prior.device.type == "cuda"
    size = attack.batch if on_gpu or threat.prior is None else 1
    for start in range(0, len(people.rows), size):
        numbers = np.arange(start, min(start + size, len(people.rows)))
        name = f"{_PARTS}/{_slug(f'{threat.encoder}.{attack.name}.{threat.space}')}.{start:05d}.npz"
        batch = None if place is None else Batch.read(place, name, len(numbers))
        if batch is None:
            if prepared is None:
                with shared.timed():
                    prepared = attack.prepare(threat, shared)
            ledger = Ledger()
            with ledger.timed(len(numbers)):
                made = prepared(Targets(released[people.rows[numbers]], numbers), ledger)
            batch = Batch.of(made, ledger, case, keep_pictures=keep_pictures)
            if place is not None:
                batch.write(place, name)
        done.append(batch)
        progress.advance("inverting", len(numbers))
    whole = Batch.joined(done)
    if whole.recogniser is None:
        jury, seen = case.jury, whole.seen
    else:
        jury = (_template_judge(case, whole),)
        seen = {whole.recogniser: whole.seen[whole.recogniser]}
    judged = Judged.of(seen, people, jury)
    second, _ = real_cosines(released, people)
    reached, beside = median(whole.reached), median(second)
    cell = InversionCell(
        attack=attack.name,
        space=threat.space,
        settings=dict(attack.settings),
        knows=sorted(need.value for need in threat.knows & attack.needs)
        + ([] if projection is None else ["the projection"]),
        gives="pictures" if whole.recogniser is None else f"templates of {whole.recogniser}",
        targets=len(people.rows),
        no_face=0
        if whole.recogniser is not None
        else int(sum((~one.any(axis=1)).sum() for one in seen.values()) / len(seen)),
        reached=reached,
        converged=None if reached is None or beside is None else reached.value >= beside.value,
        at=judged.success(),
        controls=[] if controls is None or whole.recogniser is not None else list(controls),
        each=passes(whole.ledger, len(people.rows)),
        shared=passes(shared),
    )
    return CellRun(cell, judged, whole.pictures)


def _template_judge(case: Case, whole: "Batch") -> Juror:
    assert whole.recogniser is not None, "asked for templates alone"
    if whole.recogniser not in case.template_jury:
        raise UnfaceError(
            f"templates of {whole.recogniser!r}: nobody here can judge them; encode calibrate people with it"
        )
    juror = case.template_jury[whole.recogniser]
    return Juror(
        juror.name, whole.thresholds or juror.thresholds, None if whole.thresholds else juror.equal_error, False
    )


@dataclass(frozen=True, eq=False)
class Batch:
    """Targets that are done: what judges saw, the cosines reached, the passes."""

    reached: NDArray[np.float32]
    seen: Seen
    recogniser: str | None
    thresholds: tuple[Threshold, ...]
    ledger: Ledger
    pictures: NDArray[np.uint8] | None

    @classmethod
    def of(cls, made: Reconstructions, ledger: Ledger, case: Case, *, keep_pictures: bool) -> "Batch":
        """Pictures are shown to the judges at once, and only kept where asked for."""
        if made.templates is not None and made.recogniser is not None:
            vectors = np.nan_to_num(made.templates).astype(np.float32)
            return cls(made.reached, {made.recogniser: vectors}, made.recogniser, made.thresholds, ledger, None)
        if made.pictures is None or case.embed is None:
            raise UnfaceError("pictures were reconstructed, and there is no judge that looks at pictures")
        seen = case.embed(made.pictures)
        return cls(made.reached, seen, None, (), ledger, made.pictures if keep_pictures else None)

    @classmethod
    def joined(cls, parts: "Sequence[Batch]") -> "Batch":
        """All targets."""
        ledger = Ledger()
        for part in parts:
            ledger.add(part.ledger)
        first = parts[0]
        pictures = [part.pictures for part in parts if part.pictures is not None]
        return cls(
            np.concatenate([part.reached for part in parts]),
            {name: np.concatenate([part.seen[name] for part in parts]) for name in first.seen},
            first.recogniser,
            first.thresholds,
            ledger,
            np.concatenate(pictures) if len(pictures) == len(parts) else None,
        )

    def write(self, place: Place, name: str) -> None:
        """As a file that holds arrays alone."""
        arrays: dict[str, NDArray[np.generic]] = {f"seen {judge}": vectors for judge, vectors in self.seen.items()}
        arrays["reached"] = self.reached
        arrays["recogniser"] = np.array(self.recogniser or "")
        arrays["format"] = np.array(_FORMAT)
        for number, one in enumerate(self.thresholds):
            own = f"threshold {number}"
            arrays[own] = np.array([one.far, one.cosine, one.impostors, one.false_accepts, one.tail.floor])
            arrays[f"{own} role"] = np.array(one.role)
            arrays[f"{own} scores"], arrays[f"{own} images"] = one.tail.scores, one.tail.images
            arrays[f"{own} people"] = np.stack([one.tail.first, one.tail.second])
        arrays["ledger"] = np.array([self.ledger.targets, self.ledger.seconds, *self.ledger.passes.values()], float)
        if self.pictures is not None:
            arrays["pictures"] = self.pictures
        content = io.BytesIO()
        np.savez(content, **arrays)  # type: ignore[arg-type]
        place.write(name, content.getvalue())

    @classmethod
    def read(cls, place: Place, name: str, count: int) -> "Batch | None":
        """What an earlier run left; None where it left nothing whole."""
        content = place.read(name)
        if content is None:
            return None
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                arrays = dict(file)
            if int(arrays["format"]) != _FORMAT:
                return None
            targets, seconds, *counted = arrays["ledger"].tolist()
            ledger = Ledger(int(targets), seconds=seconds)
            ledger.passes = dict(zip(ledger.passes, map(int, counted), strict=True))
            thresholds = list[Threshold]()
            while (own := f"threshold {len(thresholds)}") in arrays:
                far, cosine, impostors, accepts, floor = arrays[own].tolist()
                first, second = arrays[f"{own} people"].astype(np.int64)
                scores, images = arrays[f"{own} scores"], arrays[f"{own} images"]
                if not (
                    len(scores) == len(first) and max(first.max(initial=0), second.max(initial=0)) < images.shape[1]
                ):
                    raise ValueError("a tail of other people")
                tail = ImpostorTail(scores, first, second, images, floor)
                role = str(arrays[f"{own} role"])
                thresholds.append(Threshold(far, cosine, int(impostors), int(accepts), tail, role))
            seen = {key.removeprefix("seen "): value for key, value in arrays.items() if key.startswith("seen ")}
            recogniser = str(arrays["recogniser"]) or None
            batch = cls(arrays["reached"], seen, recogniser, tuple(thresholds), ledger, arrays.get("pictures"))
            shown = [] if batch.pictures is None else [batch.pictures]
            rows = {len(one) for one in (batch.reached, *seen.values(), *shown)}
        except (ValueError, KeyError, TypeError, OverflowError, NotImplementedError):
            return None
        except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
            return None
        return batch if rows == {count} else None


class PoolFaces:
    """Random faces of the prior as controls: shown to the judges once, whatever space they are asked for."""

    def __init__(self, threat: Threat, case: Case, count: int) -> None:
        assert threat.prior is not None, "invert checks"
        self._prior, self._case, self._threat = threat.prior, case, threat
        self._count = max(count, len(case.people.rows))
        self._seen: dict[int, dict[str, NDArray[np.float32]]] = {}

    def controls(self, threat: Threat, projection: Projection | None) -> list[InversionControl]:
        """A face drawn for each target, and the best of all by the attacked cosine."""
        import torch

        people, jury = self._case.people, self._case.jury
        assert threat.view is not None, "invert checks"
        pool = self._threat.pool(self._count, Ledger())
        released = people.vectors if projection is None else projection.apply(people.vectors)
        targets = torch.from_numpy(released[people.rows]).to(pool.vectors.device)
        best, cosines = pool.best(threat.view, targets, 1)
        drawn = np.arange(len(people.rows))
        with torch.inference_mode():
            own = (threat.view.released(pool.vectors[: len(drawn)]) * targets).sum(dim=1)
        shown: list[InversionControl] = []
        for name, places, reached in (
            ("random face", drawn, own),
            ("best of pool", best[:, 0].cpu().numpy(), cosines[:, 0]),
        ):
            judged = Judged.of(self._vectors(places), people, jury)
            cosine = median(reached.cpu().numpy())
            shown.append(InversionControl(name=name, cosine=cosine, at=judged.success()))  # type: ignore[arg-type]
        return shown

    def _vectors(self, places: NDArray[np.int64]) -> Seen:
        import torch

        missing = [int(place) for place in np.unique(places) if int(place) not in self._seen]
        if missing and self._case.embed is not None:
            pool = self._threat.pool(self._count, Ledger())
            size = frame_size(self._prior)
            with torch.inference_mode():
                decoded = in_parts(
                    len(missing), lambda part: self._prior.decode(pool.latents[missing[part]], size).cpu()
                )
            seen = self._case.embed(as_pictures(decoded))
            for at, place in enumerate(missing):
                self._seen[place] = {judge: vectors[at] for judge, vectors in seen.items()}
        return {
            juror.name: np.stack([self._seen[int(place)][juror.name] for place in places]) for juror in self._case.jury
        }


def all_changes(runs: Sequence[CellRun]) -> list[InversionChange]:
    """Every erased space less the raw one, where an attack ran on both."""
    raw = {one.cell.attack: one for one in runs if one.cell.space == RAW}
    return [
        change
        for one in runs
        if one.cell.space != RAW and one.cell.attack in raw and raw[one.cell.attack].judged.fars == one.judged.fars
        for change in changes(one.cell.attack, one.cell.space, raw[one.cell.attack].judged, one.judged)
    ]


def worst_cases(runs: Sequence[CellRun], seed: int) -> list[InversionWorst]:
    """On each space and at each rate: of either half of the targets, the attack that is best on the other half.

    Best by other pictures of the person and then by the attacked one; the first wins ties.
    """
    found = []
    for space in dict.fromkeys(one.cell.space for one in runs):
        here = [one for one in runs if one.cell.space == space]
        people = next(iter(here[0].judged.by.values())).same.count
        half = stream(seed, "invert", "halves").permutation(people) % 2
        for far in dict.fromkeys(far for one in here for far in one.judged.fars if far is not None):
            tried = [one for one in here if far in one.judged.fars]
            chosen = []
            for side in (0, 1):
                elsewhere = half != side if (half != side).any() else half == side
                chosen.append(worst(tried, lambda one, on=elsewhere, far=far: one.judged.gained(far, on)))  # type: ignore[misc]
            success = chosen[0].judged.with_half_of(chosen[1].judged, far, half == 0)
            attacks = list(dict.fromkeys(one.cell.attack for one in chosen))
            found.append(InversionWorst(space=space, attacks=attacks, at=success))
    return found


def conclude(
    case: Case, runs: Sequence[CellRun], spaces: Mapping[str, Projection | None], clock: Clock, seed: int = 0
) -> InversionResult:
    """The result file of finished cells."""
    people, cells = case.people, [one.cell for one in runs]
    itself = {juror.name: people.seen[juror.name][people.rows] for juror in case.jury}
    return InversionResult(
        encoder=Attacked(
            name=case.encoder, dim=case.space.dim, weights_sha256=case.space.weights_sha256, aligned=case.aligned
        ),
        people=case.facts,
        prior=None if case.prior is None else PriorFacts(name=case.prior.name, size=frame_size(case.prior)),
        judges=[juror.facts() for juror in (*case.jury, *case.template_jury.values())],
        spaces=[space_facts(name, projection, case) for name, projection in spaces.items()],
        cells=cells,
        worst_case=worst_cases(runs, seed),
        changes=all_changes(runs),
        ceiling=Judged.of(itself, people, case.jury).ceiling(),
        findings=_findings(case, cells, spaces),
        not_measured=_not_measured(case),
        run=clock.run(),
    )


def space_facts(name: str, projection: Projection | None, case: Case) -> SpaceFacts:
    """One space, with what real pictures reach in it."""
    vectors = case.people.vectors
    second, strangers = real_cosines(vectors if projection is None else projection.apply(vectors), case.people)
    apart = median(strangers)
    assert apart is not None, "there are strangers where there are two people"
    return SpaceFacts(
        name=name,
        kind=None if projection is None else projection.kind,
        rank=0 if projection is None else projection.rank,
        dim=case.space.dim if projection is None else projection.released_dim,
        projection_sha256=None if projection is None else projection.sha256,
        second=median(second),
        strangers=apart,
    )


def plan_of(
    case: Case, attacks: Sequence[Attack], spaces: Mapping[str, Projection | None], seed: int, *, keep_pictures: bool
) -> dict[str, object]:
    """What a continued run must agree with."""
    return {
        "encoder": [case.encoder, case.space.weights_sha256],
        "pictures": case.facts.sha256,
        "attacks": {attack.name: dict(attack.settings) for attack in attacks},
        "projections": {name: None if one is None else one.sha256 for name, one in spaces.items()},
        "judges": sorted(juror.name for juror in case.jury),
        "prior": None if case.prior is None else case.prior.name,
        "seed": seed,
        "show_faces": keep_pictures,
    }


def _findings(case: Case, cells: Sequence[InversionCell], spaces: Mapping[str, Projection | None]) -> list[Finding]:
    found = []
    for cell in cells:
        if cell.converged is False and cell.reached is not None:
            text = (
                f"{cell.attack} on {cell.space} reached a median cosine of {cell.reached.value:.2f}, less than another "
                "real picture of the person: where it fails, that says nothing about privacy"
            )
            found.append(warning(NOT_CONVERGED, text))
        for point in cell.at:
            if (
                point.far is not None
                and point.far >= 1e-3
                and point.judge == "all"
                and _beyond(point.derangement.value, cell.targets, _TOO_MANY * point.far)
            ):
                text = (
                    f"reconstructions ({cell.attack}, {cell.space}) pass for strangers in "
                    f"{percent(point.derangement.value)}, more than {_TOO_MANY} times the FAR of {rate(point.far)}; "
                    "judges' thresholds do not fit these faces"
                )
                found.append(Finding(severity="invalid", about=NO_RATE, text=text))
                break
    if case.prior is not None and case.drawn_by is not None and case.prior.name.startswith(case.drawn_by):
        text = (
            f"the people were drawn by {case.drawn_by}, which the attack searches too; invert vectors of "
            "photographed people, or search another --prior"
        )
        found.append(Finding(severity="invalid", about=NO_RATE, text=text))
    kinds = {one.kind for one in spaces.values() if one is not None}
    if kinds - set(_CONTROL_KINDS) and not set(_CONTROL_KINDS) <= kinds:
        text = "erased spaces without a random subspace and label-free PCA of equal rank beside them"
        found.append(warning("controls", text))
    if len(case.jury) == 1:
        found.append(note("judges", f"one judge alone, {case.jury[0].name}"))
    if not case.facts.generated:
        found.append(note("people", "these may be real people: keep reconstructions private"))
    return found


def _beyond(share: float, people: int, limit: float) -> bool:
    """Whether strangers pass more often than the limit, with as many trials as there are pairs of people."""
    pairs = people * (people - 1)
    return pairs > 0 and wilson(share * pairs, pairs).low > limit


def _not_measured(case: Case) -> list[str]:
    missing = []
    if len(case.people.identities) == len(case.people.rows):
        missing.append("other pictures of the people: only one picture of each was given")
    if case.view is None:
        missing.append("attacks that need the encoder: only vectors were given")
    return missing


def _slug(text: str) -> str:
    """Fit for a file name, and different for different texts."""
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', text)[:80]}.{hashlib.sha256(text.encode()).hexdigest()[:8]}"
