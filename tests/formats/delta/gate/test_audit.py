"""What the audit says of files that delta-spark wrote: nothing, whatever their types; and of commits that lie."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap64
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.runs import opened
from tests.support.proofs import NO_ROWS, in_batches
from tests.support.table_storage import storage_of

from nightkeep.errors import RefusedTable
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.gate.file_audit import file_faults
from nightkeep.formats.delta.gate.scan import rows
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot

GOLDEN = sorted(path for path in (Path(__file__).parents[3] / "golden" / "delta").iterdir() if path.is_dir())
OLDER = (
    "; missing ",
    "field id None",
    "as its statistics state, None",
    "f has a value above the maximum",
    "f has no value at",
)
"""Of files that are older than a column, than column mapping, without statistics, or with the bounds of floats that are
doubles by now, which delta-spark leaves too narrow or too wide. The gate asks it of new files alone."""


def snapshot_of(folder: Path) -> DeltaSnapshot | None:
    try:
        return opened(folder / "table").snapshot()
    except RefusedTable:
        return None


@pytest.mark.parametrize("rows", [3, 1 << 16])
def test_files_of_delta_spark_are_what_their_statistics_state(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    in_batches(monkeypatch, DeltaFileReader, rows)
    judged, types = 0, set[pa.DataType]()
    for folder in GOLDEN:
        snapshot = snapshot_of(folder)
        for unit in snapshot.units if snapshot else ():
            storage = storage_of(opened(folder / "table"))
            for file in unit.files:
                found = [
                    fault
                    for fault in file_faults(storage, unit, file, **NO_ROWS)
                    if not any(old in fault for old in OLDER)
                ]
                assert not found, folder.name
                judged += file.stats is not None
                types |= {field.type for field in unit.schema.data_fields}
    assert judged > 50
    assert len({str(kind) for kind in types}) > 15


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_ranges_are_joined_over_batches(tmp_path: Path, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    in_batches(monkeypatch, DeltaFileReader, batch)
    made = HandMade(tmp_path / "events")
    made.append("2026-11-01", range(-20, 30))
    table = opened(made.folder)
    (unit,) = table.snapshot().units
    assert list(file_faults(storage_of(table), unit, unit.files[0], **NO_ROWS)) == []


def test_live_rows_are_shown_and_all_are_judged(tmp_path: Path) -> None:
    made = HandMade(tmp_path / "events")
    made.append("2026-11-01", range(50))
    table = opened(made.folder)
    (unit,) = table.snapshot().units
    file, live, shown = unit.files[0], BitMap64([0, 7, 49]), list[pa.RecordBatch]()
    assert list(file_faults(storage_of(table), unit, file, live=live, show=shown.append)) == []
    assert pa.Table.from_batches(shown) == pa.Table.from_batches(rows(storage_of(table), unit, {file.name: live}))
    assert sum(batch.num_rows for batch in shown) == 3
    lying = replace(file, stats=(file.stats or "").replace("49", "48"))
    (fault,) = file_faults(storage_of(table), unit, lying, live=BitMap64([0]), show=shown.append)
    assert "id has a value above the maximum" in fault
