"""A version's changelog files and metadata -> faults. What the changes state is proven apart, from rows before and
after.

A streaming reader takes rows in the order of a file: the row before an update comes directly before the row after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from nightkeep.formats.paimon.data.columns import KIND
from nightkeep.formats.paimon.gate.file_audit import ascending, key_faults, same, shown_faults, stated_faults
from nightkeep.formats.paimon.metadata.changelog import changelog_rules
from nightkeep.formats.paimon.metadata.entries import ADD
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, PaimonSnapshot
from nightkeep.kernels.arrow_buffers import without_views
from nightkeep.model import UnitKey
from nightkeep.storage import Storage

_UPDATE_BEFORE, _UPDATE_AFTER = 1, 2


def changelog_file_faults(storage: Storage, bucket: Bucket, file: PaimonDataFile) -> Iterator[str]:
    """Faults of one changelog file: the order of its changes, and what metadata states of it."""
    rules = changelog_rules(bucket.schemas.current)
    once = rules is not None and rules.of_first_rows
    yield from stated_faults(storage, bucket, file, shown_faults if once else _change_faults)


def _change_faults(rows: pa.Table, before: pa.Table | None, keys: Sequence[str]) -> Iterator[str]:
    yield from key_faults(rows, keys)
    own = without_views(rows.select([*keys, KIND]))
    own = own if before is None else pa.concat_tables([before, own])
    kinds = own.column(KIND).to_numpy()
    follows = np.flatnonzero(kinds == _UPDATE_AFTER)
    # The row before the first one is known to follow what it should.
    follows = follows[follows > 0] if before is not None else follows
    leads = np.flatnonzero(kinds[:-1] == _UPDATE_BEFORE)
    if not np.array_equal(leads + 1, follows):
        yield "a row of kind -U is not followed by its +U"
    elif not all(same(own.column(k).take(leads), own.column(k).take(follows)) for k in keys):
        yield "a row of kind +U has another key than its -U"
    if not ascending(own.take(np.flatnonzero(kinds != _UPDATE_AFTER)), keys):
        yield "keys of changes do not ascend strictly"


def changelog_faults(candidate: PaimonSnapshot, touched: Sequence[UnitKey]) -> Iterator[str]:
    """Faults of the version: a count of changes that differs, and changes where nothing was worked on."""
    entries = candidate.changelog_entries
    rows, stated = sum(entry["_FILE"]["_ROW_COUNT"] for entry in entries), candidate.raw.get("changelogRecordCount")
    if stated != (rows or None):
        yield f"changelogRecordCount {stated}, changelog files hold {rows} rows"
    if entries and changelog_rules(candidate.schema) is None:
        yield f"{len(entries)} changelog files, though the table's compactions report no changes"
    ours = {(unit.partition_bytes, unit.key.bucket) for unit in candidate.units if unit.key in set(touched)}
    for entry in entries:
        name = entry["_FILE"]["_FILE_NAME"]
        if entry["_KIND"] != ADD:
            yield f"{name}: a changelog's entry that removes a file"
        if (entry["_PARTITION"], entry["_BUCKET"]) not in ours:
            yield f"{name}: changes of a bucket that was not worked on"
