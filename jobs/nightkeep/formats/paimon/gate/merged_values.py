"""The computed columns of merged rows, by the gate: sums, products and joined texts.

Each takes `parts` (merged._parts: one row per stored row, in order), the stored column and its rule, and gives one
value per key, in the order of keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.metadata.merge_engine import BLANK, LONG_DIGITS, FieldRule
from nightkeep.model.arrow_types import ChunkedArray

_BASE, _NEWER, _OLDER = pl.col("base"), pl.col("newer"), pl.col("older")
Numbers = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


def sums(parts: pl.DataFrame, column: ChunkedArray, rule: FieldRule) -> ChunkedArray:
    """Null where no row has a number, or beyond the digits of a decimal."""
    some, keys = _numbered(parts)
    numbers = column.take(some["at"].to_arrow())
    back, of_key = some["back"].to_numpy(), some["key"].to_numpy()
    add = _decimal_sums if pa.types.is_decimal(column.type) else _number_sums
    totals = add(numbers, back, of_key, keys)
    return _only(totals.cast(column.type), of_key, keys)


def products(parts: pl.DataFrame, column: ChunkedArray, rule: FieldRule) -> ChunkedArray:
    """Null where no row has a number, or beyond the digits of a decimal. A retract before any number does nothing."""
    some, keys = _numbered(parts)
    some = some.filter((~pl.col("back")).cum_max().over("key"))
    turn = some.select(pl.int_range(pl.len()).over("key")).to_series().to_numpy()
    numbers = column.take(some["at"].to_arrow())
    multiply = _decimal_products if pa.types.is_decimal(column.type) else _number_products
    totals = multiply(numbers, some["back"].to_numpy(), some["key"].to_numpy(), turn, keys)
    return _only(totals.cast(column.type), some["key"].to_numpy(), keys)


def _number_products(column: ChunkedArray, back: Flags, of_key: Places, turn: Places, keys: int) -> ChunkedArray:
    numbers = column.to_numpy()
    held = np.zeros(keys, numbers.dtype)
    for n in range(int(turn.max(initial=-1)) + 1):
        here = turn == n
        at, number = of_key[here], numbers[here]
        held[at] = _next(held[at], number, back[here]) if n else number
    return pa.chunked_array([held])


def _next(held: Numbers, numbers: Numbers, back: Flags) -> Numbers:
    with np.errstate(all="ignore"):
        if held.dtype.kind == "f":
            return np.where(back, held / numbers, held * numbers)
        divisor = np.where(numbers == 0, 1, numbers)
        # Java rounds to zero.
        quotient = np.sign(held) * np.sign(divisor) * (np.abs(held) // np.abs(divisor))
        return np.where(back, quotient, held * numbers).astype(held.dtype)


def _decimal_products(column: ChunkedArray, back: Flags, of_key: Places, turn: Places, keys: int) -> ChunkedArray:
    """Rounded half up. Decimals have no retracts: the rewrite refuses them."""
    kind, wide = (pa.decimal256(digits, column.type.scale) for digits in (LONG_DIGITS, 40))
    limit = pa.scalar(10 ** (column.type.precision - column.type.scale), pa.decimal256(20, 0)).cast(wide)
    numbers, held = column.cast(kind).combine_chunks(), pa.nulls(keys, kind)
    for n in range(int(turn.max(initial=-1)) + 1):
        here = np.zeros(keys, np.bool_)
        here[of_key[turn == n]] = True
        number = numbers.filter(pa.array(turn == n))
        before = held.filter(pa.array(here))
        exact = pc.round(pc.multiply(before, number), column.type.scale, "half_towards_infinity").cast(wide)
        product = pc.if_else(pc.less(pc.abs(exact), limit), exact, pa.scalar(None, exact.type)).cast(kind)
        after = pc.if_else(pc.is_null(before), number, product)
        held = pc.replace_with_mask(held, pa.array(here), after)
    return pa.chunked_array([held])


def joined(parts: pl.DataFrame, column: ChunkedArray, rule: FieldRule) -> ChunkedArray:
    """The texts that are not blank: those before the base's from the last to the first, the base's, then the others."""
    texts = pl.Series("text", column.take(parts["at"].to_arrow()))
    rows = parts.with_columns(texts).filter(_BASE | (_NEWER | _OLDER) & ~pl.col("back"))
    blank = pl.col("text").str.contains(BLANK).fill_null(value=True)
    side = pl.when(_BASE).then(0).when(_NEWER).then(pl.col("at")).otherwise(-pl.col("at"))
    pieces = rows.filter(~blank).with_columns(side=side).sort("key", "side", maintain_order=True)
    if rule.distinct:
        pieces = _distinct(pieces, rule.delimiter)
    whole = pieces.group_by("key").agg(pl.col("text").str.join(rule.delimiter).alias("joined"))
    # Where every text is blank, an older row's value stands, or the base's.
    alone = rows.filter(_BASE | _OLDER).group_by("key", maintain_order=True).agg(pl.col("text").last().alias("alone"))
    keys = parts.select(pl.col("key").unique(maintain_order=True))
    found = keys.join(whole, on="key", how="left").join(alone, on="key", how="left")
    return pa.chunked_array([found.sort("key").select(pl.coalesce("joined", "alone")).to_series().to_arrow()]).cast(
        column.type
    )


def _distinct(pieces: pl.DataFrame, delimiter: str) -> pl.DataFrame:
    first = pl.int_range(pl.len()).over("key") == 0
    parts = pieces.with_columns(first=first, text=pl.col("text").str.split(delimiter)).explode("text")
    fresh = pl.struct("key", "text").is_first_distinct() & ~pl.col("text").str.contains(BLANK)
    return parts.filter(pl.col("first") | fresh)


def _numbered(parts: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Rows with a number that count, by the number of their key, and how many keys there are.

    A base that is taken back counts twice: with its value, and as what is taken back.
    """
    keyed = parts.with_columns(key=pl.col("key").rle_id().cast(pl.Int64))
    there = keyed.filter("there")
    base = there.filter(_BASE).with_columns(back=pl.lit(value=False), order=0)
    more = there.filter(_NEWER | _OLDER).with_columns(order=1)
    some = pl.concat([base, more]).sort("key", "at", "order").select("key", "at", "back")
    return some, keyed["key"].n_unique()


def _only(values: ChunkedArray, of_key: Places, keys: int) -> ChunkedArray:
    """`values`, null for each key that no row has a number for."""
    none = np.ones(keys, np.bool_)
    none[of_key] = False
    shown: ChunkedArray = pc.if_else(pa.array(none), pa.scalar(None, values.type), values)
    return shown


def _number_sums(column: ChunkedArray, back: Flags, of_key: Places, keys: int) -> ChunkedArray:
    """In the order of rows, because sums of floating numbers depend on it."""
    numbers = column.to_numpy()
    # 0.0 + -0.0 would lose a sign that the only number of a sum keeps.
    totals = np.full(keys, -0.0 if numbers.dtype.kind == "f" else 0, numbers.dtype)
    # The difference of two infinities is no number, in Java as well.
    with np.errstate(over="ignore", invalid="ignore"):
        np.add.at(totals, of_key, np.where(back, -numbers, numbers))
    return pa.chunked_array([totals])


def _decimal_sums(column: ChunkedArray, back: Flags, of_key: Places, keys: int) -> ChunkedArray:
    numbers = pl.Series(column.cast(pa.decimal128(38, column.type.scale)))
    each = pl.DataFrame({"key": of_key, "number": numbers, "back": back})
    signed = pl.when("back").then(-pl.col("number")).otherwise(pl.col("number"))
    totals = pl.DataFrame({"key": np.arange(keys)}).join(each.group_by("key").agg(signed.sum()), on="key", how="left")
    found: ChunkedArray = pa.chunked_array([totals.sort("key")["number"].to_arrow()])
    limit = pa.scalar(10 ** (column.type.precision - column.type.scale), pa.decimal128(38, 0))
    within = pc.less(pc.abs(found), limit.cast(pa.decimal256(60, column.type.scale)))
    shown: ChunkedArray = pc.if_else(within, found, pa.scalar(None, found.type))
    return shown
