"""Tables that older releases of Paimon wrote: Java 2.0.0 shows the same rows after everything that Nightkeep does."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.drivers.canonical import rows_from_arrow
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Scan
from tests.formats.paimon.appended import operate
from tests.formats.paimon.contents import opened
from tests.formats.paimon.keeping import aged, expired, live_names, names, orphans
from tests.formats.paimon.releases import KINDS, RELEASES, unpacked

import nightkeep
from nightkeep.checking.check import check
from nightkeep.formats.paimon.metadata.schema import has_vectors
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus, RunDocument

pytestmark = [pytest.mark.parametrize("kind", KINDS), pytest.mark.parametrize("release", RELEASES)]
ARRAYS = "tags"
"""The column of arrays, whose values Java and Arrow spell differently."""


@pytest.fixture
def table(release: str, kind: str, tmp_path: Path) -> Path:
    return unpacked(release, kind, tmp_path)


@pytest.mark.in_turn("kind")
def test_java_shows_the_same_rows_after_every_operation(table: Path, paimon_java: PaimonJava) -> None:
    shown, merged = rows(paimon_java, table), rows(paimon_java, table, merged=True)
    assert ours(paimon_java, table) == shown
    aged(table)
    assert orphans(table) == []
    document = maintained(table, full=not has_vectors(opened(table).snapshot().schema))
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert rows(paimon_java, table, merged=True) == merged
    if not opened(table).snapshot().schema.primary_keys:
        assert rows(paimon_java, table) == shown
        clustered = operate(table, Operation.OPTIMIZE, full=True, clustering={"zorder": ["id", "born"]})
        # Rows of fixed buckets keep their order.
        assert clustered.outcome is Outcome.VERIFIED or "ordered" in table.name, clustered.reason
    elif has_vectors(opened(table).snapshot().schema):
        full = maintained(table, full=True)
        assert full.outcome is Outcome.VERIFIED, full.reason
    assert rows(paimon_java, table, merged=True) == merged
    assert ours(paimon_java, table) == rows(paimon_java, table)
    assert maintained(table).outcome is Outcome.UNCHANGED
    aged(table)
    assert orphans(table) == []
    assert expired(table).outcome in (Outcome.UNCHANGED, Outcome.VERIFIED)
    assert paimon_java.expire(table)
    assert {*live_names(table)} <= names(table) and orphans(table) == []
    assert rows(paimon_java, table, merged=True) == merged


@pytest.mark.extended
def test_the_check_reads_them(table: Path, spark: SparkSession) -> None:
    document = maintained(table, full=True)
    request = CheckRequest(address=Address("paimon", str(table), "t"), version=document.committed_version)
    found = check(request, spark=spark)
    assert found.status is CheckStatus.PASSED, found


def maintained(table: Path, **settings: object) -> RunDocument:
    vectors = has_vectors(opened(table).snapshot().schema)
    return operate(table, Operation.UPGRADE if vectors else Operation.OPTIMIZE, **settings)


def rows(engine: PaimonJava, table: Path, *, merged: bool = False) -> list[str]:
    """Rows as Java 2.0.0 shows them, without arrays."""
    columns = [name for name in types(engine, table) if name != ARRAYS]
    found = engine.read(table, Scan(projection=columns, options=MERGE_ON_READ if merged else {}))
    return sorted(repr(tuple(row)) for row in found.rows)


def ours(engine: PaimonJava, table: Path) -> list[str]:
    every = {name: kind for name, kind in types(engine, table).items() if name != ARRAYS}
    found: Any = nightkeep.read(f"paimon:{table}", columns=list(every)).read_all()
    return sorted(repr(tuple(row)) for row in rows_from_arrow(found, list(every.values())))


def types(engine: PaimonJava, table: Path) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in engine.schema(table)["fields"]}
