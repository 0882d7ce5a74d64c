"""If these fail, ``unface compare`` compares other erasers than it was asked for, or on other terms."""

import json
from pathlib import Path

import pytest

from tests.cli.command import Done, unface
from unface import audit, make_identities, write_embeddings
from unface.auditing import load_audit
from unface.data import EmbeddingSet

QUICK = ["--far", "0.05", "--k", "1", "--seeds", "1", "--probe", "cosine,lda", "--rank", "3", "--threads", "1"]
PEOPLE = make_identities(40, 5, 16, rank=3, between=3.0, seed=3)


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("given") / "faces.parquet"
    write_embeddings(PEOPLE, path)
    return path


def refused(done: Done, out: Path) -> str:
    assert (done.code, done.out) == (1, "")
    assert len(done.err.splitlines()) == 1
    assert not out.exists()
    return done.err.removeprefix("unface: ").removesuffix("\n")


def test_every_usual_eraser_is_compared_at_one_rank_beside_both_controls(faces: Path, tmp_path: Path) -> None:
    done = unface("compare", faces, "--out", tmp_path / "out", "--no-sweep", *QUICK)
    assert (done.code, done.err) == (0, "")
    result = load_audit(tmp_path / "out" / "audit.json")
    erasers = ["isp", "isp-whitened", "leace", "sal", "inlp", "fair-pca"]
    assert [space.name for space in result.spaces] == ["raw", *erasers, "random", "pca"]
    assert {space.erasure.rank for space in result.spaces if space.erasure} == {3}
    assert (result.sweeps, result.maps) == ([], [])
    for name in erasers:
        space = result.space(name)
        assert space is not None
        assert {change.against for change in space.changes} == {one.name for one in result.spaces} - {name}
        assert any(line.startswith(f"{name} ") for line in done.out.splitlines())
    assert (tmp_path / "out" / "report.html").exists()


def test_options_reach_the_comparison_and_the_library_gives_the_same(faces: Path, tmp_path: Path) -> None:
    things = make_identities(6, 8, 16, between=2.0, seed=9)
    write_embeddings(things, tmp_path / "things.parquet")
    people = make_identities(40, 6, 16, rank=3, between=3.0, seed=11)
    names = [f"other {people.names[code]}" for code in people.identities]
    write_embeddings(EmbeddingSet.from_arrays(people.vectors, names), tmp_path / "others.parquet")
    done = unface(
        *["compare", faces, "--out", tmp_path / "out", "--json", "--erasers", "sal", "--erasers", "isp", *QUICK],
        *["--utility", tmp_path / "things.parquet", "--fit-on", tmp_path / "others.parquet"],
        *["--no-sweep", "--fit-counts", "8,16", "--seed", "2"],
    )
    assert (done.code, done.err) == (0, "")
    expected = audit(
        faces,
        erasers=("sal", "isp"),
        rank=3,
        fit_on=tmp_path / "others.parquet",
        utility=[tmp_path / "things.parquet"],
        sweep=False,
        fit_counts=(8, 16),
        maps=False,
        fars=(0.05,),
        ks=(1,),
        seeds=1,
        probes=("cosine", "lda"),
        seed=2,
        threads=1,
    )
    found = json.loads(done.out)
    found.pop("run")
    assert found == json.loads(expected.model_dump_json(by_alias=True, exclude={"run"}))
    assert [(sweep["over"], len(sweep["points"])) for sweep in found["sweeps"]] == [
        ("identities", 2),
        ("identities", 2),
    ]
    assert found["fit_source"]["name"] == "others.parquet"
    assert [given["name"] for given in found["utility_sources"]] == ["things.parquet"]


def test_bad_input_is_one_line_and_no_folder(faces: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def told(*options: object) -> str:
        return refused(unface("compare", faces, "--out", out, *options), out)

    assert told("--erasers", "magic").startswith("eraser 'magic' is not known; choose from isp, ")
    assert told("--rank", "17") == "isp: rank 17 with 16 dimensions; expected 0 to 16"
    assert told("--rank", "12", "--erasers", "leace") == "leace: rank 12 with 12 identities; expected at most 11"
    assert told("--fit-on", faces).startswith("faces.parquet: 40 identities of it also in the audited set, such as")
    assert told("--fit-counts", "some") == "--fit-counts: 'some' is not a number"
    assert told("--utility", tmp_path / "none") == "none: no such file or directory"


def test_a_finished_comparison_is_refused_before_any_work_unless_forced(
    faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["compare", faces, "--out", tmp_path / "out", "--quiet", "--no-sweep", "--erasers", "isp", *QUICK]
    assert unface(*command).code == 0
    with monkeypatch.context() as patch:
        patch.setattr("unface.auditing.attack.run_panel", None)
        again = unface(*command)
    assert (again.code, again.out) == (1, "")
    assert (
        again.err
        == f"unface: {tmp_path / 'out' / 'audit.json'}: exists already; choose another --out or pass --force\n"
    )
    done = unface(*command, "--force")
    assert (done.code, done.out, done.err) == (0, "", "")
