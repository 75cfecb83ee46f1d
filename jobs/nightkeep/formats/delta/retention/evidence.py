"""What a Delta log states about itself -> evidence that no file is lost.

A checksum states a version's files, the hint (`_last_checkpoint`) a checkpoint's, and a commitInfo a commit's. This
matters because a commit cut off at the end of a line is still valid. PROTOCOL.md, "Version Checksum File", "Last
Checkpoint File", "Commit Provenance Information"; DeltaOperations.scala, metrics of operations. delta-rs has other
names for metrics.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nightkeep.errors import CorruptMetadata, MissingFile, reason_of
from nightkeep.formats.delta.metadata.actions import Action, Raw, long_value, parse_object, vector_id
from nightkeep.formats.delta.metadata.checkpoints import NOT_A_CHECKPOINT, require_bounds, struct_fields
from nightkeep.formats.delta.metadata.naming import LOG
from nightkeep.formats.delta.metadata.replay import FileKey
from nightkeep.formats.delta.retention.action_files import commit_actions
from nightkeep.model.arrow_types import Datum
from nightkeep.protocol.table_files import Unproven
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class Sum:
    """Live files of a version: their number and total bytes."""

    files: int
    bytes: int

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.files + other.files, self.bytes + other.bytes)


@dataclass
class Commit:
    """A commit while it is read: the number of its adds, and its own commitInfo.

    `rows` are those that its adds state, NaN if one states none. `older` are its removes of files that no commit since
    the checkpoint added. `strays` counts its removes of files that are not in the version before.
    """

    version: int
    name: str
    adds: int = 0
    rows: float = 0
    older: set[FileKey] = field(default_factory=set)
    strays: int = 0
    info: Raw = field(default_factory=dict)
    table_id: str | None = None

    def watched(self, actions: Iterable[Action]) -> Iterator[Action]:
        """Yields the actions and counts them."""
        for kind, body in actions:
            if kind == "add":
                self.adds += 1
                self.rows += _rows(body)
            elif kind == "commitInfo":
                self.info = body
            elif kind == "metaData":
                self.table_id = str(body.get("id"))
            yield kind, body

    def removes_older(self, key: FileKey, *, again: bool) -> None:
        """Record a remove of a file that no commit since the checkpoint added.

        `again`: a commit since the checkpoint removed the file already, and none added it again.
        """
        if again:
            self.strays += 1
        else:
            self.older.add(key)

    @property
    def transaction(self) -> str | None:
        identifier = self.info.get("txnId")
        return identifier if isinstance(identifier, str) else None

    @property
    def time_ms(self) -> int | None:
        timestamp = self.info.get("timestamp")
        return timestamp if type(timestamp) is int else None

    def unproven(self) -> Unproven | None:
        """Why the commit may lack files. Raises CorruptMetadata if it does, or if it belongs to another version."""
        read, engine = self.info.get("readVersion"), str(self.info.get("engineInfo"))
        # Trino's CREATE TABLE AS states that it read the version it creates.
        creates = self.version == 0 and read == 0 and engine.startswith("Trino")
        if type(read) is int and read >= self.version and not creates:
            raise CorruptMetadata(self.name, f"a commit on a version before {self.version}", f"one on {read}")
        stated, operation = _stated_adds(self.info), self.info.get("operation")
        if stated is None and not (isinstance(operation, str) and operation in _WITHOUT_FILES):
            return Unproven(self.name, "it does not state how many files it adds, and no later checksum does")
        if stated is not None and self.adds < stated and not self.adds_every_row(stated):
            raise CorruptMetadata(self.name, f"{stated} added files, as it states itself", str(self.adds))
        if stated is not None and self.adds > stated:
            return Unproven(self.name, f"it adds {self.adds} files and states {stated}")
        # A writer that records transactions also records the version it read. Otherwise another version's commit may be
        # here.
        if self.transaction is not None and self.version > 0 and read != self.version - 1:
            return Unproven(self.name, f"it was started on {read}, not on the version before it")
        # A valid log may remove a file that was gone already. A commit of another table in this place looks the same.
        if self.strays:
            return self.removes_strays(self.strays)
        return None

    def adds_every_row(self, stated: int) -> bool:
        """Whether the one file that is missing held no row: delta-spark counts the file of an empty task in its metrics
        and adds none for it."""
        figures = self.info.get("operationMetrics")
        rows = _number(figures.get("numOutputRows")) if isinstance(figures, Mapping) else None
        by_spark = _SPARK.match(str(self.info.get("engineInfo"))) is not None
        return by_spark and self.adds == stated - 1 and rows is not None and rows == self.rows

    def removes_strays(self, count: int) -> Unproven:
        return Unproven(self.name, f"{count} of the files that it removes are not in the version before it")


def newest_checksum(storage: Storage, versions: Iterable[int]) -> tuple[int, Raw] | None:
    """The newest of these versions that has a checksum, and the checksum's content."""
    there = {stored.name for stored in storage.list(LOG)}
    for version in sorted(versions, reverse=True):
        if f"{LOG}/{version:020d}.crc" in there and (stated := checksum(storage, version)) is not None:
            return version, stated
    return None


def checksum(storage: Storage, version: int) -> Raw | None:
    """The checksum file of a version. None if it is missing or does not state the number and bytes of files."""
    name = f"{LOG}/{version:020d}.crc"
    try:
        stated = parse_object(storage.read(name).decode(), subject=name)
    except MissingFile:
        return None
    except UnicodeDecodeError as failure:
        raise CorruptMetadata(name, "UTF-8", reason_of(failure)) from failure
    return stated if type(stated.get("numFiles")) is int and type(stated.get("tableSizeBytes")) is int else None


def require_checksum(stated: Raw, counted: Sum, commit: Commit | None, *, version: int) -> None:
    """Raises CorruptMetadata if a version's files, or its commit's transaction, differ from its checksum."""
    subject = f"{LOG}: version {version}"
    expected = Sum(int(str(stated["numFiles"])), int(str(stated["tableSizeBytes"])))
    if expected != counted:
        wanted = f"{expected.files} files of {expected.bytes} bytes, as its checksum states"
        raise CorruptMetadata(subject, wanted, f"{counted.files} of {counted.bytes}")
    transaction = stated.get("txnId")
    if commit is not None and None not in (transaction, commit.transaction) and transaction != commit.transaction:
        raise CorruptMetadata(subject, f"the commit of transaction {transaction}", f"that of {commit.transaction}")


def adds_of_checkpoint(storage: Storage, version: int) -> int | None:
    """The number of files in the checkpoint of a version, by the hint. None if the hint is about another version.

    A hint may be old, but it is right about its own version.
    """
    name = f"{LOG}/_last_checkpoint"
    try:
        stated = parse_object(storage.read(name).decode(), subject=name)
    except (MissingFile, CorruptMetadata, UnicodeDecodeError):
        # The hint is optional: without it there is less evidence.
        return None
    count = stated.get("numOfAddFiles")
    return count if stated.get("version") == version and type(count) is int else None


def unproven_checkpoint(names: Sequence[str], counted: int, stated: int | None) -> Unproven | None:
    """Why a checkpoint may lack files. JSON may be cut at the end of a line; Parquet may not, as its footer is last.

    Raises CorruptMetadata if it has another number of files than stated.
    """
    if stated is not None and stated != counted:
        raise CorruptMetadata(names[0], f"{stated} files, as _last_checkpoint states", str(counted))
    if stated is None and any(name.endswith(".json") for name in names):
        return Unproven(names[0], "nothing states how many files it has")
    return None


def doubt_of_checkpoint(storage: Storage, name: str) -> Unproven | None:
    """What its writer, a run of ours, could not prove of the log that it was made of."""
    if name.endswith(".json"):
        return None
    try:
        with storage.open(name) as source, pq.ParquetFile(source) as file:
            text = (file.metadata.metadata or {}).get(DOUBT.encode())
    except NOT_A_CHECKPOINT as failure:
        raise CorruptMetadata(name, "a checkpoint in Parquet", reason_of(failure)) from failure
    return None if text is None else Unproven(name, f"it was made of a log in doubt: {text.decode(errors='replace')}")


def checkpoint_sum(storage: Storage, names: Iterable[str], gone: frozenset[FileKey]) -> Sum:
    """The number and bytes of a checkpoint's adds without those in `gone`. Raises CorruptMetadata, MissingFile."""
    total = Sum(0, 0)
    for name in names:
        total += _sum_of_json(storage, name, gone) if name.endswith(".json") else _sum_of_parquet(storage, name, gone)
    return total


def _sum_of_json(storage: Storage, name: str, gone: frozenset[FileKey]) -> Sum:
    adds = (body for kind, body in commit_actions(storage, name) if kind == "add")
    return _sum_of(body for body in adds if _key(body) not in gone)


def _sum_of_parquet(storage: Storage, name: str, gone: frozenset[FileKey]) -> Sum:
    """The number and bytes from columns. Only adds whose path is in `gone` are read one by one."""
    paths = pa.array(sorted({path for path, _ in gone}), pa.string())
    total = Sum(0, 0)
    try:
        with storage.open(name) as source, pq.ParquetFile(source) as file:
            require_bounds(file, subject=name)
            if "add" not in file.schema_arrow.names:
                return total
            fields = {field.name for field in struct_fields(file.schema_arrow.field("add"))}
            wanted = ["path", "size", *(["deletionVector"] if gone and "deletionVector" in fields else [])]
            for batch in file.iter_batches(_BATCH, columns=[f"add.{field}" for field in wanted]):
                adds: Datum = batch.column("add").drop_null()
                listed = pc.is_in(adds.field("path"), value_set=paths)
                kept = adds.filter(pc.invert(listed))
                rest = (_without_nulls(body) for body in adds.filter(listed).to_pylist())
                total += Sum(len(kept), pc.sum(kept.field("size")).as_py() or 0)
                total += _sum_of(body for body in rest if _key(body) not in gone)
    except NOT_A_CHECKPOINT as failure:
        raise CorruptMetadata(name, "a checkpoint in Parquet", reason_of(failure)) from failure
    return total


def _sum_of(bodies: Iterable[Raw]) -> Sum:
    sizes = [long_value(body, "size", subject=str(body.get("path"))) for body in bodies]
    return Sum(len(sizes), sum(sizes))


def _key(body: Raw) -> FileKey:
    return str(body["path"]), vector_id(body)


def _without_nulls(body: Raw) -> Raw:
    vector = body.get("deletionVector")
    fields = (
        {name: value for name, value in vector.items() if value is not None} if isinstance(vector, Mapping) else None
    )
    return {**body, "deletionVector": fields}


def _stated_adds(info: Raw) -> int | None:
    """The number of files that a commit states it adds: new files, and files with a new vector."""
    figures = info.get("operationMetrics")
    metrics = figures if isinstance(figures, Mapping) else {}
    for name, others in _METRICS.get(str(info.get("operation")), {}).items():
        if (first := _number(metrics.get(name))) is not None:
            return first + sum(_number(metrics.get(other)) or 0 for other in others)
    return None


def _rows(add: Raw) -> float:
    """The rows of a file by its statistics as delta-spark writes them, the count first; NaN for any other."""
    match = _RECORDS.match(str(add.get("stats")))
    return math.nan if match is None else int(match[1])


def _number(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return value if type(value) is int and value >= 0 else None


DOUBT: Final = "nightkeep.doubt"
"""Key in the footer of a checkpoint of ours."""
_RECORDS: Final = re.compile(r'\{"numRecords":([0-9]{1,18})[,}]')
_SPARK: Final = re.compile("Apache-Spark/.* Delta-Lake/")
_BATCH: Final = 50_000
_WRITES: Final = {"numFiles": (), "num_added_files": ()}
_CHANGES: Final = {"numAddedFiles": ("numDeletionVectorsAdded",), "num_added_files": ()}
_OPTIMIZES: Final = {"numAddedFiles": (), "numFilesAdded": ()}
_METRICS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "WRITE": _WRITES,
    "CREATE TABLE AS SELECT": _WRITES,
    "REPLACE TABLE AS SELECT": _WRITES,
    "CREATE OR REPLACE TABLE AS SELECT": _WRITES,
    "COPY INTO": _WRITES,
    "STREAMING UPDATE": {"numAddedFiles": ()},
    "DELETE": _CHANGES,
    "UPDATE": _CHANGES,
    "MERGE": {"numTargetFilesAdded": ("numTargetDeletionVectorsAdded",), "num_target_files_added": ()},
    "OPTIMIZE": _OPTIMIZES,
    "REORG": _OPTIMIZES,
    "RESTORE": {"numRestoredFiles": ()},
}
"""By operation: the metric that counts added files, and metrics to add to it. delta-rs's names follow delta-spark's."""
_WITHOUT_FILES: Final = frozenset(
    {
        "CREATE TABLE",
        "REPLACE TABLE",
        "CREATE OR REPLACE TABLE",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "ADD COLUMNS",
        "ADD COLUMN",
        "DROP COLUMNS",
        "RENAME COLUMN",
        "CHANGE COLUMN",
        "CHANGE COLUMNS",
        "REPLACE COLUMNS",
        "UPGRADE PROTOCOL",
        "UPDATE COLUMN METADATA",
        "UPDATE SCHEMA",
        "ADD CONSTRAINT",
        "DROP CONSTRAINT",
        "ADD FEATURE",
        "DROP FEATURE",
        "CLUSTER BY",
        "TRUNCATE",
        "VACUUM START",
        "VACUUM END",
        "ROW TRACKING BACKFILL",
        "ROW TRACKING UNBACKFILL",
        "SET TABLE PROPERTIES",
    }
)
"""Operations that add no new file."""
