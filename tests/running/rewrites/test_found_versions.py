"""Who committed the versions since the run before: by real engines, by us, and what it costs to read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.delta.lake import Lake
from tests.formats.iceberg.runs import address, configured
from tests.pages.test_pages import Page

import nightkeep
from nightkeep.admission.order import Order
from nightkeep.errors import CorruptMetadata
from nightkeep.model import Operation, Outcome
from nightkeep.pages import Links, Overview, render_run, render_table
from nightkeep.policy import load
from nightkeep.records import RunDocument, store_or_note
from nightkeep.records.found_versions import MOST_VERSIONS, FoundVersions
from nightkeep.records.index_rows import brief_document, row_of
from nightkeep.records.version_marks import keep_version, known_version
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.storage import LocalStorage
from nightkeep.storage.local.kept import KeptOnDisk
from nightkeep.tasks import inline

ROWS = pa.table({"id": pa.array(range(100), pa.int64())})
Span = tuple[int, str, str, str]


@dataclass
class Nights:
    """Runs of one table, in this process, without checks; their documents are stored."""

    table: str
    reports: Path
    documents: tuple[RunDocument, ...] = ()

    def run(self, operation: Operation = Operation.OPTIMIZE, **settings: object) -> RunDocument:
        text = yaml.safe_dump({"version": 1, "defaults": {"other_managers": "known", **settings}})
        order = Order(operation, f"night-{len(self.documents)}", str(self.reports))
        policy = load("tables.yaml", text=text).effective(self.table)
        made = run_operation(policy, order, mapper=lambda: inline)
        document, address = store_or_note(made, self.reports)
        assert address is not None and RunDocument.from_json(document.to_json()) == document
        self.documents = (*self.documents, document)
        return document

    def page(self, *, of_index: bool) -> str:
        """The text of the table's page."""
        shown = [brief_document(row_of(each, 1)) if of_index else each for each in self.documents]
        links = Links(page_of=lambda document: f"{document.run_id}.html")
        html = render_table(shown[0].table, Overview(shown), generated_at=shown[0].started_at, links=links)
        assert f'href="{self.documents[-1].run_id}.html">listed by the run' in html
        return Page(html).text


def found(document: RunDocument) -> FoundVersions:
    assert document.found_versions is not None
    return document.found_versions


def spans(document: RunDocument) -> list[Span]:
    return [(each.count, each.whose, each.kind, each.author) for each in found(document).spans]


@pytest.mark.slow
def test_of_delta_spark(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table, nights = tmp_path / "events", Nights(f"delta:{tmp_path}/events", tmp_path / "reports")
    delta_spark.sql(f"CREATE TABLE {named(table)} (id BIGINT) USING delta")
    first = nights.run()
    # Nobody knows what an earlier run has seen: nothing is named, and the next run goes on from here.
    assert found(first) == FoundVersions(since=None, until=0)
    insert = f"INSERT INTO {named(table)} SELECT id FROM range(5)"
    delta_spark.sql(insert, insert, f"OPTIMIZE {named(table)}")
    query = {"spark.databricks.delta.write.txnAppId": "query-7", "spark.databricks.delta.write.txnVersion": "1"}
    with delta_spark.configured(query):
        delta_spark.sql(insert)
    delta_spark.sql(f"ALTER TABLE {named(table)} SET TBLPROPERTIES ('a' = 'b')", insert)
    second = nights.run()
    assert second.outcome is Outcome.VERIFIED
    info = json.loads((table / "_delta_log" / f"{1:020d}.json").read_text().splitlines()[0])["commitInfo"]
    engine = info["engineInfo"]
    assert engine.startswith("Apache-Spark/")
    assert spans(second) == [
        (1, "a writer", "WRITE", engine),
        (1, "a writer", "SET TBLPROPERTIES", engine),
        (1, "a writer", "WRITE", engine),
        (1, "another manager", "OPTIMIZE", engine),
        (2, "a writer", "WRITE", engine),
    ]
    assert (found(second).since, found(second).until, found(second).total) == (0, 6, 6)
    versions = found(second).versions
    assert [each.application for each in versions] == [None, None, "query-7", None, None, None]
    assert [each.version for each in versions] == [6, 5, 4, 3, 2, 1]
    assert versions[-1].time_ms == info["timestamp"]
    # Our own commit followed on what we had read.
    delta_spark.sql(insert)
    third = nights.run()
    assert spans(third) == [(1, "a writer", "WRITE", engine)]
    assert found(third).since == second.committed_version
    for of_index in (False, True):
        text = nights.page(of_index=of_index)
        assert f"another manager OPTIMIZE 3 1 version by {engine}" in text
        # The index has four spans of a run.
        assert (f"a writer WRITE 1 to 2 2 versions by {engine}" in text) is not of_index
        assert ("2 versions more before these" in text) is of_index
        assert "others committed in between" not in text


@pytest.mark.slow
def test_of_iceberg_spark(iceberg_spark: IcebergSpark, iceberg: Warehouse) -> None:
    table = iceberg.table()
    iceberg_spark.attach(iceberg)
    insert = f"INSERT INTO {table.sql} SELECT id FROM range(5)"
    iceberg_spark.sql(
        f"CREATE NAMESPACE {iceberg.name}.db", f"CREATE TABLE {table.sql} (id BIGINT) USING iceberg", insert
    )
    with configured(iceberg):
        nights = Nights(str(address(table)), iceberg.folder / "reports")
        nights.run()
        rewrite = "rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))"
        iceberg_spark.sql(insert, insert, f"CALL {iceberg.name}.system.{rewrite}", insert)
        second = nights.run()
        assert second.outcome is Outcome.VERIFIED
        (author,) = {each.author for each in found(second).versions}
        assert author.startswith("spark 4.")
        kinds = [("a writer", "append"), ("another manager", "replace"), ("a writer", "append")]
        assert [(whose, kind) for _, whose, kind, _ in spans(second)] == kinds
        assert [count for count, *_ in spans(second)] == [1, 1, 2]
        applications = {each.application for each in found(second).versions}
        assert len(applications) == 1 and str(applications.pop()).startswith("local-")
        iceberg_spark.sql(insert)
        third = nights.run()
        assert spans(third) == [(1, "a writer", "append", author)]
        assert found(third).since == second.committed_version
        # Snapshots that have expired are not named, and nothing fails for the one that a run began from.
        keep = f"CALL {iceberg.name}.system.expire_snapshots(table => 'db.t', older_than => now(), retain_last => 1)"
        iceberg_spark.sql(insert, insert, keep)
        assert spans(nights.run()) == [(1, "a writer", "append", author)]
    for of_index in (False, True):
        assert f"2 versions by {author}" in nights.page(of_index=of_index)


@pytest.mark.slow
def test_of_paimon_java(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table, nights = tmp_path / "orders", Nights(f"paimon:{tmp_path}/orders", tmp_path / "reports")
    options = {"bucket": "1", "write-only": "true", "deletion-vectors.enabled": "true"}
    paimon_java.create(
        table, Layout(columns=[("k", "INT NOT NULL"), ("n", "INT")], primary_keys=["k"], options=options)
    )

    def write(user: str, value: int) -> None:
        paimon_java.write(table, [("+I", key, value) for key in range(20)], Writer(user=user, identifier=value))

    write("job-a", 1)
    nights.run(Operation.UPGRADE)
    assert found(nights.documents[0]).since is None
    write("job-a", 2)
    write("job-a", 3)
    paimon_java.compact(table, Compaction())
    write("job-b", 4)
    second = nights.run(Operation.UPGRADE)
    assert second.outcome is Outcome.VERIFIED
    b, compaction, *rest = spans(second)
    assert b == (1, "a writer", "APPEND", "job-b")
    assert compaction[:3] == (1, "another manager", "COMPACT")
    assert rest == [(2, "a writer", "APPEND", "job-a")]
    assert nights.documents[0].committed_version == found(second).since
    write("job-b", 5)
    third = nights.run(Operation.UPGRADE)
    assert spans(third) == [(1, "a writer", "APPEND", "job-b")]
    for of_index in (False, True):
        assert "2 versions by job-a" in nights.page(of_index=of_index)


@contextmanager
def counted_reads() -> Iterator[Counter[str]]:
    """How often each file is read in the `with` block, by its name in the table or in the reports."""
    reads = Counter[str]()

    def counted(kind: type[LocalStorage | KeptOnDisk]) -> Callable[..., Any]:
        read = kind.read

        def call(self: Any, name: str) -> Any:
            # The document of an earlier attempt has the name of its run, each time another.
            reads["document" if "night-" in name else name] += 1
            return read(self, name)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for kind in (LocalStorage, KeptOnDisk):
            patch.setattr(kind, "read", counted(kind))
        yield reads


def commit(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


@pytest.fixture
def lake(tmp_path: Path) -> tuple[Lake, Nights]:
    """A Delta table of three commits, and its runs."""
    made = Lake(tmp_path / "t", ROWS.schema)
    for _ in range(2):
        made.append(ROWS)
    return made, Nights(f"delta:{tmp_path}/t", tmp_path / "reports")


QUIET = {"when": "files > 1000000"}
"""The table is planned, and the run ends with its plan."""


def test_a_version_that_did_not_move_costs_no_read_of_the_table(lake: tuple[Lake, Nights]) -> None:
    made, nights = lake
    assert nights.run(**QUIET).outcome is Outcome.SKIPPED
    with counted_reads() as unmoved:
        assert nights.run(**QUIET).found_versions is None
    with counted_reads() as without, pytest.MonkeyPatch.context() as patch:
        patch.setattr("nightkeep.running.rewrites.planning.found_versions", lambda *_: None)
        nights.run(**QUIET)
    # One small file of the reports.
    assert [name.partition("/")[0] for name in (unmoved - without).elements()] == ["~versions"]
    made.append(ROWS)
    made.append(ROWS)
    with counted_reads() as moved:
        assert found(nights.run(**QUIET)).total == 2
    with counted_reads() as later:
        assert nights.run(**QUIET).found_versions is None
    # Each commit that is new was read once more than the run needs it for other ends.
    again = {name: number for name, number in (moved - later).items() if name.startswith("_delta_log/")}
    assert again == {commit(3): 1, commit(4): 1}


def test_many_versions_are_counted_and_the_newest_named(lake: tuple[Lake, Nights]) -> None:
    made, nights = lake
    nights.run(**QUIET)
    for _ in range(MOST_VERSIONS + 7):
        made.append(ROWS)
    with counted_reads() as reads:
        document = nights.run(**QUIET)
    assert [each.version for each in found(document).versions] == [*range(59, 9, -1)]
    assert (found(document).total, found(document).unnamed) == (57, 7)
    # As often as the run reads it for other ends, and once more.
    assert reads[commit(10)] == reads[commit(9)] + 1
    html = render_run([document], title="r", generated_at=document.started_at)
    assert "57 versions after version 2" in Page(html).text and "7 older versions more" in Page(html).text
    assert "7 versions more before these" in nights.page(of_index=True)


@pytest.mark.parametrize("outcome", [Outcome.CONFLICTED, Outcome.FAILED])
def test_a_run_that_is_tried_again_names_them_again(lake: tuple[Lake, Nights], outcome: Outcome) -> None:
    made, nights = lake
    nights.run(**QUIET)
    made.append(ROWS)
    document = nights.run(**QUIET)
    keep_version(nights.reports, document.table, 2)
    store_or_note(replace(document, outcome=outcome), nights.reports)
    assert known_version(nights.reports, document.table) == 2
    assert found(nights.run(**QUIET)).total == 1
    assert known_version(nights.reports, document.table) == 3


def test_a_table_that_was_made_anew_has_nothing_new(lake: tuple[Lake, Nights]) -> None:
    _, nights = lake
    table = nights.run(**QUIET).table
    keep_version(nights.reports, table, 1000)
    assert found(nights.run(**QUIET)) == FoundVersions(since=1000, until=2)
    assert known_version(nights.reports, table) == 2


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"table": "t", "version": "2"}', b'{"table": "t"}', b"\xff"])
def test_a_mark_that_cannot_be_read_is_made_again(lake: tuple[Lake, Nights], text: bytes) -> None:
    _, nights = lake
    nights.run(**QUIET)
    (mark,) = (nights.reports / "~versions").iterdir()
    mark.write_bytes(text)
    assert found(nights.run(**QUIET)).since is None
    assert nights.run(**QUIET).found_versions is None


def test_commits_that_cannot_be_read_hinder_no_run(lake: tuple[Lake, Nights]) -> None:
    made, nights = lake
    for _ in range(3):
        made.append(ROWS)
    nights.run(**QUIET)
    made.append(ROWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nightkeep.formats.delta.reading.version_writers.parse_lines", broken)
        document = nights.run(**QUIET)
    assert (document.outcome, document.found_versions) == (Outcome.SKIPPED, None)
    assert found(nights.run(**QUIET)).total == 1


def broken(data: bytes, *, subject: str) -> Any:
    raise CorruptMetadata(subject, "JSON", "something else")


def test_texts_of_commits_are_cut_and_escaped(lake: tuple[Lake, Nights]) -> None:
    made, nights = lake
    nights.run(**QUIET)
    made.append(ROWS)
    newest = made.folder / commit(3)
    info = {"commitInfo": {"operation": "<b>" * 99, "engineInfo": "<script>" * 99, "timestamp": 1 << 62}}
    newest.write_text(f"{json.dumps(info)}\n{newest.read_text()}")
    document = nights.run(**QUIET)
    (version,) = found(document).versions
    assert (len(version.kind), len(version.author)) == (100, 100)
    for of_index in (False, True):
        nights.page(of_index=of_index)
    html = render_run([document], title="r", generated_at=document.started_at)
    assert "<script>" not in html and "<b><b>" not in html and "unknown" in Page(html).text


def test_an_index_has_few_spans_and_old_documents_none(lake: tuple[Lake, Nights]) -> None:
    made, nights = lake
    nights.run(**QUIET)
    for number in range(9):
        made.append(ROWS)
        newest = made.folder / commit(3 + number)
        info = {"commitInfo": {"engineInfo": f"engine {number}"}}
        newest.write_text(f"{json.dumps(info)}\n{newest.read_text()}")
    document = nights.run(**QUIET)
    brief = found(brief_document(row_of(document, 1)))
    assert [each.author for each in brief.spans] == [f"engine {number}" for number in (8, 7, 6, 5)]
    assert (brief.total, brief.unnamed, brief.versions) == (9, 5, ())
    assert len(json.dumps(row_of(document, 1))) < 2_000
    old = document.to_json()
    del old["found_versions"]
    assert RunDocument.from_json(old).found_versions is None
    assert nightkeep.history(reports=nights.reports).documents[-1] == document
