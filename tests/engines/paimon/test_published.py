"""The same damage with the gate switched off: the check of the published version catches it on its own."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.formats.paimon import sabotage
from tests.formats.paimon.contents import SAMPLES, opened
from tests.formats.paimon.sabotage import Act, Staged
from tests.formats.paimon.upgrade import upgrade

from nightkeep.checking.check import check
from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.metadata import snapshot
from nightkeep.formats.paimon.metadata.avro import Container
from nightkeep.model import Address, Candidate, Fingerprint, Outcome, Plan, TaskCost, UnitProof, Verified, VerifyLevel
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus
from nightkeep.records.check_report import CheckReport
from nightkeep.running.rewrites import run_operation
from nightkeep.storage import Storage


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "orders", tmp_path / "orders"))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "acts",
    [
        (
            sabotage.drop_a_row,
            sabotage.repeat_a_row,
            sabotage.flip_a_bit,
            sabotage.swap_values_of_two_rows,
            sabotage.swap_values_of_two_columns,
            sabotage.swap_null_and_empty,
        ),
        (
            sabotage.lose_a_vector,
            sabotage.shift_a_vector,
            sabotage.move_a_vector,
            sabotage.write_a_retract,
            sabotage.overrun_a_vector,
            sabotage.miscount_rows,
        ),
        (
            sabotage.raise_a_minimum,
            sabotage.lower_a_maximum,
            sabotage.miscount_nulls,
            sabotage.raise_the_last_sequence_number,
            sabotage.narrow_a_file_that_stayed,
        ),
    ],
    ids=["rows", "vectors and kinds", "statistics"],
)
def test_every_unit_that_was_damaged_is_named(acts: Sequence[Act], orders: Path, spark: SparkSession) -> None:
    units = publish_unproven(orders, *acts)
    found = second_opinion(orders, spark)
    damaged = {str(unit): act.__name__ for unit, act in zip(units, acts, strict=False)}
    assert damaged.keys() <= _failed(found), {damaged[unit] for unit in damaged.keys() - _failed(found)}


def test_units_that_the_run_had_no_business_with_are_compared_too(orders: Path, spark: SparkSession) -> None:
    acts = (sabotage.lose_a_file_of_another_bucket, sabotage.lose_the_vectors_of_another_bucket)
    units = publish_unproven(orders, *acts, where="dt = '2026-11-01'")
    strangers = _failed(second_opinion(orders, spark)) - set(map(str, units)) - {"table"}
    assert strangers


@pytest.mark.extended
def test_a_count_that_the_version_gets_wrong_is_named(orders: Path, spark: SparkSession) -> None:
    publish_unproven(orders, sabotage.miscount_the_version)
    assert _failed(second_opinion(orders, spark)) == {"table"}


@pytest.mark.extended
def test_a_manifest_that_every_reader_of_ours_misses_is_found(orders: Path, spark: SparkSession) -> None:
    read, newest = snapshot.read_manifest, str(opened(orders).snapshot().delta_manifests[0]["_FILE_NAME"])

    def forgetful(storage: Storage, meta: Record) -> Container:
        container = read(storage, meta)
        return replace(container, records=()) if meta["_FILE_NAME"] == newest else container

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "read_manifest", forgetful)
        publish_unproven(orders)
        assert "table" in _failed(second_opinion(orders, spark))


def test_another_base_than_the_one_that_was_upgraded_differs(orders: Path, spark: SparkSession) -> None:
    """Version 6 lacks the last level-0 files of version 7."""
    assert upgrade(orders).outcome is Outcome.VERIFIED
    assert second_opinion(orders, spark, base=6).status is CheckStatus.FAILED


def publish_unproven(table: Path, *acts: Act, **settings: object) -> Sequence[object]:
    """An upgrade whose gate lets everything pass, with the n-th act on the n-th unit; the units, in that order."""
    touched: list[object] = []

    def asleep(opened: Any, plan: Plan, rewrites: Any, candidate: Candidate, **options: Any) -> Verified:
        for number, act in enumerate(acts):
            act(Staged(table, candidate, number))
        touched.extend(candidate.units)
        cost = TaskCost(0.0, 0.0, 0, "")
        proofs = tuple(UnitProof(key, Fingerprint(), Fingerprint(), (), cost) for key in candidate.units)
        return Verified(plan, candidate, rewrites, proofs, VerifyLevel.FULL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_operation, "verify", asleep)
        assert upgrade(table, **settings).committed_version == 8
    return touched


def second_opinion(table: Path, spark: SparkSession, *, base: int = 7) -> CheckReport:
    return check(CheckRequest(Address("paimon", str(table), table.name), version=8, base_version=base), spark=spark)


def _failed(report: CheckReport) -> set[str]:
    assert report.status is CheckStatus.FAILED, str(report)
    return {str(result.unit) for result in report.results if result.status is CheckStatus.FAILED}
