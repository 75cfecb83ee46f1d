"""Parquet files of another writer in place of Paimon's own, as its migrations leave them: Java says what they hold."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.drivers.json_lines import EngineError
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout, Scan
from tests.formats.paimon.appended import operate
from tests.support.extended import some_extended

from nightkeep.checking.check import check
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

LTZ = "TIMESTAMP({}) WITH LOCAL TIME ZONE"
OPTIONS = {"file.format": "parquet", "bucket": "-1", "metadata.stats-mode": "none"}
STATISTICS = {f"fields.{name}.stats-mode": "full" for name in ("id", "text")}
NUMBERS = (16_000_001, None, -5)
ALIKE = [
    pytest.param("TIMESTAMP(6)", pa.timestamp("us", "UTC"), id="adjusted"),
    pytest.param(LTZ.format(6), pa.timestamp("us"), id="not adjusted"),
    pytest.param(LTZ.format(3), pa.timestamp("ms"), id="not adjusted millis"),
]
OTHERWISE = [
    pytest.param("TIMESTAMP(6)", pa.timestamp("ms"), "1970-01-01T00:00:16.000001", id="millis"),
    pytest.param("TIMESTAMP(6)", pa.timestamp("ns"), "1970-01-01T00:00:16.000001", id="nanos"),
    pytest.param("TIMESTAMP(9)", pa.int64(), "1970-01-01T04:26:40.001000000", id="no unit"),
    pytest.param("BIGINT", pa.int32(), None, id="narrow"),
    pytest.param("DOUBLE", pa.float32(), None, id="single"),
]
"""The third is what Java 2.0.0 reads of the first of NUMBERS; None: it fails."""


@pytest.mark.parametrize(("kind", "stored"), some_extended(ALIKE, keep=1))
def test_times_of_the_other_meaning_are_kept_as_java_reads_them(
    kind: str, stored: pa.DataType, tmp_path: Path, paimon_java: PaimonJava, spark: SparkSession
) -> None:
    table = foreign(paimon_java, tmp_path / "t", kind, stored)
    shown = rows(paimon_java, table)
    document = operate(table, Operation.OPTIMIZE, full=True, clustering={"zorder": ["id", "text"]})
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert rows(paimon_java, table) == shown
    request = CheckRequest(address=Address("paimon", str(table), "t"), version=document.committed_version)
    assert check(request, spark=spark).status is CheckStatus.PASSED


@pytest.mark.parametrize(("kind", "stored", "shown"), some_extended(OTHERWISE, keep=1))
def test_values_that_java_reads_otherwise_are_refused_before_anything_is_published(
    kind: str, stored: pa.DataType, shown: str | None, tmp_path: Path, paimon_java: PaimonJava
) -> None:
    table = foreign(paimon_java, tmp_path / "t", kind, stored)
    if shown is None:
        with pytest.raises(EngineError, match="Failed to read batch"):
            rows(paimon_java, table)
    else:
        assert rows(paimon_java, table)[0] == (0, shown)
    document = operate(table, Operation.OPTIMIZE, full=True, clustering={"zorder": ["id", "text"]})
    assert (document.outcome, document.committed_version) == (Outcome.REFUSED, None)
    assert f"column v of type {kind}" in str(document.reason)


def rows(engine: PaimonJava, table: Path) -> Sequence[Any]:
    return sorted(row[:2] for row in engine.read(table, Scan(projection=["id", "v"])).rows)


def foreign(engine: PaimonJava, table: Path, kind: str, stored: Any) -> Path:
    """Six files; the first is of the same size as Java's, and its column v is `stored`."""
    columns = [("id", "INT"), ("v", kind), ("text", "STRING")]
    engine.create(table, Layout(columns, options=OPTIONS | STATISTICS))
    engine.write(table, [("+I", number, None, str(number) * 9) for number in range(len(NUMBERS))])
    (path,) = table.glob("bucket-0/*.parquet")
    for number in range(10, 15):
        engine.write(table, [("+I", number, None, "more")])
    values = pa.array(NUMBERS, pa.int64())
    held = values.cast(stored)
    written = pa.table({"id": pa.array(range(len(NUMBERS)), pa.int32()), "v": held})
    texts = pa.array([str(number) * 9 for number in range(len(NUMBERS))])
    sink = pa.BufferOutputStream()
    pq.write_table(written.append_column("text", texts), sink, store_schema=False, write_statistics=False)
    data = sink.getvalue().to_pybytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    room = path.stat().st_size - len(data)
    assert room >= 0, room
    path.write_bytes(data[:-footer] + bytes(room) + data[-footer:])
    return table
