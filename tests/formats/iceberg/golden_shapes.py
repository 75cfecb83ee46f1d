"""Tables of every layout, as Iceberg Java writes them: partitions, schemas, refs, statistics, files of others."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Column, Table, array, mapping, struct

ORDERS: tuple[Column, ...] = (("id", "long", True), ("day", "date"), ("name", "string"), ("price", "decimal(9,2)"))
BY_DAY = (("day", "identity"),)
ALL = {"rewrite-all": "true"}

TYPES: tuple[Column, ...] = (
    ("id", "int", True),
    ("flag", "boolean"),
    ("big", "long"),
    ("single", "float"),
    ("real", "double"),
    ("price", "decimal(9,2)"),
    ("precise", "decimal(38,10)"),
    ("text", "string"),
    ("raw", "binary"),
    ("three", "fixed[3]"),
    ("code", "uuid"),
    ("day", "date"),
    ("at", "timestamptz"),
    ("local_at", "timestamp"),
    ("place", struct(("x", "int"), ("sub", struct(("at", "timestamptz"))))),
    ("tags", array("string")),
    ("counts", mapping("string", "int")),
)
TYPE_ROWS = (
    [0] + [None] * 16,
    [
        1,
        True,
        -(2**63),
        "NaN",
        "NaN",
        "-9999999.99",
        "-9999999999999999999999999999.0123456789",
        "",
        "",
        "000000",
        "00000000-0000-0000-0000-000000000000",
        "1969-12-31",
        "1969-12-31T23:59:59.999999Z",
        "1969-12-31T23:59:59.999999",
        {"x": None, "sub": None},
        [],
        [],
    ],
    [
        2,
        False,
        2**63 - 1,
        "-0.0",
        "-0.0",
        "0.00",
        "0.0000000001",
        "na\u00efve \u4e2d\U0001f600",
        "00ff7f",
        "ffffff",
        "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        "9999-12-31",
        "2026-11-01T00:00:00.000001Z",
        "2026-11-01T00:00:00.000001",
        {"x": 1, "sub": {"at": "2000-01-01T00:00:00Z"}},
        ["a", None, ""],
        [["a", None], ["b", 2]],
    ],
)


def order(number: int, day: int | None = 1, name: str | None = "*") -> list[object]:
    """A row of ORDERS; the name tells the number unless given."""
    date = None if day is None else f"2026-11-{day:02d}"
    return [number, date, f"name {number}" if name == "*" else name, f"{number}.25"]


def days(numbers: range, of: int = 2) -> list[list[object]]:
    return [order(n, 1 + n % of) for n in numbers]


def empty(java: IcebergJava, table: Table, version: int) -> None:
    """No snapshot."""
    java.create(table, ORDERS, Layout(format_version=version))


def plain(java: IcebergJava, table: Table, version: int) -> None:
    """Three appends, no partitions."""
    java.create(table, ORDERS, Layout(format_version=version))
    for start in (0, 4, 8):
        java.append(table, days(range(start, start + 4)))


def first_version(java: IcebergJava, table: Table) -> None:
    """Without sequence numbers."""
    java.create(table, ORDERS, Layout(BY_DAY, 1))
    java.append(table, days(range(4)))
    java.append(table, days(range(4, 8)))


def from_first_version(java: IcebergJava, table: Table) -> None:
    """Files of the first version are of sequence number 0 in the second; then deletes of both kinds."""
    first_version(java, table)
    java.alter(table, {"change": "set_properties", "properties": {"format-version": "2"}})
    changes = [("+I", order(1, 2, "new")), ("+I", order(1, 2, "newer")), ("-D", order(2, 1))]
    java.cdc(table, changes, keys=("id", "day"))


def codecs(java: IcebergJava, table: Table, version: int) -> None:
    """Manifests and metadata under each compression that Iceberg has for them."""
    java.create(table, ORDERS, Layout(format_version=version))
    for number, codec in enumerate(("uncompressed", "gzip", "snappy", "zstd")):
        properties = {"write.manifest.compression-codec": codec, "write.avro.compression-codec": codec}
        java.alter(table, {"change": "set_properties", "properties": properties})
        java.append(table, [order(number)])
    java.alter(table, {"change": "set_properties", "properties": {"write.metadata.compression-codec": "gzip"}})
    java.append(table, [order(9)])


def types(java: IcebergJava, table: Table, version: int) -> None:
    java.create(table, TYPES, Layout(format_version=version))
    java.append(table, TYPE_ROWS)


def nanoseconds(java: IcebergJava, table: Table) -> None:
    """Types of the third version only, and the time of day."""
    columns = (("id", "int"), ("t", "time"), ("n", "timestamp_ns"), ("z", "timestamptz_ns"), ("nothing", "unknown"))
    java.create(table, columns, Layout(format_version=3))
    rows = [1, "12:34:56.123456", "2026-11-01T12:30:00.123456789", "1969-12-31T23:59:59.999999999Z", None]
    java.append(table, [rows, [2, None, None, None, None]])


def transforms(java: IcebergJava, table: Table, version: int) -> None:
    """Identity, bucket, truncate, hour and void at once, with nulls."""
    fields = (("day", "identity"), ("id", "bucket[4]"), ("name", "truncate[3]"), ("at", "hour"), ("price", "void"))
    java.create(table, (*ORDERS, ("at", "timestamptz")), Layout(fields, version))
    java.append(table, [[*order(n, 1 + n % 2), f"2026-11-0{n + 1}T0{n}:30:00Z"] for n in range(4)])
    java.append(table, [[9, None, None, None, None], [10, "1969-12-31", "na", "0.00", "1969-12-31T23:59:59Z"]])


def partition_types(java: IcebergJava, table: Table, version: int) -> None:
    """A value of each primitive type as a partition's own, but fixed: Java writes those with a length before them,
    which is not what its Avro schema says, and other readers go astray."""
    names = [name for name, kind, *_ in TYPES[:14] if kind != "fixed[3]"]
    java.create(table, TYPES, Layout(tuple((name, "identity") for name in names), version))
    java.append(table, [row for row in TYPE_ROWS if "NaN" not in row])


def odd_paths(java: IcebergJava, table: Table, version: int) -> None:
    """Partitions whose folders' names are encoded."""
    java.create(table, ORDERS, Layout((("name", "identity"),), version))
    names = ("a b/0", "50%", "x=y:z", "na\u00efve \u4e2d", "a'b\"c", "", None)
    java.append(table, [order(n, 1, name) for n, name in enumerate(names)])
    java.cdc(table, [("+I", order(0, 2, "a b/0")), ("-D", order(1, 1, "50%"))], keys=("id", "name"))


def specs(java: IcebergJava, table: Table, version: int) -> None:
    """Rows under five partition specs: none, day, day and bucket, month, none again (void fields in none)."""
    java.create(table, ORDERS, Layout(format_version=version))
    java.append(table, days(range(4)))
    java.alter(table, {"change": "add_partition_field", "column": "day", "transform": "identity"})
    java.append(table, days(range(4, 8)))
    java.alter(table, {"change": "add_partition_field", "column": "id", "transform": "bucket[2]"})
    java.append(table, days(range(8, 12)))
    java.alter(table, {"change": "remove_partition_field", "name": "day"})
    java.alter(table, {"change": "remove_partition_field", "name": "id_bucket_2"})
    java.alter(table, {"change": "add_partition_field", "column": "day", "transform": "month"})
    java.append(table, days(range(12, 16)))


def specs_deleted(java: IcebergJava, table: Table, version: int) -> None:
    """The table of specs with keys deleted in all of it, and keys in one partition of one spec only."""
    specs(java, table, version)
    everywhere = java.equality_deletes(table, [[1], [5], [9], [13]], keys=("id",), spec_id=0)
    here = java.equality_deletes(table, [[4], [6], [0]], keys=("id",), spec_id=1, partition=("2026-11-01",))
    java.commit(table, everywhere, here)


def evolved(java: IcebergJava, table: Table, version: int) -> None:
    """A column widened, one renamed, one dropped, one added, and rows before and after."""
    java.create(table, (("id", "int", True), ("name", "string"), ("x", "float")), Layout(format_version=version))
    java.append(table, [[1, "a", 1.5], [2, None, None]])
    java.alter(
        table,
        {"change": "change_type", "name": "id", "type": "long"},
        {"change": "rename_column", "name": "name", "to": "label"},
        {"change": "drop_column", "name": "x"},
        {"change": "add_column", "name": "x", "type": "string"},
    )
    java.append(table, [[2**40, "b", "text"]])


def defaults(java: IcebergJava, table: Table) -> None:
    """A column whose value in older files is its initial default."""
    java.create(table, ORDERS, Layout(format_version=3))
    java.append(table, days(range(3)))
    java.alter(table, {"change": "add_column", "name": "size", "type": "int", "default": 7})
    java.append(table, [[*order(3), 8], [*order(4), None]])


def refs(java: IcebergJava, table: Table, version: int) -> None:
    """A tag on the first snapshot; a branch with a file and deletes of its own; main rolled back once."""
    java.create(table, ORDERS, Layout(format_version=version))
    first = java.append(table, days(range(4)))
    java.refs(table, {"change": "create_tag", "name": "v1", "snapshot": first})
    java.refs(table, {"change": "create_branch", "name": "dev", "snapshot": first})
    java.cdc(table, [("+I", order(1, 2, "dev"))], keys=("id",), branch="dev")
    second = java.append(table, days(range(4, 8)))
    java.append(table, days(range(8, 12)))
    java.refs(table, {"change": "rollback", "snapshot": second})


def statistics(java: IcebergJava, table: Table, version: int) -> None:
    """Statistics of the table in Puffin, and of partitions."""
    java.create(table, ORDERS, Layout(BY_DAY, version))
    java.append(table, days(range(4)))
    java.statistics(table)
    java.statistics(table, kind="partition")
    java.append(table, days(range(4, 8)))


def foreign(java: IcebergJava, table: Table, version: int) -> None:
    """A file of another program, whose columns have no ids, beside one of Iceberg's."""
    java.create(table, (("id", "long"), ("name", "string")), Layout(format_version=version))
    file = Path(java.describe(table)["location"].removeprefix("file:")) / "data" / "foreign.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", None]}), file)
    java.commit(table, java.adopt(table, f"file:{file}".replace("file://", "file:/")), kind="append")
    java.append(table, [[3, "c"]])
    java.cdc(table, [("-D", [1, None])], keys=("id",))


def avro_data(java: IcebergJava, table: Table, version: int) -> None:
    """Data and deletes in Avro."""
    _other_format(java, table, version, "avro")


def orc_data(java: IcebergJava, table: Table, version: int) -> None:
    """Data and deletes in ORC."""
    _other_format(java, table, version, "orc")


def _other_format(java: IcebergJava, table: Table, version: int, kind: str) -> None:
    java.create(table, ORDERS, Layout(format_version=version, properties={"write.format.default": kind}))
    java.append(table, days(range(4)))
    java.cdc(table, [("+I", order(1, 1, "new"))], keys=("id",))


def lineage(java: IcebergJava, table: Table) -> None:
    """Rows with ids of their own after a compaction, some updated since, manifests rewritten."""
    java.create(table, ORDERS, Layout(BY_DAY, 3))
    java.append(table, days(range(6)))
    java.append(table, days(range(6, 10)))
    java.commit_rewrite(table, java.begin_rewrite(table, options=ALL))
    java.cdc(table, [("+I", order(2, 1, "new")), ("-D", order(3, 2))], keys=("id", "day"))
    java.append(table, days(range(10, 12)))
    java.rewrite_manifests(table)


def history(java: IcebergJava, table: Table, version: int) -> None:
    """Compacted and expired: entries of removed files, old snapshots gone, metadata files in the log."""
    java.create(table, ORDERS, Layout(sort=("id",), format_version=version))
    java.alter(table, {"change": "identifier", "name": "id"})
    java.append(table, days(range(6)), rows_per_file=2)
    java.commit_rewrite(table, java.begin_rewrite(table, options=ALL))
    java.append(table, days(range(6, 8)))
    java.expire(table, older_than_millis=2**45, retain_last=2)
