"""What tests call a catalog, a table and its columns, for the catalogs that engines share: SQLite files and REST."""

import gzip
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

Type = str | Mapping[str, Any]
"""A primitive by Iceberg's name, or what struct, array and mapping make."""

Column = tuple[str, Type] | tuple[str, Type, bool] | tuple[str, Type, bool, int]
"""Name, type, whether required (default: not), field id (default: counted on)."""


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A catalog by `name`: of the SQLite file in `folder`, or of a REST server if it has a `uri`.

    Engines keep catalogs open by name, and rows of the SQLite file carry it: a name belongs to one folder.
    """

    name: str
    folder: Path
    uri: str | None = None

    @property
    def database(self) -> Path:
        return self.folder / "catalog.db"

    @property
    def location(self) -> str:
        return f"file://{self.folder}"

    def table(self, name: str = "db.t") -> "Table":
        return Table(self, name)

    def java(self) -> dict[str, Any]:
        """As the Java driver takes it."""
        if self.uri is not None:
            return {"name": self.name, "kind": "rest", "properties": {"uri": self.uri}}
        self.folder.mkdir(parents=True, exist_ok=True)
        properties = {
            "uri": f"jdbc:sqlite:{self.database}",
            "warehouse": self.location,
            "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
            "jdbc.schema-version": "V1",
            # A catalog of a test need not outlive a loss of power.
            "jdbc.synchronous": "OFF",
        }
        return {"name": self.name, "kind": "jdbc", "properties": properties}

    def spark(self) -> dict[str, str]:
        """Settings of a Spark session that give it the catalog, read anew at each statement."""
        java = self.java()
        own = {"type": java["kind"], "cache-enabled": "false", **java["properties"]}
        prefix = f"spark.sql.catalog.{self.name}"
        return {
            prefix: "org.apache.iceberg.spark.SparkCatalog",
            **{f"{prefix}.{key}": value for key, value in own.items()},
        }


@dataclass(frozen=True, slots=True)
class Table:
    warehouse: Warehouse
    name: str

    @property
    def sql(self) -> str:
        """How Spark's SQL names it."""
        return f"{self.warehouse.name}.{self.name}"

    @property
    def metadata(self) -> Path:
        """The current metadata file, by the SQLite catalog in the folder; a REST server may have put it there."""
        namespace, _, name = self.name.rpartition(".")
        query = "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?"
        with closing(sqlite3.connect(self.warehouse.database)) as connection:
            found = connection.execute(query, (namespace, name)).fetchone()
        if found is None:
            raise KeyError(f"{self.name}: expected a table of the catalog, found none")
        return Path(found[0].removeprefix("file://").removeprefix("file:"))

    def document(self) -> dict[str, Any]:
        """The current metadata file's JSON."""
        content, packed = self.metadata.read_bytes(), self.metadata.name.endswith(".gz.metadata.json")
        document: dict[str, Any] = json.loads(gzip.decompress(content) if packed else content)
        return document


def struct(*columns: Column) -> dict[str, Any]:
    return {"type": "struct", "columns": columns}


def array(element: Type, *, required: bool = False) -> dict[str, Any]:
    return {"type": "list", "element": element, "element-required": required}


def mapping(key: Type, value: Type, *, required: bool = False) -> dict[str, Any]:
    return {"type": "map", "key": key, "value": value, "value-required": required}


def schema(columns: Sequence[Column]) -> dict[str, Any]:
    """Iceberg's JSON of a schema; ids count from 1 over the columns, then over what is nested in them."""
    return _struct(columns, count(1))


def _struct(columns: Sequence[Column], numbers: Iterator[int]) -> dict[str, Any]:
    ids = [column[3] if len(column) > 3 else next(numbers) for column in columns]
    fields = [
        {
            "id": field_id,
            "name": column[0],
            "required": len(column) > 2 and bool(column[2]),
            "type": _type(column[1], numbers),
        }
        for field_id, column in zip(ids, columns, strict=True)
    ]
    return {"type": "struct", "fields": fields}


def _type(kind: Type, numbers: Iterator[int]) -> Any:
    if isinstance(kind, str):
        return kind
    match kind["type"]:
        case "struct":
            return _struct(kind["columns"], numbers)
        case "list":
            return {**kind, "element-id": next(numbers), "element": _type(kind["element"], numbers)}
        case _:
            ids = {"key-id": next(numbers), "value-id": next(numbers)}
            return {**kind, **ids, "key": _type(kind["key"], numbers), "value": _type(kind["value"], numbers)}
