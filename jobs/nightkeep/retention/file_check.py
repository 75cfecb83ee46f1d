"""Every file of every retained version -> whether it exists with the right size and a readable footer. Reads only."""

from __future__ import annotations

import io
import json
import math
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.errors import MissingFile, reason_of
from nightkeep.model.counted import counted
from nightkeep.protocol.table_files import OpenFiles, OpenRoot, Retention
from nightkeep.retention.orphans.guards import require_folders
from nightkeep.retention.orphans.sets import SetCounts, Sets
from nightkeep.storage import Storage

SAMPLE_FILES: Final = 200
"""Footers that one check opens: a few seconds on an object store."""
_TRIES: Final = 3
_SAMPLED_ROOTS: Final = 8


@dataclass(frozen=True, slots=True)
class FileCheck:
    """The findings for `roots` retained versions.

    `opened` is how many footers were opened; `unreadable` names those that could not be read, each with the reason.
    `examples` names some missing or resized files. `unproven` counts lists that no other metadata proves complete: the
    check cannot find a file that such a list has lost.
    """

    roots: int
    files: int
    bytes: int
    missing: int = 0
    resized: int = 0
    opened: int = 0
    unreadable: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    unproven: int = 0

    @property
    def faults(self) -> int:
        return self.missing + self.resized + len(self.unreadable)

    def __str__(self) -> str:
        unproven = f"; {counted(self.unproven, 'list')} without evidence of being whole" if self.unproven else ""
        return (
            f"files of {counted(self.roots, 'retained version')}: {self.files:,} are there, {self.missing:,} missing, "
            f"{self.resized:,} of another size; {counted(self.opened, 'footer')} opened, "
            f"{len(self.unreadable):,} unreadable{unproven}"
        )


def check_files(
    table: OpenFiles,
    retention: Retention,
    *,
    sets: Callable[[], Sets],
    salt: str,
    sample: int = SAMPLE_FILES,
    share: float | None = None,
) -> FileCheck:
    """Look for every file that readers of a root need, and open the footers of about `sample` of them, or of a `share`.

    `salt` decides which files are opened. A missing metadata file counts as a missing file. If a version expires
    during the check, the check is repeated; raises MissingFile if that happens every time. Raises EvidenceError for
    metadata that cannot be read, and for files that are behind a symbolic link: a listing does not follow it.
    """
    for _ in range(_TRIES):
        roots = table.roots(retention)
        result = _look(table, roots, sets())
        if not (result.missing or result.resized) or not _vanished(table, roots, retention):
            most = sample if share is None else math.ceil(result.files * share)
            return _opened(table.table_files().storage, result, _sample(table, roots, random.Random(salt), most))
    subject = f"{table.table_files().table.name}: retained versions"
    raise MissingFile(subject, "them to last while their files are looked for", f"some gone in each of {_TRIES} looks")


def _look(table: OpenFiles, roots: Sequence[OpenRoot], sets: Sets) -> FileCheck:
    with closing(sets):
        sets.list(table.table_files())
        try:
            sets.live(table, roots, expected=True)
        except MissingFile as failure:
            return FileCheck(len(roots), 0, 0, missing=1, examples=(failure.subject,))
        counted = sets.settle(cutoff_ms=None)
        require_folders(counted, table.table_files())
        return _counted(len(roots), counted)


def _counted(roots: int, counted: SetCounts) -> FileCheck:
    live = counted.live
    return FileCheck(
        roots,
        live.files,
        live.bytes,
        counted.missing,
        counted.resized,
        examples=(*map(str, counted.examples),),
        unproven=len(counted.unproven),
    )


def _vanished(table: OpenFiles, roots: Sequence[OpenRoot], retention: Retention) -> bool:
    return bool({root.id for root in roots} - {root.id for root in table.roots(retention)})


# ---- a rotating sample ----


def _sample(table: OpenFiles, roots: Sequence[OpenRoot], chance: random.Random, most: int) -> Sequence[str]:
    """At most `most` names of needed files, from random sources of random roots. Every file can be chosen."""
    chosen = chance.sample(roots, min(len(roots), _SAMPLED_ROOTS))
    names: set[str] = set()
    for root in chosen:
        names |= _of_root(table, root, chance, -(-most // len(chosen)))
    return sorted(names)[:most]


def _of_root(table: OpenFiles, root: OpenRoot, chance: random.Random, most: int) -> set[str]:
    try:
        names: set[str] = set()
        for batch in _files(table, root, chance):
            names |= _needed(batch, chance, most)
            # Enough names to choose from. The listing covers all files; footers are a sample.
            if len(names) >= _AMPLE * most:
                break
    except MissingFile:
        # The root has expired since the listing: there is nothing left to open.
        return set()
    return {*chance.sample(sorted(names), min(most, len(names)))}


_AMPLE: Final = 4


def _files(table: OpenFiles, root: OpenRoot, chance: random.Random) -> Iterator[pa.Table | pa.RecordBatch]:
    reach = table.reach(root)
    yield reach.files
    sources = list(reach.sources)
    chance.shuffle(sources)
    for source in sources:
        yield from table.live(source)


def _needed(files: pa.Table | pa.RecordBatch, chance: random.Random, most: int) -> set[str]:
    names = files.column("name").filter(files.column("needed"))
    places = chance.sample(range(len(names)), min(most, len(names)))
    return {str(name) for name in names.take(pa.array(places, pa.int64())).to_pylist()}


# ---- footers ----


def _opened(storage: Storage, result: FileCheck, names: Sequence[str]) -> FileCheck:
    read = [(name, why) for name in names for why in _footer(storage, name)]
    wrong = tuple(f"{name}: {why}" for name, why in read if why)
    return replace(result, opened=len(read), unreadable=wrong)


def _footer(storage: Storage, name: str) -> Iterator[str]:
    """Yields why the footer cannot be read, or "" if it can. Yields nothing for a file that no longer exists: the
    listing has counted it already."""
    try:
        with storage.open(name) as source:
            yield _unreadable(name, source)
    except MissingFile:
        return


def _unreadable(name: str, source: pa.NativeFile) -> str:
    """Why the footer cannot be read, or "". Raises the store's OSError; an OSError on bytes in memory means that they
    do not parse."""
    begin = source.read(_MAGIC_BYTES)
    expected = next((magics for suffix, magics in _BY_SUFFIX.items() if name.endswith(suffix)), (begin,))
    if begin not in expected:
        # Bytes that are no format's magic may be data: they are not printed.
        beginning = repr(begin) if begin in _READERS else "other bytes"
        return f"expected {' or '.join(map(repr, expected))} at its beginning, found {beginning}"
    if begin not in _READERS:
        return ""
    size = source.size()
    source.seek(max(0, size - _END_BYTES))
    end = source.read(_END_BYTES)
    begins_at, parse = _READERS[begin]
    start = begins_at(end, size)
    if not 0 <= start <= size:
        return f"expected a footer within {size} bytes, found one that begins at {start}"
    source.seek(start)
    return _why_not(parse, source.read(size - start if start else _HEADER_BYTES))


def _why_not(parse: Callable[[bytes], object], data: bytes) -> str:
    try:
        parse(data)
    except _UNREADABLE as failure:
        return reason_of(failure)
    return ""


def _parquet(data: bytes) -> object:
    try:
        return pq.read_metadata(pa.BufferReader(data))
    except pa.ArrowInvalid as failure:
        if _OPTIONAL_KEYS not in str(failure):
            raise
        return None


def _parquet_start(end: bytes, size: int) -> int:
    (length,) = struct.unpack_from("<I", end, -8) if len(end) >= 8 else (size,)
    return size - 8 - int(length)


def _puffin(data: bytes) -> object:
    payload_bytes, compressed, magic = struct.unpack_from("<i4s4s", data, len(data) - 12)
    if (data[:4], magic) != (_PUFFIN, _PUFFIN):
        raise ValueError(f"expected {_PUFFIN!r} around the payload, found other bytes")
    # Flag 0 means an LZ4 payload. It is not decoded here: this check only needs to know that the footer is there.
    return payload_bytes if compressed[0] & 1 else json.loads(data[4:-12])


def _puffin_start(end: bytes, size: int) -> int:
    (length,) = struct.unpack_from("<i", end, -12) if len(end) >= 12 else (size,)
    return size - 16 - int(length)


def _avro(data: bytes) -> object:
    header: Any = fastavro.schemaless_reader(io.BytesIO(data), _AVRO_HEADER, None)
    return json.loads(header["meta"]["avro.schema"])


def _avro_start(end: bytes, size: int) -> int:
    return 0


_UNREADABLE: Final = (
    ValueError,
    OSError,
    EOFError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    RecursionError,
    StopIteration,
    struct.error,
)
"""What decoders raise for bytes that are no footer."""
_OPTIONAL_KEYS: Final = "Map keys must be annotated as required"
"""What Arrow reports for a whole footer with maps as Paimon before 0.9 wrote them (see encodings.optional_keys)."""
_MAGIC_BYTES: Final = 4
_END_BYTES: Final = 12
_HEADER_BYTES: Final = 1 << 20
"""How much is read for an Avro header, whose length is not stored; a schema of 1,000 columns takes a tenth of it."""
_AVRO, _PARQUET, _PUFFIN = b"Obj\x01", b"PAR1", b"PFA1"
# Flink gives Puffin files of deletion vectors the names of data files.
_BY_SUFFIX: Final[dict[str, tuple[bytes, ...]]] = {
    ".parquet": (_PARQUET, _PUFFIN),
    ".avro": (_AVRO,),
    ".puffin": (_PUFFIN,),
    ".stats": (_PUFFIN,),
}
_READERS: Final[dict[bytes, tuple[Callable[[bytes, int], int], Callable[[bytes], object]]]] = {
    _PARQUET: (_parquet_start, _parquet),
    _PUFFIN: (_puffin_start, _puffin),
    _AVRO: (_avro_start, _avro),
}
_AVRO_HEADER: Final[dict[str, object]] = {
    "type": "record",
    "name": "Header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": 16}},
    ],
}
