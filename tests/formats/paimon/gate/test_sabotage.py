"""Damage between staging and proof: the gate catches each by what is wrong with it, and publishes nothing."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, Scan, Writer
from tests.formats.paimon import sabotage
from tests.formats.paimon.contents import SAMPLES, commits_of, files, opened
from tests.formats.paimon.sabotage import Act, Staged
from tests.formats.paimon.upgrade import upgrade

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.metadata import snapshot
from nightkeep.formats.paimon.metadata.avro import Container, read_container, write_container
from nightkeep.model import Candidate, Outcome, Plan
from nightkeep.records import RunDocument
from nightkeep.running.rewrites import run_operation
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
    sabotage.raise_a_minimum: "customer_id has a value below the minimum that statistics state",
    sabotage.lower_a_minimum: "order_id has no value at an end of the range",
    sabotage.lower_a_maximum: "status has a value above the maximum that statistics state",
    sabotage.miscount_nulls: "note has [0-9]+ nulls, statistics state",
    sabotage.widen_the_keys: "first or last key differs from what metadata states",
    sabotage.narrow_the_keys: "first or last key differs",
    sabotage.raise_the_last_sequence_number: "sequence numbers .*, metadata states",
    sabotage.miscount_rows: "rows as its manifest states",
    sabotage.miscount_the_version: "totalRecordCount",
    sabotage.forget_the_delete_count: "deleteRowCount None",
    sabotage.put_it_on_a_level_with_others: "level 5: key ranges of .* overlap",
    sabotage.narrow_a_file_that_stayed: "_VALUE_STATS changed, though its bytes did not",
    sabotage.lose_a_file_of_another_bucket: "changed, though no unit of it was worked on",
    sabotage.lose_the_vectors_of_another_bucket: "entries of other buckets",
    sabotage.list_other_partitions: "2026-12-24 of partition column 0, which misses an entry",
    sabotage.list_other_partitions_of_a_manifest_that_stayed: "its line in the list changed",
    sabotage.list_other_buckets: "its list states buckets 77 to 78, its entries have 0 to 1",
    sabotage.list_other_levels: "its list states levels 0 to 0, its entries have 0 to 4",
    sabotage.list_fewer_bytes_of_a_manifest: "its list states [0-9]+ bytes, the file has",
    sabotage.state_fewer_bytes_of_a_list: "baseManifestListSize 10, the file has",
    sabotage.state_another_number_of_buckets: "an entry of 3 buckets, the table has 2",
    sabotage.state_which_columns_are_there: "_WRITE_COLS, expected none of a new file",
    sabotage.state_that_there_is_an_index: "_EXTRA_FILES, expected none of a new file",
    sabotage.state_that_it_was_appended: "states source 0, expected 1",
    sabotage.state_that_it_was_made_long_ago: "states creation at 1, before all that were there",
    sabotage.commit_by_another_name: "commitUser writer",
    sabotage.turn_back_the_time: "made at 1, before its parent",
    sabotage.raise_the_watermark: "watermark 1152921504606846976, expected its parent's, None",
    sabotage.set_a_property: "max-sequence-number 0, expected at least",
    sabotage.cut_a_file: "expected a Parquet file",
    sabotage.remove_a_file: "expected a file that metadata names, found no such file",
    sabotage.cut_a_manifest: "expected an Avro object container file",
}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "orders", tmp_path / "orders"))


@pytest.mark.in_turn("level")
@pytest.mark.parametrize("level", ["full", "touched"])
@pytest.mark.parametrize("act", CAUGHT, ids=lambda act: act.__name__)
def test_the_gate_catches(act: Act, level: str, orders: Path) -> None:
    with before_the_gate(orders, act):
        document = upgrade(orders, verify=level, **ONE_DAY)
    assert_stopped(orders, document, CAUGHT[act])


@pytest.mark.parametrize("parent_lies", [False, True])
def test_the_gate_catches_a_proof_against_another_version(orders: Path, parent_lies: bool) -> None:
    """Version 6 lacks the level-0 files of version 7, which were lifted."""
    verify = run_operation.verify

    def older(table: Any, plan: Plan, rewrites: Any, candidate: Candidate, **options: Any) -> Any:
        older = table.snapshot(6).identity
        claimed = replace(candidate, parent=older) if parent_lies else candidate
        return verify(table, replace(plan, base=older), rewrites, claimed, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_operation, "verify", older)
        document = upgrade(orders, **ONE_DAY)
    assert_stopped(orders, document, "rows differ")
    assert document.reason is not None
    assert parent_lies or "on top of version 7, expected the planned 6" in document.reason


def test_the_gate_catches_a_manifest_that_the_reader_misses_on_both_sides(orders: Path) -> None:
    read, newest = snapshot.read_manifest, _newest_manifest(orders)

    def forgetful(storage: Storage, meta: Record) -> Container:
        container = read(storage, meta)
        return replace(container, records=()) if meta["_FILE_NAME"] == newest else container

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "read_manifest", forgetful)
        document = upgrade(orders, **ONE_DAY)
    assert_stopped(orders, document, "parent snapshot 7: totalRecordCount .*candidate snapshot 8: totalRecordCount")


@pytest.mark.parametrize("level", [0, 4, 5])
def test_the_gate_catches_a_file_that_the_reader_misses_on_both_sides(orders: Path, level: int) -> None:
    merge = snapshot.merge_entries

    def forgetful(records: Any) -> list[Record]:
        live = merge(records)
        lost = next((record for record in live if record["_FILE"]["_LEVEL"] == level), None)
        return [record for record in live if record is not lost]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "merge_entries", forgetful)
        document = upgrade(orders, where="dt = '2026-11-03'")
    assert_stopped(orders, document, "totalRecordCount")


@pytest.fixture
def numbered(paimon_java: PaimonJava, tmp_path: Path) -> Path:
    """Keys 0..19999, numbered as they are, on the top level: too large to be merged with a small level 0."""
    table = tmp_path / "shop.db" / "numbered"
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}
    paimon_java.create(table, Layout([("id", "INT NOT NULL"), ("text", "STRING")], ["id"], options=options))
    _write(paimon_java, table, range(20_000), "base")
    paimon_java.compact(table, Compaction(full=True, user="compactor"))
    return table


def test_rows_older_than_what_they_would_replace_are_reported_by_key(paimon_java: PaimonJava, numbered: Path) -> None:
    """A lookup takes level 0 for newer, readers that merge compare numbers: two writers have numbered on their own."""
    _write(paimon_java, numbered, range(500, 510), "late")
    renumber(numbered, first=0)
    before = files(numbered)
    document = upgrade(numbered)
    assert_stopped(numbered, document, "overlapping sequence numbers of two writers: 10 keys of .* are newer")
    assert before.items() <= files(numbered).items()


def test_keys_with_two_newest_rows_are_reported(paimon_java: PaimonJava, numbered: Path) -> None:
    for text in ("one", "other"):
        _write(paimon_java, numbered, range(500, 510), text)
    renumber(numbered, first=20_000)
    document = upgrade(numbered)
    assert_stopped(numbered, document, "overlapping sequence numbers .*: 10 keys have two newest rows")


def test_numbers_that_overlap_on_different_keys_are_no_obstacle(paimon_java: PaimonJava, numbered: Path) -> None:
    _write(paimon_java, numbered, range(500, 510), "one")
    _write(paimon_java, numbered, range(600, 610), "other")
    renumber(numbered, first=20_000)
    truth = sorted(paimon_java.read(numbered, Scan(options=MERGE_ON_READ)).rows)
    assert upgrade(numbered).outcome is Outcome.VERIFIED
    assert sorted(paimon_java.read(numbered).rows) == truth


def _write(engine: PaimonJava, table: Path, keys: range, text: str) -> None:
    engine.write(table, [["+U", key, f"{text} {key}"] for key in keys], Writer(user="writer"))


def renumber(table: Path, *, first: int) -> None:
    """The newest level-0 file as a writer would have written it that began to number at `first`."""
    snapshot = opened(table).snapshot()
    (meta,) = snapshot.delta_manifests
    path = table / "manifest" / str(meta["_FILE_NAME"])
    container = read_container(path.read_bytes(), subject=path.name)
    (entry,) = container.records
    data = table / "bucket-0" / entry["_FILE"]["_FILE_NAME"]
    rows = pq.read_table(data)
    numbers = pa.array(range(first, first + rows.num_rows), pa.int64())
    rows = rows.set_column(1, rows.schema.field(1), numbers)
    pq.write_table(rows, data, store_schema=False)
    last = {"_MIN_SEQUENCE_NUMBER": first, "_MAX_SEQUENCE_NUMBER": first + rows.num_rows - 1}
    entry["_FILE"] |= {**last, "_FILE_SIZE": data.stat().st_size}
    path.write_bytes(write_container([entry], container.schema, container.codec))


@contextmanager
def before_the_gate(table: Path, act: Act) -> Iterator[None]:
    verify = run_operation.verify

    def sabotaged(opened: Any, plan: Plan, rewrites: Any, candidate: Candidate, **options: Any) -> Any:
        act(Staged(table, candidate))
        return verify(opened, plan, rewrites, candidate, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_operation, "verify", sabotaged)
        yield


def assert_stopped(table: Path, document: RunDocument, reason: str) -> None:
    assert (document.outcome, document.outcome.exit_status) == (Outcome.MISMATCH, 5), document.reason
    assert document.committed_version is None
    assert commits_of(table, document.run_id) == []
    assert document.reason is not None
    assert re.search(reason, document.reason, re.S), document.reason


def _newest_manifest(table: Path) -> str:
    return str(opened(table).snapshot().delta_manifests[0]["_FILE_NAME"])
