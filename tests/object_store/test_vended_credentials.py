"""Tables of a REST catalog that gives out credentials: a run outlives those for catalog and bucket."""

import os
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.drivers.s3_server import Bucket, S3Server
from tests.drivers.vending_rest import CLIENT, CLIENT_SECRET, GuardedBucket, Tickets, VendingRest, serve_vending_rest
from tests.formats.iceberg.pyiceberg_tables import NAME, ROWS, care_for, rows
from tests.object_store.bucket_tables import s3_properties
from tests.support.standalone_cluster import standalone, submit

from nightkeep.errors import AddressError
from nightkeep.formats.iceberg.catalog.catalog import open_handle
from nightkeep.model import Outcome
from nightkeep.records import load_history
from nightkeep.redaction import redact
from nightkeep.storage.objects import renewed
from nightkeep.storage.objects.hadoop import hadoop_settings
from nightkeep.storage.objects.store import ObjectStorage

ROOT = Path(__file__).parents[2]
LAKE = "vending"
SECONDS = 4.0


@pytest.fixture
def vending(
    s3_server: S3Server, s3_bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[VendingRest]:
    """A catalog with one table of small files. Nothing in the environment gives access to its bucket."""
    places = {"uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": f"{s3_bucket.uri}/lake"}
    direct = SqlCatalog(LAKE, **places, **s3_properties(s3_server.endpoint))
    direct.create_namespace("db")
    table = direct.create_table(NAME, ROWS.schema)
    for _ in range(6):
        table.append(ROWS)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    # Another test's catalog has the same name, and its credentials are of another server.
    monkeypatch.setattr(renewed, "_HELD", {})
    sessions = Tickets("session", SECONDS)
    with GuardedBucket(s3_server.endpoint, sessions) as bucket:
        catalog = VendingRest(direct, Tickets("token", SECONDS), sessions, bucket.endpoint)
        with serve_vending_rest(catalog):
            settings = {"TYPE": "rest", "URI": catalog.uri, "CREDENTIAL": f"{CLIENT}:{CLIENT_SECRET}"}
            for name, value in {**settings, "OAUTH2_SERVER_URI": f"{catalog.uri}/v1/oauth/tokens"}.items():
                monkeypatch.setenv(f"PYICEBERG_CATALOG__{LAKE.upper()}__{name}", value)
            yield catalog
    direct.close()


def storage() -> ObjectStorage:
    found = open_handle(f"{LAKE}/{NAME}").storage
    assert isinstance(found, ObjectStorage)
    return found


def test_a_run_outlives_its_credentials(vending: VendingRest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = rows(vending.catalog)
    taken = vending.sessions.takes

    def slowly(ticket: str) -> bool:
        time.sleep(0.1)
        return taken(ticket)

    monkeypatch.setattr(vending.sessions, "takes", slowly)
    began = time.monotonic()
    document = care_for(LAKE, tmp_path / "reports")
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert time.monotonic() - began > 1.5 * SECONDS
    assert rows(vending.catalog) == shown
    assert len(list(vending.catalog.load_table(NAME).scan().plan_files())) == 1
    # Nothing was asked of the bucket by what had ended; the catalog says so itself, and is asked for a new token.
    assert not vending.sessions.refused
    assert len(vending.tokens.refused) < vending.tokens.given
    assert vending.tokens.given > 2
    assert "ticket" not in str(document.to_json())


@pytest.mark.extended
def test_a_task_carries_what_is_valid_and_asks_for_more(vending: VendingRest) -> None:
    ours = storage()
    (first,) = (files[0].name for files in [next(iter(ours.walk("")))])
    task = pickle.loads(pickle.dumps(ours))
    assert task == ours
    for _ in range(2):
        assert task.read(first) == ours.read(first)
        time.sleep(SECONDS)
    assert not vending.sessions.refused and vending.sessions.given > 1
    settings = hadoop_settings(ours)
    name = ours.root.removeprefix("s3://")
    assert vending.sessions.takes(settings[f"fs.s3a.bucket.{name}.session.token"])
    assert settings[f"fs.s3a.bucket.{name}.endpoint"] == vending.endpoint


def test_what_is_given_out_is_never_printed(vending: VendingRest) -> None:
    ours = storage()
    held = dict(ours.options)["s3.session-token"]
    assert held.startswith("session-ticket") and held not in redact(f"a text with {held}") and held not in repr(ours)


def test_credentials_that_do_not_state_when_they_end(vending: VendingRest) -> None:
    vending.says_when_they_end, vending.sessions.seconds = False, 600
    assert next(iter(storage().walk("")))


def test_a_client_that_the_catalog_does_not_know_learns_what_to_set(
    vending: VendingRest, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"PYICEBERG_CATALOG__{LAKE.upper()}__CREDENTIAL"
    monkeypatch.setenv(variable, f"{CLIENT}:another-secret")
    with pytest.raises(AddressError) as raised:
        storage()
    assert str(raised.value).startswith(f"catalog {LAKE}: expected access to {vending.uri}, found ")
    assert str(raised.value).endswith(f"; set credential or token of {LAKE} in .pyiceberg.yaml, or {variable}")


@pytest.mark.slow
@pytest.mark.extended
def test_executors_of_a_cluster_ask_for_credentials_themselves(vending: VendingRest, tmp_path: Path) -> None:
    """Spark takes longer to start than credentials last: what the driver got has ended before a task begins."""
    shown, reports = rows(vending.catalog), tmp_path / "reports"
    settings = "operations: [optimize], task_memory: 512MB, check: {enabled: false}"
    entry = f"{{name: {NAME}, table: 'iceberg:{LAKE}/{NAME}', {settings}}}"
    (tmp_path / "tables.yaml").write_text(f"version: 1\ntables: [{entry}]\n")
    asked = {"--policy": tmp_path / "tables.yaml", "--table": NAME, "--run-id-prefix": "night", "--reports": reports}
    # A worker finds the settings of the catalog in its environment, as the driver does.
    with standalone(tmp_path / "cluster", workers=1) as cluster:
        submit(cluster, ROOT / "jobs/care.py", *(str(text) for pair in asked.items() for text in pair))
    (document,) = load_history(reports)
    assert document.outcome is Outcome.VERIFIED, document.reason
    told: Any = document.to_json()
    # A task of the rewrite and one of the gate.
    assert sum(told["metrics"]["executors"].values()) >= 2
    assert rows(vending.catalog) == shown
    assert not vending.sessions.refused and vending.sessions.given > 2
