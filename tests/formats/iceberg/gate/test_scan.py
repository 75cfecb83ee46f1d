"""What the gate sees of a unit: position deletes, vectors and equality deletes, by sequence number and scope."""

import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType
from pyroaring import BitMap64
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.lake_rows import Rows
from tests.formats.iceberg.counted_reads import CountedReads
from tests.formats.iceberg.golden_tables import GOLDEN, KEPT
from tests.formats.iceberg.shown import canonical_rows, shown, snapshot_of
from tests.support.examples import examples

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.iceberg.deletes.position_deletes import write_positions
from nightkeep.formats.iceberg.deletes.vectors import PuffinVectorWriter
from nightkeep.formats.iceberg.gate import scan
from nightkeep.formats.iceberg.gate.delete_audit import new_delete_faults
from nightkeep.formats.iceberg.gate.proof_parts import pieces
from nightkeep.formats.iceberg.gate.scan import rows, survivors
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit
from nightkeep.formats.iceberg.rewrite.hidden_rows import hidden
from nightkeep.kernels.arrow_buffers import without_views
from nightkeep.model import UnitKey
from nightkeep.storage import LocalStorage, Storage

NEWEST = (NestedField(1, "a", LongType()), NestedField(2, "b", StringType()), NestedField(3, "d", DoubleType()))
OLDEST = (NestedField(1, "a", IntegerType()), NestedField(4, "gone", StringType()))
"""Older files have `a` narrower, no `b` at all, and a column that is dropped by now."""


def with_id(name: str, kind: pa.DataType, number: int) -> "pa.Field[Any]":
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


FIELDS = {"new": {1: ("a", pa.int64()), 2: ("b", pa.string())}, "old": {1: ("a", pa.int32()), 4: ("gone", pa.string())}}
Made = Callable[[str], Table]
Gone = Callable[[Storage, IcebergUnit], list[set[int]]]
Key = tuple[int | None, str | None, str | None]
"""Values of a, b and gone, which are the fields 1, 2 and 4."""
PLACE = {1: 0, 2: 1, 4: 2}


@dataclass(frozen=True)
class Data:
    sequence: int
    era: str
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Deletes:
    """Of rows equal in the fields `ids`, in files of the columns of `era` and those ids."""

    sequence: int
    ids: tuple[int, ...]
    keys: tuple[Key, ...]
    extra: bool


class World:
    """One unit in a folder, of data files and deletes as they are put there."""

    def __init__(self, folder: str, version: int = 2) -> None:
        self.storage, self.folder = LocalStorage("/"), Path(folder)
        current = Schema(*NEWEST)
        self.schema = IcebergSchema(
            "db.t", version, "/t", current, {0: Schema(*OLDEST), 1: current}, {0: PartitionSpec()}, 0, {}
        )
        self.files: list[ContentFile] = []
        self.positional: list[ContentFile] = []
        self.equality: list[ContentFile] = []

    @property
    def unit(self) -> IcebergUnit:
        held = [tuple(files) for files in (self.files, self.positional, self.equality)]
        return IcebergUnit(UnitKey("", None), {}, 0, (), *held, self.schema)

    def put(self, content: FileContent, sequence: int, table: pa.Table, **more: Any) -> ContentFile:
        name = f"f{len(self.files) + len(self.positional) + len(self.equality)}.parquet"
        pq.write_table(table, self.folder / name, row_group_size=4)
        size = (self.folder / name).stat().st_size
        path = f"{self.folder}/{name}"
        return ContentFile(
            content, path, path[1:], "parquet", 0, (), table.num_rows, size, sequence, sequence, 1, **more
        )

    def add(self, data: Data) -> None:
        table = table_of(data.keys, FIELDS[data.era])
        self.files.append(self.put(FileContent.DATA, data.sequence, table))

    def delete(self, deletes: Deletes) -> None:
        wanted = set(deletes.ids) | ({1, 2, 4} if deletes.extra else set())
        fields = {number: field for era in FIELDS.values() for number, field in era.items() if number in wanted}
        file = self.put(
            FileContent.EQUALITY_DELETES, deletes.sequence, table_of(deletes.keys, fields), equality_ids=deletes.ids
        )
        self.equality.append(file)

    def shown(self) -> dict[str, set[int]]:
        return {name: set(held) for name, held in survivors(self.storage, self.unit).items()}


def table_of(keys: Sequence[Key], fields: dict[int, tuple[str, pa.DataType]]) -> pa.Table:
    schema = pa.schema([with_id(name, kind, number) for number, (name, kind) in fields.items()])
    columns = [[key[PLACE[number]] for key in keys] for number in fields]
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def twin(data: Sequence[Data], deletes: Sequence[Deletes]) -> list[set[int]]:
    """Every row against every deleted key."""
    found = []
    for file in data:
        held = FIELDS[file.era].keys()
        kept = set()
        for position, row in enumerate(file.keys):
            known = {number: row[place] if number in held else None for number, place in PLACE.items()}
            gone = any(
                all(known[number] == key[PLACE[number]] for number in each.ids)
                for each in deletes
                if each.sequence > file.sequence
                for key in each.keys
            )
            kept |= set() if gone else {position}
        found.append(kept)
    return found


texts = st.sampled_from(["x", "y", None])
keys = st.lists(st.tuples(st.sampled_from([1, 2, None]), texts, texts), min_size=1, max_size=9).map(tuple)
sequences = st.integers(1, 4)
ids = st.sampled_from([(1,), (2,), (4,), (1, 2), (2, 1), (4, 1, 2)])


@given(
    st.lists(st.builds(Data, sequences, st.sampled_from(["new", "old"]), keys), max_size=4),
    st.lists(st.builds(Deletes, sequences, ids, keys, st.booleans()), max_size=5),
    st.sampled_from([1, 100, 1 << 20]),
)
@settings(max_examples=examples(120), deadline=None)
def test_equality_deletes_hide_what_comparing_every_row_hides(
    data: list[Data], deletes: list[Deletes], key_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "KEY_BYTES", key_bytes)
        patch.setattr(scan, "LEAST_ROWS", 2)
        world = World(folder)
        for file in data:
            world.add(file)
        for each in deletes:
            world.delete(each)

        found = world.shown()

        assert [found[file.name] for file in world.files] == twin(data, deletes)
        unit = replace(world.unit, files=tuple(replace(file, bytes=1 << 20) for file in world.files))
        parts = [survivors(world.storage, part) for part, _ in pieces(unit, unit, part_bytes=1)]
        assert len(parts) == max(1, len(data))
        assert {name: set(held) for part in parts for name, held in part.items()} == found


def test_data_is_not_read_again_for_keys_that_were_deleted_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As changes by key write them: the same rows over and over."""
    monkeypatch.setattr(scan, "KEY_BYTES", 1_000)
    world = World(str(tmp_path))
    world.add(numbers(1, 120))
    world.add(numbers(9, 120))
    for sequence in range(2, 22):
        keys = numbers(0, 60).keys
        world.delete(Deletes(sequence, (1,), keys, extra=False))
    counted = CountedReads("/")

    found = survivors(counted, world.unit)

    assert [set(found[file.name]) for file in world.files] == [set(range(60, 120))] * 2
    # Once for its count of rows, once for its keys.
    assert [counted.opened[f"f{number}.parquet"] for number in (0, 1)] == [2, 2]


def test_data_is_not_read_for_keys_that_were_deleted_before_it_came(tmp_path: Path) -> None:
    """By the rewrite, which holds one delete file's keys at a time here."""
    world = World(str(tmp_path))
    for sequence in (1, 7):
        world.add(numbers(sequence, 10))
    for sequence in range(2, 10):
        world.delete(Deletes(sequence, (1,), ((sequence, None, None),), extra=False))
    counted = CountedReads("/")

    found = hidden(counted, world.unit, world.unit.files, index_bytes=1)

    assert [set(found[file.path]) for file in world.files] == [set(range(2, 10)), {8, 9}]
    assert [counted.opened[f"f{number}.parquet"] for number in (0, 1)] == [8, 2]


def test_data_is_read_again_for_keys_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "KEY_BYTES", 1_000)
    world = World(str(tmp_path))
    world.add(numbers(1, 1_000))
    for start in range(0, 1_000, 125):
        keys = tuple((number, None, None) for number in range(start, start + 125))
        world.delete(Deletes(2, (1,), keys, extra=False))
    counted = CountedReads("/")

    assert [set(held) for held in survivors(counted, world.unit).values()] == [set()]
    assert counted.opened["f0.parquet"] == 1 + 8


def numbers(sequence: int, count: int) -> Data:
    return Data(sequence, "new", tuple((number, None, None) for number in range(count)))


def test_position_deletes_hold_for_their_own_sequence_number_too(tmp_path: Path) -> None:
    world = World(str(tmp_path))
    for sequence in (1, 2, 3):
        world.add(numbers(sequence, 5))
    for number, file in enumerate(world.files):
        new = write_positions(world.storage, f"{tmp_path}/d{number}.parquet", file, BitMap64([number]))
        deletes = ContentFile(
            FileContent.POSITION_DELETES, new.path, new.path[1:], "parquet", 0, (), 1, 1, 2, 2, 1, referenced=file.path
        )
        world.positional.append(deletes)

    every = set(range(5))
    assert list(world.shown().values()) == [every - {0}, every - {1}, every]


def vectors_in(path: Path, positions: Mapping[ContentFile, BitMap64]) -> list[ContentFile]:
    """Written to one file; as a manifest of a later snapshot lists them."""
    writer = PuffinVectorWriter(LocalStorage("/"), str(path))
    for file, held in positions.items():
        writer.add(file, held)
    return [vector_entry(made.raw) for made in writer.close()]


def vector_entry(raw: Any) -> ContentFile:
    return ContentFile(
        FileContent.POSITION_DELETES,
        raw["file_path"],
        raw["file_path"][1:],
        "puffin",
        0,
        (),
        raw["record_count"],
        raw["file_size_in_bytes"],
        3,
        3,
        1,
        referenced=raw["referenced_data_file"],
        content_offset=raw["content_offset"],
        content_bytes=raw["content_size_in_bytes"],
    )


def gone_by_gate(storage: Storage, unit: IcebergUnit) -> list[set[int]]:
    found = survivors(storage, unit)
    return [set(range(file.rows)) - set(found[file.name]) for file in unit.files]


def gone_by_rewrite(storage: Storage, unit: IcebergUnit) -> list[set[int]]:
    found = hidden(storage, unit, unit.files)
    return [set(found.get(file.path, ())) for file in unit.files]


def gone_by_audit(storage: Storage, unit: IcebergUnit) -> list[set[int]]:
    """It says only whether the positions can be."""
    assert not [*new_delete_faults(storage, unit, unit.positional)]
    return []


@pytest.mark.parametrize("gone", [gone_by_gate, gone_by_rewrite, gone_by_audit])
def test_a_file_of_many_vectors_is_read_once(tmp_path: Path, gone: Gone) -> None:
    world = World(str(tmp_path), version=3)
    for _ in range(40):
        world.add(numbers(1, 5))
    held = [{number % 5, 2} for number in range(40)]
    pairs = zip(world.files, map(BitMap64, held), strict=True)
    world.positional = vectors_in(tmp_path / "v.puffin", dict(pairs))[::-1]
    counted = CountedReads("/")

    found = gone(counted, world.unit)

    assert found in (held, [])
    assert counted.opened["v.puffin"] == 1
    assert counted.taken["v.puffin"] <= (tmp_path / "v.puffin").stat().st_size


def test_beside_a_vector_no_position_delete_counts(tmp_path: Path) -> None:
    world = World(str(tmp_path), version=3)
    world.add(numbers(1, 5))
    (file,) = world.files
    new = write_positions(world.storage, f"{tmp_path}/d.parquet", file, BitMap64([0]))
    old = ContentFile(FileContent.POSITION_DELETES, new.path, new.path[1:], "parquet", 0, (), 1, 1, 2, 2, 1)
    (vector,) = vectors_in(tmp_path / "v.puffin", {file: BitMap64([3, 4])})

    world.positional = [old]
    assert list(world.shown().values()) == [{1, 2, 3, 4}]
    world.positional = [old, vector]
    assert list(world.shown().values()) == [{0, 1, 2}]


def test_rows_are_the_surviving_ones_with_their_lineage(tmp_path: Path) -> None:
    world = World(str(tmp_path), version=3)
    world.add(numbers(1, 9))
    world.files[0] = replace(world.files[0], first_row_id=50)
    world.delete(Deletes(2, (1,), ((2, None, None), (8, None, None)), extra=False))

    found = pa.Table.from_batches(
        map(without_views, rows(world.storage, world.unit, survivors(world.storage, world.unit)))
    )

    assert found.column_names == ["a", "b", "d", "_row_id", "_last_updated_sequence_number"]
    assert found.column("_row_id").to_pylist() == [50 + n for n in (0, 1, 3, 4, 5, 6, 7)]
    assert set(found.column("_last_updated_sequence_number").to_pylist()) == {1}


def test_counts_that_disagree_are_reported(tmp_path: Path) -> None:
    world = World(str(tmp_path))
    world.add(numbers(1, 5))
    world.delete(Deletes(2, (1,), ((2, None, None),), extra=False))
    (file,), (deletes,) = world.files, world.equality

    world.files = [replace(file, rows=6)]
    with pytest.raises(CorruptMetadata, match=r"/f0\.parquet: expected 6 rows as its manifest states, found 5 in"):
        world.shown()
    world.files, world.equality = [file], [replace(deletes, rows=2)]
    with pytest.raises(CorruptMetadata, match=r"/f1\.parquet: expected 2 rows as its manifest states, found 1 in"):
        world.shown()


def test_deletes_of_rows_that_there_are_not_are_reported(tmp_path: Path) -> None:
    world = World(str(tmp_path))
    world.add(numbers(1, 5))
    (file,) = world.files
    write_positions(world.storage, f"{tmp_path}/d.parquet", replace(file, rows=10), BitMap64([7]))
    name = f"{tmp_path}/d.parquet"[1:]
    world.positional = [ContentFile(FileContent.POSITION_DELETES, "/d", name, "parquet", 0, (), 1, 1, 2, 2, 1)]

    with pytest.raises(CorruptMetadata, match=r"/f0\.parquet: expected deleted positions below its 5 rows, found 7"):
        world.shown()


@pytest.mark.parametrize(
    ("deleted", "shown"),
    [([0.0], {1, 2, 3, 4}), ([-0.0], {0, 2, 3, 4}), ([math.nan], {0, 1, 3, 4}), ([None, 1.5], {0, 1, 2})],
)
def test_floats_are_equal_as_in_java(tmp_path: Path, deleted: list[float | None], shown: set[int]) -> None:
    """tests/engines/iceberg/test_float_keys.py asks it."""
    world = World(str(tmp_path))
    kind = pa.schema([with_id("d", pa.float64(), 3)])
    world.files.append(world.put(FileContent.DATA, 1, pa.table([[0.0, -0.0, -math.nan, 1.5, None]], schema=kind)))
    keys = pa.table([deleted], schema=kind)
    world.equality = [world.put(FileContent.EQUALITY_DELETES, 2, keys, equality_ids=(3,))]
    assert world.shown() == {world.files[0].name: shown}


def test_nan_beside_other_keys_is_refused(tmp_path: Path) -> None:
    world = World(str(tmp_path))
    world.add(numbers(1, 5))
    keys = pa.table([[1.0, math.nan]], schema=pa.schema([with_id("d", pa.float64(), 3)]))
    raw = {"lower_bounds": {3: bytes(8)}, "nan_value_counts": {3: 1}}
    world.equality = [world.put(FileContent.EQUALITY_DELETES, 2, keys, equality_ids=(3,), raw=raw)]
    with pytest.raises(RefusedTable, match="equality deletes by NaN beside other values"):
        world.shown()


UNREADABLE = "partition_types_v2"
"""Java writes partitions by fixed values not as Avro: no other reader opens its manifests."""


@pytest.mark.parametrize("name", [name for name in KEPT if name != UNREADABLE])
def test_tables_of_engines_have_the_rows_that_java_reads(golden: Made, name: str) -> None:
    expected = Rows.of(json.loads((GOLDEN / name / "rows.json").read_text()))
    table = golden(name)

    found = canonical_rows(shown(table), snapshot_of(table).schema, expected.columns)

    assert found.rows == expected.ordered().rows


def assert_as_java(java: IcebergJava, table: Table) -> None:
    assert canonical_rows(shown(table), snapshot_of(table).schema).rows == java.read(table).rows


KINDS = (
    "int",
    "long",
    "string",
    "date",
    "timestamptz",
    "decimal(20, 3)",
    "uuid",
    "fixed[3]",
    "binary",
    "boolean",
    "time",
)


def key_value(kind: str, random: Random) -> Any:
    number = random.randrange(4)
    return (
        {
            "int": number,
            "long": number << 40,
            "string": f"k{number}",
            "boolean": number % 2 == 0,
            "date": f"2026-01-0{number + 1}",
            "timestamptz": f"1969-12-31T23:59:5{number}.000001Z",
            "decimal(20, 3)": f"-{number}.125",
            "uuid": f"0000000{number}-677c-4bbd-a479-3f349cb785e7",
            "fixed[3]": f"00000{number}",
            "binary": "00" * number,
            "time": f"0{number}:00:00.000001",
        }[kind]
        if random.random() < 0.8
        else None
    )


@pytest.mark.few(1)
@pytest.mark.parametrize(("version", "seed"), [(2, 1), (2, 2), (3, 3), (3, 4)])
def test_histories_of_changes_are_read_as_in_java(
    iceberg_java: IcebergJava, iceberg: Warehouse, version: int, seed: int
) -> None:
    random, table = Random(seed), iceberg.table()
    keys = random.sample(KINDS, 3)
    columns = [(f"k{number}", kind) for number, kind in enumerate(keys)] + [("part", "int"), ("v", "int")]
    partition = (("part", "identity"),) if seed % 2 else ()
    iceberg_java.create(table, columns, Layout(partition=partition, format_version=version))

    def row() -> list[Any]:
        return [*[key_value(kind, random) for kind in keys], random.randrange(2), random.randrange(100)]

    for number in range(8):
        if random.random() < 0.4:
            iceberg_java.append(table, [row() for _ in range(6)])
        else:
            changes = [(random.choice(["+I", "+U", "-D"]), row()) for _ in range(6)]
            iceberg_java.cdc(table, changes, keys=("k0", "k1", "part") if number % 2 else ("k0", "part"))
        assert_as_java(iceberg_java, table)


def test_deletes_of_an_unpartitioned_spec_hold_for_every_partition(
    iceberg_java: IcebergJava, iceberg: Warehouse
) -> None:
    table = iceberg.table()
    iceberg_java.create(table, [("id", "int"), ("p", "int")])
    iceberg_java.append(table, [[1, 1], [2, 2], [3, 3]])
    iceberg_java.alter(table, {"change": "add_partition_field", "column": "p", "transform": "identity"})
    iceberg_java.append(table, [[1, 1], [2, 2], [3, 3]])
    own = iceberg_java.equality_deletes(table, [{"id": 2}], keys=["id"], partition=[2], spec_id=1)
    everywhere = iceberg_java.equality_deletes(table, [{"id": 3}], keys=["id"], spec_id=0)
    iceberg_java.commit(table, own, everywhere)

    assert_as_java(iceberg_java, table)
    assert shown(table).column("id").to_pylist() == [1, 2, 1]


def test_a_key_that_is_renamed_and_widened_still_deletes(iceberg_java: IcebergJava, iceberg: Warehouse) -> None:
    table = iceberg.table()
    iceberg_java.create(table, [("id", "int"), ("v", "int")])
    iceberg_java.append(table, [[1, 1], [3, 3]])
    iceberg_java.commit(table, iceberg_java.equality_deletes(table, [{"id": 1}], keys=["id"]))
    iceberg_java.alter(
        table,
        {"change": "change_type", "name": "id", "type": "long"},
        {"change": "rename_column", "name": "id", "to": "key"},
    )
    iceberg_java.append(table, [[2**40, 4]])
    iceberg_java.commit(table, iceberg_java.equality_deletes(table, [{"key": 2**40}], keys=["key"]))

    assert_as_java(iceberg_java, table)
    assert shown(table).column("key").to_pylist() == [3]


def test_a_dropped_key_still_deletes(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, iceberg: Warehouse
) -> None:
    table = iceberg.table()
    iceberg_java.create(table, [("id", "int"), ("code", "string")])
    iceberg_java.append(table, [[1, "a"], [2, "b"], [3, None]])
    iceberg_java.commit(table, iceberg_java.equality_deletes(table, [{"code": "b"}, {"code": None}], keys=["code"]))
    iceberg_java.alter(table, {"change": "drop_column", "name": "code"})

    # Java's generic reader fails, as it looks in the current schema alone; Spark's looks in all.
    assert iceberg_spark.read(table).rows == canonical_rows(shown(table), snapshot_of(table).schema).rows == ((1,),)
    # Two columns of one name are too many for Spark.
    iceberg_java.alter(table, {"change": "add_column", "name": "code", "type": "string"})
    assert shown(table).to_pylist() == [{"id": 1, "code": None}]
