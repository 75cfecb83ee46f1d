"""Tables with dynamic buckets: a key stays in its bucket, because the hash index survives our commits as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, Scan, Writer
from tests.formats.paimon.contents import opened
from tests.formats.paimon.keeping import aged, orphans
from tests.formats.paimon.upgrade import upgrade

from nightkeep.checking.check import check
from nightkeep.encodings.avro_container import Record
from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.features import refuse_schema
from nightkeep.formats.paimon.metadata.snapshot import read_schemas
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus
from nightkeep.storage import open_storage

COLUMNS = [("day", "STRING NOT NULL"), ("k", "INT NOT NULL"), ("note", "STRING")]
OPTIONS = {"bucket": "-1", "dynamic-bucket.target-row-num": "50", "write-only": "true"}
KINDS: Mapping[Operation, Mapping[str, str]] = {
    Operation.UPGRADE: {"deletion-vectors.enabled": "true"},
    Operation.OPTIMIZE: {"num-sorted-run.compaction-trigger": "2"},
}


def write(engine: PaimonJava, table: Path, keys: range, note: str, kind: str = "+U") -> None:
    engine.write(table, [(kind, day, k, f"{note} {k}") for day in ("a", "b") for k in keys], Writer(user="writer"))


def hashes(table: Path) -> list[Record]:
    return [record for record in opened(table).snapshot().index_records if record["_INDEX_TYPE"] == "HASH"]


def read(engine: PaimonJava, table: Path) -> list[tuple[Any, ...]]:
    return sorted(engine.read(table, Scan(options=MERGE_ON_READ)).rows)


@pytest.mark.few(1)
@pytest.mark.parametrize("operation", KINDS)
def test_a_key_is_found_in_its_bucket_after_our_commits(
    operation: Operation, paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    options = {**OPTIONS, **KINDS[operation]}
    layout = Layout(columns=COLUMNS, primary_keys=["day", "k"], partition_keys=["day"], options=options)
    paimon_java.create(table, layout)
    write(paimon_java, table, range(300), "first")
    assert upgrade(table, operation=operation, full=True).outcome is Outcome.VERIFIED
    for step in range(3):
        write(paimon_java, table, range(100 * step, 100 * step + 220), f"step {step}")
        write(paimon_java, table, range(50 * step, 50 * step + 9), "", "-D")
        truth, before = read(paimon_java, table), hashes(table)
        assert len({(record["_PARTITION"], record["_BUCKET"]) for record in before}) == len(before) > 10
        document = upgrade(table, operation=operation, full=step == 1)
        assert document.outcome is Outcome.VERIFIED, document.reason
        assert hashes(table) == before
        assert read(paimon_java, table) == truth
        if step == 1:
            paimon_java.compact(table, Compaction(user="compactor"))
    keys = [row[:2] for row in read(paimon_java, table)]
    assert len(keys) == len(set(keys))
    report = check(CheckRequest(Address("paimon", str(table), "t"), base_version=document.base_version), spark=spark)
    assert report.status is CheckStatus.PASSED, str(report)
    aged(table)
    assert orphans(table) == []
    paimon_java.expire(table)
    assert [row[:2] for row in read(paimon_java, table)] == keys


def test_keys_that_may_change_their_partition_are_refused(paimon_java: PaimonJava, tmp_path: Path) -> None:
    options = {"bucket": "-1", "write-only": "true"}
    layout = Layout(columns=COLUMNS, primary_keys=["k"], partition_keys=["day"], options=options)
    paimon_java.create(tmp_path / "t", layout)
    (schema,) = read_schemas(open_storage(str(tmp_path / "t"))).values()
    with pytest.raises(RefusedTable, match=r"\(dynamic buckets\) without the partition in the key is not handled"):
        refuse_schema("t", schema)
