"""Edits -> one staged commit -> a visible version. A commit of another writer in between is a conflict or harmless.

PROTOCOL.md, "Delta Log Entries" and "Actions". The actions and their order are those of delta-spark's OPTIMIZE
(OptimizeExecutor in OptimizeTableCommand.scala). The conflict check is as strict as delta-spark's retry: every input
must still be live with the same vector.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.commit.commit_info import commit_info
from nightkeep.formats.delta.metadata.actions import Raw, line, parse_lines, parse_object
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.log_segment import commits_newest_first
from nightkeep.formats.delta.metadata.log_state import commit_infos, digest
from nightkeep.formats.delta.metadata.naming import commit_name, staged_name, transaction_of
from nightkeep.formats.delta.metadata.partition import key_text, stored, typed
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.schema import DeltaSchema
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.model import Candidate, Operation, Rewrite, Run, UnitKey
from nightkeep.model.run_names import committer, horizon_ms
from nightkeep.storage import Storage
from nightkeep.storage.exclusive import require_exclusive_create
from nightkeep.storage.times import not_ahead

ROW_TRACKING = "delta.rowTracking"
_KEPT = ("partitionValues", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion")
"""Fields that a remove repeats from the add. Without the same vector, readers would keep the file live."""


def stage(storage: Storage, parent: DeltaSnapshot, rewrites: Sequence[Rewrite[DeltaEdit]], run: Run) -> Candidate:
    """Write the commit of the version after `parent` under a name that nobody reads.

    The removal time must not be ahead of the store's clock, or removed files would stay longer than the table's
    retention. If it is ahead, the commit is written again with an earlier time.

    Raises CorruptMetadata if a rewritten file is no longer live in `parent`, RefusedTable for a store on which a commit
    could overwrite another's.
    """
    require_exclusive_create(storage)
    edit = _merged(parent, rewrites)
    # Our clock may be behind that of the last writer, and either may be ahead of the store's.
    latest = replace(run, now_ms=max(run.now_ms, _time(parent.commit_info)))
    name = _staged(storage, parent, edit, latest)
    now_ms = not_ahead(latest.now_ms, storage, name)
    if now_ms != latest.now_ms:
        storage.delete(name)
        name = _staged(storage, parent, edit, replace(run, now_ms=now_ms))
    outputs = [output for rewrite in rewrites for output in rewrite.outputs]
    return Candidate(
        table=parent.table,
        version=parent.version + 1,
        parent=parent.identity,
        metadata=name,
        staged=(*outputs, name),
        units=tuple(dict.fromkeys(rewrite.key for rewrite in rewrites)),
    )


def _staged(storage: Storage, parent: DeltaSnapshot, edit: DeltaEdit, run: Run) -> str:
    transaction = uuid.uuid4()
    name = staged_name(run, transaction)
    storage.put(name, _lines(parent, edit, run, transaction).encode())
    return name


def commit(storage: Storage, candidate: Candidate) -> bool:
    """Create <version>.json with the staged bytes. False if another commit has the version, or the parent was replaced.

    Writes no checksum file: it is optional, and a wrong one stops readers.
    """
    name, temporary = commit_name(candidate.version), f"{candidate.metadata}.tmp"
    if storage.exists(name):
        return False
    parent = candidate.parent
    won = storage.put_if_absent(
        name,
        storage.read(candidate.metadata),
        temporary=temporary,
        may_go=lambda: digest(storage, parent.version) == parent.commit,
    )
    # Our create may have succeeded with its answer lost, so that its retry failed: look whose commit it is.
    if not won and not visible(storage, candidate):
        return False
    storage.delete(candidate.metadata)
    return True


def undermined(storage: Storage, candidate: Candidate) -> str | None:
    """Why the version is not sound: the log was cut, or the parent replaced, during the commit. None if it is sound."""
    parent = candidate.parent
    identity = digest(storage, parent.version)
    if identity == parent.commit or not visible(storage, candidate):
        return None
    staged = f"version {parent.version}, which it was staged on"
    if identity:
        return f"{staged}, was replaced while it was committed"
    # A log cleanup removes the older versions too. An older version that is left means that the log was cut.
    is_older_left = any(number < parent.version for number, _ in commits_newest_first(storage))
    return f"{staged}, was cut off the log while it was committed" if identity is None and is_older_left else None


def visible(storage: Storage, candidate: Candidate) -> bool:
    """Whether <version>.json is this candidate's own transaction. May be asked again at any time."""
    name = commit_name(candidate.version)
    if not storage.exists(name):
        return False
    infos = [body for kind, body in parse_lines(storage.read(name), subject=name) if kind == "commitInfo"]
    return any(info.get("txnId") == transaction_of(candidate.metadata) for info in infos)


def committed(storage: Storage, run: Run) -> tuple[int, ...]:
    """The versions that this run committed, ascending, among those whose commits still exist."""
    versions: list[int] = []
    newest_ms = 0
    for version, info in commit_infos(storage):
        newest_ms = newest_ms or _time(info)
        if info.get("userMetadata") == committer(run):
            versions.append(version)
        # A commit without a time proves nothing about the age of those before it.
        elif 0 < _time(info) < horizon_ms(run, newest_ms):
            break
    return tuple(reversed(versions))


def units_of(storage: Storage, schema: DeltaSchema, version: int) -> tuple[UnitKey, ...]:
    """The partitions that a commit of ours changed. Read from its own lines, because its parent may be gone."""
    name = commit_name(version)
    files = (body for kind, body in parse_lines(storage.read(name), subject=name) if kind in ("add", "remove"))
    values = (stored(schema, values_of_file, subject=name) for values_of_file in map(_partition, files))
    return tuple(dict.fromkeys(UnitKey(key_text(schema, typed(schema, values_of_file))) for values_of_file in values))


def _partition(file: Raw) -> Mapping[str, str | None]:
    values = file.get("partitionValues")
    return values if isinstance(values, Mapping) else {}


def conflicts(
    planned: DeltaSnapshot, head: DeltaSnapshot, rewrites: Sequence[Rewrite[DeltaEdit]]
) -> tuple[tuple[UnitKey, str], ...]:
    """Units whose inputs are gone or have another vector, with reasons; all units if protocol, metadata or clustering
    columns changed.

    Files that others add are no conflict, and neither are rows moved within a partition.
    """
    keys = tuple(dict.fromkeys(rewrite.key for rewrite in rewrites))
    for what, before, after in (
        ("protocol", _protocol(planned.raw_protocol), _protocol(head.raw_protocol)),
        ("metadata", _metadata(planned.raw_metadata), _metadata(head.raw_metadata)),
        # New files are laid out by them, and have statistics of them.
        ("clustering columns", planned.schema.clustering, head.schema.clustering),
    ):
        if before != after:
            reason = f"the table's {what} changed between versions {planned.version} and {head.version}"
            return tuple((key, reason) for key in keys)
    gone = {key: _gone(head, key, rewrites) for key in keys}
    return tuple((key, f"inputs changed: {', '.join(names)}") for key, names in gone.items() if names)


def _gone(head: DeltaSnapshot, key: UnitKey, rewrites: Sequence[Rewrite[DeltaEdit]]) -> list[str]:
    live = _live(head, key)
    inputs = {file.identity: file for rewrite in rewrites if rewrite.key == key for file in rewrite.edit.removed}
    return sorted(file.name for identity, file in inputs.items() if identity not in live)


def _live(snapshot: DeltaSnapshot, key: UnitKey) -> dict[tuple[str, str | None], DeltaDataFile]:
    unit = snapshot.by_key.get(key)
    return {} if unit is None else {file.identity: file for file in unit.files}


def _protocol(raw: Raw) -> dict[str, object]:
    """The protocol for comparison, as a checkpoint keeps it: features as a set, nulls absent."""
    return {key: sorted(map(str, value)) if isinstance(value, list) else value for key, value in _present(raw).items()}


def _metadata(raw: Raw) -> dict[str, object]:
    """The metadata for comparison, without the last numbers of identity columns, which every insert changes."""
    schema = parse_object(str(raw.get("schemaString")), subject="schemaString")
    return _present(raw) | {"schemaString": _without_numbers(schema)}


def _without_numbers(schema: Mapping[str, object]) -> list[object]:
    fields = schema.get("fields")
    return [_without_number(column) for column in fields] if isinstance(fields, list) else []


def _without_number(column: object) -> object:
    """Identity columns are top-level ones (PROTOCOL.md, "Identity Columns")."""
    if not isinstance(column, Mapping) or not isinstance(column.get("metadata"), Mapping):
        return column
    kept = {key: value for key, value in column["metadata"].items() if key != "delta.identity.highWaterMark"}
    return {**column, "metadata": kept}


def _present(raw: Raw) -> dict[str, object]:
    return {key: value for key, value in raw.items() if value not in (None, {}, [])}


def _merged(parent: DeltaSnapshot, rewrites: Sequence[Rewrite[DeltaEdit]]) -> DeltaEdit:
    """One edit for all rewrites. Each removed file is in it once, as the parent has it now."""
    removed: dict[tuple[str, str | None], DeltaDataFile] = {}
    for rewrite in rewrites:
        live = _live(parent, rewrite.key)
        for file in rewrite.edit.removed:
            if file.identity not in live:
                subject = f"{parent.table.name} version {parent.version}, {rewrite.key}"
                raise CorruptMetadata(subject, f"{file.name} as it was rewritten", "no such live file")
            removed[file.identity] = live[file.identity]
    added = tuple(add for rewrite in rewrites for add in rewrite.edit.added)
    deleted = sum(rewrite.edit.rows_deleted for rewrite in rewrites)
    return DeltaEdit(tuple(removed.values()), added, rewrites[0].edit.intent, deleted)


def _lines(parent: DeltaSnapshot, edit: DeltaEdit, run: Run, transaction: uuid.UUID) -> str:
    numbered, mark = _numbered(parent, edit)
    changes = edit.intent.operation is Operation.DELETE
    body = [line("remove", _remove(file, run.now_ms, changes=changes)) for file in edit.removed]
    body += [line("add", add) for add in numbered]
    if mark is not None and mark != parent.row_id_high_water_mark:
        configuration = json.dumps({"rowIdHighWaterMark": mark}, separators=(",", ":"))
        domain = {"domain": ROW_TRACKING, "configuration": configuration, "removed": False}
        body.append(line("domainMetadata", domain))
    info = commit_info(parent, edit, now_ms=run.now_ms) | {"userMetadata": committer(run), "txnId": str(transaction)}
    # Readers look for the in-commit timestamp in the first line (PROTOCOL.md, "In-Commit Timestamps").
    return "\n".join([line("commitInfo", info), *body, ""])


def _remove(file: DeltaDataFile, now_ms: int, *, changes: bool) -> dict[str, object]:
    kept = {key: file.raw[key] for key in _KEPT if file.raw.get(key) is not None}
    counted = {} if file.rows is None else {"stats": json.dumps({"numRecords": file.rows}, separators=(",", ":"))}
    head = {"path": file.path, "deletionTimestamp": now_ms, "dataChange": changes, "extendedFileMetadata": True}
    return head | kept | counted


def _numbered(parent: DeltaSnapshot, edit: DeltaEdit) -> tuple[list[Raw], int | None]:
    """The adds with base row ids above every assigned id, in order, and the new highest id.

    A file that only gets another vector keeps its ids, because they belong to its rows.
    """
    if not parent.schema.assigns_row_ids:
        return list(edit.added), None
    removed = {file.path: file.raw for file in edit.removed}
    mark = -1 if parent.row_id_high_water_mark is None else parent.row_id_high_water_mark
    adds: list[Raw] = []
    for add in edit.added:
        before = removed.get(str(add["path"]), {})
        base, version = before.get("baseRowId"), before.get("defaultRowCommitVersion")
        if base is None:
            base, mark = mark + 1, mark + _rows(add)
        ids = {"baseRowId": base, "defaultRowCommitVersion": parent.version + 1 if version is None else version}
        adds.append({**add, **ids})
    return adds, mark if mark >= 0 else None


def _rows(add: Raw) -> int:
    """The physical rows of an add. Row tracking requires the number on every add (PROTOCOL.md, "Row Tracking")."""
    subject = f"statistics of {add['path']}"
    rows = parse_object(str(add.get("stats")), subject=subject).get("numRecords")
    if not isinstance(rows, int) or rows < 0:
        raise CorruptMetadata(subject, "numRecords", repr(rows))
    return rows


def _time(info: Raw) -> int:
    """The time in a commitInfo, in epoch milliseconds; 0 if it has none."""
    timestamp = info.get("timestamp")
    return timestamp if isinstance(timestamp, int) else 0
