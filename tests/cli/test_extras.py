"""If these fail, a command that needs an extra ends with a traceback where the extra is not installed."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from unface.cli import _EXTRAS

WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {"torch", "PIL"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from unface.cli import main
main()
"""


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("invert nobody --encoder sscd-int8", "torch"),
        ("validate --target http://127.0.0.1:9/{person} --enrol nobody --budget 20", "images"),
        ("protect frequency certify --scheme dctdp --size 16 --pictures pictures", "images"),
    ],
)
def test_an_extra_that_is_not_installed_is_named_in_one_line(words: str, extra: str, tmp_path: Path) -> None:
    (tmp_path / "pictures" / "ann").mkdir(parents=True)
    (tmp_path / "pictures" / "ann" / "1.png").write_bytes(b"\x89PNG")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *words.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"not installed; run pip install 'unface[{extra}]'")


def test_every_extra_that_is_named_exists() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(_EXTRAS.values()) <= project["optional-dependencies"].keys()
