"""A compaction's changelog -> whether, applied to what streaming readers knew before, it gives what they see after.

Both sides are net changes: a row that is taken back and reported again is no change. What must have been reported comes
from the rows of both versions (`gate.changes`), not from the writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.errors import MissingFile
from nightkeep.formats.paimon.data.columns import KIND, RETRACT_KINDS, SEQUENCE
from nightkeep.formats.paimon.gate.changes import expected, reported
from nightkeep.formats.paimon.gate.unordered import alike
from nightkeep.formats.paimon.metadata.changelog import changelog_features, changelog_rules
from nightkeep.formats.paimon.metadata.changelog_files import changelog_buckets
from nightkeep.formats.paimon.metadata.record_expiry import record_age
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, Place
from nightkeep.formats.paimon.reading.versions import find_version
from nightkeep.kernels.arrow_buffers import without_views
from nightkeep.kernels.fingerprint import fingerprint
from nightkeep.model import Address, Fingerprint
from nightkeep.protocol.file_sample import SampleBudget
from nightkeep.storage import Storage


def reports_changes(schema: PaimonSchema) -> bool:
    """Whether compactions report what they change, in a form that is handled. Where rows expire by their age, what a
    compaction leaves out is reported or not by the clock of its writer."""
    handled = changelog_rules(schema) is not None and not any(changelog_features(schema))
    return handled and record_age(schema) is None


def changelog_faults(address: Address, storage: Storage, budget: SampleBudget, version: int) -> Iterator[str]:
    """Faults of the changelog of a compaction, of as many buckets as the budget has bytes for.

    Raises MissingFile for a file that is gone, CorruptMetadata, RefusedTable."""
    after = find_version(address, storage, version)
    before = find_version(address, storage, version - 1, read_as=after)
    try:
        changes = {_place(bucket): bucket for bucket in changelog_buckets(storage, after.raw, after.schemas)}
    except MissingFile:
        # Its list has expired.
        return
    known = {unit.key: unit for unit in before.units}
    for unit in after.units:
        base, files = known.get(unit.key), changes.pop(_place(unit), None)
        if base is None or (files is None and _files(base) == _files(unit)):
            continue
        candidate = replace(unit, changelog=() if files is None else files.files)
        if budget.takes(sum({**_files(base), **_files(candidate)}.values())):
            yield from _unit_faults(storage, base, candidate)
    for bucket in changes.values():
        yield f"it reports changes of {bucket.key}, which it has no files of"


def _unit_faults(storage: Storage, base: Bucket, candidate: Bucket) -> Iterator[str]:
    schema = candidate.schemas.current
    stated = _net(reported(storage, candidate), schema)
    found = _net(expected(storage, base, candidate), schema)
    if stated != found:
        yield f"its changelog of {candidate.key} has {stated.rows} more rows, and readers see {found.rows} more"


def _net(changes: Iterable[pa.RecordBatch], schema: PaimonSchema) -> Fingerprint:
    """The rows that changes add, less those that they take."""
    net = Fingerprint()
    for batch in changes:
        takes = pc.is_in(batch.column(KIND), pa.array(RETRACT_KINDS, pa.int8()))
        rows = alike(without_views(batch.drop_columns([KIND, SEQUENCE])), schema)
        net = net + fingerprint(rows.filter(pc.invert(takes))) - fingerprint(rows.filter(takes))
    return net


def _place(bucket: Bucket) -> Place:
    return bucket.partition_bytes, int(bucket.key.bucket or 0)


def _files(bucket: Bucket) -> Mapping[tuple[str, int], int]:
    """Bytes of data files and of changelog files, which have other names."""
    return {(file.name, file.level): file.bytes for file in (*bucket.files, *bucket.changelog)}
