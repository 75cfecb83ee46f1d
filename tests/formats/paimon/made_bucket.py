"""Rows -> a bucket of a primary-key table in memory, written without the library's writers, and what readers see of it.

Its files, statistics and vectors are right by construction. The twins merge row by row.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import MissingFile
from nightkeep.formats.paimon.deletes.vectors import BitmapKind, encode_vectors
from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, Schemas, data_file
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.formats.paimon.metadata.vector_ranges import vector_ranges
from nightkeep.model import Run, UnitKey
from nightkeep.storage import ListedFile, Storage

INT, TEXT = parse_type("INT NOT NULL"), parse_type("STRING")
RUN = Run("made", "f" * 16, "ab" * 4, 1_767_268_800_000)
FOLDER = "bucket-0"
RETRACTS = (1, 3)


class Row(NamedTuple):
    """`kind` is the byte of RowKind.java: 0 insert, 1 update before, 2 update after, 3 delete."""

    key: int
    value: str | None = None
    sequence: int = 0
    kind: int = 0


@dataclass
class HeldStorage:
    """The verbs that tasks use, over a dict."""

    files: dict[str, bytes] = field(default_factory=dict)
    root: str = "memory"

    def read(self, name: str) -> bytes:
        if name not in self.files:
            raise MissingFile(name, "a file that metadata names", "no such file")
        return self.files[name]

    def open(self, name: str) -> pa.NativeFile:
        return pa.BufferReader(self.read(name))

    def put(self, name: str, data: bytes) -> None:
        self.files[name] = data

    def list(self, folder: str) -> tuple[ListedFile, ...]:
        return tuple(
            ListedFile(name, len(self.files[name]), 0) for name in sorted(self.files) if name.startswith(folder)
        )

    @contextmanager
    def create(self, name: str) -> Iterator[io.BytesIO]:
        sink = io.BytesIO()
        yield sink
        self.files[name] = sink.getvalue()


@dataclass
class MadeBucket:
    """A bucket under construction: `rows` and `hidden` positions by file name, in the order files were added.

    The table has deletion vectors unless `options` say otherwise.
    """

    options: dict[str, str] = field(default_factory=dict)
    held: HeldStorage = field(default_factory=HeldStorage)
    rows: dict[str, Sequence[Row]] = field(default_factory=dict)
    files: list[PaimonDataFile] = field(default_factory=list)
    hidden: dict[str, set[int]] = field(default_factory=dict)

    @property
    def storage(self) -> Storage:
        return cast(Storage, self.held)

    @property
    def schema(self) -> PaimonSchema:
        options = {"deletion-vectors.enabled": "true", **self.options}
        return PaimonSchema(0, (PaimonField(0, "k", INT), PaimonField(1, "v", TEXT)), (), ("k",), options)

    def add(self, level: int, rows: Sequence[Row], *, hidden: Sequence[int] = (), group_rows: int = 1 << 20) -> str:
        """A file of `rows`, which ascend by key; those at `hidden` are marked in its vector."""
        name = f"data-{len(self.files)}.parquet"
        sink = io.BytesIO()
        pq.write_table(_table(rows), sink, row_group_size=group_rows, store_schema=False)
        self.held.files[f"{FOLDER}/{name}"] = sink.getvalue()
        self.rows[name] = rows
        self.files.append(data_file(record(name, sink.tell(), level, rows), [INT]))
        if hidden:
            self.hidden[name] = set(hidden)
        return name

    def bucket(self) -> Bucket:
        index = (self._index(),) if self.hidden else ()
        files = sorted(self.files, key=lambda file: (file.level, file.min_key, file.name))
        schemas = Schemas(self.schema, {0: self.schema})
        ranges = tuple(where for record in index for where in vector_ranges(record))
        return Bucket(UnitKey("", 0), {}, encode_row((), ()), FOLDER, 1, tuple(files), ranges, index, schemas)

    def _index(self) -> Record:
        vectors = [(name, BitMap(marked)) for name, marked in sorted(self.hidden.items())]
        data, ranges = encode_vectors(vectors, BitmapKind.BITMAP32)
        self.held.files["index/index-0"] = data
        items = [{"f0": r.data_file, "f1": r.offset, "f2": r.length, "_CARDINALITY": r.cardinality} for r in ranges]
        return {"_FILE_NAME": "index-0", "_FILE_SIZE": len(data), "_DELETIONS_VECTORS_RANGES": items}

    def live(self, name: str) -> Iterator[tuple[int, Row]]:
        """Positions and rows that no vector hides."""
        gone = self.hidden.get(name, set())
        return ((at, row) for at, row in enumerate(self.rows[name]) if at not in gone)

    def vectors(self) -> Mapping[str, BitMap64]:
        return {name: BitMap64(marked) for name, marked in self.hidden.items()}

    def merged(self, *, by_value: bool = False) -> Mapping[int, tuple[str, int]]:
        """Key -> file and position of its newest live row; keys whose newest row is a retract are left out.

        `by_value`: the value is the sequence field, ascending, a null below every other.
        """
        newest: dict[int, tuple[Any, ...]] = {}
        for file in self.files:
            for at, row in self.live(file.name):
                order = ((row.value is not None, row.value or "") if by_value else ()), row.sequence
                if row.key not in newest or order > newest[row.key][0]:
                    newest[row.key] = (order, row.kind, file.name, at)
        return {key: (name, at) for key, (_, kind, name, at) in newest.items() if kind not in RETRACTS}


def record(name: str, size: int, level: int, rows: Sequence[Row]) -> Record:
    """The raw _FILE record of a file of `rows`."""
    keys, texts = [row.key for row in rows], [row.value for row in rows if row.value is not None]
    sequences = [row.sequence for row in rows]
    return {
        "_FILE_NAME": name,
        "_FILE_SIZE": size,
        "_ROW_COUNT": len(rows),
        "_LEVEL": level,
        "_SCHEMA_ID": 0,
        "_MIN_KEY": encode_row((keys[0],), (INT,)),
        "_MAX_KEY": encode_row((keys[-1],), (INT,)),
        "_MIN_SEQUENCE_NUMBER": min(sequences),
        "_MAX_SEQUENCE_NUMBER": max(sequences),
        "_DELETE_ROW_COUNT": sum(row.kind in RETRACTS for row in rows),
        "_CREATION_TIME": 0,
        "_VALUE_STATS_COLS": None,
        "_KEY_STATS": _statistics([INT], [keys[0]], [keys[-1]], [0]),
        "_VALUE_STATS": _statistics(
            [INT, TEXT],
            [keys[0], min(texts, default=None)],
            [keys[-1], max(texts, default=None)],
            [0, len(rows) - len(texts)],
        ),
    }


def _statistics(types: Sequence[Any], lows: Sequence[Any], highs: Sequence[Any], nulls: Sequence[int]) -> Record:
    return {
        "_MIN_VALUES": encode_row(lows, types),
        "_MAX_VALUES": encode_row(highs, types),
        "_NULL_COUNTS": list(nulls),
    }


def _table(rows: Sequence[Row]) -> pa.Table:
    keys = pa.array([row.key for row in rows], pa.int32())
    return pa.table(
        {
            "_KEY_k": keys,
            "_SEQUENCE_NUMBER": pa.array([row.sequence for row in rows], pa.int64()),
            "_VALUE_KIND": pa.array([row.kind for row in rows], pa.int8()),
            "k": keys,
            "v": pa.array([row.value for row in rows], pa.string()),
        }
    )


@st.composite
def buckets(draw: st.DrawFn, *, options: Mapping[str, str] | None = None) -> MadeBucket:
    """A bucket as writers and compactions leave it: no live key twice above level 0, level 0 the newest, oldest first.

    What a deeper level holds of a key that a higher one has, a vector hides, and it may hide rows besides.
    """
    made = MadeBucket(dict(options or {}))
    sequence = 0
    values = st.sampled_from([None, "a", "b", "c"])
    for level in (5, 4):
        keys = sorted(draw(st.sets(st.integers(0, 7), max_size=6)))
        rows = [Row(key, draw(values), sequence + at) for at, key in enumerate(keys)]
        sequence += len(rows)
        if rows:
            if level == 4:
                for name, held in made.rows.items():
                    replaced = {at for at, row in enumerate(held) if row.key in set(keys)}
                    made.hidden[name] = made.hidden.get(name, set()) | replaced
            # Deleted rows have no newer one anywhere.
            made.add(level, rows, hidden=sorted(draw(st.sets(st.integers(0, len(rows) - 1), max_size=2))))
    made.hidden = {name: marked for name, marked in made.hidden.items() if marked}
    for _ in range(draw(st.integers(1, 3))):
        keys = sorted(draw(st.sets(st.integers(0, 9), min_size=1, max_size=5)))
        rows = [Row(key, draw(values), sequence + at, draw(st.integers(0, 3))) for at, key in enumerate(keys)]
        sequence += len(rows)
        made.add(0, rows)
    return made
