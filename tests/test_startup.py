"""If this fails, a command that should start at once has become slow, most likely by importing a heavy library."""

import subprocess
import sys
from pathlib import Path

import pytest

import unface
from tests.kit.results import audited, change, erased, kept, raw

HEAVY = ["torch", "matplotlib", "onnxruntime", "sklearn", "scipy", "pandas", "polars", "pyarrow", "altair", "numpy"]
POLICY = Path(__file__).resolve().parents[1] / "examples" / "policy.toml"
COMMAND = """
import contextlib, io, sys
from unface.cli import main
sys.argv = {argv!r}
with contextlib.redirect_stdout(io.StringIO()) as shown:
    try:
        main()
    except SystemExit as leaving:
        assert not leaving.code, leaving.code
assert {expected!r} in shown.getvalue()
"""


def command(expected: str, *arguments: object) -> str:
    """Code that runs a command to its end in its own process."""
    return COMMAND.format(argv=["unface", *map(str, arguments)], expected=expected)


@pytest.mark.parametrize(
    ("code", "modules"),
    [("import sys, unface", 100), (command("Usage: unface", "--help"), 300)],
    ids=["import unface", "unface --help"],
)
def test_few_modules_are_loaded_and_no_heavy_library(code: str, modules: int) -> None:
    """What is loaded decides how long it takes: 63 and 169 here; NumPy alone brings 140 more."""
    loaded = loaded_by(code)
    assert [name for name in (*HEAVY, "pydantic") if name in loaded] == []
    assert len(loaded) < modules


@pytest.fixture
def saved_audit(tmp_path: Path) -> Path:
    space = erased(changes=[change(-0.03, -0.04, -0.02)], utility=[kept(0.9, 0.85, 0.95)])
    maps = {"maps": [{"space": "raw", "perplexity": 5.0, "x": [0.0], "y": [0.0], "identity": [0]}]}
    return audited(raw(), space).model_copy(update={"parts": {"maps": maps}}).save(tmp_path / "audit")


def test_the_gate_and_the_file_format_of_every_part_load_no_heavy_library(saved_audit: Path) -> None:
    code = command("Passed: 3 rules held", "gate", saved_audit, "--policy", POLICY)
    formats = "from unface.result.parts import BUILT_IN, installed_part\nassert all(map(installed_part, BUILT_IN))"
    loaded = loaded_by(f"{code}\n{formats}")
    assert [name for name in HEAVY if name in loaded] == []


def test_a_projection_is_applied_without_scikit_learn(tmp_path: Path) -> None:
    """Only erasers need it; with it a small file takes nearly twice as long."""
    people = unface.make_identities(30, 3, 8, seed=1)
    unface.write_embeddings(people, tmp_path / "people.parquet")
    unface.ISP(rank=2).fit(people.vectors, people.identities).projection_.save(tmp_path / "isp.safetensors")
    files = [tmp_path / name for name in ("isp.safetensors", "people.parquet", "erased.parquet")]
    loaded = loaded_by(command("", "apply", *files))
    assert files[-1].is_file()
    assert [name for name in ("sklearn", "scipy.stats", "torch", "altair") if name in loaded] == []


def test_a_report_loads_nothing_that_measures(saved_audit: Path) -> None:
    loaded = loaded_by(command("report.html", "report", saved_audit))
    rooms = [f"unface.{room}" for room in ("attribute", "data", "encode", "erase", "pairs", "probe", "utility")]
    assert [name for name in ("sklearn", "torch", "pyarrow", *rooms) if name in loaded] == []
    assert (saved_audit.parent / "report.html").is_file()


def loaded_by(code: str) -> list[str]:
    """The modules that are loaded after running it."""
    run = [sys.executable, "-c", f"{code}\nprint(*sys.modules)"]
    return subprocess.run(run, check=True, capture_output=True, text=True, timeout=60).stdout.split()
