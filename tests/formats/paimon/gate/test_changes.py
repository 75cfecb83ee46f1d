"""Damage to what a compaction tells streaming readers: the gate catches each before it is published."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.formats.paimon.contents import SAMPLES, opened
from tests.formats.paimon.gate.test_sabotage import ONE_DAY, assert_stopped, before_the_gate
from tests.formats.paimon.sabotage import NO_STATISTICS, Staged
from tests.formats.paimon.upgrade import upgrade

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.metadata.entries import DELETE
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.model import Outcome

INSERT, BEFORE, AFTER, GONE = range(4)
KIND = "_VALUE_KIND"
Change = Callable[[pa.Table], pa.Table]


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    table = Path(shutil.copytree(SAMPLES / "orders", tmp_path / "orders"))
    return with_options(table, {"changelog-producer": "lookup"})


def with_options(table: Path, options: dict[str, str]) -> Path:
    path = max(table.glob("schema/schema-*"))
    document: dict[str, Any] = json.loads(path.read_bytes())
    document["options"] |= options
    path.write_text(json.dumps(document))
    return table


def test_a_sound_changelog_is_published(orders: Path) -> None:
    document = upgrade(orders, **ONE_DAY)
    assert document.outcome is Outcome.VERIFIED, document.reason
    raw = opened(orders).snapshot().raw
    assert raw["changelogRecordCount"] == sum(len(rows) for rows in _changelogs(orders))
    assert {kind for rows in _changelogs(orders) for kind in rows.column(KIND).to_pylist()} == {0, 1, 2, 3}


def _changelogs(table: Path) -> list[pa.Table]:
    return [pq.read_table(path) for path in sorted(table.rglob("changelog-nk-*.parquet"))]


def changed(change: Change) -> Callable[[Staged], None]:
    """Other rows in the unit's changelog file; what metadata states of it agrees with them."""

    def act(staged: Staged) -> None:
        bucket = _with_changelog(staged)
        path = staged.table / bucket.folder / bucket.changelog[0].name
        rows = change(pq.read_table(path))
        pq.write_table(rows, path, store_schema=False, store_decimal_as_integer=True, compression="zstd")
        retracts = sum(kind in (BEFORE, GONE) for kind in rows.column(KIND).to_pylist())
        with _entries(staged) as entries:
            (file,) = (e["_FILE"] for e in entries if e["_FILE"]["_FILE_NAME"] == path.name)
            file |= {"_FILE_SIZE": path.stat().st_size, "_ROW_COUNT": rows.num_rows, "_DELETE_ROW_COUNT": retracts}
            file |= {"_VALUE_STATS_COLS": [], "_VALUE_STATS": NO_STATISTICS}
        with _entries(staged) as entries:
            staged.say(changelogRecordCount=sum(e["_FILE"]["_ROW_COUNT"] for e in entries))

    return act


def _with_changelog(staged: Staged) -> Bucket:
    return next(b for b in opened(staged.table).staged(staged.candidate).units if b.changelog)


def _entries(staged: Staged) -> Any:
    (meta,) = staged.records(staged.document["changelogManifestList"])
    return staged.edited(meta["_FILE_NAME"])


def _place(rows: pa.Table, kind: int) -> int:
    return int(rows.column(KIND).to_pylist().index(kind))


def _set(rows: pa.Table, name: str, at: int, value: Any) -> pa.Table:
    values = rows.column(name).to_pylist()
    values[at] = value
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(name), pa.array(values, rows.schema.field(name).type))


def _without(rows: pa.Table, places: Sequence[int]) -> pa.Table:
    return rows.take([at for at in range(rows.num_rows) if at not in places])


def _twice(rows: pa.Table, at: int) -> pa.Table:
    return rows.take([*range(at + 1), *range(at, rows.num_rows)])


def _pair(rows: pa.Table) -> list[int]:
    return [_place(rows, BEFORE), _place(rows, BEFORE) + 1]


def _swapped(rows: pa.Table) -> pa.Table:
    at = _place(rows, BEFORE)
    return rows.take([*range(at), at + 1, at, *range(at + 2, rows.num_rows)])


def _reversed(rows: pa.Table) -> pa.Table:
    return rows.take(list(range(rows.num_rows))[::-1])


CAUGHT: dict[str, tuple[Change, str]] = {
    "an insert is missing": (lambda rows: _without(rows, [_place(rows, INSERT)]), "changes for streaming readers"),
    "a delete is missing": (lambda rows: _without(rows, [_place(rows, GONE)]), "changes for streaming readers"),
    "an update is missing": (lambda rows: _without(rows, _pair(rows)), "changes for streaming readers"),
    "half an update is missing": (lambda rows: _without(rows, _pair(rows)[:1]), "changes for streaming readers"),
    "an insert is doubled": (lambda rows: _twice(rows, _place(rows, INSERT)), "changes for streaming readers"),
    "a delete is doubled": (lambda rows: _twice(rows, _place(rows, GONE)), "keys of changes do not ascend"),
    "a row before is another": (
        lambda rows: _set(rows, "customer_id", _place(rows, BEFORE), "C-99999"),
        "changes for streaming readers",
    ),
    "a row after is another": (
        lambda rows: _set(rows, "note", _place(rows, AFTER), "never written"),
        "changes for streaming readers",
    ),
    "a deleted row is another": (
        lambda rows: _set(rows, "amount", _place(rows, GONE), None),
        "changes for streaming readers",
    ),
    "an insert is called an update": (
        lambda rows: _set(rows, KIND, _place(rows, INSERT), AFTER),
        "changes for streaming readers",
    ),
    "a row after is called an insert": (
        lambda rows: _set(rows, KIND, _place(rows, AFTER), INSERT),
        "a row of kind -U is not followed by its .U",
    ),
    "a row before is called a delete": (
        lambda rows: _set(rows, KIND, _place(rows, BEFORE), GONE),
        "changes for streaming readers",
    ),
    "a delete is called an insert": (
        lambda rows: _set(rows, KIND, _place(rows, GONE), INSERT),
        "changes for streaming readers",
    ),
    "a row after comes before": (_swapped, "not followed by its .U"),
    "keys are out of order": (_reversed, "keys of changes do not ascend"),
    "a sequence number is another": (
        lambda rows: _set(rows, "_SEQUENCE_NUMBER", 0, 1),
        "changes for streaming readers",
    ),
    "a stored key is another": (lambda rows: _set(rows, "_KEY_order_id", 0, -1), "_KEY_order_id differs from"),
}


@pytest.mark.parametrize("name", CAUGHT)
def test_the_gate_catches(name: str, orders: Path) -> None:
    change, reason = CAUGHT[name]
    with before_the_gate(orders, changed(change)):
        document = upgrade(orders, **ONE_DAY)
    assert_stopped(orders, document, reason)


def lose_a_file(staged: Staged) -> None:
    with _entries(staged) as entries:
        lost = entries.pop()
    with staged.edited(staged.document["changelogManifestList"]) as (meta,):
        meta["_NUM_ADDED_FILES"] -= 1
    staged.say(changelogRecordCount=staged.document["changelogRecordCount"] - lost["_FILE"]["_ROW_COUNT"])


def lose_the_list(staged: Staged) -> None:
    names = ("changelogManifestList", "changelogManifestListSize", "changelogRecordCount")
    staged.say(**dict.fromkeys(names))


def miscount_changes(staged: Staged) -> None:
    staged.say(changelogRecordCount=staged.document["changelogRecordCount"] + 1)


def change_an_entry(change: Callable[[Record], object]) -> Callable[[Staged], None]:
    def act(staged: Staged) -> None:
        with _entries(staged) as entries:
            change(entries[0])

    return act


def remove_by_an_entry(staged: Staged) -> None:
    change_an_entry(lambda entry: entry.update(_KIND=DELETE))(staged)
    with staged.edited(staged.document["changelogManifestList"]) as (meta,):
        meta |= {"_NUM_ADDED_FILES": meta["_NUM_ADDED_FILES"] - 1, "_NUM_DELETED_FILES": 1}


STOPPED: dict[str, tuple[Callable[[Staged], None], str]] = {
    "a file of changes is lost": (lose_a_file, "changes for streaming readers"),
    "the list of changes is lost": (lose_the_list, "changes for streaming readers"),
    "changes are miscounted": (miscount_changes, "changelogRecordCount [0-9]+, changelog files hold"),
    "deletes among changes are miscounted": (
        change_an_entry(lambda entry: entry["_FILE"].update(_DELETE_ROW_COUNT=0)),
        "deleteRowCount 0, expected",
    ),
    "changes are of another bucket": (
        change_an_entry(lambda entry: entry.update(_BUCKET=99)),
        "changes of a bucket that was not worked on",
    ),
    "a file of changes has another size": (
        change_an_entry(lambda entry: entry["_FILE"].update(_FILE_SIZE=1)),
        "1 bytes",
    ),
    "changes have other sequence numbers": (
        change_an_entry(lambda entry: entry["_FILE"].update(_MAX_SEQUENCE_NUMBER=1)),
        "sequence numbers",
    ),
    "an entry of changes removes a file": (remove_by_an_entry, "a changelog's entry that removes a file"),
}


@pytest.mark.parametrize("name", STOPPED)
def test_the_gate_catches_what_metadata_states_of_changes(name: str, orders: Path) -> None:
    act, reason = STOPPED[name]
    with before_the_gate(orders, act):
        document = upgrade(orders, **ONE_DAY)
    assert_stopped(orders, document, reason)


def test_equal_rows_are_reported_only_where_the_table_asks_for_it(orders: Path) -> None:
    """What the rewrite leaves out the gate does not miss, and the other way round."""
    with_options(orders, {"changelog-producer.row-deduplicate": "true"})

    def noisy(staged: Staged) -> None:
        def doubled(rows: pa.Table) -> pa.Table:
            at = _place(rows, AFTER)
            again = _set(rows.slice(at, 1), KIND, 0, BEFORE)
            return pa.concat_tables([rows.slice(0, at + 1), again, rows.slice(at)])

        changed(doubled)(staged)

    with before_the_gate(orders, noisy):
        document = upgrade(orders, **ONE_DAY)
    assert_stopped(orders, document, "changes for streaming readers")
    assert upgrade(orders, **ONE_DAY).outcome is Outcome.VERIFIED
