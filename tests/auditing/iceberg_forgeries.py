"""What a foreign writer commits to an Iceberg table: a compaction or a change of rows, damaged in one way.

Damage of staged bytes is that of tests/formats/iceberg/sabotage.py; here is what only a published version can have.
"""

import json
import sqlite3
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.sabotage import MACHINE, Item, Staged, _place, _with
from tests.formats.iceberg.shown import read_vector

from nightkeep.formats.iceberg.deletes.position_deletes import read_positions, write_positions
from nightkeep.formats.iceberg.deletes.vectors import PuffinVectorWriter
from nightkeep.formats.iceberg.metadata.content_files import Entry, FileContent, NewFile, Status

Document = dict[str, Any]


def point_to(table: Table, metadata: Path) -> None:
    """The catalog names another metadata file."""
    with closing(sqlite3.connect(table.warehouse.database)) as connection, connection:
        connection.execute("UPDATE iceberg_tables SET metadata_location = ?", (f"file://{metadata}",))


def republish(table: Table, change: Callable[[Document], object]) -> None:
    """The table's metadata, changed, as its next version."""
    document = table.document()
    change(document)
    path = table.metadata.parent / f"99999-{uuid.uuid4()}.metadata.json"
    path.write_text(json.dumps(document))
    point_to(table, path)


def newest(document: Document) -> Document:
    found: Document = next(s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"])
    return found


# ---- rows ----


def write_null_for_a_value(staged: Staged) -> None:
    staged.rewrite(lambda rows: _with(rows, price=[None, *rows.column("price").to_pylist()[1:]]))


def swap_columns(staged: Staged) -> None:
    """Two columns of one type."""

    def swapped(rows: pa.Table) -> pa.Table:
        day, note = (rows.column(name).to_pylist() for name in ("day", "note"))
        return _with(rows, day=note, note=day)

    staged.rewrite(swapped)


def move_a_file_to_another_partition(staged: Staged) -> None:
    """As its manifest states; its rows have the values of the first one."""
    staged.describe(partition=("2026-11-03",))


# ---- files ----


def add_a_file_twice(staged: Staged) -> None:
    staged.edit_new(FileContent.DATA, lambda item: [item, item])


def add_what_is_live(staged: Staged) -> None:
    """A file of a partition that the commit does not touch."""
    found = staged.snapshot
    file = next(file for unit in found.units for file in unit.files if file.snapshot_id != found.version)
    again = NewFile(FileContent.DATA, file.spec_id, {**file.raw, "first_row_id": None})
    staged.edit_new(FileContent.DATA, lambda item: [item, again])


def remove_a_file_twice(staged: Staged) -> None:
    def twice(item: Item) -> Sequence[Item]:
        return [item, item] if isinstance(item, Entry) and item.status is Status.DELETED else [item]

    staged.edit(twice)


def remove_what_is_not_there(staged: Staged) -> None:
    """A file that an earlier commit removed."""
    pending = [1]

    def more(item: Item) -> Sequence[Item]:
        if not (pending and isinstance(item, Entry) and item.status is Status.DELETED):
            return [item]
        pending.clear()
        path = f"{item.file.path}.gone.parquet"
        return [item, replace(item, file=replace(item.file, path=path, raw={**item.file.raw, "file_path": path}))]

    staged.edit(more)


def bring_a_file_back(staged: Staged) -> None:
    """One that the commit removes, by another name, as if it had been there all the time."""
    pending = [1]

    def back(item: Item) -> Sequence[Item]:
        if not (pending and isinstance(item, Entry) and item.status is Status.DELETED):
            return [item]
        if item.file.content is not FileContent.DATA:
            return [item]
        pending.clear()
        path = f"{item.file.path}.back.parquet"
        Path("/", item.file.name + ".back.parquet").write_bytes(Path("/", item.file.name).read_bytes())
        file = replace(item.file, path=path, raw={**item.file.raw, "file_path": path})
        return [item, Entry(Status.EXISTING, item.file.snapshot_id, file)]

    staged.edit(back)


def delete_positions_beyond_the_rows(staged: Staged) -> None:
    def beyond(item: NewFile) -> Sequence[Item]:
        unit = staged.snapshot.by_key[staged.unit]
        (delete,) = (each for each in unit.positional if (each.path, each.content_offset) == _place(item))
        target = next(file for file in unit.files if file.path == delete.referenced)
        wide, location = replace(target, rows=1 << 30), item.path.replace(".", f"-{uuid.uuid4().hex[:8]}.", 1)
        if not delete.is_vector:
            held = read_positions(MACHINE, delete)[target.path] - BitMap64([0])
            return [write_positions(MACHINE, location, wide, _moved_out(held or BitMap64([0]), target.rows))]
        writer = PuffinVectorWriter(MACHINE, location)
        writer.add(wide, _moved_out(read_vector(MACHINE, delete, target.rows), target.rows))
        return list(writer.close())

    staged.edit_new(FileContent.POSITION_DELETES, beyond)


def _moved_out(held: BitMap64, rows: int) -> BitMap64:
    """As many positions, of which one is beyond the rows."""
    return (held - BitMap64([held.max()])) | BitMap64([rows])


def cut_a_footer(staged: Staged) -> None:
    """As many bytes as before."""
    path = Path("/", staged.new_data.name)
    data = path.read_bytes()
    path.write_bytes(data[:-20] + bytes(20))


# ---- what a published version states ----


def number_as_its_parent(document: Document) -> None:
    snapshot = newest(document)
    parent = next(each for each in document["snapshots"] if each["snapshot-id"] == snapshot["parent-snapshot-id"])
    snapshot["sequence-number"] = parent["sequence-number"]


def number_above_the_table(document: Document) -> None:
    document["last-sequence-number"] -= 1


def give_row_ids_again(document: Document) -> None:
    newest(document)["first-row-id"] = 0


def miscount(key: str) -> Callable[[Document], None]:
    def wrong(document: Document) -> None:
        summary = newest(document)["summary"]
        summary[key] = str(int(summary[key]) + 1)

    wrong.__name__ = f"miscount_{key.replace('-', '_')}"
    return wrong
