"""The Avro schemas of manifests as Paimon 2.0.0 writes them. For files that replace no earlier file.

Field order, names, types and defaults are on disk: never rearrange. A file that replaces another one is written with
the other's schema, which may have fields that are unknown here.
"""

from __future__ import annotations

from typing import Final

from nightkeep.encodings.avro_schemas import AvroType, Schema


def _field(name: str, kind: AvroType) -> Schema:
    return {"name": name, "type": kind}


def _nullable(name: str, kind: AvroType) -> Schema:
    return {"name": name, "type": ["null", kind], "default": None}


def _record(name: str, *fields: Schema) -> Schema:
    return {"type": "record", "name": name, "fields": list(fields)}


def _root(*fields: Schema) -> Schema:
    head = {"type": "record", "name": "record", "namespace": "org.apache.paimon.avro.generated"}
    return {**head, "fields": list(fields)}


def _array(items: AvroType) -> Schema:
    return {"type": "array", "items": items}


def _stats(name: str) -> Schema:
    return _record(
        name,
        _field("_MIN_VALUES", "bytes"),
        _field("_MAX_VALUES", "bytes"),
        _nullable("_NULL_COUNTS", _array(["null", "long"])),
    )


# ManifestFileMeta, version 2.
MANIFEST_LIST: Final[Schema] = _root(
    _field("_VERSION", "int"),
    _field("_FILE_NAME", "string"),
    _field("_FILE_SIZE", "long"),
    _field("_NUM_ADDED_FILES", "long"),
    _field("_NUM_DELETED_FILES", "long"),
    _field("_PARTITION_STATS", _stats("record__PARTITION_STATS")),
    _field("_SCHEMA_ID", "long"),
    _nullable("_MIN_BUCKET", "int"),
    _nullable("_MAX_BUCKET", "int"),
    _nullable("_MIN_LEVEL", "int"),
    _nullable("_MAX_LEVEL", "int"),
    _nullable("_MIN_ROW_ID", "long"),
    _nullable("_MAX_ROW_ID", "long"),
)

_DATA_FILE: Final = _record(
    "record__FILE",
    _field("_FILE_NAME", "string"),
    _field("_FILE_SIZE", "long"),
    _field("_ROW_COUNT", "long"),
    _field("_MIN_KEY", "bytes"),
    _field("_MAX_KEY", "bytes"),
    _field("_KEY_STATS", _stats("record__FILE__KEY_STATS")),
    _field("_VALUE_STATS", _stats("record__FILE__VALUE_STATS")),
    _field("_MIN_SEQUENCE_NUMBER", "long"),
    _field("_MAX_SEQUENCE_NUMBER", "long"),
    _field("_SCHEMA_ID", "long"),
    _field("_LEVEL", "int"),
    _field("_EXTRA_FILES", _array("string")),
    _nullable("_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}),
    _nullable("_DELETE_ROW_COUNT", "long"),
    _nullable("_EMBEDDED_FILE_INDEX", "bytes"),
    _nullable("_FILE_SOURCE", "int"),
    _nullable("_VALUE_STATS_COLS", _array("string")),
    _nullable("_EXTERNAL_PATH", "string"),
    _nullable("_FIRST_ROW_ID", "long"),
    _nullable("_WRITE_COLS", _array("string")),
)

# ManifestEntry, version 2, with the 20 fields of DataFileMeta.
MANIFEST_ENTRY: Final[Schema] = _root(
    _field("_VERSION", "int"),
    _field("_KIND", "int"),
    _field("_PARTITION", "bytes"),
    _field("_BUCKET", "int"),
    _field("_TOTAL_BUCKETS", "int"),
    _field("_FILE", _DATA_FILE),
)

_VECTOR_RANGE: Final = _record(
    "record__DELETIONS_VECTORS_RANGES",
    _field("f0", "string"),
    _field("f1", "int"),
    _field("f2", "int"),
    _nullable("_CARDINALITY", "long"),
)

_GLOBAL_INDEX: Final = _record(
    "record__GLOBAL_INDEX",
    _field("_ROW_RANGE_START", "long"),
    _field("_ROW_RANGE_END", "long"),
    _field("_INDEX_FIELD_ID", "int"),
    _nullable("_EXTRA_FIELD_IDS", _array("int")),
    _nullable("_INDEX_META", "bytes"),
    _nullable("_SOURCE_META", "bytes"),
)

# IndexManifestEntry, version 1.
INDEX_MANIFEST: Final[Schema] = _root(
    _field("_VERSION", "int"),
    _field("_KIND", "int"),
    _field("_PARTITION", "bytes"),
    _field("_BUCKET", "int"),
    _field("_INDEX_TYPE", "string"),
    _field("_FILE_NAME", "string"),
    _field("_FILE_SIZE", "long"),
    _field("_ROW_COUNT", "long"),
    _nullable("_DELETIONS_VECTORS_RANGES", _array(["null", _VECTOR_RANGE])),
    _nullable("_EXTERNAL_PATH", "string"),
    _nullable("_GLOBAL_INDEX", _GLOBAL_INDEX),
)
