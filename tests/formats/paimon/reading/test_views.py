"""What a view reads of made buckets, and what a filter leaves of it: always the filtered rows of a full read."""

import pickle
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.paimon.made_bucket import MadeBucket, Row, buckets
from tests.support.examples import examples

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.paimon.data import columns as paimon_columns
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot, Schemas
from nightkeep.formats.paimon.reading.reading import reading_of
from nightkeep.formats.paimon.reading.views import sections
from nightkeep.model import Address, VersionIdentity
from nightkeep.protocol.reading import OpenReading, ReadView
from nightkeep.reading.plan import planned
from nightkeep.reading.request import ReadRequest, shown_rows
from nightkeep.reading.splits import read_split
from nightkeep.sql_text.rows.arrow_condition import is_true

VECTORS = {"deletion-vectors.enabled": "true"}
PLAIN = {"deletion-vectors.enabled": "false"}
TABLE = Address("paimon", "memory", "made")
CONDITIONS = (
    "k = 3",
    "k > 4 AND v IS NOT NULL",
    "v = 'b'",
    "v <> 'a' OR k < 2",
    "v IS NULL",
    "k IN (1, 7)",
    "NOT k < 5",
    "v LIKE 'c%'",
    "v IS NULL AND k = 0",
    "k > 100",
)


def snapshot_of(*units: Bucket) -> PaimonSnapshot:
    raw = {"id": 1, "commitKind": "APPEND"}
    return PaimonSnapshot(TABLE, VersionIdentity(1, ""), raw, units[0].schemas, units, *((),) * 7)


def rows(
    made: MadeBucket,
    view: ReadView,
    where: str | None = None,
    columns: tuple[str, ...] | None = None,
    *,
    footers: bool = False,
) -> list[dict[str, Any]]:
    request = ReadRequest(columns, where)
    reading = cast(OpenReading, reading_of(TABLE, made.storage))
    snapshot = snapshot_of(made.bucket())
    shown = shown_rows(request, reading.columns(snapshot))
    plan = planned(
        "made",
        "paimon",
        reading,
        snapshot,
        view,
        request=request,
        shown=shown,
        footers=footers,
        sections=reading.sections(snapshot, view),
    )
    again = pickle.loads(pickle.dumps((plan.splits, plan.shown)))
    found = [
        row for split in again[0] for batch in read_split(plan.files, split, again[1]) for row in batch.to_pylist()
    ]
    return sorted(found, key=repr)


def twin(made: MadeBucket, view: ReadView) -> list[tuple[Any, ...]]:
    if view is ReadView.MERGE_ON_READ:
        places = made.merged().values()
        return sorted(((made.rows[name][at].key, made.rows[name][at].value) for name, at in places), key=repr)
    upper = [file for file in made.files if file.level > (4 if view is ReadView.READ_OPTIMIZED else 0)]
    return sorted(((row.key, row.value) for file in upper for _, row in made.live(file.name)), key=repr)


@settings(max_examples=examples(60), deadline=None)
@given(buckets(options=VECTORS), st.sampled_from(ReadView))
def test_a_view_shows_its_rows(made: MadeBucket, view: ReadView) -> None:
    assert [(row["k"], row["v"]) for row in rows(made, view)] == twin(made, view)


@settings(max_examples=examples(120), deadline=None)
@given(buckets(options=VECTORS), st.sampled_from(ReadView), st.sampled_from(CONDITIONS), st.booleans())
def test_a_filtered_read_is_the_full_read_filtered(made: MadeBucket, view: ReadView, where: str, footers: bool) -> None:
    from_all = pa.Table.from_pylist(rows(made, view), pa.schema([("k", pa.int32()), ("v", pa.string())]))
    reading = reading_of(TABLE, made.storage)
    shown = shown_rows(ReadRequest(None, where), reading.columns(snapshot_of(made.bucket())))
    wanted = [row for row, kept in zip(from_all.to_pylist(), truth(from_all, shown.where), strict=True) if kept]
    assert rows(made, view, where, footers=footers) == wanted
    assert rows(made, view, where, ("v",)) == sorted(({"v": row["v"]} for row in wanted), key=repr)


def truth(table: pa.Table, where: Any) -> list[bool]:
    return list(is_true(where, table).to_pylist())


def test_small_row_groups_and_batches_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paimon_columns, "BATCH_ROWS", 3)
    made = MadeBucket(dict(VECTORS))
    held = [Row(k, None if k % 7 == 0 else f"v{k % 10}", k) for k in range(100)]
    made.add(5, held, hidden=[*range(10, 20), 31, 99], group_rows=10)
    live = [row for at, row in enumerate(held) if at not in made.hidden["data-0.parquet"]]
    assert sorted(row["k"] for row in rows(made, ReadView.RAW)) == [row.key for row in live]
    for where, test in (("k BETWEEN 25 AND 44", lambda r: 25 <= r.key <= 44), ("v = 'v3'", lambda r: r.value == "v3")):
        found = rows(made, ReadView.RAW, where, ("k",), footers=True)
        assert {row["k"] for row in found} == {row.key for row in live if test(row)}


def test_a_group_of_deleted_rows_is_left_out() -> None:
    made = MadeBucket(dict(VECTORS))
    made.add(5, [Row(1, "a"), Row(2, "b")], hidden=[0, 1])
    assert rows(made, ReadView.RAW) == [] == rows(made, ReadView.RAW, "k = 1")


def test_deleted_positions_beyond_a_file_are_named() -> None:
    made = MadeBucket(dict(VECTORS))
    made.add(5, [Row(1, "a"), Row(2, "b")], hidden=[5])
    with pytest.raises(CorruptMetadata, match=r"data-0\.parquet: expected deleted positions below its 2 rows, found 5"):
        rows(made, ReadView.RAW)


def test_overlapping_files_are_merged_and_others_are_not() -> None:
    made = MadeBucket(dict(PLAIN))
    made.add(5, [Row(1, "a"), Row(5, "a")])
    made.add(5, [Row(10, "a"), Row(15, "a")])
    made.add(4, [Row(3, "b", 1), Row(7, "b", 1)])
    made.add(0, [Row(40, "c", 2)])
    found = sections(snapshot_of(made.bucket()), ReadView.MERGE_ON_READ)
    shape = [(section.merges, [file.name for file in section.files]) for section in found]
    assert shape == [
        (True, ["data-2.parquet", "data-0.parquet"]),
        (True, ["data-3.parquet"]),
        (False, ["data-1.parquet"]),
    ]
    assert [section.decisive for section in found] == [{"k"}, {"k"}, set()]
    assert [file.name for file in found[0].unit.files] == ["data-2.parquet", "data-0.parquet"]


def test_files_with_deletes_above_level_0_are_merged() -> None:
    made = MadeBucket(dict(VECTORS))
    made.add(5, [Row(1, "a"), Row(5, "a")])
    made.add(4, [Row(5, "b", 3, 3)])
    assert [(row["k"], row["v"]) for row in rows(made, ReadView.RAW)] == [(1, "a")]


def test_a_file_is_left_out_of_a_merge_by_its_keys_only() -> None:
    """The newest row of key 5 has another value: leaving it out would show the old row."""
    made = MadeBucket(dict(PLAIN))
    made.add(5, [Row(1, "a"), Row(5, "a")])
    made.add(0, [Row(5, "z", 9)])
    assert rows(made, ReadView.MERGE_ON_READ, "v = 'a'") == [{"k": 1, "v": "a"}]
    assert rows(made, ReadView.MERGE_ON_READ, "k = 1") == [{"k": 1, "v": "a"}]


def test_the_raw_view_of_levels_that_repeat_keys_is_refused() -> None:
    made = MadeBucket(dict(PLAIN))
    made.add(5, [Row(1, "a")])
    with pytest.raises(RefusedTable, match="raw view of a table with primary keys and without deletion vectors"):
        sections(snapshot_of(made.bucket()), ReadView.RAW)


def test_a_narrowed_bucket_names_no_other_schema() -> None:
    made = MadeBucket(dict(VECTORS))
    made.add(5, [Row(1, "a")])
    bucket = made.bucket()
    other = replace(bucket.schemas.current, id=7)
    placed = replace(bucket, schemas=Schemas(bucket.schemas.current, {0: bucket.schemas.current, 7: other}))
    (section,) = sections(snapshot_of(placed), ReadView.RAW)
    assert set(section.unit.schemas.by_id) == {0}
