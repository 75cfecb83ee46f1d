"""Splits read one by one give the rows of the whole, batch by batch."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.formats.paimon.contents import SAMPLES

import nightkeep
from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.paimon.data import columns as paimon_columns
from nightkeep.reading.splits import FileRange, ReadPart, ReadSplit

ORDERS = f"paimon:{SAMPLES}/orders"


def test_batches_are_small_and_have_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paimon_columns, "BATCH_ROWS", 100)
    reader = nightkeep.read(ORDERS, columns=["order_id", "dt"])
    sizes = []
    for batch in reader:
        assert batch.schema == pa.schema([("order_id", pa.int64()), ("dt", pa.string())])
        sizes.append(batch.num_rows)
    assert max(sizes) <= 100 and sum(sizes) == 4800 and min(sizes) > 0


def test_the_columns_of_a_condition_need_not_be_shown() -> None:
    both = nightkeep.read(ORDERS, where="status = 'paid'").read_all()
    one = nightkeep.read(ORDERS, where="status = 'paid'", columns="order_id").read_all()
    assert one.column_names == ["order_id"]
    assert one.sort_by("order_id").column(0) == both.sort_by("order_id").column("order_id")
    assert pc.unique(both.column("status")).to_pylist() == ["paid"]


def test_a_damaged_file_is_named_while_it_is_read(tmp_path: Path) -> None:
    table = tmp_path / "orders"
    shutil.copytree(SAMPLES / "orders", table)
    file = max(table.rglob("data-*.parquet"), key=lambda path: path.stat().st_size)
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(CorruptMetadata, match=f"{file.name}: expected a Parquet file"):
        nightkeep.read(f"paimon:{table}", view="merge-on-read").read_all()
    file.unlink()
    with pytest.raises(MissingFile, match=file.name):
        nightkeep.read(f"paimon:{table}", view="merge-on-read").read_all()


def test_a_split_counts_the_bytes_of_its_parts() -> None:
    part = ReadPart("a bucket", (FileRange("a", 5), FileRange("b", 7, (0,))), merges=False)  # type: ignore[type-var]
    assert (part.bytes, ReadSplit((part, part)).bytes) == (12, 24)
