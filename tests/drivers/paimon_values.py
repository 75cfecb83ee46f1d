"""What PaimonJava is asked and answers. Plain values: fields are named as on the wire."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

Table = str | PathLike[str]
"""The table's folder."""

Row = Sequence[Any]
"""(kind, value, ...): kind one of '+I', '-U', '+U', '-D'; values as in Scanned.rows."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A table to create. Columns are (name, Paimon type) such as ("amount", "DECIMAL(12, 2)")."""

    columns: Sequence[tuple[str, str]]
    primary_keys: Sequence[str] = ()
    partition_keys: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HiveNamed:
    """A table `database.table` of the metastore at a thrift URI. `catalog` has the options of Paimon's catalog, the
    warehouse among them."""

    table: str
    metastore: str
    catalog: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Writer:
    """Who commits. Without a user Java makes one up; without an identifier it is a batch commit."""

    user: str | None = None
    identifier: int | None = None
    write_only: bool = True
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RandomRows:
    """Rows made inside the JVM: keys 0, step, 2 * step... if sequential, else drawn below keyspace.

    The keyspace is `rows` by default. Every `delete_every`-th row is a -D. Partition columns take
    `partitions` values derived from the key. `version` (default: the seed) is in every string and leads the
    sequence.field, of which some values are late. A text key of 36 characters is a UUID, in another order than its
    numbers.
    """

    rows: int
    seed: int
    keyspace: int | None = None
    sequential: bool = False
    step: int = 1
    delete_every: int = 0
    version: int | None = None
    partitions: int = 4
    null_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a dedicated compaction job is asked for. No partition and no buckets means all of them.

    `partition` holds values in the order of the partition keys. Java's writer picks once for the request and
    once more when it prepares the commit; `single_pick` stops it after the first.
    """

    full: bool = False
    partition: Sequence[Any] | None = None
    buckets: Sequence[int] = ()
    threads: int = 1
    user: str | None = None
    single_pick: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scan:
    """A batch read. `filter` is {op, field, values} or {op: "and"|"or", children}.

    Ops: eq ne lt le gt ge in between is_null is_not_null. `options` are dynamic table options such as
    scan.snapshot-id. `row_kinds` puts the row's kind before its values.
    """

    filter: Mapping[str, Any] | None = None
    projection: Sequence[str] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    row_kinds: bool = False


MERGE_ON_READ: Mapping[str, str] = {"deletion-vectors.merge-on-read": "true"}


@dataclass(frozen=True, slots=True)
class Scanned:
    """Rows in canonical JSON values, unordered.

    Decimals are plain text, binary is hex; dates, times and timestamps are ISO text with the type's digits
    (LTZ with Z); NaN, the infinities and -0.0 are text. `scanned` counts what the readers returned before the
    filter was applied to rows.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    scanned: int
    splits: int
    raw_splits: int
    files: int

    @classmethod
    def of(cls, reply: Mapping[str, Any]) -> "Scanned":
        rows = tuple(tuple(row) for row in reply["rows"])
        return cls(**{**reply, "columns": tuple(reply["columns"]), "rows": rows})


@dataclass(frozen=True, slots=True)
class Followed:
    """Rows that a streaming reader was given, in order, each with its kind before its values (as in Scanned.rows), and
    the snapshot that it reads next."""

    rows: tuple[tuple[Any, ...], ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class Digested:
    """An order-free digest of the rows of one read; comparable between reads of one schema by this driver."""

    rows: int
    digest: str
    splits: int
    raw_splits: int
    files: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """One compaction. Units are {partition, bucket, before, after, new_index_files}.

    Their files are {name, level, rows}. CPU seconds are the whole JVM's. `handle` is set by prepare_compact,
    snapshot and commit_seconds by a commit.
    """

    prepare_seconds: float
    cpu_seconds: float
    threads: int
    user: str
    units: Sequence[Mapping[str, Any]]
    handle: str | None = None
    commit_seconds: float | None = None
    snapshot: int | None = None


@dataclass(frozen=True, slots=True)
class JavaFile:
    """A live data file. Statistics are {column: [min, max, null count]} for the columns that have them."""

    partition: Sequence[Any]
    bucket: int
    total_buckets: int
    name: str
    size: int
    level: int
    rows: int
    delete_rows: int | None
    min_sequence: int
    max_sequence: int
    source: str | None
    schema_id: int
    creation_millis: int
    extra_files: Sequence[str]
    external_path: str | None
    first_row_id: int | None
    value_stats: Mapping[str, Sequence[Any]]
    min_key: Sequence[Any] | None = None
    max_key: Sequence[Any] | None = None
    key_stats: Mapping[str, Sequence[Any]] | None = None


@dataclass(frozen=True, slots=True)
class JavaVectors:
    """One deletion vector index file.

    `files` maps a data file to offset, length, cardinality and, when asked for, kind (the Java class) and
    positions (ascending).
    """

    partition: Sequence[Any]
    bucket: int
    index_file: str
    size: int
    vectors: int
    files: Mapping[str, Mapping[str, Any]]


def given(request: Any) -> dict[str, Any]:
    """The fields a request sets, for the wire: engines have their own default for what is None."""
    return {name: value for name, value in asdict(request).items() if value is not None}
