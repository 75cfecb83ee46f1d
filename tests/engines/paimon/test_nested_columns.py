"""Tables with nested columns: Java writes and evolves them, Nightkeep lifts and proves, Spark and Java read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, Row, Scan, Writer
from tests.formats.paimon.changelogs import applied, newest
from tests.formats.paimon.followed import (
    Maintain,
    assert_spark_counts_wrong_changes,
    seen_beside_java,
    unreported_in_spark,
)
from tests.formats.paimon.gate.test_changes import AFTER, KIND, changed
from tests.formats.paimon.gate.test_sabotage import assert_stopped, before_the_gate
from tests.formats.paimon.upgrade import optimize, upgrade
from tests.support.extended import some_extended

import nightkeep
from nightkeep.checking.check import check
from nightkeep.formats.paimon.data import columns
from nightkeep.formats.paimon.data.nested_columns import conformed
from nightkeep.formats.paimon.metadata.types import PaimonType
from nightkeep.formats.paimon.rewrite import rewrite
from nightkeep.formats.paimon.rewrite.gather import completed
from nightkeep.model import Address, Outcome
from nightkeep.model.arrow_types import ChunkedArray
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

PLACE: Mapping[str, Any] = {
    "type": "ROW",
    "fields": [
        {"id": 0, "name": "x", "type": "INT"},
        {"id": 1, "name": "name", "type": "STRING"},
        {"id": 2, "name": "at", "type": "TIMESTAMP(3)"},
        {"id": 3, "name": "inner", "type": {"type": "ROW", "fields": [{"id": 4, "name": "ratio", "type": "FLOAT"}]}},
    ],
}
COLUMNS = [
    ("k", "INT NOT NULL"),
    ("numbers", json.dumps({"type": "ARRAY", "element": "INT"})),
    ("amounts", json.dumps({"type": "MAP", "key": "STRING", "value": "DECIMAL(10, 2)"})),
    ("bag", json.dumps({"type": "MULTISET", "element": "STRING NOT NULL"})),
    ("place", json.dumps(PLACE)),
    ("stops", json.dumps({"type": "ARRAY", "element": PLACE})),
    ("note", "STRING"),
]
OPTIONS = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}
TABLES: Mapping[str, Mapping[str, str]] = {
    "parquet": {},
    "orc": {"file.format": "orc"},
    "both": {"file.format.per.level": "0:orc", "metadata.stats-dense-store": "false"},
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
}


def place(k: int, step: int) -> Sequence[object] | None:
    if k % 5 == 0:
        return None
    return [None if k % 3 else k, f"place {step}", f"2026-11-0{step}T01:02:03.004", None if k % 2 else [k / 4]]


def row(kind: str, k: int, step: int) -> Row:
    return (
        kind,
        k,
        None if k % 7 == 0 else [step, None, *range(k % 4)],
        None if k % 11 == 0 else [[f"a{n}", f"{step}.{n:02d}"] for n in range(k % 3)],
        [[f"b{k % 2}", 1 + step]],
        place(k, step),
        None if k % 4 == 0 else [place(k + n, step) for n in range(k % 3)],
        f"note {step}",
    )


def made(java: PaimonJava, table: Path, options: Mapping[str, str], rows: int = 400) -> Path:
    java.create(table, Layout(COLUMNS, ["k"], options={**OPTIONS, **options}))
    java.write(table, [row("+I", k, 1) for k in range(rows)])
    assert upgrade(table, full=True).outcome is Outcome.VERIFIED
    java.write(table, [row("+U", k, 2) for k in range(0, rows, 3)])
    return table


def rows(java: PaimonJava, table: Path, options: Mapping[str, str]) -> Sequence[str]:
    return sorted(map(repr, java.read(table, Scan(options=options)).rows))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", some_extended(TABLES, keep=2))
def test_values_are_kept_while_their_fields_evolve(
    name: str, paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path
) -> None:
    table = made(paimon_java, tmp_path / "t", TABLES[name])
    paimon_java.alter(
        table,
        {"change": "rename_column", "name": "place.name", "to": "label"},
        {"change": "drop_column", "name": "place.at"},
        {"change": "add_column", "name": "place.more", "type": "BIGINT"},
        {"change": "change_type", "name": "place.inner.ratio", "type": "DOUBLE"},
        {"change": "change_type", "name": "numbers.element", "type": "BIGINT"},
        {"change": "add_column", "name": "stops.element.more", "type": "STRING"},
        # Another field with an old name has none of its values.
        {"change": "drop_column", "name": "stops.element.x"},
        {"change": "add_column", "name": "stops.element.x", "type": "INT"},
    )
    late = [None, "late", [2.5], 7]
    stop = ["late", "2026-11-09T01:02:03.004", None, "more", 9]
    paimon_java.write(
        table, [("+U", k, [2**40, k], [["z", "9.99"]], [["b", 3]], late, [stop], "late") for k in range(0, 500, 9)]
    )
    paimon_java.write(table, [("-D", k, *[None] * 6) for k in range(0, 400, 20)])

    before = rows(paimon_java, table, MERGE_ON_READ)
    told = {frozenset(file.value_stats) for file in paimon_java.files(table) if file.level == 0 and file.rows > 100}
    document = upgrade(table)
    assert document.outcome is Outcome.VERIFIED, str(document)
    assert rows(paimon_java, table, {}) == before
    # Of nested columns Java tells nothing, or the number of nulls in ORC files.
    assert {frozenset(file.value_stats) for file in paimon_java.files(table)} == told
    version = document.committed_version or 0
    request = CheckRequest(Address("paimon", str(table), table.name), version=version, base_version=version - 1)
    found = check(request, spark=spark)
    assert found.status is CheckStatus.PASSED, str(found)


def by_place(column: ChunkedArray, written: PaimonType, wanted: PaimonType, *, pads_chars: bool) -> ChunkedArray:
    """Fields by their names, as a reader without ids would have them."""
    ids = {field.name: field.id for field in wanted.children}
    named = [replace(field, id=ids.get(field.name)) for field in written.children if field.name in ids]
    return conformed(column, replace(written, children=tuple(named)), wanted, pads_chars=pads_chars)


def test_fields_that_are_mapped_wrongly_are_found_by_the_check(
    paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rewrite and the gate read with one code; Spark maps fields on its own."""
    table = tmp_path / "t"
    place = ("place", json.dumps({"type": "ROW", "fields": PLACE["fields"][:2]}))
    paimon_java.create(table, Layout([COLUMNS[0], place], ["k"], options=OPTIONS))
    paimon_java.write(table, [("+I", k, [k, f"place {k}"]) for k in range(50)])
    paimon_java.alter(table, {"change": "drop_column", "name": "place.name"})
    paimon_java.alter(table, {"change": "add_column", "name": "place.name", "type": "STRING"})
    paimon_java.write(table, [("+U", k, [k, "late"]) for k in range(25, 75)])
    with monkeypatch.context() as patch:
        patch.setattr(columns, "conformed", by_place)
        document = upgrade(table, full=True)
    assert document.outcome is Outcome.VERIFIED
    request = CheckRequest(Address("paimon", str(table), "t"), version=document.committed_version or 0, base_version=2)
    assert check(request, spark=spark).status is CheckStatus.FAILED


def test_a_value_that_is_lost_on_the_way_is_not_published(
    paimon_java: PaimonJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(paimon_java, tmp_path / "t", {}, rows=60)
    paimon_java.write(table, [("-D", 1, *[None] * 6)])

    def shortened(*args: Any, **options: Any) -> Iterator[pa.Table]:
        for chunk in completed(*args, **options):
            place = chunk.column_names.index("numbers")
            lists = [each and each[:-1] for each in chunk.column("numbers").to_pylist()]
            yield chunk.set_column(place, chunk.schema.field(place), pa.array(lists, chunk.schema.types[place]))

    with monkeypatch.context() as patch:
        patch.setattr(rewrite, "completed", shortened)
        assert upgrade(table).outcome is Outcome.MISMATCH


CHANGES: Mapping[str, tuple[Maintain, Mapping[str, str]]] = {
    "by lookup, with vectors": (upgrade, {"changelog-producer": "lookup", "deletion-vectors.enabled": "true"}),
    "by lookup": (optimize, {"changelog-producer": "lookup", "file.format": "orc"}),
    "by full compaction": (
        optimize,
        {
            "changelog-producer": "full-compaction",
            "merge-engine": "partial-update",
            "ignore-delete": "true",
            "num-sorted-run.compaction-trigger": "2",
        },
    ),
}


@pytest.mark.extended
@pytest.mark.parametrize("name", some_extended(CHANGES, keep=2))
def test_streaming_readers_receive_nested_values(
    name: str, paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path
) -> None:
    maintain, options = CHANGES[name]
    table = tmp_path / "ours"
    paimon_java.create(table, Layout(COLUMNS, ["k"], options={"bucket": "1", "write-only": "true", **options}))
    paimon_java.write(table, [row("+I", k, 1) for k in range(60)], Writer(user="writer"))

    def add(engine: PaimonJava, table: Path, number: int) -> None:
        kinds = ["-D" if k % 6 == number else "+U" for k in range(100)]
        rows = [row(kinds[k], k, 1 + number) for k in range(20 * number, 20 * number + 40)]
        engine.write(table, rows, Writer(user="writer"))

    seen = seen_beside_java(paimon_java, table, maintain=maintain, full=(name == "by full compaction",) * 3, add=add)
    assert nightkeep.read(f"paimon:{table}", incremental="changelog", since=1).read_all().num_rows == len(seen)
    deletes = {"-D"} if name != "by full compaction" else set()
    assert {kind for kind, *_ in seen} == {"+I", "-U", "+U"} | deletes
    assert applied({}, seen, [0]) == {(each[0],): tuple(each) for each in paimon_java.read(table).rows}
    version = int(paimon_java.snapshots(table)[-1]["id"])
    if options.get("file.format") != "orc":
        assert_spark_counts_wrong_changes(table, version, spark)
    else:
        assert unreported_in_spark(table, version, spark)() == 0


def another_element(rows: pa.Table) -> pa.Table:
    """Of the first row after an update, another element of an array."""
    values = rows.column("numbers").to_pylist()
    place = next(n for n, kind in enumerate(rows.column(KIND).to_pylist()) if kind == AFTER and values[n])
    values[place] = [*values[place][:-1], 99]
    field = rows.schema.field("numbers")
    return rows.set_column(rows.column_names.index("numbers"), field, pa.array(values, field.type))


def test_the_gate_catches_a_nested_value_that_is_reported_wrongly(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path / "t", {"changelog-producer": "lookup"}, rows=60)
    with before_the_gate(table, changed(another_element)):
        document = upgrade(table)
    assert_stopped(table, document, "changes for streaming readers")


RATIOS = json.dumps({"type": "MAP", "key": "STRING", "value": "DOUBLE"})
HELD = [("k", "INT NOT NULL"), ("a", COLUMNS[1][1]), ("m", RATIOS), ("r", json.dumps(PLACE)), ("note", "STRING")]
NAN = ["b", "NaN"]


def test_java_reports_rows_again_that_hold_nulls(paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path) -> None:
    """With row-deduplicate, rows that are replaced by equal ones are silent. Where arrays or maps hold nulls, Java does
    not take them for equal, unless it holds them alike."""
    entries, reordered, place = [["a", 1.5], NAN], [NAN, ["a", 1.5]], [7, None, None, [2.5]]
    before = [
        [[1, 2], entries, place],
        [[1, 2], entries, place],
        [[1, 2], entries, place],
        [[1, 2], entries, place],
        [None, None, None],
        [[None], entries, place],
        [[1, 2], [["a", None]], place],
    ]
    after = [
        [[1, 2], reordered, place],
        [[2, 1], reordered, place],
        [[1, 2], [["a", 1.5], ["b", 2.5]], place],
        [[1, 2], reordered, [7, None, None, [3.5]]],
        [None, None, None],
        [[None], reordered, place],
        [[1, 2], [["a", None]], place],
    ]
    ours = tmp_path / "ours"
    silent = {"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true"}
    ignored = {"changelog-producer.row-deduplicate-ignore-fields": "note"}
    paimon_java.create(ours, Layout(HELD, ["k"], options={**OPTIONS, **silent, **ignored}))
    paimon_java.write(ours, [("+I", k, *values, "first") for k, values in enumerate(before)], Writer(user="writer"))
    assert upgrade(ours, full=True).outcome is Outcome.VERIFIED
    paimon_java.write(ours, [("+U", k, *values, "later") for k, values in enumerate(after)], Writer(user="writer"))
    java = Path(shutil.copytree(ours, tmp_path / "java"))
    since = newest(paimon_java, ours) + 1
    document = upgrade(ours)
    assert document.outcome is Outcome.VERIFIED, document.reason
    paimon_java.compact(java, Compaction(user="compactor", single_pick=True))
    told = [[row[1] for row in paimon_java.changes(table, since=since).rows] for table in (ours, java)]
    assert told == [[1, 1, 2, 2, 3, 3], [1, 1, 2, 2, 3, 3, 5, 5, 6, 6]]
    assert unreported_in_spark(ours, document.committed_version or 0, spark)() == 0
