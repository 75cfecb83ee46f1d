"""The newest schema of a Paimon table -> what the table states of itself. File systems give a table no id."""

from __future__ import annotations

from nightkeep.formats.paimon.metadata.schema import PaimonSchema, parse_schema
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_files import numbered
from nightkeep.model.description import TableDescription
from nightkeep.storage import Storage


def described(snapshot: PaimonSnapshot) -> TableDescription:
    return _of(snapshot.schema)


def describe(storage: Storage) -> TableDescription:
    """The description by the newest schema; empty for a table without any, which the caller's work then refuses."""
    numbers = [
        (number, file.name) for file in storage.list("schema") if (number := numbered(file.name, "schema-")) is not None
    ]
    if not numbers:
        return TableDescription()
    name = max(numbers)[1]
    return _of(parse_schema(storage.read(name), subject=name))


def _of(schema: PaimonSchema) -> TableDescription:
    return TableDescription(properties=schema.options)
