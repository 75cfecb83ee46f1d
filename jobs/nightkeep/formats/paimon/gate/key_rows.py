"""Expressions over rows that are sorted by key, with several rows of some keys."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from nightkeep.formats.paimon.data.columns import KIND, RETRACT_KINDS


def is_newest(keys: Sequence[str]) -> pl.Expr:
    """Whether a row is the last of its key."""
    changes = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(-1)) for name in keys)
    return changes | (pl.int_range(pl.len()) == pl.len() - 1)


def is_single(keys: Sequence[str]) -> pl.Expr:
    """Whether a row is the only one of its key."""
    return is_newest(keys) & is_newest(keys).shift(1, fill_value=True)


def is_alone(keys: Sequence[str]) -> pl.Expr:
    """Whether a row is the only one of its key, and no retract."""
    return is_single(keys) & ~pl.col(KIND).is_in(RETRACT_KINDS)


def key_numbers(keys: Sequence[str]) -> pl.Expr:
    """An ascending number per key."""
    changes = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in keys)
    return changes.cum_sum().cast(pl.Int64).alias("key")


def ascend(keys: Sequence[str]) -> pl.Expr:
    """Whether every row has a greater key than the row before it."""
    *others, last = keys
    is_later = pl.col(last) > pl.col(last).shift(1)
    for name in reversed(others):
        before = pl.col(name).shift(1)
        is_later = (pl.col(name) > before) | (pl.col(name).eq(before) & is_later)
    return (is_later | (pl.int_range(pl.len()) == 0)).all()
