"""Replaced and new files of a bucket without vectors -> faults of sequence numbers and retracts that new files keep.

Readers do not see them now, but later merges go by them: a row that lost its sequence number would lose to an older
one, and a retract that was dropped too early would let an older row come back. New files must hold, of each key, the
sequence number and the kind that a merge of the replaced files leaves. Computed from one sort of their key columns,
without code of the rewrite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import polars as pl

from nightkeep.formats.paimon.data.columns import DELETE_KIND, KIND, RETRACT_KINDS, SEQUENCE, key_columns
from nightkeep.formats.paimon.gate.group_order import row_roles
from nightkeep.formats.paimon.gate.key_pool import KeySide, key_pools
from nightkeep.formats.paimon.gate.key_rows import is_newest, is_single, key_numbers
from nightkeep.formats.paimon.gate.scan import (
    by_file,
    lowest_level_only,
    picked_rows,
    row_order,
    rows,
    value_rows,
    whole_keys,
)
from nightkeep.formats.paimon.metadata.binary_row import sort_key
from nightkeep.formats.paimon.metadata.changelog import lowest_level_counts
from nightkeep.formats.paimon.metadata.merge_engine import MergeRules, merge_rules, skips_retracts
from nightkeep.formats.paimon.metadata.record_expiry import record_age
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.types import PaimonType
from nightkeep.kernels.fingerprint import fingerprint
from nightkeep.model import Fingerprint
from nightkeep.storage import Storage

_RETRACT = pl.col(KIND).is_in(RETRACT_KINDS)
_FOLDED = "folded"


def order_faults(storage: Storage, base: Bucket, candidate: Bucket) -> Iterator[str]:
    """Faults of new files against those they replace. Only for tables without deletion vectors."""
    before = {(file.name, file.level) for file in base.files}
    moved = [file for file in candidate.files if (file.name, file.level) not in before]
    replaced = _without(base, candidate)
    fresh = _without(candidate, base)
    retracts_end = _retracts_end(replaced, candidate, moved)
    # What is looked up is merged as well, and stays.
    merged = replace(base, files=(*replaced.files, *_looked_up(base, replaced, moved)))
    wrong, kept, found = _WrongKeys(), Fingerprint(), Fingerprint()
    for stored, new in _ranges(storage, merged, fresh, replaced=len(replaced.files)):
        left = _left(storage, merged, stored)
        if retracts_end:
            left = left.filter(~_RETRACT)
        elif bool(left.select((pl.col(_FOLDED) & _RETRACT).any()).item()):
            yield "several rows were merged to a retract that stays: what it deletes is not proven"
            return
        if retracts_end and record_age(candidate.schemas.current) is not None:
            # Which keys expired is proven by comparing rows.
            left = left.join(new, on=key_columns(base), how="semi", maintain_order="left") if len(new) else left.clear()
        wrong.add(left, new, key_columns(base))
        if not retracts_end:
            kept += _retracts(storage, merged, left)
            found += _retracts(storage, fresh, new.with_columns(pl.lit(value=False).alias(_FOLDED)))
    if wrong.count:
        yield str(wrong)
    elif kept != found:
        yield "new files: retracts have other values than in the files they replace"


def _looked_up(base: Bucket, replaced: Bucket, moved: Sequence[PaimonDataFile]) -> Iterator[PaimonDataFile]:
    """The deeper files, in which rows of level 0 without a row above the output level are looked up."""
    if lowest_level_counts(base.schemas.current) and moved and any(file.level == 0 for file in replaced.files):
        output, names = min(file.level for file in moved), {file.name for file in replaced.files}
        yield from (file for file in base.files if file.level > output and file.name not in names)


def _ranges(
    storage: Storage, merged: Bucket, fresh: Bucket, *, replaced: int
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Rows that are merged and rows of new files, a range of keys of both at a time. Of `merged`, the first `replaced`
    files are replaced, the others are looked up in."""
    files = range(len(merged.files))
    sides = (
        KeySide(merged, files[:replaced], {}),
        KeySide(merged, files[replaced:], {}),
        KeySide(fresh, range(len(fresh.files)), {}),
    )
    schema = merged.schemas.current
    order, skips = row_order(schema), skips_retracts(schema)
    for old, below, new in key_pools(storage, sides, order):
        if lowest_level_counts(schema):
            old = _with_looked_up(old, below, merged).sort(order.by, descending=order.descending, nulls_last=False)
        if lowest_level_counts(schema) and merge_rules(schema) is not None:
            # What a lookup merges is an insert, also of a single row. Merges take an update as an insert.
            old, new = (side.with_columns(_inserts()) for side in (old, new))
        yield (old.filter(~_RETRACT), new.filter(~_RETRACT)) if skips else (old, new)


def _inserts() -> pl.Expr:
    return pl.when(_RETRACT).then(pl.col(KIND)).otherwise(pl.lit(0, pl.Int8)).alias(KIND)


def _with_looked_up(rows: pl.DataFrame, below: pl.DataFrame, bucket: Bucket) -> pl.DataFrame:
    """For each key, the rows on level 0 and the row on the lowest level above it. A row of `below` counts only if the
    key is on level 0 and on no higher level of `rows`."""
    keys = key_columns(bucket)
    levels = pl.Series([file.level for file in bucket.files], dtype=pl.Int64)
    of_rows = pl.Series(levels.gather(rows["file"].cast(pl.Int64)), dtype=pl.Int64)
    upper = rows.filter(of_rows > 0).select(keys)
    wanted = rows.filter(of_rows == 0).select(keys).unique().join(upper, on=keys, how="anti", nulls_equal=True)
    found = below.join(wanted, on=keys, how="semi", nulls_equal=True)
    return pl.concat([lowest_level_only(side, bucket, keys) for side in (rows, found)])


def _without(bucket: Bucket, other: Bucket) -> Bucket:
    """The bucket with only those files that the other one does not have, on whatever level."""
    names = {file.name for file in other.files}
    return replace(bucket, files=tuple(file for file in bucket.files if file.name not in names))


def _retracts_end(replaced: Bucket, candidate: Bucket, moved: Sequence[PaimonDataFile]) -> bool:
    """Whether no file is below those that were written or upgraded. If none was, all replaced rows are gone: then no
    file that is left may have a key between theirs."""
    if moved:
        output = min(file.level for file in moved)
        return output > 0 and all(file.level <= output for file in candidate.files)
    schema = candidate.schemas.current
    types = [field.type for field in schema.select(schema.trimmed_keys)]
    return not any(_meet(gone, file, types) for gone in replaced.files for file in candidate.files)


def _meet(left: PaimonDataFile, right: PaimonDataFile, types: Sequence[PaimonType]) -> bool:
    low = max(sort_key(file.min_key, types) for file in (left, right))
    return low <= min(sort_key(file.max_key, types) for file in (left, right))


def _left(storage: Storage, bucket: Bucket, found: pl.DataFrame) -> pl.DataFrame:
    """One row per key, by key: its sequence number and kind after a merge. `folded`: several rows were made one."""
    keys, rules = key_columns(bucket), merge_rules(bucket.schemas.current)
    if rules is None:
        return found.filter(is_newest(keys)).with_columns(pl.lit(value=False).alias(_FOLDED))
    numbered = found.with_columns(key_numbers(keys), (~is_single(keys)).alias(_FOLDED), is_newest(keys).alias("newest"))
    made = [_made(storage, bucket, some, rules) for some in whole_keys(numbered.filter(_FOLDED), value_rows(bucket))]
    nothing = pl.DataFrame(schema={"key": pl.Int64, "made sequence": pl.Int64, "made kind": pl.Int8})
    own = numbered.filter("newest").join(pl.concat([nothing, *made]), on="key", how="left", maintain_order="left")
    return own.with_columns(
        pl.coalesce("made sequence", SEQUENCE).alias(SEQUENCE), pl.coalesce("made kind", KIND).alias(KIND)
    )


def _sequence(rules: MergeRules) -> pl.Expr:
    """The sequence number of the last row that counts, or of the last row if none does."""
    last = pl.col(SEQUENCE).last()
    counted = pl.col(SEQUENCE).filter(~_RETRACT).last()
    return (pl.coalesce(counted, last) if rules.ignores_deletes else last).alias("made sequence")


def _made(storage: Storage, bucket: Bucket, several: pl.DataFrame, rules: MergeRules) -> pl.DataFrame:
    """Sequence number and kind of what each `key` of several rows becomes: an insert, or a delete if no row is left."""
    of_groups = [name for group in rules.groups for name in group.fields]
    stored = picked_rows(storage, bucket, several, [KIND, *of_groups])
    roles = row_roles(stored, several["key"].to_numpy(), several[KIND].to_numpy(), rules)
    kind = pl.when(pl.col("left").first()).then(pl.lit(0)).otherwise(pl.lit(DELETE_KIND))
    frame = several.with_columns(pl.Series("left", roles.left))
    return frame.group_by("key").agg(_sequence(rules), kind.cast(pl.Int8).alias("made kind"))


class _WrongKeys:
    """The number of keys without the right row."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, left: pl.DataFrame, stored: pl.DataFrame, keys: Sequence[str]) -> None:
        columns = [*keys, SEQUENCE, KIND]
        expected, found = left.select(columns), stored.select(columns)
        if expected.equals(found):
            return
        wrong = pl.concat(
            [
                expected.join(found, on=columns, how="anti", nulls_equal=True),
                found.join(expected, on=columns, how="anti", nulls_equal=True),
            ]
        ).select(keys)
        self.count += wrong.n_unique()

    def __str__(self) -> str:
        return f"new files: {self.count} keys without the sequence number or kind that a merge leaves"


def _retracts(storage: Storage, bucket: Bucket, chosen: pl.DataFrame) -> Fingerprint:
    """Every column of the rows of `chosen` that are retracts and are stored as they are."""
    places = by_file(chosen.filter(_RETRACT & ~pl.col(_FOLDED)), bucket)
    return reduce(add, map(fingerprint, rows(storage, bucket, places)), Fingerprint())
