"""nightkeep expire with Spark and Great Expectations: what goes, what stays and is read by engines, what is told.

Of each table one version is the base of a run that nobody has judged yet.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.lakes_oracle import Lakes
from tests.drivers.paimon_java import PaimonJava
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.sweeping import aged
from tests.formats.iceberg.runs import COLUMNS, DAYS, configured, folder, row
from tests.formats.paimon.keeping import busy, reads

from nightkeep.commands.app import main
from nightkeep.model import Operation, Outcome, View
from nightkeep.records import CheckStatus, RunDocument, document_path, load_document, store
from nightkeep.spark.engine import Engine


class Running(Engine):
    """An engine with the session that all tests share."""

    def __init__(self, session: SparkSession) -> None:
        super().__init__(master="local[2]", task_memory_bytes=1 << 30)
        self._spark = session


@dataclass
class Expiry:
    """A table's files by path, and the commands that let its versions go."""

    reports: Path

    def __call__(self, table: str, *options: str, run_id: str) -> RunDocument:
        with pytest.raises(SystemExit):
            given = ("--run-id", run_id, "--reports", str(self.reports), "--json")
            main(["expire", table, *(options or ("--delete",)), *given])
        (path,) = self.reports.glob(f"*/{run_id}-expire.json")
        return load_document(path)

    def dry(self, table: str, *, run_id: str = "dry") -> RunDocument:
        found = self(table, "--dry-run", run_id=run_id)
        assert (found.outcome, found.extra["changed"]) == (Outcome.SKIPPED, False)
        return found

    def await_check(self, like: RunDocument, *, base: int, committed: int) -> Path:
        """As if a run that started from the base had published a version, and no check had judged that."""
        waiting = replace(
            like,
            run_id="night",
            operation=Operation.OPTIMIZE,
            base_version=base,
            parent_version=base,
            committed_version=committed,
        )
        store(waiting, str(self.reports))
        return Path(document_path(self.reports, like.table, run_id="night", operation=Operation.OPTIMIZE))


@pytest.fixture
def expire(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Expiry]:
    monkeypatch.setattr("nightkeep.api.call_context.Engine", lambda **_: Running(spark))
    monkeypatch.chdir(tmp_path)
    for name in ("NIGHTKEEP_POLICY", "NIGHTKEEP_REPORTS"):
        monkeypatch.delenv(name, raising=False)
    yield Expiry(tmp_path / "reports")


def stored(table: Path) -> dict[str, int]:
    """Files by path with their times. Java's local file system keeps checksums beside its files."""
    found = (path for path in table.rglob("*") if path.is_file() and path.suffix != ".crc")
    return {str(path): path.stat().st_mtime_ns for path in found}


def told(document: RunDocument) -> dict[str, str]:
    """Kinds of the files that a document lists, by path."""
    lines = Path(str(document.extra["orphans_file"])).read_text().splitlines()
    return {each["path"]: each["kind"] for each in map(json.loads, lines)}


def verified(document: RunDocument, *, views: Sequence[View] = (View.RAW,)) -> None:
    """All expectations are met, and something went."""
    assert (document.outcome, document.reason, document.operation) == (Outcome.VERIFIED, None, Operation.EXPIRE)
    assert {result.status for result in document.expectations.results} == {CheckStatus.PASSED}
    assert document.expectations.status is CheckStatus.PASSED
    names = {result.expectation for result in document.expectations.results}
    assert {"every file of every retained version is there", "the first sum of row hashes is the same"} <= names
    assert [unit.extra["view"] for unit in document.units] == [view.value for view in views]
    assert all(unit.equal and unit.rows for unit in document.units)
    extra = document.extra
    assert [extra[name] for name in ("mode", "changed", "finished", "failed", "quarantine")] == [
        "delete",
        True,
        True,
        [],
        None,
    ]
    assert extra["acted"] == {"files": extra["orphans_total"], "bytes": extra["orphans_bytes"]}
    assert extra["left"] == {"files": 0, "bytes": 0}
    assert "0 missing, 0 of another size" in str(document.expectations.coverage)


def reasons(document: RunDocument) -> dict[str, str]:
    kept: Any = document.extra["kept"]
    return {str(each["version"]): each["reason"] for each in kept}


def test_paimons_snapshots_go_up_to_the_base(expire: Expiry, paimon_java: PaimonJava, tmp_path: Path) -> None:
    folder = busy(paimon_java, tmp_path / "orders")
    # Once all is written: Java's writers let snapshots go as soon as they may.
    paimon_java.alter(folder, {"change": "set_option", "name": "snapshot.time-retained", "value": "1 ms"})
    table, before, rows = f"paimon:{folder}", stored(folder), reads(paimon_java, folder)
    first, *_, last = rows
    dry = expire.dry(table)
    assert dry.extra["expired"] == [*range(first, last)]
    waiting = expire.await_check(dry, base=4, committed=last)

    done = expire(table, run_id="weekly")

    verified(done, views=(View.RAW, View.MERGED))
    after = stored(folder)
    assert done.extra["expired"] == [1, 2, 3]
    assert reasons(done) == {
        f"snapshot/snapshot-{number}": "snapshot 4 is the base of a run that is not checked yet"
        for number in range(4, last + 1)
    }
    snapshots = {f"{folder}/snapshot/snapshot-{number}" for number in (1, 2, 3)}
    assert before.keys() - after.keys() == told(done).keys() | snapshots
    assert {"data", "manifest-list"} <= {*told(done).values()}
    assert reads(paimon_java, folder) == {number: rows[number] for number in range(4, last + 1)}
    assert (expire(table, run_id="weekly"), stored(folder)) == (done, after)
    waiting.unlink()
    assert expire.dry(table, run_id="later").extra["expired"] == [*range(4, last)]


def test_delta_files_removed_up_to_the_base_go_by_the_tables_own_retention(
    expire: Expiry, lakes: Lakes, tmp_path: Path
) -> None:
    folder = tmp_path / "clicks"
    made = HandMade(folder, properties={"delta.deletedFileRetentionDuration": "interval 1 hours"})
    made.append("2026-11-01", range(40))
    made.append("2026-11-01", range(40, 80))
    whole = str(folder / next(iter(made.live())))
    made.delete("2026-11-01", range(40))
    made.delete("2026-11-01", range(40, 60))
    vector = max(folder.glob("*.bin"), key=lambda path: path.stat().st_mtime_ns)
    made.delete("2026-11-01", range(60, 70))
    made.append("2026-11-02", range(80, 90))
    # Younger than any sweep would take, as the floor for Delta is a week.
    aged(folder, days=2)
    table, before = f"delta:{folder}", stored(folder)
    base, latest = lakes.delta_rs_read(folder, version=4), lakes.delta_rs_read(folder)
    dry = expire.dry(table)
    assert told(dry).keys() == {whole, str(vector)}
    waiting = expire.await_check(dry, base=4, committed=6)

    done = expire(table, run_id="weekly")

    verified(done)
    after = stored(folder)
    # Versions 1 and 2 show the file that goes.
    assert reasons(done).keys() == {f"version {number}" for number in (0, 3, 4, 5, 6)}
    assert reasons(done)["version 4"] == "a run started from it that no check has judged"
    assert before.keys() - after.keys() == told(done).keys() == {whole}
    assert lakes.delta_rs_read(folder, version=4) == base
    assert lakes.delta_rs_read(folder) == lakes.duckdb_read(folder) == latest
    start, end = [each["commitInfo"] for each in made.all("commitInfo")][-2:]
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    # Nothing was specified: the table's own retention held.
    assert start["operationParameters"] == {"retentionCheckEnabled": True, "defaultRetentionMillis": 3_600_000}
    assert (expire(table, run_id="weekly"), stored(folder)) == (done, after)
    waiting.unlink()
    assert told(expire.dry(table, run_id="later")).keys() == {str(vector)}


def test_icebergs_snapshots_go_but_for_the_base(expire: Expiry, iceberg: Warehouse, iceberg_java: IcebergJava) -> None:
    with configured(iceberg):
        made = iceberg.table()
        properties = {"history.expire.max-snapshot-age-ms": "1"}
        iceberg_java.create(made, COLUMNS, Layout(properties=properties))
        for start in range(0, 30, 10):
            iceberg_java.append(made, [row(DAYS[0], number) for number in range(start, start + 10)])
        iceberg_java.append(made, [row(DAYS[1], 100)])
        # What the latest snapshot removed is reached by older ones alone.
        iceberg_java.commit_rewrite(made, iceberg_java.begin_rewrite(made, options={"rewrite-all": "true"}))
        ids = [each["snapshot-id"] for each in made.document()["snapshots"]]
        place, rows = folder(made), {number: iceberg_java.read(made, snapshot=number) for number in ids}
        table, before = f"iceberg:{iceberg.name}/{made.name}", stored(place)
        dry = expire.dry(table)
        assert dry.extra["expired"] == ids[:4]
        waiting = expire.await_check(dry, base=ids[1], committed=ids[4])

        done = expire(table, run_id="weekly")

        verified(done)
        after = stored(place)
        assert done.extra["expired"] == [ids[0], ids[2], ids[3]]
        assert reasons(done) == {str(ids[1]): "it was asked to stay", str(ids[4]): "branch main"}
        assert before.keys() - after.keys() == told(done).keys()
        assert {"data", "manifest"} <= {kind.partition(" ")[0] for kind in told(done).values()}
        assert {each["snapshot-id"] for each in made.document()["snapshots"]} == {ids[1], ids[4]}
        assert {number: iceberg_java.read(made, snapshot=number) for number in (ids[1], ids[4])} == {
            number: rows[number] for number in (ids[1], ids[4])
        }
        assert (expire(table, run_id="weekly"), stored(place)) == (done, after)
        waiting.unlink()
        assert expire.dry(table, run_id="later").extra["expired"] == [ids[1]]
        iceberg_java.append(made, [row(DAYS[2], 200)])
