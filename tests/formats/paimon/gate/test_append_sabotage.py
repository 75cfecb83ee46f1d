"""Damage to a candidate of a table without keys: the gate catches each by what is wrong with it. The same damage, with
the gate switched off, is found by the check of the published version."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon import sabotage
from tests.formats.paimon.appended import VECTORS, Appended, operate
from tests.formats.paimon.contents import opened
from tests.formats.paimon.gate.test_sabotage import before_the_gate
from tests.formats.paimon.sabotage import Act, Staged
from tests.support.table_storage import storage_of

from nightkeep.checking.check import check
from nightkeep.formats.paimon.gate import append_audit, append_scan
from nightkeep.formats.paimon.metadata.binary_row import decode_row, encode_row
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.model import (
    Address,
    Candidate,
    Fingerprint,
    Operation,
    Outcome,
    Plan,
    TaskCost,
    UnitProof,
    Verified,
    VerifyLevel,
    View,
)
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus, RunDocument
from nightkeep.running.rewrites import run_operation

KINDS = tuple(map(parse_type, ("INT", "STRING", "STRING", "INT")))
WORN_ALONE = {"min_file_size": "1B"}


@pytest.fixture(scope="module")
def made(paimon_java: PaimonJava, tmp_path_factory: pytest.TempPathFactory) -> Appended:
    return appended(paimon_java, tmp_path_factory.mktemp("append") / "t")


def appended(paimon_java: PaimonJava, folder: Path) -> Appended:
    """In d1 a worn file and one that stays, with vectors in one file; in d2 a file that stays, with a vector."""
    table = Appended.create(paimon_java, folder, VECTORS, columns=(("text", "STRING"), ("n", "INT")))
    for day in ("d1", "d1", "d2"):
        paimon_java.write(folder, [("+I", n, day, f"t{n}" if n % 3 else None, n % 7 or None) for n in range(1, 41)])
    worn, kept, other = (file.name for file in table.files())
    paimon_java.delete_positions(folder, {worn: range(20), kept: [3, 5], other: [7]})
    return table


@pytest.fixture
def table(made: Appended, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.folder, tmp_path / "t"))


def change_a_value(staged: Staged) -> None:
    staged.rewrite(lambda rows: _with(rows, "n", [*rows.column("n").to_pylist()[:-1], 4711]))


def swap_null_and_empty(staged: Staged) -> None:
    staged.rewrite(lambda rows: _with(rows, "text", [text or "" for text in rows.column("text").to_pylist()]))


def write_deleted_rows_too(staged: Staged) -> None:
    (worn,) = (path for path in (staged.table / staged.bucket.folder).iterdir() if path.name in _removed(staged))
    staged.rewrite(lambda _: pq.read_table(worn))


def mark_a_file_that_is_gone(staged: Staged) -> None:
    (worn,) = _removed(staged)
    with staged.vectors() as vectors:
        vectors[worn] = BitMap64([1])


def mark_a_file_twice(staged: Staged) -> None:
    with staged.edited(staged.document["indexManifest"]) as records:
        mine = next(record for record in records if record["_FILE_NAME"] in staged.bucket.index_files)
        copy = staged.table / "index" / "index-nk-copy"
        shutil.copyfile(staged.table / "index" / mine["_FILE_NAME"], copy)
        records.append({**mine, "_FILE_NAME": copy.name})


def raise_a_minimum(staged: Staged) -> None:
    with staged.added() as file:
        values = list(decode_row(file["_VALUE_STATS"]["_MIN_VALUES"], KINDS))
        values[0] += 1  # type: ignore[operator]
        file["_VALUE_STATS"]["_MIN_VALUES"] = encode_row(values, KINDS)


def miscount_nulls(staged: Staged) -> None:
    with staged.added() as file:
        file["_VALUE_STATS"]["_NULL_COUNTS"][3] += 1


def put_it_on_a_level(staged: Staged) -> None:
    with staged.added() as file:
        file["_LEVEL"] = 1


def state_another_size_of_vectors(staged: Staged) -> None:
    with staged.index_entry(staged.bucket) as record:
        record["_FILE_SIZE"] += 1


CAUGHT: dict[Act, str] = {
    sabotage.drop_a_row: "rows differ",
    sabotage.repeat_a_row: "rows differ",
    change_a_value: "rows differ",
    swap_null_and_empty: "rows differ",
    write_deleted_rows_too: "rows differ",
    sabotage.lose_a_vector: "rows differ",
    sabotage.shift_a_vector: "rows differ",
    sabotage.move_a_vector: "rows differ",
    sabotage.overrun_a_vector: "deleted positions below its 40 rows",
    mark_a_file_that_is_gone: "which is not a file of the bucket",
    mark_a_file_twice: "expected one deletion vector of a data file, found 2",
    state_another_size_of_vectors: "index manifest states",
    raise_a_minimum: "id has a value below the minimum that statistics state",
    miscount_nulls: "n has [0-9]+ nulls, statistics state",
    put_it_on_a_level: "level 1, expected 0",
    sabotage.raise_the_last_sequence_number: "sequence numbers 0 to 20 of 20 rows",
    sabotage.miscount_rows: "rows as its manifest states",
    sabotage.miscount_the_version: "totalRecordCount",
    sabotage.forget_the_delete_count: "deleteRowCount None",
    sabotage.state_that_it_was_appended: "states source 0, expected 1",
    sabotage.state_that_it_was_made_long_ago: "states creation at 1, before all that were there",
    sabotage.lose_a_file_of_another_bucket: "changed, though no unit of it was worked on",
    sabotage.lose_the_vectors_of_another_bucket: "entries of other buckets",
    sabotage.cut_a_file: "expected a Parquet file",
    sabotage.remove_a_file: "expected a file that metadata names, found no such file",
    sabotage.cut_a_manifest: "expected an Avro object container file",
}
SEEN_BY_READERS = (
    sabotage.drop_a_row,
    sabotage.repeat_a_row,
    change_a_value,
    swap_null_and_empty,
    write_deleted_rows_too,
    sabotage.lose_a_vector,
    sabotage.shift_a_vector,
    raise_a_minimum,
    miscount_nulls,
    sabotage.miscount_the_version,
    sabotage.lose_a_file_of_another_bucket,
    sabotage.lose_the_vectors_of_another_bucket,
)


@pytest.mark.in_turn("level")
@pytest.mark.parametrize("level", ["full", "touched"])
@pytest.mark.parametrize("act", CAUGHT, ids=lambda act: act.__name__)
def test_the_gate_catches(act: Act, level: str, table: Path) -> None:
    with before_the_gate(table, act):
        document = _optimize(table, verify=level)
    assert (document.outcome, document.committed_version) == (Outcome.MISMATCH, None), document.reason
    assert pc.match_substring_regex(pa.array([str(document.reason)]), CAUGHT[act])[0].as_py(), document.reason
    assert opened(table).snapshot().version == 4


@pytest.mark.parametrize("act", SEEN_BY_READERS, ids=lambda act: act.__name__)
@pytest.mark.in_turn("act")
def test_the_check_catches_what_the_gate_let_pass(act: Act, table: Path, spark: SparkSession) -> None:
    def asleep(opened: Any, plan: Plan, rewrites: Any, candidate: Candidate, **options: Any) -> Verified:
        act(Staged(table, candidate))
        proofs = tuple(UnitProof(k, Fingerprint(), Fingerprint(), (), TaskCost(0, 0, 0, "")) for k in candidate.units)
        return Verified(plan, candidate, rewrites, proofs, VerifyLevel.FULL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_operation, "verify", asleep)
        assert _optimize(table).outcome is Outcome.VERIFIED
    address = Address("paimon", str(table), "t")
    assert check(CheckRequest(address=address, version=5), spark=spark).status is CheckStatus.FAILED


def test_parts_of_a_bucket_prove_it_together(table: Path) -> None:
    """As many parts as files: each row of a side is in one of them, and vectors go with their files."""
    found = opened(table)
    bucket = found.snapshot().units[0]
    parts = append_scan.pieces(bucket, bucket, part_bytes=1)
    assert len(parts) == len(bucket.files) == 2
    whole = append_scan.survivors(storage_of(found), bucket, View.RAW)
    joined = [append_scan.survivors(storage_of(found), part, View.MERGED) for part, _ in parts]
    assert whole == {name: at for part in joined for name, at in part.items()}
    assert not [fault for part, _ in parts for fault in append_audit.unit_faults(storage_of(found), part, part)]


def _optimize(table: Path, **settings: object) -> RunDocument:
    return operate(table, Operation.OPTIMIZE, **WORN_ALONE, **settings)


def _removed(staged: Staged) -> set[str]:
    before = opened(staged.table).snapshot().by_key[staged.bucket.key]
    return {file.name for file in before.files} - {file.name for file in staged.bucket.files}


def _with(rows: pa.Table, name: str, values: list[Any]) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(name), pa.array(values, rows.schema.field(name).type))
