"""Damage between staging and proof: the gate catches each by what is wrong with it, at both of its levels."""

import re
from collections.abc import Iterator, Mapping
from itertools import count

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg import sabotage as sabotage
from tests.formats.iceberg.runs import DAYS, Kept, configured, opened
from tests.formats.iceberg.sabotage import Act, Staged, converted, filled

from nightkeep.formats.iceberg.format import IcebergTable
from nightkeep.model import Candidate, Mismatch, Plan, UnitKey, Verified, VerifyLevel
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline

pytestmark = [pytest.mark.slow, pytest.mark.in_turn("table")]

TOUCHED = [UnitKey(f"day={day}") for day in DAYS[:2]]
_NUMBERS = count()

REWRITTEN: dict[Act, str] = {
    sabotage.drop_a_row: "rows differ",
    sabotage.repeat_a_row: "rows differ",
    sabotage.repeat_one_row_and_drop_another: "rows differ",
    sabotage.change_a_value: "rows differ",
    sabotage.swap_values_of_two_rows: "rows differ",
    sabotage.swap_null_and_empty: "rows differ",
    sabotage.give_a_column_another_id: "rows differ",
    sabotage.write_rows_of_another_partition: "rows differ",
    sabotage.miscount_rows: "expected [0-9]+ rows as its manifest states, found",
    sabotage.miscount_bytes: "the manifest states [0-9]+ bytes",
    sabotage.raise_a_minimum: "id has a value below its lower bound",
    sabotage.lower_a_minimum: "id has no value at one of its bounds",
    sabotage.lower_a_maximum: "note has a value above its upper bound",
    sabotage.miscount_nulls: "note has 1 nulls, its manifest states 2",
    sabotage.miscount_values: "values, its manifest states",
    sabotage.claim_a_sort_order: "sort order 1, expected",
    sabotage.claim_another_format: "expected an ORC file",
    sabotage.state_that_splits_begin_later: r"split offsets \[[0-9]+\], its row groups begin at \[4\]",
    sabotage.miscount_bytes_of_a_column: r"sizes of columns \[1\] differ",
    sabotage.forget_that_a_file_is_gone: "0 entries record it as deleted, expected 1",
    sabotage.state_that_a_file_that_is_gone_had_more_rows: "deleted with another record_count, rows than it had",
    sabotage.head_a_manifest_by_another_spec: "its header states partition-spec-id 7, expected 0",
    sabotage.head_the_list_by_another_snapshot: "its header states snapshot-id",
    sabotage.drop_a_new_file: "rows differ",
    sabotage.keep_an_old_file: "rows differ",
    sabotage.claim_an_older_number: "rows differ",
    sabotage.claim_a_newer_number: "newer than deletes that its rows may miss",
    sabotage.remove_deletes_of_everything: "equality deletes are gone",
    sabotage.drop_a_manifest: "total-data-files 6, expected 4",
    sabotage.overestimate_the_least_number: "least sequence number",
    sabotage.miscount_the_total: "total-records",
    sabotage.state_that_rows_changed: "states that it changes rows: True, expected False",
    sabotage.state_that_rows_were_deleted: "operation delete of optimize, expected replace",
    sabotage.miscount_the_change: "added-records 39, expected 38",
    sabotage.commit_by_another_name: "nightkeep.run somebody",
    sabotage.state_the_time_too_late: "after its manifest list was written",
    sabotage.forget_the_schema: "schema-id None, expected 0",
    sabotage.cut_the_snapshot: "expected JSON",
    sabotage.remove_a_file: "no such file",
}
TRACKED: dict[Act, str] = {
    sabotage.lose_row_ids: "rows differ",
    sabotage.swap_row_ids: "rows differ",
    sabotage.lose_numbers_of_the_last_change: "rows differ",
}
CONVERTED: dict[Act, str] = {
    sabotage.hide_other_rows: "rows differ",
    sabotage.show_a_deleted_row: "rows differ",
    sabotage.hide_one_more_row: "rows differ",
    sabotage.lose_positions: "rows differ",
    sabotage.bound_positions_by_another_path: "lower_bounds .*zzz",
    sabotage.put_deletes_before_their_rows: "sequence number 0, expected the commit's|found 0",
    sabotage.miscount_deleted_rows: "total-position-deletes [0-9]+, expected [0-9]+",
    sabotage.give_deletes_another_partition: "the partition of .*2026-12-24",
    sabotage.state_that_deletes_are_encrypted: "key_metadata, expected none of positions",
    sabotage.state_that_they_replace_rows: "operation replace with new deletes",
    sabotage.cut_deletes: "footer|expected [0-9]+ bytes as its manifest states",
    sabotage.keep_deletes_by_keys: "total-equality-deletes 0, expected",
}
VECTORS: dict[Act, str] = {
    sabotage.aim_at_another_file: r"type, length, codec, data file and cardinality|-0000[0-9].parquet', '[0-9]+'\)",
    sabotage.shorten_a_vector: r"type, length, codec, data file and cardinality|-0000[0-9].parquet', '[0-9]+'\)",
    sabotage.flip_a_bit_of_a_vector: "expected crc",
    sabotage.add_a_second_vector: "one deletion vector",
}


IN_ORC: dict[Act, str] = {
    sabotage.claim_that_it_is_avro: "expected magic",
    sabotage.state_that_splits_begin_later: "split_offsets, expected none of a file that is not Parquet",
}
"""What is said of ORC files in another way than of Parquet."""
OF_PARQUET = (sabotage.claim_another_format, sabotage.miscount_bytes_of_a_column)


def kept_table(
    java: IcebergJava, folder: pytest.TempPathFactory, *, version: int, properties: Mapping[str, str] | None = None
) -> Iterator[Kept]:
    warehouse = Warehouse(f"sabotaged{next(_NUMBERS)}", folder.mktemp("sabotage"))
    with configured(warehouse):
        table = warehouse.table("shop.events")
        filled(java, table, DAYS, version=version, properties=properties)
        yield Kept.of(table)


@pytest.fixture(scope="module")
def plain(iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    yield from kept_table(iceberg_java, tmp_path_factory, version=2)


@pytest.fixture(scope="module")
def tracked(iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    yield from kept_table(iceberg_java, tmp_path_factory, version=3)


@pytest.fixture(scope="module")
def in_orc(iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergTable]:
    properties = {"write.format.default": "orc"}
    for kept in kept_table(iceberg_java, tmp_path_factory, version=2, properties=properties):
        yield opened(kept.put_back())


@pytest.fixture(params=["plain", "tracked"])
def table(request: pytest.FixtureRequest) -> IcebergTable:
    """Of both versions of the format."""
    kept: Kept = request.getfixturevalue(request.param)
    return opened(kept.put_back())


@pytest.fixture
def newest(tracked: Kept) -> IcebergTable:
    return opened(tracked.put_back())


def rewritten(table: IcebergTable) -> tuple[Plan, Candidate]:
    """All but one day, so that deletes of all days are still needed."""
    return sabotage.rewritten(table, TOUCHED)


def judged(table: IcebergTable, made: tuple[Plan, Candidate], level: VerifyLevel) -> Verified | Mismatch:
    return verify(table, made[0], (), made[1], level=level, mapper=inline)


def assert_caught(checked: Verified | Mismatch, reason: str) -> None:
    assert isinstance(checked, Mismatch)
    said = [*checked.faults, *(fault for proof in checked.proofs for fault in proof.faults)]
    said += [f"{proof.key}: rows differ" for proof in checked.proofs if proof.base != proof.candidate]
    assert re.search(reason, "\n".join(said), re.S), said


every_level = pytest.mark.parametrize("level", VerifyLevel)


def named(act: Act) -> str:
    return act.__name__


@pytest.mark.few(1)
@every_level
def test_what_nobody_damaged_is_proven(table: IcebergTable, level: VerifyLevel) -> None:
    for made in (rewritten(table), converted(table), converted(table, f"day = '{DAYS[0]}'")):
        checked = judged(table, made, level)
        assert isinstance(checked, Verified), checked


@pytest.mark.in_turn("level")
@every_level
@pytest.mark.parametrize("act", REWRITTEN, ids=named)
def test_the_gate_catches(act: Act, level: VerifyLevel, table: IcebergTable) -> None:
    made = rewritten(table)
    act(Staged(table, made[1], TOUCHED[0]))
    assert_caught(judged(table, made, level), REWRITTEN[act])


@pytest.mark.in_turn("level")
@every_level
@pytest.mark.parametrize("act", TRACKED, ids=named)
def test_the_gate_catches_of_row_ids(act: Act, level: VerifyLevel, newest: IcebergTable) -> None:
    made = rewritten(newest)
    act(Staged(newest, made[1], TOUCHED[0]))
    assert_caught(judged(newest, made, level), TRACKED[act])


@pytest.mark.in_turn("level")
@every_level
@pytest.mark.parametrize("act", CONVERTED, ids=named)
def test_the_gate_catches_of_deletes(act: Act, level: VerifyLevel, table: IcebergTable) -> None:
    made = converted(table)
    act(Staged(table, made[1], TOUCHED[0]))
    assert_caught(judged(table, made, level), CONVERTED[act])


@pytest.mark.in_turn("level")
@every_level
@pytest.mark.parametrize("act", VECTORS, ids=named)
def test_the_gate_catches_of_vectors(act: Act, level: VerifyLevel, newest: IcebergTable) -> None:
    made = converted(newest)
    act(Staged(newest, made[1], TOUCHED[0]))
    assert_caught(judged(newest, made, level), VECTORS[act])


@pytest.mark.few(8)
@pytest.mark.parametrize("act", [act for act in {**REWRITTEN, **IN_ORC} if act not in OF_PARQUET], ids=named)
def test_the_gate_catches_of_orc_files(act: Act, in_orc: IcebergTable) -> None:
    made = rewritten(in_orc)
    assert isinstance(judged(in_orc, made, VerifyLevel.TOUCHED), Verified)
    act(Staged(in_orc, made[1], TOUCHED[0]))
    assert_caught(judged(in_orc, made, VerifyLevel.TOUCHED), {**REWRITTEN, **IN_ORC}[act])


@pytest.mark.few(4)
@pytest.mark.parametrize("act", CONVERTED, ids=named)
def test_the_gate_catches_of_deletes_in_orc(act: Act, in_orc: IcebergTable) -> None:
    made = converted(in_orc)
    assert isinstance(judged(in_orc, made, VerifyLevel.TOUCHED), Verified)
    act(Staged(in_orc, made[1], TOUCHED[0]))
    reason = "an ORC file" if act is sabotage.cut_deletes else CONVERTED[act]
    assert_caught(judged(in_orc, made, VerifyLevel.TOUCHED), f"{reason}|as its manifest states")


@every_level
def test_the_gate_catches_deletes_of_everything_that_go_with_one_day(table: IcebergTable, level: VerifyLevel) -> None:
    made = converted(table, f"day = '{DAYS[0]}'")
    sabotage.remove_deletes_of_everything(Staged(table, made[1], TOUCHED[0]))
    assert_caught(judged(table, made, level), "equality deletes are gone")
