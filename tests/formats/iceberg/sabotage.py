"""A staged candidate -> the same candidate, damaged in one way, its manifests made to agree where a liar would.

Acts change staged bytes of one unit: what its data files hold, which rows its deletes hide, what manifests, their list
and the snapshot say.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc
from pyroaring import BitMap64
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.laid_anew import a_run, laid_anew
from tests.formats.iceberg.runs import COLUMNS
from tests.formats.iceberg.shown import read_vector

from nightkeep.encodings.orc_writing import write_rows
from nightkeep.formats.iceberg.deletes.position_deletes import read_positions, write_positions
from nightkeep.formats.iceberg.deletes.vectors import PuffinVectorWriter
from nightkeep.formats.iceberg.format import IcebergTable
from nightkeep.formats.iceberg.metadata.content_files import (
    ContentFile,
    Entry,
    FileContent,
    Manifest,
    ManifestContent,
    NewFile,
    Status,
)
from nightkeep.formats.iceberg.metadata.file_records import PATH_FIELD
from nightkeep.formats.iceberg.metadata.locations import storage_name
from nightkeep.formats.iceberg.metadata.manifest_list import write_manifest_list
from nightkeep.formats.iceberg.metadata.manifests import read_manifest, write_manifest
from nightkeep.formats.iceberg.metadata.new_locations import metadata_location
from nightkeep.formats.iceberg.metadata.partition import unit_key
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.model import Candidate, Operation, Plan, Request, UnitKey
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.storage import LocalStorage
from nightkeep.tasks import inline

MACHINE = LocalStorage("/")
_BATCH_ROWS = 1024
Item = Entry | NewFile


def filled(
    java: IcebergJava, table: Table, days: Sequence[str], *, version: int, properties: Mapping[str, str] | None = None
) -> None:
    """Days in two files each, whose rows were changed by keys of their own day, then by one key of all days.

    The row of that key was written again since, in each day.
    """
    layout = Layout(partition=(("day", "identity"),), format_version=version, properties=properties)
    java.create(table, COLUMNS, layout)
    texts: Mapping[int, str | None] = {0: "", 1: None}
    for start in (0, 10):
        ids = range(start, start + 10)
        java.append(table, [[n, day, n / 4, texts.get(n, f"note {n}")] for day in days for n in ids])
    java.cdc(table, [("+U", [n, day, 0.5, "new"]) for day in days for n in (4, 5, 14, 4)], keys=["id", "day"])
    java.cdc(table, [("-D", [3, day, None, None]) for day in days], keys=["id", "day"])
    java.alter(table, {"change": "remove_partition_field", "name": "day"})
    java.commit(table, java.equality_deletes(table, [[7]], keys=("id",)))
    java.commit(table, java.rows(table, [[7, day, 7.5, "again"] for day in days], spec_id=0), kind="append")


def rewritten(table: IcebergTable, keys: Sequence[UnitKey]) -> tuple[Plan, Candidate]:
    """Every row of these units in a new file."""
    snapshot, run = table.snapshot(), a_run()
    candidate = table.commits.stage(
        snapshot, [laid_anew(table, snapshot, snapshot.by_key[key], run) for key in keys], run
    )
    return Plan(candidate.table, Operation.OPTIMIZE, snapshot.identity, ()), candidate


def converted(table: IcebergTable, where: str | None = None) -> tuple[Plan, Candidate]:
    """Deletes by keys as positional ones."""
    snapshot, run = table.snapshot(), a_run()
    found = plan(table, snapshot, Request(Operation.PERSIST_DELETES, run.now_ms, where=where))
    return found, table.commits.stage(snapshot, execute(table, found, run, mapper=inline), run)


@dataclass(frozen=True)
class Staged:
    """The staged snapshot of one candidate, and the unit in which it is to be damaged."""

    table: IcebergTable
    candidate: Candidate
    unit: UnitKey

    @property
    def snapshot(self) -> IcebergSnapshot:
        return self.table.staged(self.candidate)

    @property
    def parent(self) -> IcebergSnapshot:
        return self.table.snapshot(self.candidate.parent_version)

    @property
    def document(self) -> Path:
        return Path("/", self.candidate.metadata)

    def say(self, change: Callable[[dict[str, Any]], object]) -> None:
        """What the snapshot itself says, changed in place."""
        told = json.loads(self.document.read_text())
        change(told)
        self.document.write_text(json.dumps(told))

    def list_anew(self, manifests: Sequence[Manifest]) -> None:
        found = self.snapshot
        location = metadata_location(found.schema, f"snap-{found.version}-{uuid.uuid4().hex}.avro")
        first = found.raw.get("first-row-id")
        written = write_manifest_list(
            MACHINE,
            location,
            manifests,
            format_version=found.schema.format_version,
            snapshot_id=found.version,
            parent_id=found.parent_version,
            sequence_number=found.sequence_number,
            next_row_id=first if isinstance(first, int) else None,
        )
        own = {"manifest-list": location}
        self.say(lambda told: told.update(own))
        if written.next_row_id is not None and isinstance(first, int):
            added = {"added-rows": written.next_row_id - first}
            self.say(lambda told: told.update(added))

    def edit(self, change: Callable[[Item], Sequence[Item]]) -> None:
        """Each entry of the snapshot's own manifests -> those that are in its place."""
        found, manifests, changed = self.snapshot, [], False
        for manifest in found.manifests:
            own = manifest.snapshot_id == found.version
            items = [_item(entry, found) for entry in read_manifest(MACHINE, manifest, found.schema)] if own else []
            edited = [new for item in items for new in change(item)]
            if edited == items:
                fresh = own and manifest.content is ManifestContent.DATA
                manifests.append(replace(manifest, first_row_id=None) if fresh else manifest)
                continue
            changed = True
            if edited:
                manifests.append(self._written(manifest, edited))
        assert changed, "expected an act to change something"
        self.list_anew(manifests)

    def _written(self, manifest: Manifest, items: Sequence[Item]) -> Manifest:
        found = self.snapshot
        location = metadata_location(found.schema, f"{uuid.uuid4().hex}-m0.avro")
        return write_manifest(
            MACHINE,
            location,
            items,
            schema=found.schema,
            spec_id=manifest.spec_id,
            content=manifest.content,
            snapshot_id=found.version,
            sequence_number=found.sequence_number,
        )

    def is_new(self, item: Item, *contents: FileContent) -> bool:
        """Whether this snapshot adds it, to the unit."""
        return isinstance(item, NewFile) and item.content in contents and self._key(item) == self.unit

    def _key(self, item: NewFile) -> UnitKey:
        values = item.raw["partition"]
        assert isinstance(values, tuple)
        return unit_key(self.snapshot.schema, item.spec_id, values)

    def edit_new(self, content: FileContent, change: Callable[[NewFile], Sequence[Item]]) -> None:
        """The first new file of the unit."""
        pending = [1]

        def edited(item: Item) -> Sequence[Item]:
            if isinstance(item, NewFile) and self.is_new(item, content) and pending:
                pending.clear()
                return change(item)
            return [item]

        self.edit(edited)

    def describe(self, content: FileContent = FileContent.DATA, **changes: Any) -> None:
        """Other values of fields of the first new file's entry."""
        self.edit_new(content, lambda item: [replace(item, raw={**item.raw, **changes})])

    def rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Other rows in the first new data file; size and count are told as they are then, and nothing else is."""

        def again(item: NewFile) -> Sequence[Item]:
            path = Path("/", storage_name(item.path))
            if item.raw["file_format"] == "ORC":
                rows = change(orc.read_table(path))
                with orc.ORCWriter(path) as writer:
                    # Arrow's writer alone would lose what is null in structs.
                    write_rows(writer, rows, batch_rows=_BATCH_ROWS)
            else:
                rows = change(pq.read_table(path, partitioning=None))
                pq.write_table(rows, path, store_schema=False)
            told = dict.fromkeys(METRICS)
            size = {"record_count": rows.num_rows, "file_size_in_bytes": path.stat().st_size}
            return [replace(item, raw={**item.raw, **told, **size})]

        self.edit_new(FileContent.DATA, again)

    @property
    def new_data(self) -> ContentFile:
        own = self.snapshot
        return next(file for file in own.by_key[self.unit].files if file.snapshot_id == own.version)

    def metric(self, name: str, change: Callable[[Any], Any], field_id: int = 1) -> None:
        """One metric of a column, `id` by default."""

        def edited(item: NewFile) -> Sequence[Item]:
            held = item.raw[name]
            assert isinstance(held, Mapping)
            return [replace(item, raw={**item.raw, name: {**held, field_id: change(held.get(field_id))}})]

        self.edit_new(FileContent.DATA, edited)

    def hide(self, change: Callable[[BitMap64], BitMap64]) -> None:
        """Other positions in the first new positional deletes of the unit."""
        self.edit_new(FileContent.POSITION_DELETES, lambda item: [self._deletes(item, change)])

    def _deletes(self, item: NewFile, change: Callable[[BitMap64], BitMap64]) -> NewFile:
        own = self.snapshot
        unit = own.by_key[self.unit]
        (delete,) = (d for d in unit.positional if (d.path, d.content_offset) == _place(item))
        target = next(file for file in unit.files if file.path == delete.referenced)
        location = item.path.replace(".", f"-{uuid.uuid4().hex[:8]}.", 1)
        if not delete.is_vector:
            held = read_positions(MACHINE, delete)[target.path]
            return write_positions(MACHINE, location, target, change(held), file_format=delete.format)
        writer = PuffinVectorWriter(MACHINE, location)
        writer.add(target, change(read_vector(MACHINE, delete, target.rows)))
        (written,) = writer.close()
        return written


METRICS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "split_offsets",
)


def _place(item: NewFile) -> tuple[object, object]:
    return item.path, item.raw.get("content_offset")


def _item(entry: Entry, found: IcebergSnapshot) -> Item:
    """A new file as it was given to the writer: what it inherits is not written out."""
    if entry.status is not Status.ADDED:
        return entry
    number = entry.file.sequence_number
    raw = {**entry.file.raw, "first_row_id": None}
    return NewFile(entry.file.content, entry.file.spec_id, raw, None if number == found.sequence_number else number)


Act = Callable[[Staged], None]


# ---- rows of new data files ----


def drop_a_row(staged: Staged) -> None:
    staged.rewrite(lambda rows: pa.concat_tables([rows.slice(0, 5), rows.slice(6)]))


def repeat_a_row(staged: Staged) -> None:
    staged.rewrite(lambda rows: pa.concat_tables([rows.slice(0, 6), rows.slice(5)]))


def repeat_one_row_and_drop_another(staged: Staged) -> None:
    """Every count stays as it was."""
    staged.rewrite(lambda rows: rows.take([0, 0, *range(2, rows.num_rows)]))


def change_a_value(staged: Staged) -> None:
    staged.rewrite(lambda rows: _with(rows, price=[0.125, *rows.column("price").to_pylist()[1:]]))


def swap_values_of_two_rows(staged: Staged) -> None:
    def swapped(rows: pa.Table) -> pa.Table:
        prices = rows.column("price").to_pylist()
        other = next(place for place, price in enumerate(prices) if price != prices[0])
        prices[0], prices[other] = prices[other], prices[0]
        return _with(rows, price=prices)

    staged.rewrite(swapped)


def swap_null_and_empty(staged: Staged) -> None:
    swapped = {None: "", "": None}
    staged.rewrite(lambda rows: _with(rows, note=[swapped.get(n, n) for n in rows.column("note").to_pylist()]))


def give_a_column_another_id(staged: Staged) -> None:
    """Readers find nothing under the column's id and show nulls."""

    def renumbered(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index("note")
        field = rows.schema.field(place).with_metadata({"PARQUET:field_id": "77", "iceberg.id": "77"})
        return rows.set_column(place, field, rows.column(place))

    staged.rewrite(renumbered)


def write_rows_of_another_partition(staged: Staged) -> None:
    """The column says so itself; the partition of the file is as it was."""
    staged.rewrite(lambda rows: _with(rows, day=["2026-12-24", *rows.column("day").to_pylist()[1:]]))


def lose_row_ids(staged: Staged) -> None:
    """Every row would get a new id, as if it had been written today."""
    staged.rewrite(lambda rows: rows.drop_columns(["_row_id"]))


def swap_row_ids(staged: Staged) -> None:
    def swapped(rows: pa.Table) -> pa.Table:
        ids = rows.column("_row_id").to_pylist()
        return _with(rows, _row_id=[ids[1], ids[0], *ids[2:]])

    staged.rewrite(swapped)


def lose_numbers_of_the_last_change(staged: Staged) -> None:
    staged.rewrite(lambda rows: rows.drop_columns(["_last_updated_sequence_number"]))


def _with(rows: pa.Table, **columns: list[Any]) -> pa.Table:
    for name, values in columns.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), pa.array(values, rows.schema.field(place).type))
    return rows


# ---- what manifests say of new data files ----


def miscount_rows(staged: Staged) -> None:
    staged.describe(record_count=staged.new_data.rows + 1)


def miscount_bytes(staged: Staged) -> None:
    staged.describe(file_size_in_bytes=staged.new_data.bytes + 1)


def raise_a_minimum(staged: Staged) -> None:
    staged.metric("lower_bounds", lambda _: (1).to_bytes(8, "little"))


def lower_a_minimum(staged: Staged) -> None:
    """Readers answer MIN from it."""
    staged.metric("lower_bounds", lambda _: (-77).to_bytes(8, "little", signed=True))


def claim_a_sort_order(staged: Staged) -> None:
    staged.describe(sort_order_id=1)


def claim_another_format(staged: Staged) -> None:
    staged.describe(file_format="ORC")


def claim_that_it_is_avro(staged: Staged) -> None:
    staged.describe(file_format="AVRO")


def state_that_splits_begin_later(staged: Staged) -> None:
    """Engines that read a file from split to split may leave out what is before the first."""
    staged.describe(split_offsets=[staged.new_data.bytes // 2])


def miscount_bytes_of_a_column(staged: Staged) -> None:
    staged.metric("column_sizes", lambda size: size + 1)


def forget_that_a_file_is_gone(staged: Staged) -> None:
    """Nobody deletes it when the snapshots before expire, and who works on it does not find out."""
    staged.edit(lambda item: [] if _has_gone(staged, item) else [item])


def state_that_a_file_that_is_gone_had_more_rows(staged: Staged) -> None:
    def more(item: Item) -> Sequence[Item]:
        if not isinstance(item, Entry) or not _has_gone(staged, item):
            return [item]
        rows = item.file.rows + 1
        return [replace(item, file=replace(item.file, rows=rows, raw={**item.file.raw, "record_count": rows}))]

    staged.edit(more)


def _has_gone(staged: Staged, item: Item) -> bool:
    return isinstance(item, Entry) and _is_gone(staged, item, FileContent.DATA)


def head_a_manifest_by_another_spec(staged: Staged) -> None:
    """Readers that take the spec from there look for other partitions. As many bytes as before."""
    found = staged.snapshot
    own = next(manifest for manifest in found.manifests if manifest.snapshot_id == found.version)
    path, before = Path("/", own.name), f"partition-spec-id\2{own.spec_id}".encode()
    data = path.read_bytes()
    assert before in data
    path.write_bytes(data.replace(before, b"partition-spec-id\x027", 1))


def head_the_list_by_another_snapshot(staged: Staged) -> None:
    """By which a sweep tells whose list it is. As many bytes as before."""
    found = staged.snapshot
    path, before = Path("/", storage_name(str(found.raw["manifest-list"]))), str(found.version).encode()
    data = path.read_bytes()
    assert before in data
    path.write_bytes(data.replace(before, before[:-1] + (b"1" if before[-1:] == b"0" else b"0"), 1))


def lower_a_maximum(staged: Staged) -> None:
    staged.metric("upper_bounds", lambda _: b"note 1", field_id=4)


def miscount_nulls(staged: Staged) -> None:
    staged.metric("null_value_counts", lambda count: count + 1, field_id=4)


def miscount_values(staged: Staged) -> None:
    staged.metric("value_counts", lambda count: count - 1)


def drop_a_new_file(staged: Staged) -> None:
    staged.edit(lambda item: [] if staged.is_new(item, FileContent.DATA) else [item])


def keep_an_old_file(staged: Staged) -> None:
    """Its rows are there twice, and what was deleted of them is back."""

    def kept(item: Item) -> Sequence[Item]:
        if isinstance(item, NewFile) or not _is_gone(staged, item, FileContent.DATA):
            return [item]
        return [replace(item, status=Status.EXISTING, snapshot_id=item.file.snapshot_id)]

    staged.edit(kept)


def claim_an_older_number(staged: Staged) -> None:
    """Deletes by keys that came before the rows hold for them again."""
    staged.edit_new(FileContent.DATA, lambda item: [replace(item, sequence_number=1)])


def claim_a_newer_number(staged: Staged) -> None:
    """Deletes by keys that came since the plan would not hold any more; here are none."""
    staged.edit_new(FileContent.DATA, lambda item: [replace(item, sequence_number=None)])


# ---- positional deletes ----


def hide_other_rows(staged: Staged) -> None:
    """As many as before, so that every count agrees."""

    def shifted(rows: BitMap64) -> BitMap64:
        free = next(n for n in range(100) if n not in rows)
        return (rows - BitMap64([rows.min()])) | BitMap64([free])

    staged.hide(shifted)


def show_a_deleted_row(staged: Staged) -> None:
    staged.hide(lambda rows: rows - BitMap64([rows.max()]) if len(rows) > 1 else BitMap64([rows.max() ^ 1]))


def hide_one_more_row(staged: Staged) -> None:
    """What a delete of another partition, or of no older row, would hide if it held."""
    staged.hide(lambda rows: rows | BitMap64([next(n for n in range(100) if n not in rows)]))


def lose_positions(staged: Staged) -> None:
    staged.edit_new(FileContent.POSITION_DELETES, lambda item: [])


def bound_positions_by_another_path(staged: Staged) -> None:
    """Readers that match deletes by bounds of their paths find none for the data file."""
    other = {PATH_FIELD: b"file:///zzz"}
    staged.describe(FileContent.POSITION_DELETES, lower_bounds=other, upper_bounds=other)


def put_deletes_before_their_rows(staged: Staged) -> None:
    """Older than the data file, they hold for none of its rows."""
    staged.edit_new(FileContent.POSITION_DELETES, lambda item: [replace(item, sequence_number=0)])


def miscount_deleted_rows(staged: Staged) -> None:
    staged.edit_new(
        FileContent.POSITION_DELETES, lambda item: [replace(item, raw={**item.raw, "record_count": _count(item) + 1})]
    )


def _count(item: NewFile) -> int:
    count = item.raw["record_count"]
    assert isinstance(count, int)
    return count


def aim_at_another_file(staged: Staged) -> None:
    """Vectors of two data files, each told to be the other's."""
    new = list(_new_deletes(staged))
    first, second = new[:2]
    targets = {_place(first): second.raw["referenced_data_file"], _place(second): first.raw["referenced_data_file"]}

    def swapped(item: Item) -> Sequence[Item]:
        if not isinstance(item, NewFile) or _place(item) not in targets:
            return [item]
        return [replace(item, raw={**item.raw, "referenced_data_file": targets[_place(item)]})]

    staged.edit(swapped)


def _new_deletes(staged: Staged) -> Iterator[NewFile]:
    found = staged.snapshot
    for manifest in found.manifests:
        if manifest.snapshot_id == found.version:
            for item in (_item(entry, found) for entry in read_manifest(MACHINE, manifest, found.schema)):
                if isinstance(item, NewFile) and staged.is_new(item, FileContent.POSITION_DELETES):
                    yield item


def give_deletes_another_partition(staged: Staged) -> None:
    staged.describe(FileContent.POSITION_DELETES, partition=("2026-12-24",))


def cut_deletes(staged: Staged) -> None:
    path = Path("/", storage_name(next(_new_deletes(staged)).path))
    path.write_bytes(path.read_bytes()[:-20])


def state_that_deletes_are_encrypted(staged: Staged) -> None:
    staged.describe(FileContent.POSITION_DELETES, key_metadata=b"key")


def state_that_they_replace_rows(staged: Staged) -> None:
    """Java's compaction looks for new deletes in other snapshots alone: it would bring the rows back."""

    def wrong(told: dict[str, Any]) -> None:
        told["summary"] |= {"operation": "replace", "nightkeep.operation": "optimize"}

    staged.say(wrong)


def shorten_a_vector(staged: Staged) -> None:
    length = next(_new_deletes(staged)).raw["content_size_in_bytes"]
    assert isinstance(length, int)
    staged.describe(FileContent.POSITION_DELETES, content_size_in_bytes=length - 1)


def flip_a_bit_of_a_vector(staged: Staged) -> None:
    item = next(_new_deletes(staged))
    path, at = Path("/", storage_name(item.path)), item.raw["content_offset"]
    assert isinstance(at, int)
    data = bytearray(path.read_bytes())
    data[at + 20] ^= 1
    path.write_bytes(data)


def add_a_second_vector(staged: Staged) -> None:
    def twice(item: NewFile) -> Sequence[Item]:
        writer = PuffinVectorWriter(MACHINE, item.path.replace(".", "-second.", 1))
        target = next(
            f for f in staged.snapshot.by_key[staged.unit].files if f.path == item.raw["referenced_data_file"]
        )
        writer.add(target, BitMap64([0]))
        return [item, *writer.close()]

    staged.edit_new(FileContent.POSITION_DELETES, twice)


# ---- deletes by keys ----


def remove_deletes_of_everything(staged: Staged) -> None:
    """Those that hold for all partitions, of which some still need them."""
    gone = {delete.path for delete in staged.parent.stray}
    found = staged.snapshot
    gone |= {d.path for unit in found.units for d in unit.equality if found.schema.is_global(d.spec_id)}
    assert gone
    manifests = []
    for manifest in found.manifests:
        entries = read_manifest(MACHINE, manifest, found.schema)
        if not {entry.file.path for entry in entries} & gone:
            manifests.append(manifest)
            continue
        items = [
            Entry(Status.DELETED, found.version, e.file) if e.file.path in gone else _item(e, found) for e in entries
        ]
        kept = [
            i
            for i in items
            if isinstance(i, NewFile) or i.status is not Status.DELETED or i.snapshot_id == found.version
        ]
        manifests.append(staged._written(manifest, [_existing(i) for i in kept]))
    staged.list_anew(manifests)


def keep_deletes_by_keys(staged: Staged) -> None:
    """Done with, but listed still: they hide nothing more."""

    def kept(item: Item) -> Sequence[Item]:
        if isinstance(item, NewFile) or not _is_gone(staged, item, FileContent.EQUALITY_DELETES):
            return [item]
        return [replace(item, status=Status.EXISTING, snapshot_id=item.file.snapshot_id)]

    staged.edit(kept)


def _is_gone(staged: Staged, entry: Entry, content: FileContent) -> bool:
    file = entry.file
    same = unit_key(staged.snapshot.schema, file.spec_id, file.partition) == staged.unit
    return entry.status is Status.DELETED and file.content is content and same


def _existing(item: Item) -> Item:
    if isinstance(item, NewFile) or item.status is Status.DELETED:
        return item
    return replace(item, status=Status.EXISTING)


# ---- the snapshot ----


def drop_a_manifest(staged: Staged) -> None:
    """Of data that the parent had, too."""
    found = staged.snapshot
    lost = next(m for m in found.manifests if m.content is ManifestContent.DATA and m.live_files)
    staged.list_anew([manifest for manifest in found.manifests if manifest is not lost])


def overestimate_the_least_number(staged: Staged) -> None:
    """Readers leave out deletes that are older than all data is said to be."""
    found = staged.snapshot
    lines = [
        replace(m, min_sequence_number=m.sequence_number) if m.content is ManifestContent.DATA else m
        for m in found.manifests
    ]
    assert lines != list(found.manifests)
    staged.list_anew(lines)


def miscount_the_total(staged: Staged) -> None:
    def wrong(told: dict[str, Any]) -> None:
        told["summary"]["total-records"] = str(int(told["summary"]["total-records"]) + 1)

    staged.say(wrong)


def state_that_rows_changed(staged: Staged) -> None:
    def wrong(told: dict[str, Any]) -> None:
        told["summary"]["operation"] = "overwrite"
        told["summary"].pop("nightkeep.operation", None)

    staged.say(wrong)


def state_that_rows_were_deleted(staged: Staged) -> None:
    """Streaming readers stop at it."""

    def wrong(told: dict[str, Any]) -> None:
        told["summary"]["operation"] = "delete"

    staged.say(wrong)


def miscount_the_change(staged: Staged) -> None:
    def wrong(told: dict[str, Any]) -> None:
        told["summary"]["added-records"] = str(int(told["summary"]["added-records"]) + 1)

    staged.say(wrong)


def commit_by_another_name(staged: Staged) -> None:
    """A retry of the run does not find its commit."""

    def wrong(told: dict[str, Any]) -> None:
        told["summary"]["nightkeep.run"] = "somebody"

    staged.say(wrong)


def state_the_time_too_late(staged: Staged) -> None:
    """Until then Java refuses every other commit."""

    def wrong(told: dict[str, Any]) -> None:
        told["timestamp-ms"] += 24 * 3_600_000

    staged.say(wrong)


def forget_the_schema(staged: Staged) -> None:
    """Time travel shows its rows by whatever schema comes later."""

    def wrong(told: dict[str, Any]) -> None:
        del told["schema-id"]

    staged.say(wrong)


def cut_the_snapshot(staged: Staged) -> None:
    staged.document.write_text(staged.document.read_text()[:-20])


def remove_a_file(staged: Staged) -> None:
    Path("/", staged.new_data.name).unlink()
