"""Snapshot -> updates with requirements -> a commit by the catalog. For catalogs that write the metadata themselves.

Iceberg's REST catalog specification, "Load a table" and "Commit updates to a table". pyiceberg sends them to a REST
server, and applies them itself for catalogs without one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Final

from pydantic import ValidationError
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, RESTError
from pyiceberg.table import Table
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetSnapshotRefUpdate,
    SetStatisticsUpdate,
    TableRequirement,
    TableUpdate,
)

from nightkeep.errors import AddressError, CorruptMetadata
from nightkeep.formats.iceberg.catalog.failures import SILENT, reason
from nightkeep.formats.iceberg.metadata.branches import tip
from nightkeep.formats.iceberg.metadata.kept_statistics import kept_statistics
from nightkeep.formats.iceberg.metadata.remove_snapshots import RemovedSnapshots
from nightkeep.formats.iceberg.metadata.table_metadata import MAIN, MetadataHead, Raw, head, refs


def commit(catalog: Catalog, table: Table, raw: Raw, *, snapshot: Raw, branch: str = MAIN) -> bool:
    """Ask the catalog to add `snapshot` to the table and to point the branch to it, with the statistics that it keeps.

    Returns False if the requirements are no longer met. Raises OSError if the outcome is unknown, AddressError if
    the catalog does not permit the commit.
    """
    subject = _subject(catalog, table)
    return _committed(catalog, table, _request(raw, snapshot, subject, branch))


def forget(catalog: Catalog, table: Table, raw: Raw, *, gone: RemovedSnapshots) -> bool:
    """Ask the catalog to remove snapshots, branches and tags from the table. `raw` is the metadata last loaded.

    Requires every branch and tag in `raw` to be unchanged. Branches and tags created since cannot be excluded: the
    specification has no such requirement. Returns and raises as `commit`.
    """
    before = head(raw, subject=_subject(catalog, table))
    requirements: list[TableRequirement] = [AssertTableUUID(uuid=_identity(before, _subject(catalog, table)))]
    for name, ref in {MAIN: {"snapshot-id": before.current}, **refs(raw, subject=_subject(catalog, table))}.items():
        update = {"ref": name, "snapshot-id": ref.get("snapshot-id")}
        requirements.append(AssertRefSnapshotId.model_validate(update))
    updates: list[TableUpdate] = [
        RemoveSnapshotRefUpdate.model_validate({"ref-name": name}) for name, _ in sorted(gone.refs)
    ]
    updates.append(RemoveSnapshotsUpdate.model_validate({"snapshot-ids": sorted(gone.snapshots)}))
    return _committed(catalog, table, (tuple(requirements), tuple(updates)))


def _committed(
    catalog: Catalog, table: Table, request: tuple[tuple[TableRequirement, ...], tuple[TableUpdate, ...]]
) -> bool:
    subject = _subject(catalog, table)
    requirements, updates = request
    try:
        catalog.commit_table(table, requirements, updates)
    except CommitFailedException:
        return False
    except SILENT as failure:
        raise OSError(f"{subject}: expected the catalog's answer to a commit, found {reason(failure)}") from failure
    except ValidationError as failure:
        # The request was validated before it was sent, so the answer is what failed validation.
        raise OSError(f"{subject}: expected table metadata in answer to a commit, found {failure}") from failure
    except (RESTError, NotImplementedError) as failure:
        raise AddressError(f"{subject}: expected a catalog that takes our commit, found {failure}") from failure
    return True


def _request(
    raw: Raw, snapshot: Raw, subject: str, branch: str
) -> tuple[tuple[TableRequirement, ...], tuple[TableUpdate, ...]]:
    before = head(raw, subject=subject)
    try:
        added = Snapshot.model_validate(snapshot)
    except ValueError as failure:
        raise CorruptMetadata(f"{subject}: snapshot to add", "a snapshot", str(failure)) from failure
    # An update replaces the whole ref: carry its retention settings over, or they are lost.
    kept = {key: value for key, value in refs(raw, subject=subject).get(branch, {}).items() if key in _RETENTION}
    reference = SetSnapshotRefUpdate.model_validate(
        {"ref-name": branch, "type": SnapshotRefType.BRANCH, "snapshot-id": added.snapshot_id, **kept}
    )
    requirements = (
        AssertTableUUID(uuid=_identity(before, subject)),
        AssertRefSnapshotId.model_validate({"ref": branch, "snapshot-id": tip(raw, branch, subject=subject)}),
    )
    return requirements, (AddSnapshotUpdate(snapshot=added), reference, *_statistics(raw, snapshot, subject))


def _statistics(raw: Raw, snapshot: Raw, subject: str) -> Iterator[TableUpdate]:
    for entry in kept_statistics(raw, snapshot, subject=subject):
        try:
            yield SetStatisticsUpdate.model_validate({"statistics": entry})
        except ValueError as failure:
            raise CorruptMetadata(f"{subject}: statistics", "an entry by the specification", str(failure)) from failure


def _identity(before: MetadataHead, subject: str) -> uuid.UUID:
    try:
        return uuid.UUID(before.uuid)
    except ValueError as failure:
        raise CorruptMetadata(f"{subject}: table-uuid", "a UUID", repr(before.uuid)) from failure


def _subject(catalog: Catalog, table: Table) -> str:
    return ".".join((catalog.name, *table.name()))


_RETENTION: Final = frozenset({"max-ref-age-ms", "max-snapshot-age-ms", "min-snapshots-to-keep"})
