"""The two commits that a table's history tells of removals, against those that delta-spark's VACUUM writes."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.formats.delta.golden_statements import create, insert
from tests.formats.delta.hand_log import HandLog
from tests.formats.delta.hand_made import HandMade, two_days
from tests.formats.delta.runs import files, opened, optimize
from tests.formats.delta.sweeping import run_of
from tests.formats.delta.vacuum import vacuum
from tests.support.extended import some_extended

from nightkeep.errors import EvidenceError, RefusedTable, UnknownOutcome
from nightkeep.formats.delta.format import table_of
from nightkeep.model import Address, Operation, Outcome, Run
from nightkeep.protocol.table_files import Removal
from nightkeep.storage import LocalStorage

GONE = Removal(files=3, bytes=3254, older_than_ms=0)
OWN = ("timestamp", "inCommitTimestamp", "txnId", "engineInfo", "userMetadata", "readVersion")
PROPERTIES = {
    "plain": {},
    "row ids": {"delta.enableRowTracking": "true"},
    "commit times": {"delta.enableInCommitTimestamps": "true"},
}


def info(table: Path, version: int) -> dict[str, Any]:
    (line,) = (table / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    found: dict[str, Any] = json.loads(line)["commitInfo"]
    return found


@pytest.mark.extended
@pytest.mark.parametrize("kind", some_extended(PROPERTIES, keep=1))
def test_history_reports_removals_as_delta_spark_does(kind: str, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "table"
    create(delta_spark, table, "id BIGINT", properties=PROPERTIES[kind])
    insert(delta_spark, table, "(1)", "(2)")
    delta_spark.sql(f"DELETE FROM {named(table)} WHERE id = 1")
    last = opened(table).snapshot().version
    vacuum(delta_spark, table)
    theirs = [info(table, last + 1), info(table, last + 2)]
    counts = theirs[0]["operationMetrics"]
    removal = Removal(int(counts["numFilesToDelete"]), int(counts["sizeOfDataToDelete"]), older_than_ms=0)
    opened(table).retention.removals.announce(removal, run_of())
    opened(table).retention.removals.conclude(removal, run_of())
    ours = [info(table, last + 3), info(table, last + 4)]
    # Ours keeps the table's own retention whatever it is told, and removes no folders.
    theirs[0]["operationParameters"]["retentionCheckEnabled"] = True
    theirs[1]["operationMetrics"]["numVacuumedDirectories"] = "0"
    for their, our in zip(theirs, ours, strict=True):
        assert {k: v for k, v in our.items() if k not in OWN} == {k: v for k, v in their.items() if k not in OWN}
        assert [k for k in our if k != "userMetadata"] == list(their)
    assert [each["readVersion"] for each in ours] == [last + 2, last + 3]
    times = [each["inCommitTimestamp"] for each in theirs + ours if kind == "commit times"]
    assert times == sorted(set(times))
    delta_spark.forget()
    assert delta_spark.read(table).rows == ((2,),)
    insert(delta_spark, table, "(3)")
    history = delta_spark.sql(f"DESCRIBE HISTORY {named(table)} LIMIT 5")
    operations = [row[history.columns.index("operation")] for row in history.rows]
    assert operations == ["WRITE", "VACUUM END", "VACUUM START", "VACUUM END", "VACUUM START"]
    assert delta_spark.read(table).rows == ((2,), (3,))


def test_a_failure_is_reported_as_delta_spark_reports_one(tmp_path: Path) -> None:
    made = two_days(tmp_path / "events")
    opened(made.folder).retention.removals.conclude(Removal(2, 10, 0, failed=1), run_of())
    told = info(made.folder, made.version)
    assert (told["operationParameters"], told["operationMetrics"]) == ({"status": "FAILED"}, {})


def test_nothing_is_reported_where_delta_spark_could_overwrite_it(tmp_path: Path) -> None:
    made = two_days(tmp_path / "events")

    before = files(made.folder)
    table = table_of(Address("delta", "s3://bucket/events", "events"), LocalStorage("s3://bucket/events"))
    table.retention.removals.announce(GONE, run_of())
    table.retention.removals.conclude(GONE, run_of())
    assert files(made.folder) == before


def test_a_table_that_may_not_be_swept_gets_no_record(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "table", features=("deletionVectors", "catalogManaged"))
    log.commit(0, *log.head)
    before = files(log.folder)
    with pytest.raises(RefusedTable, match="catalogManaged"):
        opened(log.folder).retention.removals.announce(GONE, run_of())
    assert files(log.folder) == before


Meanwhile = Callable[[LocalStorage, str, bytes], bool]


@pytest.fixture
def storing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Meanwhile], AbstractContextManager[None]]:
    """What happens instead of the creation of a version."""

    def replace(meanwhile: Meanwhile) -> Any:
        plain = LocalStorage.put_if_absent

        def put(self: LocalStorage, name: str, data: bytes, *, temporary: str) -> bool:
            with pytest.MonkeyPatch.context() as inner:
                inner.setattr(LocalStorage, "put_if_absent", plain)
                return meanwhile(self, name, data)

        monkeypatch.setattr(LocalStorage, "put_if_absent", put)

    return replace


def test_a_lost_race_is_run_again_on_top_of_the_winner(tmp_path: Path, storing: Callable[[Meanwhile], Any]) -> None:
    made, lost = two_days(tmp_path / "events"), []

    def race(storage: LocalStorage, name: str, data: bytes) -> bool:
        if len(lost) < 2:
            lost.append(name)
            made.append("2026-11-01", [1000 + len(lost)])
        return storage.put_if_absent(name, data, temporary=f"{name}.tmp")

    storing(race)
    before = made.version
    opened(made.folder).retention.removals.announce(GONE, run_of())
    assert made.version == before + 3 and len(lost) == 2
    told = info(made.folder, made.version)
    assert (told["operation"], told["readVersion"]) == ("VACUUM START", before + 2)


def test_a_writer_that_always_wins_stops_us(tmp_path: Path, storing: Callable[[Meanwhile], Any]) -> None:
    made = two_days(tmp_path / "events")

    def race(storage: LocalStorage, name: str, data: bytes) -> bool:
        made.append("2026-11-01", [1])
        return storage.put_if_absent(name, data, temporary=f"{name}.tmp")

    storing(race)
    with pytest.raises(EvidenceError, match="20 attempts"):
        opened(made.folder).retention.removals.announce(GONE, run_of())


@pytest.mark.parametrize("answer", ["an error", "that it exists"])
def test_a_lost_answer_is_looked_for(answer: str, tmp_path: Path, storing: Callable[[Meanwhile], Any]) -> None:
    made = two_days(tmp_path / "events")

    def lose(storage: LocalStorage, name: str, data: bytes) -> bool:
        assert storage.put_if_absent(name, data, temporary=f"{name}.tmp")
        if answer == "an error":
            raise OSError("no answer")
        return False

    storing(lose)
    before = made.version
    opened(made.folder).retention.removals.announce(GONE, run_of())
    assert made.version == before + 1


def test_an_error_before_the_version_was_there_leaves_it_open(
    tmp_path: Path, storing: Callable[[Meanwhile], Any]
) -> None:
    made = two_days(tmp_path / "events")

    def fail(storage: LocalStorage, name: str, data: bytes) -> bool:
        raise OSError("no answer")

    storing(fail)
    with pytest.raises(UnknownOutcome):
        opened(made.folder).retention.removals.announce(GONE, run_of())


def test_a_run_between_removals_knows_its_own_commit_and_goes_on(made: HandMade, delta_spark: DeltaSpark) -> None:
    """Removals told before a run, between its commit and its check, and of the same run: none is taken for another."""
    rows, table = made.rows(), opened(made.folder)
    table.retention.removals.announce(GONE, run_of("night"))
    document = optimize(made.folder, run_id="night")
    assert document.outcome is Outcome.VERIFIED, document.reason
    table.retention.removals.conclude(GONE, run_of("night"))
    again = optimize(made.folder, run_id="night")
    assert again.outcome is Outcome.VERIFIED and again.committed_version == document.committed_version
    assert optimize(made.folder, run_id="next").outcome is Outcome.UNCHANGED
    assert made.rows() == rows
    assert [each.version for each in table.commits.committed(_optimizing("night"))] == [document.committed_version]
    delta_spark.forget()
    assert len(delta_spark.read(made.folder).rows) == len(rows)


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    return two_days(tmp_path / "events")


def _optimizing(run_id: str) -> Run:
    return run_of(run_id, Operation.OPTIMIZE)
