"""What the tasks of a run read of its place of reports, in requests: what they show, not what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.records.test_kept_index import NIGHT, Requests, assert_complete, bucket_place, document, job, requests

from nightkeep.model import Outcome
from nightkeep.nights.run_pages import RunPage, write_run
from nightkeep.nights.settled import JobResult, Settled, settle_run
from nightkeep.nights.settled_documents import documents_of
from nightkeep.places import report_store
from nightkeep.policy import PolicyFile, load
from nightkeep.records import CheckStatus, Expectations, ExpectationSummary, RunDocument, document_path, store
from nightkeep.records.bundles import bundled
from nightkeep.records.file_names import PAGES, table_page_name
from nightkeep.records.found_versions import FoundVersions, VersionSpan
from nightkeep.records.kept_index import read_index

__all__ = ["bucket_place", "requests"]

TABLES = [f"shop.t{number}" for number in range(200)]
CHANGED = TABLES[:5]


@pytest.fixture
def policy(tmp_path: Path) -> PolicyFile:
    tables = "".join(f"\n  - {{name: {name}, table: 'delta:{tmp_path}/{name}'}}" for name in TABLES)
    (tmp_path / "tables.yaml").write_text(f"version: 1\ntables:{tables}\n")
    return load(tmp_path / "tables.yaml")


def large(table: str, night: int) -> RunDocument:
    made = document(table, night, Outcome.VERIFIED)
    unmet = ExpectationSummary("ids are not null", CheckStatus.FAILED, extra={"severity": "warning"})
    writer = VersionSpan(oldest=night, newest=night, count=1, whose="a writer", kind="APPEND", author="job")
    return replace(
        made,
        expectations=Expectations(CheckStatus.PASSED, (unmet,)),
        found_versions=FoundVersions(since=night - 1, until=night, total=1, spans=(writer,)),
        extra={"figures": "x" * (20 << 10)},
    )


def entry(place: str, each: RunDocument) -> JobResult:
    path = document_path(place, each.table, run_id=each.run_id, operation=each.operation)
    known = each.reason or "", path, each.committed_version
    return JobResult(each.table, each.operation, each.outcome, *known, checked=each.committed_version is not None)


def night(place: str, number: int, tables: Sequence[str] = TABLES) -> list[JobResult]:
    """A process that looks at all tables, and one session for those with work."""
    looked = [document(table, number) for table in tables if table not in CHANGED]
    cared = [large(table, number) for table in tables if table in CHANGED]
    for some in filter(None, (looked, cared)):
        job(place, *some)
    return [entry(place, each) for each in (*looked, *cared)]


def run(number: int) -> RunPage:
    return RunPage(f"nightly-{number}", f"night {number}", NIGHT)


@pytest.mark.slow
@pytest.mark.parametrize("nights", [1, 3])
def test_a_night_reads_what_its_tables_did(
    requests: Requests, bucket_place: str, policy: PolicyFile, nights: int
) -> None:
    for number in range(nights):
        settled = settle_run(bucket_place, f"nightly-{number}", TABLES, night(bucket_place, number))
        write_run(bucket_place, run(number), settled, policy=policy)
    entries, found = night(bucket_place, nights), list[Settled]()
    cost = requests.of(lambda: found.extend(settle_run(bucket_place, f"nightly-{nights}", TABLES, entries)))
    assert cost == (2 + len(CHANGED), 1, 0)
    assert {each.outcome for each in found} == {Outcome.VERIFIED, Outcome.UNCHANGED}
    # Read are two bundles, for the page and for the index, and the index. Bundles, pages of runs, pages of tables
    # and holds are listed. Written are the index, three pages, and that of each table with work.
    cost = requests.of(lambda: write_run(bucket_place, run(nights), found, policy=policy))
    assert cost == (2 + len(CHANGED) + 1 + 2, 5, 4 + len(CHANGED))
    # No document of another night was read for its answers and for whose versions it found.
    page = report_store(bucket_place).read(f"{PAGES}/{table_page_name(CHANGED[0])}").data.decode()
    assert page.count(": not met</title>") == page.count("1 version by job") == nights + 1
    assert requests.of(lambda: documents_of(found, bucket_place, f"nightly-{nights}")) == (2 + len(CHANGED), 1, 0)
    assert_complete(bucket_place, read_index(bucket_place))


@pytest.mark.slow
@pytest.mark.parametrize("table", [TABLES[0], TABLES[-1]])
def test_the_page_of_a_form_reads_its_table(
    requests: Requests, bucket_place: str, policy: PolicyFile, table: str
) -> None:
    settled = settle_run(bucket_place, "nightly-0", TABLES, night(bucket_place, 0))
    write_run(bucket_place, run(0), settled, policy=policy)
    entries = night(bucket_place, 1, [table])
    own = table in CHANGED
    found = settle_run(bucket_place, "nightly-1", [table], entries)
    cost = requests.of(lambda: write_run(bucket_place, run(1), found, policy=policy))
    assert cost == (3 + own, 5, 4 + own) and sum(cost[:2]) < 10
    assert_complete(bucket_place, read_index(bucket_place))


@pytest.mark.slow
def test_of_a_job_that_died_the_documents_are_looked_up(requests: Requests, bucket_place: str) -> None:
    looked, found = TABLES[5:9], list[Settled]()
    entries = night(bucket_place, 0, looked)
    first = large(CHANGED[0], 0)
    with bundled(bucket_place, "nightly-0", [(table, f"nightly-0:{table}") for table in CHANGED]):
        store(first, bucket_place)
        arrived = [*entries, entry(bucket_place, first)]
        cost = requests.of(lambda: found.extend(settle_run(bucket_place, "nightly-0", [*CHANGED, *looked], arrived)))
    # The bundles, and the document as it arrived and in its folder. Folders of the job's tables, and of no other.
    assert cost == (2 + 2, 1 + len(CHANGED), 0)
    expected = [Outcome.VERIFIED, *[Outcome.FAILED] * 4, *[Outcome.UNCHANGED] * 4]
    assert [each.outcome for each in found] == expected
