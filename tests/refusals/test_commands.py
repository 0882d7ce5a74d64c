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
from tests.refusals.table import Row, table
from tests.release.made import sets
from unface import ISP, make_identities, write_embeddings
from unface.data import EmbeddingSet, Space
from unface.erase import Projection, fit_projection

Build = Callable[[Path], object]
PEOPLE = make_identities(40, 6, 16, rank=3, between=3.0, seed=3)
NAMES = np.array(PEOPLE.names)[PEOPLE.identities]
ARCFACE = Space("arcface", None, 16, normalised=False)


def command(
    name: str, line: str, *names: str, code: str = "settings", where: str | None = None, build: Build | None = None
) -> Row:
    """A refused command; its folder holds faces.parquet and p.safetensors, unless it says what it holds."""
    return Row(name, line, code, where, names, build=build or fitted)


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


def audit(name: str, options: str, *names: str, source: str = "faces.parquet", **more: Any) -> Row:
    """An audit of few settings, of which the given ones are others."""
    usual = {"--eraser": "none", "--far": "0.05", "--probe": "cosine", "--seeds": "1", "--bootstraps": "100"}
    kept = [f"{option} {value}" for option, value in usual.items() if option not in options.replace("=", " ").split()]
    line = " ".join(["audit", source, "--out out", *options.split(), *kept])
    return command(f"audit-{name}", line, *names, **more)


def stored(name: str, options: str, *names: str, **more: Any) -> Row:
    """Vectors of a store that cannot be erased so."""

    def build(folder: Path) -> None:
        np.save(folder / "faces.npy", PEOPLE.vectors)
        fit_projection(ISP(5), PEOPLE.unit()).save(folder / "p.safetensors")

    return command(f"store-{name}", f"apply p.safetensors {options}", *names, build=build, **more)


def encoders(folder: Path) -> None:
    """A zip of pictures, and encoders called tiny and small in the cache."""
    file = write_onnx(folder / "tiny.onnx")
    for name in ("tiny", "small"):
        options = ("--mean", 127.5, "--std", 128, "--licence", "of-my-own")
        assert unface("models", "add", file, "--name", name, *options).code == 0
    write_zip(folder / "faces.zip", people(4, 3))


def pictures(name: str, line: str, *names: str, **more: Any) -> Row:
    """A command about pictures."""
    return command(name, line, *names, build=encoders, **more)


def config(name: str, text: str, *names: str, code: str = "settings") -> Row:
    build = beside("audit.toml", text.encode())
    line = "audit faces.parquet --out out --config audit.toml"
    return command(f"config-{name}", line, *names, code=code, where="audit.toml", build=build)


def ruled(name: str, rule: str, options: str, *names: str, source: str = "absent.parquet", **more: Any) -> Row:
    """A rule that the audit cannot answer: where its source is absent, it was not looked for."""
    build = beside("policy.toml", f"[[require]]\n{rule}\n".encode())
    line = f"audit {source} {options} --policy policy.toml --out out"
    return command(f"policy-{name}", line, *names, build=build, **more)


def release(name: str, options: str, *names: str, **more: Any) -> Row:
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
    return command(f"release-{name}", line, *names, build=build, **more)


def nothing(_: Path) -> None:
    """What a command needs that is refused before it reads anything."""


def certify(name: str, options: str, *names: str, code: str = "settings", where: str | None = None) -> Row:
    line = f"protect frequency certify --out out {options}"
    return command(f"certify-{name}", line, *names, code=code, where=where, build=nothing)


def validate(name: str, options: str, *names: str, code: str = "validation", where: str | None = None) -> Row:
    return command(f"validate-{name}", f"validate {options} --out out", *names, code=code, where=where, build=nothing)


def synth(name: str, options: str, *names: str, build: Build = nothing, **more: Any) -> Row:
    line = f"synth --identities 3 --images 2 --size 64 --out people {options}"
    return command(f"synth-{name}", line, *names, build=build, **more)


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
    audit("missing-file", "", source="none.parquet", code="file", where="none.parquet"),
    audit(
        "no-identity-column",
        "--identity-column person",
        "'person'",
        "id",
        "identity",
        "vector",
        code="missing-column",
        where="faces.parquet",
    ),
    audit("no-vector-column", "--vector-column emb", "'emb'", code="missing-column", where="faces.parquet"),
    *(
        audit(f"no-{option}", f"--{option} shoot", "shoot", code=code, where="faces.parquet")
        for option, code in {"group": "audit", "context": "missing-column", "split-column": "audit"}.items()
    ),
    audit("nan", "", "row 7 (id 'p0002-1')", "NaN", build=with_nan, code="vectors", where="faces.parquet"),
    audit("one-identity", "", "'ann'", build=of_ann, code="too-few-identities", where="faces.parquet"),
    audit("six-people", "", "6", build=of_people(6, 6), code="split", where="split"),
    audit("one-image-each", "", "1 image", "--images 2", build=of_people(40, 1), code="audit"),
    audit(
        "two-images-each-for-the-paper",
        "--variant paper --seeds 2",
        "2 images",
        "--images 3",
        build=of_people(40, 2),
        code="audit",
    ),
    audit(
        "nine-of-two-images",
        "--images 9",
        "0 of 40",
        "40 with 2",
        build=of_people(40, 2),
        code="vectors",
        where="faces.parquet",
    ),
    audit(
        "identity-in-two-roles",
        "--split-column role",
        "'p0001'",
        "fit and calibrate",
        build=in_two_roles,
        code="split",
        where="split",
    ),
    audit(
        "names-with-line-breaks",
        "--split-column role",
        r"'p0001\nsecond line'",
        build=with_line_breaks,
        code="split",
        where="split",
    ),
    Row(
        "audit-column-with-line-break",
        ["audit", "faces.parquet", "--out", "out", "--group", "a\nb\tc", *FEW],
        "audit",
        "faces.parquet",
        "'a b c'",
        build=faces,
    ),
    *(audit(f"cut-at-{share}", "", code="file", where="faces.parquet", build=cut(share)) for share in (0.1, 0.5, 0.99)),
    *(
        audit(
            f"of-no-kind-{at}",
            "",
            code="vectors" if content[:2] == b"PK" else "file",
            where="faces.parquet",
            build=holding(content),
        )
        for at, content in enumerate([b"", b"id,identity\n1,ann\n", b"PAR1", b"PK\x03\x04", b"\x93NUMPY\x01\x00"])
    ),
    audit("probe", "--probe forest", "'forest'", PROBES, code="name"),
    audit("probe-of-no-name", "--probe cosine,", "''", PROBES, code="name"),
    audit("variant", "--variant mine", "'mine'", "unface or paper", code="audit"),
    audit("bootstrap", "--bootstrap jackknife", "'jackknife'", "double-or-nothing or multinomial", code="audit"),
    audit("device", "--device tpu", "'tpu'", "'cpu' or 'cuda'", code="pairs"),
    audit("far-word", "--far one", "'one'", where="--far"),
    audit("far-of-nothing", "--far 0.1,,0.2", "''", where="--far"),
    audit("far-0", "--far 0", "0", code="probe"),
    audit("far-2", "--far 2", "2", code="probe"),
    audit("far-nan", "--far nan", "nan", code="probe"),
    audit("far-below-0", "--far=-0.1", "-0.1", code="probe"),
    audit("k-half", "--k 1.5", "1.5", where="--k"),
    audit("k-infinite", "--k inf", "inf", where="--k"),
    audit("k-nan", "--k nan", "nan", where="--k"),
    audit("k-word", "--k few", "'few'", where="--k"),
    audit("k-0", "--k 0", "0", code="probe"),
    audit("k-7", "--k 7", "k = 7", "7 images", "6", code="audit"),
    audit("k-5-for-the-paper", "--seeds 2 --variant paper --k 5", "k = 5", "7 images", "6", code="audit"),
    # 8 people of 6 images: 28 · 36 pairs; n people have 18 n (n − 1), and 409 is the first n with 3 million
    audit(
        "far-too-low", "--far 1e-6", "FAR 1e-6", "2,044 people", "40", "--far 0.01", code="audit", where="faces.parquet"
    ),
    audit("eraser", "--eraser magic", "'magic'", "isp, ", code="name"),
    audit("no-eraser-and-one", "--eraser isp,none", where="--eraser none"),
    audit("rank-of-no-eraser", "--rank 2", code="audit", where="--rank, --energy or --target"),
    audit("rank-and-energy", "--eraser isp --rank 2 --energy 0.5", "--rank, --energy and --target"),
    audit("part-built-in", "--part maps", where="--part maps"),
    audit("part-of-nobody", "--part nothing", "unface.parts", where="--part nothing"),
    audit("fit-counts-word", "--fit-counts some", "'some'", where="--fit-counts"),
    audit("detector-for-vectors", "--detector yunet", "--encoder", where="--detector"),
    audit("licence-for-vectors", "--accept-licence", "--encoder", where="--accept-licence"),
    audit("attribution-of-vectors", "--attribution"),
    audit("out-is-a-file", "", build=beside("out"), code="output", where="out"),
    command(
        "audit-out-in-a-file",
        "audit faces.parquet --out taken/out",
        build=beside("taken"),
        code="output",
        where="taken/out",
    ),
    audit(
        "finished",
        "",
        "--force",
        source="gone.parquet",
        build=beside("out/audit.json"),
        code="output",
        where="out/audit.json",
    ),
    *(
        audit(f"beside-{name}", "", "--force", code="output", where=f"out/{name}", build=beside(f"out/{name}"))
        for name in ("report.html", "suspects.csv", "exposed.csv")
    ),
    config("key", "fra = 1", "'fra'", "accept-licence, "),
    config("no-toml", "far = ", code="result"),
    config("table", "[far]\nlow = 1", "far"),
    config("seeds-word", 'seeds = "many"', "seeds"),
    config("seeds-0", "seeds = 0", "seeds", "1"),
    config("rank-half", "rank = 1.5", "rank"),
    config("rank-true", "rank = true", "rank", "True"),
    config("flag-word", 'no-maps = "false"', "no-maps", "'false'"),
    config("flag-twice", "maps = true\nno-maps = true", "no-maps"),
    command("memory", "--memory 1k gate out", "'1k'", build=nothing, code="memory", where="--memory"),
    command("memory-after-the-command", "gate --memory 1k out", "'1k'", build=nothing, code="memory", where="--memory"),
    command("memory-at-the-end", "gate out --memory=1k", "'1k'", build=nothing, code="memory", where="--memory"),
    # policies
    ruled(
        "far",
        "far = 1e-5\ntar_max = 0.1",
        "",
        "rule 1 ",
        "FAR 1e-5",
        "1e-3, 1e-4",
        "--far ",
        code="policy",
        where="--policy policy.toml",
    ),
    ruled(
        "far-of-an-improvement",
        "far = 1e-5\nbeats = 'pca'",
        "--far 1e-3",
        "rule 1 ",
        "FAR 1e-5",
        "--far 1e-3,",
        code="policy",
        where="--policy policy.toml",
    ),
    ruled(
        "k",
        "far = 1e-3\ntar_max = 0.1\nk = 3",
        "--far 1e-3 --k 1,2",
        "rule 1 ",
        "k = 3",
        "k = 1, 2",
        "--k 1,2,3",
        code="policy",
        where="--policy policy.toml",
    ),
    ruled(
        "utility",
        "utility = 'knn'\nretained_min = 0.9",
        "",
        "rule 1 ",
        "knn",
        "--utility",
        code="policy",
        where="--policy policy.toml",
    ),
    ruled(
        "space",
        "far = 1e-3\ntar_max = 0.1",
        "--eraser isp,sal",
        "rule 1 ",
        "2 erasers",
        "space =",
        code="policy",
        where="--policy policy.toml",
    ),
    ruled(
        "validation",
        "success_max = 0.1\nfar = 1e-3\nqueries = 9",
        "",
        "rule 1 ",
        "'unface validate'",
        code="policy",
        where="--policy policy.toml",
    ),
    ruled(
        "context",
        "far = 1e-3\ntar_max = 0.1\ncontext_adjusted = true",
        "",
        "rule 1 ",
        "--group",
        "--context",
        code="policy",
        where="--policy policy.toml",
    ),
    ruled(
        "far-of-this-set",
        "far = 1e-4\ntar_max = 0.1",
        "",
        "FAR 1e-4",
        source="faces.parquet",
        code="audit",
        where="faces.parquet",
    ),
    ruled(
        "higher-far-of-this-set",
        "far = 1e-3\ntar_max = 0.1",
        "",
        "FAR 1e-3",
        source="faces.parquet",
        code="audit",
        where="faces.parquet",
    ),
    ruled(
        "k-of-this-set",
        "far = 0.05\ntar_max = 0.1\nk = 3",
        "--far 0.05",
        "k = 3",
        "k = 1, 4",
        source="faces.parquet",
        code="audit",
        where="faces.parquet",
    ),
    ruled(
        "k-beyond-this-set",
        "far = 0.05\ntar_max = 0.1\nk = 16",
        "--far 0.05",
        "--images 16",
        source="faces.parquet",
        code="audit",
        where="faces.parquet",
    ),
    command(
        "policy-of-an-audit-for-a-validation",
        "validate --target encoder:sface --enrol nobody --out out --policy policy.toml",
        "rule 1 ",
        "'unface audit'",
        build=beside("policy.toml", b"[[require]]\nfar = 1e-4\ntar_max = 0.01\n"),
        code="policy",
        where="--policy policy.toml",
    ),
    command(
        "policy-of-an-audit-for-an-inversion",
        "invert nobody --encoder a --out out --policy policy.toml",
        "rule 1 ",
        "'unface audit'",
        build=beside("policy.toml", b"[[require]]\nfar = 1e-4\ntar_max = 0.01\n"),
        code="policy",
        where="--policy policy.toml",
    ),
    # fit
    command("fit-rank-beyond-dim", "fit faces.parquet --out q --rank 17", "rank 17", "16", code="fit", where="isp"),
    command(
        "fit-rank-beyond-people",
        "fit faces.parquet --out q --hold-out 0.75 --rank 10",
        "rank 10",
        "10 identities",
        code="fit",
        where="isp",
    ),
    command("fit-rank-and-energy", "fit faces.parquet --out q --rank 3 --energy 0.5", "--rank, --energy and --target"),
    command("fit-energy", "fit faces.parquet --out q --energy 2", "energy 2", code="fit", where="isp"),
    command("fit-target", "fit faces.parquet --out q --target 5", "'5'", "0.05@1e-4", code="audit"),
    command(
        "fit-target-too-low",
        "fit faces.parquet --out q --target 0.05@1e-9",
        "FAR 1e-9",
        "--target 0.05@0.01",
        code="audit",
        where="faces.parquet",
    ),
    command(
        "fit-task-missing", "fit faces.parquet --out q --eraser utility-pca", "'utility-pca'", "--spare", code="eraser"
    ),
    command(
        "fit-task-not-spared",
        "fit faces.parquet --out q --rank 3 --spare faces.parquet",
        "--spare",
        "utility-pca",
        code="audit",
        where="isp",
    ),
    command(
        "fit-no-identity-column",
        "fit faces.parquet --out q --identity-column who",
        "'who'",
        "--identity-column",
        code="missing-column",
        where="faces.parquet",
    ),
    command(
        "fit-hold-out",
        "fit faces.parquet --out q --hold-out 0.05",
        "2 identities",
        "--hold-out",
        code="audit",
        where="certificate",
    ),
    command(
        "fit-unlabelled",
        "fit bare.parquet --out q",
        "'identity'",
        build=beside("bare.parquet", table_of(id=["a"], vector=[[1.0]])),
        code="missing-column",
        where="bare.parquet",
    ),
    command(
        "fit-finished",
        "fit faces.parquet --out p.safetensors --rank 2",
        "--force",
        code="output",
        where="p.safetensors",
    ),
    command("fit-to-no-folder", "fit faces.parquet --out nowhere/out", "nowhere", code="output", where="nowhere/out"),
    command(
        "fit-over-its-source",
        "fit faces.parquet --out faces.parquet --rank 3 --force",
        code="output",
        where="faces.parquet",
    ),
    command("fit-over-itself", "fit faces.parquet --out q --onnx q --rank 3", code="output", where="q"),
    command("fit-loop-of-links", "fit loop --out q", build=loop, code="file", where="loop"),
    command("fit-eraser-of-a-folder", "fit . --out ../q --eraser rlac", "'rlac'", "isp, ", code="name"),
    command("fit-ray-and-threads", "fit . --out ../q --ray auto --threads 2", "--ray", where="--threads"),
    # apply
    command(
        "apply-finished",
        "apply p.safetensors faces.parquet out",
        "--force",
        build=beside("out"),
        code="output",
        where="out",
    ),
    command(
        "apply-to-no-folder",
        "apply p.safetensors faces.parquet nowhere/out",
        "nowhere",
        code="output",
        where="nowhere/out",
    ),
    command("apply-to-a-folder", "apply p.safetensors faces.parquet .", code="output", where="."),
    command(
        "apply-other-space",
        "apply p.safetensors clip.parquet out",
        "'arcface'",
        "'clip'",
        build=with_clip,
        code="projection",
        where="projection",
    ),
    command("apply-no-projection", "apply faces.parquet faces.parquet out", code="projection", where="faces.parquet"),
    command("apply-missing-projection", "apply none faces.parquet out", code="file", where="none"),
    command("apply-missing-source", "apply p.safetensors none out", code="file", where="none"),
    command("apply-parquet-called-npz", "apply p.safetensors faces.parquet out.npz", code="apply", where="out.npz"),
    command(
        "apply-over-its-source", "apply p.safetensors faces.parquet faces.parquet", code="output", where="faces.parquet"
    ),
    command(
        "apply-over-its-source-forced",
        "apply p.safetensors faces.parquet faces.parquet --force",
        code="output",
        where="faces.parquet",
    ),
    command(
        "apply-over-its-projection-forced",
        "apply p.safetensors faces.parquet p.safetensors --force",
        code="output",
        where="p.safetensors",
    ),
    command("apply-one-file-to-a-folder", "apply p.safetensors faces.parquet clean/", "faces.parquet", where="clean/"),
    command("apply-one-file-to-a-url", "apply p.safetensors faces.parquet s3://bucket/clean.parquet", where="OUT"),
    command("apply-one-file-on-a-cluster", "apply p.safetensors faces.parquet out --ray auto", where="--ray"),
    command("apply-loop-of-links", "apply p.safetensors loop out", build=loop, code="file", where="loop"),
    command("apply-out-twice", "apply p.safetensors faces.parquet a --out b", where="--out"),
    command("apply-out-of-a-store", "apply p.safetensors --store faiss:x.faiss --out b", "SRC, OUT", where="--store"),
    command(
        "apply-ray-and-threads", "apply p.safetensors . ../clean --ray auto --threads 2", "--ray", where="--threads"
    ),
    stored("lossy", "--store npy:faces.npy --lossy-ok", "FAISS", code="store", where="--lossy-ok"),
    stored("missing", "--store npy:other.npy", code="file", where="other.npy"),
    stored("and-source", "a.parquet b.parquet --store npy:faces.npy", "SRC, OUT", where="--store"),
    stored("purge-of-files", "a.parquet b.parquet --purge", "--store"),
    stored("source-without-out", "a.parquet", "SRC", "OUT", "--store", where="apply"),
    stored("receipt-exists", "--store npy:faces.npy --receipt faces.npy", code="output", where="faces.npy"),
    stored("receipt-over-vectors", "--store npy:faces.npy --receipt faces.npy --force", "--force", where="faces.npy"),
    stored(
        "receipt-over-projection",
        "--store npy:faces.npy --receipt p.safetensors --force",
        "--force",
        where="p.safetensors",
    ),
    stored("vector-column", "--store npy:faces.npy --vector-column embedding", "--vector-column", where="--store"),
    stored("threads", "--store npy:faces.npy --threads 1", "--threads", where="--store"),
    # pictures
    pictures(
        "encode-no-encoder",
        "encode faces.zip --encoder absent --out e.parquet",
        "absent",
        code="weights",
        where="absent",
    ),
    pictures(
        "encode-detector", "encode faces.zip --encoder tiny --detector haar --out e.parquet", "'haar'", code="faces"
    ),
    pictures("encode-to-a-folder", "encode faces.zip --encoder tiny --out .", code="output", where="."),
    pictures(
        "encode-two-to-a-file",
        "encode faces.zip --encoder tiny --encoder small --out e.parquet",
        "2 encoders",
        where="e.parquet",
    ),
    pictures(
        "encode-one-twice", "encode faces.zip --encoder tiny,tiny --out vectors", "'tiny'", where="encoder 'tiny'"
    ),
    pictures(
        "encode-column-of-a-zip",
        "encode faces.zip --encoder tiny --identity-column person --out e.parquet",
        "--identity-column",
        code="pictures",
        where="faces.zip",
    ),
    pictures(
        "encode-research-only",
        "encode faces.zip --encoder arcface-mbf --detector none --out e.parquet",
        "--accept-licence",
        code="weights",
        where="arcface-mbf",
    ),
    pictures(
        "audit-pictures-no-encoder",
        "audit faces.zip --encoder tiny,absent --out out",
        "absent",
        code="weights",
        where="absent",
    ),
    pictures(
        "audit-pictures-encoder-twice",
        "audit faces.zip --encoder tiny,tiny --out out",
        "'tiny'",
        where="encoder 'tiny'",
    ),
    pictures(
        "audit-pictures-far",
        "audit faces.zip --encoder tiny --detector none --far often --out out",
        "'often'",
        where="--far",
    ),
    pictures(
        "audit-pictures-k", "audit faces.zip --encoder tiny --detector none --k 1.5 --out out", "1.5", where="--k"
    ),
    pictures(
        "audit-pictures-eraser",
        "audit faces.zip --encoder tiny --detector none --eraser isp,none --out out",
        where="--eraser none",
    ),
    pictures(
        "audit-pictures-projection",
        "audit faces.zip --encoder tiny --detector none --projection no.st --out out",
        code="file",
        where="no.st",
    ),
    *(
        pictures(
            f"audit-pictures-{option.split()[0][2:]}",
            f"audit faces.zip --encoder tiny --detector none {option} --out out",
            where=option.split()[0],
        )
        for option in ("--vector-column v", "--context c", "--bad-rows drop")
    ),
    pictures("attribute-nothing-looks", "audit faces.zip --encoder tiny --detector none --attribution --out out"),
    # release
    release("without-holdout", "--far 1e-2 --k 1", where="--holdout"),
    release(
        "holdout-is-training",
        "--holdout training.parquet --far 1e-2 --k 1",
        "100 people",
        "'p0001'",
        code="release",
        where="training.parquet and training.parquet",
    ),
    release(
        "k",
        "--holdout holdout.parquet --far 1e-2 --k 301",
        "synthetic.parquet",
        "300 faces",
        code="release",
        where="k = 301",
    ),
    release("far", "--holdout holdout.parquet --far 2", "2", where="--far"),
    release("faces-of-vectors", "--holdout holdout.parquet --show-faces", where="--show-faces"),
    release("missing", "--holdout missing.parquet", code="file", where="missing.parquet"),
    release("nan", "--holdout nan.npz", "row 2", code="vectors", where="nan.npz"),
    release("one-identity", "--holdout one.npz", code="too-few-identities", where="one.npz"),
    release(
        "no-identity-column",
        "--holdout holdout.parquet --identity-column who",
        "'who'",
        code="missing-column",
        where="training.parquet",
    ),
    release(
        "trait-of-two",
        "--holdout holdout.parquet --trait eyes=a,b",
        "NAME=SYNTHETIC,TRAINING,HOLDOUT",
        where="--trait eyes=a,b",
    ),
    release("crop-of-vectors", "--holdout holdout.parquet --crop eyes", "--encoder", where="--crop"),
    release(
        "crop-ears",
        "--holdout holdout.parquet --crop ears --encoder sface",
        "face, eyes, nose, mouth",
        where="--crop ears",
    ),
    release(
        "trait-with-encoder", "--holdout holdout.parquet --trait eyes=a,b,c --encoder sface", "--crop", where="--trait"
    ),
    # protect
    certify("nothing", "", "--scheme", "--function"),
    certify("both", "--scheme dctdp --function a:b"),
    certify("scheme", "--scheme ppfr-fd", "'ppfr-fd'", "dctdp, duetface, partialface", code="protection"),
    certify("variant", "--scheme dctdp --variant newest", "'newest'", "published, as-attacked", code="protection"),
    certify("variant-of-a-function", "--function a:b --variant published", "--scheme", where="--variant"),
    certify("no-module", "--function nothing_here:b", "'nothing_here'", code="name", where="nothing_here:b"),
    certify("no-function", "--function function", "module:function", code="protection", where="--function function"),
    certify("encoder-without-pictures", "--scheme dctdp --encoder sface", "--pictures", where="--encoder"),
    command(
        "certify-finished",
        "protect frequency certify --scheme dctdp --out out",
        "--force",
        build=beside("out/certificate.json"),
        code="output",
        where="out/certificate.json",
    ),
    # validate
    validate(
        "nobody-allowed-it",
        f"--target {TARGET}{{person}} --enrol x",
        "--authorised-by",
        where="https://faces.example/{person}",
    ),
    validate("nobody-is-compared", f"--target {TARGET} --enrol x", where="https://faces.example/"),
    validate(
        "field",
        "--target http://localhost/{person} --enrol x --field a",
        "'a'",
        "NAME=VALUE",
        code="settings",
        where="--field",
    ),
    validate("no-target", "--target nothing --enrol x", "nothing", where="'nothing'"),
    validate(
        "quiz-without-attack",
        "--target encoder:sface --enrol x --quiz",
        "map2v",
        "map2v-improved",
        code="settings",
        where="--quiz",
    ),
    validate("score-path-of-a-command", "--target command:true --enrol x --score-path a", where="command"),
    validate(
        "no-such-program",
        "--target command:no-such-program --enrol x --continue",
        "no-such-program",
        where="command:no-such-program",
    ),
    # synth
    synth("images", "--images 0", "0", "1", code="synthesis"),
    synth("identities", "--identities 0", "0", "1", code="synthesis"),
    synth("truncation", "--truncation 2", "2", "1.5", code="synthesis"),
    synth("judges", "--judges arcface-mbf,dlib", "'dlib'", "arcface-mbf, edgeface-s", code="judge"),
    synth("one-judge", "--judges sface", "sface", "2", code="judge"),
    synth("judge-twice", "--judges sface,sface", "sface, sface", "2", code="judge"),
    synth("device", "--device tpu", "'tpu'", code="prior"),
    synth("research-only", "", "--accept-licence", code="weights", where="arcface-mbf"),
    synth("not-empty", "", build=beside("people/notes.txt"), code="synthesis", where="people"),
    synth("out-is-a-file", "", build=beside("people"), code="output", where="people"),
    command(
        "synth-out-in-a-file",
        "synth --identities 3 --images 2 --out people/in",
        code="output",
        where="people/in",
        build=beside("people"),
    ),
    # invert
    command(
        "invert-without-pictures",
        "invert stored.parquet --encoder encoder-0 --attack alsuv --out out",
        "translate",
        build=inverted,
        where="stored.parquet",
    ),
    command(
        "invert-other-encoder",
        "invert stored.parquet --encoder sface --translate recogniser.parquet --out out",
        "encoder-0",
        "sface",
        build=inverted,
        where="stored.parquet",
    ),
)
