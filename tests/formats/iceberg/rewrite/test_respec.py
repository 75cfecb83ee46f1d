"""Files of older partition specs move to the current one where that is asked for; else they stay."""

import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyiceberg.expressions import EqualTo, GreaterThan
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform, YearTransform
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.laid_anew import a_run
from tests.formats.iceberg.ordered_tables import OrderedTable, by, rows
from tests.formats.iceberg.sabotage import Act, Staged

from nightkeep.errors import UsageError
from nightkeep.formats.iceberg.commit.conflicts import conflicts
from nightkeep.formats.iceberg.format import IcebergTable
from nightkeep.formats.iceberg.gate.partition_audit import partition_check
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.rewrite.respec import respec_files
from nightkeep.model import Candidate, Mismatch, Operation, Outcome, Plan, Request, Rewrite, Run, Verified, VerifyLevel
from nightkeep.policy import Overrides, Settings
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline

SPECS: dict[str, tuple[Any, ...]] = {
    "bucket": (("id", BucketTransform(4), "by_id"),),
    "day and text": (("day", YearTransform(), "by_year"), ("name", TruncateTransform(1), "by_name")),
    "moments": (("at", YearTransform(), "by_year"), ("flag", IdentityTransform(), "by_flag")),
    "decimals": (("price", BucketTransform(3), "by_price"), ("raw", BucketTransform(2), "by_raw")),
    "floats": (("ratio", IdentityTransform(), "by_ratio"),),
    "a field of a struct": (("inner.text", IdentityTransform(), "by_text"),),
    "numbers": (("small", TruncateTransform(4), "by_small"), ("day", DayTransform(), "by_day")),
}


@pytest.fixture
def warehouse(iceberg: Warehouse) -> Iterator[Warehouse]:
    with runs.configured(iceberg):
        yield iceberg


def evolved(table: Table, spec: str, *, count: int = 90, **how: Any) -> OrderedTable:
    """Files of the spec by `part`, and some of the new one."""
    chance = random.Random(5)
    lake = OrderedTable.create(table, partition="part", **how)
    lake.append(*(rows(range(n, n + count), chance, ["a", "b"]) for n in range(0, 2 * count, count)))
    with lake.theirs.update_spec() as update:
        update.remove_field("part")
        for source, transform, name in SPECS[spec]:
            update.add_field(source, transform, name)
    return lake


def shown(lake: OrderedTable) -> Counter[str]:
    return Counter(map(repr, lake.theirs.scan().to_arrow().to_pylist()))


def specs(lake: OrderedTable) -> set[int]:
    return {file.spec_id for file in lake.files()}


@pytest.mark.parametrize("spec", SPECS)
def test_files_move_to_the_current_spec(warehouse: Warehouse, spec: str) -> None:
    lake = evolved(warehouse.table(), spec)
    before = shown(lake)
    lake.night()
    assert specs(lake) == {0}
    done = lake.night(respec=True)
    assert specs(lake) == {1}
    assert shown(lake) == before
    assert all(unit.outcome is Outcome.VERIFIED for unit in done.units)
    # Small files of one partition, of several old ones, are packed by the next night.
    runs.care_for(lake.table, run_id="packs", operation=Operation.OPTIMIZE, respec=True)
    assert shown(lake) == before
    lake.night(Outcome.UNCHANGED, respec=True)


def test_readers_find_the_rows_by_their_new_partitions(warehouse: Warehouse) -> None:
    lake = evolved(warehouse.table(), "bucket")
    lake.night(respec=True)
    for number in (0, 17, 99):
        assert lake.theirs.scan(EqualTo("id", number)).to_arrow().num_rows == 1
        assert len(list(lake.theirs.scan(EqualTo("id", number)).plan_files())) < len(lake.files())
    assert lake.theirs.scan(GreaterThan("id", 169)).to_arrow().num_rows == 10


def test_a_filter_moves_some_partitions(warehouse: Warehouse) -> None:
    lake = evolved(warehouse.table(), "bucket")
    before = shown(lake)
    lake.night(respec=True, where="part = 'a'")
    assert specs(lake) == {0, 1}
    assert {file.partition for file in lake.files() if file.spec_id == 0} == {("b",)}
    assert shown(lake) == before


def test_sorted_tables_are_sorted_by_the_night_after(warehouse: Warehouse) -> None:
    chance = random.Random(1)
    lake = OrderedTable.create(warehouse.table(), by("id"), partition="part")
    lake.append(rows(range(60), chance, ["a", "b"]))
    with lake.theirs.update_spec() as update:
        update.add_field("id", BucketTransform(2), "by_id")
    lake.append(rows(range(60, 90), chance, ["a", "b"]))
    before = shown(lake)
    lake.night(respec=True)
    lake.night(respec=True)
    assert specs(lake) == {1}
    assert {file.sort_order_id for file in lake.files()} == {1}
    lake.assert_sorted()
    assert shown(lake) == before


def test_tasks_take_what_fits_their_memory(warehouse: Warehouse) -> None:
    lake = evolved(warehouse.table(), "bucket")
    snapshot = runs.opened(lake.table).snapshot()
    asked = Request(Operation.OPTIMIZE, 1, respec=True, task_bytes=1)
    for unit in snapshot.units:
        work = respec_files(snapshot, unit, asked)
        assert work is not None and len(work.tasks) == len(unit.files) == 2
        whole = respec_files(snapshot, unit, replace(asked, task_bytes=2 << 30))
        assert whole is not None and len(whole.tasks) == 1
        assert respec_files(snapshot, unit, replace(asked, respec=False)) is None


def test_an_option_names_the_current_spec() -> None:
    assert Overrides(spec="current").values(Settings())["respec"] is True
    assert "respec" not in Overrides().values(Settings())
    with pytest.raises(
        UsageError, match="--spec: expected current, the partition spec that new files have, found 'old'"
    ):
        Overrides(spec="old").values(Settings())


# The gate


def staged(lake: OrderedTable) -> tuple[IcebergTable, Plan, list[Rewrite], Candidate, Run]:
    return moved(runs.opened(lake.table))


def moved(table: IcebergTable) -> tuple[IcebergTable, Plan, list[Rewrite], Candidate, Run]:
    """All files of older specs in the current one."""
    run = a_run()
    found = plan(table, table.snapshot(), Request(Operation.OPTIMIZE, run.now_ms, respec=True))
    rewrites = list(execute(table, found, run, mapper=inline))
    return table, found, rewrites, table.commits.stage(table.snapshot(), rewrites, run), run


def judged(table: IcebergTable, found: Plan, candidate: Candidate, level: VerifyLevel = VerifyLevel.FULL) -> Any:
    return verify(table, found, (), candidate, level=level, mapper=inline)


def said(checked: Any) -> str:
    assert isinstance(checked, Mismatch), checked
    found = [*checked.faults, *(fault for proof in checked.proofs for fault in proof.faults)]
    found += [f"{proof.key}: rows differ" for proof in checked.proofs if proof.base != proof.candidate]
    return "\n".join(found)


def acted(table: IcebergTable, candidate: Candidate) -> Staged:
    """On a partition of the current spec."""
    unit = next(unit for unit in table.staged(candidate).units if unit.spec_id == 1 and unit.files)
    return Staged(table, candidate, unit.key)


def test_what_nobody_damaged_is_proven(warehouse: Warehouse) -> None:
    table, found, _, candidate, _ = staged(evolved(warehouse.table(), "bucket"))
    assert isinstance(judged(table, found, candidate), Verified)


def state_values_of_another_partition(acted: Staged) -> None:
    (value,) = acted.new_data.partition
    acted.describe(partition=((value + 1) % 4,))


def lose_a_row_that_moved(acted: Staged) -> None:
    acted.rewrite(lambda held: held.slice(1))


def repeat_a_row_that_moved(acted: Staged) -> None:
    acted.rewrite(lambda held: held.take([0, *range(held.num_rows)]))


def name_a_file_by_no_unit(acted: Staged) -> None:
    """Its name is of no partition that moved, as one of another run's."""
    mark, none = r"(-nk-[0-9a-f]{16}-)[0-9a-f]{8}", r"\g<1>00000000"
    path, location = f"/{acted.new_data.name}", re.sub(mark, none, acted.new_data.path)
    shutil.copyfile(path, re.sub(mark, none, path))
    acted.describe(file_path=location)


MOVED: dict[Act, str] = {
    state_values_of_another_partition: "rows from 0 on are not of its partition, by the field by_id",
    lose_a_row_that_moved: "rows differ",
    repeat_a_row_that_moved: "rows differ",
    name_a_file_by_no_unit: "changed, though no unit of it was worked on",
}


@pytest.mark.parametrize("level", VerifyLevel)
@pytest.mark.parametrize("act", MOVED, ids=lambda act: act.__name__)
def test_the_gate_names(warehouse: Warehouse, act: Act, level: VerifyLevel) -> None:
    table, found, _, candidate, _ = staged(evolved(warehouse.table(), "bucket"))
    act(acted(table, candidate))
    assert re.search(MOVED[act], said(judged(table, found, candidate, level)))


def test_a_file_of_its_partition_has_no_fault(warehouse: Warehouse) -> None:
    lake = evolved(warehouse.table(), "floats")
    lake.night(respec=True)
    schema = runs.opened(lake.table).snapshot().schema
    for file in lake.files():
        check = partition_check(schema, file)
        assert check.fields[0].name == "by_ratio"


# Races


def delete_of(file: ContentFile, number: int, spec_id: int, partition: tuple[object, ...]) -> ContentFile:
    return replace(
        file,
        content=FileContent.EQUALITY_DELETES,
        path=f"{file.path}-deletes",
        spec_id=spec_id,
        partition=partition,
        sequence_number=number,
        equality_ids=(1,),
    )


@pytest.mark.parametrize("of_old", [True, False])
def test_newer_equality_deletes_of_either_partition_are_a_conflict(warehouse: Warehouse, of_old: bool) -> None:
    lake = evolved(warehouse.table(), "bucket")
    lake.append(rows(range(500, 540), random.Random(2), ["a", "b"]))
    table, _, rewrites, _, _ = staged(lake)
    planned = table.snapshot()
    storage: Any = None
    assert conflicts(storage, planned, planned, rewrites) == ()
    spec_id = 0 if of_old else 1
    units = []
    for unit in planned.units:
        newer = delete_of(unit.files[0], planned.sequence_number + 1, unit.spec_id, unit.values)
        older = delete_of(unit.files[0], planned.sequence_number, unit.spec_id, unit.values)
        units.append(replace(unit, equality=(newer,) if unit.spec_id == spec_id else (older,)))
    lost = conflicts(storage, planned, replace(planned, units=tuple(units)), rewrites)
    assert {key for key, _ in lost} == {rewrite.key for rewrite in rewrites}
    assert all("newer equality deletes" in reason for _, reason in lost)
