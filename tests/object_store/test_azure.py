"""Tables of every format in a container of Azure: planned, rewritten, proven and published there, swept, and found.

The server is Azurite. The check of what is published is not tried: Spark's connector asks a DFS endpoint, which Azurite
does not have.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.discovery.test_find_tables import found
from tests.drivers.azure_faults import AzureFaults
from tests.drivers.azure_server import AzureContainer, AzureServer
from tests.drivers.fault_proxy import Way
from tests.drivers.lakes_oracle import Lakes
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Scan
from tests.formats.iceberg.pyiceberg_tables import NAME, ROWS, care_for, rows
from tests.object_store.azure_tables import adls_properties, delta_rs_azure, signature
from tests.object_store.bucket_tables import SAMPLES, in_bucket, upload
from tests.object_store.in_bucket import InBucket, another_process
from tests.object_store.swept_tables import swept_now

from nightkeep.formats import open_table
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.retention.orphans.quarantine import restore
from nightkeep.retention.orphans.sweep_request import SweepResult
from nightkeep.storage.objects import renewed
from nightkeep.storage.objects.properties import relevant
from nightkeep.storage.objects.renewed import Options
from nightkeep.storage.objects.store import ObjectStorage

pytestmark = pytest.mark.in_turn("table")

UUID = "c2d8813c-5e9f-4ab4-8fad-662173002a2f"


@pytest.fixture
def faults(
    azure_server: AzureServer, azure_container: AzureContainer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AzureFaults]:
    """A proxy that everything of this process goes through."""
    with AzureFaults(azure_server.endpoint) as proxy:
        for name, value in azure_server.environment(proxy.endpoint).items():
            monkeypatch.setenv(name, value)
        yield proxy


@pytest.fixture(params=["delta", "paimon"])
def table(request: pytest.FixtureRequest, azure_container: AzureContainer, tmp_path: Path) -> InBucket:
    return in_bucket(request.param, azure_container, tmp_path)


def downloaded(location: str, folder: Path) -> Path:
    storage = ObjectStorage(location)
    for name in (file.name for batch in storage.walk("") for file in batch):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(storage.read(name))
    return folder


def test_delta_rs_reads_there_what_it_read_before(
    azure_server: AzureServer, azure_container: AzureContainer, lakes: Lakes, tmp_path: Path
) -> None:
    before = lakes.delta_rs_read(SAMPLES / "delta" / "shop.db" / "clicks")
    location = upload(SAMPLES / "delta" / "shop.db" / "clicks", azure_container, "clicks a b")
    care = InBucket(location, Operation.OPTIMIZE, "_delta_log", tmp_path).care()
    assert care.outcome is Outcome.VERIFIED, care.reason
    uri = f"az://{azure_container.name}/clicks%20a%20b"
    assert lakes.delta_rs_read(uri, storage=delta_rs_azure(azure_server)) == before


@pytest.mark.extended
def test_java_reads_what_it_read_before(
    azure_container: AzureContainer, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    sample = SAMPLES / "paimon" / "shop.db" / "customers"
    before = paimon_java.read(sample, Scan(options=MERGE_ON_READ))
    location = upload(sample, azure_container, "shop%20.db/t")
    care = InBucket(location, Operation.UPGRADE, "snapshot", tmp_path / "reports").care()
    assert care.outcome is Outcome.VERIFIED, care.reason
    found = paimon_java.read(downloaded(location, tmp_path / "t"))
    assert sorted(found.rows) == sorted(before.rows) and found.rows


def test_pyiceberg_reads_there_what_it_wrote(
    azure_server: AzureServer, azure_container: AzureContainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": f"{azure_container.uri}/lake"}
    theirs = SqlCatalog("azure", **places, **adls_properties(azure_server))
    monkeypatch.setenv("PYICEBERG_CATALOG__AZURE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__AZURE__URI", places["uri"])
    with closing(theirs):
        theirs.create_namespace("db")
        table = theirs.create_table(NAME, ROWS.schema)
        for _ in range(3):
            table.append(ROWS)
        before = rows(theirs)
        document = care_for("azure", tmp_path / "reports")
        assert document.outcome is Outcome.VERIFIED, document.reason
        assert rows(theirs) == before and len(before) == 6
        assert len(list(theirs.load_table(NAME).scan().plan_files())) == 1


@pytest.mark.extended
def test_of_two_that_publish_at_once_one_wins(faults: AzureFaults, table: InBucket) -> None:
    base, told = table.latest(), []
    with faults.paused(request=table.put(base + 1)) as late:
        slow = threading.Thread(target=lambda: told.append(table.care("slow")))
        slow.start()
        late.wait()
        quick = table.care("quick")
    slow.join(60)
    assert (quick.outcome, quick.committed_version) == (Outcome.VERIFIED, base + 1)
    (lost,) = told
    assert (lost.outcome, lost.committed_version, table.latest()) == (Outcome.CONFLICTED, None, base + 1)
    assert not table.files_of("slow")
    assert table.care("slow").outcome is Outcome.UNCHANGED


def test_a_lost_answer_to_a_commit_is_found_by_reading(faults: AzureFaults, table: InBucket) -> None:
    base = table.latest()
    dropped = faults.drop(request=table.put(base + 1), way=Way.AFTER)
    care = table.care("lost")
    assert dropped.seen
    assert (care.outcome, care.committed_version, table.latest()) == (Outcome.VERIFIED, base + 1, base + 1)


@pytest.mark.extended
def test_a_run_that_is_killed_while_it_commits_has_one_commit_after_its_retry(
    faults: AzureFaults, table: InBucket
) -> None:
    base = table.latest()
    with faults.paused(request=table.put(base + 1)) as commit, another_process(table, "killed"):
        commit.wait()
    care = table.care("killed")
    assert (care.outcome, care.committed_version) == (Outcome.VERIFIED, base + 1)
    assert table.committed("killed") == [table.latest()] == [base + 1]


def test_a_store_that_ignores_conditions_is_refused(faults: AzureFaults, table: InBucket) -> None:
    base = table.latest()
    faults.forget_conditions()
    care = table.care()
    assert care.outcome is Outcome.REFUSED and "If-None-Match" in str(care.reason)
    assert table.latest() == base


def swept(address: Address, mode: SweepMode) -> SweepResult:
    """Once the clock of the store has moved on."""
    time.sleep(1.1)
    return swept_now(address, mode)


@pytest.mark.parametrize(
    ("sample", "orphan"),
    [
        ("delta:delta/shop.db/clicks", f"part-00000-{UUID}.c000.snappy.parquet"),
        pytest.param("paimon:paimon/shop.db/customers", f"manifest/manifest-{UUID}-0", marks=pytest.mark.extended),
    ],
)
def test_what_is_left_over_is_quarantined_comes_back_and_goes(
    azure_container: AzureContainer, sample: str, orphan: str
) -> None:
    kind, _, place = sample.partition(":")
    address = Address(kind, upload(SAMPLES / place, azure_container, "t"), "t")
    storage = ObjectStorage(address.location)
    live = {file.name for batch in storage.walk("") for file in batch}
    storage.put(orphan, b"left")
    assert swept(address, SweepMode.QUARANTINE).acted.files == 1
    assert not storage.exists(orphan)
    opened = open_table(address).retention
    assert opened is not None
    restore(opened.table_files(), "weekly", now_ms=time.time_ns() // 1_000_000)
    assert storage.read(orphan) == b"left"
    assert swept(address, SweepMode.DELETE).acted.files == 1
    left = {file.name for batch in storage.walk("") for file in batch}
    assert live <= left and orphan not in left


def test_tables_in_a_container_are_found(azure_container: AzureContainer, tmp_path: Path) -> None:
    for sample in ("paimon/shop.db/untouched", "delta/shop.db/accounts"):
        upload(SAMPLES / sample, azure_container, f"lake/{sample}")
    place = f"{azure_container.uri}/lake"
    told = found(tmp_path, f"{{paimon: '{place}/paimon'}}", f"{{delta: '{place}/delta/'}}")
    assert [each.name for each in told.tables] == ["shop.untouched", "shop.accounts"] and not told.unlistable
    assert [open_table(each.address).snapshot().version for each in told.tables]


@dataclass(frozen=True)
class Vending:
    """Gives out signatures that are valid for some seconds, as a catalog does."""

    container: AzureContainer
    seconds: float
    given: Iterator[int]

    def __call__(self) -> Options:
        next(self.given)
        ends = str(int((time.time() + self.seconds) * 1000))
        host = self.container.uri.partition("@")[2]
        sas = signature(self.container, seconds=self.seconds)
        return relevant(
            {f"adls.sas-token.{host}": sas, f"adls.sas-token-expires-at-ms.{host}": ends, "uri": "http://c"}
        )

    def __hash__(self) -> int:
        return hash(self.container)


def test_signatures_of_a_catalog_are_renewed_before_they_end(
    azure_container: AzureContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "of another place")
    monkeypatch.setattr(renewed, "_HELD", {})
    vending = Vending(azure_container, 4.0, count())
    first = vending()
    lasting = ObjectStorage(f"{azure_container.uri}/t", first, renewal=vending)
    ending = ObjectStorage(f"{azure_container.uri}/t", first)
    for number in range(6):
        assert lasting.put_if_absent(f"{number}", b"1", temporary="")
        assert lasting.read(f"{number}") == b"1"
        time.sleep(1.0)
    assert next(vending.given) > 2
    with pytest.raises(PermissionError, match="access denied"):
        ending.read("0")
    assert lasting.move("0", "moved") and lasting.delete_all([f"{number}" for number in range(6)]) == ()
    assert [file.name for file in lasting.list("")] == ["moved"]
    secret = dict(first)[next(name for name in dict(first) if name.startswith("adls.sas-token."))]
    assert secret not in repr(lasting) and os.environ["AZURE_STORAGE_SAS_TOKEN"]
