"""If these fail, a command that a record names no longer runs, or records other numbers than it measured."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from studies import lfw_pairs, nobody
from studies.measured import Findings, read_findings, write_findings

from tests.attribute.averages import Averages
from unface import EmbeddingSet, write_embeddings
from unface.models import card


def recorded(
    study: object, name: str, arguments: list[object], home: Path, monkeypatch: pytest.MonkeyPatch
) -> Findings:
    """What the command keeps, in a folder of its own."""
    monkeypatch.setattr(study, "write_findings", partial(write_findings, home=home))
    monkeypatch.setattr(sys, "argv", ["study", *map(str, arguments), "--record", "here"])
    study.main()  # type: ignore[attr-defined]
    return read_findings(name, home)


def two_pictures_each(path: Path, first: int, people: int, cosine: float) -> None:
    """People along axes of their own: every mated pair has this cosine, every impostor pair 0."""
    axes: NDArray[np.float32] = np.eye(64, dtype=np.float32)
    own, other = axes[2 * first : 2 * (first + people) : 2], axes[2 * first + 1 : 2 * (first + people) : 2]
    vectors = np.concatenate([own, cosine * own + (1 - cosine**2) ** 0.5 * other])
    names = [f"p{number}" for number in range(people)] * 2
    write_embeddings(EmbeddingSet.from_arrays(vectors, names, source=path.name), path)


def test_nobody_records_quantiles_and_who_is_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for encoder in nobody.DRAWN:
        for name, first, cosine in (("nobody", 0, 0.6), ("celeba20", 7, 0.8), ("celeba5", 16, 0.8), ("lfw", 24, 0.8)):
            two_pictures_each(tmp_path / f"{encoder}_{name}.parquet", first, 8, cosine)
    found = recorded(nobody, "nobody", [tmp_path, tmp_path], tmp_path, monkeypatch)
    scores = {(row[0], row[1], row[2]): row[3:] for row in found.tables["scores"].rows}
    assert len(scores) == 18
    assert scores["sscd-int8", "nobody", "8 mated"] == pytest.approx([0.6] * 6 + [1.0])
    assert scores["sface", "LFW", "8 mated"] == pytest.approx([0.8] * 6 + [1.0])
    assert scores["sface", "nobody", "112 impostor"] == [*[pytest.approx(0.0)] * 6, None]
    nearest = {(row[0], row[1]): row for row in found.tables["nearest"].rows}
    at = list(found.tables["nearest"].columns).index("nobody")
    # The last person of "nobody" is the first of celeba20; nobody else shares an axis.
    assert nearest["sface", "CelebA (20 each)"][at][-1] == pytest.approx(1.0)  # type: ignore[index]
    assert nearest["sface", "LFW"][at] == pytest.approx([0.0] * 3)
    assert nearest["arcface-mbf", "all"][2] == 48


def test_lfw_pairs_counts_a_missing_picture_as_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    for person in "abcd":
        coarse = Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        for number in (1, 2):
            picture = tmp_path / "pictures" / person / f"{person}_{number:04d}.png"
            picture.parent.mkdir(parents=True, exist_ok=True)
            coarse.resize((112, 112), Image.Resampling.NEAREST).save(picture)
    lists = ["2\t2", "a\t1\t2", "b\t1\t2", "a\t1\tb\t1", "c\t1\td\t1", "c\t1\t2", "d\t1\t3", "a\t2\tc\t2", "b\t2\td\t2"]
    (tmp_path / "pairs.txt").write_text("\n".join(lists) + "\n", encoding="utf-8")
    monkeypatch.setattr(lfw_pairs, "load_encoder", lambda name, **_: Averages(card(name), []))
    arguments = [tmp_path / "pictures", tmp_path / "pairs.txt", "--encoder", "arcface-mbf"]
    found = recorded(lfw_pairs, "lfw_pairs", arguments, tmp_path, monkeypatch)
    # The first fold is right in all four pairs, the second in three: d has no third picture.
    assert found.tables["accuracy"].rows == [["arcface-mbf", 87.5, 12.5, 99.53]]
