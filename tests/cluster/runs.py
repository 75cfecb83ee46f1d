"""Runs on a cluster over REST, and what one must leave: each change once, the same rows, nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.lake import KINDS, Readers, Tables
from tests.drivers.airflow_cluster import Cluster

from nightkeep.model import Outcome
from nightkeep.records import RunDocument, load_history

RUN_SECONDS = 420.0


@dataclass(frozen=True)
class Before:
    """Tables as other engines read them before the run, and their numbers of versions."""

    tables: Tables
    rows: Mapping[str, Any]
    commits: Mapping[str, int]


def look(tables: Tables, readers: Readers) -> Before:
    return Before(tables, readers.rows(tables), tables.all_commits())


@dataclass
class Found:
    """What a run left, in the words of the table that is printed."""

    published: dict[str, int] = field(default_factory=dict)
    rows: bool = False
    orphans: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def run(cluster: Cluster, dag_id: str, conf: Mapping[str, object] | None = None) -> str:
    """Trigger a run as the operator and wait for its end: its state."""
    rest = cluster.operator
    return rest.wait(dag_id, rest.trigger(dag_id, conf), RUN_SECONDS)


def documents(tables: Tables) -> list[RunDocument]:
    reports = f"{tables.cluster.bucket.uri}/reports"
    return [each for name in tables.names for each in load_history(reports, name)]


def outcomes(tables: Tables) -> dict[str, Outcome]:
    """The last outcome of each table and operation."""
    found = sorted(documents(tables), key=lambda each: each.finished_at)
    return {f"{each.table.rpartition('.')[2]} {each.operation}": each.outcome for each in found}


def published(before: Before) -> dict[str, int]:
    """New versions of each table."""
    return {kind: before.tables.commits(kind) - before.commits[kind] for kind in KINDS}


def faults(before: Before, readers: Readers) -> Iterator[str]:
    """What is wrong after a run, in sentences; none where everything is as it should be."""
    tables = before.tables
    after = readers.rows(tables)
    for kind in KINDS:
        if after[kind] != before.rows[kind]:
            yield f"{kind}: expected the rows of before, found others"
    by_documents = Counter[str]()
    for each in documents(tables):
        kind = each.table.rpartition(".")[2]
        if each.committed_version is not None:
            by_documents[kind] += 1
            if each.expectations.status != "passed":
                yield f"{kind}: expected a check that passed, found {each.expectations.status}"
    for kind, count in published(before).items():
        if count != by_documents[kind]:
            yield f"{kind}: expected a document for each of {count} new versions, found {by_documents[kind]}"


def results(cluster: Cluster) -> set[str]:
    """Files in which jobs report to tasks. A task that is killed leaves its own, which later ones remove by its age."""
    return {path.name for path in (cluster.bucket.folder / "reports" / "~results").rglob("*") if path.is_file()}


def leftovers(cluster: Cluster) -> Iterator[str]:
    """Processes that a run should have ended."""
    for each in cluster.left():
        yield f"expected no process, found {each}"
