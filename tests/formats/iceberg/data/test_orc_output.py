"""New ORC files: their sizes, their attributes as Java reads them, and properties that are refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc
from tests.formats.iceberg.content_made import schema_of

from nightkeep.errors import NightkeepError, RefusedTable
from nightkeep.formats.iceberg.data.write import IcebergFileWriter, WrittenIcebergFile
from nightkeep.formats.iceberg.metadata.naming import IcebergNaming
from nightkeep.model import Run
from nightkeep.storage import LocalStorage

COLUMNS = (("a", "long"), ("b", "string"), ("c", "double"))
TARGET = 1 << 20


def written(
    folder: Path, columns: Any, *chunks: pa.Table, target: int = TARGET, **properties: str
) -> list[WrittenIcebergFile]:
    named = {"write.format.default": "orc", **{f"write.orc.{key}": text for key, text in properties.items()}}
    schema = replace(schema_of(columns), location=f"file://{folder}", format_version=2, properties=named)
    naming = IcebergNaming(Run("night", "0" * 16, "a", 0))
    writer = IcebergFileWriter(LocalStorage("/"), schema, naming, spec_id=0, values=())
    return writer.write(chunks, target_bytes=target)


def test_files_have_the_target_size(tmp_path: Path) -> None:
    """All but the first, which ends after a whole stripe, and the last."""
    random = np.random.default_rng(1)
    chunks = [
        pa.table(
            {
                "a": random.integers(0, 1 << 40, 50_000),
                "b": pa.array([f"text {n % 999}" for n in range(50_000)]),
                "c": random.random(50_000),
            }
        )
        for _ in range(5)
    ]
    first, *others, last = (file.bytes for file in written(tmp_path, COLUMNS, *chunks))
    assert TARGET <= first <= 1.25 * TARGET and 0 < last <= 1.05 * TARGET
    assert len(others) >= 1 and all(0.95 * TARGET <= size <= 1.05 * TARGET for size in others)


def test_types_have_the_attributes_that_java_gives_them(tmp_path: Path) -> None:
    columns = (("n", "long"), ("u", "uuid"), ("f", "fixed[3]"), ("t", "time"), ("z", "timestamptz"), ("b", "binary"))
    rows = pa.table(
        {
            "n": pa.array([1], pa.int64()),
            "u": pa.array([b"0" * 16], pa.binary(16)),
            "f": pa.array([b"abc"], pa.binary(3)),
            "t": pa.array([1], pa.time64("us")),
            "z": pa.array([1], pa.timestamp("us", "UTC")),
            "b": pa.array([b"x"], pa.binary()),
        }
    )
    (file,) = written(tmp_path, columns, rows)
    held = {
        field.name: {k.decode(): v.decode() for k, v in field.metadata.items()}
        for field in orc.ORCFile(f"/{file.name}").schema
    }
    assert [each["iceberg.id"] for each in held.values()] == [str(n) for n in range(1, 7)]
    own = {
        name: {k: v for k, v in each.items() if k not in ("iceberg.id", "iceberg.required")}
        for name, each in held.items()
    }
    assert own == {
        "n": {"iceberg.long-type": "LONG"},
        "u": {"iceberg.binary-type": "UUID"},
        "f": {"iceberg.binary-type": "FIXED", "iceberg.length": "3"},
        "t": {"iceberg.long-type": "TIME"},
        "z": {"iceberg.timestamp-unit": "MICROS"},
        "b": {"iceberg.binary-type": "BINARY"},
    }
    assert file.file.raw["file_format"] == "ORC" and "split_offsets" not in file.file.raw


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"compression-codec": "lzo"}, "compression lzo of ORC files"),
        ({"compression-strategy": "best"}, "compression strategy best"),
        ({"stripe-size-bytes": "64 MB"}, "is '64 MB', which is no size"),
        ({"stripe-size-bytes": "0"}, "is '0', which is no size"),
    ],
)
def test_properties_that_are_not_handled_are_refused(properties: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedTable, match=message):
        written(tmp_path, COLUMNS, **properties)


@pytest.mark.parametrize("micros", [-1, -(2**62), 2**62])
def test_times_that_orc_files_cannot_hold_are_refused(micros: int, tmp_path: Path) -> None:
    rows = pa.table({"at": pa.array([micros], pa.timestamp("us"))})
    with pytest.raises(NightkeepError, match="at"):
        written(tmp_path, (("at", "timestamp"),), rows)
