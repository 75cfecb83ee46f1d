"""Tables of every format in HDFS: planned, rewritten, proven and published there, checked, swept, and found."""

import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.discovery.test_find_tables import found
from tests.drivers.delta_spark import DeltaSpark
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Scan
from tests.formats.iceberg.pyiceberg_tables import care_for
from tests.object_store.bucket_tables import SAMPLES, upload_to_hdfs
from tests.object_store.in_bucket import InBucket, another_process
from tests.object_store.swept_tables import swept_now
from tests.support.extended import some_extended
from tests.support.faulty_hdfs import FaultyHdfs, Trouble

from nightkeep.checking.check import check
from nightkeep.formats import open_table
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.records import CheckStatus
from nightkeep.retention.orphans.quarantine import restore
from nightkeep.retention.orphans.sweep_request import SweepResult
from nightkeep.storage import open_storage
from nightkeep.storage.hdfs import client as hdfs_client
from nightkeep.storage.hdfs import store as hdfs

pytestmark = pytest.mark.in_turn("table")

UUID = "c2d8813c-5e9f-4ab4-8fad-662173002a2f"
DELTA, PAIMON = SAMPLES / "delta" / "shop.db" / "clicks", SAMPLES / "paimon" / "shop.db" / "customers"
COLUMNS = (("id", "long"), ("name", "string"))


def delta(folder: str, reports: Path) -> InBucket:
    return InBucket(upload_to_hdfs(DELTA, f"{folder}/clicks a b"), Operation.OPTIMIZE, "_delta_log", reports)


def paimon(folder: str, reports: Path) -> InBucket:
    return InBucket(upload_to_hdfs(PAIMON, f"{folder}/shop%20.db/t"), Operation.UPGRADE, "snapshot", reports)


@pytest.fixture(params=[delta, paimon])
def table(request: pytest.FixtureRequest, hdfs_folder: str, tmp_path: Path) -> InBucket:
    made: InBucket = request.param(hdfs_folder, tmp_path)
    return made


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> FaultyHdfs:
    """Stands for the client of this process."""
    stand_in = FaultyHdfs(hdfs_client.client)
    monkeypatch.setattr(hdfs, "client", stand_in)
    return stand_in


def in_hdfs(java: IcebergJava, warehouse: Warehouse, folder: str, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table of Iceberg Java's, whose catalog is a SQLite file and whose files are all in HDFS."""
    table = warehouse.table("db.events")
    java.create(table, COLUMNS, Layout(location=f"{folder}/db/events a"))
    for number in range(4):
        java.append(table, [(number, "a"), (number, None)])
    prefix = f"PYICEBERG_CATALOG__{warehouse.name.upper()}"
    monkeypatch.setenv(f"{prefix}__TYPE", "sql")
    monkeypatch.setenv(f"{prefix}__URI", f"sqlite:///{warehouse.database}")
    return table


def test_delta_spark_reads_there_what_it_read_before_and_goes_on(
    hdfs_folder: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    table = delta(hdfs_folder, tmp_path)
    before = delta_spark.read(table.location)
    care = table.care()
    assert (care.outcome, care.reason) == (Outcome.VERIFIED, None)
    assert delta_spark.read(table.location) == before and before.rows
    delta_spark.sql(f"DELETE FROM delta.`{table.location}` WHERE true")
    assert not delta_spark.read(table.location).rows and table.latest() == care.committed_version + 1


def test_paimon_java_reads_there_what_it_read_before(hdfs_folder: str, paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = paimon(hdfs_folder, tmp_path)
    before = paimon_java.read(table.location, Scan(options=MERGE_ON_READ))
    care = table.care()
    assert (care.outcome, care.reason) == (Outcome.VERIFIED, None)
    assert sorted(paimon_java.read(table.location).rows) == sorted(before.rows) and before.rows
    paimon_java.truncate(table.location)
    assert not paimon_java.read(table.location).rows


def test_iceberg_java_reads_there_what_it_wrote(
    hdfs_folder: str, iceberg: Warehouse, iceberg_java: IcebergJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = in_hdfs(iceberg_java, iceberg, hdfs_folder, monkeypatch)
    before = iceberg_java.read(table)
    care = care_for(iceberg.name, tmp_path)
    assert (care.outcome, care.reason) == (Outcome.VERIFIED, None)
    assert iceberg_java.read(table) == before and len(before.rows) == 8
    assert len(iceberg_java.tasks(table)) == 1
    iceberg_java.append(table, [(9, "later")])
    assert len(iceberg_java.read(table).rows) == 9


def test_of_two_that_publish_at_once_one_wins(faulty: FaultyHdfs, table: InBucket) -> None:
    base, told = table.latest(), []
    late, go_on = threading.Event(), threading.Event()

    def meet(name: str, path: str) -> None:
        if name == "rename" and path.endswith(f"/{table.commits}/{table.name(base + 1)}") and not late.is_set():
            late.set()
            assert go_on.wait(60)

    faulty.meet = meet
    slow = threading.Thread(target=lambda: told.append(table.care("slow")))
    slow.start()
    assert late.wait(60)
    quick = table.care("quick")
    go_on.set()
    slow.join(60)
    assert (quick.outcome, quick.committed_version) == (Outcome.VERIFIED, base + 1)
    (lost,) = told
    assert (lost.outcome, lost.committed_version, table.latest()) == (Outcome.CONFLICTED, None, base + 1)
    assert not table.files_of("slow")
    assert table.care("slow").outcome is Outcome.UNCHANGED


@pytest.mark.extended
def test_an_append_of_delta_spark_meanwhile_is_kept(
    faulty: FaultyHdfs, hdfs_folder: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    table = delta(hdfs_folder, tmp_path)
    base, before, met = table.latest(), delta_spark.read(table.location), []

    def meet(name: str, path: str) -> None:
        if name == "rename" and path.endswith(table.name(base + 1)) and not met:
            met.append(path)
            delta_spark.sql(f"INSERT INTO delta.`{table.location}` SELECT * FROM delta.`{table.location}` LIMIT 3")

    faulty.meet = meet
    care = table.care()
    assert (care.outcome, care.committed_version, len(met)) == (Outcome.VERIFIED, base + 2, 1)
    assert len(delta_spark.read(table.location).rows) == len(before.rows) + 3


@pytest.mark.few(1)
@pytest.mark.parametrize("trouble", [Trouble.AFTER, Trouble.TWICE])
def test_a_lost_answer_to_a_commit_is_found_by_reading(faulty: FaultyHdfs, table: InBucket, trouble: Trouble) -> None:
    base = table.latest()

    def meet(name: str, path: str) -> None:
        if name == "rename" and path.endswith(f"/{table.commits}/{table.name(base + 1)}"):
            faulty.at = len(faulty.passed) + 1

    faulty.meet, faulty.trouble = meet, trouble
    care = table.care("lost")
    assert faulty.at
    assert (care.outcome, care.committed_version, table.latest()) == (Outcome.VERIFIED, base + 1, base + 1)
    assert table.committed("lost") == [base + 1]


@pytest.mark.extended
def test_a_run_that_is_killed_while_it_writes_is_done_by_its_retry(table: InBucket) -> None:
    base = table.latest()
    with another_process(table, "killed"):
        end = time.monotonic() + 60
        while not table.files_of("killed") and time.monotonic() < end:
            time.sleep(0.01)
    care = table.care("killed")
    assert care.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), care.reason
    assert table.committed("killed") == [table.latest()] == [base + 1]


POINTS = range(1, 80, 8)
"""Of the changes that a run makes."""


@pytest.mark.few(1)
@pytest.mark.parametrize("at", some_extended(POINTS, keep=2))
@pytest.mark.parametrize("trouble", [Trouble.BEFORE, Trouble.AFTER])
def test_a_change_that_fails_costs_no_row_and_the_next_run_finishes(
    faulty: FaultyHdfs, table: InBucket, trouble: Trouble, at: int
) -> None:
    base = table.latest()
    faulty.at, faulty.trouble = at, trouble
    care = table.care("first")
    faulty.at = 0
    if len(faulty.passed) < at:
        pytest.skip("the run makes fewer changes")
    # What a run publishes is proven against what it began with.
    assert care.outcome in (Outcome.FAILED, Outcome.VERIFIED), care.reason
    assert (care.outcome is Outcome.VERIFIED) == bool(table.committed("first"))
    again = table.care("second")
    assert again.outcome is (Outcome.UNCHANGED if care.outcome is Outcome.VERIFIED else Outcome.VERIFIED), again.reason
    assert table.latest() == base + 1


def swept(address: Address, mode: SweepMode) -> SweepResult:
    """Once the clock of the store has moved on."""
    time.sleep(0.1)
    return swept_now(address, mode)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kind", "orphan"), [("delta", f"part-00000-{UUID}.c000.snappy.parquet"), ("paimon", f"manifest/manifest-{UUID}-0")]
)
def test_what_is_left_over_is_quarantined_comes_back_and_goes(
    hdfs_folder: str, tmp_path: Path, kind: str, orphan: str
) -> None:
    address = {"delta": delta, "paimon": paimon}[kind](hdfs_folder, tmp_path).address
    storage = open_storage(address.location)
    live = {file.name for batch in storage.walk("") for file in batch}
    storage.put(orphan, b"left")
    written_ms = storage.list(orphan.rpartition("/")[0])
    assert swept(address, SweepMode.QUARANTINE).acted.files == 1
    assert not storage.exists(orphan)
    opened = open_table(address).retention
    assert opened is not None
    restore(opened.table_files(), "weekly", now_ms=time.time_ns() // 1_000_000)
    assert storage.read(orphan) == b"left"
    # A rename keeps the time.
    assert storage.list(orphan.rpartition("/")[0]) == written_ms
    assert swept(address, SweepMode.DELETE).acted.files == 1
    left = {file.name for batch in storage.walk("") for file in batch}
    assert live <= left and orphan not in left


def test_what_a_killed_writer_of_iceberg_left_goes(
    hdfs_folder: str, iceberg: Warehouse, iceberg_java: IcebergJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = in_hdfs(iceberg_java, iceberg, hdfs_folder, monkeypatch)
    before = iceberg_java.read(table)
    storage = open_storage(f"{hdfs_folder}/db/events a")
    orphan = f"data/00000-7-{UUID}-00001.parquet"
    storage.put(orphan, b"left")
    assert swept(Address("iceberg", f"{iceberg.name}/db.events", "t"), SweepMode.DELETE).acted.files == 1
    assert not storage.exists(orphan) and iceberg_java.read(table) == before


def test_tables_in_hdfs_are_found(hdfs_folder: str, tmp_path: Path) -> None:
    for sample in ("paimon/shop.db/untouched", "delta/shop.db/accounts"):
        upload_to_hdfs(SAMPLES / sample, f"{hdfs_folder}/lake/{sample}")
    place = f"{hdfs_folder}/lake"
    told = found(tmp_path, f"{{paimon: '{place}/paimon'}}", f"{{delta: '{place}/delta/'}}")
    assert [each.name for each in told.tables] == ["shop.untouched", "shop.accounts"] and not told.unlistable
    assert [open_table(each.address).snapshot().version for each in told.tables]


def test_spark_checks_by_hadoops_own_client(spark: SparkSession, table: InBucket) -> None:
    care = table.care()
    assert care.outcome is Outcome.VERIFIED
    told = check(CheckRequest(table.address, care.committed_version, care.base_version), spark=spark)
    assert told.status is CheckStatus.PASSED, told.reason
