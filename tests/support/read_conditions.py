"""A table's rows -> random conditions on them, and what a reader must show by each: the full read, filtered."""

from collections.abc import Callable, Iterator
from random import Random

import pyarrow as pa
from tests.drivers.lake_rows import rows_of

from nightkeep.sql_text.rows.arrow_condition import is_true
from nightkeep.sql_text.rows.parse import rows_where
from nightkeep.sql_text.rows.typed_literals import spelled

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


def require_filters_agree(read: Callable[[str], pa.Table], rows: pa.Table, *, seed: int, count: int = 12) -> int:
    """Fails where a filtered read is not the full read filtered. Returns how many conditions were true of a row."""
    found = 0
    for where in conditions(rows, Random(seed), count):
        wanted = rows.filter(is_true(rows_where(where, rows.schema), rows))
        assert in_order(read(where)) == in_order(wanted), where
        found += wanted.num_rows > 0
    return found


def in_order(rows: pa.Table) -> list[str]:
    """Rows as texts, also of years beyond those of Python's dates."""
    return sorted(map(repr, rows_of(rows).rows))


def conditions(rows: pa.Table, random: Random, count: int) -> Iterator[str]:
    """Conditions of one or two parts, on columns and fields of structs; literals are of the rows."""
    leaves = [leaf for field in rows.schema for leaf in _leaves(field, (), rows.column(field.name))]
    for _ in range(count if leaves else 0):
        one, other = (_condition(random, *random.choice(leaves)) for _ in range(2))
        yield random.choice((one, one, f"{one} AND {other}", f"{one} OR {other}", f"NOT ({one} AND {other})"))


def _leaves(
    field: "pa.Field[pa.DataType]", above: tuple[str, ...], column: "pa.ChunkedArray[pa.Scalar[pa.DataType]]"
) -> Iterator[tuple[str, pa.DataType, list[str]]]:
    """Names, types and literals of what can be compared."""
    path = (*above, field.name)
    kind = field.type
    if isinstance(kind, pa.StructType):
        for child, values in zip(kind, column.flatten(), strict=True):
            yield from _leaves(child, path, values)
        return
    name = ".".join(f"`{part}`" for part in path)
    literals = []
    for scalar in column.drop_null() if not pa.types.is_nested(kind) else ():
        try:
            literals.append(spelled(scalar.as_py(), kind))
        except (ValueError, KeyError, OverflowError):
            # A value without a literal, or without a Python value.
            continue
    if not pa.types.is_nested(kind):
        yield name, kind, literals


def _condition(random: Random, name: str, kind: pa.DataType, literals: list[str]) -> str:
    # There is no literal of single precision that every value of it has.
    if not literals or pa.types.is_float32(kind) or random.random() < 0.2:
        return f"{name} IS {random.choice(('', 'NOT '))}NULL"
    chosen = [random.choice(literals) for _ in range(3)]
    if random.random() < 0.3:
        return random.choice((f"{name} IN ({', '.join(chosen)})", f"{name} BETWEEN {chosen[0]} AND {chosen[1]}"))
    return f"{name} {random.choice(_COMPARISONS)} {chosen[0]}"
