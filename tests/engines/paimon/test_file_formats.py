"""Data files of other formats than Parquet: Java writes, Nightkeep lifts and proves, Spark and Java read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import SHORT_LIVED, PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Layout, Row, Scan
from tests.formats.paimon.upgrade import upgrade
from tests.support.extended import some_extended

from nightkeep.checking.check import check
from nightkeep.model import Address, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus
from nightkeep.records.check_report import CheckReport

ZONED = "TIMESTAMP(6) WITH LOCAL TIME ZONE"
COLUMNS = [
    ("k", "INT NOT NULL"),
    ("code", "STRING NOT NULL"),
    ("flag", "BOOLEAN"),
    ("small", "TINYINT"),
    ("ratio", "FLOAT"),
    ("amount", "DECIMAL(30, 4)"),
    ("char", "CHAR(4)"),
    ("text", "VARCHAR(20)"),
    ("raw", "BINARY(2)"),
    ("day", "DATE"),
    ("time", "TIME(3)"),
    ("at", "TIMESTAMP(9)"),
    ("zoned", ZONED),
]
AT = 1 + [name for name, _ in COLUMNS].index("at")
OPTIONS = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}
UTC_WRITERS = {"orc.timestamp-ltz.legacy.type": "false"}
FORMATS: Mapping[str, Mapping[str, str]] = {
    "orc": {"file.format": "orc"},
    "orc below": {"file.format.per.level": "5:orc,4:orc", **UTC_WRITERS},
    "avro": {"file.format": "avro"},
    "avro level 0": {"file.format.per.level": "0:avro"},
    "thin": {"data-file.thin-mode": "true", "metadata.stats-mode": "none"},
    "thin orc": {"data-file.thin-mode": "true", "file.format": "orc", "file.format.per.level": "0:avro", **UTC_WRITERS},
    "orc above": {"file.format": "parquet", "file.format.per.level": "0:orc", **UTC_WRITERS},
}

SUFFIXES = {"orc above": ".parquet", "avro": ".avro", "avro level 0": ".parquet", "thin": ".parquet"}
"""Of the files above level 0, where they are not ORC."""


def full_row(kind: str, k: int, step: int) -> Row:
    blanks = " " * (k % 3)
    return (
        kind,
        k,
        f"c{k % 7}",
        k % 2 == 0,
        k % 100,
        "-0.0" if k % 5 == 0 else k / 8,
        f"{k}.{step:04d}",
        f"{k % 10}",
        f"{step}{blanks}",
        f"{k % 256:02x}ff",
        f"{1000 + k % 1000:04d}-02-28",
        "01:02:03.004",
        f"{1990 + k % 40}-01-01T00:00:00.123456789",
        None if k % 4 else f"2026-11-0{1 + step}T01:02:03.123456Z",
    )


def made(java: PaimonJava, table: Path, options: Mapping[str, str], rows: int = 600) -> Path:
    """Rows on the top level with a vector over them, a level in between, and level-0 files over both."""
    in_avro = "avro" in str(options)
    columns = [(name, "TIMESTAMP(6)" if in_avro and name == "at" else text) for name, text in COLUMNS]
    java.create(table, Layout(columns, ["k", "code"], options={**OPTIONS, **options}))
    digits = slice(None, -3) if in_avro else slice(None)

    def row(kind: str, k: int, step: int) -> Row:
        return [value[digits] if n == AT else value for n, value in enumerate(full_row(kind, k, step))]

    java.write(table, [row("+I", k, 1) for k in range(rows)])
    assert upgrade(table, full=True).outcome is Outcome.VERIFIED
    java.write(table, [row("+U", k, 2) for k in range(0, rows, 3)])
    assert upgrade(table).outcome is Outcome.VERIFIED
    java.write(table, [row("-D" if k % 10 == 0 else "+U", k, 3) for k in range(0, rows, 5)])
    return table


def rows(java: PaimonJava, table: Path, options: Mapping[str, str]) -> Sequence[object]:
    return sorted(map(repr, java.read(table, Scan(options=options)).rows))


def second_opinion(table: Path, spark: SparkSession, *, version: int) -> CheckReport:
    request = CheckRequest(Address("paimon", str(table), table.name), version=version, base_version=version - 1)
    return check(request, spark=spark)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", some_extended(FORMATS, keep=3))
def test_every_reader_sees_the_same_rows(
    name: str, paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path
) -> None:
    table = made(paimon_java, tmp_path / "t", FORMATS[name])
    paimon_java.alter(
        table,
        {"change": "rename_column", "name": "text", "to": "words"},
        {"change": "change_type", "name": "small", "type": "INT"},
        {"change": "add_column", "name": "more", "type": "BIGINT"},
    )
    late = [(*full_row("+U", 600 + k, 4), k) for k in range(50)]
    paimon_java.write(table, [[*each[:AT], None, *each[AT + 1 :]] for each in late])
    before = rows(paimon_java, table, MERGE_ON_READ)
    if name == "thin":
        # Java keeps statistics of the columns that are keys, whatever the mode, and so do we.
        assert {frozenset(file.value_stats) for file in paimon_java.files(table)} == {frozenset({"k", "code"})}

    document = upgrade(table)

    assert document.outcome is Outcome.VERIFIED
    assert rows(paimon_java, table, {}) == before
    formats = {Path(file.name).suffix for file in paimon_java.files(table)}
    assert formats == {SUFFIXES.get(name, ".orc")}
    found = second_opinion(table, spark, version=document.committed_version or 0)
    assert found.status is CheckStatus.PASSED, str(found)


@pytest.mark.extended
def test_times_that_readers_shift_by_their_zone_stay_as_they_are(tmp_path: Path) -> None:
    """Java stores TIMESTAMP WITH LOCAL TIME ZONE in ORC files shifted by its zone, and tells the zone to nobody."""
    java = PaimonJava(java_options=[*SHORT_LIVED, "-Duser.timezone=Asia/Shanghai"])
    try:
        table = made(java, tmp_path / "t", FORMATS["orc"])
        before = rows(java, table, MERGE_ON_READ)
        assert upgrade(table, full=True).outcome is Outcome.VERIFIED
        assert rows(java, table, {}) == before
    finally:
        java.stop()


def test_fractions_before_1970_are_read_from_orc_files(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = tmp_path / "t"
    options = {**OPTIONS, **FORMATS["orc above"]}
    paimon_java.create(table, Layout([("k", "INT NOT NULL"), ("at", "TIMESTAMP(9)")], ["k"], options=options))
    times = ("1969-12-31T23:59:58.999999999", "1969-12-31T23:59:58.000000001", "1700-02-03T04:05:06.123456789")
    paimon_java.write(table, [("+I", k, at) for k, at in enumerate(times)])
    before = rows(paimon_java, table, MERGE_ON_READ)
    assert upgrade(table, full=True).outcome is Outcome.VERIFIED
    assert rows(paimon_java, table, {}) == before
    assert all(any(at in each for each in map(str, before)) for at in times)


@pytest.mark.extended
def test_a_fault_of_arrows_reader_is_found_by_the_check(
    paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rewrite and the gate decode by it, and see the same wrong rows; the check decodes by ORC's in Java."""

    class Faulty(orc.ORCFile):
        def read_stripe(self, n: int, columns: list[str] | None = None) -> pa.RecordBatch:
            batch = super().read_stripe(n, columns)
            place = batch.schema.get_field_index("text")
            if place < 0:
                return batch
            return batch.set_column(
                place, batch.schema.field(place), pc.replace_substring(batch.column(place), "3", "2")
            )

    table = made(paimon_java, tmp_path / "t", FORMATS["orc"])
    monkeypatch.setattr(orc, "ORCFile", Faulty)
    document = upgrade(table, full=True)
    assert document.outcome is Outcome.VERIFIED, document.reason
    found = second_opinion(table, spark, version=document.committed_version or 0)
    assert found.status is CheckStatus.FAILED


@pytest.mark.extended
def test_a_damaged_orc_file_is_found_by_the_check(paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path / "t", FORMATS["orc"])
    document = upgrade(table)
    newest = min(paimon_java.files(table), key=lambda file: file.level)
    (path,) = table.rglob(newest.name)
    stored = orc.ORCFile(path).read()
    texts = stored.column("text").to_pylist()
    texts[7] = "another"
    place = stored.column_names.index("text")
    orc.write_table(stored.set_column(place, stored.schema.field(place), pa.array(texts)), path)

    found = second_opinion(table, spark, version=document.committed_version or 0)
    assert found.status is CheckStatus.FAILED
