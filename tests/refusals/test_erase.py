"""If these fail, an eraser learns from what it cannot learn from, or a projection that is none is applied."""

import json
import struct
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from safetensors.numpy import load, save

from tests.erase.people import people
from tests.refusals.table import Row, table
from unface.data import Space
from unface.erase import (
    INLP,
    ISP,
    LEACE,
    RLACE,
    SAL,
    Eraser,
    FairPCA,
    Keeper,
    LabelFreePCA,
    Projection,
    RandomSubspace,
    UtilityLEACE,
    UtilityPCA,
    certificate,
    copy_covariance,
    file,
    make_eraser,
    principal_cosines,
)
from unface.erase.eraser import chosen_rank
from unface.erase.gate import Gate, fit_gate
from unface.moments import class_moments
from unface.result.face_gate import GateCertificate
from unface.result.numbers import Certificate, Estimate, Rate

PEOPLE = people(8, 5, 6)
X, Y = PEOPLE.vectors.astype(np.float64), PEOPLE.identities
WITH_NAN = np.where(np.arange(X.size).reshape(X.shape) == 9, np.nan, X)
WITH_INF = np.where(np.isnan(WITH_NAN), np.inf, X)
ONE = np.zeros(len(X))
FLAT = X * [1, 1, 0, 0, 0, 0]
MORE = people(12)
CROSS = np.vstack([np.eye(24), -np.eye(24)])
NOISE = np.eye(6)
KEY = "unface.projection"


def fit(name: str, eraser: Eraser, *names: str, x: Any = X, y: Any = Y, where: str | None = None) -> Row:
    """An eraser that cannot be fitted."""
    return Row(name, lambda _: eraser.fit(x, y), "fit", where or eraser.kind, names)


def tiny() -> Projection:
    """Numbers that any machine writes alike."""
    return Projection(
        kind="isp",
        directions=np.array([[0.6], [0.8], [0.0]]),
        spectrum=np.array([2.0, 0.5]),
        space=Space(encoder="sscd", weights_sha256="ab" * 32, dim=3, normalised=True),
    )


def loaded(name: str, content: bytes, *names: str) -> Row:
    """A file that holds no projection."""
    return Row(
        f"file-{name}",
        lambda _: Projection.load("p"),
        "projection",
        "p",
        names,
        build=lambda folder: (folder / "p").write_bytes(content),
    )


def rewritten(
    name: str, *names: str, arrays: dict[str, np.ndarray[Any, Any] | None] | None = None, **fields: Any
) -> Row:
    """A file with other content, or without some, whose hash is right: only its meaning is wrong."""
    content = file.to_bytes(tiny())
    held = {name: array for name, array in {**load(content), **(arrays or {})}.items() if array is not None}
    header = json.loads(json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"][KEY])
    header = {**header, **fields}
    header.pop("content_sha256")
    header["content_sha256"] = file._content_hash(header, held)
    return loaded(f"rewritten-{name}", save(held, {KEY: json.dumps(header, sort_keys=True)}), *names)


def parts(name: str, *names: str, where: str | None = "projection", **changed: Any) -> Row:
    """Arrays that are not those of a projection."""
    space = Space(None, None, 4, normalised=False)
    good = Projection("axes", np.eye(4)[:, [0]], np.ones(1), space, normalise=True)
    return Row(f"parts-{name}", lambda _: replace(good, **changed), "projection", where, names)


def applied(name: str, vectors: Any, *names: str, where: str = "apply") -> Row:
    """Vectors that cannot be erased."""
    space = Space(None, None, 4, normalised=False)
    by = Projection("axes", np.eye(4)[:, [0]], np.ones(1), space, normalise=True)
    return Row(f"apply-{name}", lambda _: by.apply(vectors), "projection", where, names)


def gate(name: str, others: int, held: int, *names: str, miss: float = 1e-3, where: str = "gate") -> Row:
    """A gate that cannot be fitted on so many vectors."""
    rng = np.random.default_rng(6)
    faces, apart = rng.standard_normal((50, 6)).astype(np.float32) + 3, rng.standard_normal((others, 6))
    moments = class_moments(faces, np.zeros(50, np.int64))
    others_, held_ = apart.astype(np.float32), rng.standard_normal((held, 6)).astype(np.float32) + 3
    call: Callable[[Path], object] = lambda _: fit_gate(moments, others_, held_, np.arange(held), miss=miss)  # noqa: E731
    return Row(f"gate-{name}", call, "eraser", where, names)


def gated(name: str, *names: str, by: Projection | None = None, **changed: Any) -> Row:
    """A gate that no projection can have."""
    certified = GateCertificate(1e-3, Rate.counted(0, 9), 0.3, Rate.counted(0, 3), 0.6, Rate.counted(1, 9))
    good = Gate(np.array([0.0, 1.0, 0.0]), 0.0, certified)
    space = Space("sscd", "ab" * 32, 3, normalised=True)
    of = by or Projection("isp", np.eye(3)[:, :1].copy(), np.ones(1), space)
    return Row(f"gated-{name}", lambda _: replace(of, gate=replace(good, **changed)), "projection", "projection", names)


def spaced(name: str, **changed: Any) -> Row:
    """Vectors of another space than the projection's; both are named."""
    by = tiny()
    other = replace(by.space, **changed)
    spaces = str(by.space), str(other)
    return Row(f"space-other-{name}", lambda _: by.require_space(other), "projection", "projection", spaces)


def whole(kind: torch.dtype) -> Row:
    act = lambda _: tiny().torch_module()(torch.tensor([[5, 0, 0]], dtype=kind))  # noqa: E731
    return Row(f"torch-{kind}", act, "projection", "torch_module", str(kind))


def random(rank: int, dim: int) -> Projection:
    return RandomSubspace(rank, 0).fit(np.eye(dim)).projection_


def without(module: str, call: Callable[[Projection], object]) -> Callable[[Path], object]:
    def act(_: Path) -> None:
        with patch.dict(sys.modules, {module: None}):
            sys.modules.pop("unface.erase.torch_module", None)
            call(tiny())

    return act


NONE = Estimate(0.0, 0.0, 0.0, 0.95)
CERTIFIED = asdict(Certificate(4, 8, NONE, NONE, NONE))
OTHER_NUMBERS = json.dumps({"weight": {"dtype": "F8_E8M0", "shape": [2], "data_offsets": [0, 2]}}).encode()
UNSCALED = replace(tiny(), normalise=False, space=replace(tiny().space, normalised=False))
UTILITY = np.ones((4, 24))

test_refused = table(
    "erase",
    fit("rank-beyond-dim", ISP(7), "rank 7", "6"),
    fit("rank-usual-beyond-dim", ISP(), "rank 192", "6"),
    *(
        fit(f"{eraser.kind}-rank-of-{name}", eraser, "rank 4", "3 identities", x=X[Y < 3], y=Y[Y < 3])
        for name, eraser in {"isp": ISP(4), "sal": SAL(4), "leace": LEACE(4), "rlace": RLACE(4)}.items()
    ),
    *(
        fit(f"{eraser.kind}-beyond-dim", eraser, "rank 7", "6")
        for eraser in (LabelFreePCA(7), RandomSubspace(7), INLP(7), RLACE(7), FairPCA(7))
    ),
    fit("fair-pca-rank", FairPCA(4), "6 directions", "rank 4"),
    fit("fair-pca-unfair", FairPCA(4, unfair=5), "5 directions"),
    fit("fair-pca-unfair-below-0", FairPCA(4, unfair=-1), "-1"),
    fit("rank-below-0", ISP(-1), "rank -1"),
    fit("rank-of-a-half", ISP(2.5), "rank 2.5"),  # type: ignore[arg-type]  # no whole number is what is tested
    fit("rank-true", ISP(True), "rank True"),
    fit("energy-too-high", ISP(energy=1.5), "energy 1.5"),
    fit("energy-nan", ISP(energy=float("nan")), "energy nan"),
    fit("inlp-per-round", INLP(2, per_round=0), "per_round 0"),
    fit("inlp-ridge", INLP(2, ridge=0), "ridge 0"),
    fit("rlace-steps", RLACE(2, steps=0), "0 steps"),
    fit("isp-one-identity", ISP(2), y=ONE),
    fit("rlace-one-identity", RLACE(2), y=ONE),
    fit("two-of-one-identity", ISP(1), x=X[:2], y=[0, 0]),
    fit("nan", ISP(2), "row 1", "column 3", "NaN", x=WITH_NAN),
    fit(
        "two-rows-of-nan",
        ISP(2),
        "row 1",
        "column 3",
        "2 such rows",
        x=np.where(np.isin(np.arange(X.size).reshape(X.shape), (9, 15)), np.nan, X),
    ),
    fit("infinity", LEACE(2), "row 1", "column 3", "infinity", x=WITH_INF),
    fit("identity-missing", ISP(2), y=[None, *Y[1:]]),
    fit("identity-nan", ISP(2), "NaN", y=np.array([np.nan, *Y[1:]])),
    fit("identities-too-few", ISP(2), y=Y[:-1]),
    fit("three-axes", ISP(2), "dim 3", x=X[:, :, None]),
    fit("no-identities", ISP(2), "identities=", y=None),
    fit("one-sample", ISP(1), "1 sample", x=X[:1], y=Y[:1]),
    fit("pca-one-sample", LabelFreePCA(1), "1 sample", x=X[:1], y=None),
    fit("isp-all-the-same", ISP(1), "0 directions", x=np.ones_like(X)),
    fit("isp-flat", ISP(4), "2 directions", x=FLAT),
    fit("pca-flat", LabelFreePCA(4), "2 directions", x=FLAT),
    fit("inlp-flat", INLP(4), "2 directions", x=FLAT),
    fit("leace-all-the-same", LEACE(), x=np.ones_like(X)),
    fit("inlp-all-the-same", INLP(1), x=np.ones_like(X)),
    fit("rlace-all-the-same", RLACE(1), x=np.ones_like(X)),
    fit("whitened-one-image-each", ISP(1, whitened=True), "whitened=True", x=X[:5], y=np.arange(5)),
    fit("whitened-copies", ISP(1, whitened=True), x=np.repeat(X[:4], 2, axis=0), y=np.repeat(np.arange(4), 2)),
    fit("too-large-to-sum", SAL(2), x=np.full((4, 3), 1e308), y=[0, 0, 1, 1]),
    Row("other-dimensions", lambda _: ISP(2).fit(X, Y).transform(X[:, :5]), "fit", "isp", ("5", "6")),
    Row(
        "batch-of-other-dimensions",
        lambda _: ISP(2).partial_fit(X, Y).partial_fit(X[:, :5], Y),
        "fit",
        "isp",
        ("5", "6"),
    ),
    Row("energy-0", lambda _: chosen_rank("isp", np.ones(3), 5, 4, None, 0.0), "fit", "isp", "energy 0"),
    Row("energy-below-0", lambda _: chosen_rank("isp", np.ones(3), 5, 4, None, -0.5), "fit", "isp", "energy -0.5"),
    Row("energy-above-1", lambda _: chosen_rank("isp", np.ones(3), 5, 4, None, 1.0001), "fit", "isp", "energy 1.0001"),
    Row("rank-beyond-spectrum", lambda _: chosen_rank("isp", np.ones(3), 5, 9, 4, None), "fit", "isp", ("4", "3")),
    Row("no-spectrum", lambda _: chosen_rank("isp", np.zeros(0), 5, 9, 4, None), "fit", "isp", "0 directions"),
    # erasers that keep something
    fit("utility-none", UtilityPCA(3), "utility=", "(n, 24)", x=MORE.vectors, y=MORE.identities),
    *(
        fit(f"utility-{name}", eraser, *names, x=MORE.vectors, y=MORE.identities)
        for name, eraser, names in [
            ("other-dim", UtilityLEACE(3, utility=np.ones((5, 7))), ("(5, 7)",)),
            ("one-vector", UtilityPCA(3, utility=np.ones((1, 24))), ("(1, 24)", "(n, 24)")),
            ("nan", UtilityPCA(3, utility=np.full((4, 24), np.nan)), ("NaN",)),
            ("infinity", UtilityPCA(3, utility=np.r_[[np.full(24, np.inf)], np.ones((3, 24))]), ("Inf",)),
            ("one-axis", UtilityPCA(3, utility=np.ones(24)), ("(24,)",)),
            ("all-the-same", UtilityPCA(3, utility=UTILITY), ()),
            ("of-text", UtilityPCA(3, utility=np.full((4, 24), "a")), ("<U1",)),
            ("rank-beyond-dim", UtilityPCA(25, utility=CROSS), ("rank 25", "24")),
            ("rank-beyond-people", UtilityLEACE(12, utility=CROSS), ("rank 12", "11")),
        ]
    ),
    fit(
        "utility-flat-people",
        UtilityPCA(4, utility=CROSS),
        "3 directions",
        x=MORE.vectors * np.r_[np.ones(3), np.zeros(21)],
        y=None,
    ),
    fit("keeper-too-many", Keeper(7, nuisance=NOISE), "7 of 6"),
    fit("keeper-none", Keeper(0, nuisance=NOISE), "0 of 6"),
    fit("keeper-mu", Keeper(3, mu=-1, nuisance=NOISE), "mu -1"),
    fit("keeper-no-copies", Keeper(3), "nuisance="),
    fit("keeper-other-dim", Keeper(3, nuisance=np.eye(5))),
    fit("keeper-copies-alike", Keeper(3, nuisance=0 * NOISE)),
    fit("keeper-one-image-each", Keeper(3, nuisance=NOISE), y=np.arange(len(X))),
    fit("keeper-flat", Keeper(3, nuisance=NOISE), "2", x=FLAT, y=Y),
    Row("copies-none", lambda _: copy_covariance(X[:0], X[:0]), "fit", "keeper"),
    Row(
        "keeper-by-name-without-copies",
        lambda _: make_eraser("keeper", 3),
        "eraser",
        None,
        ("'keeper'", "--copies", "--spare"),
    ),
    Row("keeper-by-name-keeps-none", lambda _: make_eraser("keeper", 6, nuisance=NOISE), "eraser", "keeper"),
    Row(
        "utility-by-name-without-task",
        lambda _: make_eraser("utility-pca", 3),
        "eraser",
        None,
        ("'utility-pca'", "--spare"),
    ),
    Row("name", lambda _: make_eraser("ours", 5), "name", None, ("'ours'", "isp, ", "utility-pca")),
    # gates
    gate("no-others", 0, 100, "0", "20"),
    gate("few-held-out", 100, 3, "3", "4", "2,995"),
    gate("miss-too-high", 100, 100, "0.5", miss=0.5, where="--miss 0.5"),
    gate("miss-0", 100, 100, "0", miss=0.0, where="--miss 0"),
    gated("weights-of-other-dim", "(2,)", "(3,)", weights=np.ones(2)),
    gated("weights-too-long", weights=np.array([0.0, 2.0, 0.0])),
    gated("weights-nan", "NaN", weights=np.array([np.nan, 1.0, 0.0])),
    gated("offset-infinite", "offset", offset=np.inf),
    gated("vectors-not-scaled", by=UNSCALED),
    # projections
    parts("too-long", directions=np.ones((4, 1))),
    parts("overflow", directions=np.full((4, 1), 1e200)),
    parts("nan", "directions", "NaN", directions=np.full((4, 1), np.nan)),
    parts("float32", "directions", "float32", directions=np.eye(4)[:, :1].astype(np.float32)),
    parts("too-many", "(4, 5)", directions=np.zeros((4, 5))),
    parts("other-dim", "5", "4", directions=np.eye(5)[:, :1]),
    parts("readers-of-others", readers=np.eye(4)[:, 1:2]),
    parts("readers-too-many", "readers", readers=np.eye(4)),
    parts("mean-of-other-dim", "mean", mean=np.zeros(3)),
    parts("spectrum-of-two-axes", "spectrum", spectrum=np.ones((1, 1))),
    applied("other-dim", np.zeros((2, 5)), "(2, 5)", "(n, 4)", where="projection"),
    applied("one-of-other-dim", np.zeros(3), "(3,)", where="projection"),
    applied("three-axes", np.zeros((2, 2, 4)), "(2, 2, 4)", where="projection"),
    applied("text", np.array(["a", "b", "c", "d"]), "<U1", where="projection"),
    applied("nan", np.array([[0, 0, 0, 1], [0, np.nan, 0, 1]]), "vector 1"),
    applied("infinity", np.array([0, np.inf, 0, 1]), "vector 0"),
    applied("too-large", np.array([0, 1e200, 0, 1]), "vector 0"),
    applied("first-of-two", np.array([[0, 1, 0, 1], [0, 1e200, 0, 1], [np.inf, 1e308, 0, 1]]), "vector 1"),
    applied("bool", np.zeros((2, 4), bool), "bool", where="projection"),
    spaced("encoder", encoder="clip"),
    spaced("weights", weights_sha256="b" * 64),
    spaced("dim", dim=8),
    Row(
        "cosines-of-two-dims",
        lambda _: principal_cosines(random(2, 10), random(2, 12)),
        "projection",
        "principal cosines",
        "10 and 12",
    ),
    Row(
        "cosines-of-rank-0",
        lambda _: principal_cosines(random(0, 10), random(2, 10)),
        "projection",
        "principal cosines",
        "0 and 2",
    ),
    Row(
        "cosines-with-rank-0",
        lambda _: principal_cosines(random(2, 10), random(0, 10)),
        "projection",
        "principal cosines",
        "2 and 0",
    ),
    Row(
        "certificate-of-three",
        lambda _: certificate(random(2, 6), X[Y < 3], Y[Y < 3]),
        "eraser",
        "certificate",
        ("3", "4"),
    ),
    Row(
        "certificate-of-nan",
        lambda _: certificate(random(2, 6), np.full((24, 6), np.nan), Y[:24]),
        "vectors",
        "certificate",
    ),
    Row(
        "certificate-of-copies",
        lambda _: certificate(random(2, 6), np.tile(X[:4], (5, 1)), np.repeat(np.arange(5), 4)),
        "eraser",
        "certificate",
    ),
    # files
    loaded("empty", b""),
    loaded("parquet", b"PAR1 and more of it"),
    loaded("no-metadata", struct.pack("<Q", 2) + b"{}", repr(KEY)),
    loaded("of-a-network", save({"weight": np.ones(3)}), repr(KEY)),
    loaded("no-json", save({"weight": np.ones(3)}, {KEY: "{"}), KEY),
    loaded("too-deep", save({"weight": np.ones(3)}, {KEY: "[" * 100_000}), KEY),
    loaded("no-object", save({"weight": np.ones(3)}, {KEY: "[]"}), KEY),
    loaded("no-schema", save({"weight": np.ones(3)}, {KEY: "{}"}), "schema"),
    loaded("numbers-of-another-kind", struct.pack("<Q", len(OTHER_NUMBERS)) + OTHER_NUMBERS + b"\0\0", "F8_E8M0"),
    Row("file-missing", lambda _: Projection.load("missing"), "file", "missing"),
    Row(
        "file-of-a-folder",
        lambda _: Projection.load("folder"),
        "projection",
        "folder",
        build=lambda at: (at / "folder").mkdir(),
    ),
    Row("file-with-zero-in-name", lambda _: Projection.load("a\0b"), "file", r"'a\x00b'"),
    Row(
        "save-to-a-folder",
        lambda _: tiny().save("folder"),
        "output",
        "folder",
        build=lambda at: (at / "folder").mkdir(),
    ),
    Row("save-nowhere", lambda _: tiny().save("nowhere/p"), "output", "p"),
    rewritten("schema", "schema", "'unface.projection/1'", schema="unface.projection/2"),
    rewritten("rank-of-text", "rank", rank="1"),
    rewritten("rank-of-others", "(3, 2)", rank=2),
    rewritten("owner", "owner", owner="ann"),
    rewritten("space", "space.weights_sha256", space={"encoder": "sscd"}),
    rewritten("certificate-of-text", "certificate.images", certificate=CERTIFIED | {"images": "8"}),
    rewritten("certificate-of-ann", "certificate.who", certificate=CERTIFIED | {"who": "ann"}),
    rewritten(
        "certificate-lacks", "certificate.fisher_left.low", certificate=CERTIFIED | {"fisher_left": {"value": 0}}
    ),
    rewritten("kind", "kind", "64", kind="k" * 65),
    rewritten("array-too-many", "directions, spectrum, weight", arrays={"weight": np.ones(3)}),
    rewritten("array-of-endless-name", "w" * 98 + ";", arrays={"w" * 200: np.ones(3)}),
    rewritten("array-lacks", "directions", arrays={"spectrum": None}),
    rewritten("array-too-long", arrays={"directions": np.ones((3, 1))}),
    rewritten("array-float32", "float32", arrays={"directions": np.ones((3, 1), np.float32)}),
    rewritten("array-nan", "mean", "NaN", arrays={"mean": np.full(3, np.nan)}),
    # packages that are not there
    Row(
        "without-faiss", without("faiss", Projection.faiss_transform), "projection", "faiss_transform", "unface[stores]"
    ),
    Row("without-onnx", without("onnx", lambda by: by.export(Path("p.onnx"))), "projection", "export", "unface[onnx]"),
    Row("without-torch", without("torch", Projection.torch_module), "projection", "torch_module", "unface[torch]"),
    whole(torch.int64),
    whole(torch.uint8),
)
