"""Tables of every format in a bucket of Google's: planned, rewritten, proven and published there.

The server is fake-gcs-server, with our client's uploads spelt in its own API (tests/drivers/google_server.py).
"""

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.drivers.fault_proxy import Way
from tests.drivers.google_server import GoogleBucket, GoogleServer, InOtherWords
from tests.formats.iceberg.pyiceberg_tables import NAME, ROWS, care_for, rows
from tests.object_store.bucket_tables import in_bucket
from tests.object_store.in_bucket import InBucket

from nightkeep.model import Outcome

pytestmark = pytest.mark.in_turn("table")


@pytest.fixture
def faults(
    google_server: GoogleServer, google_bucket: GoogleBucket, monkeypatch: pytest.MonkeyPatch
) -> Iterator[InOtherWords]:
    """A proxy that everything of this process goes through."""
    with InOtherWords(google_server.own) as proxy:
        for name, value in google_server.environment(proxy.endpoint).items():
            monkeypatch.setenv(name, value)
        yield proxy


@pytest.fixture(params=["delta", "paimon"])
def table(request: pytest.FixtureRequest, google_bucket: GoogleBucket, tmp_path: Path) -> InBucket:
    return in_bucket(request.param, google_bucket, tmp_path)


@pytest.mark.extended
def test_of_two_that_publish_at_once_one_wins(faults: InOtherWords, table: InBucket) -> None:
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


def test_a_lost_answer_to_a_commit_is_found_by_reading(faults: InOtherWords, table: InBucket) -> None:
    base = table.latest()
    dropped = faults.drop(request=table.put(base + 1), way=Way.AFTER)
    care = table.care("lost")
    assert dropped.seen
    assert (care.outcome, care.committed_version, table.latest()) == (Outcome.VERIFIED, base + 1, base + 1)


def test_a_store_that_ignores_conditions_is_refused(faults: InOtherWords, table: InBucket) -> None:
    base = table.latest()
    faults.forget_conditions()
    care = table.care()
    assert care.outcome is Outcome.REFUSED and "conditional writes" in str(care.reason)
    assert table.latest() == base


def test_pyiceberg_reads_there_what_it_wrote(
    google_server: GoogleServer, google_bucket: GoogleBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": f"{google_bucket.uri}/lake"}
    ends = str(int((datetime.now(UTC) + timedelta(hours=1)).timestamp() * 1000))
    # pyiceberg speaks the JSON API, and so to the server itself.
    theirs = SqlCatalog("google", **places, **google_properties(google_server.own, ends))
    monkeypatch.setenv("PYICEBERG_CATALOG__GOOGLE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__GOOGLE__URI", places["uri"])
    with closing(theirs):
        theirs.create_namespace("db")
        table = theirs.create_table(NAME, ROWS.schema)
        for _ in range(3):
            table.append(ROWS)
        before = rows(theirs)
        document = care_for("google", tmp_path / "reports")
        assert document.outcome is Outcome.VERIFIED, document.reason
        assert rows(theirs) == before and len(before) == 6
        assert len(list(theirs.load_table(NAME).scan().plan_files())) == 1


def google_properties(endpoint: str, ends: str) -> dict[str, str]:
    """For pyiceberg's own reader of Google."""
    return {
        "gcs.service.host": endpoint,
        "gcs.oauth2.token": "none is asked for",
        "gcs.oauth2.token-expires-at": ends,
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
    }
