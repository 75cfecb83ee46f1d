"""A schema string and its table's properties, as columns: types, names, mapping, row tracking; the rest is refused."""

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.delta.metadata.feature_use import collated_columns
from nightkeep.formats.delta.metadata.features import refuse_features, refuse_reads
from nightkeep.formats.delta.metadata.leaf_columns import leaves
from nightkeep.formats.delta.metadata.schema import ColumnMapping, DeltaSchema, RowTracking, parse_schema
from nightkeep.formats.delta.metadata.types import widens
from nightkeep.model.arrow_types import FIELD_ID

ALL = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal( 38 , 38 )": pa.decimal128(38, 38),
    "decimal(1,0)": pa.decimal128(1, 0),
}
STRUCT = {"type": "struct", "fields": []}


def column(
    name: str, kind: Any = "long", *, number: int | None = None, nullable: bool = True, **metadata: Any
) -> dict[str, Any]:
    mapped = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"} if number else {}
    return {"name": name, "type": kind, "nullable": nullable, "metadata": {**mapped, **metadata}}


def parse(
    *columns: dict[str, Any], partition: tuple[str, ...] = (), features: tuple[str, ...] = (), **properties: str
) -> DeltaSchema:
    """Properties are without the prefix `delta.`, with _ for a dot."""
    metadata = {
        "schemaString": json.dumps({"type": "struct", "fields": list(columns)}),
        "partitionColumns": list(partition),
        "configuration": {f"delta.{name.replace('_', '.')}": value for name, value in properties.items()},
    }
    readers = [name for name in features if name in ("columnMapping", "deletionVectors")]
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    return parse_schema(metadata, {**versions, "readerFeatures": readers, "writerFeatures": list(features)}, table="t")


@pytest.mark.parametrize(("text", "arrow"), ALL.items())
def test_every_primitive_type_has_its_arrow_type(text: str, arrow: pa.DataType) -> None:
    (field,) = parse(column("c", text, nullable=False)).fields
    assert (field.type, field.stored, field.physical, field.id, field.nullable) == (arrow, arrow, "c", None, False)


@pytest.mark.parametrize(
    ("kind", "feature"),
    [
        ("geometry(4326)", "geospatial"),
        ("geography(OGC:CRS84, spherical)", "geospatial"),
        ("string collate UTF8_LCASE", "collation"),
        ("varchar(5)", "varchar"),
        ("interval day", "interval"),
        ("timestamp_nanos", "type timestamp_nanos is unknown"),
        ({"type": "udt", "class": "x", "sqlType": "long"}, "user-defined"),
        ({"type": "array", "elementType": "geometry(0)", "containsNull": True}, "geospatial"),
        ({"type": "map", "keyType": "string", "valueType": "geometry(0)", "valueContainsNull": True}, "geospatial"),
        ({"type": "struct", "fields": [column("x", "geometry(0)")]}, "geospatial"),
    ],
)
def test_a_type_that_we_do_not_handle_is_refused_by_name(kind: Any, feature: str) -> None:
    with pytest.raises(RefusedTable, match="column c") as refused:
        parse(column("c", kind))
    assert feature in refused.value.feature


@pytest.mark.parametrize(
    "kind",
    [
        None,
        1,
        [],
        {},
        {"type": 1},
        {"type": "array"},
        {"type": "struct"},
        "decimal(0,0)",
        "decimal(39,2)",
        "decimal(2,3)",
        {"type": "struct", "fields": [1]},
        {"type": "struct", "fields": [{"name": "x"}]},
    ],
)
def test_a_type_that_cannot_be_is_corrupt(kind: Any) -> None:
    with pytest.raises(CorruptMetadata):
        parse(column("c", kind))


def test_nested_fields_have_logical_names_and_physical_ones_with_ids() -> None:
    inner = {"type": "struct", "fields": [column("x", "integer", number=2), column("y", "string", number=3)]}
    kind = {"type": "map", "keyType": inner, "valueType": {"type": "array", "elementType": inner, "containsNull": True}}
    schema = parse(column("c", kind, number=1), features=("columnMapping",), columnMapping_mode="id")
    (field,) = schema.fields
    logical = pa.struct([("x", pa.int32()), ("y", pa.string())])
    assert (schema.mapping, field.name, field.physical, field.id) == (ColumnMapping.ID, "c", "col-1", 1)
    assert field.type == pa.map_(logical, pa.list_(pa.field("element", logical)))
    stored = field.stored
    assert isinstance(stored, pa.MapType) and isinstance(stored.item_type, pa.ListType)
    for found in (stored.key_type, stored.item_type.value_type):
        assert [(f.name, f.metadata) for f in found] == [("col-2", {FIELD_ID: b"2"}), ("col-3", {FIELD_ID: b"3"})]


@pytest.mark.parametrize("mode", list(ColumnMapping))
def test_mapping_counts_where_the_protocol_supports_it(mode: ColumnMapping) -> None:
    mapped = parse(column("c", number=1), features=("columnMapping",), columnMapping_mode=mode)
    assert mapped.mapping is mode
    assert mapped.fields[0].physical == ("c" if mode is ColumnMapping.NONE else "col-1")
    plain = parse(column("c", number=1), columnMapping_mode=mode)
    assert (plain.mapping, plain.fields[0].physical, plain.fields[0].id) == (ColumnMapping.NONE, "c", None)


@pytest.mark.parametrize(("reader", "mode"), [(1, ColumnMapping.NONE), (2, ColumnMapping.NAME)])
def test_old_readers_imply_column_mapping_from_version_two(reader: int, mode: ColumnMapping) -> None:
    told = {"schemaString": json.dumps({**STRUCT, "fields": [column("c", number=1)]})}
    metadata = {**told, "configuration": {"delta.columnMapping.mode": "name"}}
    assert parse_schema(metadata, {"minReaderVersion": reader, "minWriterVersion": 5}).mapping is mode


@pytest.mark.parametrize("number", [None, 0, -1, "1", True])
def test_a_mapped_column_without_id_is_corrupt(number: Any) -> None:
    bad = column("c", **{"delta.columnMapping.id": number})
    with pytest.raises(CorruptMetadata, match="column c"):
        parse(bad, features=("columnMapping",), columnMapping_mode="name")
    with pytest.raises(CorruptMetadata, match=r"delta\.columnMapping\.mode"):
        parse(column("c", number=1), features=("columnMapping",), columnMapping_mode="alias")


def test_columns_are_distinguished() -> None:
    with pytest.raises(CorruptMetadata, match="x twice"):
        parse(column("x"), column("x"))
    same = {"delta.columnMapping.physicalName": "col-1"}
    with pytest.raises(CorruptMetadata, match="physical name"):
        parse(
            column("x", number=1), column("y", number=2, **same), features=("columnMapping",), columnMapping_mode="name"
        )
    with pytest.raises(CorruptMetadata, match="one field of each id"):
        again = {"delta.columnMapping.id": 1}
        parse(
            column("x", number=1), column("y", number=2, **again), features=("columnMapping",), columnMapping_mode="id"
        )
    with pytest.raises(RefusedTable, match="differs from another's only in case"):
        parse(column("Day"), column("day"))
    with pytest.raises(RefusedTable, match="differs from another's only in case"):
        parse(column("c", {**STRUCT, "fields": [column("Day"), column("day")]}))
    for one, other in (("x", "x"), ("y", "x")):
        nested = {**STRUCT, "fields": [column(one, number=1), column(other, number=1)]}
        with pytest.raises(CorruptMetadata, match="twice"):
            parse(column("c", nested, number=2), features=("columnMapping",), columnMapping_mode="name")


def test_partition_columns_are_columns() -> None:
    schema = parse(column("Day", "date"), column("x"), partition=("day",))
    assert schema.partition_columns == ("Day",) and [field.name for field in schema.data_fields] == ["x"]
    with pytest.raises(CorruptMetadata, match="partition column y"):
        parse(column("x"), partition=("y",))
    with pytest.raises(CorruptMetadata, match="partition column s"):
        parse(column("s", STRUCT), partition=("s",))


NAMES = {
    "rowTracking_materializedRowIdColumnName": "_id",
    "rowTracking_materializedRowCommitVersionColumnName": "_version",
}


def test_row_tracking_is_supported_enabled_or_suspended() -> None:
    supported = parse(column("c"), features=("rowTracking",), **NAMES)
    enabled = parse(column("c"), features=("rowTracking",), enableRowTracking="true", **NAMES)
    suspended = parse(column("c"), features=("rowTracking",), rowTrackingSuspended="true", **NAMES)
    absent = parse(column("c"), enableRowTracking="true", **NAMES)
    found = [(s.assigns_row_ids, s.row_tracking) for s in (supported, enabled, suspended, absent)]
    assert found == [(True, None), (True, RowTracking("_id", "_version")), (False, None), (False, None)]
    with pytest.raises(CorruptMetadata, match="row tracking"):
        parse(column("c"), features=("rowTracking",), enableRowTracking="true")


def test_vectors_are_supported_or_enabled() -> None:
    found = [
        parse(column("c"), features=features, enableDeletionVectors=enabled)
        for features in ((), ("deletionVectors",))
        for enabled in ("false", "TRUE")
    ]
    assert [(s.has_vectors, s.writes_vectors) for s in found] == [(False, False)] * 2 + [(True, False), (True, True)]


def test_partition_columns_are_stored_where_the_table_asks_for_it() -> None:
    assert parse(column("c"), features=("materializePartitionColumns",)).stores_partitions
    assert parse(column("c"), writePartitionColumnsToParquet="true").stores_partitions
    assert not parse(column("c")).stores_partitions


CHANGES = "delta.typeChanges"


def test_type_changes_are_known_ones_at_any_depth() -> None:
    widened = column(
        "x",
        "long",
        **{CHANGES: [{"fromType": "short", "toType": "integer"}, {"fromType": "integer", "toType": "long"}]},
    )
    narrowed = column("y", "short", **{CHANGES: [{"fromType": "long", "toType": "short"}]})
    assert parse(column("c", {**STRUCT, "fields": [widened]})).fields
    nested = {"type": "array", "elementType": {**STRUCT, "fields": [narrowed]}, "containsNull": True}
    with pytest.raises(RefusedTable, match="from long to short"):
        parse(column("c", nested))
    with pytest.raises(CorruptMetadata, match="list of objects"):
        parse(column("c", **{CHANGES: "all"}))


def test_collations_at_any_depth_are_read_and_refused_to_writers() -> None:
    """Whether or not the protocol lists the feature: the order of such values is not that of their bytes."""
    inner = column("x", "string", __COLLATIONS={"x": "ICU.UNICODE_CI"})
    outer = column("c", {**STRUCT, "fields": [inner]})
    assert parse(outer).field("c").type == pa.struct({"x": pa.string()})
    metadata = {"schemaString": json.dumps({"type": "struct", "fields": [column("id", "long"), outer]})}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": []}
    assert collated_columns(metadata) == ("c",)
    with pytest.raises(RefusedTable, match="collation"):
        refuse_features("t", protocol, metadata)


def test_a_variant_without_its_feature_is_one_all_the_same() -> None:
    outer = column("c", {"type": "array", "elementType": "variant", "containsNull": True})
    metadata = {"schemaString": json.dumps({"type": "struct", "fields": [column("id", "long"), outer]})}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": []}
    refuse_reads("t", protocol, metadata)
    schema = parse_schema(metadata, protocol, table="t")
    assert [(leaf.path, leaf.ordered) for leaf in leaves(schema)] == [(("id",), True), (("c",), False)]


def test_what_writers_alone_must_know_is_no_hindrance() -> None:
    told = {
        "delta.generationExpression": "y + 1",
        "delta.identity.start": 1,
        "delta.identity.highWaterMark": 7,
        "delta.invariants": '{"expression":{"expression":"c > 3"}}',
        "CURRENT_DEFAULT": "7",
        "comment": "...",
        "__CHAR_VARCHAR_TYPE_STRING": "varchar(5)",
    }
    assert parse(column("c", "string", **told), constraints_positive="c > 0").fields[0].type == pa.string()


PRIMITIVES = ["byte", "short", "integer", "long", "float", "double", "date", "timestamp_ntz", "timestamp", "string"]
WIDER = {
    ("byte", "short"),
    ("byte", "integer"),
    ("byte", "long"),
    ("short", "integer"),
    ("short", "long"),
    ("integer", "long"),
    ("float", "double"),
    ("byte", "double"),
    ("short", "double"),
    ("integer", "double"),
    ("date", "timestamp_ntz"),
}
"""PROTOCOL.md, "Type Widening"; the changes among types that are no decimals."""


def test_types_widen_as_the_protocol_lists() -> None:
    assert {(old, new) for old in PRIMITIVES for new in PRIMITIVES if widens(old, new)} == WIDER
    for old, digits in (("byte", 10), ("short", 10), ("integer", 10), ("long", 20)):
        for precision in range(1, 39):
            for scale in range(precision + 1):
                wide = precision - digits >= scale >= 0
                assert widens(old, f"decimal({precision},{scale})") is wide
    assert widens("decimal(6,2)", "decimal(8,4)") and widens("decimal(6,2)", "decimal(6,2)")
    assert not widens("decimal(6,2)", "decimal(7,4)") and not widens("decimal(6,2)", "decimal(8,1)")
    assert not widens("double", "decimal(38,0)") and not widens({"type": "array"}, "long")


def test_a_schema_travels_to_tasks() -> None:
    schema = parse(column("c", number=1), features=("columnMapping", "rowTracking"), columnMapping_mode="id", **NAMES)
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_a_schema_names_its_table(tmp_path: Path) -> None:
    with pytest.raises(CorruptMetadata, match="t: schemaString"):
        parse_schema({"schemaString": "["}, {"minReaderVersion": 1, "minWriterVersion": 2}, table="t")
