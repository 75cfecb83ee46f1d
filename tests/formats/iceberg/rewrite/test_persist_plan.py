"""Which deletes persist-deletes takes on, where it looks for their rows, what it says of it: from metadata alone."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType, StructType, UUIDType

from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.metadata.conversions import to_bytes
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.rewrite import delete_matching as probing
from nightkeep.formats.iceberg.rewrite.delete_matching import probes
from nightkeep.formats.iceberg.rewrite.key_bounds import Span, spans
from nightkeep.formats.iceberg.rewrite.persist_plan import (
    TASK_ROWS,
    PersistTask,
    filter_note,
    persist_deletes,
    refuse_persisting,
    streaming_note,
)
from nightkeep.model import Address, Operation, Request, UnitKey
from nightkeep.protocol import Work

ID, NAME, UNIQUE, HALF, NESTED, INNER = 1, 2, 3, 4, 5, 6
FIELDS = (
    NestedField(ID, "id", LongType()),
    NestedField(NAME, "name", StringType()),
    NestedField(UNIQUE, "unique", UUIDType()),
    NestedField(HALF, "half", DoubleType()),
    NestedField(NESTED, "nested", StructType(NestedField(INNER, "inner", LongType()))),
)
REQUEST = Request(Operation.PERSIST_DELETES, now_ms=0)


def schema(version: int = 2) -> IcebergSchema:
    columns = Schema(*FIELDS)
    by_name = PartitionField(NAME, 1000, IdentityTransform(), "name")
    specs = {0: PartitionSpec(spec_id=0), 1: PartitionSpec(by_name, spec_id=1)}
    return IcebergSchema("t", version, "/t", columns, {0: columns}, specs, 1, {})


def stats(number: int, kind: Any, low: Any, high: Any, nulls: int = 0, rows: int = 10) -> dict[str, dict[int, Any]]:
    """What a manifest says of one column; bounds are left out where they are None."""
    told: dict[str, dict[int, Any]] = {"value_counts": {number: rows}, "null_value_counts": {number: nulls}}
    if low is not None:
        told |= {"lower_bounds": {number: to_bytes(kind, low)}, "upper_bounds": {number: to_bytes(kind, high)}}
    return told


def ids(low: int | None, high: int | None, nulls: int = 0) -> dict[str, dict[int, Any]]:
    return stats(ID, LongType(), low, high, nulls)


def file(content: FileContent, path: str, sequence: int, **told: Any) -> ContentFile:
    raw = {key: told.pop(key) for key in tuple(told) if key.endswith(("bounds", "counts", "sizes"))}
    given = {"rows": 10, "bytes": 1000, "format": "parquet", "spec_id": 1, "partition": ("a",), **told}
    return ContentFile(
        content=content,
        path=f"/t/{path}",
        name=f"t/{path}",
        sequence_number=sequence,
        file_sequence_number=sequence,
        snapshot_id=sequence,
        raw=raw,
        **given,
    )


def data(path: str, sequence: int = 1, **told: Any) -> ContentFile:
    return file(FileContent.DATA, path, sequence, **told)


def by_keys(path: str, sequence: int = 9, *, keys: Sequence[int] = (ID,), **told: Any) -> ContentFile:
    return file(FileContent.EQUALITY_DELETES, path, sequence, equality_ids=tuple(keys), **told)


def by_positions(path: str, of: str | None, sequence: int = 5, **told: Any) -> ContentFile:
    return file(FileContent.POSITION_DELETES, path, sequence, referenced=of and f"/t/{of}", **told)


def vector(of: str, offset: int, sequence: int = 5) -> ContentFile:
    return by_positions("v.puffin", of, sequence, format="puffin", content_offset=offset, content_bytes=40)


def unit(
    files: Sequence[ContentFile], deletes: Sequence[ContentFile], *, version: int = 2, name: str = "a"
) -> IcebergUnit:
    return IcebergUnit(
        key=UnitKey(f"name={name}"),
        partition={"name": name},
        spec_id=1,
        values=(name,),
        files=tuple(files),
        positional=tuple(each for each in deletes if each.content is FileContent.POSITION_DELETES),
        equality=tuple(each for each in deletes if each.content is FileContent.EQUALITY_DELETES),
        schema=schema(version),
    )


def snapshot(*units: IcebergUnit) -> IcebergSnapshot:
    return IcebergSnapshot(
        table=Address("iceberg", "c/n.t", "t"),
        version=7,
        parent_version=6,
        sequence_number=20,
        timestamp_ms=0,
        schema=units[0].schema,
        units=units,
        operation="append",
        summary={},
        manifests=(),
        raw={},
        metadata={},
        metadata_location="/t/metadata/v7.metadata.json",
    )


def work(*units: IcebergUnit, of: int = 0, request: Request = REQUEST) -> Work | None:
    return persist_deletes(snapshot(*units), units[of], request)


def tasks(found: Work | None) -> list[PersistTask]:
    assert found is not None
    return [task for task in found.tasks if isinstance(task, PersistTask)]


def probed(found: Work | None) -> dict[str, set[str]]:
    """Delete files by the data file in which their keys are looked for."""
    looked: dict[str, set[str]] = {}
    for task in tasks(found):
        for probe in task.probes:
            for held, count in zip(probe.files, probe.counts, strict=True):
                (alone,) = probes(task.unit, [held])
                looked[held.path] = {delete.path for delete in alone.deletes}
                assert len(alone.deletes) == count and {*alone.deletes} <= {*probe.deletes}
    return looked


def test_equality_deletes_are_looked_for_where_bounds_let_them_match() -> None:
    files = [
        data("low", **ids(0, 99)),
        data("high", **ids(200, 299)),
        data("unknown"),
        data("nulls", **ids(500, 600, nulls=3)),
        data("empty", **ids(None, None, nulls=10)),
        data("newer", 9, **ids(0, 99)),
    ]
    deletes = [by_keys("d", **ids(50, 150)), by_keys("e", 5, **ids(None, None, nulls=10)), by_keys("f", 3, **ids(5, 6))]
    found = work(unit(files, deletes))
    assert probed(found) == {
        "/t/low": {"/t/d", "/t/f"},
        "/t/unknown": {"/t/d", "/t/e", "/t/f"},
        "/t/nulls": {"/t/e"},
        "/t/empty": {"/t/e"},
    }
    (task,) = tasks(found)
    assert task.settled == {f"/t/{name}" for name in ("low", "high", "unknown", "nulls", "empty")}
    assert task.planned_sequence == 20
    assert found and found.reason == (
        "3 equality delete files of 30 keys for 5 older data files, 4 of which may have such rows"
    )
    assert found.input_files == ("t/f", "t/e", "t/d", "t/low", "t/unknown", "t/nulls", "t/empty")


def test_only_key_columns_count() -> None:
    files = [data("f", bytes=10**9, column_sizes={ID: 300, NAME: 10**8, HALF: 10**8})]
    assert (found := work(unit(files, [by_keys("d", bytes=50)]))) and found.input_bytes == 350
    files = [data("f", bytes=10**9)]
    assert (found := work(unit(files, [by_keys("d", bytes=50)]))) and found.input_bytes == 10**9 + 50


def test_one_column_that_cannot_match_is_enough() -> None:
    def both(low: int, text: str) -> dict[str, dict[int, Any]]:
        left, right = ids(low, low + 5), stats(NAME, StringType(), text, text + "z")
        return {key: left[key] | right[key] for key in left}

    files = [data("yes", **both(0, "m")), data("no", **both(0, "x")), data("neither", **both(9, "m"))]
    assert set(probed(work(unit(files, [by_keys("d", keys=(NAME, ID), **both(3, "m"))])))) == {"/t/yes"}


def test_bounds_of_a_narrower_type_count_as_those_of_the_wider() -> None:
    narrow = stats(ID, IntegerType(), -5, 7)
    assert len(narrow["lower_bounds"][ID]) == 4
    assert probed(work(unit([data("f", **narrow)], [by_keys("d", **ids(7, 9))])))
    assert not probed(work(unit([data("f", **narrow)], [by_keys("d", **ids(8, 9))])))


def test_bounds_that_nothing_can_be_read_from_rule_nothing_out() -> None:
    torn = {**ids(0, 1), "upper_bounds": {ID: b"\0"}}
    assert probed(work(unit([data("f", **torn)], [by_keys("d", **ids(8, 9))])))


def test_uuids_are_not_compared() -> None:
    low, high = (stats(UNIQUE, UUIDType(), UUID(int=at).bytes, UUID(int=at).bytes) for at in (1, 2**127))
    assert probed(work(unit([data("f", **low)], [by_keys("d", keys=(UNIQUE,), **high)])))


VALUES = st.one_of(st.none(), st.text(st.sampled_from("ab\u00e9\U0001f600"), max_size=4))


def cut(values: list[str | None]) -> dict[str, dict[int, Any]]:
    """Statistics with bounds of two characters, as engines cut them."""
    held = sorted(value for value in values if value is not None)
    told = stats(NAME, StringType(), None, None, values.count(None), len(values))
    if held:
        top = held[-1] if len(held[-1]) <= 2 else held[-1][:1] + chr(ord(held[-1][1]) + 1)
        told |= {"lower_bounds": {NAME: held[0][:2].encode()}, "upper_bounds": {NAME: top.encode()}}
    return told


@given(st.lists(VALUES, min_size=1, max_size=4), st.lists(VALUES, min_size=1, max_size=4))
def test_no_match_is_ever_lost(deleted: list[str | None], held: list[str | None]) -> None:
    matches = probed(work(unit([data("f", **cut(held))], [by_keys("d", keys=(NAME,), **cut(deleted))])))
    if set(deleted) & set(held):
        assert matches
    if not set(deleted) & set(held) and len(set(deleted) | set(held)) == 2 and None in (*deleted, *held):
        assert not matches


def obviously(deleted: Span, held: Span) -> bool:
    """A pair of columns by itself, as Java looks at it."""
    if deleted.may_be_null and held.may_be_null:
        return True
    if deleted.all_null or held.all_null:
        return False
    if None in (deleted.low, deleted.high, held.low, held.high):
        return True
    return deleted.low <= held.high and held.low <= deleted.high  # type: ignore[operator]


@st.composite
def told(draw: st.DrawFn) -> dict[str, dict[int, Any]]:
    """Statistics of a number and a text, or of one of them, or of nothing."""
    found: dict[str, dict[int, Any]] = {}
    low, name, nulls = draw(st.integers(0, 9)), draw(st.sampled_from("abc")), draw(st.sampled_from([0, 3, 10]))
    columns = [stats(ID, LongType(), low, low + 2, nulls), stats(NAME, StringType(), name, name + "z", nulls)]
    for each in draw(st.lists(st.sampled_from(columns), unique_by=str)):
        for key, value in each.items():
            found.setdefault(key, {}).update(value)
    return found


@given(
    st.lists(st.tuples(st.integers(1, 5), told()), max_size=6),
    st.lists(st.tuples(st.integers(1, 5), told()), max_size=6),
    st.integers(1, 9),
)
def test_pairs_are_those_that_an_obvious_look_at_each_finds(held: list[Any], deleted: list[Any], at_once: int) -> None:
    files = [data(f"f{number}", sequence, **more) for number, (sequence, more) in enumerate(held)]
    keys = [(ID,), (NAME, ID)]
    deletes = [
        by_keys(f"d{number}", sequence, keys=keys[number % 2], **more)
        for number, (sequence, more) in enumerate(deleted)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probing, "_PAIRS", at_once)
        found = {each.field_ids: each for each in probes(unit(files, deletes), files)}
    for columns in ((ID,), (ID, NAME)):
        expected = {
            (each.path, delete.path)
            for each in files
            for delete in deletes
            if tuple(sorted(delete.equality_ids)) == columns
            and each.sequence_number < delete.sequence_number
            and all(map(obviously, *spans([delete, each], [schema().field(number) for number in columns])))
        }
        if not expected:
            assert columns not in found
            continue
        probe = found[columns]
        assert dict(zip((each.path for each in probe.files), probe.counts, strict=True)) == Counter(
            path for path, _ in expected
        )
        assert {delete.path for delete in probe.deletes} == {path for _, path in expected}
        assert [*probe.deletes] == sorted(probe.deletes, key=lambda each: (each.sequence_number, each.path))


@pytest.mark.parametrize("version", [2, 3])
def test_nothing_to_do(version: int) -> None:
    good = [by_positions("p", "f")] if version == 2 else [vector("f", 4), vector("g", 44)]
    assert work(unit([data("f"), data("g")], good, version=version)) is None
    assert work(unit([data("f")], [], version=version)) is None
    assert work(unit([], [], version=version)) is None


def test_position_deletes_in_several_places() -> None:
    files = [data("f"), data("g"), data("h"), data("later", 6)]
    deletes = [by_positions("p", "f"), by_positions("q", "f"), by_positions("r", "h")]
    found = work(unit(files, deletes))
    assert found and found.reason == "position deletes of 1 data file in several places"
    assert tasks(found)[0].folded == {"/t/f"}
    # One that names no data file may be of all that are not newer.
    found = work(unit(files, [*deletes, by_positions("s", None)]))
    assert found and found.reason == "position deletes of 3 data files in several places"
    assert {delete.path for delete in tasks(found)[0].unit.positional} == {"/t/p", "/t/q", "/t/r", "/t/s"}


def test_version_3_wants_vectors() -> None:
    files = [data("f"), data("g")]
    found = work(unit(files, [by_positions("p", "f"), vector("g", 4)], version=3))
    assert found and found.reason == "position deletes of 1 data file in several places"
    # A vector takes the place of what position delete files say.
    assert tasks(work(unit(files, [by_positions("p", None), vector("g", 4)], version=3)))[0].folded == {"/t/f"}


def test_deletes_for_no_row_go() -> None:
    deletes = [by_positions("p", "gone"), by_positions("old", None, 2), by_keys("d", 3)]
    found = work(unit([data("f", 3)], deletes))
    assert found and found.reason == "3 delete files for no row of any data file"
    (task,) = tasks(found)
    assert not task.marked and not task.probes and not task.settled
    assert found.estimate.files_after == 0 and found.input_bytes == 0
    assert work(unit([], deletes))


def test_deletes_for_all_partitions_are_the_first_ones_to_drop() -> None:
    shared = by_keys("d", 3, spec_id=0, partition=())
    young = [unit([data("f", 3)], [shared]), unit([data("g", 4)], [shared], name="b")]
    assert (found := work(*young)) and found.reason == "1 delete file for no row of any data file"
    assert work(*young, of=1) is None
    old = [unit([data("f", 3)], [shared]), unit([data("g", 2)], [shared], name="b")]
    assert work(*old) is None
    assert tasks(work(*old, of=1))[0].settled == {"/t/g"}


def test_a_unit_where_nothing_can_match_is_settled_without_reading() -> None:
    found = work(unit([data("f", **ids(0, 9))], [by_keys("d", **ids(10, 19))]))
    assert found and found.input_bytes == 0 and found.input_files == ()
    (task,) = tasks(found)
    assert (task.marked, task.settled) == ((), {"/t/f"})


def test_tasks_share_the_rows_and_take_what_they_need() -> None:
    files = [data(f"f{n:02}", rows=TASK_ROWS // 5, **ids(n, n)) for n in range(24)]
    files += [data("pruned", **ids(99, 99)), data("newer", 9)]
    deletes = [by_keys("low", **ids(0, 11)), by_keys("high", **ids(12, 23))]
    deletes += [by_positions(f"p{n}", f"f{n:02}") for n in range(24)]
    found = tasks(work(unit(files, deletes)))
    assert [sum(marked.file.rows for marked in task.marked) for task in found] == [TASK_ROWS // 5 * 5] * 4 + [
        TASK_ROWS // 5 * 4
    ]
    settled = [path for task in found for path in task.settled]
    assert sorted(settled) == sorted(file.path for file in files if file.path != "/t/newer")
    for task in found:
        assert [file.path for file in task.unit.files] == [marked.file.path for marked in task.marked]
        assert {delete.referenced for delete in task.unit.positional} == {file.path for file in task.unit.files}
        wanted = {delete.path for probe in task.probes for delete in probe.deletes}
        assert {delete.path for delete in task.unit.equality} == wanted


def test_a_task_holds_a_part_of_its_memory_in_keys() -> None:
    small = Request(Operation.PERSIST_DELETES, now_ms=0, task_bytes=8 << 20)
    one = unit([data("f")], [by_keys("d")])
    assert [tasks(work(one, request=request))[0].index_bytes for request in (small, REQUEST)] == [1 << 20, 256 << 20]


def test_columns_without_one_meaning_of_equal_are_refused() -> None:
    for number, message in (
        (INNER, "by inner, a field within another"),
        (NESTED, "by nested, a struct<.*>, of which readers differ"),
    ):
        with pytest.raises(RefusedTable, match=message):
            refuse_persisting(snapshot(unit([data("f")], [by_keys("d", keys=(number,))])), REQUEST)
    refuse_persisting(snapshot(unit([data("f")], [by_keys("d", keys=(ID, NAME, UNIQUE, HALF))])), REQUEST)


def test_notes() -> None:
    shared = by_keys("d", spec_id=0, partition=())
    two = [unit([data("f")], [shared]), unit([data("g")], [shared], name="b")]
    assert "streaming-skip-delete-snapshots=true" in (streaming_note(snapshot(*two)) or "")
    assert filter_note(snapshot(*two)) == "1 equality delete file for all partitions: a filter leaves them in place"
    assert filter_note(snapshot(two[0])) is None
    assert filter_note(snapshot(unit([data("f")], [by_keys("d")]), unit([], [], name="b"))) is None
