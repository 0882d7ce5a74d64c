"""If these fail, ``unface invert`` shows faces nobody asked for, or does not end in one line when it should."""

from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from safetensors.torch import save_file

from tests.kit.command import Done
from tests.kit.command import unface as run
from tests.kit.thorough import only_thorough
from tests.prior.tiny import stylegan2_state
from tests.real import nobody_pictures, weights_here
from tests.refusals.table import require_refusal
from unface import make_identities
from unface.data import Space, write_embeddings
from unface.erase import RandomSubspace
from unface.models import card
from unface.result.inversion import InversionResult

DECODER = "decoder:steps=2,batch=4,generated=2,width=64"
LITTLE = "alsuv:pool=2,starts=1,steps=1,averaged=1,drop_at=1"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 people who do not exist, three pictures each."""
    for name in ("sface", "yunet", "arcface-mbf"):
        weights_here(name)
    root = tmp_path_factory.mktemp("people")
    with ZipFile(nobody_pictures()) as pack:
        names = sorted(name for name in pack.namelist() if name.endswith(".jpg"))
        for person in sorted({name.split("/")[-2] for name in names})[:24]:
            for name in [name for name in names if name.split("/")[-2] == person][:3]:
                path = root / person / name.split("/")[-1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(pack.read(name))
    return root


def invert(people: Path | str, out: Path, *more: object) -> Done:
    return run("invert", people, "--encoder", "arcface-mbf", "--accept-licence", "--out", out, "--targets", 2, *more)


@only_thorough
@pytest.mark.slow
def test_a_folder_of_people_is_inverted_with_controls_and_faces_only_on_request(people: Path, tmp_path: Path) -> None:
    weights_here("mobilestylegan-synthesis")
    eraser = RandomSubspace(rank=100).fit(np.eye(512))
    space = Space("arcface-mbf", card("arcface-mbf").sha256, 512, normalised=True)
    replace(eraser.projection_, space=space, kind="isp").save(tmp_path / "mine.safetensors")
    options = ("--judge", "sface", "--attack", LITTLE, "--projection", tmp_path / "mine.safetensors")
    (tmp_path / "policy.toml").write_text('[[require]]\ninverted_max = 0.05\nfar = 1e-2\nspace = "mine"\n')
    done = invert(people, tmp_path / "out", *options, "--policy", tmp_path / "policy.toml")
    # Too few people for a resolved rate: it fails if all of the interval lies beyond the limit, and never passes.
    verdict = {3: "failed", 4: "inconclusive"}[done.code]
    assert f'class="decision {verdict}"' in (tmp_path / "out" / "inversion.html").read_text(encoding="utf-8")
    result = InversionResult.load(tmp_path / "out" / "inversion.json")
    assert [cell.space for cell in result.cells] == ["raw", "mine", "random 100"]
    assert [one.name for one in result.judges] == ["sface"]
    assert result.people.source == people.name, "what was given, not the file that keeps the vectors"
    assert {"not converged", "controls", "judges", "people"} == {one.about for one in result.findings}
    assert max(len(line) for line in done.out.splitlines() if str(tmp_path) not in line) <= 80
    assert "Passes for the person" in done.out
    left = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert "faces.html" not in left
    assert not [name for name in left if name.endswith(".npz")]
    again = invert(people, tmp_path / "out", *options)
    assert (again.code, again.err.count("\n")) == (1, 1)
    assert "--force" in again.err
    weights_here("edgeface-s")
    more = ("--judge", "sface", "--attack", LITTLE, "--attack", DECODER, "--own", "edgeface-s")
    shown = invert(people, tmp_path / "out", *more, "--show-faces", "--force")
    assert shown.code == 0, shown.err
    learned = InversionResult.load(tmp_path / "out" / "inversion.json").cells[1]
    assert learned.attack == DECODER
    assert {"pictures of train people", "a face prior"} <= set(learned.knows)
    assert (tmp_path / "out" / "faces.html").stat().st_mode & 0o777 == 0o600
    page = (tmp_path / "out" / "faces.html").read_text(encoding="utf-8")
    assert page.count("<img") == 6
    assert not [path.name for path in people.iterdir() if path.name in page]


def vectors(folder: Path) -> tuple[Path, Path]:
    """A store and a recogniser's vectors of the same pictures: two linear views of one set of people."""
    hidden = make_identities(120, 3, 16, between=1.0, within=0.2, seed=0)
    paths = folder / "stored.parquet", folder / "recogniser.parquet"
    for seed, path in enumerate(paths):
        matrix = np.random.default_rng(seed).standard_normal((16, 24)).astype(np.float32)
        space = Space(f"encoder-{seed}", None, 24, normalised=False)
        write_embeddings(replace(hidden, vectors=hidden.vectors @ matrix, space=space), path)
    return paths


def test_vectors_without_pictures_are_translated_and_nothing_else(tmp_path: Path) -> None:
    stored, recogniser = vectors(tmp_path)
    refused = run("invert", stored, "--encoder", "encoder-0", "--attack", "alsuv", "--out", tmp_path / "out")
    require_refusal(refused, "settings", ..., "translate")
    other = run("invert", stored, "--encoder", "sface", "--translate", recogniser, "--out", tmp_path / "out")
    require_refusal(other, "settings", ..., "encoder-0", "sface")
    assert not (tmp_path / "out").exists()
    done = run("invert", stored, "--encoder", "encoder-0", "--translate", recogniser, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    cell = InversionResult.load(tmp_path / "out" / "inversion.json").cells[0]
    assert (cell.attack, cell.gives, cell.targets) == ("translate", "templates of encoder-1", 20)
    assert cell.at[0].same.value > 0.9
    assert cell.at[0].derangement.value < 0.1


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--judge", "arcface-mbf"), ["--judge arcface-mbf: "]),
        (("--attack", "nbnet"), ["'nbnet'", "alsuv"]),
        (("--attack", "alsuv:best"), ["alsuv: ", "'best'", "pool, paper, alsuv"]),
        (("--attack", "translate:decode"), ["recogniser"]),
        (("--projection", "other.safetensors"), ["projection: ", "'sface'"]),
        (("--prior", "small.pt"), ["arcface-mbf", "12 px", "19"]),
    ],
)
def test_bad_input_ends_in_one_line_before_anything_is_encoded(
    people: Path, tmp_path: Path, options: tuple[str, str], names: list[str]
) -> None:
    space = Space("sface", "ab" * 32, 512, normalised=True)
    replace(RandomSubspace(rank=3).fit(np.eye(512)).projection_, space=space).save(tmp_path / "other.safetensors")
    save_file(stylegan2_state(), str(tmp_path / "small.safetensors"))
    name, value = options
    given = tmp_path / value.replace(".pt", ".safetensors") if "." in value else value
    done = invert(people, tmp_path / "out", name, given)
    require_refusal(done, ..., ..., *names)
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_a_prior_that_an_attack_cannot_search_is_refused_before_people_are_drawn(tmp_path: Path) -> None:
    for name in ("arcface-mbf", "sface", "edgeface-s", "yunet", "mobilestylegan-mapping", "mobilestylegan-synthesis"):
        weights_here(name)
    done = invert("nobody", tmp_path / "out", "--attack", "diffmi")
    require_refusal(done, ..., ..., "'diffmi'", "mobilestylegan-128")
    assert not (tmp_path / "out" / "people").exists()


def test_too_few_people_to_learn_from_are_refused_before_they_are_encoded(people: Path, tmp_path: Path) -> None:
    done = invert(people, tmp_path / "out", "--attack", "translate", "--own", "edgeface-s", "--judge", "sface")
    # (42 − 2 targets) / 2 = 20; half of the others set thresholds
    require_refusal(done, ..., ..., "24 people", "11", "20", "42 people")
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_an_encoder_without_gradients_is_named_with_others_that_have_some(people: Path, tmp_path: Path) -> None:
    weights_here("dlib")
    done = run("invert", people, "--encoder", "dlib", "--accept-licence", "--out", tmp_path / "out")
    require_refusal(done, ..., ..., "'dlib'", "arcface-mbf")
    audited = run("audit", people, "--encoder", "dlib", "--inversion", "--accept-licence", "--out", tmp_path / "audit")
    assert (audited.code, audited.err) == (1, done.err)
    assert not (tmp_path / "audit").exists()
