"""Damage to the order of a fixed bucket's rows: the gate catches it at both levels, and the check what it let pass."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.appended import FIXED, VECTORS, Appended, operate
from tests.formats.paimon.contents import opened
from tests.formats.paimon.gate.test_sabotage import before_the_gate
from tests.formats.paimon.rewrite.append.test_delete import asleep
from tests.formats.paimon.sabotage import Act, Staged
from tests.support.table_storage import storage_of

from nightkeep.checking.check import check
from nightkeep.formats.paimon.gate import append_order
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus, RunDocument
from nightkeep.records.check_report import CheckReport


@pytest.fixture(scope="module")
def made(paimon_java: PaimonJava, tmp_path_factory: pytest.TempPathFactory) -> Appended:
    """Small files, a large one that stays, and more small files, of which one has a vector."""
    options = {**FIXED, **VECTORS, "bucket": "1", "compaction.min.file-num": "2"}
    folder = tmp_path_factory.mktemp("ordered") / "t"
    table = Appended.create(paimon_java, folder, options, columns=(("text", "STRING"),), partitioned=False)
    for rows in (20, 20, 400, 20, 20):
        table.append(rows)
    paimon_java.delete_positions(folder, {table.files()[0].name: [3, 4]})
    return table


@pytest.fixture
def table(made: Appended, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.folder, tmp_path / "t"))


def turn_rows_round(staged: Staged) -> None:
    staged.rewrite(lambda rows: rows.take(pa.array(range(rows.num_rows - 1, -1, -1))))


def swap_two_rows(staged: Staged) -> None:
    staged.rewrite(lambda rows: rows.take(pa.array([1, 0, *range(2, rows.num_rows)])))


def begin_behind_a_file_that_stays(staged: Staged) -> None:
    with staged.added() as file:
        file |= {name: file[name] + 300 for name in ("_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER")}


def state_that_it_was_appended(staged: Staged) -> None:
    with staged.added() as file:
        file["_FILE_SOURCE"] = 0


CAUGHT: dict[Act, str] = {
    turn_rows_round: "rows are in another order than before",
    swap_two_rows: "rows are in another order than before",
    begin_behind_a_file_that_stays: "rows are in another order than before",
    state_that_it_was_appended: "states source 0, expected 1",
}
SEEN_BY_READERS = (swap_two_rows, begin_behind_a_file_that_stays)


@pytest.mark.parametrize("level", ["full", "touched"])
@pytest.mark.parametrize("act", CAUGHT, ids=lambda act: act.__name__)
def test_the_gate_catches(act: Act, level: str, table: Path) -> None:
    with before_the_gate(table, act):
        document = _optimize(table, verify=level)
    assert (document.outcome, document.committed_version) == (Outcome.MISMATCH, None), document.reason
    assert CAUGHT[act] in str(document.reason)


def test_the_gate_catches_updated_rows_that_are_not_the_last(table: Path) -> None:
    def begin_first(staged: Staged) -> None:
        with staged.added() as file:
            file |= {"_MIN_SEQUENCE_NUMBER": 0, "_MAX_SEQUENCE_NUMBER": file["_ROW_COUNT"] - 1}

    with before_the_gate(table, begin_first):
        document = operate(table, Operation.UPDATE, rows="id = 3", sets=["text = 'set'"])
    assert document.outcome is Outcome.MISMATCH and "changed rows are not behind all others" in str(document.reason)


def test_files_that_stay_are_compared_in_their_order(table: Path) -> None:
    bucket = opened(table).snapshot().units[0]
    other = replace(bucket, files=tuple(reversed(bucket.files)))
    storage = storage_of(opened(table))
    assert [*append_order.order_faults(storage, bucket, bucket)] == []
    (fault,) = append_order.order_faults(storage, bucket, other)
    assert "files that stay are in another order" in fault


@pytest.mark.parametrize("act", SEEN_BY_READERS, ids=lambda act: act.__name__)
@pytest.mark.in_turn("act")
def test_the_check_catches_what_the_gate_let_pass(act: Act, table: Path, spark: SparkSession) -> None:
    with asleep(table, act):
        document = _optimize(table)
    assert document.outcome is Outcome.VERIFIED
    report = _checked(table, document, spark)
    assert report.status is CheckStatus.FAILED
    (wrong,) = {result.name for result in report.results if result.status is CheckStatus.FAILED}
    assert wrong == "rows are in the same order"


def test_the_check_passes_what_keeps_the_order(table: Path, spark: SparkSession) -> None:
    """Compactions, deletes, and updates, whose rows go behind all others."""
    condition = "id IN (2, 30, 100, 470)"
    for document in (
        operate(table, Operation.UPDATE, rows=condition, sets=["text = concat(text, '!')"]),
        _optimize(table),
        operate(table, Operation.DELETE, rows="id IN (1, 44, 455)"),
    ):
        assert document.outcome is Outcome.VERIFIED, document.reason
        report = _checked(table, document, spark)
        assert report.status is CheckStatus.PASSED, report.results
        told = {result.name: result.status for result in report.results}
        assert told["rows are in the same order"] is CheckStatus.PASSED


def _checked(table: Path, document: RunDocument, spark: SparkSession) -> CheckReport:
    return check(
        CheckRequest(address=Address("paimon", str(table), "t"), version=document.committed_version), spark=spark
    )


def _optimize(table: Path, **settings: object) -> RunDocument:
    """The small files become two, before and behind the one that stays."""
    largest = max(file.bytes for file in opened(table).snapshot().units[0].files)
    return operate(table, Operation.OPTIMIZE, min_file_size=f"{largest}B", **settings)
