"""Every kind of damage that a foreign writer can publish: an audit names the version, the verdict and the rows."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import pytest
from tests.auditing import iceberg_forgeries as forgeries
from tests.auditing.iceberg_audits import Audited, audited
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg import sabotage
from tests.formats.iceberg.runs import DAYS, Kept, configured, opened
from tests.formats.iceberg.sabotage import Act, Staged, converted, filled, rewritten

from nightkeep.encodings import polars_rows
from nightkeep.formats.iceberg.format import IcebergTable
from nightkeep.model import Candidate, Outcome, Plan, UnitKey

pytestmark = [pytest.mark.slow, pytest.mark.in_turn("kept")]

TOUCHED = [UnitKey(f"day={day}") for day in DAYS[:2]]
_NUMBERS = count()


@dataclass(frozen=True)
class Found:
    """What an audit must find: rows missing, extra and doubled of a commit that keeps rows, or why it is unsound."""

    rows: tuple[int, int, int] | None = None
    why: str = ""
    tracked: tuple[int, int, int] | None = None
    """In a table with row ids, where a row that is back is the same only if its id and its last change are."""

    @property
    def verdict(self) -> str:
        return "unsound" if self.rows is None else "differs"


def differs(missing: int, extra: int, doubled: int = 0, *, tracked: int | None = None) -> Found:
    return Found((missing, extra, doubled), tracked=(missing, extra, doubled if tracked is None else tracked))


def unsound(why: str) -> Found:
    return Found(why=why)


COMPACTED: Mapping[Act, Found] = {
    sabotage.drop_a_row: differs(1, 0),
    sabotage.repeat_a_row: differs(0, 1, 1),
    sabotage.repeat_one_row_and_drop_another: differs(1, 1, 1),
    sabotage.change_a_value: differs(1, 1),
    sabotage.swap_values_of_two_rows: differs(2, 2),
    sabotage.swap_null_and_empty: differs(2, 2),
    forgeries.write_null_for_a_value: differs(1, 1),
    forgeries.swap_columns: differs(19, 19),
    sabotage.give_a_column_another_id: differs(18, 18),
    sabotage.write_rows_of_another_partition: differs(1, 1),
    # Its bounds contradict its partition, where its rows are not read.
    forgeries.move_a_file_to_another_partition: differs(19, 0),
    sabotage.drop_a_new_file: differs(19, 0),
    sabotage.keep_an_old_file: differs(0, 24, 20, tracked=19),
    sabotage.claim_an_older_number: differs(1, 0),
    sabotage.remove_deletes_of_everything: differs(0, 1),
    sabotage.drop_a_manifest: differs(38, 0),
    forgeries.bring_a_file_back: differs(0, 1, 1),
    sabotage.miscount_rows: unsound("has 19 rows, its manifest states 20"),
    sabotage.miscount_bytes: unsound("bytes, its manifest states"),
    sabotage.raise_a_minimum: unsound("id has a value below its lower bound"),
    sabotage.lower_a_maximum: unsound("note has a value above its upper bound"),
    sabotage.miscount_nulls: unsound("note has 1 nulls, its manifest states 2"),
    sabotage.miscount_values: unsound("values, its manifest states"),
    sabotage.forget_that_a_file_is_gone: unsound("and records no removal"),
    sabotage.state_that_a_file_that_is_gone_had_more_rows: unsound("of 11 rows, and its parent has 10"),
    sabotage.overestimate_the_least_number: unsound("least sequence number"),
    sabotage.miscount_the_total: unsound("total-records 64, expected 63"),
    sabotage.miscount_the_change: unsound("added-records 39, and its manifests have 38"),
    sabotage.remove_a_file: unsound("no such file"),
    forgeries.cut_a_footer: unsound("footer|Parquet"),
    forgeries.add_a_file_twice: unsound("lists .* 2 times"),
    forgeries.add_what_is_live: unsound("which is live already"),
    forgeries.remove_a_file_twice: unsound("removes .* 2 times"),
    forgeries.remove_what_is_not_there: unsound("which its parent does not have"),
}
"""A compaction of two days of three."""
TRACKED: Mapping[Act, Found] = {
    sabotage.lose_row_ids: differs(19, 19),
    sabotage.swap_row_ids: differs(2, 2),
    sabotage.lose_numbers_of_the_last_change: differs(18, 18),
}
"""Of tables with row ids."""
CONVERTED: Mapping[Act, Found] = {
    sabotage.hide_other_rows: differs(1, 1),
    sabotage.show_a_deleted_row: differs(1, 1),
    sabotage.hide_one_more_row: differs(1, 0),
    sabotage.lose_positions: differs(0, 1),
    forgeries.delete_positions_beyond_the_rows: unsound("below its|below [0-9]+|which has [0-9]+ rows"),
    sabotage.miscount_deleted_rows: unsound("added-position-deletes 15, and its manifests have 16"),
    sabotage.give_deletes_another_partition: unsound("the partition of .*2026-12-24"),
    sabotage.cut_deletes: unsound("footer|expected [0-9]+ bytes as its manifest states"),
    sabotage.keep_deletes_by_keys: unsound("removed-equality-deletes 13, and its manifests have"),
}
"""Deletes by keys as positional ones."""
VECTORS: Mapping[Act, Found] = {
    sabotage.aim_at_another_file: unsound("type, length, codec, data file and cardinality|parquet"),
    sabotage.shorten_a_vector: unsound("type, length, codec, data file and cardinality|parquet"),
    sabotage.flip_a_bit_of_a_vector: unsound("expected crc"),
    sabotage.add_a_second_vector: unsound("one deletion vector"),
}
CHANGED: Mapping[Act, Found] = {
    act: COMPACTED[act]
    for act in (
        sabotage.miscount_bytes,
        sabotage.raise_a_minimum,
        sabotage.lower_a_maximum,
        sabotage.miscount_nulls,
        sabotage.miscount_values,
        sabotage.forget_that_a_file_is_gone,
        sabotage.state_that_a_file_that_is_gone_had_more_rows,
        sabotage.overestimate_the_least_number,
        sabotage.miscount_the_total,
        sabotage.miscount_the_change,
        sabotage.remove_a_file,
        forgeries.cut_a_footer,
        forgeries.add_a_file_twice,
        forgeries.add_what_is_live,
        forgeries.remove_a_file_twice,
        forgeries.remove_what_is_not_there,
        sabotage.miscount_rows,
    )
} | {
    forgeries.bring_a_file_back: unsound("as of earlier commits, and its parent does not have"),
    sabotage.write_rows_of_another_partition: unsound("column day"),
}
"""The same files by a commit that states that it changes rows."""
DELETED: Mapping[Act, Found] = {
    forgeries.delete_positions_beyond_the_rows: unsound("which has [0-9]+ rows"),
    sabotage.miscount_deleted_rows: CONVERTED[sabotage.miscount_deleted_rows],
    sabotage.cut_deletes: CONVERTED[sabotage.cut_deletes],
    sabotage.keep_deletes_by_keys: CONVERTED[sabotage.keep_deletes_by_keys],
}
PUBLISHED: Mapping[Callable[[forgeries.Document], None], Found] = {
    forgeries.number_as_its_parent: unsound("its sequence number is 6, and its parent has 6"),
    forgeries.number_above_the_table: unsound("its sequence number is 7, and the table has given 6"),
    **{
        forgeries.miscount(key): unsound(f"{key} [0-9]+, ")
        for key in (
            "total-records",
            "total-data-files",
            "total-delete-files",
            "total-position-deletes",
            "total-equality-deletes",
            "added-records",
            "added-data-files",
            "deleted-data-files",
            "deleted-records",
        )
    },
}
"""Metadata of the table."""


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate's own decoder, for small files too."""
    monkeypatch.setattr(polars_rows, "LEAST_ROWS", 1)


def _kept(java: IcebergJava, folders: pytest.TempPathFactory, *, version: int) -> Iterator[Kept]:
    warehouse = Warehouse(f"audited{next(_NUMBERS)}", folders.mktemp("audited"))
    with configured(warehouse):
        table = warehouse.table("shop.events")
        filled(java, table, DAYS, version=version)
        yield Kept.of(table)


@pytest.fixture(scope="module")
def plain(iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    yield from _kept(iceberg_java, tmp_path_factory, version=2)


@pytest.fixture(scope="module")
def tracked(iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    yield from _kept(iceberg_java, tmp_path_factory, version=3)


@pytest.fixture(params=["plain", "tracked"])
def kept(request: pytest.FixtureRequest) -> Table:
    """Of both versions of the format."""
    found: Kept = request.getfixturevalue(request.param)
    return found.put_back()


Make = Callable[[IcebergTable], tuple[Plan, Candidate]]
compacted: Make = partial(rewritten, keys=TOUCHED)


def state_that_rows_changed(staged: Staged) -> None:
    """By a writer that is not Nightkeep."""

    def stated(snapshot: dict[str, Any]) -> None:
        kept = {key: value for key, value in snapshot["summary"].items() if not key.startswith("nightkeep")}
        snapshot["summary"] = {**kept, "operation": "overwrite", "engine-name": "foreign"}

    staged.say(stated)


def published(table: Table, make: Make, *acts: Act) -> tuple[int, Audited]:
    """The version of a commit with these acts, and what an audit of it finds."""
    ours = opened(table)
    _, candidate = make(ours)
    for act in acts:
        act(Staged(ours, candidate, TOUCHED[0]))
    assert ours.commits.commit(candidate)
    return candidate.version, audited(table, since=candidate.parent_version)


def require(found: Audited, version: int, expected: Found, *, tracked: bool = False) -> None:
    assert found.outcome is Outcome.MISMATCH, found.document.reason
    assert [*found.wrong] == [version], found.wrong
    commit = found.wrong[version]
    assert commit["verdict"] == expected.verdict, commit
    assert re.search(expected.why, commit["why"] or "", re.S), commit["why"]
    assert str(version) in (found.document.reason or "")
    if expected.rows is not None:
        assert found.rows_of(version) == (expected.tracked if tracked else expected.rows)


def named(act: Callable[..., None]) -> str:
    return act.__name__


def parameters(table: Mapping[Any, Found]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("act", "expected"), table.items(), ids=[named(act) for act in table])


@pytest.mark.parametrize("make", [compacted, converted], ids=["compacted", "converted"])
def test_what_nobody_damaged_is_verified(kept: Table, make: Make) -> None:
    assert audited(kept, mark=f"mark{next(_NUMBERS)}").require_sound().outcome is Outcome.SKIPPED
    version, found = published(kept, make)
    assert found.require_sound().outcome is Outcome.VERIFIED
    assert found.verdicts == {version: "proven"}


@pytest.mark.parametrize("make", [compacted, converted], ids=["compacted", "converted"])
def test_a_change_of_rows_that_nobody_damaged_agrees_with_its_metadata(kept: Table, make: Make) -> None:
    version, found = published(kept, make, state_that_rows_changed)
    assert found.require_sound().verdicts == {version: "consistent"}


@parameters(COMPACTED)
def test_damage_of_a_compaction_is_found(act: Act, expected: Found, kept: Table) -> None:
    version, found = published(kept, compacted, act)
    require(found, version, expected, tracked=kept.document()["format-version"] == 3)


@parameters(TRACKED)
def test_damage_of_row_ids_is_found(act: Act, expected: Found, tracked: Kept) -> None:
    version, found = published(tracked.put_back(), compacted, act)
    require(found, version, expected)


@parameters(CONVERTED)
def test_damage_of_deletes_is_found(act: Act, expected: Found, kept: Table, iceberg_java: IcebergJava) -> None:
    """Which of the files an act damages depends on their names, which are random: Java's rows are what is expected."""
    version, found = published(kept, converted, act)
    if expected.rows is not None:
        expected = differs(*rows_apart(iceberg_java, kept, version))
        assert expected.rows != (0, 0, 0)
    require(found, version, expected)


def rows_apart(java: IcebergJava, table: Table, version: int) -> tuple[int, int]:
    """How many rows a version has lost and gained, as Java reads it and its parent."""
    (parent,) = (each["parent-snapshot-id"] for each in table.document()["snapshots"] if each["snapshot-id"] == version)
    before, after = (Counter(map(str, java.read(table, snapshot=each).rows)) for each in (parent, version))
    return (before - after).total(), (after - before).total()


@parameters(VECTORS)
def test_damage_of_vectors_is_found(act: Act, expected: Found, tracked: Kept) -> None:
    version, found = published(tracked.put_back(), converted, act)
    require(found, version, expected)


@parameters(CHANGED)
def test_damage_of_a_change_of_rows_is_found(act: Act, expected: Found, kept: Table) -> None:
    version, found = published(kept, compacted, act, state_that_rows_changed)
    require(found, version, expected)


@parameters(DELETED)
def test_damage_of_a_deletion_is_found(act: Act, expected: Found, kept: Table) -> None:
    version, found = published(kept, converted, act, state_that_rows_changed)
    require(found, version, expected)


@parameters(PUBLISHED)
def test_metadata_that_contradicts_itself_is_found(
    act: Callable[[forgeries.Document], None], expected: Found, kept: Table
) -> None:
    version, _ = published(kept, compacted)
    parent = forgeries.newest(kept.document())["parent-snapshot-id"]
    forgeries.republish(kept, act)
    require(audited(kept, since=parent), version, expected)


def test_row_ids_that_are_given_twice_are_found(tracked: Kept) -> None:
    table = tracked.put_back()
    version, _ = published(table, compacted)
    forgeries.republish(table, forgeries.give_row_ids_again)
    require(audited(table, mark=f"mark{next(_NUMBERS)}"), version, unsound("its row ids begin at 0"))
