"""A table's schemas, partition specs and properties, as data files are to be read and written by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from nightkeep.errors import CorruptMetadata


@dataclass(frozen=True, slots=True)
class TableSchema:
    """`current` are the columns rows are handed out with. `schemas` are all the table ever had, by id.

    `specs` are all partition specs, by id; new files are of `default_spec_id`, rewritten ones stay in theirs.
    `location` and `properties` are the table's. Picklable: tasks carry it to executors.
    """

    table: str
    format_version: int
    location: str
    current: Schema
    schemas: Mapping[int, Schema]
    specs: Mapping[int, PartitionSpec]
    default_spec_id: int
    properties: Mapping[str, str]

    @property
    def has_row_lineage(self) -> bool:
        """Every row has an id and the sequence number of its last change (spec, "Row Lineage")."""
        return self.format_version >= 3

    def spec(self, spec_id: int) -> PartitionSpec:
        """Raises CorruptMetadata."""
        if spec_id not in self.specs:
            raise CorruptMetadata(f"{self.table}: partition spec {spec_id}", f"one of {sorted(self.specs)}", "none")
        return self.specs[spec_id]

    def is_global(self, spec_id: int) -> bool:
        """Whether equality deletes of this spec hold for the rows of all specs (spec, "Scan Planning")."""
        return all(str(field.transform) == "void" for field in self.spec(spec_id).fields)

    def field(self, field_id: int) -> NestedField:
        """A field by id, top-level or nested: as the current schema has it, else as the newest one that had it.

        An equality delete may speak of a column that is dropped by now. Raises CorruptMetadata.
        """
        for schema in (self.current, *(self.schemas[key] for key in sorted(self.schemas, reverse=True))):
            if schema.find_column_name(field_id) is not None:
                return schema.find_field(field_id)
        raise CorruptMetadata(f"{self.table}: field id {field_id}", "a field of some schema of the table", "none")
