"""Position delete files: those of engines are read, and engines hide what ours say."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_python import pyiceberg_read
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.next_snapshots import NextSnapshot
from tests.formats.iceberg.shown import STORAGE

from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.iceberg.deletes.position_deletes import read_positions, write_positions
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.metadata.new_locations import data_location

PATH_ID, POSITION_ID = 2147483546, 2147483545


def a_file(path: str = "/d/f.parquet", rows: int = 100) -> ContentFile:
    told = {"content": FileContent.DATA, "format": "parquet", "spec_id": 0, "partition": (), "bytes": 1}
    numbers = {"sequence_number": 1, "file_sequence_number": 1, "snapshot_id": 1}
    return ContentFile(path=path, name=path[1:], rows=rows, **told, **numbers)  # type: ignore[arg-type]


def deletes(path: Path, rows: int) -> ContentFile:
    return dataclasses.replace(a_file(str(path), rows), content=FileContent.POSITION_DELETES)


def twin(pairs: list[tuple[str, int]]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for path, position in pairs:
        found.setdefault(path, set()).add(position)
    return found


def as_sets(found: Mapping[str, BitMap64]) -> dict[str, set[int]]:
    return {path: set(bitmap) for path, bitmap in found.items()}


def field(name: str, kind: pa.DataType, field_id: int | None, *, nullable: bool = False) -> Any:
    return pa.field(name, kind, nullable, None if field_id is None else {"PARQUET:field_id": str(field_id)})


def put(path: Path, pairs: list[tuple[Any, Any]], *, ids: bool = True, **options: Any) -> ContentFile:
    """As another writer might: with a row column first, and under other names where there are ids."""
    names = ("p", "q") if ids else ("file_path", "pos")
    schema = pa.schema(
        [
            field("row", pa.int32(), 2147483544),
            field(names[1], pa.int64(), POSITION_ID if ids else None, nullable=True),
            field(names[0], pa.string(), PATH_ID if ids else None, nullable=True),
        ]
    )
    columns = [list(range(len(pairs))), [position for _, position in pairs], [name for name, _ in pairs]]
    pq.write_table(
        pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema),
        path,
        **options,
    )
    return deletes(path, len(pairs))


PAIRS = st.lists(st.tuples(st.sampled_from(["/a", "/b", "/c\u00e9"]), st.integers(0, 2**40)), max_size=60)


@given(PAIRS, st.booleans(), st.integers(1, 20), st.booleans(), st.sets(st.sampled_from(["/a", "/b", "/x"])))
def test_rows_in_any_order_are_a_bitmap_for_each_path(
    tmp_path_factory: pytest.TempPathFactory,
    pairs: list[tuple[str, int]],
    ids: bool,
    group: int,
    dictionary: bool,
    wanted: set[str],
) -> None:
    path = tmp_path_factory.getbasetemp() / "deletes.parquet"
    file = put(path, pairs, ids=ids, row_group_size=group, use_dictionary=dictionary)
    expected = twin(pairs)
    assert as_sets(read_positions(STORAGE, file)) == expected
    assert as_sets(read_positions(STORAGE, file, wanted)) == {p: held for p, held in expected.items() if p in wanted}


@given(
    st.sets(st.integers(0, 300_000)) | st.sets(st.integers(0, 50)).map(lambda s: set(range(min(s, default=0), 3_000)))
)
def test_positions_are_written_sorted_and_read_back(tmp_path_factory: pytest.TempPathFactory, held: set[int]) -> None:
    held = held or {7}
    path, data_file = tmp_path_factory.getbasetemp() / "w.parquet", a_file(f"/d/{'x' * 80}.parquet", 300_001)
    path.unlink(missing_ok=True)

    new = write_positions(STORAGE, str(path), data_file, BitMap64(held))

    assert as_sets(read_positions(STORAGE, deletes(path, len(held)))) == {data_file.path: held}
    table = pq.read_table(path)
    assert table.column("pos").to_pylist() == sorted(held)
    assert new.raw["file_size_in_bytes"] == path.stat().st_size and new.raw["record_count"] == len(held)
    low, high = new.raw["lower_bounds"], new.raw["upper_bounds"]
    assert isinstance(low, dict) and isinstance(high, dict)
    assert (
        low[PATH_ID] == high[PATH_ID] == data_file.path.encode() and new.raw["referenced_data_file"] == data_file.path
    )
    assert [int.from_bytes(each[POSITION_ID], "little") for each in (low, high)] == [min(held), max(held)]


def test_the_file_is_as_java_writes_it(tmp_path: Path, made: Callable[[str], Table]) -> None:
    path = tmp_path / "w.parquet"
    write_positions(STORAGE, str(path), a_file(rows=400_000), BitMap64(range(300_000)))
    ours = pq.ParquetFile(path)
    after = NextSnapshot.of(made("positions"))
    javas = pq.ParquetFile(f"/{after.live(FileContent.POSITION_DELETES)[0].file.name}")
    assert ours.schema.equals(javas.schema)
    for file in (ours, javas):
        assert [int(f.metadata[b"PARQUET:field_id"]) for f in file.schema_arrow] == [PATH_ID, POSITION_ID]
        assert file.metadata.metadata[b"delete-type"] == b"position"
        assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert path.stat().st_size < 100_000


def test_what_engines_wrote_is_what_java_applies(made: Callable[[str], Table]) -> None:
    """Of one data file, and of several in one file; named by bounds where no field names it."""
    for name in ("positions", "upserts_v2", "merge_on_read_v2"):
        after = NextSnapshot.of(made(name))
        rows = {file.path: file.rows for file in after.data_files()}
        files = [entry.file for entry in after.live(FileContent.POSITION_DELETES)]
        assert files
        for file in files:
            found = read_positions(STORAGE, file)
            assert sum(len(bitmap) for bitmap in found.values()) == file.rows
            assert all(bitmap.max() < rows.get(path, 2**63) for path, bitmap in found.items())
            assert (file.referenced is None) == (len(found) > 1)
            assert file.referenced in (None, *found)


def test_engines_hide_what_our_files_hide(iceberg: Warehouse, iceberg_java: IcebergJava) -> None:
    table = iceberg.table()
    iceberg_java.create(table, (("id", "long"), ("day", "int")), Layout((("day", "identity"),)))
    iceberg_java.append(table, [[n, n % 2] for n in range(40)])
    after = NextSnapshot.of(table)
    files = sorted(after.data_files(), key=lambda file: file.partition)  # type: ignore[arg-type,return-value]
    hidden = [BitMap64([0, 3, 19]), BitMap64(range(2, 9))]
    added = [
        write_positions(STORAGE, data_location(after.schema, 0, file.partition, "nk-deletes.parquet"), file, bitmap)
        for file, bitmap in zip(files, hidden, strict=True)
    ]

    copy = after.registered(iceberg_java, [*after.parent.manifests, *after.manifests(added)], "delete")

    expected = sorted([n, n % 2] for n in range(40) if n // 2 not in hidden[n % 2])
    assert sorted(map(list, iceberg_java.read(copy).rows)) == expected
    assert sorted(map(list, pyiceberg_read(copy.metadata).rows)) == expected
    shown = [entry for entry in iceberg_java.entries(copy) if entry["content"] == 1]
    assert [e["referenced_data_file"] for e in shown] == [file.path for file in files]
    tasks = iceberg_java.tasks(copy)
    assert {t["file_path"]: [d["file_path"] for d in t["deletes"]] for t in tasks} == {
        file.path: [new.path] for file, new in zip(files, added, strict=True)
    }


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    with pytest.raises(MissingFile, match=r"d\.parquet"):
        read_positions(STORAGE, deletes(path, 1))
    good = put(path, [("/a", 1), ("/b", 2)])
    data = path.read_bytes()
    for length in (0, 4, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(CorruptMetadata, match=r"d\.parquet"):
            read_positions(STORAGE, good)
    path.write_bytes(data)
    with pytest.raises(CorruptMetadata, match="3 rows as its manifest states, found 2"):
        read_positions(STORAGE, dataclasses.replace(good, rows=3))
    for pairs in ([("/a", -1)], [("/a", None)], [(None, 1)]):
        with pytest.raises(CorruptMetadata, match=r"d\.parquet"):
            read_positions(STORAGE, put(path, pairs))
    for table in (
        pa.table({"file_path": ["/a"]}),
        pa.table({"file_path": [1], "pos": [1]}),
        pa.table({"file_path": ["/a"], "pos": ["1"]}),
    ):
        pq.write_table(table, path)
        with pytest.raises(CorruptMetadata, match="a column"):
            read_positions(STORAGE, deletes(path, 1))


def test_a_file_that_makes_no_sense_is_not_written(tmp_path: Path) -> None:
    for bitmap in (BitMap64(), BitMap64([100])):
        with pytest.raises(ValueError, match="expected positions below its 100 rows"):
            write_positions(STORAGE, f"{tmp_path}/w.parquet", a_file(), bitmap)
    assert not list(tmp_path.iterdir())
