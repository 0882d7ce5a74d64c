"""If these fail, what is shipped is not what was audited, or nobody notices an eraser judged on people it knows."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.auditing.audits import PEOPLE, RANK, quick, space
from tests.kit.command import unface
from tests.kit.results import AuditResult
from unface import UnfaceError, make_identities
from unface.auditing import fit_audited, fit_certified, fit_streamed
from unface.data import EmbeddingSet, Role, read_embeddings, split_identities, write_embeddings
from unface.erase import Projection, fit_projection, make_eraser
from unface.erase.file import from_bytes
from unface.erase.fitted_on import FittedOn, too_many
from unface.scale import sanitise_directory, sanitise_file

NAMED = EmbeddingSet.from_arrays(
    PEOPLE.vectors, [f"person {code}" for code in PEOPLE.identities], ids=PEOPLE.ids, source="people.parquet"
)
STRANGERS = EmbeddingSet.from_arrays(
    PEOPLE.vectors, [f"stranger {code}" for code in PEOPLE.identities], ids=PEOPLE.ids, source="strangers.parquet"
)
_THINGS = make_identities(12, 30, 16, between=0.8, seed=7)
THINGS = replace(_THINGS, vectors=_THINGS.vectors + 12 * np.eye(16, dtype=np.float32)[-1], source="things.parquet")
FAR = ["--far", "0.05", "--k", "2", "--probe", "cosine", "--seeds", "1", "--bootstraps", "100", "--threads", "1"]
QUICK = [*FAR, "--no-sweep", "--no-maps", "--quiet"]


@cache
def audited() -> AuditResult:
    return quick(NAMED, eraser=("isp", "leace"))


@cache
def whole() -> Projection:
    """Fitted on everybody."""
    return fit_certified(NAMED, rank=RANK, hold_out=0)


def invalid(result: AuditResult) -> list[str]:
    return [finding.text for finding in result.findings if finding.severity == "invalid"]


def test_an_audit_hands_out_the_projection_it_measured() -> None:
    assert set(audited().projections) == {"isp", "leace"}, "no control"
    for name, content in audited().projections.items():
        erasure = space(audited(), name).erasure
        assert erasure is not None
        projection = from_bytes(content, name)
        assert projection.sha256 == erasure.projection_sha256
        assert projection.certificate == erasure.certificate


@pytest.mark.parametrize("name", ["isp", "leace"])
def test_fitted_again_from_the_audit_it_is_the_same_in_every_byte(name: str) -> None:
    again = fit_audited(audited(), NAMED, name)
    assert again.sha256 == from_bytes(audited().projections[name], name).sha256


def test_what_differs_from_the_audit_is_refused() -> None:
    def refused(audit: AuditResult, *given: object, **sets: object) -> str:
        with pytest.raises(UnfaceError) as caught:
            fit_audited(audit, *given, **sets)  # type: ignore[arg-type]
        return str(caught.value)

    assert refused(audited(), NAMED).endswith("the audit has isp, leace; choose one with --eraser")
    assert "no eraser 'sal'; it has isp, leace" in refused(audited(), NAMED, "sal")
    assert refused(audited(), STRANGERS, "isp").startswith(
        "SRC strangers.parquet: is not the set of the audit, which was people.parquet of 720 rows"
    )
    assert refused(audited(), NAMED, "isp", gate=THINGS) == "--gate: the audit had none; leave it out with --from"
    isp = space(audited(), "isp")
    assert isp.erasure is not None
    other = isp.model_copy(update={"erasure": isp.erasure.model_copy(update={"projection_sha256": "0" * 64})})
    assert "audited was 000000000000…" in refused(audited().model_copy(update={"spaces": [isp, other]}), NAMED, "isp")
    behind = quick(NAMED, gate=THINGS)
    assert "had --gate things.parquet (" in refused(behind, NAMED)
    assert fit_audited(behind, NAMED, gate=THINGS).sha256 == from_bytes(behind.projections["isp"], "isp").sha256


def test_what_was_audited_is_fitted_again_without_naming_its_columns_sample_and_bad_rows(tmp_path: Path) -> None:
    source, out, kept = tmp_path / "export.parquet", tmp_path / "audit", tmp_path / "kept.safetensors"
    vectors = [None, *NAMED.vectors.tolist()[1:]]
    names = [NAMED.names[code] for code in NAMED.identities]
    ids = [f"photo {row}" for row in range(len(names))]
    pq.write_table(pa.table({"photo": ids, "customer": names, "emb": vectors}), source)
    columns = ["--vector-column", "emb", "--identity-column", "customer", "--id-column", "photo"]
    people = str(len(NAMED.names) - 4)
    done = unface(
        *("audit", source, "--out", out, *QUICK, *columns, "--bad-rows", "drop", "--sample", people, "--seed", "5"),
        *("--save-projection", kept),
    )
    assert (done.code, done.err) == (0, "")
    again = tmp_path / "again.safetensors"
    done = unface("fit", source, "--from", out / "audit.json", "--out", again, "--quiet")
    assert (done.code, done.err) == (0, "")
    assert again.read_bytes() == kept.read_bytes()


def test_the_command_line_saves_what_was_audited_and_fits_it_again(tmp_path: Path) -> None:
    source, out = tmp_path / "people.parquet", tmp_path / "audit"
    write_embeddings(NAMED, source)
    kept = tmp_path / "kept"
    done = unface("audit", source, "--out", out, *QUICK, "--eraser", "isp,leace", "--save-projection", kept)
    assert (done.code, done.err) == (0, "")
    assert sorted(path.name for path in kept.iterdir()) == ["isp.safetensors", "leace.safetensors"]
    again = tmp_path / "again.safetensors"
    done = unface("fit", source, "--from", out / "audit.json", "--eraser", "leace", "--out", again, "--quiet")
    assert (done.code, done.err) == (0, "")
    assert again.read_bytes() == (kept / "leace.safetensors").read_bytes()
    done = unface("fit", source, "--from", out / "audit.json", "--rank", "3", "--out", tmp_path / "no", "--quiet")
    assert (done.code, "the audit says that already" in done.err) == (1, True)
    done = unface("audit", source, "--out", tmp_path / "b", *QUICK, "--eraser", "isp,sal", "--save-projection", again)
    assert (done.code, "is there" in done.err or "--force" in done.err) == (1, True)
    done = unface("audit", source, "--out", tmp_path / "c", *QUICK, "--save-projection", kept)
    assert (done.code, "holds projections already" in done.err) == (1, True)


def test_a_record_matches_everybody_it_was_made_of_and_few_others_and_names_nobody(tmp_path: Path) -> None:
    record = FittedOn.of([f"person {number}" for number in range(5000)], np.eye(3))
    assert record.matches([f"person {number}" for number in range(5000)]).all()
    others = record.matches([f"other {number}" for number in range(20_000)]).mean()
    assert record.chance == pytest.approx(1 - np.exp(-1 / 8), abs=0.005)
    assert others == pytest.approx(record.chance, abs=0.01)
    whole().save(tmp_path / "p.safetensors")
    content = (tmp_path / "p.safetensors").read_bytes()
    assert b"person" not in content
    loaded = Projection.load(tmp_path / "p.safetensors")
    assert loaded.fitted_on is not None
    assert loaded.fitted_on.people == 120
    assert loaded.fitted_on.matches(NAMED.names).all()
    assert FittedOn.from_fields(json.loads(json.dumps(record.to_fields()))).matches(["person 7"]).all()


def test_chance_alone_is_not_called_an_overlap_and_a_quarter_of_the_people_is() -> None:
    assert not too_many(matches=16, compared=60, chance=0.1175)
    assert too_many(matches=22, compared=60, chance=0.1175)


def test_a_projection_of_the_same_people_makes_the_audit_invalid_and_one_of_others_does_not() -> None:
    same = quick(NAMED, eraser=(), projections=[whole()])
    judged = same.roles.calibrate + same.roles.test
    assert not same.valid
    assert invalid(same)[0].startswith(f"about {judged} of the {judged} calibrate and test identities are people this")
    assert quick(STRANGERS, eraser=(), projections=[whole()]).valid


def test_the_projection_of_an_audit_is_not_held_against_the_same_audit() -> None:
    """Its fit identities are there again, but nobody is judged on them."""
    ready = from_bytes(audited().projections["isp"], "isp")
    again = quick(NAMED, eraser=(), projections=[ready])
    assert again.valid
    assert [p.tar for p in space(again, "projection").points] == [p.tar for p in space(audited(), "isp").points]


def test_an_erased_file_says_what_erased_it_and_the_gate_is_inconclusive_on_the_same_people(tmp_path: Path) -> None:
    write_embeddings(NAMED, tmp_path / "people.parquet")
    write_embeddings(STRANGERS, tmp_path / "strangers.parquet")
    for name in ("people", "strangers"):
        sanitise_file(whole(), tmp_path / f"{name}.parquet", tmp_path / f"{name}-erased.parquet")
    result = quick(read_embeddings(tmp_path / "people-erased.parquet"), eraser=())
    assert result.raw.name == "erased by isp 3"
    assert (result.valid, len(invalid(result))) == (False, 1)
    other = quick(read_embeddings(tmp_path / "strangers-erased.parquet"))
    assert other.valid
    assert {change.against for change in space(other, "isp").changes} == {"erased by isp 3", "random", "pca"}
    out, policy = tmp_path / "audit", tmp_path / "policy.toml"
    policy.write_text('[[require]]\nfar = 0.05\nspace = "erased by isp 3"\ntar_max = 0.99\n')
    done = unface("audit", tmp_path / "people-erased.parquet", "--out", out, *QUICK, "--eraser", "none")
    assert done.code == 0
    assert unface("gate", out / "audit.json", "--policy", policy).code == 4


def test_a_projection_or_a_file_of_before_says_that_it_does_not_record_whom_it_was_fitted_on(tmp_path: Path) -> None:
    old = replace(whole(), fitted_on=None)
    old.save(tmp_path / "old.safetensors")
    loaded = Projection.load(tmp_path / "old.safetensors")
    write_embeddings(NAMED, tmp_path / "people.parquet")
    sanitise_directory(loaded, make_folder(tmp_path), tmp_path / "erased")
    for result in (
        quick(NAMED, eraser=(), projections=[loaded]),
        quick(read_embeddings(without_record(tmp_path / "erased" / "people.parquet")), eraser=()),
    ):
        assert result.valid
        assert any("does not record who it was fitted on" in finding.text for finding in result.findings)
    assert result.raw.name == "erased by isp 3"
    given = quick(read_embeddings(tmp_path / "erased" / "people.parquet"), eraser=(), projections=[old])
    assert len(given.spaces) == 1, "what erased these vectors is not applied to them again"


def make_folder(folder: Path) -> Path:
    (folder / "raw").mkdir()
    (folder / "people.parquet").rename(folder / "raw" / "people.parquet")
    return folder / "raw"


def without_record(path: Path) -> Path:
    """As it was written before files said what erased them."""
    table = pq.read_table(path)
    kept = {key: value for key, value in table.schema.metadata.items() if key != b"unface.erased"}
    pq.write_table(table.replace_schema_metadata(kept), path)
    return path


def test_fitted_from_a_folder_the_record_holds_those_who_were_fitted_and_not_those_held_out(tmp_path: Path) -> None:
    write_embeddings(NAMED, tmp_path / "a.parquet")
    record = fit_streamed(tmp_path, rank=RANK).fitted_on
    assert record is not None
    split = split_identities(NAMED.names, shares={Role.FIT: 0.8, Role.TEST: 0.2}, seed=0)
    fitted = NAMED.take(split.rows(NAMED, Role.FIT)).names
    assert record.people == len(fitted)
    assert record.matches(fitted).all()
    assert fit_projection(make_eraser("isp", RANK), NAMED).fitted_on is not None


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnfaceError, match="record of who it was fitted on is damaged"):
        FittedOn(3, "xy", np.zeros(3, np.uint8))
    write_embeddings(replace(NAMED, erased='{"kind": 3}'), tmp_path / "a.parquet")
    with pytest.raises(UnfaceError, match=r"a\.parquet: metadata 'unface\.erased' is damaged"):
        quick(read_embeddings(tmp_path / "a.parquet"), eraser=())
