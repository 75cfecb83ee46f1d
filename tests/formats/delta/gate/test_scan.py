"""Which rows the gate takes for a partition's, against what the writer by hand says of its table."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.runs import opened
from tests.support.table_storage import storage_of

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.gate.scan import rows, survivors

DAY = "2026-11-01"


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    made = HandMade(tmp_path / "events")
    made.append(DAY, range(10))
    made.append(DAY, range(20, 25))
    made.append("2026-11-02", range(3))
    made.delete(DAY, [0, 3, 9, 24])
    return made


def shown(made: HandMade) -> list[int]:
    table, found = opened(made.folder), list[int]()
    for unit in table.snapshot().units:
        for batch in rows(storage_of(table), unit, survivors(storage_of(table), unit)):
            found += batch.column("id").to_pylist()
    return sorted(found)


def test_rows_of_a_vector_are_not_shown(made: HandMade) -> None:
    assert shown(made) == sorted(row[1] for row in made.rows())
    made.delete(DAY, [1, 20])
    assert shown(made) == sorted(row[1] for row in made.rows())


def test_rows_come_from_the_positions_asked_for(made: HandMade) -> None:
    table = opened(made.folder)
    unit = next(unit for unit in table.snapshot().units if unit.partition["day"] is not None and len(unit.files) == 2)
    first = next(file for file in unit.files if file.rows == 10)
    found = pa.Table.from_batches(rows(storage_of(table), unit, {first.name: BitMap64([0, 4, 9])}))
    assert found.column("id").to_pylist() == [0, 4, 9]
    assert list(rows(storage_of(table), unit, {first.name: BitMap64()})) == []


def test_a_footer_with_other_rows_than_the_log_is_damage(made: HandMade) -> None:
    table = opened(made.folder)
    unit = table.snapshot().units[0]
    path = made.folder / unit.files[0].name
    pq.write_table(pq.read_table(path, partitioning=None).slice(1), path, store_schema=False)
    with pytest.raises(CorruptMetadata, match=r"rows as the log states, found \d+ in its footer"):
        survivors(storage_of(table), unit)
