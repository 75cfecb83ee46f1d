"""Snapshot -> Plan. Pure: same snapshot, same request, same rules, same plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from nightkeep.errors import RefusedTable
from nightkeep.model import CommitScope, Plan, PlannedUnit, Request
from nightkeep.protocol import E, OpenWide, OperationRules, S, T, Table, U
from nightkeep.sql_text.partition_filter import partition_filter


def plan(table: Table[S, U, T, E], snapshot: S, request: Request) -> Plan[T | OpenWide]:
    """The units of `snapshot` that the format's rules select, largest first.

    Raises RefusedTable, before any data is read, for an operation or a table feature that is not handled, and
    UsageError for a `where` that is not a filter on partition columns.
    """
    rules = _rules(table, request)
    for refuse in rules.refuse:
        refuse(snapshot, request)
    selects = partition_filter(request.where, snapshot.partition_columns)
    units = [
        unit
        for candidate in table.units(snapshot)
        if selects(candidate.partition)
        for unit in _planned(snapshot, candidate, request, rules)
    ]
    units.sort(key=lambda unit: (-unit.estimate.read_bytes, unit.key.partition, unit.key.bucket or 0))
    always = () if rules.left_out is None else (rules.left_out,)
    notes = (note(snapshot) for note in (*(rules.notes if units else ()), *always))
    clock_ms = None if rules.clock is None else rules.clock(snapshot, request)
    aged = _of_age(clock_ms) if units and clock_ms is not None else None
    all_notes = tuple(filter(None, (*notes, aged)))
    return Plan(
        table.address,
        request.operation,
        snapshot.identity,
        tuple(units),
        all_notes,
        request.rows,
        request.sets,
        clock_ms,
    )


def _of_age(clock_ms: int) -> str:
    clock = datetime.fromtimestamp(clock_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return f"rows of these units that have expired by {clock} go"


def refusals(table: Table[S, U, T, E], snapshot: S, request: Request) -> tuple[str, ...]:
    """Every feature of the table that the operation is refused for, with advice. Empty if a plan can be made of it.

    Reads metadata only. Raises UsageError for a request that no plan can be made of.
    """
    found = []
    for refuse in _rules(table, request).refuse:
        try:
            refuse(snapshot, request)
        except RefusedTable as refusal:
            found.append(refusal)
    if not found and request.rows is None:
        try:
            plan(table, snapshot, request)
        except RefusedTable as refusal:
            found.append(refusal)
    return tuple(f"{refusal.feature}; {refusal.advice}" for refusal in found)


def batches(planned: Plan[T], commit_bytes: int) -> Iterator[Plan[T]]:
    """The plan in parts, each for its own commit: units in order, up to `commit_bytes` of input per part.

    A unit is never divided, nor are units with the same `together`. A larger one is a part of its own. A plan that is
    published as a whole is one part of any size.
    """
    if planned.commit_scope is CommitScope.WHOLE_PLAN:
        yield planned
        return
    blocks: dict[object, list[PlannedUnit[T]]] = {}
    for unit in planned.units:
        blocks.setdefault(unit.key if unit.together is None else unit.together, []).append(unit)
    batch: list[PlannedUnit[T]] = []
    for block in blocks.values():
        if batch and sum(unit.input_bytes for unit in (*batch, *block)) > commit_bytes:
            yield replace(planned, units=tuple(batch))
            batch = []
        batch += block
    if batch:
        yield replace(planned, units=tuple(batch))


def _rules(table: Table[S, U, T, E], request: Request) -> OperationRules[S, U, T]:
    operations = table.operations
    if request.rows is not None:
        operations = {} if table.row_changes is None else table.row_changes.operations
    try:
        return operations[request.operation]
    except KeyError:
        names = ", ".join(operations)
        raise RefusedTable(
            table.address.name,
            f"operation {request.operation} does not exist for {table.address.format} tables",
            f"operations that do: {names}" if names else "use an engine that writes the table",
        ) from None


def _planned(snapshot: S, unit: U, request: Request, rules: OperationRules[S, U, T]) -> list[PlannedUnit[T | OpenWide]]:
    answers = (rule(snapshot, unit, request) for rule in rules.rules)
    work = next((answer for answer in answers if answer is not None), None)
    if work is None:
        return []
    return [
        PlannedUnit(
            unit.key,
            work.reason,
            work.input_files,
            work.input_bytes,
            work.estimate,
            work.tasks,
            work.together,
            work.measures,
        )
    ]
