"""Log -> one version of a Delta table: the live files of each partition. Reads no data file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from nightkeep.errors import MissingFile
from nightkeep.formats.delta.metadata.actions import Action, text_map
from nightkeep.formats.delta.metadata.clustering import known_columns
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile, data_file
from nightkeep.formats.delta.metadata.features import refuse_reads
from nightkeep.formats.delta.metadata.head import has_commit_times
from nightkeep.formats.delta.metadata.live_files import by_unit, file_texts
from nightkeep.formats.delta.metadata.log_files import LogFiles
from nightkeep.formats.delta.metadata.log_segment import segment
from nightkeep.formats.delta.metadata.log_state import ReadState, read_state
from nightkeep.formats.delta.metadata.partition import key_text, stored, typed
from nightkeep.formats.delta.metadata.replay import LogState, commit_time, high_water_mark
from nightkeep.formats.delta.metadata.schema import DeltaSchema, parse_schema
from nightkeep.model import Address, FileSizes, UnitKey, VersionIdentity, digest_of
from nightkeep.model.file_columns import Numbers, columns_of, total
from nightkeep.storage import Storage

Place = tuple[str | None, ...]
"""A partition: the value of each partition column, as the log spells it."""
_MOVED_ON = 20
"""How many cleanups of the log in a row may interrupt a load before it fails."""


@dataclass(frozen=True, slots=True)
class DeltaUnit:
    """The files of one partition, by path. `stored_partition` has the add actions' raw values, by physical name."""

    key: UnitKey
    partition: Mapping[str, object]
    stored_partition: Mapping[str, str | None]
    files: Sequence[DeltaDataFile]
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
        listed = tuple(_listed(self.units))
        content = digest_of(str(self.raw_metadata.get("id")).encode(), listed)
        return VersionIdentity(self.version, self.commit_digest, content)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.schema.partition_columns

    @property
    def sizes(self) -> FileSizes:
        columns = [columns_of(unit.files) for unit in self.units]
        sizes = tuple(size for some in columns for size in some.bytes.tolist())
        return FileSizes(sizes, (None,) * len(sizes), sum(total(some.deletes) for some in columns))

    @property
    def changes_rows(self) -> bool:
        """Whether the commit changes rows, by the operation it names. The audit compares this with its actions."""
        return self.commit_info.get("operation") not in ("OPTIMIZE", "PERSIST DELETES")

    @cached_property
    def by_key(self) -> Mapping[UnitKey, DeltaUnit]:
        return {unit.key: unit for unit in self.units}


def load(address: Address, storage: Storage, version: int | None = None, *, only_shows: bool = False) -> DeltaSnapshot:
    """A version, the newest by default, from one listing of the log.

    With `only_shows`, which is for showing rows to people, the table may be a shallow clone, whose data files are
    outside its folder, and may have variants.
    Raises MissingFile if the log does not hold it, RefusedTable for what readers must know and we do not handle,
    CorruptMetadata.
    """
    for _ in range(_MOVED_ON):
        log_files = segment(storage, version)
        try:
            read = read_state(storage, log_files)
            return _snapshot(address, read, log_files.version, root=storage.root, only_shows=only_shows)
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
    address: Address,
    read: ReadState,
    version: int,
    *,
    root: str,
    actions: tuple[Action, ...] = (),
    only_shows: bool = False,
) -> DeltaSnapshot:
    state = read.state
    refuse_reads(address.name, state.protocol, state.metadata, state.domains)
    schema = parse_schema(state.metadata, state.protocol, table=address.name)
    schema = replace(schema, clustering=known_columns(state.protocol, state.domains))
    info = next((body for kind, body in state.commit if kind == "commitInfo"), {})
    keeps_times = has_commit_times(state.protocol, schema.configuration)
    return DeltaSnapshot(
        table=address,
        version=version,
        schema=schema,
        units=_units(schema, state, root, anywhere=only_shows),
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


def _units(schema: DeltaSchema, state: LogState, root: str, *, anywhere: bool) -> tuple[DeltaUnit, ...]:
    """Units by partition. Different spellings of the same partition value are one partition."""
    files = LogFiles.of(state.stored, state.adds, root=root, has_vectors=schema.has_vectors, anywhere=anywhere)
    files.require_one_name(state.unmatched)
    spellings, places = _spelled(schema, state)
    vacated = [_place(schema, values, "remove") for values in state.vacated]
    units: dict[UnitKey, DeltaUnit] = {}
    keys: dict[Place, UnitKey] = {}
    for place in sorted({*vacated, *places}, key=lambda values: [(value is not None, value or "") for value in values]):
        unit = _unit(schema, place)
        keys[place] = unit.key
        units.setdefault(unit.key, unit)
    numbers = {key: number for number, key in enumerate(sorted(units))}
    of_place = np.asarray([numbers[keys[place]] for place in places], np.int64)
    parts = by_unit(files, of_place[spellings], len(units))
    return tuple(replace(units[key], files=parts[number]) for key, number in numbers.items())


def unit_of(schema: DeltaSchema, add: Mapping[str, object], *, root: str) -> DeltaUnit:
    """The partition of an add with its file alone, wherever the file is. Raises CorruptMetadata."""
    path = str(add["path"])
    unit = _unit(schema, _place(schema, text_map(add, "partitionValues", subject=path), path))
    return replace(unit, files=(data_file(add, root=root, has_vectors=schema.has_vectors, anywhere=True),))


def _spelled(schema: DeltaSchema, state: LogState) -> tuple[Numbers, Sequence[Place]]:
    """The spelling of each file's partition values, as a number; and the place in the table that each of them means."""
    used, firsts, numbers = np.unique(state.stored.spellings, return_index=True, return_inverse=True)
    paths = map(str, state.stored.paths.take(firsts).to_pylist())
    places = [
        _place(schema, state.stored.values[spelling], path) for spelling, path in zip(used.tolist(), paths, strict=True)
    ]
    for raw in state.adds:
        path = str(raw["path"])
        places.append(_place(schema, text_map(raw, "partitionValues", subject=path), path))
    of_adds = np.arange(len(used), len(places))
    return np.concatenate((numbers, of_adds)), places


def _place(schema: DeltaSchema, values: Mapping[str, str | None], subject: str) -> Place:
    return tuple(stored(schema, values, subject=subject).values())


def _unit(schema: DeltaSchema, place: Place) -> DeltaUnit:
    names = (schema.field(name).physical for name in schema.partition_columns)
    values = dict(zip(names, place, strict=True))
    partition = typed(schema, values)
    return DeltaUnit(UnitKey(key_text(schema, partition)), partition, values, (), schema)


def _listed(units: Iterable[DeltaUnit]) -> Iterator[bytes]:
    """The text that identifies the files, in pieces: whole, it takes 400 MB while it is made of a million files."""
    between = b""
    for unit in units:
        for text in file_texts(unit.files):
            yield between + text[:-1]
            between = b"\0"
