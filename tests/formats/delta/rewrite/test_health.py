"""The health of Delta samples: counts against files on disk, rows against those that readers see."""

from __future__ import annotations

from pathlib import Path

import nightkeep
from nightkeep.formats.delta.format import open_table
from nightkeep.model import Address, Operation, Request
from nightkeep.model.health import Health

SAMPLES = Path(__file__).parents[4] / "samples" / "delta" / "shop.db"


def health_of(name: str, **asked: int) -> Health:
    table = open_table(Address("delta", str(SAMPLES / name), name))
    assert table.health is not None
    return table.health(table.snapshot(), Request(Operation.OPTIMIZE, 0, **asked))  # type: ignore[arg-type]


def test_files_are_those_on_disk_of_a_table_that_lost_none() -> None:
    found, folder = health_of("accounts"), SAMPLES / "accounts"
    files = [*folder.rglob("*.parquet")]
    assert (found.files, found.bytes) == (len(files), sum(file.stat().st_size for file in files))
    assert found.versions == len([*(folder / "_delta_log").glob("*.json")])


def test_deleted_rows_are_those_that_readers_leave_out() -> None:
    found = health_of("clicks")
    assert found.rows is not None and found.deleted_rows is not None
    assert found.rows - found.deleted_rows == nightkeep.read(f"delta:{SAMPLES / 'clicks'}").read_all().num_rows
    assert (found.delete_files, found.level0_files, found.equality_files) == (3, None, None)
    assert health_of("accounts").delete_files == 0


def test_small_files_are_those_below_the_size_that_is_asked_for() -> None:
    assert health_of("clicks").small_files == 43
    assert health_of("clicks", min_bytes=1).small_files == 0
    few = health_of("readings", target_bytes=19_000)
    assert 0 < few.small_files < few.files
