"""A snapshot id or a tag -> the snapshot as Paimon's readers see it. Features that only concern writers are no matter.

A version that is asked for by id or tag has the schema it was committed under (TimeTravelUtil.java); the newest has the
newest schema.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Final

from nightkeep.errors import CorruptMetadata, MissingFile, UsageError
from nightkeep.formats.paimon.metadata.branch import location_and_branch
from nightkeep.formats.paimon.metadata.features import refuse_schema
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot, Schemas, load, read_schemas
from nightkeep.formats.paimon.metadata.snapshot_files import digest, hinted, latest_id, parse_snapshot, snapshot_ids
from nightkeep.model import Address, VersionIdentity
from nightkeep.storage import Storage

OF_WRITERS: Final = frozenset(
    {
        "changelog-producer",
        "commit.callbacks",
        "compaction.force-rewrite-all-files",
        "lookup.remote-file.enabled",
        "record-level.expire-time",
        "row-tracking.enabled",
        "visibility-callback.enabled",
    }
)
"""Options that maintenance refuses and that change nothing for readers of files and manifests as they are."""
OF_WRITERS_PREFIXES: Final = ("metadata.iceberg.", "pk-vector.", "pk-btree.", "pk-bitmap.", "pk-full-text.")
_MOVED_ON: Final = 20
"""How many newest snapshots in a row may expire while they are read."""
NEVER_WRITTEN: Final = 0
"""The version of a table without snapshots."""


def find_version(
    table: Address,
    storage: Storage,
    version: int | None = None,
    tag: str | None = None,
    *,
    read_as: PaimonSnapshot | None = None,
) -> PaimonSnapshot:
    """The snapshot; the newest without `version` and `tag`. A table that was never written has no rows.

    Raises UsageError for a version or tag that is not there, RefusedTable, CorruptMetadata and MissingFile.
    """
    if version is None and tag is None:
        return _newest(table, storage, read_as)
    name = f"snapshot/snapshot-{version}" if tag is None else f"tag/tag-{tag}"
    if not storage.exists(name):
        raise UsageError(f"{table.name}: expected {_there(storage, tag)}, found {version if tag is None else tag!r}")
    found = _read(table, storage, name, read_as=read_as, travels=True)
    if version is not None and found.version != version:
        raise CorruptMetadata(f"{table.name}/{name}", "its own id", str(found.version))
    return found


def readable(schema: PaimonSchema) -> PaimonSchema:
    """The schema without what only concerns writers, so that what is left can be refused."""
    options = {
        key: value
        for key, value in schema.options.items()
        if key not in OF_WRITERS and not key.startswith(OF_WRITERS_PREFIXES)
    }
    return replace(schema, options=MappingProxyType(options))


def refuse_unreadable(table: Address, schema: PaimonSchema) -> None:
    """Raise RefusedTable for a feature that no reader of ours handles."""
    refuse_schema(table.name, readable(schema), location_and_branch(table.location)[1])


def _newest(table: Address, storage: Storage, read_as: PaimonSnapshot | None) -> PaimonSnapshot:
    for _ in range(_MOVED_ON):
        if not snapshot_ids(storage) and hinted(storage, "snapshot/LATEST") is None:
            return _nothing(table, storage)
        version = latest_id(storage)
        try:
            return _read(table, storage, f"snapshot/snapshot-{version}", read_as=read_as, travels=False)
        except MissingFile:
            if digest(storage, version) is not None:
                raise
    raise MissingFile(table.name, "a newest snapshot", f"{_MOVED_ON} in a row that were gone before they were read")


def _read(
    table: Address, storage: Storage, name: str, *, read_as: PaimonSnapshot | None, travels: bool
) -> PaimonSnapshot:
    schemas = read_schemas(storage)
    number = max(schemas)
    if read_as is not None:
        number = read_as.schema.id
    elif travels:
        number = int(str(parse_snapshot(storage.read(name), subject=f"{table.name}/{name}")["schemaId"]))
    if number not in schemas:
        raise CorruptMetadata(f"{table.name}/{name}", f"a schema among {sorted(schemas)}", f"schema {number}")
    refuse_unreadable(table, schemas[number])
    return load(table, storage, name, schemas=Schemas(schemas[number], schemas))


def _nothing(table: Address, storage: Storage) -> PaimonSnapshot:
    schemas = read_schemas(storage)
    current = schemas[max(schemas)]
    refuse_unreadable(table, current)
    raw = {"id": NEVER_WRITTEN, "commitKind": "APPEND"}
    identity = VersionIdentity(NEVER_WRITTEN, "", "")
    return PaimonSnapshot(table, identity, raw, Schemas(current, schemas), (), (), (), (), (), (), (), ())


def _there(storage: Storage, tag: str | None) -> str:
    if tag is not None:
        names = [stored.name.removeprefix("tag/tag-") for stored in storage.list("tag")]
        return f"a tag among {', '.join(names)}" if names else "no tag, as the table has none"
    ids = snapshot_ids(storage)
    return f"a version from {ids[0]} to {ids[-1]}" if ids else "no version, as the table was never written"
