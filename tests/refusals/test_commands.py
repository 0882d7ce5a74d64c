"""If these fail, bad input ends in a traceback, in a page of text, in half an output, or in work done for nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.data.pictures import people, write_zip
from tests.encode.tiny import write_onnx
from tests.kit.command import unface
from tests.kit.results import audited, erased, raw
from tests.refusals.table import Row, table
from tests.release.made import sets
from unface import ISP, make_identities, write_embeddings
from unface.data import EmbeddingSet, Space
from unface.erase import Projection, fit_projection

Build = Callable[[Path], object]
PEOPLE = make_identities(40, 6, 16, rank=3, between=3.0, seed=3)
NAMES = np.array(PEOPLE.names)[PEOPLE.identities]
ARCFACE = Space("arcface", None, 16, normalised=False)


def command(name: str, line: str, refusal: str, build: Build | None = None) -> Row:
    """A refused command, with the code, the place (- if none) and words of its refusal: "file | out | 'tiny'".

    Its folder holds faces.parquet and p.safetensors, unless ``build`` says what it holds.
    """
    code, where, *words = refusal.split(" | ")
    return Row(name, line, code, None if where == "-" else where, tuple(words), build=build or fitted)


def faces(folder: Path, **changed: Any) -> None:
    given: dict[str, Any] = {"vectors": PEOPLE.vectors, "identities": NAMES, "ids": PEOPLE.ids, "space": ARCFACE}
    write_embeddings(EmbeddingSet.from_arrays(**given | changed), folder / "faces.parquet")


def fitted(folder: Path) -> None:
    faces(folder)
    projection().save(folder / "p.safetensors")


def projection() -> Projection:
    return fit_projection(ISP(3), EmbeddingSet.from_arrays(PEOPLE.vectors, NAMES, space=ARCFACE).unit())


def beside(name: str, content: bytes | Build = b"mine") -> Build:
    """The usual files and one more."""

    def build(folder: Path) -> None:
        fitted(folder)
        if isinstance(content, bytes):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        else:
            content(folder / name)

    return build


def table_of(**columns: Any) -> Build:
    return lambda path: pq.write_table(pa.table(columns), path)


def audit(name: str, options: str, refusal: str, source: str = "faces.parquet", build: Build | None = None) -> Row:
    """An audit of few settings, of which the given ones are others."""
    usual = {"--eraser": "none", "--far": "0.05", "--probe": "cosine", "--seeds": "1", "--bootstraps": "100"}
    kept = [f"{option} {value}" for option, value in usual.items() if option not in options.replace("=", " ").split()]
    line = " ".join(["audit", source, "--out out", *options.split(), *kept])
    return command(f"audit-{name}", line, refusal, build)


def stored(name: str, options: str, refusal: str) -> Row:
    """Vectors of a store that cannot be erased so."""

    def build(folder: Path) -> None:
        np.save(folder / "faces.npy", PEOPLE.vectors)
        fit_projection(ISP(5), PEOPLE.unit()).save(folder / "p.safetensors")

    return command(f"store-{name}", f"apply p.safetensors {options}", refusal, build)


def encoders(folder: Path) -> None:
    """A zip of pictures, and encoders called tiny and small in the cache."""
    file = write_onnx(folder / "tiny.onnx")
    for name in ("tiny", "small"):
        options = ("--mean", 127.5, "--std", 128, "--licence", "of-my-own")
        assert unface("models", "add", file, "--name", name, *options).code == 0
    write_zip(folder / "faces.zip", people(4, 3))


def pictures(name: str, line: str, refusal: str) -> Row:
    """A command about pictures."""
    return command(name, line, refusal, encoders)


def config(name: str, text: str, refusal: str) -> Row:
    build = beside("audit.toml", text.encode())
    line = "audit faces.parquet --out out --config audit.toml"
    code, *words = refusal.split(" | ")
    return command(f"config-{name}", line, " | ".join([code, "audit.toml", *words]), build)


def ruled(name: str, rule: str, options: str, words: str) -> Row:
    """A rule that the audit cannot answer, whatever it is of: its source is not looked for."""
    return _ruled(name, rule, f"absent.parquet {options}", f"policy | --policy policy.toml | rule 1  | {words}")


def unanswered(name: str, rule: str, options: str, words: str) -> Row:
    """A rule that an audit of these people cannot answer."""
    return _ruled(name, rule, f"faces.parquet {options}", f"audit | faces.parquet | {words}")


def _ruled(name: str, rule: str, options: str, refusal: str) -> Row:
    build = beside("policy.toml", f"[[require]]\n{rule}\n".encode())
    return command(f"policy-{name}", f"audit {options} --policy policy.toml --out out", refusal, build)


def release(name: str, options: str, refusal: str) -> Row:
    """A release that cannot be judged."""

    def build(folder: Path) -> None:
        given = sets(20)
        for part in ("synthetic", "training", "holdout"):
            write_embeddings(getattr(given, part), folder / f"{part}.parquet")
        vectors = given.holdout.vectors[:6].copy()
        np.savez(folder / "one.npz", vectors=vectors, identities=np.array(["p"] * 6))
        vectors[2, 3] = np.nan
        np.savez(folder / "nan.npz", vectors=vectors, identities=np.array(list("aabbcc")))

    line = f"release synthetic.parquet --training training.parquet --out out {options}"
    return command(f"release-{name}", line, refusal, build)


def gate(name: str, flags: str, refusal: str, audit: str = "audit/audit.json") -> Row:
    """An audit that cannot be judged so; one of another version lies beside it."""

    def build(folder: Path) -> None:
        path = audited(raw(), erased()).save(folder / "audit")
        (folder / "newer.json").write_text(path.read_text("utf-8").replace("unface.audit/2", "unface.audit/3"), "utf-8")
        (folder / "policy.toml").write_text("[[require]]\nfar = 1e-4\ntar_maximum = 0.1\n", "utf-8")
        (folder / "empty").mkdir()

    return command(f"gate-{name}", f"gate {audit} {flags}", refusal, build)


def nothing(_: Path) -> None:
    """What a command needs that is refused before it reads anything."""


def certify(name: str, options: str, refusal: str) -> Row:
    return command(f"certify-{name}", f"protect frequency certify --out out {options}", refusal, nothing)


def validate(name: str, options: str, refusal: str) -> Row:
    return command(f"validate-{name}", f"validate {options} --out out", refusal, nothing)


def synth(name: str, options: str, refusal: str, build: Build = nothing) -> Row:
    line = f"synth --identities 3 --images 2 --size 64 --out people {options}"
    return command(f"synth-{name}", line, refusal, build)


def holding(content: bytes) -> Build:
    return lambda folder: (folder / "faces.parquet").write_bytes(content)


def in_two_roles(folder: Path) -> None:
    roles = np.array(["fit", "train", "calibrate", "test"])[PEOPLE.identities % 4]
    roles[1] = "calibrate"
    faces(folder, labels={"role": roles})


def with_line_breaks(folder: Path) -> None:
    roles = np.array(["fit", "train", "calibrate", "test"])[PEOPLE.identities % 4]
    roles[0] = "test"
    faces(folder, identities=[f"{name}\nsecond line" for name in NAMES], labels={"role": roles})


def with_nan(folder: Path) -> None:
    vectors = PEOPLE.vectors.tolist()
    vectors[7][2] = float("nan")
    pq.write_table(pa.table({"id": PEOPLE.ids, "identity": NAMES, "vector": vectors}), folder / "faces.parquet")


def cut(share: float) -> Build:
    def build(folder: Path) -> None:
        faces(folder)
        content = (folder / "faces.parquet").read_bytes()
        (folder / "faces.parquet").write_bytes(content[: int(share * len(content))])

    return build


def of_people(people: int, images: int) -> Build:
    return lambda folder: write_embeddings(make_identities(people, images, 4), folder / "faces.parquet")


def with_clip(folder: Path) -> None:
    fitted(folder)
    clip = EmbeddingSet.from_arrays(PEOPLE.vectors, NAMES, space=Space("clip", None, 16, normalised=False))
    write_embeddings(clip, folder / "clip.parquet")


def inverted(folder: Path) -> None:
    """A store whose pictures are not there, and a recogniser's vectors of them."""
    for seed, name in enumerate(("stored", "recogniser")):
        space = Space(f"encoder-{seed}", None, 16, normalised=False)
        write_embeddings(EmbeddingSet.from_arrays(PEOPLE.vectors, NAMES, space=space), folder / f"{name}.parquet")


def of_ann(folder: Path) -> None:
    pq.write_table(pa.table({"identity": ["ann"] * 4, "vector": np.eye(4).tolist()}), folder / "faces.parquet")


def loop(folder: Path) -> None:
    fitted(folder)
    (folder / "loop").symlink_to("loop")


FEW = ["--far", "0.05", "--eraser", "none"]
PROBES = "cosine, ridge, lda, plda, net, mlp"
TARGET = "https://faces.example/"

test_refused = table(
    "commands",
    # audit
    audit("missing-file", "", "file | none.parquet", source="none.parquet"),
    audit(
        "no-identity-column",
        "--identity-column person",
        "missing-column | faces.parquet | 'person' | id | identity | vector",
    ),
    audit("no-vector-column", "--vector-column emb", "missing-column | faces.parquet | 'emb'"),
    *(
        audit(f"no-{option}", f"--{option} shoot", f"{code} | faces.parquet | shoot")
        for option, code in {"group": "audit", "context": "missing-column", "split-column": "audit"}.items()
    ),
    audit("nan", "", "vectors | faces.parquet | row 7 (id 'p0002-1') | NaN", build=with_nan),
    audit("one-identity", "", "too-few-identities | faces.parquet | 'ann'", build=of_ann),
    audit("six-people", "", "split | split | 6", build=of_people(6, 6)),
    audit("one-image-each", "", "vectors | faces.parquet | 0 of 40 | 40 with 1", build=of_people(40, 1)),
    audit(
        "two-images-each-for-the-paper",
        "--variant paper --seeds 2",
        "audit | - | 2 images | --images 3",
        build=of_people(40, 2),
    ),
    audit(
        "nine-of-two-images",
        "--variant paper --seeds 2 --images 9",
        "vectors | faces.parquet | 0 of 40 | 40 with 2",
        build=of_people(40, 2),
    ),
    audit(
        "identity-in-two-roles",
        "--split-column role",
        "split | split | 'p0001' | fit and calibrate",
        build=in_two_roles,
    ),
    audit(
        "names-with-line-breaks", "--split-column role", "split | split | 'p0001\\nsecond line'", build=with_line_breaks
    ),
    Row(
        "audit-column-with-line-break",
        ["audit", "faces.parquet", "--out", "out", "--group", "a\nb\tc", *FEW],
        "audit",
        "faces.parquet",
        "'a b c'",
        build=faces,
    ),
    *(audit(f"cut-at-{share}", "", "file | faces.parquet", build=cut(share)) for share in (0.1, 0.5, 0.99)),
    *(
        audit(
            f"of-no-kind-{at}",
            "",
            f"{'vectors' if content[:2] == b'PK' else 'file'} | faces.parquet",
            build=holding(content),
        )
        for at, content in enumerate([b"", b"id,identity\n1,ann\n", b"PAR1", b"PK\x03\x04", b"\x93NUMPY\x01\x00"])
    ),
    audit("probe", "--probe forest", f"name | - | 'forest' | {PROBES}"),
    audit("probe-of-no-name", "--probe cosine,", f"name | - | '' | {PROBES}"),
    audit("variant", "--variant mine", "audit | - | 'mine' | unface or paper"),
    audit("bootstrap", "--bootstrap jackknife", "audit | - | 'jackknife' | double-or-nothing or multinomial"),
    audit("device", "--device tpu", "pairs | - | 'tpu' | 'cpu' or 'cuda'"),
    audit("far-word", "--far one", "settings | --far | 'one'"),
    audit("far-of-nothing", "--far 0.1,,0.2", "settings | --far | ''"),
    audit("far-0", "--far 0", "probe | - | 0"),
    audit("far-2", "--far 2", "probe | - | 2"),
    audit("far-nan", "--far nan", "probe | - | nan"),
    audit("far-below-0", "--far=-0.1", "probe | - | -0.1"),
    audit("k-half", "--k 1.5", "settings | --k | 1.5"),
    audit("k-infinite", "--k inf", "settings | --k | inf"),
    audit("k-nan", "--k nan", "settings | --k | nan"),
    audit("k-word", "--k few", "settings | --k | 'few'"),
    audit("k-0", "--k 0", "probe | - | 0"),
    audit("k-7", "--k 7", "audit | - | k = 7 | 7 images | 6"),
    audit("k-5-for-the-paper", "--seeds 2 --variant paper --k 5", "audit | - | k = 5 | 7 images | 6"),
    # 8 people of 6 images: 28 · 36 pairs; n people have 18 n (n − 1), and 409 is the first n with 3 million
    audit("far-too-low", "--far 1e-6", "audit | faces.parquet | FAR 1e-6 | 2,044 people | 40 | --far 0.01"),
    audit("eraser", "--eraser magic", "name | - | 'magic' | isp, "),
    audit("no-eraser-and-one", "--eraser isp,none", "settings | --eraser none"),
    audit("rank-of-no-eraser", "--rank 2", "audit | --rank, --energy or --target"),
    audit("rank-and-energy", "--eraser isp --rank 2 --energy 0.5", "settings | - | --rank, --energy and --target"),
    audit("part-built-in", "--part maps", "settings | --part maps"),
    audit("part-of-nobody", "--part nothing", "settings | --part nothing | unface.parts"),
    audit("fit-counts-word", "--fit-counts some", "settings | --fit-counts | 'some'"),
    audit("detector-for-vectors", "--detector yunet", "settings | --detector | --encoder"),
    audit("licence-for-vectors", "--accept-licence", "settings | --accept-licence | --encoder"),
    audit("attribution-of-vectors", "--attribution", "settings | -"),
    audit("out-is-a-file", "", "output | out", build=beside("out")),
    command("audit-out-in-a-file", "audit faces.parquet --out taken/out", "output | taken/out", build=beside("taken")),
    audit("finished", "", "output | out/audit.json | --force", source="gone.parquet", build=beside("out/audit.json")),
    *(
        audit(f"beside-{name}", "", f"output | out/{name} | --force", build=beside(f"out/{name}"))
        for name in ("report.html", "suspects.csv", "exposed.csv")
    ),
    config("key", "fra = 1", "settings | 'fra' | accept-licence, "),
    config("no-toml", "far = ", "result"),
    config("table", "[far]\nlow = 1", "settings | far"),
    config("seeds-word", 'seeds = "many"', "settings | seeds"),
    config("seeds-0", "seeds = 0", "settings | seeds | 1"),
    config("rank-half", "rank = 1.5", "settings | rank"),
    config("rank-true", "rank = true", "settings | rank | True"),
    config("flag-word", 'no-maps = "false"', "settings | no-maps | 'false'"),
    config("flag-twice", "maps = true\nno-maps = true", "settings | no-maps"),
    command("memory", "--memory 1k gate out", "memory | --memory | '1k'", build=nothing),
    command("memory-after-the-command", "gate --memory 1k out", "memory | --memory | '1k'", build=nothing),
    command("memory-at-the-end", "gate out --memory=1k", "memory | --memory | '1k'", build=nothing),
    # policies
    ruled("far", "far = 1e-5\ntar_max = 0.1", "", "FAR 1e-5 | 1e-3, 1e-4 | --far "),
    ruled("far-of-an-improvement", "far = 1e-5\nbeats = 'pca'", "--far 1e-3", "FAR 1e-5 | --far 1e-3,"),
    ruled("k", "far = 1e-3\ntar_max = 0.1\nk = 3", "--far 1e-3 --k 1,2", "k = 3 | k = 1, 2 | --k 1,2,3"),
    ruled("utility", "utility = 'knn'\nretained_min = 0.9", "", "knn | --utility"),
    ruled("space", "far = 1e-3\ntar_max = 0.1", "--eraser isp,sal", "2 erasers | space ="),
    ruled("validation", "success_max = 0.1\nfar = 1e-3\nqueries = 9", "", "'unface validate'"),
    ruled("context", "far = 1e-3\ntar_max = 0.1\ncontext_adjusted = true", "", "--group | --context"),
    unanswered("far-of-this-set", "far = 1e-4\ntar_max = 0.1", "", "FAR 1e-4"),
    unanswered("higher-far-of-this-set", "far = 1e-3\ntar_max = 0.1", "", "FAR 1e-3"),
    unanswered("k-of-this-set", "far = 0.05\ntar_max = 0.1\nk = 3", "--far 0.05", "k = 3 | k = 1, 4"),
    unanswered("k-beyond-this-set", "far = 0.05\ntar_max = 0.1\nk = 16", "--far 0.05", "more pictures of each person"),
    command(
        "policy-of-an-audit-for-a-validation",
        "validate --target encoder:sface --enrol nobody --out out --policy policy.toml",
        "policy | --policy policy.toml | rule 1  | 'unface audit'",
        build=beside("policy.toml", b"[[require]]\nfar = 1e-4\ntar_max = 0.01\n"),
    ),
    command(
        "policy-of-an-audit-for-an-inversion",
        "invert nobody --encoder a --out out --policy policy.toml",
        "policy | --policy policy.toml | rule 1  | 'unface audit'",
        build=beside("policy.toml", b"[[require]]\nfar = 1e-4\ntar_max = 0.01\n"),
    ),
    # gate
    gate("tar-max-5", "--tar-max 5 --far 1e-4", "policy | --tar-max | 5.0 | 0.05"),
    gate("tar-max-nan", "--tar-max nan --far 1e-4", "policy | --tar-max | nan"),
    gate("without-far", "--tar-max 0.1", "policy | --far"),
    gate("k-0", "--tar-max 0.1 --far 1e-4 --k 0", "policy | --k | 0"),
    gate("retained-min-without-share", "--retained-min knn", "settings | --retained-min | 'knn' | knn=0.9"),
    gate("retained-min-word", "--retained-min knn=much", "settings | --retained-min | 'knn=much'"),
    gate("retained-min-without-measure", "--retained-min =0.9", "policy | --retained-min | ''"),
    gate("retained-min-90", "--retained-min knn=90", "policy | --retained-min | 90.0 | 0.9"),
    gate("unknown-key", "--policy policy.toml", "policy | policy.toml | rule 1 | 'tar_maximum'"),
    gate("newer", "--retained-min knn=1", "result | newer.json | 'unface.audit/3' | 'unface.audit/2'", "newer.json"),
    gate("missing", "--retained-min knn=1", "result | none.json", "none.json"),
    gate("empty-folder", "--retained-min knn=1", "result | empty | audit.json | protection.json", "empty"),
    command("report-empty-folder", "report empty", "result | empty | audit.json", lambda at: (at / "empty").mkdir()),
    # fit
    command("fit-rank-beyond-dim", "fit faces.parquet --out q --rank 17", "fit | isp | rank 17 | 16"),
    command(
        "fit-rank-beyond-people",
        "fit faces.parquet --out q --hold-out 0.75 --rank 10",
        "fit | isp | rank 10 | 10 identities",
    ),
    command(
        "fit-rank-and-energy",
        "fit faces.parquet --out q --rank 3 --energy 0.5",
        "settings | - | --rank, --energy and --target",
    ),
    command("fit-energy", "fit faces.parquet --out q --energy 2", "fit | isp | energy 2"),
    command("fit-target", "fit faces.parquet --out q --target 5", "audit | - | '5' | 0.05@1e-4"),
    command(
        "fit-target-too-low",
        "fit faces.parquet --out q --target 0.05@1e-9",
        "audit | faces.parquet | FAR 1e-9 | --target 0.05@0.01",
    ),
    command(
        "fit-task-missing", "fit faces.parquet --out q --eraser utility-pca", "eraser | - | 'utility-pca' | --spare"
    ),
    command(
        "fit-task-not-spared",
        "fit faces.parquet --out q --rank 3 --spare faces.parquet",
        "audit | isp | --spare | utility-pca",
    ),
    command(
        "fit-no-identity-column",
        "fit faces.parquet --out q --identity-column who",
        "missing-column | faces.parquet | 'who' | --identity-column",
    ),
    command(
        "fit-hold-out", "fit faces.parquet --out q --hold-out 0.05", "audit | certificate | 2 identities | --hold-out"
    ),
    command(
        "fit-unlabelled",
        "fit bare.parquet --out q",
        "missing-column | bare.parquet | 'identity'",
        build=beside("bare.parquet", table_of(id=["a"], vector=[[1.0]])),
    ),
    command("fit-finished", "fit faces.parquet --out p.safetensors --rank 2", "output | p.safetensors | --force"),
    command("fit-to-no-folder", "fit faces.parquet --out nowhere/out", "output | nowhere/out | nowhere"),
    command("fit-over-its-source", "fit faces.parquet --out faces.parquet --rank 3 --force", "output | faces.parquet"),
    command("fit-over-itself", "fit faces.parquet --out q --onnx q --rank 3", "output | q"),
    command("fit-loop-of-links", "fit loop --out q", "file | loop", build=loop),
    command("fit-eraser-of-a-folder", "fit . --out ../q --eraser rlac", "name | - | 'rlac' | isp, "),
    command("fit-ray-and-threads", "fit . --out ../q --ray auto --threads 2", "settings | --threads | --ray"),
    # apply
    command("apply-finished", "apply p.safetensors faces.parquet out", "output | out | --force", build=beside("out")),
    command("apply-to-no-folder", "apply p.safetensors faces.parquet nowhere/out", "output | nowhere/out | nowhere"),
    command("apply-to-a-folder", "apply p.safetensors faces.parquet .", "output | ."),
    command(
        "apply-other-space",
        "apply p.safetensors clip.parquet out",
        "projection | projection | 'arcface' | 'clip'",
        build=with_clip,
    ),
    command("apply-no-projection", "apply faces.parquet faces.parquet out", "projection | faces.parquet"),
    command("apply-missing-projection", "apply none faces.parquet out", "file | none"),
    command("apply-missing-source", "apply p.safetensors none out", "file | none"),
    command("apply-parquet-called-npz", "apply p.safetensors faces.parquet out.npz", "apply | out.npz"),
    command("apply-over-its-source", "apply p.safetensors faces.parquet faces.parquet", "output | faces.parquet"),
    command(
        "apply-over-its-source-forced",
        "apply p.safetensors faces.parquet faces.parquet --force",
        "output | faces.parquet",
    ),
    command(
        "apply-over-its-projection-forced",
        "apply p.safetensors faces.parquet p.safetensors --force",
        "output | p.safetensors",
    ),
    command(
        "apply-one-file-to-a-folder", "apply p.safetensors faces.parquet clean/", "settings | clean/ | faces.parquet"
    ),
    command("apply-one-file-to-a-url", "apply p.safetensors faces.parquet s3://bucket/clean.parquet", "settings | OUT"),
    command("apply-one-file-on-a-cluster", "apply p.safetensors faces.parquet out --ray auto", "settings | --ray"),
    command("apply-loop-of-links", "apply p.safetensors loop out", "file | loop", build=loop),
    command("apply-out-twice", "apply p.safetensors faces.parquet a --out b", "settings | --out"),
    command(
        "apply-out-of-a-store", "apply p.safetensors --store faiss:x.faiss --out b", "settings | --store | SRC, OUT"
    ),
    command(
        "apply-ray-and-threads", "apply p.safetensors . ../clean --ray auto --threads 2", "settings | --threads | --ray"
    ),
    stored("lossy", "--store npy:faces.npy --lossy-ok", "store | --lossy-ok | FAISS"),
    stored("missing", "--store npy:other.npy", "file | other.npy"),
    stored("and-source", "a.parquet b.parquet --store npy:faces.npy", "settings | --store | SRC, OUT"),
    stored("purge-of-files", "a.parquet b.parquet --purge", "settings | - | --store"),
    stored("source-without-out", "a.parquet", "settings | apply | SRC | OUT | --store"),
    stored("receipt-exists", "--store npy:faces.npy --receipt faces.npy", "output | faces.npy"),
    stored(
        "receipt-over-vectors", "--store npy:faces.npy --receipt faces.npy --force", "settings | faces.npy | --force"
    ),
    stored(
        "receipt-over-projection",
        "--store npy:faces.npy --receipt p.safetensors --force",
        "settings | p.safetensors | --force",
    ),
    stored("vector-column", "--store npy:faces.npy --vector-column embedding", "settings | --store | --vector-column"),
    stored("threads", "--store npy:faces.npy --threads 1", "settings | --store | --threads"),
    # pictures
    pictures("encode-no-encoder", "encode faces.zip --encoder absent --out e.parquet", "weights | absent | absent"),
    pictures(
        "encode-detector", "encode faces.zip --encoder tiny --detector haar --out e.parquet", "faces | - | 'haar'"
    ),
    pictures("encode-to-a-folder", "encode faces.zip --encoder tiny --out .", "output | ."),
    pictures(
        "encode-two-to-a-file",
        "encode faces.zip --encoder tiny --encoder small --out e.parquet",
        "settings | e.parquet | 2 encoders",
    ),
    pictures(
        "encode-one-twice", "encode faces.zip --encoder tiny,tiny --out vectors", "settings | encoder 'tiny' | 'tiny'"
    ),
    pictures(
        "encode-column-of-a-zip",
        "encode faces.zip --encoder tiny --identity-column person --out e.parquet",
        "pictures | faces.zip | --identity-column",
    ),
    pictures(
        "encode-research-only",
        "encode faces.zip --encoder arcface-mbf --detector none --out e.parquet",
        "weights | arcface-mbf | --accept-licence",
    ),
    pictures(
        "audit-pictures-no-encoder", "audit faces.zip --encoder tiny,absent --out out", "weights | absent | absent"
    ),
    pictures(
        "audit-pictures-encoder-twice",
        "audit faces.zip --encoder tiny,tiny --out out",
        "settings | encoder 'tiny' | 'tiny'",
    ),
    pictures(
        "audit-pictures-far",
        "audit faces.zip --encoder tiny --detector none --far often --out out",
        "settings | --far | 'often'",
    ),
    pictures(
        "audit-pictures-k", "audit faces.zip --encoder tiny --detector none --k 1.5 --out out", "settings | --k | 1.5"
    ),
    pictures(
        "audit-pictures-eraser",
        "audit faces.zip --encoder tiny --detector none --eraser isp,none --out out",
        "settings | --eraser none",
    ),
    pictures(
        "audit-pictures-projection",
        "audit faces.zip --encoder tiny --detector none --projection no.st --out out",
        "file | no.st",
    ),
    *(
        pictures(
            f"audit-pictures-{option.split()[0][2:]}",
            f"audit faces.zip --encoder tiny --detector none {option} --out out",
            f"settings | {option.split()[0]}",
        )
        for option in ("--vector-column v", "--context c", "--bad-rows drop")
    ),
    pictures(
        "attribute-nothing-looks",
        "audit faces.zip --encoder tiny --detector none --attribution --out out",
        "settings | -",
    ),
    # release
    release("without-holdout", "--far 1e-2 --k 1", "settings | --holdout"),
    release(
        "holdout-is-training",
        "--holdout training.parquet --far 1e-2 --k 1",
        "release | training.parquet and training.parquet | 100 people | 'p0001'",
    ),
    release("k", "--holdout holdout.parquet --far 1e-2 --k 301", "release | k = 301 | synthetic.parquet | 300 faces"),
    release("far", "--holdout holdout.parquet --far 2", "settings | --far | 2"),
    release("faces-of-vectors", "--holdout holdout.parquet --show-faces", "settings | --show-faces"),
    release("missing", "--holdout missing.parquet", "file | missing.parquet"),
    release("nan", "--holdout nan.npz", "vectors | nan.npz | row 2"),
    release("one-identity", "--holdout one.npz", "too-few-identities | one.npz"),
    release(
        "no-identity-column",
        "--holdout holdout.parquet --identity-column who",
        "missing-column | training.parquet | 'who'",
    ),
    release(
        "trait-of-two",
        "--holdout holdout.parquet --trait eyes=a,b",
        "settings | --trait eyes=a,b | NAME=SYNTHETIC,TRAINING,HOLDOUT",
    ),
    release("crop-of-vectors", "--holdout holdout.parquet --crop eyes", "settings | --crop | --encoder"),
    release(
        "crop-ears",
        "--holdout holdout.parquet --crop ears --encoder sface",
        "settings | --crop ears | face, eyes, nose, mouth",
    ),
    release(
        "trait-with-encoder",
        "--holdout holdout.parquet --trait eyes=a,b,c --encoder sface",
        "settings | --trait | --crop",
    ),
    # protect
    certify("nothing", "", "settings | - | --scheme | --function"),
    certify("both", "--scheme dctdp --function a:b", "settings | -"),
    certify("scheme", "--scheme ppfr-fd", "protection | - | 'ppfr-fd' | dctdp, duetface, partialface"),
    certify("variant", "--scheme dctdp --variant newest", "protection | - | 'newest' | published, as-attacked"),
    certify("variant-of-a-function", "--function a:b --variant published", "settings | --variant | --scheme"),
    certify("no-module", "--function nothing_here:b", "name | nothing_here:b | 'nothing_here'"),
    certify("no-function", "--function function", "protection | --function function | module:function"),
    certify("encoder-without-pictures", "--scheme dctdp --encoder sface", "settings | --encoder | --pictures"),
    command(
        "certify-finished",
        "protect frequency certify --scheme dctdp --out out",
        "output | out/certificate.json | --force",
        build=beside("out/certificate.json"),
    ),
    # validate
    validate(
        "nobody-allowed-it",
        f"--target {TARGET}{{person}} --enrol x",
        "validation | https://faces.example/{person} | --authorised-by",
    ),
    validate("nobody-is-compared", f"--target {TARGET} --enrol x", "validation | https://faces.example/"),
    validate(
        "field", "--target http://localhost/{person} --enrol x --field a", "settings | --field | 'a' | NAME=VALUE"
    ),
    validate("no-target", "--target nothing --enrol x", "validation | 'nothing' | nothing"),
    validate(
        "quiz-without-attack", "--target encoder:sface --enrol x --quiz", "settings | --quiz | map2v | map2v-improved"
    ),
    validate("score-path-of-a-command", "--target command:true --enrol x --score-path a", "validation | command"),
    validate(
        "no-such-program",
        "--target command:no-such-program --enrol x --continue",
        "validation | command:no-such-program | no-such-program",
    ),
    # synth
    synth("images", "--images 0", "synthesis | - | 0 | 1"),
    synth("identities", "--identities 0", "synthesis | - | 0 | 1"),
    synth("truncation", "--truncation 2", "synthesis | - | 2 | 1.5"),
    synth("judges", "--judges arcface-mbf,dlib", "judge | - | 'dlib' | arcface-mbf, edgeface-s"),
    synth("one-judge", "--judges sface", "judge | - | sface | 2"),
    synth("judge-twice", "--judges sface,sface", "judge | - | sface, sface | 2"),
    synth("device", "--device tpu", "prior | - | 'tpu'"),
    synth("research-only", "", "weights | arcface-mbf | --accept-licence"),
    synth("not-empty", "", "synthesis | people", build=beside("people/notes.txt")),
    synth("out-is-a-file", "", "output | people", build=beside("people")),
    command(
        "synth-out-in-a-file",
        "synth --identities 3 --images 2 --out people/in",
        "output | people/in",
        build=beside("people"),
    ),
    # invert
    command(
        "invert-without-pictures",
        "invert stored.parquet --encoder encoder-0 --attack alsuv --out out",
        "settings | stored.parquet | translate",
        build=inverted,
    ),
    command(
        "invert-other-encoder",
        "invert stored.parquet --encoder sface --translate recogniser.parquet --out out",
        "settings | stored.parquet | encoder-0 | sface",
        build=inverted,
    ),
)
