"""Tables without keys in other formats and with nested columns: Java writes, we pack, cluster, delete and update, Java
and Spark read."""

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout, Row
from tests.engines.paimon import test_file_formats as plain
from tests.engines.paimon import test_nested_columns as nested
from tests.formats.paimon.appended import SMALL, VECTORS, Appended
from tests.support.extended import some_extended

from nightkeep.checking.check import check
from nightkeep.model import Address, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

TABLES: Mapping[str, Mapping[str, str]] = {
    "nested orc": {"file.format": "orc"},
    "plain avro": {"file.format": "avro"},
    "nested parquet": {},
    "plain orc": {"file.format": "orc"},
    "nested orc, all statistics": {"file.format": "orc", "metadata.stats-dense-store": "false"},
    "nested parquet, all statistics": {"metadata.stats-dense-store": "false"},
}


def made(java: PaimonJava, folder: Path, kind: str) -> Appended:
    """Four small files, some of whose rows Java has deleted; `k` numbers the rows."""
    is_nested = kind.startswith("nested")
    columns = list(nested.COLUMNS if is_nested else plain.COLUMNS)
    if "avro" in kind:
        columns = [(name, "TIMESTAMP(6)" if name == "at" else text) for name, text in columns]
    java.create(folder, Layout(columns, options={"bucket": "-1", **VECTORS, **SMALL, **TABLES[kind]}))
    for step in range(4):
        java.write(folder, [_row(kind, k, 1 + step % 2) for k in range(step * 60, step * 60 + 60)])
    table = Appended(java, folder, Random(kind), columns, partitioned=False)
    table.delete(0.2, files=0.6)
    return table


def _row(kind: str, k: int, step: int) -> Row:
    if kind.startswith("nested"):
        return nested.row("+I", k, step)
    row = plain.full_row("+I", k, step)
    at = f"{1990 + k % 40}-01-01T00:00:00.123456"
    return (*row[: plain.AT], at, *row[plain.AT + 1 :]) if "avro" in kind else row


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", some_extended([*TABLES], keep=2))
def test_what_we_do_is_what_java_reads(paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table = made(paimon_java, tmp_path / "t", kind)
    before = table.rows()
    assert table.delete_where("k BETWEEN 10 AND 15 OR k = 200").outcome is Outcome.VERIFIED
    kept = [row for row in before if not 10 <= row[0] <= 15 and row[0] != 200]
    assert table.rows() == kept
    document = table.update_where("k >= 100 AND k < 170", ["k = k + 1000"])
    assert document.outcome is Outcome.VERIFIED, document.reason
    truth = sorted(((row[0] + 1000, *row[1:]) if 100 <= row[0] < 170 else row for row in kept), key=repr)
    assert table.rows() == truth
    assert _checked(table, document.committed_version, spark) is CheckStatus.PASSED
    packed = table.optimize(full=True)
    assert packed.outcome is Outcome.VERIFIED, packed.reason
    assert table.rows() == truth and not table.vectors()
    assert {file.name.rpartition(".")[2] for file in table.files()} == {TABLES[kind].get("file.format", "parquet")}
    assert _checked(table, packed.committed_version, spark) is CheckStatus.PASSED
    table.delete(0.3)
    truth = table.rows()
    if "avro" not in kind:
        clustered = table.optimize(full=True, clustering={"zorder": ["k"]})
        assert clustered.outcome is Outcome.VERIFIED, clustered.reason
    paimon_java.compact(table.folder)
    assert table.rows() == truth


def _checked(table: Appended, version: int | None, spark: SparkSession) -> CheckStatus:
    request = CheckRequest(address=Address("paimon", str(table.folder), "t"), version=version)
    return check(request, spark=spark).status


def test_conditions_on_nested_columns_are_refused(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path / "t", "nested parquet")
    for document in (table.delete_where("place.x = 1"), table.update_where("k = 1 AND place IS NULL", ["k = 2"])):
        assert document.outcome is Outcome.REFUSED and "a condition on column place" in str(document.reason)


def test_times_of_an_unknown_zone_are_refused(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path / "t", "plain orc")
    document = table.delete_where("zoned > TIMESTAMP '2026-11-01 00:00:00'")
    assert document.outcome is Outcome.REFUSED and "depend on the writer's time zone" in str(document.reason)
