"""Table properties -> the formats of new data files and position delete files."""

from __future__ import annotations

from typing import Final

from nightkeep.formats.iceberg.metadata.features import refusal
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema

DATA: Final = "write.format.default"
DELETES: Final = "write.delete.format.default"
WRITTEN: Final = ("parquet", "orc")
"""Formats of new files, by their names in manifests, in lower case."""


def data_format(schema: IcebergSchema) -> str:
    """The format of new data files, by its name in lower case. Raises RefusedTable for one that is not written."""
    return _written(schema, DATA, _stated(schema))


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
