"""Rows that a condition is true for are hidden in vectors of a table without keys: which go, and what is refused."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.drivers.json_lines import EngineError
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout
from tests.formats.paimon.appended import VECTORS, Appended
from tests.formats.paimon.contents import opened
from tests.formats.paimon.gate.test_sabotage import before_the_gate
from tests.formats.paimon.sabotage import Act, Staged
from tests.support.table_storage import storage_of

from nightkeep.checking.check import check
from nightkeep.errors import UsageError
from nightkeep.formats.paimon.rewrite.append import delete
from nightkeep.formats.paimon.rewrite.append.append_files import append_files
from nightkeep.formats.paimon.rewrite.append.delete import AppendDelete, count_matching
from nightkeep.model import (
    Address,
    Fingerprint,
    Intent,
    Operation,
    Outcome,
    Request,
    TaskCost,
    UnitProof,
    Verified,
    VerifyLevel,
)
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus
from nightkeep.running.rewrites import run_operation

COLUMNS = (("n", "INT"), ("text", "STRING"), ("price", "DECIMAL(7, 2)"), ("born", "DATE"), ("at", "TIME(3)"))
DAYS = ("d1", None)
Matches = Callable[[int, str | None, int | None, str | None], bool]


@pytest.fixture
def table(paimon_java: PaimonJava, tmp_path: Path) -> Appended:
    return worn(paimon_java, tmp_path / "t")


def worn(paimon_java: PaimonJava, folder: Path) -> Appended:
    """Files of ids 1-20, 21-40 and 41-60, of two days each, some of whose rows are deleted already."""
    table = Appended.create(paimon_java, folder, VECTORS, columns=COLUMNS)
    for first in (1, 21, 41):
        paimon_java.write(table.folder, [("+I", *_row(number)) for number in range(first, first + 20)])
    table.delete(0.2)
    return table


def _row(number: int) -> tuple[Any, ...]:
    n, text = (None if number % 5 == 0 else number % 7), (None if number % 4 == 0 else f"t{number % 3}")
    return number, DAYS[number % 2], n, text, f"{number}.50", str(date(2026, 1, 1 + number % 28)), "10:00:00.000"


@pytest.mark.parametrize(
    ("condition", "matches", "files"),
    [
        ("id = 5", lambda id, day, n, text: id == 5, 2),
        ("id > 30", lambda id, day, n, text: id > 30, 4),
        ("n = 3", lambda id, day, n, text: n == 3, 6),
        ("n <> 3", lambda id, day, n, text: n is not None and n != 3, 6),
        ("NOT (n < 3 OR text = 't1')", lambda id, day, n, text: n is not None and n >= 3 and text in ("t0", "t2"), 6),
        ("text IS NULL", lambda id, day, n, text: text is None, 6),
        ("day = 'd1'", lambda id, day, n, text: day == "d1", 6),
        ("day IS NULL AND id BETWEEN 1 AND 25", lambda id, day, n, text: day is None and id <= 25, 4),
        ("id IN (1, 2, 59)", lambda id, day, n, text: id in (1, 2, 59), 4),
        ("price < 3 OR born = DATE '2026-01-02'", lambda id, day, n, text: id < 3 or id % 28 == 1, 6),
    ],
)
def test_the_rows_for_which_it_is_true_go(table: Appended, condition: str, matches: Matches, files: int) -> None:
    before = table.rows()
    kept = [row for row in before if not matches(*row[:4])]
    counted = table.delete_where(condition, dry_run=True)
    assert counted.extra["matching_rows"] == len(before) - len(kept) > 0
    document = table.delete_where(condition)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert table.rows() == kept
    assert document.plan is not None and sum(len(unit.input_files) for unit in document.plan.units) <= files
    assert document.metrics.deleted_rows_marked == len(before) - len(kept)
    snapshot = table.java.snapshot(table.folder)
    assert snapshot is not None and (snapshot["commitKind"], snapshot["operation"]) == ("OVERWRITE", "DELETE")
    assert table.vectors().keys() <= {file.name for file in table.files()}
    again = table.delete_where(condition)
    assert again.outcome is Outcome.UNCHANGED, again.reason


def test_keys_of_a_file_go(table: Appended, tmp_path: Path) -> None:
    keys, before = tmp_path / "keys.jsonl", table.rows()
    keys.write_text("".join(json.dumps({"id": n, "n": _row(n)[2]}) + "\n" for n in (1, 5, 22, 999)))
    assert table.delete_where(keys=keys).outcome is Outcome.VERIFIED
    assert table.rows() == [row for row in before if row[0] not in (1, 5, 22)]


def test_a_file_whose_rows_all_go_is_removed_with_its_vector(table: Appended) -> None:
    assert table.delete_where("id <= 20").outcome is Outcome.VERIFIED
    assert len(table.files()) == 4 and table.vectors().keys() <= {file.name for file in table.files()}
    table.append(5)
    table.delete(0.2)
    before = table.rows()
    assert table.optimize(full=True).outcome is Outcome.VERIFIED and table.rows() == before


def test_the_same_run_again_finds_what_it_published(table: Appended) -> None:
    first = table.delete_where("id = 5", run_id="once")
    assert first.outcome is Outcome.VERIFIED
    again = table.delete_where("id = 5", run_id="once")
    assert again.committed_version == first.committed_version
    assert [commit.units for commit in again.commits] == [commit.units for commit in first.commits] != [()]


def test_the_check_reads_the_condition_from_the_version(table: Appended, spark: SparkSession) -> None:
    document = table.delete_where("n = 3 OR day IS NULL AND text = 't1'")
    request = CheckRequest(address=Address("paimon", str(table.folder), "t"), version=document.committed_version)
    report = check(request, spark=spark)
    assert report.status is CheckStatus.PASSED, report.results


def hide_one_row_more(staged: Staged) -> None:
    with staged.vectors() as vectors:
        name = min(vectors)
        vectors[name].add(next(at for at in range(100) if at not in vectors[name]))


def hide_one_row_less(staged: Staged) -> None:
    with staged.vectors() as vectors:
        name = max(vectors, key=lambda name: len(vectors[name]))
        vectors[name].remove(vectors[name].max())


@pytest.mark.parametrize("act", [hide_one_row_more, hide_one_row_less])
@pytest.mark.parametrize("level", ["full", "touched"])
def test_the_gate_catches_a_row_too_many_or_too_few(table: Appended, act: Act, level: str) -> None:
    before = table.rows()
    with before_the_gate(table.folder, act):
        document = table.delete_where("id > 35", verify=level)
    assert document.outcome is Outcome.MISMATCH and "rows differ" in str(document.reason)
    assert table.rows() == before


def test_of_two_commits_the_check_reports_one_that_deletes_other_rows(table: Appended, spark: SparkSession) -> None:
    """A delete that hides a row too many, published without the gate."""
    with asleep(table.folder, hide_one_row_more):
        document = table.delete_where("id > 35")
    request = CheckRequest(address=Address("paimon", str(table.folder), "t"), version=document.committed_version)
    assert check(request, spark=spark).status is CheckStatus.FAILED


@contextmanager
def asleep(table: Path, act: Act) -> Iterator[None]:
    def asleep(opened: Any, plan: Any, rewrites: Any, candidate: Any, **options: Any) -> Verified:
        act(Staged(table, candidate))
        proofs = tuple(UnitProof(k, Fingerprint(), Fingerprint(), (), TaskCost(0, 0, 0, "")) for k in candidate.units)
        return Verified(plan, candidate, rewrites, proofs, VerifyLevel.FULL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_operation, "verify", asleep)
        yield


@pytest.mark.parametrize(
    ("options", "keys", "condition", "message"),
    [
        ({"bucket": "-1"}, [], "id = 1", "option deletion-vectors.enabled is not true"),
        ({"bucket": "1", **VECTORS}, ["id"], "id = 1", "delete of a table with a primary key is not handled"),
        ({"bucket": "-1", **VECTORS}, [], "at IS NULL", r"column at of type TIME\(3\) is not handled"),
        ({"bucket": "-1", **VECTORS}, [], "fine IS NULL", r"column fine of type TIMESTAMP\(9\) is not handled"),
    ],
)
def test_what_is_not_handled_is_refused_by_name(
    paimon_java: PaimonJava, tmp_path: Path, options: dict[str, str], keys: list[str], condition: str, message: str
) -> None:
    columns = [("id", "INT NOT NULL"), ("at", "TIME(3)"), ("fine", "TIMESTAMP(9)")]
    paimon_java.create(tmp_path / "t", Layout(columns, keys, [], options))
    paimon_java.write(tmp_path / "t", [("+I", 1, None, None)])
    table = Appended(paimon_java, tmp_path / "t", None, columns)  # type: ignore[arg-type]
    document = table.delete_where(condition)
    assert document.outcome is Outcome.REFUSED
    assert re.search(message, str(document.reason)), document.reason


def test_a_bad_condition_ends_before_any_data_is_read(table: Appended) -> None:
    with pytest.raises(UsageError, match="expected a column or a literal"):
        table.delete_where("id % 2 = 0")


def test_bounds_never_leave_out_a_file_that_matches(table: Appended) -> None:
    """Whatever the bounds say, all files of the table are asked."""
    found = opened(table.folder)
    snapshot = found.snapshot()
    for condition in ("id = 5", "price >= 20.5", "born < DATE '2026-01-05'", "text > 't0'", "n <=> 3", "day = 'd1'"):
        request = Request(Operation.DELETE, 0, rows=condition)
        for bucket in snapshot.units:
            work = delete.delete_rows(snapshot, bucket, request)
            counted = sum(count_matching(storage_of(found), task) for task in work.tasks) if work else 0
            every = AppendDelete(bucket, append_files(bucket), Intent(Operation.DELETE, where=condition))
            assert counted == count_matching(storage_of(found), every), condition


def test_java_gives_up_a_delete_of_a_file_that_ours_changed(table: Appended) -> None:
    name = table.files()[0].name
    handle = table.java.prepare_delete(table.folder, {name: [0, 1, 2]})
    assert table.delete_where("id < 30").outcome is Outcome.VERIFIED
    with pytest.raises(EngineError, match=r"(?i)conflict"):
        table.java.commit_prepared(handle)
