"""Every feature of the format: read as Iceberg's Java reads it, or refused by name; and the page that says which."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from docs_tools.iceberg_features import OWN_TESTS, document, proof
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.catalog_world import configure, loaded
from tests.formats.iceberg.content_made import equality_of, file_of, metadata_of, schema_of
from tests.formats.iceberg.recipe_fixtures import Made
from tests.formats.iceberg.shown import canonical_rows, shown, snapshot_of

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.iceberg.data.columns import LAST_UPDATED, ROW_ID
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.features import (
    FEATURES,
    manifest_list_of,
    refuse_features,
    refuse_keys,
    refuse_manifests,
    unread_file,
)
from nightkeep.formats.iceberg.metadata.file_formats import data_format
from nightkeep.formats.iceberg.metadata.locations import require_in, storage_name
from nightkeep.formats.iceberg.metadata.manifest_schema import entry_schema
from nightkeep.storage import LocalStorage

ROOT = Path(__file__).parents[4]
WRITTEN: Mapping[str, tuple[str, ...]] = {
    "format version 1": ("first_version",),
    "format version 2": ("plain_v2", "types_v2"),
    "format version 3": ("plain_v3", "types_v3"),
    "position deletes": ("positions", "upgraded"),
    "deletion vectors": ("vectors", "vectors_named_parquet", "upgraded"),
    "equality deletes": ("upserts_v2", "upserts_v3", "mixed_keys_v2", "specs_deleted_v2"),
    "equality deletes by float or double columns": ("float_keys",),
    "row lineage": ("lineage",),
    "default values": ("defaults", "defaulted_key"),
    "partition spec evolution": ("specs_v2", "specs_deleted_v3"),
    "schema evolution": ("evolved_v2", "foreign_v2"),
    "default values of nanosecond timestamps": ("nano_defaults",),
    "type unknown": ("unknown",),
    "ORC files": ("orc_data_v2", "orc_data_v3"),
    "Avro files": ("avro_data_v2", "avro_data_v3"),
    "type timestamp_ns": ("moments",),
    "type timestamptz_ns": ("moments",),
    "files outside the table's folder": ("outside",),
    "branches and tags": ("refs_v2",),
}
"""Handled features by name -> tables that Iceberg's Java wrote with them."""


@pytest.mark.parametrize("feature", WRITTEN)
def test_a_handled_feature_is_read(
    made: Made, iceberg_java: IcebergJava, iceberg: Warehouse, tmp_path: Path, feature: str
) -> None:
    for name in WRITTEN[feature]:
        table = OWN[name](iceberg_java, iceberg, tmp_path) if name in OWN else made(name)
        schema = snapshot_of(table).schema
        columns = [field.name for field in schema.current.fields]
        columns += [ROW_ID, LAST_UPDATED] if schema.has_row_lineage else []
        assert canonical_rows(shown(table), schema, columns) == iceberg_java.read(table, columns=columns)


def outside(java: IcebergJava, warehouse: Warehouse, folder: Path) -> Table:
    table = warehouse.table()
    java.create(table, [("id", "long")], Layout(properties={"write.data.path": f"file://{folder}/far away%20"}))
    java.append(table, [[1], [2]])
    (file,) = snapshot_of(table).units[0].files
    assert file.name.startswith(f"{folder}/far away%20/"[1:])
    return table


def moments(java: IcebergJava, warehouse: Warehouse, _: Path) -> Table:
    table = warehouse.table()
    java.create(table, [("a", "timestamp_ns"), ("b", "timestamptz_ns")], Layout(format_version=3))
    moment = "2026-11-01T00:00:00.000000001"
    java.append(table, [[moment, f"{moment}Z"], [None, None]])
    return table


def float_keys(java: IcebergJava, warehouse: Warehouse, _: Path) -> Table:
    table = warehouse.table()
    java.create(table, [("f", "float"), ("d", "double")])
    java.append(table, [[0.0, "NaN"], [-0.0, 1.5], ["NaN", -0.0], [1.5, 0.0], [None, None], ["Infinity", 2.5]])
    for column, value in (("f", -0.0), ("f", "NaN"), ("d", 0.0), ("d", None)):
        java.commit(table, java.equality_deletes(table, [{column: value}], keys=[column]))
    return table


def nano_defaults(java: IcebergJava, warehouse: Warehouse, _: Path) -> Table:
    table = warehouse.table()
    java.create(table, [("id", "long")], Layout(format_version=3))
    java.append(table, [[1], [2]])
    for kind, zone in (("timestamp_ns", ""), ("timestamptz_ns", "Z")):
        for name, moment in (("early", "1969-12-31T23:59:59.999999999"), ("even", "2026-11-01T00:00:00")):
            added = {"name": f"{name}_{kind}", "type": kind, "default": f"{moment}{zone}"}
            java.alter(table, {"change": "add_column", **added})
    java.append(table, [[3, None, None, None, None]])
    return table


def unknown(java: IcebergJava, warehouse: Warehouse, _: Path) -> Table:
    table = warehouse.table()
    java.create(table, [("id", "long"), ("u", "unknown"), ("text", "string")], Layout(format_version=3))
    java.append(table, [[1, None, "a"], [2, None, None]])
    return table


OWN = {
    "outside": outside,
    "moments": moments,
    "float_keys": float_keys,
    "nano_defaults": nano_defaults,
    "unknown": unknown,
}


def test_every_feature_is_proven() -> None:
    assert WRITTEN.keys() == {name for name, feature in FEATURES.items() if feature.handled} - OWN_TESTS.keys()
    assert REFUSALS.keys() == {name for name, feature in FEATURES.items() if feature.refused} - OWN_TESTS.keys()
    assert OWN_TESTS.keys() <= FEATURES.keys()
    for name in FEATURES:
        file, _, test = proof(name).partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text()


def test_the_page_is_what_the_code_states() -> None:
    assert (ROOT / "docs" / "iceberg-features.md").read_text() == document()


# Refusals


def refuse(columns: Any = (("a", "int"),), *specs: Any, any_version: bool = True, **more: Any) -> None:
    refuse_features("db.t", metadata_of(columns, *specs, **more), any_version=any_version)


def typed(kind: Any) -> Callable[[], None]:
    nested = {"type": "struct", "fields": [{"id": 9, "name": "b", "required": False, "type": kind}]}
    return lambda: refuse([("plain", "int"), ("a", {"type": "list", "element-id": 8, "element": nested})])


def refuse_file(file: ContentFile) -> None:
    found = unread_file(KEYED, [file_of("readable"), file])
    if found:
        raise found


def several() -> None:
    metadata = metadata_of([("a", "int"), ("b", "int")], [("a", "bucket[4]")])
    metadata["partition-specs"][0]["fields"][0] |= {"source-ids": [1, 2]}
    refuse_features("db.t", metadata)


MAP = {"type": "map", "key-id": 7, "value-id": 8, "value": "variant", "value-required": False}
KEY = {"type": "struct", "fields": [{"id": 9, "name": "b", "required": False, "type": "variant"}]}
KEYED = schema_of([("f", "float"), ("d", "double"), ("id", "int")])
REFUSALS: Mapping[str, Callable[[], object]] = {
    "metadata of the first releases": lambda: refuse(version=1, **{"table-uuid": None}),
    "format version 1 in catalogs other than REST, SQL, Hive and Glue": lambda: refuse(version=1, any_version=False),
    "format versions above 3": lambda: refuse(version=4),
    "format version 3 in catalogs other than REST, SQL, Hive and Glue": lambda: refuse(any_version=False),
    "equality deletes by NaN beside other values": lambda: refuse_keys(
        KEYED, [equality_of("e", 1, 2, raw={"lower_bounds": {2: bytes(8)}, "nan_value_counts": {2: 1}})]
    ),
    "equality deletes by columns that no schema has": lambda: refuse_keys(KEYED, [equality_of("e", 1, 3, 4)]),
    "transforms of several columns": several,
    "unknown transforms": lambda: refuse([("a", "int")], [], [("a", "zorder[3]")]),
    "partition values of type fixed": lambda: entry_schema(schema_of([("a", "fixed[3]")], [("a", "identity")]), 0),
    "type variant in keys of maps": lambda: refuse([("a", {**MAP, "key": KEY})]),
    "partitions by variants": lambda: refuse([("a", "variant")], [("a", "bucket[4]")]),
    "variants in ORC files": lambda: data_format(
        schema_of([("a", {**MAP, "key": "string"})], properties={"write.format.default": "orc"})
    ),
    "type geometry": typed("geometry(srid:4326)"),
    "type geography": typed("geography"),
    "type unknown within other types": typed("unknown"),
    "unknown types": typed("interval"),
    "new files in Avro": lambda: data_format(replace(KEYED, properties={"write.format.default": "AVRO"})),
    "new files of other formats": lambda: data_format(replace(KEYED, properties={"write.format.default": "vortex"})),
    "files of other formats": lambda: refuse_file(file_of("b", format="vortex")),
    "encryption": lambda: refuse(properties={"encryption.key-id": "k"}),
    "files of unknown schemes": lambda: storage_name("wasbs://host/a.parquet"),
    "files of another host": lambda: storage_name("file://host/a.parquet"),
    "keys with empty parts": lambda: storage_name("s3://bucket/t//a.parquet"),
    "files in several stores": lambda: require_in(LocalStorage("/"), "s3://bucket/a.parquet"),
    "snapshots without a manifest list": lambda: manifest_list_of("db.t", {"snapshot-id": 5, "manifests": ["m"]}),
}


@pytest.mark.parametrize("feature", REFUSALS)
def test_a_refused_feature_is_named(feature: str) -> None:
    with pytest.raises(RefusedTable) as refusal:
        REFUSALS[feature]()
    assert refusal.value.feature.startswith(feature)
    assert refusal.value.advice == FEATURES[feature].refused


def test_keys_that_are_nan_alone_or_never_are_handled() -> None:
    bounds = {"lower_bounds": {2: bytes(8)}, "upper_bounds": {2: bytes(8)}}
    refuse_keys(KEYED, [equality_of("e", 1, 2), equality_of("n", 1, 2, raw={"nan_value_counts": {2: 3}})])
    refuse_keys(KEYED, [equality_of("e", 1, 2, raw={**bounds, "nan_value_counts": {2: 0}})])
    with pytest.raises(RefusedTable, match="does not state that no key is NaN"):
        refuse_keys(KEYED, [equality_of("e", 1, 2, raw=bounds)])


def test_what_is_encrypted_is_refused_wherever_it_is_named() -> None:
    found: list[Callable[[], object]] = [
        lambda: refuse(properties={"encryption.key-id": "k"}),
        lambda: manifest_list_of("db.t", {"snapshot-id": 5, "key-id": "k", "manifest-list": "m"}),
        lambda: refuse_file(file_of("a", raw={"key_metadata": b"k"})),
        lambda: refuse_manifests("db.t", [_encrypted()]),
    ]
    for each in found:
        with pytest.raises(RefusedTable, match=r"db\.t: encryption: "):
            each()


def _encrypted() -> Any:
    class Encrypted:
        key_metadata = b"k"
        path = "m"

    return Encrypted()


def test_a_feature_of_an_earlier_schema_is_no_hindrance() -> None:
    metadata = metadata_of([("a", "int")])
    earlier = metadata_of([("a", "int"), ("b", "geography")])["schemas"][0]
    metadata["schemas"].append({**earlier, "schema-id": 1})
    refuse_features("db.t", metadata)
    with pytest.raises(RefusedTable, match="type geography: column b is of type geography"):
        refuse_features("db.t", metadata, schema_id=1)


@pytest.mark.parametrize(
    "damage",
    [
        {"properties": 7},
        {"properties": ["encryption.key-id"]},
        {"schemas": [{"schema-id": 0, "fields": 5}]},
        {"format-version": "2"},
    ],
)
def test_metadata_that_lacks_it_is_corrupt(damage: Mapping[str, Any]) -> None:
    with pytest.raises(CorruptMetadata):
        refuse_features("db.t", {**metadata_of([("a", "int")]), **damage})


def test_files_of_the_first_version_are_older_than_all_others(
    iceberg_java: IcebergJava, iceberg: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, iceberg)
    table = iceberg.table()
    iceberg_java.create(table, [("id", "long")], Layout(format_version=1))
    iceberg_java.append(table, [[1]])
    assert [file.sequence_number for file in loaded(table).units[0].files] == [0]
    iceberg_java.alter(table, {"change": "set_properties", "properties": {"format-version": "2"}})
    iceberg_java.append(table, [[2]])
    assert [file.sequence_number for file in loaded(table).units[0].files] in ([0, 1], [1, 0])
    assert json.dumps(canonical_rows(shown(table), loaded(table).schema).rows) == "[[1], [2]]"


@pytest.mark.parametrize("sources", [7, "1", {"1": 2}])
def test_sources_of_a_partition_field_that_are_no_list_are_not_several(sources: object) -> None:
    metadata = metadata_of([("a", "int")], [("a", "identity")])
    metadata["partition-specs"][0]["fields"][0]["source-ids"] = sources
    refuse_features("db.t", metadata)
