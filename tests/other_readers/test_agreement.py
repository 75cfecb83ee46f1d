"""What both readers see of two versions -> a result: only what was read twice and is the same passes."""

import pytest

from nightkeep.model import Address, Fingerprint
from nightkeep.model.check_values import ReaderName
from nightkeep.other_readers.agreement import BothReaders, compare_readers, judge, with_other_reader
from nightkeep.other_readers.reader_process import OtherReader, RowsSeen
from nightkeep.records import CheckStatus
from nightkeep.records.check_report import CheckReport, ComparedVersions

ROWS, OTHERS, FEWER = (RowsSeen(Fingerprint(*sums)) for sums in ((100, 7, 8), (100, 9, 8), (99, 7, 8)))
CANNOT = RowsSeen(None, "ValueError: no vectors")
MISSING = RowsSeen(None, "no such package", ended=True)

JUDGED = {
    "all the same": (ROWS, ROWS, ROWS, ROWS, CheckStatus.PASSED, "100 rows of version 4 and of version 5"),
    "a row is lost": (
        ROWS,
        ROWS,
        FEWER,
        ROWS,
        CheckStatus.FAILED,
        "duckdb 1 reads 100 rows of version 4, 99 of version 5; version 5: duckdb 1 reads 99 rows, Nightkeep 100",
    ),
    "a row is lost, and both see it": (
        ROWS,
        ROWS,
        FEWER,
        FEWER,
        CheckStatus.FAILED,
        "duckdb 1 reads 100 rows of version 4, 99 of version 5",
    ),
    "a value is another, and both see it": (
        ROWS,
        ROWS,
        OTHERS,
        OTHERS,
        CheckStatus.FAILED,
        "duckdb 1 reads 100 rows of version 4, others of version 5",
    ),
    "Nightkeep alone sees a change": (
        ROWS,
        ROWS,
        ROWS,
        FEWER,
        CheckStatus.FAILED,
        "version 5: duckdb 1 reads 100 rows, Nightkeep 99",
    ),
    "a value is another": (
        ROWS,
        ROWS,
        OTHERS,
        ROWS,
        CheckStatus.FAILED,
        "duckdb 1 reads 100 rows of version 4, others of version 5; "
        "version 5: duckdb 1 reads 100 rows, Nightkeep others",
    ),
    "the parent had other rows": (
        FEWER,
        ROWS,
        ROWS,
        ROWS,
        CheckStatus.FAILED,
        "duckdb 1 reads 99 rows of version 4, 100 of version 5; version 4: duckdb 1 reads 99 rows, Nightkeep 100",
    ),
    "both read both differently": (
        FEWER,
        ROWS,
        FEWER,
        ROWS,
        CheckStatus.ERRORED,
        "both find nothing changed, but read it differently: version 4: duckdb 1 reads 99 rows, Nightkeep 100",
    ),
    "only the parent can be read": (
        ROWS,
        ROWS,
        CANNOT,
        ROWS,
        CheckStatus.ERRORED,
        "duckdb 1 cannot read version 5: ValueError: no vectors; it reads version 4",
    ),
    "only the published version can be read": (
        CANNOT,
        ROWS,
        ROWS,
        ROWS,
        CheckStatus.SKIPPED,
        "duckdb 1 cannot read version 4: ValueError: no vectors",
    ),
    "it is another, and the parent cannot be read": (
        CANNOT,
        ROWS,
        FEWER,
        ROWS,
        CheckStatus.FAILED,
        "version 5: duckdb 1 reads 99 rows, Nightkeep 100",
    ),
    "neither can be read": (
        CANNOT,
        ROWS,
        CANNOT,
        ROWS,
        CheckStatus.SKIPPED,
        "duckdb 1 cannot read version 4: ValueError: no vectors; "
        "duckdb 1 cannot read version 5: ValueError: no vectors",
    ),
    "the engine is missing": (MISSING, ROWS, MISSING, ROWS, CheckStatus.ERRORED, "version 4: no such package"),
    "the engine ended": (ROWS, ROWS, MISSING, ROWS, CheckStatus.ERRORED, "version 5: no such package"),
}
COMPARED = ComparedVersions(5, 4, False, 1_000)
DUCKDB = OtherReader(ReaderName.DUCKDB, "no python is started")


@pytest.mark.parametrize("name", JUDGED)
def test_judged(name: str) -> None:
    theirs_before, ours_before, theirs_after, ours_after, status, reason = JUDGED[name]
    before, after = (
        BothReaders("version 4", theirs_before, ours_before),
        BothReaders("version 5", theirs_after, ours_after),
    )
    assert judge("duckdb 1", before, after) == (status, reason)


def test_a_batch_read_that_differs_fails_though_merges_agree() -> None:
    same = [BothReaders(f"version {n}, merged", ROWS, ROWS) for n in (4, 5)]
    assert judge("pypaimon 2", *same, BothReaders("version 5", FEWER, ROWS)) == (
        CheckStatus.FAILED,
        "version 5: pypaimon 2 reads 99 rows, Nightkeep 100",
    )
    assert judge("pypaimon 2", *same, BothReaders("version 5", CANNOT, ROWS))[0] is CheckStatus.SKIPPED


@pytest.mark.parametrize(
    ("address", "compared", "reason"),
    [
        (Address("paimon", "t", "t"), COMPARED, "duckdb reads no paimon tables"),
        (
            Address("delta", "t", "t"),
            ComparedVersions(5, 4, True, 1),
            "version 5 changes rows, and the condition is known to Nightkeep alone",
        ),
        (
            Address("delta", "t", "t"),
            ComparedVersions(5, 4, False, 2_001),
            "both versions have 2,001 bytes, more than check.byte_budget, 2,000",
        ),
        (Address("delta", "s3://bucket/t", "t"), COMPARED, "duckdb is asked about tables in folders only"),
    ],
)
def test_what_the_engine_is_not_asked_is_skipped(address: Address, compared: ComparedVersions, reason: str) -> None:
    result = compare_readers(address, compared, DUCKDB, byte_budget=2_000)
    assert (result.status, result.detail) == (CheckStatus.SKIPPED, reason)
    assert result.name == "duckdb and Nightkeep read the same rows"


def test_a_check_that_compared_nothing_asks_nobody() -> None:
    skipped = CheckReport(CheckStatus.SKIPPED, "nothing was compared", "gone")
    assert with_other_reader(skipped, Address("delta", "t", "t"), DUCKDB, byte_budget=None) is skipped


def test_a_skipped_reader_leaves_the_status() -> None:
    passed = CheckReport(CheckStatus.PASSED, "all", compared=COMPARED)
    report = with_other_reader(passed, Address("paimon", "t", "t"), DUCKDB, byte_budget=None)
    assert (report.status, [each.status for each in report.results]) == (CheckStatus.PASSED, [CheckStatus.SKIPPED])
