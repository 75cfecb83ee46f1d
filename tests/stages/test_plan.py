"""Layouts as numbers, plans as text: what was picked is read in the diff."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats.memory.format import table_of
from nightkeep.formats.memory.metadata.snapshot import MemoryFile, MemorySnapshot, MemoryUnit
from nightkeep.formats.memory.rewrite.optimize import MergeTask, worn_files
from nightkeep.model import Address, CommitScope, Estimate, Operation, Plan, PlannedUnit, Request, UnitKey
from nightkeep.protocol import OperationRules, Work
from nightkeep.stages.plan import batches, plan

TABLE = table_of(Address("memory", "shop.visits", "shop.visits"))
NOW_MS = 1_795_000_000_000
BIG = 2 << 20

File = tuple[int, int, int]
"""Rows, bytes, deleted rows."""


def snapshot(layout: Mapping[str, Sequence[File]]) -> MemorySnapshot:
    """Version 7 of a table with these files by day."""
    units = tuple(
        MemoryUnit(UnitKey(f"day={day}"), {"day": day}, tuple(file(day, n, one) for n, one in enumerate(files)))
        for day, files in layout.items()
    )
    return MemorySnapshot(7, "writer", "staged", ("day",), (), 0, units)


def file(day: str, number: int, found: File) -> MemoryFile:
    rows, size, deleted = found
    return MemoryFile(f"{day}-{number}", rows, size, f"{day}-{number}.bitmap" if deleted else None, deleted)


LAYOUT = snapshot(
    {
        "2026-11-01": [(10, 300, 0), (10, 300, 0), (10, 300, 0)],
        "2026-11-02": [(100, BIG, 0), (10, 300, 0)],
        "2026-11-03": [(100, BIG, 25)],
        "2026-11-04": [(10, 900, 0)],
        "2026-11-05": [],
    }
)


def planned(found: MemorySnapshot = LAYOUT, **asked: object) -> Plan:
    return plan(TABLE, found, replace(Request(Operation.OPTIMIZE, NOW_MS), **asked))


def test_the_dry_run_states_what_why_and_what_for() -> None:
    assert str(planned()) == dedent(
        """\
        shop.visits: optimize of version 7, 2 units
          day=2026-11-03: 1 files small or with deletes, 25 deleted rows; 1 file, 2,097,152 bytes in; about 1,572,864 \
bytes out in 1 file; 0 files fewer
          day=2026-11-01: 3 files small or with deletes, 0 deleted rows; 3 files, 900 bytes in; about 900 bytes out \
in 1 file; 2 files fewer"""
    )


def test_full_takes_files_that_need_nothing() -> None:
    assert days(planned(full=True)) == ["2026-11-02", "2026-11-03", "2026-11-01"]


def test_a_target_decides_what_is_small() -> None:
    assert days(planned(target_bytes=301)) == ["2026-11-03", "2026-11-01"]
    assert days(planned(target_bytes=300)) == ["2026-11-03"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [("day = '2026-11-01'", ["2026-11-01"]), ("day > '2026-11-01'", ["2026-11-03"]), ("day LIKE '2026-10-%'", [])],
)
def test_a_filter_selects_partitions(where: str, expected: list[str]) -> None:
    assert days(planned(where=where)) == expected


def test_a_filter_on_anything_but_a_partition_column_is_an_error_of_the_caller() -> None:
    with pytest.raises(UsageError, match="price"):
        planned(where="price > 3")


def test_an_operation_of_other_formats_is_refused_by_name() -> None:
    with pytest.raises(RefusedTable, match="upgrade does not exist for memory tables; operations that do: optimize"):
        planned(operation=Operation.UPGRADE)


@given(st.permutations(LAYOUT.units))
def test_the_order_of_units_does_not_matter(units: list[MemoryUnit]) -> None:
    assert planned(replace(LAYOUT, units=tuple(units))) == planned()


@dataclass(frozen=True)
class Ruled:
    """A table of which nothing but its rules is asked."""

    rules: OperationRules[MemorySnapshot, MemoryUnit, MergeTask]
    address: Address = TABLE.address

    @property
    def operations(self) -> Mapping[Operation, OperationRules[MemorySnapshot, MemoryUnit, MergeTask]]:
        return {Operation.OPTIMIZE: self.rules}

    def units(self, snapshot: MemorySnapshot) -> Sequence[MemoryUnit]:
        return snapshot.units


def named(name: str, answers: bool) -> object:
    def rule(found: MemorySnapshot, unit: MemoryUnit, request: Request) -> Work[MergeTask] | None:
        work = worn_files(found, unit, replace(request, full=True))
        return replace(work, reason=name) if answers and work else None

    return rule


def test_the_first_rule_that_answers_wins() -> None:
    rules = OperationRules((), (named("silent", False), named("first", True), named("second", True)))  # type: ignore[arg-type]
    found = plan(Ruled(rules), LAYOUT, Request(Operation.OPTIMIZE, NOW_MS))  # type: ignore[arg-type]
    assert {unit.reason for unit in found.units} == {"first"}


def test_a_refusal_comes_before_the_filter_is_read() -> None:
    def refuse(found: MemorySnapshot, request: Request) -> None:
        raise RefusedTable("shop.visits", "feature x is not handled", "wait")

    with pytest.raises(RefusedTable, match="feature x"):
        plan(Ruled(OperationRules((refuse,), ())), LAYOUT, Request(Operation.OPTIMIZE, NOW_MS, where="nonsense ("))  # type: ignore[arg-type]


INPUTS = st.lists(st.integers(1, 100), max_size=12)


def sized(*inputs: int) -> Plan:
    """A plan whose units read this much."""
    nothing = Estimate(0, 0, 0, "")
    units = tuple(PlannedUnit(UnitKey(f"day={n}"), "why", (), size, nothing, ()) for n, size in enumerate(inputs))
    return Plan(TABLE.address, Operation.OPTIMIZE, LAYOUT.identity, units, ("a note",))


def test_a_batch_ends_before_the_unit_that_would_be_too_much() -> None:
    found = [[unit.input_bytes for unit in batch.units] for batch in batches(sized(5, 4, 3, 2, 1), 7)]
    assert found == [[5], [4, 3], [2, 1]]


@given(INPUTS, st.integers(1, 150))
def test_batches_hold_every_unit_once_in_order_and_no_more_than_they_may(inputs: list[int], most: int) -> None:
    whole = sized(*inputs)
    found = list(batches(whole, most))
    assert [unit for batch in found for unit in batch.units] == [*whole.units]
    assert all(replace(batch, units=whole.units) == whole for batch in found)
    sums = [sum(unit.input_bytes for unit in batch.units) for batch in found]
    assert all(total <= most or len(batch.units) == 1 for total, batch in zip(sums, found, strict=True))
    # None could have taken the next one's first unit too.
    assert all(total + after.units[0].input_bytes > most for total, after in zip(sums, found[1:], strict=False))


def test_a_change_of_rows_is_one_batch() -> None:
    whole = replace(sized(5, 4, 3), rows="id > 1")
    assert whole.commit_scope is CommitScope.WHOLE_PLAN and sized(1).commit_scope is CommitScope.EACH_UNIT
    assert list(batches(whole, 1)) == [whole]


def days(found: Plan) -> list[str]:
    return [unit.key.partition.removeprefix("day=") for unit in found.units]
