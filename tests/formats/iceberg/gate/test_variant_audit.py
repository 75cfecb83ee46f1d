"""Staged files of variants: the gate names values that differ, however they are encoded, and files that mislead."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.gate.test_sabotage import assert_caught, judged
from tests.formats.iceberg.laid_anew import a_run
from tests.formats.iceberg.sabotage import METRICS, Act, Item, Staged
from tests.support.variant_values import Typed, Value, column, decoded, shredded_column

from nightkeep.encodings.variant_groups import parquet_output
from nightkeep.formats.iceberg.data import conform
from nightkeep.formats.iceberg.format import IcebergTable
from nightkeep.formats.iceberg.metadata.content_files import FileContent, NewFile
from nightkeep.formats.iceberg.metadata.locations import storage_name
from nightkeep.kernels.variant_assembly import assembled
from nightkeep.model import Candidate, Mismatch, Operation, Plan, Request, UnitKey, Verified, VerifyLevel
from nightkeep.model.variant_type import VARIANT, shredded_type
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.tasks import inline

pytestmark = pytest.mark.slow

_NUMBERS = count()
DAYS = runs.DAYS[:2]
TOUCHED = [UnitKey(f"day={day}") for day in DAYS]
VALUES: Sequence[Value | None] = (
    ("object", (("a", ("exact", 1, 0)), ("b", ("string", b"x")))),
    ("array", (("exact", 15, 1), ("null",), ("bool", True))),
    None,
    ("null",),
    ("object", (("a", ("exact", 2, 0)),)),
    ("string", b"x"),
)


ALIKE: Typed = {"a": pa.int8(), "b": pa.string()}


def filled(java: IcebergJava, table: Table, shreddings: Sequence[Typed]) -> None:
    """Two days in three files each, which are adopted: groups without ids and without the mark of variants."""
    columns = [("id", "long"), ("day", "string"), ("v", "variant")]
    java.create(table, columns, Layout(partition=(("day", "identity"),), format_version=3))
    folder = runs.folder(table)
    for day in DAYS:
        for number, typed in enumerate(shreddings):
            ids = range(len(VALUES) * number, len(VALUES) * (number + 1))
            held = {"id": [*ids], "day": [day] * len(ids), "v": shredded_column(VALUES, typed, Random(number))}
            file = folder / f"adopted {day} {number}.parquet"
            pq.write_table(pa.table(held), file, store_schema=False)
            java.commit(table, java.adopt(table, file, partition=[day]), kind="append")


@contextmanager
def made(java: IcebergJava, folder: Path, shreddings: Sequence[Typed]) -> Iterator[runs.Kept]:
    warehouse = Warehouse(f"misled{next(_NUMBERS)}", folder)
    with runs.configured(warehouse):
        filled(java, warehouse.table("shop.events"), shreddings)
        yield runs.Kept.of(warehouse.table("shop.events"))


@pytest.fixture(scope="module")
def kept(iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[runs.Kept]:
    """One plain file, and two that are shredded in two ways."""
    with made(iceberg_java, tmp_path_factory.mktemp("misled"), (None, {"a": pa.int8()}, [pa.decimal128(9, 1)])) as kept:
        yield kept


@pytest.fixture
def table(kept: runs.Kept) -> IcebergTable:
    return runs.opened(kept.put_back())


def written(staged: Staged, change: Callable[[pa.ChunkedArray], pa.Array], *, marked: bool = True) -> None:  # type: ignore[type-arg]
    """Other variants in the first new file."""

    def again(item: NewFile) -> list[Item]:
        path = Path("/", storage_name(item.path))
        rows = pq.read_table(path, partitioning=None)
        place = rows.schema.get_field_index("v")
        variants = change(rows.column("v"))
        parts = [each.type for each in variants.type]
        kind = shredded_type(*parts[1:]) if len(parts) > VARIANT.num_fields else VARIANT
        rows = rows.set_column(place, rows.schema.field(place).with_type(kind), variants.cast(kind))
        with path.open("wb") as sink:
            open_writer: Any = parquet_output if marked else pq.ParquetWriter
            with open_writer(sink, rows.schema, store_schema=False) as writer:
                writer.write_table(rows)
        stated = {**dict.fromkeys(METRICS), "file_size_in_bytes": path.stat().st_size}
        return [replace(item, raw={**item.raw, **stated})]

    staged.edit_new(FileContent.DATA, again)


def encoded(change: Callable[[Sequence[Value | None]], Sequence[Value | None]]) -> Callable[[Any], Any]:
    """Other values, encoded anew by chance."""
    return lambda held: column(change([each and decoded(**each) for each in held.to_pylist()]), Random(7))


def change_a_field(staged: Staged) -> None:
    other = ("object", (("a", ("exact", 1, 0)), ("b", ("string", b"y"))))
    written(staged, encoded(lambda values: [other, *values[1:]]))


def rename_a_field(staged: Staged) -> None:
    other = ("object", (("a", ("exact", 1, 0)), ("c", ("string", b"x"))))
    written(staged, encoded(lambda values: [other, *values[1:]]))


def write_a_double_for_a_decimal(staged: Staged) -> None:
    other = ("array", (("double", b"\0\0\0\0\0\0\xf8\x3f"), ("null",), ("bool", True)))
    written(staged, encoded(lambda values: [values[0], other, *values[2:]]))


def write_null_for_a_variant_null(staged: Staged) -> None:
    written(staged, encoded(lambda values: [*values[:3], None, *values[4:]]))


def swap_variants_of_two_rows(staged: Staged) -> None:
    written(staged, encoded(lambda values: [values[1], values[0], *values[2:]]))


def forget_the_mark(staged: Staged) -> None:
    """Some readers take such a group for a struct."""
    written(staged, lambda held: held, marked=False)


def state_bounds_of_a_variant(staged: Staged) -> None:
    staged.metric("lower_bounds", lambda _: b"\1\0\0\0", field_id=3)


def miscount_null_variants(staged: Staged) -> None:
    staged.metric("null_value_counts", lambda nulls: nulls - 1, field_id=3)


ACTS: dict[Act, str] = {
    change_a_field: "rows differ",
    rename_a_field: "rows differ",
    write_a_double_for_a_decimal: "rows differ",
    write_null_for_a_variant_null: "rows differ",
    swap_variants_of_two_rows: "rows differ",
    forget_the_mark: "column v is not annotated as a variant",
    state_bounds_of_a_variant: r"bounds of variants, fields \[3\], expected none",
    miscount_null_variants: "v has 3 nulls, its manifest states 2",
}


def staged(table: IcebergTable) -> tuple[Plan, Candidate]:
    snapshot, run = table.snapshot(), a_run()
    found = plan(table, snapshot, Request(Operation.OPTIMIZE, run.now_ms, full=True))
    return found, table.commits.stage(snapshot, execute(table, found, run, mapper=inline), run)


@pytest.mark.parametrize("level", VerifyLevel)
def test_values_are_proven_whatever_their_encoding(table: IcebergTable, level: VerifyLevel) -> None:
    made = staged(table)
    assert isinstance(judged(table, made, level), Verified)
    written(Staged(table, made[1], TOUCHED[0]), encoded(lambda values: values))
    checked = judged(table, made, level)
    assert isinstance(checked, Mismatch) and all("files-size" in fault for fault in checked.faults), checked
    assert len(checked.proofs) == 2
    assert all(proof.base == proof.candidate and not proof.faults for proof in checked.proofs), checked


@pytest.mark.few(3)
@pytest.mark.in_turn("level")
@pytest.mark.parametrize("level", VerifyLevel)
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_the_gate_names(table: IcebergTable, act: Act, level: VerifyLevel) -> None:
    made = staged(table)
    act(Staged(table, made[1], TOUCHED[0]))
    assert_caught(judged(table, made, level), ACTS[act])


def a_changed_typed_value(_: Any) -> pa.Array:  # type: ignore[type-arg]
    other = ("object", (("a", ("exact", 1, 0)), ("b", ("string", b"y"))))
    return shredded_column([other, *VALUES[1:], *VALUES, *VALUES], ALIKE, Random(7))


def ids_within(_: Any) -> pa.Array:  # type: ignore[type-arg]
    held = shredded_column([*VALUES] * 3, ALIKE, Random(7))
    metadata, value, typed = held.type
    fields = [each.with_metadata({"PARQUET:field_id": str(9 + place)}) for place, each in enumerate(typed.type)]
    return held.cast(pa.struct([metadata, value, typed.with_type(pa.struct(fields))]))


CHANGES: dict[str, tuple[Callable[[Any], Any], str | None]] = {
    "as they are": (lambda held: held, None),
    "a changed value": (a_changed_typed_value, "rows differ"),
    "ids within": (ids_within, "column v: field ids"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_typed_values_of_files_that_are_shredded_alike_are_proven(
    iceberg_java: IcebergJava, tmp_path: Path, name: str
) -> None:
    change, fault = CHANGES[name]
    with made(iceberg_java, tmp_path, [ALIKE] * 3) as start:
        opened = runs.opened(start.put_back())
        candidate = staged(opened)
        written(Staged(opened, candidate[1], TOUCHED[0]), change)
        checked = judged(opened, candidate, VerifyLevel.FULL)
    if fault is not None:
        assert_caught(checked, fault)
        return
    assert isinstance(checked, Mismatch) and all("files-size" in each for each in checked.faults), checked
    assert len(checked.proofs) == 2 and all(proof.base == proof.candidate for proof in checked.proofs), checked


def test_the_gate_does_not_put_variants_together_as_a_rewrite_does(
    table: IcebergTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrongly(held: pa.StructArray) -> pa.StructArray:
        """Every value is that of the row above."""
        whole = assembled(held)
        return whole.take(pa.array([0, *range(len(whole) - 1)]))

    monkeypatch.setattr(conform, "assembled", wrongly)
    assert_caught(judged(table, staged(table), VerifyLevel.TOUCHED), "rows differ")
