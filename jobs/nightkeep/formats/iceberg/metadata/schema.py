"""Table metadata -> the schemas, partition specs and properties that data files are read and written with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyiceberg.exceptions import ValidationError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.formats.iceberg.metadata import nano_defaults, variants
from nightkeep.formats.iceberg.metadata.sort_orders import NO_ORDERS, SortOrders, sort_orders
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, integer, objects, properties, text
from nightkeep.model.json_values import JsonValue

nano_defaults.register()
variants.register()


@dataclass(frozen=True, slots=True)
class IcebergSchema:
    """The columns, schemas and partition specs of a table. Picklable: tasks carry it to executors.

    `current` is the schema that rows are read with. `schemas` are all schemas of the table, by id. `specs` are all
    partition specs, by id: new files get `default_spec_id`, rewritten files keep their spec. `sort_orders`: of rows
    within files.
    """

    table: str
    format_version: int
    location: str
    current: Schema
    schemas: Mapping[int, Schema]
    specs: Mapping[int, PartitionSpec]
    default_spec_id: int
    properties: Mapping[str, str]
    sort_orders: SortOrders = NO_ORDERS

    @property
    def has_row_lineage(self) -> bool:
        """Whether every row has an id and the sequence number of its last change (spec, "Row Lineage")."""
        return self.format_version >= 3

    def spec(self, spec_id: int) -> PartitionSpec:
        """A partition spec by id. Raises CorruptMetadata if the table does not have it."""
        if spec_id not in self.specs:
            raise CorruptMetadata(f"{self.table}: partition spec {spec_id}", f"one of {sorted(self.specs)}", "none")
        return self.specs[spec_id]

    def is_global(self, spec_id: int) -> bool:
        """Whether equality deletes of this spec hold for the rows of all specs (spec, "Scan Planning")."""
        return all(str(field.transform) == "void" for field in self.spec(spec_id).fields)

    def field(self, field_id: int) -> NestedField:
        """A field by id, top-level or nested, from the current schema or else from the newest schema that has it.

        Equality deletes may use a column that was dropped since. Raises CorruptMetadata if no schema has the field.
        """
        for schema in (self.current, *(self.schemas[key] for key in sorted(self.schemas, reverse=True))):
            if schema.find_column_name(field_id) is not None:
                return schema.find_field(field_id)
        raise CorruptMetadata(f"{self.table}: field id {field_id}", "a field of some schema of the table", "none")


def parse(raw: Raw, *, table: str, schema_id: int | None = None) -> IcebergSchema:
    """The columns, partition specs and properties in table metadata. `schema_id` None: the current schema.

    Refuses no feature: see the module features. An unsupported type becomes `unknown`: a dropped column is never read,
    and a table with such a column is refused before its rows are read. Raises CorruptMetadata, and RefusedTable for
    column defaults that pyiceberg cannot parse.
    """
    current = integer(raw, "current-schema-id", subject=table) if schema_id is None else schema_id
    schemas = {
        integer(each, "schema-id", subject=f"{table}: schema"): each for each in objects(raw, "schemas", subject=table)
    }
    if current not in schemas:
        raise CorruptMetadata(f"{table}: schema {current}", f"one of {sorted(schemas)}", "none")
    specs = tuple(_spec(each, table) for each in objects(raw, "partition-specs", subject=table))
    schema = IcebergSchema(
        table=table,
        format_version=integer(raw, "format-version", subject=table),
        location=text(raw, "location", subject=table).rstrip("/"),
        current=_schema(schemas[current], table),
        schemas={number: _schema(each, table) for number, each in schemas.items()},
        specs={spec.spec_id: spec for spec in specs},
        default_spec_id=integer(raw, "default-spec-id", subject=table),
        properties=dict(properties(raw, subject=table)),
        sort_orders=sort_orders(raw, table=table),
    )
    schema.spec(schema.default_spec_id)
    return schema


def _schema(raw: Raw, table: str) -> Schema:
    subject = f"{table}: schema {raw.get('schema-id')}"
    try:
        return Schema.model_validate(_known(raw))
    except TypeError as failure:
        feature = f"a column default is not understood: {reason_of(failure)}"
        raise RefusedTable(table, feature, "use the engine's own maintenance for this table") from failure
    except _MALFORMED as failure:
        raise CorruptMetadata(subject, "a schema", reason_of(failure)) from failure


def _known(kind: JsonValue) -> object:
    """A type's JSON with the class of variants, and with `unknown` in place of types that have no class."""
    if isinstance(kind, dict):
        return {key: _known(each) if key in _TYPED else each for key, each in kind.items()}
    if isinstance(kind, list):
        return [_known(each) for each in kind]
    if kind == variants.NAME:
        return variants.VariantType()
    return kind if not isinstance(kind, str) or _PRIMITIVE.match(kind) else "unknown"


def _spec(raw: Raw, table: str) -> PartitionSpec:
    subject = f"{table}: partition spec {raw.get('spec-id')}"
    try:
        integer(raw, "spec-id", subject=subject)
        return PartitionSpec.model_validate(raw)
    except (TypeError, *_MALFORMED) as failure:
        raise CorruptMetadata(subject, "a partition spec", reason_of(failure)) from failure


_MALFORMED: Final = (
    ValueError,
    ValidationError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    NotImplementedError,
)
"""What pyiceberg raises for objects that are no schema. For a default that it cannot parse it raises TypeError."""
_TYPED: Final = frozenset({"fields", "type", "element", "key", "value"})
_PRIMITIVE: Final = re.compile(
    r"(struct|list|map|boolean|int|long|float|double|date|time|timestamp|timestamptz|timestamp_ns|timestamptz_ns"
    r"|string|uuid|binary|unknown|geometry|geography|fixed\s*\[\s*\d+\s*\]|decimal\(\s*\d+\s*,\s*\d+\s*\))$"
)
