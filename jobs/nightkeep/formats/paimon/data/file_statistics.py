"""Chunks of one new file -> the statistics in its metadata record. Computed from the data itself.

The mode of a column is `fields.<column>.stats-mode`, else that of changelog files, else the level's, else
`metadata.stats-mode` (StatsCollectorFactories.java).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.data.columns import KEY_PREFIX, KIND, RETRACT_KINDS, SEQUENCE
from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.file_formats import shifts_times
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema, option_bool, option_int, option_map
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.formats.paimon.metadata.values import Value, canonical
from nightkeep.kernels.stats import KEY_MODE, ColumnStats, Detail, StatsMode, column_stats, parse_mode
from nightkeep.model.arrow_types import ChunkedArray

_FULL = StatsMode(Detail.FULL)
_NOTHING = ColumnStats(None, None, None)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Running statistics of a column. `open_ended`: a chunk had values without bounds (NaN), so no range covers all."""

    stats: ColumnStats
    open_ended: bool = False

    def with_chunk(self, column: ChunkedArray) -> _Seen:
        stats = column_stats(column, _FULL)
        nulls = (self.stats.null_count or 0) + column.null_count
        unbounded = stats.min is None and column.null_count < len(column)
        if self.open_ended or unbounded:
            return _Seen(ColumnStats(None, None, nulls), open_ended=True)
        return _Seen(replace(_spanning(self.stats, stats), null_count=nulls))

    def in_mode(self, mode: StatsMode) -> ColumnStats:
        if mode.detail is Detail.NONE:
            return _NOTHING
        if self.stats.min is None or self.stats.max is None or mode.detail is Detail.COUNTS:
            return ColumnStats(None, None, self.stats.null_count)
        edges = pa.array([self.stats.min, self.stats.max], self.stats.min.type)
        return replace(column_stats(edges, mode), null_count=self.stats.null_count)


def _spanning(left: ColumnStats, right: ColumnStats) -> ColumnStats:
    if left.min is None or left.max is None:
        return right
    if right.min is None or right.max is None:
        return left
    kind = left.min.type
    low = pc.min(pa.array([left.min, right.min], kind))
    high = pc.max(pa.array([left.max, right.max], kind))
    return ColumnStats(low, high, None)


class PaimonFileStats:
    """Collects the statistics of one file's _FILE record. Every chunk is added once, in file order.

    Rows of a table without keys have no sequence numbers: the writer counts them.
    """

    def __init__(self, schema: PaimonSchema, mode: str, *, file_format: str) -> None:
        """`mode` is that of columns without a mode of their own."""
        self._schema, self._mode, self._format = schema, mode, file_format
        self._in_orc = file_format == "orc"
        names = [KEY_PREFIX + name for name in schema.trimmed_keys] + [field.name for field in schema.fields]
        self._seen = {name: _Seen(_NOTHING) for name in names}
        self.rows = self.retracts = 0
        self.min_sequence = self.max_sequence = 0
        self.first_key: tuple[Value, ...] = ()
        self.last_key: tuple[Value, ...] = ()

    def add(self, chunk: pa.Table) -> None:
        for name, seen in self._seen.items():
            self._seen[name] = seen.with_chunk(chunk.column(name))
        if self._schema.trimmed_keys:
            self._add_keys(chunk)
        self.rows += chunk.num_rows

    def _add_keys(self, chunk: pa.Table) -> None:
        sequences = pc.min_max(chunk.column(SEQUENCE))
        low, high = sequences["min"].as_py(), sequences["max"].as_py()
        if self.rows == 0:
            self.first_key = self._key(chunk, 0)
            self.min_sequence, self.max_sequence = low, high
        self.last_key = self._key(chunk, chunk.num_rows - 1)
        self.min_sequence, self.max_sequence = min(self.min_sequence, low), max(self.max_sequence, high)
        self.retracts += int(np.isin(chunk.column(KIND).to_numpy(), RETRACT_KINDS).sum())

    def keys(self) -> Record:
        """_KEY_STATS: every key column, in key order (SimpleStatsConverter.toBinaryAllMode)."""
        fields = self._schema.select(self._schema.trimmed_keys)
        modes = dict.fromkeys(self._schema.trimmed_keys, KEY_MODE)
        if option_bool(self._schema, "data-file.thin-mode"):
            # They are those of the value columns (KeyValueThinDataFileWriterImpl.java).
            named = zip(
                self._schema.fields, stats_modes(self._schema, self._mode, file_format=self._format), strict=True
            )
            modes = {field.name: mode for field, mode in named}
        stats = [self._seen[KEY_PREFIX + field.name].in_mode(modes[field.name]) for field in fields]
        return _record(stats, [field.type for field in fields])

    def values(self) -> tuple[Record, list[str] | None]:
        """_VALUE_STATS and _VALUE_STATS_COLS. Dense statistics leave out columns without any."""
        modes = stats_modes(self._schema, self._mode, file_format=self._format)
        stats = [self._column(field, mode) for field, mode in zip(self._schema.fields, modes, strict=True)]
        if not option_bool(self._schema, "metadata.stats-dense-store", default=True):
            return _record(stats, [field.type for field in self._schema.fields]), None
        kept = [
            i
            for i, (field, mode) in enumerate(zip(self._schema.fields, modes, strict=True))
            if mode.detail is not Detail.NONE and self._has_statistics(field)
        ]
        fields = [self._schema.fields[i] for i in kept]
        record = _record([stats[i] for i in kept], [field.type for field in fields])
        whole = len(kept) == len(self._schema.fields)
        return record, None if whole else [field.name for field in fields]

    def _column(self, field: PaimonField, mode: StatsMode) -> ColumnStats:
        if not self._has_statistics(field):
            return _NOTHING
        stats = self._seen[field.name].in_mode(mode)
        if self._in_orc and field.type.root is TypeRoot.TIMESTAMP_LTZ and shifts_times(self._schema):
            # Readers of another time zone than UTC would compare shifted bounds with what they show.
            return replace(stats, min=None, max=None)
        return stats

    def _has_statistics(self, field: PaimonField) -> bool:
        """Of nested columns Java counts the nulls in ORC files, and nothing in others."""
        return self._in_orc or not field.type.is_nested

    def _key(self, chunk: pa.Table, row: int) -> tuple[Value, ...]:
        fields = self._schema.select(self._schema.trimmed_keys)
        return tuple(canonical(chunk.column(KEY_PREFIX + f.name)[row], f.type) for f in fields)


def level_stats_mode(schema: PaimonSchema, level: int) -> str:
    """The mode of a level's files, for columns without a mode of their own. Without keys, levels have none."""
    table = schema.options.get("metadata.stats-mode", "truncate(16)")
    if not schema.primary_keys:
        return table
    return option_map(schema, "metadata.stats-mode.per.level").get(str(level), table)


def stats_modes(schema: PaimonSchema, default: str, *, file_format: str) -> tuple[StatsMode, ...]:
    """The mode of every column, in schema order. `default` is that of columns without one of their own.

    Keys of a thin file have a mode of their own, and are not counted.
    """
    first = option_int(schema, "metadata.stats-keep-first-n-columns", -1)
    # Java's writer of Avro files has another rule (StatsCollectorFactories.createStatsFactoriesForAvro).
    is_thin = option_bool(schema, "data-file.thin-mode") and file_format != "avro"
    modes: list[StatsMode] = []
    counted = 0
    for field in schema.fields:
        own = schema.options.get(f"fields.{field.name}.stats-mode")
        if own is None and is_thin and field.name in schema.trimmed_keys:
            modes.append(KEY_MODE)
            continue
        cut = first >= 0 and counted >= first
        modes.append(parse_mode(own if own is not None else "none" if cut else default))
        counted += 1
    return tuple(modes)


def _record(stats: Sequence[ColumnStats], types: Sequence[PaimonType]) -> Record:
    lows = [None if s.min is None else canonical(s.min, kind) for s, kind in zip(stats, types, strict=True)]
    highs = [None if s.max is None else canonical(s.max, kind) for s, kind in zip(stats, types, strict=True)]
    return {
        "_MIN_VALUES": encode_row(lows, types),
        "_MAX_VALUES": encode_row(highs, types),
        "_NULL_COUNTS": [s.null_count for s in stats],
    }
