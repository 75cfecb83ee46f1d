"""Conditions on rows, at random and by seed, in the words of every reader of Iceberg.

Only what means the same to all of them: to Iceberg Java a null is less than a value, NaN is larger than every number or
is skipped by bounds that do not know of it, and zeros differ by their sign.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from pyiceberg.expressions import (
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotNaN,
    NotNull,
    Or,
    StartsWith,
)
from tests.drivers.lake_rows import Rows

COMPARISONS: Mapping[str, tuple[str, Any]] = {
    "eq": ("=", EqualTo),
    "lt": ("<", LessThan),
    "lt-eq": ("<=", LessThanOrEqual),
    "gt": (">", GreaterThan),
    "gt-eq": (">=", GreaterThanOrEqual),
}
TESTS: Mapping[str, tuple[str, Any]] = {
    "is-null": ("{} IS NULL", IsNull),
    "not-null": ("{} IS NOT NULL", NotNull),
    "is-nan": ("isnan({})", IsNaN),
    "not-nan": ("NOT isnan({})", NotNaN),
}
ODD = ("NaN", "Infinity", "-Infinity", "-0.0")


@dataclass(frozen=True, slots=True)
class Single:
    """One column against the values, of which "in" has many and tests have none; `kind` is Spark's name of a type."""

    operator: str
    column: str
    kind: str
    values: tuple[Any, ...] = ()

    def sql(self, *, timestamp: str) -> str:
        """`timestamp` is the dialect's type with a time zone."""
        if self.operator in TESTS:
            return TESTS[self.operator][0].format(self.column)
        if self.operator == "starts-with":
            return f"{self.column} LIKE '{self.values[0]}%'"
        literals = [self._literal(value, timestamp) for value in self.values]
        if self.operator == "in":
            return f"{self.column} IN ({', '.join(literals)})"
        return f"{self.column} {COMPARISONS[self.operator][0]} {literals[0]}"

    def _literal(self, value: Any, timestamp: str) -> str:
        match self.kind:
            case "string":
                return f"'{value}'"
            case "date":
                return f"DATE '{value}'"
            case "timestamp":
                return f"CAST('{value}' AS {timestamp})"
            case "double":
                return f"CAST({value} AS DOUBLE)"
            case _:
                return str(value)

    def java(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": self.operator, "term": self.column}
        if self.operator == "in":
            return {**found, "values": list(self.values)}
        return {**found, "value": self.values[0]} if self.values else found

    def pyiceberg(self) -> BooleanExpression:
        expression: BooleanExpression
        values = [value.replace("Z", "+00:00") if self.kind == "timestamp" else value for value in self.values]
        if self.operator in TESTS:
            expression = TESTS[self.operator][1](self.column)
        elif self.operator == "in":
            expression = In(self.column, set(values))
        elif self.operator == "starts-with":
            expression = StartsWith(self.column, values[0])
        else:
            expression = COMPARISONS[self.operator][1](self.column, values[0])
        return expression


@dataclass(frozen=True, slots=True)
class Pair:
    operator: str
    left: "Condition"
    right: "Condition"

    def sql(self, *, timestamp: str) -> str:
        left, right = self.left.sql(timestamp=timestamp), self.right.sql(timestamp=timestamp)
        return f"({left} {self.operator.upper()} {right})"

    def java(self) -> dict[str, Any]:
        return {"type": self.operator, "left": self.left.java(), "right": self.right.java()}

    def pyiceberg(self) -> BooleanExpression:
        return (And if self.operator == "and" else Or)(self.left.pyiceberg(), self.right.pyiceberg())


Condition = Single | Pair


def conditions(rows: Rows, columns: Sequence[str], random: Random) -> Iterator[Condition]:
    """For each column a range, a few of its values, null or not and what its type has more; then pairs of those."""
    found: list[Condition] = []
    for column in columns:
        kind = rows.types[rows.columns.index(column)]
        values = [value for value in rows.column(column) if value is not None and value not in ODD]
        some = {random.choice(values) for _ in range(4)}
        low, high = sorted(random.sample(values, 2), key=float if kind.startswith("decimal") else None)
        lower, upper = random.choice(("gt", "gt-eq")), random.choice(("lt", "lt-eq"))
        limits = Pair("and", Single(lower, column, kind, (low,)), Single(upper, column, kind, (high,)))
        above = Single(random.choice(tuple(COMPARISONS)), column, kind, (random.choice(values),))
        found.append(limits)
        held = Pair("and", Single("not-null", column, kind), above)
        found.append(Pair("and", Single("not-nan", column, kind), held) if kind == "double" else held)
        found.append(Single("in", column, kind, tuple(sorted(some))))
        found.append(Single("is-null", column, kind))
        if kind == "double":
            found.append(Single("is-nan", column, kind))
        if kind == "string":
            word = random.choice([value for value in values if value])
            found.append(Single("starts-with", column, kind, (word[: random.randint(1, len(word))],)))
    yield from found
    for _ in columns:
        yield Pair(random.choice(("and", "or")), *random.sample(found, 2))
