"""Staged ORC files of format version 3: the gate names rows that differ in what is nested, row ids, and vectors."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Column, Table, Warehouse, array, struct
from tests.formats.iceberg import runs, sabotage
from tests.formats.iceberg.gate.test_sabotage import TOUCHED, TRACKED, VECTORS, assert_caught, judged, named, rewritten
from tests.formats.iceberg.sabotage import Act, Staged, converted

from nightkeep.formats.iceberg.format import IcebergTable
from nightkeep.model import Verified, VerifyLevel

pytestmark = pytest.mark.slow

_NUMBERS = count()
COLUMNS: tuple[Column, ...] = (
    *runs.COLUMNS,
    ("place", struct(("inner", struct(("x", "int"))), ("name", "string"))),
    ("parts", array(array(struct(("n", "long"))))),
)


def filled(java: IcebergJava, table: Table) -> None:
    """Two days in two files each, of which rows were changed by keys; every third struct is null, at both levels."""
    layout = Layout(partition=(("day", "identity"),), format_version=3, properties={"write.format.default": "orc"})
    java.create(table, COLUMNS, layout)
    for start in (0, 10):
        java.append(table, [row(day, n) for day in runs.DAYS[:2] for n in range(start, start + 10)])
    java.cdc(table, [("+U", row(day, n, "new")) for day in runs.DAYS[:2] for n in (4, 14)], keys=["id", "day"])


def row(day: str, n: int, note: str = "as written") -> list[Any]:
    place = None if n % 3 == 0 else {"inner": None if n % 3 == 1 else {"x": n}, "name": f"name {n}"}
    return [n, day, n / 4, note, place, [[{"n": n}, None], None, []]]


def lose_a_null_of_a_struct(staged: Staged) -> None:
    """As Arrow's writer does of slices: readers see a struct of nulls."""
    _change(staged, "place", lambda value: value or {"inner": None, "name": None})


def lose_a_null_of_an_inner_struct(staged: Staged) -> None:
    _change(staged, "place", lambda value: value and {**value, "inner": value["inner"] or {"x": None}})


def change_a_value_in_a_nested_list(staged: Staged) -> None:
    _change(staged, "parts", lambda value: [[{"n": value[0][0]["n"] + 100}, None], None, []])


def lose_a_null_of_a_list(staged: Staged) -> None:
    _change(staged, "parts", lambda value: [value[0], [], []])


def _change(staged: Staged, name: str, changed: Callable[[Any], Any]) -> None:
    """The value of the first row for which there is another one."""

    def again(rows: pa.Table) -> pa.Table:
        values = rows.column(name).to_pylist()
        at = next(at for at, value in enumerate(values) if changed(value) != value)
        values[at] = changed(values[at])
        place = rows.schema.get_field_index(name)
        return rows.set_column(place, rows.schema.field(place), pa.array(values, rows.schema.field(place).type))

    staged.rewrite(again)


NESTED: dict[Act, str] = {
    lose_a_null_of_a_struct: "rows differ",
    lose_a_null_of_an_inner_struct: "rows differ",
    change_a_value_in_a_nested_list: "rows differ",
    lose_a_null_of_a_list: "rows differ",
}
WRITTEN = {**NESTED, **TRACKED, sabotage.claim_that_it_is_avro: "expected magic"}


@pytest.fixture(scope="module")
def kept(iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[runs.Kept]:
    warehouse = Warehouse(f"nested{next(_NUMBERS)}", tmp_path_factory.mktemp("in_orc"))
    with runs.configured(warehouse):
        filled(iceberg_java, warehouse.table("shop.events"))
        yield runs.Kept.of(warehouse.table("shop.events"))


@pytest.fixture
def table(kept: runs.Kept) -> IcebergTable:
    return runs.opened(kept.put_back())


def test_what_nobody_damaged_is_proven(table: IcebergTable) -> None:
    for made in (rewritten(table), converted(table)):
        checked = judged(table, made, VerifyLevel.FULL)
        assert isinstance(checked, Verified), checked


@pytest.mark.few(4)
@pytest.mark.parametrize("level", VerifyLevel)
@pytest.mark.parametrize("act", WRITTEN, ids=named)
def test_the_gate_catches(act: Act, level: VerifyLevel, table: IcebergTable) -> None:
    made = rewritten(table)
    act(Staged(table, made[1], TOUCHED[0]))
    assert_caught(judged(table, made, level), WRITTEN[act])


@pytest.mark.few(2)
@pytest.mark.parametrize("level", VerifyLevel)
@pytest.mark.parametrize("act", VECTORS, ids=named)
def test_the_gate_catches_of_vectors(act: Act, level: VerifyLevel, table: IcebergTable) -> None:
    made = converted(table)
    act(Staged(table, made[1], TOUCHED[0]))
    assert_caught(judged(table, made, level), VECTORS[act])
