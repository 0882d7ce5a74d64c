"""If these fail, a sample is not the one that its seed draws, or its memory grows with the collection."""

from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from unface import make_identities, read_embeddings, write_embeddings
from unface.data import collection
from unface.data.collection import sampled_people


def pieces(counts: dict[str, int], rows: int = 50) -> Iterator[Counter[str]]:
    """Every row of a made-up collection, in an order of its own; people come back in later pieces."""
    names = np.repeat(list(counts), list(counts.values()))
    names = np.random.default_rng(0).permutation(names)
    for start in range(0, len(names), rows):
        yield Counter(names[start : start + rows].tolist())


def by_hand(counts: dict[str, int], number: int, seed: int) -> set[str]:
    ordered = sorted(counts, key=lambda name: sha256(f"{seed}\x1fsample\x1f{name}".encode()).hexdigest())
    return set([name for name in ordered if counts[name] >= 2][:number])


@pytest.mark.parametrize("several", [3000, 40])
def test_a_sample_is_the_people_with_the_smallest_hashes_however_few_have_two_rows(several: int) -> None:
    counts = {f"p{row}": 3 if row < several else 1 for row in range(9000)}
    passes = []

    def people() -> Iterator[Counter[str]]:
        passes.append(1)
        return pieces(counts)

    found = sampled_people(people, 30, seed=7, source="x")
    assert found == by_hand(counts, 30, seed=7)
    assert (len(passes) > 1) == (several == 40), "where most have one row, names must be drawn again"


def test_another_seed_draws_others_and_too_large_a_sample_is_everyone() -> None:
    counts = {f"p{row}": 2 for row in range(100)}
    one, other = (sampled_people(lambda: pieces(counts), 40, seed, "x") for seed in (0, 1))
    assert one != other
    assert sampled_people(lambda: pieces(counts), 500, 0, "x") == set(counts)


def test_no_more_names_are_held_than_the_sample_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    held = []
    smallest = collection._smallest

    def watched(kept: dict[str, tuple[str, int]], room: int) -> tuple[dict[str, tuple[str, int]], str]:
        held.append(len(kept))
        return smallest(kept, room)

    monkeypatch.setattr(collection, "_smallest", watched)
    counts = {f"p{row}": 2 for row in range(20_000)}
    sampled_people(lambda: pieces(counts), 10, 0, "x")
    assert max(held) <= 2 * 1040 + 50


def test_the_same_people_are_drawn_from_every_kind_of_source(tmp_path: Path) -> None:
    made = make_identities(50, 4, 8, seed=3)
    write_embeddings(made, tmp_path / "whole.parquet")
    (tmp_path / "parts").mkdir()
    for part in range(2):
        write_embeddings(made.take(np.arange(part, len(made), 2)), tmp_path / "parts" / f"{part}.parquet")
    names = np.array(made.names)[made.identities]
    np.savez(tmp_path / "whole.npz", vectors=made.vectors, identities=names)
    sources = (tmp_path / "whole.parquet", tmp_path / "parts", tmp_path / "whole.npz", (made.vectors, names), made)
    drawn = [read_embeddings(source, sample=6, seed=2) for source in sources]
    assert {one.names for one in drawn} == {tuple(sorted(by_hand(dict.fromkeys(made.names, 4), 6, seed=2)))}
    assert {len(one) for one in drawn} == {24}
    note = "a sample of 6 people with at least 2 rows each, drawn with seed 2"
    assert all(note in one.notes and one.sample == 6 for one in drawn)
    everyone = read_embeddings(tmp_path / "whole.parquet", sample=500)
    assert everyone.notes[-1].endswith("there are no more (500 were asked for)")
