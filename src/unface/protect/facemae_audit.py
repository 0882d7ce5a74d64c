"""A FaceMAE release measured: what a recogniser learns from it and who links its people, beside simpler methods."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unface.data import ImageSet, decode
from unface.encode import Encoder
from unface.errors import UnfaceError, reason
from unface.faces import Detector
from unface.progress import Progress, Silent
from unface.protect.attackers import (
    Attacker,
    Deployed,
    FineTuning,
    Seen,
    fine_tuned_attacker,
    imitating_attacker,
    registry_attacker,
    release_attacker,
)
from unface.protect.baselines import MaskedFaces, contents_of
from unface.protect.facemae_deploy import RELEASE, commitment, read_manifest, released_names
from unface.protect.facemae_frames import each_face, require_faces
from unface.protect.facemae_train import Trained
from unface.protect.pair_sets import PairSet
from unface.protect.recogniser import RecogniserRecipe, TrainedRecogniser, train_recogniser
from unface.result.file import Clock, Finding, note, warning
from unface.result.protection import (
    AttackerResult,
    MethodResult,
    PairsResult,
    ProtectionResult,
    ReleaseFacts,
    SecondRelease,
)
from unface.result.words import count, percent, signed_points

FACEMAE, ORIGINALS, MASKS, MEAN_COLOUR, LOW_PASS, PLAIN, NOBODY = (
    "FaceMAE", "originals", "masks", "mean-colour masks", "low-pass", "plain MAE", "people who do not exist",
)  # fmt: skip
Frames = NDArray[np.uint8]
Protect = Callable[[Frames, list[bytes]], Frames]
"""What anybody can do to faces, with hashes that decide their masks."""


def unchanged(frames: Frames, contents: list[bytes]) -> Frames:
    """Of the originals: an attacker can still fine-tune on pairs of their own pictures."""
    del contents
    return frames


@dataclass(frozen=True)
class Plan:
    """How a release is measured."""

    recogniser: RecogniserRecipe
    seeds: tuple[int, ...] = (1,)
    """One recogniser for each."""
    tuning: FineTuning = field(default_factory=FineTuning)
    seed: int = 0
    """Of the halves of people and the intervals."""
    device: str = "cpu"


@dataclass(frozen=True, eq=False)
class OwnPeople:
    """People of the attacker, who has their pictures: faces, hashes for their masks, and whose they are."""

    frames: Frames
    contents: list[bytes]
    people: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReadRelease:
    """A release folder beside the pictures it was made of, row by row; only its owner can read it like this."""

    name: str
    manifest: dict[str, Any]
    real: Frames
    released: Frames
    contents: list[bytes]
    people: NDArray[np.int64]
    left_out: dict[str, int]


def read_release(
    folder: Path,
    images: ImageSet,
    key: bytes,
    detector: Detector | None,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ReadRelease:
    """Match released pictures with their originals; the mask seed says which belong together."""
    manifest = read_manifest(folder)
    if manifest["mask"]["seed_commitment"] != commitment(key):
        raise UnfaceError(f"{folder.name}: was not made with this mask seed; give the file that deploy kept")
    size, names = int(manifest["model"]["size"]), released_names(images, key)
    progress, task = progress or Silent(), "reading the release"
    progress.start(task, len(images))
    real, released, contents, owners, digests = [], [], list[bytes](), list[str](), dict[str, str]()
    left_out: dict[str, int] = {}
    for ref, frame in zip(images, each_face(images.images, size, detector, threads, lambda one: one), strict=True):
        progress.advance(task)
        if isinstance(frame, str):
            left_out[frame] = left_out.get(frame, 0) + 1
            continue
        name = names[ref.id]
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            raise UnfaceError(
                f"{folder.name}/{name}: cannot be read ({reason(error)}); are these its originals?"
            ) from None
        digests[name] = hashlib.sha256(content).hexdigest()
        real.append(frame.pixels)
        released.append(decode(content))
        contents.append(frame.content)
        owners.append(ref.identity)
    require_faces(images, len(real), Counter(left_out))
    listing = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    if hashlib.sha256(listing.encode()).hexdigest() != manifest["files_sha256"]:
        raise UnfaceError(
            f"{folder.name}: its pictures are not those that {RELEASE} lists, or these are not its originals"
        )
    people = np.unique(owners, return_inverse=True)[1].astype(np.int64)
    return ReadRelease(folder.name, manifest, np.stack(real), np.stack(released), contents, people, left_out)


def own_people(images: ImageSet, size: int, detector: Detector | None, threads: int | None = None) -> OwnPeople:
    """Faces of a set, and whose they are."""
    left_out, frames, contents, owners = Counter[str](), [], list[bytes](), list[str]()
    for ref, frame in zip(images, each_face(images.images, size, detector, threads, lambda one: one), strict=True):
        if isinstance(frame, str):
            left_out[frame] += 1
        else:
            frames.append(frame.pixels)
            contents.append(frame.content)
            owners.append(ref.identity)
    require_faces(images, len(frames), left_out)
    return OwnPeople(np.stack(frames), contents, np.unique(owners, return_inverse=True)[1].astype(np.int64))


def utility(
    frames: Frames,
    people: NDArray[np.int64],
    pairs: Sequence[PairSet],
    plan: Plan,
    progress: Progress | None = None,
) -> tuple[list[PairsResult], dict[int, TrainedRecogniser]]:
    """Recognisers that learn from a set, one for each seed, and their accuracy on pairs of other people."""
    trained = {
        seed: train_recogniser(frames, people, replace(plan.recogniser, seed=seed), plan.device, progress=progress)
        for seed in plan.seeds
    }
    return [accuracy(one, trained) for one in pairs], trained


def accuracy(pairs: PairSet, trained: Mapping[int, TrainedRecogniser]) -> PairsResult:
    """Of recognisers by seed."""
    folds = [pairs.accuracies(one.embed(pairs.frames)).tolist() for one in trained.values()]
    return PairsResult(name=pairs.name, pairs=len(pairs.pairs), seeds=list(trained), by_seed=folds)


def attacked(deployed: Deployed, attackers: Sequence[Attacker], seed: int) -> list[AttackerResult]:
    """Every attacker on one protected set."""
    return [Seen.of(attacker, deployed, seed).result(seed) for attacker in attackers]


def second_release(
    attacker: Attacker,
    deployed: Deployed,
    masked: MaskedFaces,
    again: MaskedFaces,
    other: MaskedFaces,
    made: Frames,
    seed: int,
) -> SecondRelease:
    """``again`` has the masks of a second release with the same seed; ``other`` with another one, and showed ``made``.

    The attacker takes the mean of the vectors of both releases of a picture; the threshold is set anew.
    """
    one = Seen.of(attacker, deployed, seed)
    mean = one.released + attacker.released(made)
    mean /= np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    both = replace(one, released=mean)
    shares = []
    for seen in (one, both):
        same, share, _ = seen.linked(seen.threshold(), seed, calibrate=False)
        shares.append((share or same).share)
    return SecondRelease(
        attacker=attacker.name,
        same_seed_shown=float((masked.shown | again.shown).mean()),
        other_seed_shown=float((masked.shown | other.shown).mean()),
        one=shares[0],
        both=shares[1],
    )


@dataclass(frozen=True, eq=False)
class Crowd:
    """Everybody who attacks, made once: published recognisers, and those that learn from the public model."""

    encoders: Sequence[Encoder]
    plan: Plan

    @cached_property
    def published(self) -> list[Attacker]:
        """Recognisers as they are."""
        return [registry_attacker(encoder, self.plan.device) for encoder in self.encoders]

    def against(
        self,
        protect: Protect,
        own: OwnPeople | None,
        trained: Mapping[int, TrainedRecogniser],
        progress: Progress | None = None,
    ) -> Iterator[Attacker]:
        """Attackers of a set; ``protect`` is what anybody can do to a picture with the public model."""
        device = self.plan.device
        yield from self.published
        for recogniser in list(trained.values())[:1]:
            yield release_attacker(recogniser)
        if not self.encoders:
            return
        first = self.encoders[0]
        if protect is not unchanged:
            yield imitating_attacker(first, lambda frames: protect(frames, contents_of(frames)), device)
        if own is not None:
            made = Deployed(own.frames, protect(own.frames, own.contents), own.people)
            yield fine_tuned_attacker(first, made, self.plan.tuning, device, progress=progress)


def audit(
    given: ReadRelease,
    trained: Trained,
    key: bytes,
    *,
    encoders: Sequence[Encoder],
    pairs: Sequence[PairSet],
    plan: Plan,
    own: OwnPeople | None = None,
    plain: Trained | None = None,
    nobody: OwnPeople | None = None,
    progress: Progress | None = None,
) -> ProtectionResult:
    """Everything that protection.json holds. The attacker has the model, not the mask seed."""
    if trained.sha256 != given.manifest["model"]["sha256"]:
        raise UnfaceError(f"{given.name}: was made with another model; give the one that deploy used")
    clock, crowd = Clock(), Crowd(encoders, plan)
    masked = MaskedFaces.of(given.real, given.contents, trained.masking, trained.preset, key)
    theirs = _other_key(key)

    def by(model: Trained) -> Protect:
        def protect(frames: Frames, contents: list[bytes]) -> Frames:
            return MaskedFaces.of(frames, contents, model.masking, model.preset, theirs).made_by(model.model)

        return protect

    sets: list[tuple[str, float | None, Frames, Protect]] = [
        (FACEMAE if given.manifest["model"]["loss"] != "mse" else PLAIN, masked.ratio, given.released, by(trained)),
        (ORIGINALS, None, given.real, unchanged),
        (MASKS, masked.ratio, masked.masks(), _with(MaskedFaces.masks, trained, theirs)),
        (MEAN_COLOUR, masked.ratio, masked.mean_colour(), _with(MaskedFaces.mean_colour, trained, theirs)),
        (LOW_PASS, masked.ratio, masked.low_pass(), _with(MaskedFaces.low_pass, trained, theirs)),
    ]
    missing = []
    if plain is None:
        missing.append("a plain masked autoencoder; train one with --loss mse and give it as --plain")
    else:
        _require_alike(plain, trained)
        sets.append((PLAIN, masked.ratio, masked.made_by(plain.model), by(plain)))
    if own is None:
        missing.append("an attacker who fine-tunes on pairs of their own; give --attacker-people")
    if not pairs:
        missing.append("what the release is good for; give --pairs")
    methods, second = [], None
    for number, (name, ratio, frames, protect) in enumerate(sets):
        found, recognisers = utility(frames, given.people, pairs, plan, progress)
        deployed = Deployed(given.real, frames, given.people)
        attackers = list(crowd.against(protect, own, recognisers, progress))
        results = attacked(deployed, attackers, plan.seed)
        methods.append(
            MethodResult(
                name=name, ratio=ratio, audited=number == 0, pictures=len(frames),
                people=len(np.unique(given.people)), utility=found, attackers=results,
            )
        )  # fmt: skip
        if number == 0:
            worst = methods[0].worst
            attacker = next(one for one in attackers if worst is not None and one.name == worst.name)
            again, other = (
                MaskedFaces.of(given.real, given.contents, trained.masking, trained.preset, one)
                for one in (key, theirs)
            )
            made = other.made_by(trained.model)
            second = second_release(attacker, deployed, masked, again, other, made, plan.seed)
    if nobody is None:
        missing.append("people who do not exist as training pictures; give --nobody")
    else:
        found, _ = utility(nobody.frames, nobody.people, pairs, plan, progress)
        methods.append(
            MethodResult(
                name=NOBODY, ratio=None, pictures=len(nobody.frames), people=len(np.unique(nobody.people)),
                utility=found, attackers=[],
            )
        )  # fmt: skip
    model, people = given.manifest["model"], len(np.unique(given.people))
    facts = ReleaseFacts(
        name=given.name,
        sha256=given.manifest["files_sha256"],
        people=people,
        pictures=len(given.real),
        preset=model["preset"],
        loss=model["loss"],
        recogniser=model.get("recogniser"),
        model_sha256=model["sha256"],
    )
    return assembled(facts, methods, second, missing, plan, clock, given.left_out)


def assembled(
    release: ReleaseFacts,
    methods: list[MethodResult],
    second: SecondRelease | None,
    missing: list[str],
    plan: Plan,
    clock: Clock,
    left_out: Mapping[str, int],
    attacked_people: int | None = None,
) -> ProtectionResult:
    """The file, with what a reader must know; half of the people who are attacked, else of all, set thresholds
    (``Deployed.half``).
    """
    people = attacked_people or release.people
    result = ProtectionResult(
        release=release,
        calibrate_people=people // 2,
        measured_people=people - people // 2,
        methods=methods,
        second=second,
        findings=[],
        not_measured=missing,
        run=clock.run(),
    )
    return result.model_copy(update={"findings": findings(result, left_out, plan)})


def findings(result: ProtectionResult, left_out: Mapping[str, int], plan: Plan) -> list[Finding]:
    """What the numbers say beside the verdict."""
    found = []
    method, plain, worst = result.audited, result.plain, result.audited.worst
    if worst is not None and worst.kind != "recogniser" and result.links:
        found.append(
            warning("worst attacker", f"{worst.name} is worse than every published recogniser; the paper left it out")
        )
    if plain is not None and plain is not method and plain.utility and method.utility:
        gain = method.utility[0].less(plain.utility[0])
        if gain is not None and gain.low <= 0:
            found.append(
                warning(
                    "plain MAE",
                    f"FaceMAE's accuracy is not higher: {signed_points(gain.value)} points "
                    f"[{signed_points(gain.low)}, {signed_points(gain.high)}]",
                )
            )
    if result.second is not None and result.second.both.value > result.second.one.value:
        found.append(
            warning(
                "second release",
                f"with another mask seed, TAR rises from {percent(result.second.one.value)} to "
                f"{percent(result.second.both.value)}; keep the seed",
            )
        )
    if len(plan.seeds) < 3:
        learned = f"{count(len(plan.seeds), 'recogniser')} learned"
        found.append(note("seeds", f"{learned} from each set; intervals do not cover how recognisers differ"))
    found += [note("pictures", f"{number:,} left out: {why}") for why, number in left_out.items()]
    return found


def _with(how: Callable[[MaskedFaces], Frames], trained: Trained, key: bytes) -> Protect:
    def protect(frames: Frames, contents: list[bytes]) -> Frames:
        return how(MaskedFaces.of(frames, contents, trained.masking, trained.preset, key))

    return protect


def _require_alike(plain: Trained, trained: Trained) -> None:
    if plain.header["recipe"]["loss"] != "mse":
        raise UnfaceError(f"--plain: was trained with loss {plain.header['recipe']['loss']!r}; expected mse")
    if (plain.preset, plain.masking) != (trained.preset, trained.masking):
        raise UnfaceError("--plain: has another preset or mask ratio than the release; train it alike")


def _other_key(key: bytes) -> bytes:
    """The attacker's masks: never those of the owner, and the same in every run."""
    return hashlib.sha256(b"unface facemae attacker\n" + key).digest()
