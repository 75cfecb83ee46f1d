"""A staged commit, its parent and its files -> faults: counts, vectors, ids, and every new file.

No number of the rewrite is trusted: all are computed again from staged bytes. Metadata, data files and vectors are read
with the same readers as in the rewrite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from pyroaring import BitMap64

from nightkeep.errors import naming
from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.gate.clustering_audit import clustering_faults
from nightkeep.formats.delta.gate.file_audit import file_faults
from nightkeep.formats.delta.gate.scan import rows
from nightkeep.formats.delta.metadata.actions import Raw, parse_object, vector_id
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.gate.listing import listing_faults
from nightkeep.gate.untouched import stray_changes
from nightkeep.model import UnitKey
from nightkeep.protocol import Positions, Show
from nightkeep.storage import Storage

_NONE: Final = BitMap64()
_IDS = ("baseRowId", "defaultRowCommitVersion")
_OF_A_CHECKPOINT = frozenset({"stats", "dataChange"})
"""Fields of an add that a checkpoint may change or drop."""


def version_faults(parent: DeltaSnapshot, candidate: DeltaSnapshot, touched: Sequence[UnitKey]) -> tuple[str, ...]:
    """Faults of the commit: changes other than a new layout of the touched partitions, and wrong counts."""
    return (
        *_commit_faults(parent, candidate),
        *_table_faults(parent, candidate),
        *_time_faults(parent, candidate),
        *_removal_faults(parent, candidate),
        *_row_faults(parent, candidate, touched),
        *stray_changes(parent.by_key, candidate.by_key, touched, _is_same),
        *_row_id_faults(parent, candidate),
        *clustering_faults(parent, candidate),
    )


def _commit_faults(parent: DeltaSnapshot, candidate: DeltaSnapshot) -> Iterator[str]:
    """Faults in the lines of a staged commit. A published version has none here."""
    if not candidate.actions:
        return
    live = {file.path: file for unit in parent.units for file in unit.files}
    allowed = {"commitInfo", "remove", "add", "domainMetadata"}
    if candidate.actions[0][0] != "commitInfo":
        yield f"first action: {candidate.actions[0][0]}, expected commitInfo, where readers look for the time"
    for kind, body in candidate.actions:
        if kind not in allowed:
            yield f"action {kind}, expected none that maintenance has no business with"
        if kind in ("add", "remove") and body.get("dataChange") is not candidate.changes_rows:
            yield f"{kind} of {body['path']}: dataChange {body.get('dataChange')!r}, expected {candidate.changes_rows}"
        if kind == "remove":
            yield from _remove_faults(body, live.get(str(body["path"])))


def _remove_faults(remove: Raw, before: DeltaDataFile | None) -> Iterator[str]:
    """Faults of a remove. Without the file's own vector it leaves the file live, and its rows twice (Trino #31253)."""
    subject = f"remove of {remove['path']}"
    if before is None:
        yield f"{subject}: no live file of the parent"
        return
    if vector_id(remove) != before.identity[1]:
        yield f"{subject}: vector {vector_id(remove)}, the file has {before.identity[1]}"
    if not isinstance(remove.get("deletionTimestamp"), int):
        yield f"{subject}: no deletionTimestamp, so that a vacuum may delete it at once"
    if remove.get("extendedFileMetadata") is not True:
        yield f"{subject}: extendedFileMetadata {remove.get('extendedFileMetadata')}, expected true for what follows"
    if _partition(remove) != _partition(before.raw):
        yield f"{subject}: partitionValues {_partition(remove)}, the file has {_partition(before.raw)}"
    for key in ("size", *_IDS):
        if remove.get(key) != before.raw.get(key):
            yield f"{subject}: {key} {remove.get(key)}, the file has {before.raw.get(key)}"


def _partition(file: Raw) -> dict[str, object]:
    """Without nulls, which a checkpoint may leave out."""
    held = file.get("partitionValues")
    return {key: value for key, value in held.items() if value is not None} if isinstance(held, Mapping) else {}


def _table_faults(parent: DeltaSnapshot, candidate: DeltaSnapshot) -> Iterator[str]:
    if candidate.raw_protocol != parent.raw_protocol:
        yield "protocol: changed, expected its parent's"
    if candidate.raw_metadata != parent.raw_metadata:
        yield "metadata: changed, expected its parent's"
    for name in sorted((parent.domains.keys() | candidate.domains.keys()) - {"delta.rowTracking"}):
        if parent.domains.get(name) != candidate.domains.get(name):
            yield f"metadata domain {name}: changed, expected its parent's"


def _time_faults(parent: DeltaSnapshot, candidate: DeltaSnapshot) -> Iterator[str]:
    before, after = parent.in_commit_timestamp, candidate.in_commit_timestamp
    if before is not None and (after is None or after <= before):
        yield f"in-commit timestamp {after}, expected above its parent's, {before}"


def _removal_faults(parent: DeltaSnapshot, candidate: DeltaSnapshot) -> Iterator[str]:
    """Files are removed when the commit is made: a vacuum counts their days from then. A commit that is as old as its
    parent may state an earlier time, as the parent's clock may be ahead of the store's."""
    made, before = _made_ms(candidate), _made_ms(parent)
    if candidate.actions and made < before:
        yield f"commitInfo: made at {made}, before its parent, at {before}"
    for kind, body in candidate.actions:
        removed = body.get("deletionTimestamp")
        if kind == "remove" and isinstance(removed, int) and (removed > made or removed < made > before):
            yield f"remove of {body['path']}: removed at {removed}, in a commit made at {made}"


def _made_ms(side: DeltaSnapshot) -> int:
    time_ms = side.commit_info.get("timestamp")
    return time_ms if isinstance(time_ms, int) else 0


def _row_faults(parent: DeltaSnapshot, candidate: DeltaSnapshot, touched: Sequence[UnitKey]) -> Iterator[str]:
    """Row counts by statistics and cardinalities alone, as readers that only count use them."""
    for key in touched:
        before, after = (_live_rows(side.by_key.get(key)) for side in (parent, candidate))
        fewer = before is not None and after is not None and after <= before
        if before is not None and before != after and not (fewer and candidate.changes_rows):
            yield f"{key}: {'unknown' if after is None else after} rows by statistics and vectors, {before} before"


def _live_rows(unit: DeltaUnit | None) -> int | None:
    """The live rows by statistics. None if a file has no statistics."""
    rows = 0
    for file in () if unit is None else unit.files:
        if file.rows is None:
            return None
        rows += file.rows - file.deleted_rows
    return rows


def _is_same(before: DeltaUnit | None, after: DeltaUnit | None) -> bool:
    held = [_by_path(unit) for unit in (before, after)]
    return held[0].keys() == held[1].keys() and not any(_changed(held[0][path], held[1][path]) for path in held[0])


def _by_path(unit: DeltaUnit | None) -> Mapping[str, DeltaDataFile]:
    return {} if unit is None else {file.path: file for file in unit.files}


def _changed(before: DeltaDataFile, after: DeltaDataFile) -> list[str]:
    """Fields of a file's add action that differ. Statistics are compared only if both sides have them as text."""
    fields = (before.raw.keys() | after.raw.keys()) - _OF_A_CHECKPOINT
    changed = [key for key in fields if (before.raw.get(key) or None) != (after.raw.get(key) or None)]
    if before.stats and after.stats and before.stats != after.stats:
        changed.append("stats")
    return sorted(changed)


def _row_id_faults(parent: DeltaSnapshot, candidate: DeltaSnapshot) -> Iterator[str]:
    """Faults of row ids: new ids must be above the parent's mark, not above the new mark, and in one file only."""
    if not candidate.schema.assigns_row_ids:
        return
    mark = -1 if parent.row_id_high_water_mark is None else parent.row_id_high_water_mark
    high_water = -1 if candidate.row_id_high_water_mark is None else candidate.row_id_high_water_mark
    if high_water < mark:
        yield f"row id high water mark {high_water}, expected no less than its parent's, {mark}"
    parent_paths = {file.path for unit in parent.units for file in unit.files}
    fresh = [file for unit in candidate.units for file in unit.files if file.path not in parent_paths]
    spans: list[tuple[int, int, str]] = []
    for file in fresh:
        base, version = (file.raw.get(key) for key in _IDS)
        if not isinstance(base, int) or version != candidate.version or file.rows is None:
            yield f"{file.name}: base row id {base} of version {version}, expected one of {candidate.version}"
        else:
            spans.append((base, base + file.rows - 1, file.name))
    yield from _span_faults(sorted(spans), mark, high_water)


def _span_faults(spans: Sequence[tuple[int, int, str]], mark: int, high_water: int) -> Iterator[str]:
    for first, last, name in spans:
        if first <= mark or last > high_water:
            yield f"{name}: row ids {first} to {last}, expected above {mark} and up to the new mark, {high_water}"
    for left, right in pairwise(spans):
        if right[0] <= left[1]:
            yield f"{left[2]} and {right[2]}: row ids overlap at {right[0]}"


def unit_faults(
    storage: Storage, base: DeltaUnit, candidate: DeltaUnit, positions: Positions, show: Show
) -> tuple[str, ...]:
    """Faults of one touched partition of the candidate, whose rows at `positions` are shown. Data files of the base are
    read for these alone."""
    base_files = {file.path: file for file in base.files}
    fresh = [file for file in candidate.files if file.path not in base_files]
    kept = [(base_files[file.path], file) for file in candidate.files if file.path in base_files]
    new_names = {file.name for file in fresh}
    for batch in rows(storage, candidate, {name: at for name, at in positions.items() if name not in new_names}):
        show(batch)
    with naming(candidate.key, "rows as their schema promises"):
        return (
            *listing_faults(storage, {file.name: file.bytes for file in candidate.files}, source="the log"),
            *_partition_faults(candidate, fresh),
            *_vector_faults(storage, (after for before, after in kept if before.identity != after.identity)),
            *_vector_faults(storage, fresh),
            *(fault for before, after in kept for fault in _kept_faults(before, after)),
            *(
                fault
                for file in fresh
                for fault in file_faults(storage, candidate, file, live=positions.get(file.name, _NONE), show=show)
            ),
        )


def _partition_faults(unit: DeltaUnit, fresh: Iterable[DeltaDataFile]) -> Iterator[str]:
    """A partition value may be spelled in several ways, but each column must have one value."""
    for file in fresh:
        values = file.raw.get("partitionValues")
        columns = sorted(values) if isinstance(values, Mapping) else []
        if columns != sorted(unit.stored_partition):
            yield f"{file.name}: partition values of {columns}, expected of {sorted(unit.stored_partition)}"


def _vector_faults(storage: Storage, files: Iterable[DeltaDataFile]) -> Iterator[str]:
    """Faults of vectors. read_vector checks size, checksum, cardinality and positions; here live rows must remain."""
    for file in files:
        if file.vector is not None and len(read_vector(storage, file)) == file.rows:
            yield f"{file.name}: its vector hides every row, expected no file"


def _kept_faults(before: DeltaDataFile, after: DeltaDataFile) -> Iterator[str]:
    """Faults of a file that got another vector: all else must be unchanged, also the statistics of all its rows."""
    allowed = {"deletionVector", "modificationTime"} if before.identity != after.identity else set()
    if before.rows is None and before.stats != after.stats and _states_rows_only(after):
        # They were missing or not understood, and a file with a vector must have a count.
        allowed.add("stats")
    elif before.rows is not None and _claims(before) == _claims(after):
        allowed.add("stats")
    changed = [key for key in _changed(before, after) if key not in allowed]
    if changed:
        yield f"{after.name}: {', '.join(changed)} changed, though its bytes did not"
    if before.identity != after.identity and after.vector is not None and _is_tight(after):
        yield f"{after.name}: statistics marked as tight, though rows of it are deleted"
    if before.rows is not None and before.rows != after.rows:
        yield f"{after.name}: {after.rows} rows, {before.rows} before, though its bytes did not change"


def _is_tight(file: DeltaDataFile) -> bool:
    claims = parse_object(file.stats or "{}", subject=f"statistics of {file.path}")
    return claims.get("tightBounds") is not False and not claims.keys() <= {"numRecords", "tightBounds"}


def _states_rows_only(file: DeltaDataFile) -> bool:
    claims = parse_object(file.stats or "{}", subject=f"statistics of {file.path}")
    return claims.keys() <= {"numRecords", "tightBounds"}


def _claims(file: DeltaDataFile) -> Mapping[str, object]:
    """The statistics without tightBounds: with deleted rows, bounds are no longer tight."""
    claims = parse_object(file.stats or "{}", subject=f"statistics of {file.path}")
    return {key: value for key, value in claims.items() if key != "tightBounds"}
