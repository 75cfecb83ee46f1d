"""One version of a Delta table as values: the live files of each partition, from the log alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.delta.metadata.actions import Action, Raw, long_value
from nightkeep.formats.delta.metadata.features import refuse_features, supported
from nightkeep.formats.delta.metadata.locations import own_name, storage_name
from nightkeep.formats.delta.metadata.log_segment import newest, segment
from nightkeep.formats.delta.metadata.log_state import ReadState, read_state
from nightkeep.formats.delta.metadata.partition import key_text, stored, typed
from nightkeep.formats.delta.metadata.replay import LogState, commit_time, high_water_mark
from nightkeep.formats.delta.metadata.schema import DeltaSchema, is_true, parse_schema
from nightkeep.formats.delta.metadata.struct_stats import row_count
from nightkeep.model import Address, FileSizes, UnitKey, VersionIdentity, digest_of
from nightkeep.storage import Storage

_MOVED_ON = 20
"""Cleanups of the log in a row that may overtake its reading."""


class VectorStorage(StrEnum):
    """Where a deletion vector is (PROTOCOL.md, "Deletion Vector Descriptor Schema": storageType)."""

    RELATIVE = "u"
    ABSOLUTE = "p"
    INLINE = "i"


@dataclass(frozen=True, slots=True)
class Vector:
    """A deletion vector's descriptor: `place` is pathOrInlineDv, `bytes` the payload's, `rows` its cardinality.

    An `offset` of None is that of an inline vector, or 0.
    """

    kind: VectorStorage
    place: str
    offset: int | None
    bytes: int
    rows: int

    def __post_init__(self) -> None:
        inline = self.kind is VectorStorage.INLINE
        if (inline and self.offset is not None) or min(self.offset or 0, self.bytes, self.rows) < 0:
            found = f"kind {self.kind}, offset {self.offset}, {self.bytes} bytes, {self.rows} rows"
            raise CorruptMetadata(
                f"deletion vector {self.place}", "no offset if it is inline, and nothing negative", found
            )

    @property
    def unique_id(self) -> str:
        """What log replay tells vectors of one file apart by."""
        return f"{self.kind}{self.place}" + ("" if self.offset is None else f"@{self.offset}")


@dataclass(frozen=True, slots=True)
class DeltaDataFile:
    """A live file. `path` is as the log has it (percent-encoded), `name` what storage calls it, below the root.

    `rows` are physical rows, None where statistics are missing; `raw` is the whole add action, `stats` its JSON text.
    Not compared is `raw`: checkpoints repeat an action with other words, dataChange among them.
    """

    path: str
    name: str
    bytes: int
    rows: int | None
    vector: Vector | None
    stats: str | None
    tags: Mapping[str, str] = field(hash=False)
    raw: Mapping[str, object] = field(compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.bytes < 0 or (self.rows is not None and self.deleted_rows > self.rows):
            found = f"{self.bytes} bytes, {self.deleted_rows} of {self.rows} rows deleted"
            raise CorruptMetadata(self.path, "a size, and no more deleted rows than rows", found)

    @property
    def identity(self) -> tuple[str, str | None]:
        """The key of log replay: two versions of the table with this pair show the same rows of the file."""
        return (self.path, self.vector.unique_id if self.vector else None)

    @property
    def deleted_rows(self) -> int:
        return self.vector.rows if self.vector else 0

    @property
    def deletes(self) -> int:
        """How many vectors it has."""
        return 1 if self.vector else 0


@dataclass(frozen=True, slots=True)
class DeltaUnit:
    """The files of one partition, by path. `stored_partition` are its values as an add has them, by physical name."""

    key: UnitKey
    partition: Mapping[str, object]
    stored_partition: Mapping[str, str | None]
    files: tuple[DeltaDataFile, ...]
    schema: DeltaSchema


@dataclass(frozen=True)
class DeltaSnapshot:
    """One version. `raw_protocol` and `raw_metadata` are its actions; `commit_info` that of its own commit, if kept.

    `row_id_high_water_mark` is the highest row id ever assigned, None before the first; `in_commit_timestamp` in
    epoch milliseconds where the table keeps one. `units` include partitions whose last file this commit removed.
    `actions` are those of a staged commit, in their order, for whoever audits it; a published version has none here.
    `transactions` are the latest versions that applications recorded, by application. `commit_digest` is of the bytes
    of its own commit, empty where only a checkpoint tells of it.
    """

    table: Address
    version: int
    schema: DeltaSchema
    units: tuple[DeltaUnit, ...]
    raw_protocol: Mapping[str, object]
    raw_metadata: Mapping[str, object]
    commit_info: Mapping[str, object]
    domains: Mapping[str, Mapping[str, object]]
    row_id_high_water_mark: int | None
    in_commit_timestamp: int | None
    actions: tuple[tuple[str, Mapping[str, object]], ...] = ()
    transactions: Mapping[str, int] = field(default_factory=dict)
    commit_digest: str = ""

    @cached_property
    def identity(self) -> VersionIdentity:
        """By its commit, and by the table's id and live files: those are the same read from a newer checkpoint."""
        files = (file for unit in self.units for file in unit.files)
        live = "\0".join(f"{file.path}\0{file.identity[1]}\0{file.bytes}" for file in files)
        content = digest_of(str(self.raw_metadata.get("id")).encode(), live.encode(errors="surrogatepass"))
        return VersionIdentity(self.version, self.commit_digest, content)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.schema.partition_columns

    @property
    def sizes(self) -> FileSizes:
        files = [file for unit in self.units for file in unit.files]
        return FileSizes(
            tuple(file.bytes for file in files),
            tuple(None for _ in files),
            sum(file.vector is not None for file in files),
        )

    @property
    def changes_rows(self) -> bool:
        """By the operation it names; whether its actions say the same is the audit's."""
        return self.commit_info.get("operation") not in ("OPTIMIZE", "PERSIST DELETES")

    @cached_property
    def by_key(self) -> Mapping[UnitKey, DeltaUnit]:
        return {unit.key: unit for unit in self.units}


def load(address: Address, storage: Storage, version: int | None = None) -> DeltaSnapshot:
    """A version, the newest by default, from one listing of the log.

    Raises MissingFile where the log does not hold it, RefusedTable for what we do not handle, CorruptMetadata.
    """
    for _ in range(_MOVED_ON):
        log_files = segment(storage, version)
        try:
            return _snapshot(address, read_state(storage, log_files), log_files.version, root=storage.root)
        except MissingFile:
            # Commits that a newer checkpoint covers are cleaned up while they are read.
            if segment(storage, version) == log_files:
                raise
    raise MissingFile(f"{address.name}: log", "files of its newest version", f"{_MOVED_ON} in a row that went")


def load_staged(address: Address, storage: Storage, parent_version: int, name: str) -> DeltaSnapshot:
    """The version after `parent_version` that readers will see once the staged commit `name` is published."""
    log_files = segment(storage, parent_version)
    read = read_state(storage, log_files, staged=name)
    return _snapshot(address, read, parent_version + 1, root=storage.root, actions=read.state.commit)


def latest_version(storage: Storage) -> int:
    """Raises MissingFile where there is no log."""
    return newest(storage)


def _snapshot(
    address: Address, read: ReadState, version: int, *, root: str, actions: tuple[Action, ...] = ()
) -> DeltaSnapshot:
    state = read.state
    refuse_features(address.name, state.protocol, state.metadata, None)
    schema = parse_schema(state.metadata, state.protocol, table=address.name)
    info = next((body for kind, body in state.commit if kind == "commitInfo"), {})
    return DeltaSnapshot(
        table=address,
        version=version,
        schema=schema,
        units=_units(schema, state, root),
        raw_protocol=state.protocol,
        raw_metadata=state.metadata,
        commit_info=info,
        domains=state.domains,
        row_id_high_water_mark=high_water_mark(state),
        in_commit_timestamp=commit_time(state, version) if _has_commit_times(schema, state) else None,
        actions=actions,
        transactions=state.transactions,
        commit_digest=read.digest,
    )


def _has_commit_times(schema: DeltaSchema, state: LogState) -> bool:
    return "inCommitTimestamp" in supported(state.protocol) and is_true(
        schema.configuration, "delta.enableInCommitTimestamps"
    )


def _units(schema: DeltaSchema, state: LogState, root: str) -> tuple[DeltaUnit, ...]:
    """By partition: values that are spelled differently and mean the same are one."""
    spelled: dict[tuple[str | None, ...], list[DeltaDataFile]] = {}
    for values in state.vacated:
        spelled.setdefault(_place(schema, values, "remove"), [])
    for raw in state.adds:
        spelled.setdefault(_place(schema, raw["partitionValues"], str(raw["path"])), []).append(
            _data_file(raw, schema, root)
        )
    _require_one_name([file for files in spelled.values() for file in files], state.unmatched, root)
    units: dict[UnitKey, DeltaUnit] = {}
    for place in sorted(spelled, key=lambda values: [value or "" for value in values]):
        unit = _unit(schema, place, spelled[place])
        known = units.get(unit.key)
        units[unit.key] = replace(unit, files=_by_path((*known.files, *unit.files))) if known else unit
    return tuple(units[key] for key in sorted(units))


def _place(schema: DeltaSchema, values: object, subject: str) -> tuple[str | None, ...]:
    assert isinstance(values, Mapping)
    return tuple(stored(schema, values, subject=subject).values())


def _unit(schema: DeltaSchema, place: tuple[str | None, ...], files: Iterable[DeltaDataFile]) -> DeltaUnit:
    names = (schema.field(name).physical for name in schema.partition_columns)
    values = dict(zip(names, place, strict=True))
    partition = typed(schema, values)
    return DeltaUnit(UnitKey(key_text(schema, partition)), partition, values, _by_path(files), schema)


def _by_path(files: Iterable[DeltaDataFile]) -> tuple[DeltaDataFile, ...]:
    return tuple(sorted(files, key=lambda file: file.path))


def _data_file(raw: Raw, schema: DeltaSchema, root: str) -> DeltaDataFile:
    path, stats, tags = str(raw["path"]), raw.get("stats"), raw.get("tags")
    vector = vector_of(raw.get("deletionVector"))
    if vector and not schema.has_vectors:
        # Readers do not agree on whether such a vector counts.
        raise CorruptMetadata(path, "no deletion vector, as the protocol lacks the feature", vector.unique_id)
    return DeltaDataFile(
        path=path,
        name=storage_name(path, root),
        bytes=long_value(raw, "size", subject=path),
        rows=row_count(str(stats), subject=path) if stats else None,
        vector=vector,
        stats=str(stats) if stats else None,
        tags={str(k): str(v) for k, v in tags.items()} if isinstance(tags, Mapping) else {},
        raw=raw,
    )


def vector_of(raw: object) -> Vector | None:
    """The vector of an action; None without one. Raises CorruptMetadata."""
    if not isinstance(raw, Mapping):
        return None
    kind = raw["storageType"]
    if kind not in set(VectorStorage):
        raise CorruptMetadata("deletion vector", f"a storageType of {', '.join(VectorStorage)}", repr(kind))
    return Vector(VectorStorage(kind), raw["pathOrInlineDv"], raw.get("offset"), raw["sizeInBytes"], raw["cardinality"])


def _require_one_name(files: Iterable[DeltaDataFile], removed: Iterable[str], root: str) -> None:
    """Two spellings of one file's path would be read as two files, and readers do not agree on whether a remove of one
    is a remove of the other."""
    paths: dict[str, str] = {}
    for file in files:
        if paths.setdefault(file.name, file.path) != file.path:
            raise CorruptMetadata(f"data file {file.path}", "one spelling of its path", paths[file.name])
    for path in removed:
        live = paths.get(own_name(path, root) or "", path)
        if live != path:
            raise CorruptMetadata(f"data file {live}", "one spelling of its path", f"a remove of {path}")
