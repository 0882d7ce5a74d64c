"""If these fail, ``unface audit`` prints, writes or returns something else than scripts and people rely on."""

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.quick import PEOPLE, QUICK
from tests.kit import documents
from tests.kit.command import Done, unface
from tests.kit.page import Page
from unface import AuditResult, Protocol, audit, make_identities, write_embeddings
from unface.auditing import Albums, AttributeSwap, Exposures, Search, Sweeps
from unface.data import EmbeddingSet


@pytest.fixture(scope="module")
def shown(faces: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    out = tmp_path_factory.mktemp("table") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "140")
        return unface("audit", faces, "--out", out, *QUICK), out


def without_run(text: str) -> dict[str, object]:
    content: dict[str, object] = json.loads(text)
    content.pop("run")
    return content


def test_the_table_shows_the_verdict_the_worst_case_and_where_the_file_is(shown: tuple[Done, Path]) -> None:
    done, out = shown
    assert (done.code, done.err) == (0, "")
    result = AuditResult.load(out / "audit.json")
    page = " ".join(done.out.replace("│", " ").split())
    assert result.verdict in page
    assert done.out.count("◂") == len(result.worst) + 1  # and once where the mark is explained
    assert "TAR % at FAR 0.05" in done.out
    assert done.out.rstrip().splitlines()[-3:] == [
        str(out / "audit.json"),
        f"{out / 'exposed.csv'}: how often each test person is linked, by name",
        f"{out / 'report.html'}: the report",
    ]


def test_the_file_is_what_the_library_gives(shown: tuple[Done, Path], faces: Path) -> None:
    protocol = Protocol(far=0.05, probe=["cosine", "lda"], seeds=1, bootstraps=100)
    expected = audit(faces, eraser=(), protocol=protocol)
    found = AuditResult.load(shown[1] / "audit.json")
    assert found.model_dump(exclude={"run"}) == expected.model_dump(exclude={"run"})


def test_json_prints_the_file_and_nothing_else(faces: Path, tmp_path: Path) -> None:
    done = unface("audit", faces, "--out", tmp_path / "out", "--json", *QUICK)
    assert (done.code, done.err) == (0, "")
    assert done.out == (tmp_path / "out" / "audit.json").read_text(encoding="utf-8")
    AuditResult.model_validate_json(done.out)


def test_quiet_prints_nothing_at_all(faces: Path, tmp_path: Path, shown: tuple[Done, Path]) -> None:
    done = unface("audit", faces, "--out", tmp_path / "out", "--quiet", *QUICK)
    assert (done.code, done.out, done.err) == (0, "", "")
    quiet, plain = (folder / "audit.json" for folder in (tmp_path / "out", shown[1]))
    assert without_run(quiet.read_text()) == without_run(plain.read_text())


def test_rates_and_ks_may_be_repeated_or_listed_with_commas(faces: Path, tmp_path: Path) -> None:
    options = ["--eraser", "none", "--probe", "cosine", "--seeds", "1", "--bootstraps", "100", "--json"]
    listed = unface("audit", faces, "--out", tmp_path / "a", "--far", "0.1,5e-2", "--k", "1,2", *options)
    one_by_one = ["--far", "0.1", "--far", "0.05", "--k", "1", "--k", "2"]
    repeated = unface("audit", faces, "--out", tmp_path / "b", *one_by_one, *options)
    assert without_run(listed.out) == without_run(repeated.out)
    protocol = json.loads(listed.out)["protocol"]
    assert (protocol["far"], protocol["k"], protocol["probe"]) == ([0.1, 0.05], [1, 2], ["cosine"])


def test_every_option_reaches_the_audit(tmp_path: Path) -> None:
    shoots = np.arange(len(PEOPLE)) // 2
    roles = np.array(["fit", "train", "calibrate", "test"])[PEOPLE.identities % 4]
    names = np.array(PEOPLE.names)[PEOPLE.identities]
    labels = {"shoot": shoots, "role": roles}
    write_embeddings(EmbeddingSet.from_arrays(PEOPLE.vectors, names, labels=labels), tmp_path / "faces.parquet")
    done = unface(
        *["audit", tmp_path / "faces.parquet", "--out", tmp_path / "out", "--json"],
        *["--far", "0.1", "--k", "2", "--seeds", "2", "--probe", "ridge", "--probe", "cosine", "--images", "5"],
        *[
            "--variant",
            "paper",
            "--impostor-quota",
            "3",
            "--split-column",
            "role",
            "--group",
            "shoot",
            "--eraser",
            "none",
        ],
        *["--bootstraps", "120", "--bootstrap", "multinomial", "--seed", "7", "--device", "cpu"],
    )
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["protocol"] | {"score": None} == {
        "variant": "paper",
        "far": [0.1],
        "k": [2],
        "seeds": 2,
        "seed": 7,
        "probe": ["ridge", "cosine"],
        "score": None,
        "bootstrap": "multinomial",
        "bootstraps": 120,
        "level": 0.95,
        "impostor_quota": 3,
    }
    assert found["curated"]["images"] == 5
    assert found["roles"]["seed"] is None
    assert {point["context_adjusted"]["context"] for point in found["spaces"][0]["points"] if point["worst"]} == {
        "shoot"
    }


def test_columns_may_have_other_names_and_bad_rows_may_be_skipped(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    vectors = PEOPLE.vectors.tolist()
    vectors[3] = [float("nan")] * 8
    context = make_identities(40, 6, 3, seed=9).vectors.tolist()
    table = pa.table(
        {"who": np.array(PEOPLE.names)[PEOPLE.identities], "emb": vectors, "key": PEOPLE.ids, "backdrop": context}
    )
    pq.write_table(table, tmp_path / "faces.parquet")
    columns = ["--identity-column", "who", "--vector-column", "emb", "--id-column", "key", "--context", "backdrop"]
    done = unface(
        *["audit", tmp_path / "faces.parquet", "--out", tmp_path / "out", "--json", "--bad-rows", "drop"],
        *columns,
        *QUICK,
    )
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["source"]["rows"] == 239
    assert "skipped 1 of 240 rows: 1 with NaN in 'emb'" in found["source"]["notes"]
    assert found["source"]["bad_rows"] == {"rows": 1, "of": 240, "faults": {"NaN in 'emb'": 1}}
    assert found["curated"]["identities_dropped"] == found["curated"]["rows_dropped"] == 0
    assert found["spaces"][0]["points"][0]["probe"] == "cosine"


def test_suspects_are_pointed_to_but_not_printed(tmp_path: Path) -> None:
    vectors = PEOPLE.vectors.copy()
    vectors[0] = vectors[100]
    doubled = EmbeddingSet.from_arrays(vectors, np.array(PEOPLE.names)[PEOPLE.identities], ids=PEOPLE.ids)
    write_embeddings(doubled, tmp_path / "faces.parquet")
    done = unface("audit", tmp_path / "faces.parquet", "--out", tmp_path / "out", *QUICK)
    assert f"{tmp_path / 'out' / 'suspects.csv'}: rows and identities that look wrong" in done.out.splitlines()
    assert "p0001" not in done.out
    with (tmp_path / "out" / "suspects.csv").open(newline="") as file:
        assert list(csv.reader(file))[1] == ["near-duplicate", "p0001-0", "p0001", "p0017-4", "p0017"]


def test_brackets_in_a_path_are_printed_as_they_are(faces: Path, tmp_path: Path) -> None:
    out = tmp_path / "out [bold] [/x] :smile:"
    done = unface("audit", faces, "--out", out, *QUICK)
    assert str(out / "audit.json") in done.out.splitlines()


def test_force_overwrites(faces: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert unface("audit", faces, "--out", out, "--quiet", *QUICK).code == 0
    again = unface("audit", faces, "--out", out, "--quiet", "--force", "--seed", "1", *QUICK)
    assert (again.code, again.err) == (0, "")
    assert AuditResult.load(out / "audit.json").protocol.seed == 1


def test_several_erasers_are_compared_at_one_rank_beside_both_controls(faces: Path, tmp_path: Path) -> None:
    options = ["--far", "0.05", "--k", "1", "--seeds", "1", "--probe", "cosine", "--rank", "3", "--bootstraps", "100"]
    erasers = ["isp", "isp-whitened", "leace", "sal", "inlp", "fair-pca"]
    out = tmp_path / "out"
    options += ["--no-sweep", "--no-maps", "--album", "none"]
    done = unface("audit", faces, "--out", out, "--eraser", ",".join(erasers), *options)
    assert (done.code, done.err) == (0, "")
    result = AuditResult.load(out)
    assert [space.name for space in result.spaces] == ["raw", *erasers, "random", "pca"]
    assert {space.erasure.rank for space in result.spaces if space.erasure} == {3}
    assert list(result.parts) == ["search", "exposure"]  # which are always measured
    for name in erasers:
        space = result.space(name)
        assert space is not None
        assert {change.against for change in space.changes} == {one.name for one in result.spaces} - {name}
        assert any(line.startswith(f"{name} ") for line in done.out.splitlines())


def test_what_the_parts_measure_on_reaches_them(tmp_path: Path) -> None:
    people = make_identities(120, 5, 16, rank=3, between=3.0, seed=3)
    smiles = np.array(["yes", "no"])[np.arange(len(people)) % 2]
    names = np.array(people.names)[people.identities]
    faces, things, others = (tmp_path / f"{name}.parquet" for name in ("faces", "things", "others"))
    write_embeddings(EmbeddingSet.from_arrays(people.vectors, names, labels={"smile": smiles}), faces)
    write_embeddings(make_identities(6, 8, 16, between=2.0, seed=9), things)
    more = make_identities(40, 6, 16, rank=3, between=3.0, seed=11)
    write_embeddings(EmbeddingSet.from_arrays(more.vectors, [f"o{code}" for code in more.identities]), others)
    protocol = Protocol(probe=("cosine", "lda"), seeds=1, seed=2, threads=1)
    done = unface(
        *["audit", faces, "--out", tmp_path / "out", "--json", "--eraser", "sal", "--eraser", "isp", "--rank", "3"],
        *["--far", "0.05", "--k", "1", "--seeds", "1", "--probe", "cosine,lda", "--threads", "1", "--seed", "2"],
        *["--utility", things, "--fit-on", others, "--no-sweep", "--fit-counts", "8,16", "--no-maps"],
        *["--attribute-swap", "smile"],
    )
    assert (done.code, done.err) == (0, "")
    expected = audit(
        faces,
        far=0.05,
        k=1,
        eraser=("sal", "isp"),
        rank=3,
        fit_on=others,
        utility=[things],
        parts=(Albums(), Search(), Exposures(), Sweeps(ranks=False, fit_counts=(8, 16)), AttributeSwap("smile")),
        protocol=protocol,
    )
    found = without_run(done.out)
    assert found == without_run(expected.file_text())
    result = AuditResult.model_validate_json(done.out)
    assert [(sweep.over, len(sweep.points)) for sweep in Sweeps.of(result)] == [("identities", 2)] * 2
    assert [swap.space for swap in AttributeSwap.of(result)] == ["raw", "sal", "isp"]
    assert result.fit_source is not None
    assert result.fit_source.name == "others.parquet"


def test_a_config_file_holds_options_and_the_command_line_goes_before_it(faces: Path, tmp_path: Path) -> None:
    config = tmp_path / "audit.toml"
    config.write_text(
        'far = [0.1, 0.05]\nk = 1\nprobe = ["cosine"]\nseeds = 2\nbootstraps = 100\neraser = "none"\n'
        'no-maps = true\nalbum = "none"\n'
    )
    done = unface("audit", faces, "--out", tmp_path / "out", "--json", "--config", config, "--seeds", "1")
    assert (done.code, done.err) == (0, "")
    protocol = json.loads(done.out)["protocol"]
    assert (protocol["far"], protocol["k"], protocol["probe"]) == ([0.1, 0.05], [1], ["cosine"])
    assert (protocol["seeds"], protocol["bootstraps"]) == (1, 100)
    assert list(json.loads(done.out)["parts"]) == ["search", "exposure"]


@pytest.mark.parametrize("far", [[], ["--far", "0.02,1e-2"]], ids=["default rates", "rates"])
def test_the_command_can_be_pasted_and_measures_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, far: list[str]
) -> None:
    people = make_identities(120, 4, 8, between=1.5, seed=2)
    vectors = people.vectors.copy()
    vectors[5] = np.nan
    columns = {"who": np.array(people.names)[people.identities], "emb": list(vectors), "key": people.ids}
    pq.write_table(pa.table({**columns, "shoot": np.arange(len(people)) % 7}), tmp_path / "my faces.parquet")
    monkeypatch.chdir(tmp_path)
    named = ["--identity-column", "who", "--vector-column", "emb", "--id-column", "key", "--group", "shoot"]
    quick = ["--sample", "110", "--bad-rows", "drop", "--probe", "cosine,lda", "--seeds", "1", "--bootstraps", "100"]
    parts = ["--no-sweep", "--no-maps", "--rank", "3", "--k", "2", "--album", "none", "--seed", "3"]
    done = unface("audit", "my faces.parquet", "--out", "first", "--quiet", *named, *quick, *parts, *far)
    assert (done.code, done.err) == (0, "")
    first = AuditResult.load("first")
    again = unface(*shlex.split(documents.repeated(first)[0].replace("\\\n", " "))[1:], "--quiet")
    assert (again.code, again.err) == (0, "")
    second = AuditResult.load("audit")
    assert second.model_dump(exclude={"run"}) == first.model_dump(exclude={"run"})


def policy(folder: Path, *rules: str) -> Path:
    path = folder / "policy.toml"
    path.write_text("".join(f"[[require]]\n{rule}\n" for rule in rules), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("limit", "code", "line"),
    [
        ("tar_max = 0.99", 0, "Passed: 1 rule held, for the attackers, rates and people of this test (exit 0)."),
        ("tar_max = 0.01", 3, "Failed: 1 of 1 rule failed (exit 3)."),
        (
            "tar_max = 0.5\nspace = 'isp'",
            4,
            "Inconclusive: 1 of 1 rule could not be evaluated, which does not count as a pass (exit 4).",
        ),
    ],
    ids=["passed", "failed", "inconclusive"],
)
def test_the_verdict_is_the_first_line_and_the_exit_code_and_opens_the_page(
    faces: Path, tmp_path: Path, limit: str, code: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    rules = policy(tmp_path, f"far = 0.05\ncoarse = 'allow'\n{limit}")
    done = unface("audit", faces, *QUICK, "--no-maps", "--album", "none", "--out", tmp_path / "a", "--policy", rules)
    assert (done.code, done.err) == (code, "")
    assert done.out.splitlines()[0] == line
    state = line.partition(":")[0]
    written = (tmp_path / "a" / "report.html").read_text(encoding="utf-8")
    assert Page(written).one("p", **{"class": "state"}).words.endswith(state)
    assert unface("gate", tmp_path / "a", "--policy", rules).code == code
    again = unface("report", tmp_path / "a", "--policy", rules, "--out", tmp_path / "again.html")
    assert again.code == 0
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == written
    assert unface("report", tmp_path / "a", "--out", tmp_path / "bare.html").code == 0
    assert "No policy set" in (tmp_path / "bare.html").read_text(encoding="utf-8")
