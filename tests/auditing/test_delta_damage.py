"""Compactions of Delta tables by a foreign writer, honest and damaged in one way each: the verdict of an audit."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from tests.auditing.delta_lake import DAY, OTHER, Action, Lake, commits, two_days
from tests.formats.delta.hand_made import SCHEMA, removal, rows_of

from nightkeep.model import Outcome


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return two_days(tmp_path)


def test_an_honest_compaction_is_proven_and_then_nothing_is_new(lake: Lake) -> None:
    version = lake.compact()
    document = lake.audit()
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert commits(document)[version]["verdict"] == "proven"
    assert document.committed_version is None and document.units[0].rows == 28
    again = lake.audit()
    assert (again.outcome, again.reason) == (Outcome.UNCHANGED, "no commit since the last audit")


def test_commits_that_change_rows_prove_nothing_and_are_not_green(lake: Lake) -> None:
    document = lake.audit()
    assert document.outcome is Outcome.SKIPPED, document.reason
    assert {each["verdict"] for each in commits(document).values()} == {"consistent"}


def _without(rows: pa.Table) -> pa.Table:
    return rows.slice(1)


def _doubled(rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows, rows.slice(0, 2)])


def _set(name: str, value: object) -> Callable[[pa.Table], pa.Table]:
    def change(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index(name)
        values = rows.column(name).to_pylist()
        return rows.set_column(place, SCHEMA.field(name), pa.array([value, *values[1:]], SCHEMA.field(name).type))

    return change


def _swapped(rows: pa.Table) -> pa.Table:
    """Two rows with each other's price: each column as a multiset is what it was."""
    place, prices = rows.schema.get_field_index("price"), rows.column("price").to_pylist()
    return rows.set_column(place, "price", pa.array([prices[1], prices[0], *prices[2:]], pa.float64()))


def _replaced(rows: pa.Table) -> pa.Table:
    """As many rows, one of them another one."""
    return pa.concat_tables([rows.slice(1), rows_of([999])])


@dataclass(frozen=True)
class Rows:
    """What a damage does to the rows of a compaction, and the counts that an audit finds."""

    change: Callable[[pa.Table], pa.Table]
    missing: int
    extra: int
    doubled: int = 0


ROWS = {
    "a row is lost": Rows(_without, 1, 0),
    "rows are doubled": Rows(_doubled, 0, 2, 2),
    "a value is another one": Rows(_set("price", 7.5), 1, 1),
    "a value is null": Rows(_set("note", None), 1, 1),
    "a text has one more space": Rows(_set("note", "n0 "), 1, 1),
    "two rows swap values": Rows(_swapped, 2, 2),
    "a row is another one at an equal count": Rows(_replaced, 1, 1),
    "a key is another one": Rows(_set("id", 1 << 62), 1, 1),
    "zero is negative": Rows(_set("price", -0.0), 1, 1),
    "no row is left": Rows(lambda rows: rows.slice(0, 0), 28, 0),
}


@pytest.mark.parametrize("damage", ROWS)
def test_a_compaction_that_changes_rows_is_found(lake: Lake, damage: str) -> None:
    wrong = ROWS[damage]
    good = lake.compact(day=OTHER)
    bad = lake.compact(wrong.change)
    document = lake.audit()
    found = commits(document)
    assert document.outcome is Outcome.MISMATCH
    assert (found[bad]["verdict"], found[good]["verdict"]) == ("differs", "proven")
    assert (found[bad]["missing"], found[bad]["extra"]) == (wrong.missing, wrong.extra)
    assert found[bad]["doubled"] == wrong.doubled
    assert f"version {bad}, OPTIMIZE" in str(document.reason)


def _moved_day(lake: Lake) -> None:
    held = lake.live()
    rows = pa.concat_tables([lake.rows(add) for add in held])
    lake.replace(held, [*lake.made.written(DAY, rows.slice(1)), *lake.made.written(OTHER, rows.slice(0, 1))])


def _forgotten_file(lake: Lake) -> None:
    lake.replace(lake.live()[:1], [])


def _dropped_vector(lake: Lake) -> None:
    held = next(add for add in lake.live() if add.get("deletionVector"))
    plain = {name: value for name, value in held.items() if name != "deletionVector"}
    lake.replace([held], [{"add": plain}])


def _with_vector(lake: Lake, change: Callable[[BitMap64], BitMap64]) -> None:
    held = next(add for add in lake.live() if add.get("deletionVector"))
    vector = lake.made.vectors({held["path"]: change(lake.made.deleted(held))})[held["path"]]
    lake.replace([held], [{"add": {**held, "deletionVector": vector}}])


def _stale(lake: Lake) -> None:
    """A compaction that began before another one, and takes the same files again."""
    held = lake.live()
    rows = pa.concat_tables([lake.rows(add) for add in held])
    lake.compact()
    lake.replace(held, lake.made.written(DAY, rows))


def _undeleted(lake: Lake) -> None:
    """A compaction that began before a delete: the rows are back."""
    held = lake.live()
    rows = pa.concat_tables([lake.rows(add) for add in held])
    lake.made.delete(DAY, [20, 21, 22])
    lake.replace(lake.live(), lake.made.written(DAY, rows))


def _misplaced(lake: Lake) -> None:
    lake.compact()
    lake.edit(lambda actions: [_with(action, "add", {"partitionValues": {"day": "then"}}) for action in actions])


KEPT: dict[str, tuple[Callable[[Lake], None], tuple[int, int, int]]] = {
    "a row moves to another partition": (_moved_day, (1, 1, 0)),
    "a file is forgotten": (_forgotten_file, (10, 0, 0)),
    "a vector is lost": (_dropped_vector, (0, 1, 0)),
    "a vector hides one row more": (lambda lake: _with_vector(lake, lambda gone: gone | BitMap64([9])), (1, 0, 0)),
    "a vector hides another row": (lambda lake: _with_vector(lake, lambda gone: BitMap64([9])), (1, 1, 0)),
    "a stale compaction takes files again": (_stale, (0, 28, 28)),
    "deleted rows are back": (_undeleted, (0, 3, 0)),
    "a partition value is not of the column": (_misplaced, (28, 28, 0)),
}


@pytest.mark.parametrize("damage", KEPT)
def test_files_and_vectors_that_change_rows_are_found(lake: Lake, damage: str) -> None:
    harm, counts = KEPT[damage]
    harm(lake)
    document = lake.audit()
    wrong = commits(document)[lake.made.version]
    assert (document.outcome, wrong["verdict"]) == (Outcome.MISMATCH, "differs"), document.reason
    assert (wrong["missing"], wrong["extra"], wrong["doubled"]) == counts


def _compacted(change: Callable[[list[Action]], list[Action]]) -> Callable[[Lake], None]:
    """An honest compaction, whose commit then has other actions."""

    def harm(lake: Lake) -> None:
        lake.compact()
        lake.edit(change)

    return harm


def _twice(kind: str) -> Callable[[Lake], None]:
    return _compacted(lambda actions: [*actions, *(each for each in actions if kind in each)])


def _added(**fields: Any) -> Callable[[Lake], None]:
    """Another value in the adds of a compaction."""
    return _compacted(lambda actions: [_with(action, "add", fields) for action in actions])


def _removed(**fields: Any) -> Callable[[Lake], None]:
    return _compacted(lambda actions: [_with(action, "remove", fields) for action in actions])


def _with(action: Action, kind: str, fields: Mapping[str, Any]) -> Action:
    return {kind: {**action[kind], **fields}} if kind in action else action


def _stated(**fields: Any) -> Callable[[Lake], None]:
    """Other statistics in the adds of a compaction."""
    return _compacted(lambda actions: [_with_statistics(action, fields) for action in actions])


def _with_statistics(action: Action, fields: Mapping[str, Any]) -> Action:
    if "add" not in action:
        return action
    stats = json.loads(action["add"]["stats"])
    for name, value in fields.items():
        stats[name] = {**stats[name], **value} if isinstance(value, dict) else value
    return _with(action, "add", {"stats": json.dumps(stats)})


def _hides_too_much(lake: Lake) -> None:
    lake.compact()
    path = lake.live()[0]["path"]
    vector = lake.made.vectors({path: BitMap64(range(40))})[path]
    lake.edit(lambda actions: [_with(action, "add", {"deletionVector": vector}) for action in actions])


def _hides_beyond(lake: Lake) -> None:
    """No statistics, so that only the footer shows it."""
    (add,) = lake.live(OTHER)
    vector = lake.made.vectors({add["path"]: BitMap64([2, 70])})[add["path"]]
    plain = {name: value for name, value in add.items() if name != "stats"}
    lake.made.commit("DELETE", {"remove": removal(add)}, {"add": {**plain, "deletionVector": vector}})


def _file_gone(lake: Lake) -> None:
    lake.compact()
    _newest(lake).unlink()


def _file_cut(lake: Lake) -> None:
    lake.compact()
    _newest(lake).write_bytes(_newest(lake).read_bytes()[:-20])


def _file_longer(lake: Lake) -> None:
    """The footer of another file after it: a reader that goes by the size in the log reads other rows than one that
    asks the store."""
    lake.compact()
    _newest(lake).write_bytes(_newest(lake).read_bytes() + b"PAR1")


def _footer_overwritten(lake: Lake) -> None:
    lake.compact()
    data = bytearray(_newest(lake).read_bytes())
    footer = struct.unpack("<I", data[-8:-4])[0]
    data[-8 - footer : -8] = b"\xff" * footer
    _newest(lake).write_bytes(data)


def _newest(lake: Lake) -> Path:
    return lake.made.folder / unquote(lake.live()[-1]["path"])


def _vector_gone(lake: Lake) -> None:
    (held,) = lake.live(OTHER)
    vector = lake.made.vectors({held["path"]: BitMap64()})[held["path"]]
    lake.replace([held], [{"add": {**held, "deletionVector": vector}}])
    _last_vectors(lake).unlink()


def _vector_damaged(lake: Lake) -> None:
    held = next(add for add in lake.live() if add.get("deletionVector"))
    vector = lake.made.vectors({held["path"]: lake.made.deleted(held)})[held["path"]]
    lake.replace([held], [{"add": {**held, "deletionVector": vector}}])
    path = _last_vectors(lake)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)


def _last_vectors(lake: Lake) -> Path:
    return max(lake.made.folder.glob("deletion_vector_*.bin"), key=lambda path: path.stat().st_mtime_ns)


UNSOUND: dict[str, tuple[Callable[[Lake], None], str]] = {
    "a file is added twice": (_twice("add"), "2 times"),
    "a file is removed twice": (_twice("remove"), "2 times"),
    "the log states fewer rows": (_stated(numRecords=27), "28 rows, the log states 27"),
    "a vector hides more rows than there are": (_hides_too_much, "hides 40 rows, and the file has 28"),
    "a vector hides a row beyond its file": (_hides_beyond, "70"),
    "a file is gone": (_file_gone, "part-00000"),
    "a file is cut": (_file_cut, "part-00000"),
    "a file is longer": (_file_longer, "bytes"),
    "a footer cannot be read": (_footer_overwritten, "part-00000"),
    "a vector is gone": (_vector_gone, "deletion_vector"),
    "a vector is damaged": (_vector_damaged, "deletion_vector"),
    "the log states another size": (_added(size=7), "bytes"),
    "a remove states another size": (_removed(size=7), "of 7 bytes"),
    "a remove has no vector": (_removed(deletionVector=None), "with vector None"),
    "statistics miss the greatest value": (_stated(maxValues={"price": 1.0}), "above the maximum"),
    "statistics miss the least value": (_stated(minValues={"id": 4}), "below the minimum"),
    "statistics have the ends swapped": (_stated(minValues={"id": 99}), "a minimum of id above its maximum"),
    "statistics state other nulls": (_stated(nullCount={"note": 0}), "nulls"),
    "statistics state more nulls than rows": (_stated(nullCount={"note": 99}), "99 nulls of note in 28 rows"),
    "a partition value has no column": (_added(partitionValues={"hour": "7"}), "hour"),
    "changes are reported of rows that were kept": (
        _compacted(lambda actions: [*actions, {"cdc": {"path": "x", "partitionValues": {}, "size": 1}}]),
        "files of changes",
    ),
}


def _untracked(lake: Lake) -> None:
    """The ids are those of the new file."""
    lake.compact(lambda rows: rows.drop_columns(["_row-id-col", "_row-commit-version-col"]))


def _renumbered(lake: Lake) -> None:
    def change(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index("_row-id-col")
        return rows.set_column(place, "_row-id-col", pa.array(range(500, 500 + len(rows)), pa.int64()))

    lake.compact(change)


def _updated(lake: Lake) -> None:
    """Rows that were not updated state a later version of their last update."""

    def change(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index("_row-commit-version-col")
        versions = [6, *rows.column("_row-commit-version-col").to_pylist()[1:]]
        return rows.set_column(place, "_row-commit-version-col", pa.array(versions, pa.int64()))

    lake.compact(change)


def _marked(mark: int) -> Callable[[Lake], None]:
    domain = {"configuration": json.dumps({"rowIdHighWaterMark": mark})}
    return _compacted(lambda actions: [_with(action, "domainMetadata", domain) for action in actions])


TRACKED: dict[str, tuple[Callable[[Lake], None], str, str]] = {
    "row ids are lost": (_untracked, "differs", "28 rows moved before, 28 after"),
    "row ids are others": (_renumbered, "differs", "28 rows moved before, 28 after"),
    "a row has another version": (_updated, "differs", "28 rows moved before, 28 after"),
    "the mark of row ids goes back": (_marked(12), "unsound", "high water mark is 12, and it was 39"),
    "row ids are above the mark": (_marked(50), "unsound", "row ids 40 to 67, above the high water mark, 50"),
    "row ids are given again": (_added(baseRowId=5), "unsound", "new row ids from 5 on, and the mark before was 39"),
    "a file is of a later version": (_added(defaultRowCommitVersion=9), "unsound", "rows of version 9"),
    "an in-commit timestamp goes back": (
        _compacted(lambda actions: [_with(action, "commitInfo", {"inCommitTimestamp": 5}) for action in actions]),
        "unsound",
        "its in-commit timestamp is 5",
    ),
}


@pytest.mark.parametrize("damage", TRACKED)
def test_damage_to_tracked_rows_is_found(tmp_path: Path, damage: str) -> None:
    lake = two_days(tmp_path, row_ids=True)
    harm, verdict, words = TRACKED[damage]
    harm(lake)
    document = lake.audit()
    wrong = commits(document)[lake.made.version]
    assert (document.outcome, wrong["verdict"]) == (Outcome.MISMATCH, verdict), document.reason
    assert words in str(wrong["why"])
    assert {each["verdict"] for each in commits(document).values()} == {verdict, "consistent"}


def test_a_compaction_that_keeps_row_ids_is_proven(tmp_path: Path) -> None:
    lake = two_days(tmp_path, row_ids=True)
    version = lake.compact()
    document = lake.audit()
    assert (document.outcome, commits(document)[version]["verdict"]) == (Outcome.VERIFIED, "proven"), document.reason


@pytest.mark.parametrize("damage", UNSOUND)
def test_metadata_that_contradicts_is_unsound(lake: Lake, damage: str) -> None:
    harm, words = UNSOUND[damage]
    harm(lake)
    document = lake.audit()
    wrong = commits(document)[lake.made.version]
    assert document.outcome is Outcome.MISMATCH, document.reason
    assert wrong["verdict"] in ("unsound", "differs") and words in str(wrong["why"]), wrong


def test_files_of_retained_versions_are_looked_for(lake: Lake) -> None:
    lake.compact()
    document = lake.audit(files=True)
    assert document.outcome is Outcome.VERIFIED and "0 missing" in str(document.reason), document.reason
    (lake.made.folder / unquote(lake.live(OTHER)[0]["path"])).unlink()
    document = lake.audit(files=True)
    assert document.outcome is Outcome.MISMATCH and "1 missing" in str(document.reason)


def test_a_file_of_another_size_is_found(lake: Lake) -> None:
    path = lake.made.folder / unquote(lake.live(OTHER)[0]["path"])
    path.write_bytes(path.read_bytes() + b"PAR1")
    document = lake.audit(files=True)
    assert document.outcome is Outcome.MISMATCH and "1 of another size" in str(document.reason)


def test_an_audit_changes_nothing_of_the_table(lake: Lake) -> None:
    lake.compact(_without)
    before = {path: path.stat().st_mtime_ns for path in lake.made.folder.rglob("*")}
    lake.audit(files=True)
    assert {path: path.stat().st_mtime_ns for path in lake.made.folder.rglob("*")} == before


@pytest.mark.parametrize(
    ("kind", "stated", "sentence"),
    [
        ("maxValues", {"id": -1}, "above the maximum"),
        ("minValues", {"id": 999}, "below the minimum"),
        ("nullCount", {"note": 0}, "has at least 4 nulls, statistics state 0"),
        ("nullCount", {"note": 19}, None),
    ],
)
def test_of_a_large_file_one_row_group_is_read(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, kind: str, stated: dict[str, int], sentence: str | None
) -> None:
    """Its nulls may be in the groups that are not read."""
    monkeypatch.setattr("nightkeep.formats.delta.reading.added_files._SMALL_BYTES", 0)
    rows = rows_of(range(500, 520))
    note = rows.schema.get_field_index("note")
    (action,) = lake.made.written(DAY, rows.set_column(note, "note", pa.nulls(len(rows), pa.string())))
    path = lake.made.folder / unquote(action["add"]["path"])
    pq.write_table(pq.read_table(path, partitioning=None), path, store_schema=False, row_group_size=4)
    statistics = json.loads(action["add"]["stats"])
    statistics[kind] |= stated
    action["add"] |= {"size": path.stat().st_size, "stats": json.dumps(statistics)}
    lake.made.commit("WRITE", action)
    found = commits(lake.audit())[lake.made.version]
    assert found["verdict"] == ("consistent" if sentence is None else "unsound"), found
    assert sentence is None or sentence in found["why"]
