"""Table properties -> the formats of new data files and position delete files."""

from __future__ import annotations

from typing import Final

from nightkeep.formats.iceberg.metadata.features import refusal
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.variants import variants

DATA: Final = "write.format.default"
DELETES: Final = "write.delete.format.default"
WRITTEN: Final = ("parquet", "orc")
"""Formats of new files, by their names in manifests, in lower case."""


def data_format(schema: IcebergSchema) -> str:
    """The format of new data files, by its name in lower case. Raises RefusedTable for one that is not written, or that
    has no form for a type of the table."""
    stated = _written(schema, DATA, _stated(schema))
    found = next(variants(schema.current.fields), None)
    if stated == "orc" and found is not None:
        column = schema.current.find_column_name(found.field_id)
        raise refusal(schema.table, "variants in ORC files", f"{DATA} is {stated}, and column {column} is a variant")
    return stated


def delete_format(schema: IcebergSchema) -> str:
    """The format of new position delete files (TableProperties.java). Raises as `data_format`."""
    return _written(schema, DELETES, schema.properties.get(DELETES, _stated(schema)).lower())


def _stated(schema: IcebergSchema) -> str:
    return schema.properties.get(DATA, "parquet").lower()


def _written(schema: IcebergSchema, key: str, stated: str) -> str:
    if stated not in WRITTEN:
        name = "new files in Avro" if stated == "avro" else "new files of other formats"
        raise refusal(schema.table, name, f"{key} is {stated}")
    return stated
