"""Whole runs over every layout and every kind of delete, after which other engines than the one that wrote a table
read of it what they read before; and what our own writer's deletes reach."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_python import pyiceberg_read
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Column, Table, Warehouse
from tests.drivers.lakes_oracle import Lakes
from tests.formats.iceberg import runs
from tests.formats.iceberg.golden_tables import (
    NOT_READ_BY_DUCKDB,
    NOT_READ_BY_JAVA,
    NOT_READ_BY_PYICEBERG,
    RECIPES,
    known,
)
from tests.formats.iceberg.nights import Nights
from tests.formats.iceberg.optimized_lake import grid
from tests.support.extended import some_extended

from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.upsert.batch import ChangeMode
from nightkeep.model import Outcome

pytestmark = pytest.mark.in_turn("version")

VERSIONS = pytest.mark.parametrize("version", [2, 3])
BY_K = {"partition": (("k", "identity"),)}
MOVED = [("-U", {"id": 1, "k": 0, "v": "old"}), ("+U", {"id": 1, "k": 1, "v": "moved"})]

UNCONVERTED = (
    "empty",
    "plain",
    "first_version",
    "codecs",
    "types",
    "nanoseconds",
    "transforms",
    "partition_types",
    "specs",
    "evolved",
    "defaults",
    "statistics",
    "history",
    "many",
)
"""Recipes without deletes, of other formats than ours, or of more of the same."""
SHAPES = {
    name.removesuffix("_v2").removesuffix("_v3"): name
    for name, recipe in RECIPES.items()
    if not recipe.by_spark and not known(NOT_READ_BY_JAVA, name) and not known(dict.fromkeys(UNCONVERTED, ""), name)
}
# Of both versions where there are two, by turns.
CONVERTED = [
    name if at % 2 or not name.endswith("_v3") else f"{shape}_v2" for at, (shape, name) in enumerate(SHAPES.items())
]


@pytest.fixture
def lake(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[Nights]:
    with runs.configured(iceberg):
        yield Nights(iceberg_java, iceberg.table())


@pytest.fixture
def lake_of(
    iceberg_java: IcebergJava, iceberg: Warehouse, make: Callable[[str], Table]
) -> Iterator[Callable[[str], Nights]]:
    with runs.configured(iceberg):
        yield lambda name: Nights(iceberg_java, make(name))


# Every engine reads the same


@pytest.mark.few(1)
@pytest.mark.parametrize("name", some_extended(CONVERTED, keep=6))
def test_engines_agree_on_what_a_conversion_leaves(name: str, lake_of: Callable[[str], Nights], lakes: Lakes) -> None:
    """DuckDB and Java before and after; pyiceberg, which knows no equality deletes, after."""
    lake = lake_of(name)
    if name == "avro_data_v2":
        lake.alter({"change": "set_properties", "properties": {"write.delete.format.default": "orc"}})
    before = lake.rows
    if lake.snapshot.schema.has_row_lineage and None in {row[-1] for row in lake.shown()}:
        # Rows of the second version get their ids with the first commit of the third, whoever makes it.
        done = runs.care_for(lake.table)
        assert done.outcome is Outcome.VERIFIED, done.reason
    else:
        lake.persist()
    assert lake.rows == before
    lake.require_positions_only()
    if not known(NOT_READ_BY_DUCKDB, name) or name.startswith(("widened_key", "float_keys")):
        assert lakes.duckdb_read_iceberg(lake.table.metadata) == before
    if not known(NOT_READ_BY_PYICEBERG, name):
        assert pyiceberg_read(lake.table.metadata) == before


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name", some_extended(["merge_on_read_v2", "dropped_key_v2", "dropped_key_v3", "merge_on_read_v3"], keep=2)
)
def test_spark_reads_what_a_conversion_leaves(
    name: str, make: Callable[[str], Table], iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, iceberg: Warehouse
) -> None:
    """Deletes of its own MERGE, UPDATE and DELETE; and of a key that is gone, which Java reads only once converted."""
    with runs.configured(iceberg):
        table = make(name)
        before = iceberg_spark.read(table)
        done = runs.care_for(table)
        assert done.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), done.reason
        assert iceberg_spark.read(table) == before == iceberg_java.read(table)
        Nights(iceberg_java, table).require_positions_only()


@VERSIONS
def test_spark_reads_our_upserts_our_conversion_and_what_we_packed(
    lake: Nights, iceberg_spark: IcebergSpark, lakes: Lakes, version: int
) -> None:
    """Entries of equality deletes that we added, then that we removed: one of a wrong type stops Spark even then."""
    # DuckDB 1.5.5 fails on keys of an int and a long.
    lake.create([("id", "long"), ("k", "long"), ("v", "string")], format_version=version, **BY_K)
    lake.append(grid(0, 21))
    lake.apply([("+U", {"id": n, "k": n % 7, "v": "ours"}) for n in (1, 2, 2, 9, 30)], "id", "k")
    lake.apply([("-D", {"id": 3, "k": 3})], "id", "k")

    def agree(before: Any = None) -> Any:
        found = iceberg_spark.read(lake.table)
        assert found == lake.rows == lakes.duckdb_read_iceberg(lake.table.metadata)
        assert before in (None, found)
        return found

    assert len(lake.live(2)) == 3
    rows = agree()
    assert len(rows.rows) == 21 and rows.column("v").count("ours") == 4
    lake.persist()
    assert {each["status"] for each in lake.java.entries(lake.table) if each["content"] == 2} == {2}
    agree(rows)
    lake.require_positions_only()
    lake.night(full=True)
    agree(rows)
    assert pyiceberg_read(lake.table.metadata) == rows


# Deletes


@VERSIONS
def test_a_filter_of_another_column_does_not_bring_rows_back(lake: Nights, version: int) -> None:
    """A delete that carries the rest of its row, not as it is in the table: Java skips it by bounds that have nothing
    to do with its key. Positions cannot be skipped so."""
    lake.create(format_version=version)
    lake.append(grid(0, 10))
    lake.delete([[4, 4, "zzz"]], "id", full=True)
    where = {"type": "eq", "term": "v", "value": "row 4"}
    assert 4 not in lake.rows.column("id")
    assert lake.java.read(lake.table, where=where).column("id") == (4,)
    lake.persist()
    assert lake.java.read(lake.table, where=where).rows == ()


@VERSIONS
def test_rows_that_positions_hide_already_are_not_marked_again(lake: Nights, version: int) -> None:
    lake.create(format_version=version)
    lake.append(grid(0, 10))
    (path,) = (each["file_path"] for each in lake.live())
    places = [(path, 2), (path, 3)]
    lake.commit((lake.java.vectors if version == 3 else lake.java.position_deletes)(lake.table, places))
    (before,) = lake.live(1)
    lake.delete([[2], [3]], "id")
    lake.persist()
    assert [each["file_path"] for each in lake.live(1, 2)] == [before["file_path"]]
    lake.delete([[3], [5]], "id")
    lake.persist()
    (after,) = lake.live(1)
    assert after["file_path"] != before["file_path"] and after["record_count"] == 3
    lake.require_positions_only()


@VERSIONS
def test_vectors_and_position_deletes_of_a_commit_hold_for_its_own_rows(lake: Nights, version: int) -> None:
    """Strictly older for equality deletes, not newer for positions: rows, keys and positions of one commit."""
    lake.create(format_version=version)
    lake.append(grid(0, 3))
    rows = lake.java.rows(lake.table, grid(0, 6))
    positional = (lake.java.vectors if version == 3 else lake.java.position_deletes)(
        lake.table, [(rows.paths[0], 1), (rows.paths[0], 5)], of=[rows]
    )
    lake.commit(rows, positional, lake.java.equality_deletes(lake.table, [[0], [1], [4]], keys=["id"]))
    expected = [0, 2, 2, 3, 4]
    assert sorted(lake.rows.column("id")) == expected
    lake.persist()
    lake.require_positions_only()
    assert sorted(lake.rows.column("id")) == expected
    assert sorted(each["record_count"] for each in lake.live(1)) == [2, 2]


def test_position_deletes_from_before_an_upgrade_stay_until_nothing_needs_them(lake: Nights) -> None:
    """A file of positions of three data files: vectors of Java's take over one, packing another, a conversion the last;
    nothing is lost or hidden twice on the way."""
    lake.create()
    lake.append(grid(0, 3000), rows_per_file=1000)
    paths = sorted(each["file_path"] for each in lake.live())
    worn = [(paths[1], n) for n in range(500)]
    shared = [(paths[0], 4), *worn, (paths[2], 9)]
    lake.commit(lake.java.position_deletes(lake.table, shared, granularity="partition"))
    lake.upgrade()
    lake.commit(lake.java.vectors(lake.table, [(paths[0], 5)], flink_name=True))
    (left,) = (each["file_path"] for each in lake.live(1) if each["file_format"].lower() == "parquet")
    sizes = [each["file_size_in_bytes"] for each in lake.live()]
    lake.night(target_size=max(sizes), min_file_size=1, where=None)
    assert left in {each["file_path"] for each in lake.live(1)}
    lake.delete([[7], [2009]], "id")
    rows = lake.rows
    lake.persist()
    lake.require_positions_only()
    assert left not in {each["file_path"] for each in lake.live(1)}
    assert lake.rows == rows and len(rows.rows) == 3000 - 504


@VERSIONS
def test_vectors_of_flinks_name_take_more_positions(lake: Nights, version: int) -> None:
    """Their files end with .parquet as data files do; in the second version Flink's are position deletes."""
    lake.create(format_version=version, **BY_K)
    lake.append(grid(0, 14))
    paths = [each["file_path"] for each in lake.live()]
    if version == 3:
        lake.commit(lake.java.vectors(lake.table, [(path, 0) for path in paths[:3]], flink_name=True))
    else:
        lake.commit(lake.java.position_deletes(lake.table, [(path, 0) for path in paths[:3]], granularity="file"))
    assert all(each["file_path"].endswith(".parquet") for each in lake.live(1))
    lake.java.cdc(lake.table, [("-D", [n, n % 7, ""]) for n in range(9)], keys=["id", "k"])
    lake.persist()
    lake.require_positions_only()
    assert set(lake.rows.column("id")) <= set(range(9, 14))


def test_partitions_of_a_global_delete_are_settled_in_one_commit_whatever_their_size(lake: Nights) -> None:
    """A delete of all partitions goes with the one commit that has settled all of them: commits are not cut there."""
    lake.create()
    lake.append(grid(0, 7))
    lake.alter({"change": "add_partition_field", "column": "k", "transform": "identity"})
    lake.append(grid(0, 21))
    lake.delete([[2], [9]], "id", spec_id=0)
    lake.delete([[3, 3]], "id", "k", partition=[3])
    rows, snapshots = lake.rows, len(lake.table.document()["snapshots"])
    lake.persist(commit_size=1)
    assert len(lake.table.document()["snapshots"]) - snapshots == 1
    lake.require_positions_only()
    assert lake.rows == rows


# Keys of our own writer


@VERSIONS
def test_a_key_that_moves_to_another_partition(lake: Nights, version: int) -> None:
    """Refused where its old row would not be found; with both columns for keys, a before-image deletes it there."""
    lake.create(format_version=version, **BY_K)
    lake.apply([("+I", {"id": 1, "k": 0, "v": "old"})], "id", "k")
    with pytest.raises(RefusedTable, match="a key may change its partition"):
        lake.apply(MOVED, "id")
    lake.apply(MOVED, "id", "k")
    assert sorted(lake.rows.rows) == [(1, 0, "old"), (1, 1, "moved")], "upsert takes no before-image: two keys"
    lake.apply([("-D", {"id": 1, "k": 1})], "id", "k")
    lake.apply(MOVED, "id", "k", mode=ChangeMode.CHANGES)
    assert lake.rows.rows == ((1, 1, "moved"),)
    lake.persist()
    lake.require_positions_only()
    assert lake.rows.rows == ((1, 1, "moved"),)


@VERSIONS
def test_our_deletes_reach_rows_of_every_schema(lake: Nights, version: int) -> None:
    """Null keys, keys of two columns, and a key renamed, widened, and gone from the schema."""
    lake.create([("id", "int"), ("k", "int"), ("v", "string")], format_version=version)
    old = [{"id": i, "k": k, "v": f"{i}{k}"} for i in (None, 1, 2, 3) for k in (None, 1)]
    lake.append(old)
    lake.apply([("+U", {"id": None, "k": None, "v": "new"}), ("-D", {"id": 1, "k": None})], "id", "k")
    lake.alter(
        {"change": "rename_column", "name": "id", "to": "key"},
        {"change": "change_type", "name": "key", "type": "long"},
        {"change": "add_column", "name": "late", "type": "int"},
    )
    lake.apply([("+U", {"key": 2, "k": 1, "v": "wide"}), ("-D", {"key": None, "k": 1})], "key", "k")
    lake.apply([("-D", {"key": 3, "late": None}), ("+U", {"key": 2**40, "late": 1, "v": "far"})], "key", "late")
    expected = {(None, None, "new"), (1, 1, "11"), (2, None, "2None"), (2, 1, "wide"), (2**40, None, "far")}
    assert {row[:3] for row in lake.rows.rows} == expected
    lake.persist()
    lake.require_positions_only()
    lake.apply([("-D", {"k": 1})], "k")
    lake.alter({"change": "drop_column", "name": "k"})
    done = runs.care_for(lake.table)
    assert done.outcome is Outcome.VERIFIED, done.reason
    lake.require_positions_only()
    assert {row[0] for row in lake.rows.rows} == {None, 2, 2**40}


TRANSFORMED: tuple[Column, ...] = (
    ("id", "long"),
    ("name", "string"),
    ("price", "decimal(9,2)"),
    ("born", "date"),
    ("month", "timestamp"),
    ("day", "timestamptz"),
    ("hour", "timestamp"),
    ("flag", "boolean"),
    ("code", "string"),
    ("kind", "int"),
    ("gone", "int"),
)
EVERY_TRANSFORM = (
    ("id", "bucket[3]"),
    ("name", "truncate[2]"),
    ("price", "truncate[50]"),
    ("born", "year"),
    ("month", "month"),
    ("day", "day"),
    ("hour", "hour"),
    ("flag", "identity"),
    ("code", "bucket[2]"),
    ("kind", "identity"),
    ("gone", "void"),
)
VALUES: tuple[tuple[Any, ...], ...] = (
    (
        -1,
        "\u00e4\U00020000b",
        "-0.01",
        "1969-12-31",
        "1969-12-31T23:59:59.999999",
        "1969-12-31T23:59:59.999999Z",
        "1969-12-31T23:59:59.999999",
        True,
        "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        -(2**31),
        1,
    ),
    (
        2**40,
        "ab",
        "99.99",
        "2026-11-21",
        "2026-11-01T00:00:00",
        "2026-11-21T22:00:00Z",
        "2026-11-21T22:59:59",
        False,
        "00000000-0000-0000-0000-000000000000",
        0,
        2,
    ),
    (None,) * 11,
)


def test_partitions_of_every_transform_are_javas(lake: Nights, iceberg: Warehouse, iceberg_java: IcebergJava) -> None:
    names = [column[0] for column in TRANSFORMED]
    theirs = Nights(iceberg_java, iceberg.table("db.theirs"))
    changes = [("+U", dict(zip(names, values, strict=True))) for values in VALUES]
    for each in (lake, theirs):
        each.create(TRANSFORMED, partition=EVERY_TRANSFORM)
    for _ in range(2):
        lake.apply(changes, *(name for name in names if name != "gone"))
        theirs.java.cdc(theirs.table, changes, keys=[name for name in names if name != "gone"])
    assert lake.rows == theirs.rows and len(lake.rows.rows) == len(VALUES)
    told = [sorted(str((each["content"], each["partition"])) for each in side.live(0, 1, 2)) for side in (lake, theirs)]
    assert told[0] == told[1]
    lake.persist()
    lake.require_positions_only()
    assert lake.rows == theirs.rows


# Places


PLACES: Mapping[str, Callable[[Path], Mapping[str, Any]]] = {
    "no host": lambda root: {"location": f"file:{root}/plain"},
    "an empty host": lambda root: {"location": f"file://{root}/plain"},
    "a path": lambda root: {"location": f"{root}/plain"},
    "odd names": lambda root: {"location": f"file:{root}/a b%20c%/\u00e4 \u4e2d+&'="},
    "data elsewhere": lambda root: {"properties": {"write.data.path": f"file:{root}/else where"}},
    "metadata elsewhere": lambda root: {"properties": {"write.metadata.path": f"file:{root}/meta data"}},
    "as in an object store": lambda root: {"properties": {"write.object-storage.enabled": "true"}},
    "compressed": lambda root: {
        "properties": {"write.metadata.compression-codec": "gzip", "write.avro.compression-codec": "zstd"}
    },
}


SPELLED = {
    "no host": "file:{}/plain/",
    "an empty host": "file://{}/plain/",
    "a path": "{}/plain/",
    "odd names": "file:{}/a b%20c%/\u00e4 \u4e2d+&'=/",
    "data elsewhere": "file:",
    "metadata elsewhere": "file:",
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", some_extended(PLACES, keep=3))
def test_files_are_found_and_put_where_the_table_states(lake: Nights, name: str) -> None:
    """Java and ours by turns; each spells locations as the table does, and finds what the other wrote."""
    root = lake.table.warehouse.folder / "root"
    how, names = PLACES[name](root), ("a b/0", "50%25", "\u00e4:=")
    lake.create(format_version=3 if len(name) % 2 else 2, partition=(("v", "identity"),), **how)
    lake.append([[n, n, names[n % 3]] for n in range(30)], rows_per_file=4)
    places = [each["file_path"] for each in lake.live()]
    lake.java.cdc(lake.table, [("-D", [3, 3, names[0]]), ("+U", [4, 0, names[1]])], keys=["id", "v"])
    lake.apply([("+U", {"id": 5, "k": 0, "v": names[2]}), ("+U", {"id": 5, "k": 1, "v": names[2]})], "id", "v")
    lake.persist()
    lake.require_positions_only()
    lake.java.cdc(lake.table, [("-D", [6, 6, names[0]])], keys=["id", "v"])
    lake.night(full=True)
    rows = {(n, {4: 0, 5: 1}.get(n, n), names[n % 3]) for n in range(30) if n not in (3, 6)}
    assert set(lake.rows.rows) == rows
    live = [each["file_path"] for each in lake.live(0, 1, 2)]
    metadata = [each["manifest_path"] for each in lake.java.manifests(lake.table)]
    metadata.append(lake.table.document()["snapshots"][-1]["manifest-list"])
    ours = [path for path in (*live, *metadata) if "/nk-" in path]
    assert len(ours) > 3 and all(path.startswith(SPELLED.get(name, "file:///").format(root)) for path in ours)
    assert {start_of(path) for path in live} == {start_of(path) for path in places}
    assert len({start_of(path) for path in metadata}) == 1
    assert lake.table.metadata.name.endswith(".gz.metadata.json") is (name == "compressed")


def start_of(path: str) -> str:
    """A location up to where partitions or hashes begin, without what spellings differ in."""
    found = next(end for end in ("/data/", "/metadata/", "/else where/", "/meta data/") if end in path)
    return path[: path.index(found) + len(found)].removeprefix("file://").removeprefix("file:")


def test_position_delete_files_are_sorted_and_of_one_data_file(lake: Nights) -> None:
    """Of our writer and of conversions: rows by path and position, bounds of the whole path (spec, "Position Delete
    Files")."""
    lake.create()
    lake.append(grid(0, 40), rows_per_file=10)
    lake.apply([("+U", {"id": n % 5, "k": n, "v": "ours"}) for n in range(25)], "id")
    written = lake.live(1)
    lake.persist()
    fresh = [each for each in lake.live(1) if each["file_path"] not in {old["file_path"] for old in written}]
    assert len(written) == 1 and len(fresh) == 1
    data = {each["file_path"] for each in lake.live()}
    for each in (*written, *fresh):
        table = pq.read_table(each["file_path"].removeprefix("file://").removeprefix("file:"))
        rows = list(zip(table["file_path"].to_pylist(), table["pos"].to_pylist(), strict=True))
        assert rows == sorted(rows) and len(rows) == each["record_count"]
        ((path,),) = (set(table["file_path"].to_pylist()),)
        assert path in data and each["lower_bounds"]["2147483546"] == path.encode().hex()
        assert each["upper_bounds"]["2147483546"] == path.encode().hex()
