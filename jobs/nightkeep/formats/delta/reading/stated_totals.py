"""What a commit states of itself beside its actions: `operationMetrics`, and the checksum file of its version.

Only metrics that the engines write of the files of a commit as it is, whatever it did: with deletion vectors, metrics
of DELETE, UPDATE and MERGE count rewritten files alone. PROTOCOL.md, "Commit Provenance Information", "Version Checksum
File".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from nightkeep.encodings.documents import parse_object
from nightkeep.formats.delta.metadata.actions import Raw, vector_id
from nightkeep.formats.delta.reading.commit_faults import LoggedCommit

N = TypeVar("N")

SPARK: Final = re.compile(r"Apache-Spark/\S+ Delta-Lake/\S+")
RUST: Final = re.compile(r"delta-rs:py-\S+")

WRITES: Final = frozenset(
    {"WRITE", "CREATE TABLE AS SELECT", "REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT"}
)
"""Operations that write the rows of a query."""
_WRITTEN: Final = {"numFiles": "files added", "numOutputBytes": "bytes added"}
_REWRITTEN: Final = {"numAddedFiles": "files added", "numRemovedFiles": "files removed"}
_SIZED: Final = {**_REWRITTEN, "numAddedBytes": "bytes added", "numRemovedBytes": "bytes removed"}
_BY_RUST: Final = {"num_added_files": "files added", "num_removed_files": "files removed"}
_METRICS: Final[Mapping[re.Pattern[str], Mapping[str, Mapping[str, str]]]] = {
    SPARK: {
        **dict.fromkeys(WRITES, _WRITTEN),
        "OPTIMIZE": _SIZED,
        "REORG": _SIZED,
        "DELETE": _REWRITTEN,
        "UPDATE": _REWRITTEN,
    },
    RUST: {
        "WRITE": _BY_RUST,
        "DELETE": _BY_RUST,
        "OPTIMIZE": {"numFilesAdded": "files added", "numFilesRemoved": "files removed"},
    },
}
_ANY_FILES: Final = frozenset({*WRITES, "OPTIMIZE", "REORG"})
"""Operations whose metrics count files with deletion vectors like others."""
_COUNTED: Final = frozenset({*_ANY_FILES, "DELETE", "UPDATE", "MERGE"})
"""Operations that add no file again without removing it: the files of a version are those before, more and less."""


def metric_faults(commit: LoggedCommit) -> Iterator[str]:
    operation, metrics = str(commit.info.get("operation")), commit.info.get("operationMetrics")
    names = of_engine(commit, _METRICS, {})
    adds, removes = commit.of("add"), commit.of("remove")
    if not isinstance(metrics, Mapping):
        return
    if operation not in _ANY_FILES and any(vector_id(each) is not None for each in (*adds, *removes)):
        return
    found = {
        "files added": len(adds),
        "files removed": len(removes),
        "bytes added": _bytes(adds),
        "bytes removed": _bytes(removes),
    }
    for name, fact in names.items():
        stated = stated_number(metrics.get(name))
        if None not in (stated, found[fact]) and stated != found[fact]:
            yield f"its metrics state {name} {stated}, and it has {found[fact]} {fact}"


@dataclass(frozen=True, slots=True)
class VersionTotals:
    """What a checksum file states, None for what it does not."""

    files: int | None
    bytes: int | None
    transaction: object
    time_ms: object


def totals_in(data: bytes, *, subject: str) -> VersionTotals:
    """Raises CorruptMetadata, and UnicodeDecodeError."""
    stated = parse_object(data.decode(), subject=subject)
    names = ("numFiles", "tableSizeBytes")
    files, size = (stated_number(stated.get(name)) for name in names)
    return VersionTotals(files, size, stated.get("txnId"), stated.get("inCommitTimestampOpt"))


def total_faults(commit: LoggedCommit, own: VersionTotals, before: VersionTotals | None) -> Iterator[str]:
    """What the checksum of a version contradicts of its commit, and of the checksum `before`."""
    for what, stated, found in (
        ("transaction", own.transaction, commit.info.get("txnId")),
        ("in-commit timestamp", own.time_ms, commit.info.get("inCommitTimestamp")),
    ):
        if None not in (stated, found) and stated != found:
            yield f"its checksum states {what} {stated}, and its commit {found}"
    if before is None or commit.info.get("operation") not in _COUNTED or not SPARK.fullmatch(_engine(commit)):
        return
    adds, removes = commit.of("add"), commit.of("remove")
    more, less = _bytes(adds), _bytes(removes)
    changed = None if more is None or less is None else more - less
    for what, stated, earlier, grown in (
        ("files", own.files, before.files, len(adds) - len(removes)),
        ("bytes", own.bytes, before.bytes, changed),
    ):
        if stated is not None and earlier is not None and grown is not None and stated != earlier + grown:
            yield f"its checksum states {stated} {what}, expected {earlier} of the version before and {grown} more"


def of_engine(commit: LoggedCommit, table: Mapping[re.Pattern[str], Mapping[str, N]], nothing: N) -> N:
    """The entry for the engine and the operation of a commit."""
    operations = next((each for engine, each in table.items() if engine.fullmatch(_engine(commit))), {})
    return operations.get(str(commit.info.get("operation")), nothing)


def _engine(commit: LoggedCommit) -> str:
    return str(commit.info.get("engineInfo"))


def _bytes(files: Sequence[Raw]) -> int | None:
    return known_sum(stated_number(each.get("size")) for each in files)


def known_sum(numbers: Iterable[int | None]) -> int | None:
    """None where one of the numbers is not known."""
    held = [*numbers]
    known = [number for number in held if number is not None]
    return sum(known) if len(known) == len(held) else None


def stated_number(value: object) -> int | None:
    """A whole number, also as text: delta-spark writes metrics so."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        return int(value)
    return value if type(value) is int else None
