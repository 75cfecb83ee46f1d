"""Two versions -> the changelog files of the commits between them: what each commit reported to streaming readers.

Follows IncrementalDeltaStartingScanner of Paimon 2.0.0 (incremental-between-scan-mode = changelog): commits of kind
OVERWRITE are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats.paimon.data.columns import KIND
from nightkeep.formats.paimon.metadata.changelog import PRODUCER
from nightkeep.formats.paimon.metadata.changelog_files import changelog_buckets
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_files import parse_snapshot, snapshot_ids
from nightkeep.protocol import Bound
from nightkeep.protocol.reading import ChangelogReads, FileSection, ReadFile
from nightkeep.storage import Storage

KINDS = ("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE")
"""Names of _VALUE_KIND on disk (RowKind.java)."""


def changelog_reads(storage: Storage) -> ChangelogReads[PaimonSnapshot, Bucket]:
    return ChangelogReads(Bound(changelog_sections, storage), KIND, KINDS)


def changelog_sections(storage: Storage, after: PaimonSnapshot, since: int) -> Sequence[FileSection[Bucket]]:
    """The files of each commit and bucket, read with the columns of `after`.

    Raises RefusedTable for a table without a changelog, UsageError for versions that are not there, CorruptMetadata and
    MissingFile."""
    _refuse_silent(after)
    _require_versions(storage, after, since)
    return tuple(_of_commits(storage, after, since))


def _of_commits(storage: Storage, after: PaimonSnapshot, since: int) -> Iterator[FileSection[Bucket]]:
    for number in range(since + 1, after.version + 1):
        name = f"snapshot/snapshot-{number}"
        raw = parse_snapshot(storage.read(name), subject=f"{after.table.name}/{name}")
        for bucket in changelog_buckets(storage, raw, after.schemas) if raw["commitKind"] != "OVERWRITE" else ():
            yield FileSection(bucket, tuple(ReadFile(file.name, file.bytes, file.rows) for file in bucket.files))


def _refuse_silent(after: PaimonSnapshot) -> None:
    schema, advice = after.schema, "use incremental = diff"
    if not schema.primary_keys:
        raise RefusedTable(after.table.name, "a table without primary key has no changelog", advice)
    producer = schema.options.get(PRODUCER, "none").lower()
    if producer == "none":
        raise RefusedTable(after.table.name, f"option {PRODUCER} = {producer} writes no changelog", advice)


def _require_versions(storage: Storage, after: PaimonSnapshot, since: int) -> None:
    if since == after.version:
        return
    ids = snapshot_ids(storage)
    first = ids[0] - 1 if ids else 0
    if not first <= since < after.version or after.version not in ids:
        expected = f"expected versions after one from {first} to {after.version}, as changelogs are of their commits"
        raise UsageError(f"since: {after.table.name}: {expected}, found {since} to {after.version}")
