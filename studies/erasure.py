"""What erasers leave on real faces: one audit for each encoder, face set and way of fitting, then their tables.

    python -m studies.erasure EMBEDDINGS OUT [--encoder NAME …] [--sets celeba9k …] [--no-sweeps] [--device cuda]

EMBEDDINGS holds ``<encoder>_<set>.parquet`` as ``unface encode`` writes them: sets celeba20, celeba5, lfw and, if
there, celeba9k for the erasers' own people, and tiny (Tiny-ImageNet, class as identity) for utility. Each audit is a
folder of OUT; a finished one is not run again. ``python -m studies.tables OUT`` prints the tables.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unface import EmbeddingSet, Protocol, UnfaceError, audit, read_embeddings
from unface.auditing import Sweeps
from unface.data import DEFAULT_SHARES, PAPER_SHARES, Role, split_identities
from unface.data.curate import with_enough

FACES = ("celeba20", "celeba5", "lfw", "celeba9k")
PROBES = ("cosine", "ridge", "lda", "plda")
ERASERS = ("isp", "leace")
RANK = 192
FIT_COUNTS = (320, 640, 1280, 2000, 2800)


@dataclass(frozen=True)
class Study:
    """One audit."""

    encoder: str
    faces: str
    way: str
    """``apart``: roles apart, fitted within; ``shared``: the paper's roles; ``on-SET``: fitted on another set.

    ``beyond``: apart, with the usual rank though vectors span no more dimensions than that.
    """

    @property
    def folder(self) -> str:
        return f"{self.encoder}_{self.faces}_{self.way}"


def studies(folder: Path, encoders: list[str]) -> Iterator[Study]:
    """Everything the files at hand allow."""
    for encoder in encoders:
        sets = [faces for faces in FACES if (folder / f"{encoder}_{faces}.parquet").exists()]
        for faces in sets:
            yield from (Study(encoder, faces, "apart"), Study(encoder, faces, "beyond"))
            if faces != "celeba9k":
                yield Study(encoder, faces, "shared")
            others = [other for other in ("celeba5", "celeba9k") if other in sets and faces in ("celeba20", "lfw")]
            yield from (Study(encoder, faces, f"on-{other}") for other in others)


def run(study: Study, folder: Path, out: Path, device: str, sweeps: bool) -> str:
    """Audit once; what is finished stays."""
    if (out / study.folder / "audit.json").exists():
        return f"{study.folder}: there"
    embeddings = read(folder, study.encoder, study.faces)
    tiny = folder / f"{study.encoder}_tiny.parquet"
    many = study.faces == "celeba9k"
    fit_on = read(folder, study.encoder, study.way.removeprefix("on-")) if study.way.startswith("on-") else None
    removed = rank(embeddings, fit_on, study)
    if study.way == "beyond" and removed < spanned(embeddings):
        return f"{study.folder}: vectors span more than {removed} dimensions"
    result = audit(
        embeddings,
        far=(1e-3, 1e-4, 1e-5, 1e-6) if many else (1e-3, 1e-4),
        eraser=ERASERS,
        rank=removed,
        fit_on=fit_on,
        utility=[objects(tiny)] if tiny.exists() else [],
        parts=[Sweeps(fit_counts=FIT_COUNTS if many else ())] if sweeps and study.way == "apart" else [],
        protocol=Protocol(
            # The records of before 0.2.0 have the mlp in both variants; now it is for the paper's alone.
            probe=(*PROBES, "mlp") if study.way == "shared" else PROBES,
            variant="paper" if study.way == "shared" else "unface",
            context="context" if "context" in embeddings.labels else None,
            device=device,
        ),
    )
    result.save(out / study.folder, force=True)
    return f"{study.folder}: {result.verdict}"


def read(folder: Path, encoder: str, faces: str) -> EmbeddingSet:
    """With the context of each picture where the file has it."""
    path = folder / f"{encoder}_{faces}.parquet"
    from pyarrow.parquet import read_schema

    return read_embeddings(path, context="context" if "context" in read_schema(path).names else None)


def objects(path: Path) -> EmbeddingSet:
    """Tiny-ImageNet with its own split, which the ids name."""
    given = read_embeddings(path)
    split = np.array(["train" if "train" in str(name) else "test" for name in given.ids])
    return replace(given, labels={"split": split})


def rank(audited: EmbeddingSet, fit_on: EmbeddingSet | None, study: Study) -> int:
    """The paper's 192 of 512, where dimensions and identities allow it."""
    if fit_on is not None:
        identities = len(fit_on.names)
    else:
        kept = int(np.count_nonzero(with_enough(audited, 2)))
        identities = split_sizes(kept, study.way == "shared")
    chosen, varied = min(RANK, 3 * audited.space.dim // 8, identities - 1), spanned(audited)
    return chosen if chosen < varied or study.way == "beyond" else 3 * varied // 8


def spanned(audited: EmbeddingSet) -> int:
    """Dimensions that vectors vary in: an encoder may write more numbers than it has directions."""
    centred = audited.vectors - audited.vectors.mean(axis=0, dtype=np.float64)
    sizes = np.sqrt(np.linalg.eigvalsh(centred.T @ centred).clip(min=0.0))
    return int(np.count_nonzero(sizes > 1e-3 * sizes[-1]))


def split_sizes(identities: int, shared: bool) -> int:
    """How many identities erasers are fitted on."""
    shares, role = (PAPER_SHARES, Role.TRAIN) if shared else (DEFAULT_SHARES, Role.FIT)
    return split_identities(map(str, range(identities)), shares=shares).counts()[role]


def main() -> None:
    """Run what is not there yet."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("embeddings", type=Path)
    given.add_argument("out", type=Path)
    given.add_argument("--encoder", nargs="*", default=None)
    given.add_argument("--device", default="cpu")
    given.add_argument("--processes", type=int, default=1)
    given.add_argument("--sets", nargs="*", default=FACES)
    given.add_argument("--no-sweeps", action="store_true")
    asked = given.parse_args()
    found = sorted({path.name.rsplit("_", 1)[0] for path in asked.embeddings.glob("*_*.parquet")})
    wanted = [study for study in studies(asked.embeddings, asked.encoder or found) if study.faces in asked.sets]
    if not wanted:
        names = f"<encoder>_<set>.parquet, where a set is {', '.join(asked.sets)}"
        raise SystemExit(f"{asked.embeddings}: nothing to audit in it; give a folder of {names}")
    with ProcessPoolExecutor(asked.processes) as pool:
        jobs = {
            study: pool.submit(run, study, asked.embeddings, asked.out, asked.device, not asked.no_sweeps)
            for study in wanted
        }
        for study, job in jobs.items():
            try:
                print(job.result(), flush=True)
            except UnfaceError as error:
                print(f"{study.folder}: not run: {error}", flush=True)


if __name__ == "__main__":
    main()
