"""A number or a staged name -> the snapshot, with the schema that its rows are read with."""

from __future__ import annotations

from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.paimon.metadata.branch import location_and_branch
from nightkeep.formats.paimon.metadata.changelog_files import with_changelog
from nightkeep.formats.paimon.metadata.features import refuse_schema
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot, Schemas, load, read_schemas
from nightkeep.formats.paimon.metadata.snapshot_files import digest, latest_id, parse_snapshot
from nightkeep.model import Address, Candidate
from nightkeep.storage import Storage

_MOVED_ON = 20
"""How many newest snapshots in a row may expire while they are read."""


def read_version(
    table: Address, storage: Storage, version: int | None = None, *, read_as: PaimonSnapshot | None = None
) -> PaimonSnapshot:
    """The snapshot `version`, None for the newest, with the schema of `read_as` where that is given."""
    if version is None:
        return _newest(table, storage, read_as)
    schema_id = None if read_as is None else read_as.schema.id
    loaded = _load(table, storage, f"snapshot/snapshot-{version}", schema_id)
    if loaded.version != version:
        raise CorruptMetadata(f"{table.name}/snapshot/snapshot-{version}", "its own id", str(loaded.version))
    return loaded


def read_staged(table: Address, storage: Storage, candidate: Candidate) -> PaimonSnapshot:
    """The candidate's snapshot, with the changelog that its commit would publish."""
    raw = parse_snapshot(storage.read(candidate.metadata), subject=candidate.metadata)
    return with_changelog(storage, _load(table, storage, candidate.metadata, int(str(raw["schemaId"]))))


def _newest(table: Address, storage: Storage, read_as: PaimonSnapshot | None) -> PaimonSnapshot:
    """The newest snapshot. If it expires while it is read, there is a newer one: read that."""
    for _ in range(_MOVED_ON):
        version = latest_id(storage)
        try:
            return read_version(table, storage, version, read_as=read_as)
        except MissingFile:
            if digest(storage, version) is not None:
                raise
    raise MissingFile(table.name, "a newest snapshot", f"{_MOVED_ON} in a row that were gone before they were read")


def _load(table: Address, storage: Storage, name: str, schema_id: int | None) -> PaimonSnapshot:
    """The snapshot stored as `name`. Rows are read with schema `schema_id`, by default the newest.

    Schemas change without a commit.
    """
    schemas = read_schemas(storage)
    _, branch = location_and_branch(table.location)
    current = schemas.get(max(schemas) if schema_id is None else schema_id)
    if current is None:
        raise CorruptMetadata(name, f"a schema among {sorted(schemas)}", f"schema {schema_id}")
    refuse_schema(table.name, current, branch)
    return load(table, storage, name, schemas=Schemas(current, schemas))
