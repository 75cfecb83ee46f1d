"""Log -> one version of a Delta table: the live files of each partition. Reads no data file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import Final

from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.delta.metadata.actions import Action, Raw, long_value, text_map
from nightkeep.formats.delta.metadata.features import refuse_features
from nightkeep.formats.delta.metadata.head import has_commit_times
from nightkeep.formats.delta.metadata.locations import require_one_name, storage_name
from nightkeep.formats.delta.metadata.log_segment import segment
from nightkeep.formats.delta.metadata.log_state import ReadState, read_state
from nightkeep.formats.delta.metadata.partition import key_text, stored, typed
from nightkeep.formats.delta.metadata.replay import LogState, commit_time, high_water_mark
from nightkeep.formats.delta.metadata.schema import DeltaSchema, parse_schema
from nightkeep.formats.delta.metadata.struct_stats import row_count
from nightkeep.model import Address, FileSizes, UnitKey, VersionIdentity, digest_of
from nightkeep.storage import Storage

_MOVED_ON = 20
"""How many cleanups of the log in a row may interrupt a load before it fails."""

_NO_TAGS: Final[Mapping[str, str]] = {}
_LISTED_FILES: Final = 1 << 16


class VectorStorage(StrEnum):
    """Where a deletion vector is (PROTOCOL.md, "Deletion Vector Descriptor Schema": storageType)."""

    RELATIVE = "u"
    ABSOLUTE = "p"
    INLINE = "i"


@dataclass(frozen=True, slots=True)
class Vector:
    """A deletion vector's descriptor: `place` is pathOrInlineDv, `bytes` the payload's size, `rows` its cardinality.

    `offset` is None for an inline vector, or means 0.
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
        """The id by which log replay distinguishes vectors of one file."""
        return f"{self.kind}{self.place}" + ("" if self.offset is None else f"@{self.offset}")


@dataclass(frozen=True, slots=True)
class DeltaDataFile:
    """A live file. `path` is the log's text (percent-encoded), `name` its name in storage, below the root.

    `rows` are physical rows, None where statistics are missing. `raw` is the whole add action, `stats` its JSON text.
    `raw` is not compared: checkpoints may write an action differently, for example its dataChange.
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
        """The key of log replay. Two versions with the same identity show the same rows of the file."""
        return (self.path, self.vector.unique_id if self.vector else None)

    @property
    def deleted_rows(self) -> int:
        return self.vector.rows if self.vector else 0

    @property
    def deletes(self) -> int:
        """The number of vectors: 0 or 1."""
        return 1 if self.vector else 0


@dataclass(frozen=True, slots=True)
class DeltaUnit:
    """The files of one partition, by path. `stored_partition` has the add actions' raw values, by physical name."""

    key: UnitKey
    partition: Mapping[str, object]
    stored_partition: Mapping[str, str | None]
    files: tuple[DeltaDataFile, ...]
    schema: DeltaSchema


@dataclass(frozen=True)
class DeltaSnapshot:
    """One version. `raw_protocol` and `raw_metadata` are its actions; `commit_info` is of its own commit, or empty.

    `row_id_high_water_mark` is the highest row id ever assigned, None before the first. `in_commit_timestamp` is in
    epoch milliseconds, None if the table keeps none. `units` include partitions whose last file this commit removed.
    `actions` are those of a staged commit, in order, for the audit; a published version has none here. `transactions`
    are the latest versions that applications recorded, by application. `commit_digest` is the digest of its own
    commit's bytes, empty if only a checkpoint has the version.
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
        """The digest of its commit, and one of the table's id and live files, which any newer checkpoint gives too."""
        listed = tuple(_listed(file for unit in self.units for file in unit.files))
        content = digest_of(str(self.raw_metadata.get("id")).encode(), listed)
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
        """Whether the commit changes rows, by the operation it names. The audit compares this with its actions."""
        return self.commit_info.get("operation") not in ("OPTIMIZE", "PERSIST DELETES")

    @cached_property
    def by_key(self) -> Mapping[UnitKey, DeltaUnit]:
        return {unit.key: unit for unit in self.units}


def load(address: Address, storage: Storage, version: int | None = None) -> DeltaSnapshot:
    """A version, the newest by default, from one listing of the log.

    Raises MissingFile if the log does not hold it, RefusedTable for what we do not handle, CorruptMetadata.
    """
    for _ in range(_MOVED_ON):
        log_files = segment(storage, version)
        try:
            return _snapshot(address, read_state(storage, log_files), log_files.version, root=storage.root)
        except MissingFile:
            # A log cleanup may remove commits that a newer checkpoint covers while they are read: list again.
            if segment(storage, version) == log_files:
                raise
    raise MissingFile(f"{address.name}: log", "files of its newest version", f"{_MOVED_ON} in a row that went")


def load_staged(address: Address, storage: Storage, parent_version: int, name: str) -> DeltaSnapshot:
    """The version after `parent_version` that readers will see once the staged commit `name` is published."""
    log_files = segment(storage, parent_version)
    read = read_state(storage, log_files, staged=name)
    return _snapshot(address, read, parent_version + 1, root=storage.root, actions=read.state.commit)


def _snapshot(
    address: Address, read: ReadState, version: int, *, root: str, actions: tuple[Action, ...] = ()
) -> DeltaSnapshot:
    state = read.state
    refuse_features(address.name, state.protocol, state.metadata, None)
    schema = parse_schema(state.metadata, state.protocol, table=address.name)
    info = next((body for kind, body in state.commit if kind == "commitInfo"), {})
    keeps_times = has_commit_times(state.protocol, schema.configuration)
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
        in_commit_timestamp=commit_time(state, version) if keeps_times else None,
        actions=actions,
        transactions=state.transactions,
        commit_digest=read.digest,
    )


def _units(schema: DeltaSchema, state: LogState, root: str) -> tuple[DeltaUnit, ...]:
    """Units by partition. Different spellings of the same partition value are one partition."""
    spelled: dict[tuple[str | None, ...], list[DeltaDataFile]] = {}
    for values in state.vacated:
        spelled.setdefault(_place(schema, values, "remove"), [])
    # A checkpoint's files of one partition share one object with their values.
    places: dict[int, tuple[str | None, ...]] = {}
    for raw in state.adds:
        path, shared = str(raw["path"]), id(raw.get("partitionValues"))
        if shared not in places:
            places[shared] = _place(schema, text_map(raw, "partitionValues", subject=path), path)
        spelled.setdefault(places[shared], []).append(_data_file(raw, schema, root))
    require_one_name([file for files in spelled.values() for file in files], state.unmatched, root)
    units: dict[UnitKey, DeltaUnit] = {}
    for place in sorted(spelled, key=lambda values: [value or "" for value in values]):
        unit = _unit(schema, place, spelled[place])
        previous = units.get(unit.key)
        units[unit.key] = replace(unit, files=_by_path((*previous.files, *unit.files))) if previous else unit
    return tuple(units[key] for key in sorted(units))


def _place(schema: DeltaSchema, values: Mapping[str, str | None], subject: str) -> tuple[str | None, ...]:
    return tuple(stored(schema, values, subject=subject).values())


def _unit(schema: DeltaSchema, place: tuple[str | None, ...], files: Iterable[DeltaDataFile]) -> DeltaUnit:
    names = (schema.field(name).physical for name in schema.partition_columns)
    values = dict(zip(names, place, strict=True))
    partition = typed(schema, values)
    return DeltaUnit(UnitKey(key_text(schema, partition)), partition, values, _by_path(files), schema)


def _listed(files: Iterator[DeltaDataFile]) -> Iterator[bytes]:
    """The text that identifies the files, in pieces: whole, it takes 400 MB while it is made of a million files."""
    between = ""
    while some := list(islice(files, _LISTED_FILES)):
        text = "\0".join(f"{file.path}\0{file.identity[1]}\0{file.bytes}" for file in some)
        yield f"{between}{text}".encode(errors="surrogatepass")
        between = "\0"


def _by_path(files: Iterable[DeltaDataFile]) -> tuple[DeltaDataFile, ...]:
    return tuple(sorted(files, key=lambda file: file.path))


def _data_file(raw: Raw, schema: DeltaSchema, root: str) -> DeltaDataFile:
    path, stats, tags = str(raw["path"]), raw.get("stats"), raw.get("tags")
    vector = vector_of(raw.get("deletionVector"))
    if vector and not schema.has_vectors:
        # Readers do not agree on whether such a vector applies.
        raise CorruptMetadata(path, "no deletion vector, as the protocol lacks the feature", vector.unique_id)
    return DeltaDataFile(
        path=path,
        name=storage_name(path, root),
        bytes=long_value(raw, "size", subject=path),
        rows=row_count(str(stats), subject=path) if stats else None,
        vector=vector,
        stats=str(stats) if stats else None,
        tags={str(k): str(v) for k, v in tags.items()} if isinstance(tags, Mapping) and tags else _NO_TAGS,
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
