"""Rows that a condition is true for are hidden and written anew as they are set: which, how, and what is refused."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.drivers.json_lines import EngineError
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout
from tests.formats.paimon import sabotage
from tests.formats.paimon.appended import SMALL, VECTORS, Appended
from tests.formats.paimon.contents import opened
from tests.formats.paimon.gate.test_sabotage import before_the_gate
from tests.formats.paimon.rewrite.append.test_delete import asleep, hide_one_row_less, hide_one_row_more
from tests.formats.paimon.sabotage import Act, Staged
from tests.support.table_storage import storage_of

from nightkeep.checking.check import check
from nightkeep.errors import UsageError
from nightkeep.formats.paimon.metadata.row_changes import StatedChange, row_change
from nightkeep.formats.paimon.rewrite.append.update import AppendUpdate, count_updates, refuse_updates, update_rows
from nightkeep.model import Address, Operation, Outcome, Request
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

COLUMNS = (("n", "INT"), ("text", "STRING"), ("price", "DECIMAL(7, 2)"), ("short", "VARCHAR(4)"), ("at", "TIME(3)"))
DAYS = ("d1", None)
Row = tuple[Any, ...]


@pytest.fixture
def table(paimon_java: PaimonJava, tmp_path: Path) -> Appended:
    return worn(paimon_java, tmp_path / "t")


def worn(paimon_java: PaimonJava, folder: Path) -> Appended:
    """Files of ids 1-20, 21-40 and 41-60, of two days each, some of whose rows are deleted already."""
    table = Appended.create(paimon_java, folder, {**VECTORS, **SMALL}, columns=COLUMNS)
    for first in (1, 21, 41):
        paimon_java.write(table.folder, [("+I", *_row(number)) for number in range(first, first + 20)])
    table.delete(0.2)
    return table


def _row(number: int) -> Row:
    n, text = (None if number % 5 == 0 else number % 7), (None if number % 4 == 0 else f"t{number % 3}")
    return number, DAYS[number % 2], n, text, f"{number}.50", "abc", "10:00:00.000"


def expected(rows: list[Row], matches: Callable[[Row], bool], change: Callable[[Row], Row]) -> list[Row]:
    return sorted((change(row) if matches(row) else row for row in rows), key=repr)


@pytest.mark.parametrize(
    ("sets", "condition", "matches", "change"),
    [
        (["n = 0"], "id = 5", lambda r: r[0] == 5, lambda r: (*r[:2], 0, *r[3:])),
        (
            ["n = n + id"],
            "id > 30",
            lambda r: r[0] > 30,
            lambda r: (*r[:2], None if r[2] is None else r[2] + r[0], *r[3:]),
        ),
        (["text = NULL", "n = 7"], "n = 3", lambda r: r[2] == 3, lambda r: (*r[:2], 7, None, *r[4:])),
        (
            ["id = n", "n = id"],
            "n <> 3",
            lambda r: r[2] is not None and r[2] != 3,
            lambda r: (r[2], r[1], r[0], *r[3:]),
        ),
        (
            ["text = concat(text, '-', CAST(id AS STRING))"],
            "day IS NULL",
            lambda r: r[1] is None,
            lambda r: (*r[:3], None if r[3] is None else f"{r[3]}-{r[0]}", *r[4:]),
        ),
        (
            ["price = price * 2", "short = 'x'"],
            "text IS NULL OR id = 1",
            lambda r: r[3] is None or r[0] == 1,
            lambda r: (*r[:4], f"{2 * r[0] + 1}.00", "x", r[6]),
        ),
        (
            ["n = CASE WHEN n IS NULL THEN -1 ELSE n END"],
            "day = 'd1'",
            lambda r: r[1] == "d1",
            lambda r: (*r[:2], -1 if r[2] is None else r[2], *r[3:]),
        ),
    ],
)
def test_the_rows_for_which_it_is_true_are_set(
    table: Appended, sets: list[str], condition: str, matches: Callable[[Row], bool], change: Callable[[Row], Row]
) -> None:
    before = table.rows()
    count = sum(map(matches, before))
    counted = table.update_where(condition, sets, dry_run=True)
    assert counted.extra["matching_rows"] == count > 0 and "updated" in str(counted.reason)
    document = table.update_where(condition, sets)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert table.rows() == expected(before, matches, change)
    assert document.metrics.deleted_rows_marked == count and document.go_back
    snapshot = table.java.snapshot(table.folder)
    assert snapshot is not None and (snapshot["commitKind"], snapshot["operation"]) == ("OVERWRITE", "UPDATE")
    assert snapshot["deltaRecordCount"] <= count
    assert table.vectors().keys() <= {file.name for file in table.files()}
    assert table.optimize(full=True).outcome is Outcome.VERIFIED
    assert table.rows() == expected(before, matches, change)


def test_a_commit_has_both_and_the_same_run_again_finds_it(table: Appended) -> None:
    """An update of every row removes its files: readers see old rows or new rows, never both."""
    before = table.rows()
    first = table.update_where("id <= 40", ["n = coalesce(n, 0) + 1"], run_id="once")
    assert first.outcome is Outcome.VERIFIED and len(first.commits) == 1
    truth = expected(before, lambda r: r[0] <= 40, lambda r: (*r[:2], (r[2] or 0) + 1, *r[3:]))
    assert table.rows() == truth
    again = table.update_where("id <= 40", ["n = coalesce(n, 0) + 1"], run_id="once")
    assert (again.committed_version, table.rows()) == (first.committed_version, truth)
    assert [commit.units for commit in again.commits] == [commit.units for commit in first.commits] != [()]
    assert table.rows(first.committed_version) == truth and table.rows((first.committed_version or 0) - 1) == before


def test_no_row_that_matches_is_no_commit(table: Appended) -> None:
    document = table.update_where("n = 5000", ["n = 1"])
    assert document.outcome is Outcome.UNCHANGED, document.reason


def test_rows_of_older_schemas_are_written_under_the_newest(table: Appended) -> None:
    table.java.alter(table.folder, {"change": "rename_column", "name": "n", "to": "m"})
    table.java.alter(table.folder, {"change": "add_column", "name": "more", "type": "BIGINT"})
    table.java.alter(table.folder, {"change": "change_type", "name": "m", "type": "BIGINT"})
    before = table.rows()
    document = table.update_where("m > 2 AND more IS NULL", ["more = m * 3000000000", "text = 'new'"])
    assert document.outcome is Outcome.VERIFIED, document.reason
    change = expected(
        before, lambda r: r[2] is not None and r[2] > 2, lambda r: (*r[:3], "new", *r[4:7], r[2] * 3_000_000_000)
    )
    assert table.rows() == change


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["n = n + 2147483647"], "the new value of n: overflow"),
        (["price = price * 10000"], "the new value of price: "),
        (["short = text || text"], r"has 4 characters|VARCHAR\(3\)"),
        (["must = n"], "new value of must is NULL, column must is NOT NULL"),
        (["real = 1 / (n - 1)"], "divide by zero"),
    ],
)
def test_a_value_that_does_not_exist_or_fit_is_refused(
    paimon_java: PaimonJava, tmp_path: Path, sets: list[str], message: str
) -> None:
    columns = (
        ("n", "INT"),
        ("text", "STRING"),
        ("price", "DECIMAL(4, 2)"),
        ("short", "VARCHAR(3)"),
        ("must", "INT NOT NULL"),
        ("real", "DOUBLE"),
    )
    table = Appended.create(paimon_java, tmp_path / "t", VECTORS, columns=columns, partitioned=False)
    rows = [(1, "d", 1, "aa", "1.00", "x", 1, 1.0), (2, "d", None, None, None, None, 2, None)]
    paimon_java.write(table.folder, [("+I", *row) for row in rows])
    before = table.rows()
    for dry_run in (True, False):
        document = table.update_where("id > 0", sets, dry_run=dry_run)
        assert document.outcome is Outcome.REFUSED and re.search(message, str(document.reason)), document.reason
    assert table.rows() == before and not [*tmp_path.rglob("*nk-*")]
    assert table.update_where("id > 2", sets).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize(
    ("options", "keys", "sets", "message"),
    [
        ({"bucket": "-1"}, [], "n = 1", "option deletion-vectors.enabled is not true"),
        ({"bucket": "1", **VECTORS}, ["id"], "n = 1", "update of a table with a primary key is not handled"),
        ({"bucket": "-1", **VECTORS}, [], "day = 'x'", "an update of partition column day is not handled"),
        ({"bucket": "-1", **VECTORS}, [], "at = NULL", r"an update of column at of type TIME\(3\) is not handled"),
        ({"bucket": "-1", **VECTORS}, [], "fine = NULL", r"column fine of type TIMESTAMP\(9\) is not handled"),
        ({"bucket": "-1", **VECTORS}, [], "n = CASE WHEN at IS NULL THEN 1 END", "an expression of column at"),
        ({"bucket": "-1", **VECTORS}, [], "padded = 'x'", r"column padded of type CHAR\(3\) is not handled"),
    ],
)
def test_what_is_not_handled_is_refused_by_name(
    paimon_java: PaimonJava, tmp_path: Path, options: dict[str, str], keys: list[str], sets: str, message: str
) -> None:
    columns = [
        ("id", "INT NOT NULL"),
        ("day", "STRING NOT NULL"),
        ("n", "INT"),
        ("at", "TIME(3)"),
        ("fine", "TIMESTAMP(9)"),
        ("padded", "CHAR(3)"),
    ]
    paimon_java.create(tmp_path / "t", Layout(columns, keys, [] if keys else ["day"], options))
    paimon_java.write(tmp_path / "t", [("+I", 1, "d", None, None, None, None)])
    document = Appended(paimon_java, tmp_path / "t", None, columns).update_where("id = 1", [sets])  # type: ignore[arg-type]
    assert document.outcome is Outcome.REFUSED
    assert re.search(message, str(document.reason)), document.reason


@pytest.mark.parametrize(("sets", "message"), [("nobody = 1", "a column of the table"), ("n = 'x'", "not converted")])
def test_a_bad_expression_ends_before_any_data_is_read(table: Appended, sets: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        table.update_where("id = 1", [sets])


def test_the_check_reads_the_change_from_the_version(table: Appended, spark: SparkSession) -> None:
    sets = ["n = CASE WHEN n > 2 THEN n * 10 ELSE id END", "price = price * 0.333"]
    document = table.update_where("n IS NOT NULL OR text = 't1'", sets)
    assert document.outcome is Outcome.VERIFIED, document.reason
    report = check(_request(table, document.committed_version), spark=spark)
    assert report.status is CheckStatus.PASSED, report.results
    snapshot = table.java.snapshot(table.folder)
    change = row_change(snapshot or {})
    assert change == StatedChange("n IS NOT NULL OR text = 't1'", dict(each.split(" = ", 1) for each in sets))


def test_a_row_that_is_gone_needs_no_value(table: Appended, spark: SparkSession) -> None:
    """Not in the rewrite, not in the gate, not in the check."""
    assert table.delete_where("id > 14").outcome is Outcome.VERIFIED
    document = table.update_where("id > 0", ["n = 2147483633 + id"])
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert check(_request(table, document.committed_version), spark=spark).status is CheckStatus.PASSED


def set_another_value(staged: Staged) -> None:
    staged.rewrite(lambda rows: _with(rows, [*rows.column("n").to_pylist()[:-1], 4711]))


def forget_to_set(staged: Staged) -> None:
    staged.rewrite(lambda rows: _with(rows, [None] * rows.num_rows))


ACTS = (
    hide_one_row_more,
    hide_one_row_less,
    set_another_value,
    forget_to_set,
    sabotage.drop_a_row,
    sabotage.repeat_a_row,
    sabotage.lose_a_vector,
)


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
@pytest.mark.parametrize("level", ["full", "touched"])
def test_the_gate_catches_rows_that_are_not_as_asked(table: Appended, act: Act, level: str) -> None:
    before = table.rows()
    with before_the_gate(table.folder, act):
        document = table.update_where("id > 35", ["n = id"], verify=level)
    assert document.outcome is Outcome.MISMATCH and "rows differ" in str(document.reason), document.reason
    assert table.rows() == before


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
@pytest.mark.in_turn("act")
def test_the_check_catches_what_the_gate_let_pass(table: Appended, act: Act, spark: SparkSession) -> None:
    with asleep(table.folder, act):
        document = table.update_where("id > 35", ["n = id"])
    assert check(_request(table, document.committed_version), spark=spark).status is CheckStatus.FAILED


def test_java_gives_up_a_delete_of_a_file_that_ours_changed(table: Appended) -> None:
    name = table.files()[0].name
    handle = table.java.prepare_delete(table.folder, {name: [0, 1, 2]})
    assert table.update_where("id < 30", ["n = 1"]).outcome is Outcome.VERIFIED
    with pytest.raises(EngineError, match=r"(?i)conflict"):
        table.java.commit_prepared(handle)


def test_a_task_counts_what_it_would_change(table: Appended) -> None:
    found = opened(table.folder)
    snapshot = found.snapshot()
    request = Request(Operation.UPDATE, 0, rows="id > 35", sets=("n = 1",))
    refuse_updates(snapshot, request)
    works = [update_rows(snapshot, bucket, request) for bucket in snapshot.units]
    tasks = [task for work in works if work for task in work.tasks]
    assert all(isinstance(task, AppendUpdate) for task in tasks)
    counted = sum(count_updates(storage_of(found), replace(task, target_bytes=1)) for task in tasks)
    assert counted == sum(row[0] > 35 for row in table.rows())


def _request(table: Appended, version: int | None) -> CheckRequest:
    return CheckRequest(address=Address("paimon", str(table.folder), "t"), version=version)


def _with(rows: pa.Table, values: list[Any]) -> pa.Table:
    place = rows.schema.get_field_index("n")
    return rows.set_column(place, rows.schema.field("n"), pa.array(values, rows.schema.field("n").type))
