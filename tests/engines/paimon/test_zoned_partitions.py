"""Partitions of times with a time zone: Java names their folders by its own zone, unless the names are legacy ones."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.drivers.json_lines import EngineError
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout
from tests.drivers.toolchain import SHORT_LIVED

from nightkeep.admission.order import Order
from nightkeep.groups.stored_document import StoredDocument
from nightkeep.model import Address, Operation, Outcome
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

COLUMNS = [("id", "INT"), ("ts", "TIMESTAMP(3) WITH LOCAL TIME ZONE")]
TOKYO = (*SHORT_LIVED, "-Duser.timezone=Asia/Tokyo")


def appended(java: PaimonJava, folder: Path, *, legacy: bool, rows: Sequence[int] = range(12)) -> Path:
    table = folder / "t"
    options = {"bucket": "-1", "partition.legacy-name": str(legacy).lower()}
    java.create(table, Layout(COLUMNS, partition_keys=["ts"], options=options))
    for row in rows:
        java.write(table, [["+I", row, f"2026-11-0{1 + row % 2}T03:04:05.006Z"]])
    return table


def optimized(table: Path) -> RunDocument:
    policy = EffectivePolicy(Address("paimon", str(table), "t"), Settings(), {})
    order = Order(Operation.OPTIMIZE, "night", str(table.parent / "reports"))
    return run_operation(policy, order, mapper=lambda: inline)


def test_names_in_the_zone_of_the_writer_are_refused(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = appended(paimon_java, tmp_path, legacy=False, rows=[0])
    document = optimized(table)
    assert document.outcome is Outcome.REFUSED, document.reason
    assert "partition column ts of type TIMESTAMP(3) WITH LOCAL TIME ZONE" in str(document.reason)
    with PaimonJava(java_options=TOKYO) as elsewhere, pytest.raises(EngineError, match="FileNotFoundException"):
        elsewhere.read(table)


def test_legacy_names_are_the_same_in_every_zone(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = appended(paimon_java, tmp_path, legacy=True)
    before = sorted(paimon_java.read(table).rows)
    document = optimized(table)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert sorted(paimon_java.read(table).rows) == before


def test_a_damaged_table_is_not_tried_again(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = appended(paimon_java, tmp_path, legacy=True, rows=[0])
    (table / "snapshot/snapshot-1").write_bytes(b"{")
    document = optimized(table)
    assert document.outcome is Outcome.FAILED and str(document.reason).startswith("CorruptMetadata: ")
    assert StoredDocument(document, None).to_json()["permanent"] is True
