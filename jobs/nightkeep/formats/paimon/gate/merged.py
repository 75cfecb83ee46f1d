"""Rows of keys that the merge engine makes one row of -> those rows, as the gate computes them.

A value is a maximum over the rows that count: the place of the last row, of the last that is not null, of the greatest
value. The rewrite works differently: it goes through the rows of a key one by one. Both read the same rules.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.data.columns import KIND, RETRACT_KINDS
from nightkeep.formats.paimon.gate.comparable import comparable
from nightkeep.formats.paimon.gate.group_order import NO_BASE, Taken, row_roles
from nightkeep.formats.paimon.gate.merged_elements import elements
from nightkeep.formats.paimon.gate.merged_values import joined, products, sums
from nightkeep.formats.paimon.metadata.merge_engine import OF_ELEMENTS, FieldRule, Function, MergeRules

_EXTREMES = (Function.MAX, Function.MIN, Function.BOOL_AND, Function.BOOL_OR)
_COMPUTED = {
    Function.SUM: sums,
    Function.PRODUCT: products,
    Function.LISTAGG: joined,
    **dict.fromkeys(OF_ELEMENTS, elements),
}
_AT, _BASE = pl.col("at"), pl.col("base")
_RETRACT = pl.col("kind").is_in(RETRACT_KINDS)


def merged_rows(rows: pa.Table, keys: npt.NDArray[np.int64], rules: MergeRules) -> pa.Table:
    """One row of the columns of `rules.fields` for each key that is left, in the order of `keys`.

    `rows` are sorted by key and then by sequence; `keys` has an ascending number per row, equal for rows of one key.
    """
    kinds = rows.column(KIND).to_numpy()
    roles = row_roles(rows, keys, kinds, rules)
    frame = pl.DataFrame(
        {
            "key": keys,
            "at": np.arange(rows.num_rows),
            "kind": kinds,
            "base": roles.base,
            **_flags(None, roles.ungrouped),
            **{name: flags for n, taken in enumerate(roles.taken) for name, flags in _flags(n, taken).items()},
            **{f"there {name}": pc.is_valid(rows.column(name)).to_numpy() for name in rules.fields},
            **{
                f"value {name}": pl.Series(comparable(rows.column(name)))
                for name, rule in rules.fields.items()
                if rule.function in _EXTREMES
            },
        }
    ).filter(roles.left)
    places = frame.group_by("key", maintain_order=True).agg(
        _place(name, rule).alias(f"place {name}")
        for name, rule in rules.fields.items()
        if rule.function not in _COMPUTED
    )
    return pa.table(
        {
            name: _COMPUTED[rule.function](_parts(frame, name, rule), rows.column(name), rule)
            if rule.function in _COMPUTED
            else rows.column(name).take(places[f"place {name}"].to_arrow().cast(pa.int64()))
            for name, rule in rules.fields.items()
        }
    )


def _flags(group: int | None, taken: Taken) -> dict[str, npt.NDArray[np.bool_]]:
    return {f"newer {group}": taken.newer, f"older {group}": taken.older, f"earlier {group}": taken.earlier}


def _parts(frame: pl.DataFrame, name: str, rule: FieldRule) -> pl.DataFrame:
    """All rows of a computed column: `key`, `at`, `there`, `back` of a retract, and which of `base`, `newer` and
    `older` they are. A base that is also a retract is both."""
    able = ~_RETRACT if rule.ignores_retracts else pl.lit(value=True)
    return frame.select(
        "key",
        "at",
        base=_AT == _BASE,
        newer=pl.col(f"newer {rule.group}") & able,
        older=pl.col(f"older {rule.group}") & able,
        there=pl.col(f"there {name}"),
        back=_RETRACT,
    )


def _place(name: str, rule: FieldRule) -> pl.Expr:
    """The place of the row whose value the column has; null for null."""
    base = pl.when(_BASE.first() != NO_BASE).then(_BASE.first())
    there, newer, older = pl.col(f"there {name}"), pl.col(f"newer {rule.group}"), pl.col(f"older {rule.group}")
    taken = newer | older
    stands = (taken & ~_RETRACT | (_AT == _BASE)) & there
    back = _RETRACT & (not rule.ignores_retracts)
    match rule.function:
        case Function.KEY:
            return _AT.max()
        case Function.SEQUENCE:
            return pl.coalesce(_AT.filter(newer).max(), base)
        case Function.OF_GROUP:
            return _last(newer, newer & _RETRACT, base)
        case Function.LAST_VALUE:
            return _last(newer & ~_RETRACT, taken & back, base)
        case Function.LAST_NON_NULL_VALUE:
            return _last_there(newer & there & ~_RETRACT, older & there & ~_RETRACT, taken & there & back, there, base)
        case Function.FIRST_VALUE | Function.FIRST_NON_NULL_VALUE:
            able = ~_RETRACT if rule.function is Function.FIRST_VALUE else ~_RETRACT & there
            return _first(able, newer, older, pl.col(f"earlier {rule.group}"), base)
        case Function.MAX | Function.BOOL_OR:
            return _AT.filter(stands).sort_by(pl.col(f"value {name}").filter(stands)).last()
        case function:
            assert function in (Function.MIN, Function.BOOL_AND)
            return _AT.filter(stands).sort_by(pl.col(f"value {name}").filter(stands)).first()


def _last(able: pl.Expr, back: pl.Expr, base: pl.Expr) -> pl.Expr:
    """The last row of `able`. Null if a later row takes its value back; the base if there is no row of either kind."""
    last, last_back = _AT.filter(able & ~back).max(), _AT.filter(back).max()
    return pl.when(last_back.is_null()).then(pl.coalesce(last, base)).when(last > last_back).then(last)


def _last_there(newer: pl.Expr, older: pl.Expr, back: pl.Expr, there: pl.Expr, base: pl.Expr) -> pl.Expr:
    """As `_last`; and where nothing newer came, the first of the older rows that found the column empty."""
    last_back = _AT.filter(back).max().fill_null(NO_BASE)
    last = _AT.filter(newer).max()
    held = pl.when(last_back == NO_BASE).then(base)
    held_there = (there & (_AT == _BASE)).any() & (last_back == NO_BASE)
    filling = _AT.filter(older & (last_back < _AT)).min()
    return pl.when(last > last_back).then(last).when(held_there).then(held).otherwise(pl.coalesce(filling, held))


def _first(able: pl.Expr, newer: pl.Expr, older: pl.Expr, earlier: pl.Expr, base: pl.Expr) -> pl.Expr:
    """The first row that is able. It counts once: if its group took it before the base, no newer row does. A row that
    is older than its group takes the place of the first."""
    first = _AT.filter(able & (newer | older | earlier)).min()
    takes = able & pl.when(first == _AT).then(newer).otherwise(older)
    return pl.coalesce(_AT.filter(takes).max(), base)
