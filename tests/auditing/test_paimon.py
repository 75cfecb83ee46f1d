"""Compactions of Paimon tables, honest and damaged by a writer that proves nothing: what an audit finds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.formats.paimon import sabotage
from tests.formats.paimon.contents import SAMPLES
from tests.formats.paimon.sabotage import Act, Staged
from tests.formats.paimon.upgrade import upgrade

import nightkeep
from nightkeep.model import Candidate, Fingerprint, Outcome, Plan, TaskCost, UnitProof, Verified
from nightkeep.records import RunDocument
from nightkeep.running.rewrites import run_operation

ONE_DAY = "dt = '2026-11-01'"
ALL = "3650d"
COST = TaskCost(0.0, 0.0, 0, "nobody")


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "orders", tmp_path / "orders"))


@contextmanager
def unproven(table: Path, act: Act) -> Iterator[None]:
    """Upgrades publish what `act` has damaged: nobody looks before."""

    def published(opened: Any, plan: Plan, rewrites: Any, candidate: Candidate, **options: Any) -> Any:
        act(Staged(table, candidate))
        proofs = tuple(UnitProof(key, Fingerprint(), Fingerprint(), (), COST) for key in candidate.units)
        return Verified(plan, candidate, tuple(rewrites), proofs, options["level"])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_operation, "verify", published)
        yield


def audit(table: Path, **options: Any) -> RunDocument:
    return nightkeep.audit(f"paimon:{table}", since=ALL, reports=table.parent / "reports", **options)


def commits(document: RunDocument) -> dict[int, dict[str, Any]]:
    section: Any = document.extra["audit"]
    return {each["version"]: each for each in section["commits"]}


def newest(table: Path) -> int:
    return max(int(path.name.rpartition("-")[2]) for path in (table / "snapshot").glob("snapshot-*"))


def test_an_upgrade_is_proven(orders: Path) -> None:
    document = upgrade(orders)
    assert document.outcome is Outcome.VERIFIED
    found = audit(orders, files=True)
    assert found.outcome is Outcome.VERIFIED, found.reason
    assert commits(found)[newest(orders)]["verdict"] == "proven"


DIFFERS = [
    sabotage.drop_a_row,
    sabotage.flip_a_bit,
    sabotage.swap_values_of_two_rows,
    sabotage.swap_values_of_two_columns,
    sabotage.swap_null_and_empty,
    sabotage.lose_a_vector,
    sabotage.shift_a_vector,
    sabotage.move_a_vector,
    sabotage.repeat_a_row,
    sabotage.write_a_retract,
    sabotage.lose_the_vectors_of_another_bucket,
]
UNSOUND = [
    sabotage.overrun_a_vector,
    sabotage.miscount_rows,
    sabotage.miscount_the_version,
    sabotage.cut_a_file,
    sabotage.remove_a_file,
    sabotage.raise_a_minimum,
    sabotage.lower_a_maximum,
    sabotage.miscount_nulls,
    sabotage.widen_the_keys,
    sabotage.narrow_the_keys,
    sabotage.write_rows_out_of_order,
    sabotage.put_it_on_a_level_with_others,
    sabotage.narrow_a_file_that_stayed,
    sabotage.list_other_partitions,
    sabotage.list_other_buckets,
    sabotage.list_other_levels,
    sabotage.list_fewer_bytes_of_a_manifest,
    sabotage.state_fewer_bytes_of_a_list,
]


@pytest.mark.parametrize("act", DIFFERS, ids=lambda act: act.__name__)
def test_rows_that_differ_are_found(orders: Path, act: Act) -> None:
    with unproven(orders, act):
        upgrade(orders, where=ONE_DAY)
    document = audit(orders)
    assert document.outcome is Outcome.MISMATCH, document.reason
    wrong = commits(document)[newest(orders)]
    assert wrong["verdict"] == "differs" and wrong["missing"] + wrong["extra"] > 0, wrong


def test_a_lost_file_of_another_bucket_is_found(orders: Path) -> None:
    with unproven(orders, sabotage.lose_a_file_of_another_bucket):
        upgrade(orders, where=ONE_DAY)
    document = audit(orders)
    assert document.outcome is Outcome.MISMATCH, document.reason
    assert commits(document)[newest(orders)]["verdict"] == "differs"


@pytest.mark.parametrize("act", UNSOUND, ids=lambda act: act.__name__)
def test_metadata_that_contradicts_is_unsound(orders: Path, act: Act) -> None:
    with unproven(orders, act):
        upgrade(orders, where=ONE_DAY)
    document = audit(orders)
    assert document.outcome is Outcome.MISMATCH, document.reason
    assert commits(document)[newest(orders)]["verdict"] == "unsound"
