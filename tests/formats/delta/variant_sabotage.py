"""A staged candidate of a table with shredded variants -> the same, with a part of one value changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.laid_anew import a_run
from tests.formats.delta.lake import Lake, request
from tests.formats.delta.sabotage import Act, Staged
from tests.support.variant_values import Typed, Value, exact, in_order, shredded_column

from nightkeep.formats.delta.format import open_table
from nightkeep.model import Address, Candidate
from nightkeep.model.variant_type import VARIANT
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.tasks import inline

SCHEMA = pa.schema([("id", pa.int64()), ("v", VARIANT)])
TYPED: Typed = {"a": pa.int64(), "b": pa.int64(), "inner": {"name": pa.string()}, "tags": [pa.string()]}
_EDIT = Callable[[dict[str, Any]], None]


def filled(folder: Path) -> HandMade:
    """Files that are shredded alike, and objects with fields beside the typed ones."""
    lake = Lake(folder, SCHEMA)
    for start in range(0, 90, 30):
        lake.append(rows(range(start, start + 30)))
    return HandMade.at(folder)


def rewritten(made: HandMade) -> Candidate:
    """All files in one, by the rewrite itself."""
    table, run = open_table(Address("delta", str(made.folder), "t")), a_run()
    base = table.snapshot()
    return table.commits.stage(base, execute(table, plan(table, base, request()), run, mapper=inline), run)


def rows(ids: range, typed: Typed = TYPED) -> pa.Table:
    column = shredded_column([order(number) for number in ids], typed, Random(ids.start))
    return pa.table({"id": pa.array(ids, pa.int64()), "v": column})


def order(number: int) -> Value:
    texts = tuple(("string", b"%d" % (number + at)) for at in range(2))
    fields = {"a": exact(number, 0), "b": exact(number + 1000, 0), "rest": exact(5, 0), "tags": ("array", texts)}
    return ("object", in_order({**fields, "inner": ("object", (("name", ("string", b"x")),))}))


def _edited(staged: Staged, edit: _EDIT) -> None:
    """The first variant of the first new file, as a value in Python."""

    def change(table: pa.Table) -> pa.Table:
        held = table.column("v").to_pylist()
        edit(held[0])
        return table.set_column(1, table.schema.field("v"), pa.array(held, table.schema.field("v").type))

    staged.rewrite(change)


def change_a_value_that_is_not_typed(staged: Staged) -> None:
    def edit(variant: dict[str, Any]) -> None:
        # The number is the last byte of the object, or the last but some that are zero.
        at = variant["value"].rindex(5)
        variant["value"] = variant["value"][:at] + b"\x06" + variant["value"][at + 1 :]

    _edited(staged, edit)


def lose_the_values_that_are_not_typed(staged: Staged) -> None:
    _edited(staged, lambda variant: variant.update(value=None))


def change_a_typed_value(staged: Staged) -> None:
    _edited(staged, lambda variant: variant["typed_value"]["a"].update(typed_value=77_777))


def lose_a_typed_value(staged: Staged) -> None:
    """The object has no such field any more."""
    _edited(staged, lambda variant: variant["typed_value"]["a"].update(typed_value=None))


def lose_all_typed_values(staged: Staged) -> None:
    """What is left is an object too: the fields that were not typed."""
    none = {"value": None, "typed_value": None}
    _edited(staged, lambda variant: variant.update(typed_value=dict.fromkeys(variant["typed_value"], none)))


def swap_the_values_of_two_fields(staged: Staged) -> None:
    def edit(variant: dict[str, Any]) -> None:
        typed = variant["typed_value"]
        typed["a"], typed["b"] = typed["b"], typed["a"]

    _edited(staged, edit)


def swap_two_values_of_an_array(staged: Staged) -> None:
    _edited(staged, lambda variant: variant["typed_value"]["tags"]["typed_value"].reverse())


def change_a_name(staged: Staged) -> None:
    def edit(variant: dict[str, Any]) -> None:
        variant["metadata"] = variant["metadata"].replace(b"rest", b"best")

    _edited(staged, edit)


def write_null_for_a_variant(staged: Staged) -> None:
    def change(table: pa.Table) -> pa.Table:
        held = [None, *table.column("v").to_pylist()[1:]]
        return table.set_column(1, table.schema.field("v"), pa.array(held, table.schema.field("v").type))

    staged.rewrite(change)


SHREDDED: dict[Act, str] = dict.fromkeys(
    (
        change_a_value_that_is_not_typed,
        lose_the_values_that_are_not_typed,
        change_a_typed_value,
        lose_a_typed_value,
        lose_all_typed_values,
        swap_the_values_of_two_fields,
        swap_two_values_of_an_array,
        change_a_name,
        write_null_for_a_variant,
    ),
    "rows differ",
)
