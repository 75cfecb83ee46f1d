"""Tables that Iceberg Java wrote: what persist-deletes makes of them shows Java the rows it saw before."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout, Written
from tests.drivers.iceberg_tables import Column, Table, Warehouse, struct
from tests.drivers.json_lines import EngineError
from tests.support.extended import some_extended

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.iceberg.catalog.catalog import TableHandle
from nightkeep.formats.iceberg.commit.commit import commit, stage
from nightkeep.formats.iceberg.commit.conflicts import conflicts
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit, load
from nightkeep.formats.iceberg.rewrite.hidden_rows import hidden
from nightkeep.formats.iceberg.rewrite.persist import Persisted, persist
from nightkeep.formats.iceberg.rewrite.persist_plan import PersistTask, persist_deletes, refuse_persisting
from nightkeep.model import Address, Operation, Request, Rewrite, Run, TaskCost
from nightkeep.storage import LocalStorage

pytestmark = pytest.mark.in_turn("version")

STORAGE = LocalStorage("/")
REQUEST = Request(Operation.PERSIST_DELETES, now_ms=0)
RUN = Run("r", "0123456789abcdef", "1", 0)
COLUMNS: Sequence[Column] = (("id", "long"), ("k", "int"), ("v", "string"))
VERSIONS = pytest.mark.parametrize("version", [2, 3])
Every = Callable[[IcebergUnit], bool]


@dataclass(frozen=True)
class Lake:
    """One table of a catalog, for Java and for us."""

    java: IcebergJava
    table: Table
    handle: TableHandle

    def snapshot(self) -> IcebergSnapshot:
        return load(Address("iceberg", str(self.handle), "t"), self.handle)

    def create(self, columns: Sequence[Column] = COLUMNS, **layout: Any) -> None:
        self.java.create(self.table, columns, Layout(**layout))

    def append(self, rows: Sequence[Any], **how: Any) -> None:
        self.java.append(self.table, rows, **how)

    def commit(self, *written: Written, **how: Any) -> None:
        self.java.commit(self.table, *written, **how)

    def delete(self, rows: Sequence[Any], *keys: str, **how: Any) -> None:
        """A commit of one equality delete file."""
        self.commit(self.java.equality_deletes(self.table, rows, keys=keys, **how))

    def visible(self) -> set[tuple[str, int]]:
        return set(self.java.read(self.table, columns=["_file", "_pos"]).rows)

    def live(self, content: int) -> list[dict[str, Any]]:
        return [each for each in self.java.entries(self.table) if each["content"] == content and each["status"] != 2]


@pytest.fixture
def lake(iceberg_java: IcebergJava, iceberg: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Lake:
    prefix = f"PYICEBERG_CATALOG__{iceberg.name.upper()}"
    monkeypatch.setenv(f"{prefix}__TYPE", "sql")
    monkeypatch.setenv(f"{prefix}__URI", f"sqlite:///{iceberg.database}")
    monkeypatch.setenv(f"{prefix}__WAREHOUSE", iceberg.location)
    return Lake(iceberg_java, iceberg.table(), TableHandle(iceberg.name, ("db", "t"), STORAGE))


def tasks(snapshot: IcebergSnapshot, chosen: Every) -> Iterator[tuple[IcebergUnit, PersistTask]]:
    for unit in filter(chosen, snapshot.units):
        work = persist_deletes(snapshot, unit, REQUEST)
        for task in work.tasks if work else ():
            assert isinstance(task, PersistTask)
            yield unit, pickle.loads(pickle.dumps(task))


def convert(lake: Lake, *, chosen: Every = lambda unit: True, index_bytes: int | None = None) -> list[Persisted]:
    """Plan, rewrite and commit; what Java sees stays, and what we say is hidden is what it did not see."""
    rows, visible = lake.java.read(lake.table), lake.visible()
    done = rewrite(lake, visible, chosen=chosen, index_bytes=index_bytes)
    assert lake.java.read(lake.table) == rows
    assert lake.visible() == visible
    return done


def rewrite(
    lake: Lake, visible: set[tuple[str, int]], *, chosen: Every = lambda unit: True, index_bytes: int | None = None
) -> list[Persisted]:
    snapshot = lake.snapshot()
    for unit in snapshot.units:
        found = hidden(STORAGE, unit, unit.files)
        seen = {(file.path, at) for file in unit.files for at in range(file.rows) if at not in found.get(file.path, ())}
        assert seen == {place for place in visible if place[0] in {file.path for file in unit.files}}
    done: list[Persisted] = []
    rewrites: list[Rewrite] = []
    for unit, task in tasks(snapshot, chosen):
        bounded = replace(task, index_bytes=index_bytes) if index_bytes else task
        done.append(persist(STORAGE, bounded, RUN))
        cost = TaskCost(0.0, 0.0, 0, "")
        rewrites.append(Rewrite(unit.key, done[-1].edit, done[-1].outputs, 0, done[-1].marked, (), cost))
    assert rewrites and not conflicts(STORAGE, snapshot, snapshot, rewrites)
    assert commit(lake.handle, stage(STORAGE, snapshot, rewrites, RUN))
    return done


def require_positions_only(lake: Lake) -> None:
    """No equality delete is left, each data file has one place of positions, and nothing is left to plan."""
    assert not lake.live(2)
    version = lake.java.describe(lake.table)["format_version"]
    deletes = lake.live(1)
    assert {each["file_format"].lower() for each in deletes} <= {"puffin" if version == 3 else "parquet"}
    applied = [task["deletes"] for task in lake.java.tasks(lake.table)]
    assert all(len(each) <= 1 for each in applied)
    # Each for one data file: no file of positions is listed for two.
    assert sum(map(len, applied)) == len(deletes)
    assert not list(tasks(lake.snapshot(), lambda unit: True))


def grid(first: int, last: int) -> list[list[Any]]:
    return [[n // 3, n % 3, f"row {n}"] for n in range(first, last)]


@VERSIONS
def test_composite_keys_with_nulls(lake: Lake, version: int) -> None:
    lake.create(format_version=version)
    lake.append([*grid(0, 40), [None, 1, "a"], [1, None, "b"], [None, None, "c"], [0, 0, "again"]], rows_per_file=17)
    lake.delete([[0, 0], [None, 1], [None, None], [12, 2], [77, 7]], "id", "k")
    lake.append([[0, 0, "new"], [None, None, "new"]])
    done = convert(lake)
    assert sum(each.marked for each in done) == 5
    require_positions_only(lake)


@VERSIONS
def test_sets_of_columns_and_sequence_numbers(lake: Lake, version: int) -> None:
    lake.create(format_version=version)
    for round_ in range(3):
        lake.append(grid(round_ * 10, round_ * 10 + 15), rows_per_file=8)
        lake.delete([[round_], [4]], "id")
        lake.delete([[1, "row 13"]], "k", "v")
        lake.delete([[5, 2]], "id", "k")
    convert(lake, index_bytes=1)
    require_positions_only(lake)


@VERSIONS
def test_a_delete_of_the_same_commit_hides_nothing(lake: Lake, version: int) -> None:
    lake.create(format_version=version)
    rows = lake.java.rows(lake.table, grid(0, 9))
    lake.commit(rows, lake.java.equality_deletes(lake.table, [[1]], keys=["id"]))
    assert len(lake.visible()) == 9
    done = convert(lake)
    assert sum(each.marked for each in done) == 0 and not any(each.outputs for each in done)
    require_positions_only(lake)


@VERSIONS
def test_deletes_of_whole_rows_go_by_their_keys(lake: Lake, version: int) -> None:
    lake.create(format_version=version)
    lake.append(grid(0, 9))
    lake.delete([[1, 2, "not what the row says"], [None, 0, "x"]], "id", full=True)
    assert sum(each.marked for each in convert(lake)) == 3
    require_positions_only(lake)


def every_type(number: int) -> list[Any]:
    return [
        number % 2 == 0,
        number,
        number * 2**40,
        f"{number}.25",
        f"{number * 10**20}.5",
        f"2026-11-{number + 1:02}",
        f"0{number}:30:00.000001",
        f"2026-11-01T0{number}:00:00.000001",
        f"2026-11-01T0{number}:00:00.000001Z",
        "same prefix " * 3 + str(number),
        f"00112233-4455-6677-8899-aabbccddee0{number}",
        f"abcd0{number}",
        "ff" * number,
    ]


TYPES: Sequence[Column] = tuple(
    (f"c{at}", kind)
    for at, kind in enumerate(
        (
            "boolean",
            "int",
            "long",
            "decimal(9,2)",
            "decimal(38,1)",
            "date",
            "time",
            "timestamp",
            "timestamptz",
            "string",
            "uuid",
            "fixed[3]",
            "binary",
        )
    )
)


def test_keys_of_every_type(lake: Lake) -> None:
    lake.create(TYPES)
    rows = [every_type(number) for number in range(8)] + [[None] * len(TYPES)]
    lake.append([[*row] for row in rows])
    names = [column[0] for column in TYPES]
    lake.delete([every_type(3), [None] * len(TYPES)], *names)
    for at, name in enumerate(names[1:], start=1):
        lake.delete([[rows[at % 8][at]]], name)
    convert(lake)
    require_positions_only(lake)


@VERSIONS
def test_key_columns_that_changed(lake: Lake, version: int) -> None:
    """Renamed and widened after the data was written, or after the deletes; added later."""
    lake.create([("id", "int"), ("amount", "decimal(9,2)"), ("v", "string")], format_version=version)
    lake.append([[n, f"{n}.50", str(n)] for n in range(12)], rows_per_file=5)
    lake.delete([[3, "3.50"]], "id", "amount")
    lake.java.alter(
        lake.table,
        {"change": "rename_column", "name": "id", "to": "key"},
        {"change": "change_type", "name": "key", "type": "long"},
        {"change": "change_type", "name": "amount", "type": "decimal(20,2)"},
        {"change": "add_column", "name": "late", "type": "int"},
    )
    lake.append([[2**40 + n, f"{n}.50", str(n), n] for n in range(4)])
    lake.delete([[5, "5.50", None], [2**40, "0.50", 0]], "key", "amount", "late")
    lake.delete([[1]], "late")
    convert(lake)
    require_positions_only(lake)


def test_keys_within_structs_are_refused(lake: Lake) -> None:
    """Java takes a null struct for another key than a struct of null, unlike the specification; and it hides every
    row from those who do not ask for the struct (DeleteFilter.fileProjection)."""
    lake.create([("id", "long"), ("s", struct(("k", "int")))])
    lake.append([[1, {"k": 1}], [2, {"k": None}], [3, None]])
    lake.delete([[{"k": None}]], "s.k")
    assert lake.java.read(lake.table).column("id") == (1, 3)
    assert lake.java.read(lake.table, columns=["id"]).rows == ()
    with pytest.raises(RefusedTable, match="equality deletes by k, a field within another"):
        refuse_persisting(lake.snapshot(), REQUEST)


@VERSIONS
def test_a_key_column_that_was_dropped_still_deletes(lake: Lake, version: int) -> None:
    """The specification asks for it; Java reads no such table (DeleteFilter.fileProjection), until it is converted."""
    lake.create(format_version=version)
    lake.append(grid(0, 12), rows_per_file=5)
    lake.delete([["row 7"]], "v")
    lake.delete([[1, "row 4"]], "k", "v")
    visible = lake.visible()
    lake.java.alter(lake.table, {"change": "drop_column", "name": "v"})
    with pytest.raises(EngineError, match="Cannot find required field for ID 3"):
        lake.visible()
    rewrite(lake, visible)
    assert lake.visible() == visible
    require_positions_only(lake)


@VERSIONS
def test_deletes_for_all_partitions_cross_specs_and_others_do_not(lake: Lake, version: int) -> None:
    lake.create(format_version=version)
    lake.append(grid(0, 12))
    lake.java.alter(lake.table, {"change": "add_partition_field", "column": "k", "transform": "identity"})
    lake.append(grid(6, 18))
    # Of partition k=1 of the new spec: rows of the old spec with that k stay.
    lake.delete([[3, 1]], "id", "k", partition=[1])
    lake.delete([[2], [5]], "id", spec_id=0)
    lake.append(grid(0, 6))
    convert(lake)
    require_positions_only(lake)


def test_a_part_of_the_partitions_keeps_deletes_for_all(lake: Lake) -> None:
    lake.create()
    lake.append(grid(0, 6))
    lake.java.alter(lake.table, {"change": "add_partition_field", "column": "k", "transform": "identity"})
    lake.append(grid(0, 12))
    lake.delete([[2]], "id", spec_id=0)
    lake.delete([[1, 1]], "id", "k", partition=[1])
    lake.delete([[1, 2]], "id", "k", partition=[2])
    convert(lake, chosen=lambda unit: unit.partition.get("k") == 1)
    assert len(lake.live(2)) == 2
    convert(lake)
    require_positions_only(lake)


@VERSIONS
def test_checkpoints_as_flink_writes_them(lake: Lake, version: int) -> None:
    random, current = Random(version), dict[tuple[int, int], str]()
    lake.create(
        [("id", "long", True), ("k", "int", True), ("v", "string")],
        format_version=version,
        partition=(("k", "identity"),),
    )
    for round_ in range(6):
        changes: list[tuple[str, Any]] = []
        for _ in range(30):
            key = (random.randrange(25), random.randrange(2))
            if key in current and random.random() < 0.3:
                changes.append(("-D", [*key, None]))
                del current[key]
            else:
                current[key] = f"{round_}-{random.random()}"
                changes.append(("+U", [*key, current[key]]))
        lake.java.cdc(lake.table, changes, keys=["id", "k"])
    convert(lake)
    require_positions_only(lake)
    assert {tuple(row) for row in lake.java.read(lake.table).rows} == {(*key, v) for key, v in current.items()}


def test_scattered_position_deletes_become_one_for_each_file(lake: Lake) -> None:
    lake.create()
    lake.append(grid(0, 40), rows_per_file=10)
    paths = sorted({path for path, _ in lake.visible()})
    for round_ in range(3):
        places = [(path, round_ + 2 * at) for at, path in enumerate(paths[:3])]
        lake.commit(lake.java.position_deletes(lake.table, places, granularity="partition" if round_ else "file"))
    untouched = lake.java.position_deletes(lake.table, [(paths[3], 0)], granularity="file")
    lake.commit(untouched)
    done = convert(lake)
    assert sum(each.marked for each in done) == 0
    require_positions_only(lake)
    assert {each["file_path"] for each in lake.live(1)} & set(untouched.paths)
    assert sum(len(each.edit.added) for each in done) == 3


def test_an_upgraded_table_loses_its_position_delete_files(lake: Lake) -> None:
    lake.create()
    lake.append(grid(0, 30), rows_per_file=10)
    paths = sorted({path for path, _ in lake.visible()})
    lake.commit(lake.java.position_deletes(lake.table, [(path, 4) for path in paths], granularity="partition"))
    lake.commit(lake.java.position_deletes(lake.table, [(paths[0], 5)], granularity="file"))
    lake.java.alter(lake.table, {"change": "set_properties", "properties": {"format-version": "3"}})
    lake.commit(lake.java.vectors(lake.table, [(paths[1], 7)]))
    lake.delete([[2]], "id")
    convert(lake)
    require_positions_only(lake)
    assert len(lake.live(1)) == 3


def test_vectors_of_one_file_are_replaced_where_rows_go(lake: Lake) -> None:
    lake.create(format_version=3)
    lake.append(grid(0, 40), rows_per_file=10)
    paths = sorted({path for path, _ in lake.visible()})
    shared = lake.java.vectors(lake.table, [(path, at) for path in paths for at in (2, 3)])
    lake.commit(shared)
    lake.delete([[0], [11]], "id")
    done = convert(lake)
    require_positions_only(lake)
    assert len({output for each in done for output in each.outputs}) == 1
    kept = [each for each in lake.live(1) if each["file_path"] in shared.paths]
    assert len(kept) == 2 and len(lake.live(1)) == 4


@VERSIONS
def test_a_file_all_of_whose_rows_go_stays(lake: Lake, version: int) -> None:
    lake.create(format_version=version)
    lake.append([[1, 1, "a"], [1, 2, "b"]])
    lake.append([[2, 1, "c"]])
    lake.delete([[1]], "id")
    done = convert(lake)
    assert [finding for each in done for finding in each.findings] == [
        "1 data files without a visible row stay until they are optimized"
    ]
    assert len(lake.live(0)) == 2
    require_positions_only(lake)


@VERSIONS
def test_deletes_that_hide_nothing_go(lake: Lake, version: int) -> None:
    lake.create(format_version=version, partition=(("k", "identity"),))
    lake.delete([[1, 1]], "id", "k", partition=[1])
    lake.append([[1, 1, "a"], [1, 2, "b"]])
    lake.delete([[1, 3]], "id", "k", partition=[3])
    done = convert(lake)
    assert not any(each.edit.added or each.edit.targets for each in done)
    require_positions_only(lake)


def test_a_delete_file_that_is_gone_is_named(lake: Lake) -> None:
    lake.create()
    lake.append(grid(0, 9))
    written = lake.java.equality_deletes(lake.table, [[1]], keys=["id"])
    lake.commit(written)
    snapshot = lake.snapshot()
    ((_, task),) = tasks(snapshot, lambda unit: True)
    STORAGE.delete(snapshot.units[0].equality[0].name)
    with pytest.raises(MissingFile, match=written.paths[0].rpartition("/")[2]):
        persist(STORAGE, task, RUN)


def test_a_data_file_of_other_rows_than_its_manifest_counts_is_named(lake: Lake) -> None:
    lake.create()
    lake.append(grid(0, 9))
    lake.delete([[1]], "id")
    ((_, task),) = tasks(lake.snapshot(), lambda unit: True)
    (probe,) = task.probes
    fewer = replace(probe, files=tuple(replace(file, rows=8) for file in probe.files))
    with pytest.raises(CorruptMetadata, match="expected 8 rows, as its manifest counts, found 9"):
        persist(STORAGE, replace(task, probes=(fewer,)), RUN)


def test_positions_that_a_file_does_not_have_are_named(lake: Lake) -> None:
    lake.create()
    lake.append(grid(0, 9))
    ((path, _), *_) = lake.visible()
    for position in (3, 9):
        lake.commit(lake.java.position_deletes(lake.table, [(path, position)]))
    ((_, task),) = tasks(lake.snapshot(), lambda unit: True)
    with pytest.raises(CorruptMetadata, match=r"expected positions below the 9 rows of .*, found 9"):
        persist(STORAGE, task, RUN)


class History:
    """Changes in any order. Two of four seeds start partitioned by k and end without, two the other way round."""

    def __init__(self, lake: Lake, seed: int) -> None:
        self.lake, self.seed, self.random = lake, seed, Random(seed)
        lake.create(format_version=3 - seed % 2, partition=(("k", "identity"),) if seed % 4 > 1 else ())

    @property
    def specs(self) -> list[dict[str, Any]]:
        return list(self.lake.java.metadata(self.lake.table)["partition-specs"])

    def key(self, *names: str) -> list[Any]:
        values = {"id": self.random.choice([None, *range(6)]), "k": self.random.choice([0, 1]), "v": "x"}
        return [values[name] for name in names]

    def append(self) -> None:
        rows = [self.key("id", "k", "v") for _ in range(self.random.randrange(1, 25))]
        self.lake.append(rows, rows_per_file=self.random.randrange(3, 20))

    def delete(self) -> None:
        names = self.random.choice([["id"], ["id", "k"], ["id", "k", "v"], ["k", "v"]])
        spec = self.random.choice(self.specs)
        partition = [self.random.choice([0, 1])] if spec["fields"] else []
        self.lake.delete([self.key(*names)], *names, partition=partition, spec_id=spec["spec-id"])

    def mark(self) -> None:
        java, table, visible = self.lake.java, self.lake.table, sorted(self.lake.visible())
        places = sorted(self.random.sample(visible, min(len(visible), 3)))
        if not places:
            return
        if java.describe(table)["format_version"] == 3:
            self.lake.commit(java.vectors(table, places))
        else:
            granularity = self.random.choice(["file", "partition"])
            self.lake.commit(java.position_deletes(table, places, granularity=granularity))

    def evolve(self) -> None:
        upgrade = {"change": "set_properties", "properties": {"format-version": "3"}}
        added = {"change": "add_partition_field", "column": "k", "transform": "identity"}
        removed = {"change": "remove_partition_field", "name": "k"}
        change = upgrade if len(self.specs) > 1 else removed if self.seed % 4 > 1 else added
        self.lake.java.alter(self.lake.table, change)

    def convert(self, *, chosen: Every = lambda unit: True) -> None:
        if list(tasks(self.lake.snapshot(), chosen)):
            convert(self.lake, chosen=chosen, index_bytes=self.random.choice([1, None]))

    def convert_some(self) -> None:
        self.convert(chosen=lambda unit: unit.partition.get("k") == 1)


@pytest.mark.parametrize("seed", some_extended(range(4), keep=1))
def test_random_histories(lake: Lake, seed: int) -> None:
    """Specs, sets of columns, scattered positions, an upgrade, conversions on the way."""
    history = History(lake, seed)
    history.append()
    steps = [history.append] * 5 + [history.delete] * 6 + [history.mark] * 4
    steps += [history.evolve] * 2 + [history.convert_some]
    for step in history.random.sample(steps, len(steps)):
        step()
    history.convert()
    require_positions_only(lake)
