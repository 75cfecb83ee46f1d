"""Table metadata: checked values, the next version of it, schemas and specs; and types as rows and files have them."""

import copy
import gzip
import json
import pickle
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.iceberg.catalog_world import next_snapshot
from tests.formats.iceberg.content_made import metadata_of

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.iceberg.metadata.schema import parse
from nightkeep.formats.iceberg.metadata.table_metadata import ancestors, decode, head, with_snapshot
from nightkeep.formats.iceberg.metadata.types import arrow_schema, arrow_type, parquet_field

COLUMNS = [("id", "long"), ("name", "string")]


def history(length: int = 2, version: int = 3, **more: Any) -> dict[str, Any]:
    """Metadata of a table with snapshots 100, 101, ..., the last of them current."""
    snapshots = [
        {
            "snapshot-id": 100 + place,
            **({"parent-snapshot-id": 99 + place} if place else {}),
            "sequence-number": place + 1,
            "timestamp-ms": 1_000 * (place + 1),
            "manifest-list": f"file:///lake/t/metadata/snap-{place}.avro",
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        for place in range(length)
    ]
    log = [{"timestamp-ms": each["timestamp-ms"], "snapshot-id": each["snapshot-id"]} for each in snapshots]
    return metadata_of(COLUMNS, version=version) | {
        "current-snapshot-id": 99 + length,
        "refs": {"main": {"snapshot-id": 99 + length, "type": "branch"}},
        "snapshots": snapshots,
        "snapshot-log": log,
        "metadata-log": [],
        "last-sequence-number": length,
        "last-updated-ms": 1_000 * length,
        "next-row-id": 10,
        **more,
    }


def added(raw: Mapping[str, Any], snapshot: Mapping[str, Any]) -> Any:
    return with_snapshot(raw, snapshot, location="file:///lake/t/metadata/00001-x.metadata.json", subject="db.t")


# Reading


@given(
    st.binary(max_size=30)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_bytes_are_a_json_object_or_corrupt(data: bytes) -> None:
    for told in (data, gzip.compress(data)):
        with pytest.raises(CorruptMetadata, match="here: expected"):
            decode(told, subject="here")
    assert decode(gzip.compress(b'{"a": 1}'), subject="here") == decode(b'{"a": 1}', subject="here") == {"a": 1}


DAMAGE: list[tuple[str, Any]] = [
    ("format-version", "2"),
    ("format-version", True),
    ("table-uuid", None),
    ("last-updated-ms", None),
    ("last-sequence-number", 1.0),
    ("next-row-id", None),
    ("snapshots", {}),
    ("snapshots", [5]),
    ("snapshots", [{}]),
    ("snapshots", []),
    ("current-snapshot-id", 100),
    ("current-snapshot-id", "x"),
    ("current-snapshot-id", None),
    ("refs", []),
    ("refs", {"main": 5}),
    ("refs", {"main": {"snapshot-id": 101, "type": "tag"}}),
    ("refs", {"main": {"type": "branch"}}),
]


@pytest.mark.parametrize(("name", "value"), DAMAGE)
def test_metadata_that_contradicts_itself_is_corrupt(name: str, value: Any) -> None:
    assert head(history(), subject="db.t").current == 101
    with pytest.raises(CorruptMetadata, match=r"db\.t"):
        head({**history(), name: value}, subject="db.t")


@pytest.mark.parametrize("told", [{"current-snapshot-id": -1}, {"current-snapshot-id": None}, {}])
def test_no_snapshot_is_stated_in_three_ways(told: Mapping[str, Any]) -> None:
    assert head({**metadata_of(COLUMNS), **told}, subject="db.t").current is None


def test_metadata_without_refs_has_a_main_branch() -> None:
    raw = history()
    del raw["refs"]
    assert head(raw, subject="db.t").current == 101
    after = added(raw, next_snapshot(raw))
    assert after["refs"] == {"main": {"type": "branch", "snapshot-id": 7}}


def test_a_snapshot_of_one_id_twice_is_corrupt() -> None:
    raw = history()
    raw["snapshots"].append(raw["snapshots"][0])
    with pytest.raises(CorruptMetadata, match="one snapshot of each id, found 100 twice"):
        head(raw, subject="db.t")


def test_ancestors_end_where_they_are_not_kept() -> None:
    raw = history(5)
    assert list(ancestors(raw, 104, subject="t")) == [104, 103, 102, 101, 100]
    assert list(ancestors(raw, 102, subject="t")) == [102, 101, 100]
    raw["snapshots"] = raw["snapshots"][2:]
    assert list(ancestors(raw, 104, subject="t")) == [104, 103, 102]
    assert list(ancestors(raw, None, subject="t")) == []
    raw["snapshots"][0]["parent-snapshot-id"] = 104
    with pytest.raises(CorruptMetadata, match="a circle"):
        list(ancestors(raw, 104, subject="t"))


# The next version


@pytest.mark.parametrize("version", [2, 3])
def test_a_snapshot_makes_the_next_version(version: int) -> None:
    raw = history(version=version)
    before = copy.deepcopy(raw)
    snapshot = {**next_snapshot(raw), "timestamp-ms": 5_000} | ({"added-rows": 4} if version == 3 else {})
    after = added(raw, snapshot)
    assert raw == before
    assert after["current-snapshot-id"] == after["refs"]["main"]["snapshot-id"] == 7
    assert after["snapshots"] == [*before["snapshots"], snapshot]
    assert after["snapshot-log"] == [*before["snapshot-log"], {"timestamp-ms": 5_000, "snapshot-id": 7}]
    assert after["metadata-log"] == [
        {"timestamp-ms": 2_000, "metadata-file": "file:///lake/t/metadata/00001-x.metadata.json"}
    ]
    assert (after["last-sequence-number"], after["last-updated-ms"]) == (3, 5_000)
    assert after["next-row-id"] == (14 if version == 3 else 10)
    assert head(after, subject="t").current == 7


@pytest.mark.parametrize(
    "change",
    [
        {"parent-snapshot-id": 100},
        {"parent-snapshot-id": None},
        {"sequence-number": 2},
        {"first-row-id": 9},
        {"first-row-id": 11},
    ],
)
def test_a_snapshot_that_does_not_follow_lost_a_race(change: Mapping[str, Any]) -> None:
    raw = history()
    assert added(raw, {**next_snapshot(raw), **change}) is None


@pytest.mark.parametrize(
    "change",
    [
        {"snapshot-id": 100},
        {"snapshot-id": None},
        {"manifest-list": None},
        {"added-rows": None},
        {"added-rows": -1},
        {"first-row-id": None},
        {"sequence-number": "3"},
        {"timestamp-ms": None},
        {"timestamp-ms": 2_000 - 60_001},
    ],
)
def test_a_snapshot_that_is_none_is_corrupt(change: Mapping[str, Any]) -> None:
    raw = history()
    with pytest.raises(CorruptMetadata, match=r"db\.t"):
        added(raw, {**next_snapshot(raw), **change})


def test_time_does_not_run_backwards_and_clocks_may_differ() -> None:
    raw = history(**{"last-updated-ms": 9_000})
    after = added(raw, {**next_snapshot(raw), "timestamp-ms": 1_500})
    assert after["last-updated-ms"] == 9_000 and after["snapshot-log"][-1]["timestamp-ms"] == 1_500


@pytest.mark.parametrize(
    ("told", "kept"),
    [({}, 100), ({"write.metadata.previous-versions-max": "3"}, 3), ({"write.metadata.previous-versions-max": "0"}, 1)],
)
def test_past_versions_are_named_as_many_as_the_table_states(told: Mapping[str, str], kept: int) -> None:
    log = [{"timestamp-ms": number, "metadata-file": f"{number}"} for number in range(150)]
    raw = history(properties=dict(told), **{"metadata-log": log})
    after = added(raw, next_snapshot(raw))["metadata-log"]
    assert len(after) == kept and after[-1]["timestamp-ms"] == 2_000
    assert after[:-1] == log[len(log) - kept + 1 :]


def test_a_null_is_left_out_and_minus_one_is_no_parent() -> None:
    raw = metadata_of(COLUMNS)
    first = {**next_snapshot(history()), "parent-snapshot-id": None, "sequence-number": 1, "first-row-id": 0}
    assert "parent-snapshot-id" not in added(raw, first)["snapshots"][0]
    assert added(raw, {**first, "parent-snapshot-id": -1})["current-snapshot-id"] == 7


# Schemas


def test_a_schema_pickles_and_knows_columns_that_are_gone() -> None:
    raw = metadata_of([*COLUMNS, ("odd", "interval"), ("any", "variant")], properties={"a": "b"})
    raw["schemas"].append({"type": "struct", "schema-id": 4, "fields": raw["schemas"][0]["fields"][:1]})
    raw["current-schema-id"] = 4
    schema = parse(raw, table="db.t")
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert [field.name for field in schema.current.fields] == ["id"]
    assert (schema.field(2).name, *(str(schema.field(n).field_type) for n in (3, 4))) == ("name", "unknown", "variant")
    assert (schema.location, schema.properties, schema.has_row_lineage) == ("file:///lake/t", {"a": "b"}, True)
    assert [field.name for field in parse({**raw, "schemas": raw["schemas"][1:]}, table="t").current.fields] == ["id"]
    with pytest.raises(CorruptMetadata, match="field id 9"):
        schema.field(9)


@pytest.mark.parametrize(
    "damage",
    [
        {"current-schema-id": 3},
        {"current-schema-id": None},
        {"location": None},
        {"default-spec-id": 7},
        {"partition-specs": [{"fields": []}]},
        {"partition-specs": [{"spec-id": 0, "fields": [{"name": "x"}]}]},
        {"schemas": [{"schema-id": 0, "fields": [{"id": 1}]}]},
        {"properties": {"a": 1}},
        {"schemas": 5},
        {
            "schemas": [
                {
                    "schema-id": 0,
                    "type": "struct",
                    "fields": [
                        {"id": 1, "name": "a", "required": False, "type": "int"},
                        {"id": 2, "name": "a", "required": False, "type": "int"},
                    ],
                }
            ]
        },
    ],
)
def test_a_schema_that_is_none_is_corrupt(damage: Mapping[str, Any]) -> None:
    with pytest.raises(CorruptMetadata):
        parse({**metadata_of(COLUMNS), **damage}, table="db.t")


def test_a_default_that_is_not_understood_is_refused() -> None:
    raw = metadata_of([("a", "unknown")])
    raw["schemas"][0]["fields"][0]["initial-default"] = "2026-01-02T03:04:05.000006007"
    with pytest.raises(RefusedTable, match="a column default is not understood"):
        parse(raw, table="db.t")


def test_defaults_of_nanoseconds_are_numbers_and_go_back_to_texts() -> None:
    raw = metadata_of([("a", "timestamp_ns"), ("b", "timestamptz_ns")])
    texts = ("1970-01-01T00:00:00.000000001", "1970-01-01T00:00:01+00:00")
    for field, text in zip(raw["schemas"][0]["fields"], texts, strict=True):
        field["initial-default"] = field["write-default"] = text
    schema = parse(raw, table="db.t").current
    assert [field.initial_default for field in schema.fields] == [1, 1_000_000_000]
    told = json.loads(pickle.loads(pickle.dumps(schema)).model_dump_json())["fields"]
    assert [(field["initial-default"], field["write-default"]) for field in told] == [(text, text) for text in texts]
    raw["schemas"][0]["fields"][0]["initial-default"] = "1970-01-01"
    with pytest.raises(CorruptMetadata, match="schema 0: expected a schema"):
        parse(raw, table="db.t")


# Types

TYPES: list[tuple[Any, pa.DataType]] = [
    ("boolean", pa.bool_()),
    ("int", pa.int32()),
    ("long", pa.int64()),
    ("float", pa.float32()),
    ("double", pa.float64()),
    ("decimal(38, 9)", pa.decimal128(38, 9)),
    ("date", pa.date32()),
    ("time", pa.time64("us")),
    ("timestamp", pa.timestamp("us")),
    ("timestamptz", pa.timestamp("us", "UTC")),
    ("timestamp_ns", pa.timestamp("ns")),
    ("timestamptz_ns", pa.timestamp("ns", "UTC")),
    ("string", pa.string()),
    ("uuid", pa.binary(16)),
    ("fixed[3]", pa.binary(3)),
    ("binary", pa.binary()),
    ("unknown", pa.null()),
]


@pytest.mark.parametrize(("told", "kind"), TYPES)
def test_a_type_is_that_of_its_values(told: str, kind: pa.DataType) -> None:
    schema = parse(metadata_of([("c", told)]), table="t")
    assert arrow_type(schema.current.fields[0].field_type) == kind
    assert arrow_schema(schema.current) == pa.schema([("c", kind)])


@pytest.mark.parametrize("told", ["geometry", "geography"])
def test_a_type_without_values_of_ours_is_refused(told: str) -> None:
    schema = parse(metadata_of([("c", told)]), table="t")
    with pytest.raises(RefusedTable, match=f"values of type {told}"):
        arrow_type(schema.current.fields[0].field_type)


def test_files_have_field_ids_at_every_level() -> None:
    inner = {"type": "struct", "fields": [{"id": 8, "name": "x", "required": True, "type": "int"}]}
    tags = {"type": "map", "key-id": 5, "key": "string", "value-id": 6, "value": inner, "value-required": False}
    listed = {"type": "list", "element-id": 7, "element": "long", "element-required": True}
    raw = metadata_of([("id", "long"), ("tags", tags), ("list", listed)])
    raw["schemas"][0]["fields"][0]["required"] = True
    schema = [parquet_field(field) for field in parse(raw, table="t").current.fields]
    ids = {name: field.metadata for name, field in _every(schema)}
    assert {name: int(told[b"PARQUET:field_id"]) for name, told in ids.items()} == {
        "id": 1,
        "tags": 2,
        "tags.key": 5,
        "tags.value": 6,
        "tags.value.x": 8,
        "list": 3,
        "list.element": 7,
    }
    assert [name for name, field in _every(schema) if not field.nullable] == [
        "id",
        "tags.key",
        "tags.value.x",
        "list.element",
    ]
    assert all(
        field.nullable for name, field in _every(arrow_schema(parse(raw, table="t").current)) if name != "tags.key"
    )


def _every(fields: Any, path: str = "") -> list[tuple[str, Any]]:
    found = []
    for field in fields:
        name = f"{path}{field.name}"
        kind = field.type
        parts = (
            [kind.key_field, kind.item_field]
            if pa.types.is_map(kind)
            else [kind.value_field]
            if pa.types.is_list(kind)
            else kind
            if pa.types.is_struct(kind)
            else []
        )
        found += [(name, field), *_every(parts, f"{name}.")]
    return found
