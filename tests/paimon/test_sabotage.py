"""Damage between staging and proof: the gate catches each by what is wrong with it, and publishes nothing."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.paimon import sabotage
from tests.paimon.contents import SAMPLES, opened
from tests.paimon.sabotage import Act, Staged
from tests.paimon.upgrade import upgrade

from nightkeep import care
from nightkeep.formats.paimon import metadata
from nightkeep.formats.paimon.avro import Container, Record
from nightkeep.model import Candidate, Outcome, Plan
from nightkeep.report import RunDocument
from nightkeep.storage import Storage

ONE_DAY = {"where": "dt = '2026-11-01'"}

CAUGHT: dict[Act, str] = {
    sabotage.drop_a_row: "rows differ",
    sabotage.repeat_a_row: "rows differ",
    sabotage.flip_a_bit: "rows differ",
    sabotage.swap_values_of_two_rows: "rows differ",
    sabotage.swap_values_of_two_columns: "rows differ",
    sabotage.swap_null_and_empty: "rows differ",
    sabotage.write_rows_out_of_order: "keys do not ascend strictly",
    sabotage.write_a_retract: "holds retracts",
    sabotage.lose_a_vector: "rows differ",
    sabotage.shift_a_vector: "rows differ",
    sabotage.move_a_vector: "rows differ",
    sabotage.overrun_a_vector: "position 1048576 of",
    sabotage.raise_a_minimum: "customer_id from 'C-.*' to 'C-.*', statistics say 'C-01500'",
    sabotage.lower_a_maximum: "status from .* to 'shipped', statistics say .* to 'packed'",
    sabotage.miscount_nulls: "note has [0-9]+ nulls, statistics say",
    sabotage.widen_the_keys: r"metadata says .* to \(99999,\)",
    sabotage.narrow_the_keys: "keys from",
    sabotage.raise_the_last_sequence_number: "sequence numbers .*, metadata says",
    sabotage.miscount_rows: "rows as its manifest says",
    sabotage.miscount_the_version: "totalRecordCount",
    sabotage.forget_the_delete_count: "deleteRowCount None",
    sabotage.put_it_on_a_level_with_others: "level 5: key ranges of .* overlap",
    sabotage.narrow_a_file_that_stayed: "_VALUE_STATS changed, though its bytes did not",
    sabotage.lose_a_file_of_another_bucket: "changed, though no unit of it was worked on",
    sabotage.lose_the_vectors_of_another_bucket: "entries of other buckets",
    sabotage.cut_a_file: "expected a Parquet file",
    sabotage.remove_a_file: "expected a Parquet file",
    sabotage.cut_a_manifest: "expected an Avro object container file",
}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "orders", tmp_path / "orders"))


@pytest.mark.parametrize("level", ["full", "touched"])
@pytest.mark.parametrize("act", CAUGHT, ids=lambda act: act.__name__)
def test_the_gate_catches(act: Act, level: str, orders: Path) -> None:
    with before_the_gate(orders, act):
        document = upgrade(orders, verify=level, **ONE_DAY)
    assert_stopped(orders, document, CAUGHT[act])


@pytest.mark.parametrize("parent_lies", [False, True])
def test_the_gate_catches_a_proof_against_another_version(orders: Path, parent_lies: bool) -> None:
    """Version 6 lacks the level-0 files of version 7, which were lifted."""
    verify = care.verify

    def older(table: Any, plan: Plan, rewrites: Any, candidate: Candidate, **options: Any) -> Any:
        claimed = replace(candidate, parent_version=6) if parent_lies else candidate
        return verify(table, replace(plan, version=6), rewrites, claimed, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(care, "verify", older)
        document = upgrade(orders, **ONE_DAY)
    assert_stopped(orders, document, "rows differ")
    assert document.reason is not None
    assert parent_lies or "on top of version 7, expected the planned 6" in document.reason


def test_the_gate_catches_a_manifest_that_the_reader_misses_on_both_sides(orders: Path) -> None:
    read, newest = metadata.read_manifest, _newest_manifest(orders)

    def forgetful(storage: Storage, meta: Record) -> Container:
        container = read(storage, meta)
        return replace(container, records=()) if meta["_FILE_NAME"] == newest else container

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata, "read_manifest", forgetful)
        document = upgrade(orders, **ONE_DAY)
    assert_stopped(orders, document, "parent snapshot 7: totalRecordCount .*candidate snapshot 8: totalRecordCount")


@pytest.mark.parametrize("level", [0, 4, 5])
def test_the_gate_catches_a_file_that_the_reader_misses_on_both_sides(orders: Path, level: int) -> None:
    merge = metadata.merge_entries

    def forgetful(records: Any) -> list[Record]:
        live = merge(records)
        lost = next((record for record in live if record["_FILE"]["_LEVEL"] == level), None)
        return [record for record in live if record is not lost]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata, "merge_entries", forgetful)
        document = upgrade(orders, where="dt = '2026-11-03'")
    assert_stopped(orders, document, "totalRecordCount")


@contextmanager
def before_the_gate(table: Path, act: Act) -> Iterator[None]:
    verify = care.verify

    def sabotaged(opened: Any, plan: Plan, rewrites: Any, candidate: Candidate, **options: Any) -> Any:
        act(Staged(table, candidate))
        return verify(opened, plan, rewrites, candidate, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(care, "verify", sabotaged)
        yield


def assert_stopped(table: Path, document: RunDocument, reason: str) -> None:
    assert (document.outcome, document.outcome.exit_status) == (Outcome.MISMATCH, 5), document.reason
    assert document.committed_version is None
    assert not (table / "snapshot/snapshot-8").exists()
    assert document.reason is not None
    assert re.search(reason, document.reason, re.S), document.reason


def _newest_manifest(table: Path) -> str:
    return str(opened(table).snapshot().delta_manifests[0]["_FILE_NAME"])
