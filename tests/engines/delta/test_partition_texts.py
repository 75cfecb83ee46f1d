"""Texts of partition values as other writers spell them: read, kept and proven as delta-spark reads them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.drivers.delta_spark import DeltaSpark
from tests.formats.delta.runs import opened, optimize

import nightkeep
from nightkeep.checking.check import check
from nightkeep.errors import RefusedTable
from nightkeep.model import Address, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

TEXTS: Mapping[str, Sequence[str | None]] = {
    "string": ["", " ", "a", "null", "__HIVE_DEFAULT_PARTITION__", None],
    "binary": ["", " ", "a", "\u00e9", "\u0000", None],
    "boolean": ["", "true", "TRUE", "t", "y", "yes", "1", "0", "no", "n", "F", " true", "on", "2", None],
    "integer": [
        "",
        "5",
        "+5",
        " 5",
        "5.0",
        "5.9",
        "-5.9",
        ".5",
        "5.",
        ".",
        "-",
        "5e0",
        "0x5",
        "abc",
        "2147483648",
        "00005",
        "\uff11",
        "\t5\n",
        "-0",
        "1_000",
        None,
    ],
    "long": ["9223372036854775807", "9223372036854775808", "5.99", None],
    "byte": ["128", "-128", "1.5"],
    "double": [
        "",
        "inf",
        "+inf",
        "-inf",
        "INF",
        "Infinity",
        "-Infinity",
        "infinity",
        "NaN",
        "nan",
        "1e400",
        "1e-400",
        "1.5d",
        "1.5f",
        "0x1p3",
        " 1.5 ",
        "1,5",
        ".5",
        "5.",
        "-0.0",
        "+1.5",
        "1.5L",
        "--1",
        "1e",
        None,
    ],
    "float": ["inf", "1e39", "0.1", "1e-50", "1.5f", "nan", None],
    "decimal(10,2)": [
        "",
        "5",
        "5.0",
        "5.005",
        "5.004",
        "-5.005",
        "1E+2",
        "123456789",
        "99999999.995",
        "abc",
        " 5 ",
        "-0",
        "5.",
        "NaN",
        ".5",
        "0e50",
        None,
    ],
    "date": [
        "",
        "2024-01-01",
        "2024-1-1",
        "2024-01",
        "2024",
        "2024-01-01 00:00:00",
        "2024-01-01T00:00:00",
        "2024-01-01 abc",
        "2024-01-01T",
        " 2024-01-01 ",
        "+2024-01-01",
        "-0001-01-01",
        "-1-01-01",
        "0000-01-01",
        "0000-02-29",
        "10000-01-01",
        "99999-12-31",
        "9999999-01-01",
        "24-01-01",
        "2024-02-30",
        "2024/01/01",
        "2024-01-01Z",
        "today",
        None,
    ],
    "timestamp": [
        "",
        "2024-01-01",
        "2024-01-01 12",
        "2024-01-01 12:30",
        "2024-01-01 12:30:15.",
        "2024-1-1 1:2:3",
        "2024-01-01 12:30:15.1234567",
        "2024-01-01T12:30:15.000000Z",
        "2024-01-01 12:30:15 UTC",
        "2024-01-01 12:30:15+1:00",
        "2024-01-01 12:30:15 +0100",
        "2024-01-01 12:30:15GMT+1",
        "2024-01-01 12:30:15UTC+01:00",
        "2024-01-01 12:30:15 Europe/Berlin",
        "2024-01-01 12:30:15 PST",
        "2024-01-01 12:30:15-18:00",
        "2024-01-01 12:30:15+19:00",
        "2024-01",
        "2024",
        "2024-01-01 24:00:00",
        "-0001-01-01 00:00:00",
        "0000-01-01 00:00:00",
        "10000-01-01 00:00:00",
        "2024-01-01 12:30Z",
        "2024-01-01 12:30:15.5+01:00:30",
        "2024-01-01 12:30:15z",
        "294248-01-01 00:00:00",
        "abc",
        None,
    ],
    "timestamp_ntz": [
        "",
        "2024-01-01",
        "2024-01-01 12:30:15.1234567",
        "2024-01-01 12:30:15+01:00",
        "2024-01-01 12:30",
        "T12:30",
        "0000-01-01 00:00:00",
        "10000-01-01 00:00:00",
        None,
    ],
}
SHOWN: Mapping[str, str] = {
    "binary": "hex(p)",
    "date": "unix_date(p)",
    "timestamp": "unix_micros(p)",
    "timestamp_ntz": "unix_micros(cast(p AS TIMESTAMP))",
}


def made(folder: Path, kind: str, texts: Sequence[str | None], *, files: int = 1) -> Path:
    """A table with `files` small files for each text, and some for no text at all; `id` numbers the texts."""
    (folder / "_delta_log").mkdir(parents=True)
    ntz = ["timestampNtz"]
    protocol: dict[str, object] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if kind == "timestamp_ntz":
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ntz, "writerFeatures": ntz}
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in (("id", "integer"), ("p", kind))]
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "createdTime": 1,
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["p"],
        "configuration": {},
    }
    actions: list[dict[str, object]] = [{"protocol": protocol}, {"metaData": metadata}]
    for number, text in enumerate([*texts, "MISSING"]):
        for part in range(files):
            name = f"part-{number}-{part}.parquet"
            pq.write_table(pa.table({"id": pa.array([number], pa.int32())}), folder / name)
            values = {} if text == "MISSING" else {"p": text}
            stats = json.dumps(
                {"numRecords": 1, "minValues": {"id": number}, "maxValues": {"id": number}, "nullCount": {"id": 0}}
            )
            size = (folder / name).stat().st_size
            add = {"path": name, "partitionValues": values, "size": size, "modificationTime": 1, "dataChange": True}
            actions.append({"add": {**add, "stats": stats}})
    log = "".join(json.dumps(action) + "\n" for action in actions)
    (folder / "_delta_log" / f"{0:020d}.json").write_text(log)
    return folder


def ours(table: Path) -> list[tuple[int, str]]:
    """Ids and texts of the values of all rows that Nightkeep reads."""
    rows = nightkeep.read(f"delta:{table}").read_all()
    p = rows.column("p").combine_chunks()
    if pa.types.is_date(p.type):
        p = p.cast(pa.int32())
    elif pa.types.is_timestamp(p.type):
        p = p.cast(pa.int64())
    values = [value.hex().upper() if isinstance(value, bytes) else value for value in p.to_pylist()]
    return sorted(zip(rows.column("id").to_pylist(), map(_plain, values), strict=True))


def theirs(delta_spark: DeltaSpark, table: Path, kind: str) -> list[tuple[int, str]]:
    found = delta_spark.read(table, columns=("id", f"{SHOWN.get(kind, 'p')} AS v"))
    return sorted((row[0], _plain(row[1])) for row in found.rows)


def _plain(value: object) -> str:
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        value = float(value)
    return str(float(value)) if isinstance(value, float) else str(value)


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_is_what_delta_spark_reads(delta_spark: DeltaSpark, tmp_path: Path, kind: str) -> None:
    table = made(tmp_path / "t", kind, TEXTS[kind])
    assert ours(table) == theirs(delta_spark, table, kind)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", TEXTS)
def test_a_rewrite_changes_no_value(delta_spark: DeltaSpark, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table = made(tmp_path / "t", kind, TEXTS[kind], files=3)
    before = theirs(delta_spark, table, kind)
    document = optimize(table)
    assert document.outcome is Outcome.VERIFIED, document.reason
    delta_spark.forget()
    assert theirs(delta_spark, table, kind) == before == ours(table)
    found = check(
        CheckRequest(address=Address("delta", str(table), "t"), version=document.committed_version), spark=spark
    )
    assert found.status is CheckStatus.PASSED, found
    kept = {unit.stored_partition["p"] for unit in opened(table).snapshot().units}
    assert kept <= {*TEXTS[kind], None}
    assert optimize(table).outcome is Outcome.UNCHANGED


def test_an_empty_text_stays_apart_from_null(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    for kind in ("string", "binary"):
        table = made(tmp_path / kind, kind, ["", None], files=2)
        document = optimize(table)
        assert document.outcome is Outcome.VERIFIED, document.reason
        assert [row for row in theirs(delta_spark, table, kind) if row[0] == 0] == [(0, "")] * 2
        assert nightkeep.read(f"delta:{table}", where="p IS NULL").read_all().column("id").to_pylist() == [1, 1, 2, 2]


def test_a_time_of_today_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "timestamp", ["12:30"])
    with pytest.raises(RefusedTable, match="the text '12:30' of a partition is another timestamp"):
        nightkeep.read(f"delta:{table}").read_all()
