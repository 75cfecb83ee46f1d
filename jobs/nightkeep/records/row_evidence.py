"""Rows that differ -> what documents hold of them, as no value of a row may reach a document: keyed hashes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from nightkeep.errors import EvidenceError
from nightkeep.model.check_values import Evidence
from nightkeep.records.check_report import Difference, Row, UnitDifference
from nightkeep.records.keyed_hash import keyed_hash


def with_hashes(
    differences: Sequence[UnitDifference], keys: Sequence[str], evidence: Evidence
) -> tuple[UnitDifference, ...]:
    """The differences with a keyed hash for each row: of its `keys`, or of the whole row in a table without keys. The
    rows themselves stay beside the hashes where the evidence is `rows`, for `without_rows` to separate.

    The hash is of the values as compact JSON in ASCII, `[1,"a"]`, as they are in a document with rows. Without a key to
    hash by, no rows are listed at all: the counts and the columns are evidence enough to hold a table.
    """
    return tuple(replace(each, difference=_hashed(each.difference, keys, evidence)) for each in differences)


def without_rows(difference: Difference) -> Difference:
    """A difference without the rows that it may have beside their hashes."""
    return replace(difference, missing_rows=(), extra_rows=())


def _hashed(difference: Difference, keys: Sequence[str], evidence: Evidence) -> Difference:
    hashed = hashed_rows(difference, keys)
    if evidence is Evidence.KEYS:
        return hashed
    return replace(hashed, missing_rows=difference.missing_rows, extra_rows=difference.extra_rows)


def hashed_rows(difference: Difference, keys: Sequence[str]) -> Difference:
    """A difference with hashes in place of its rows, as in `with_hashes`."""
    bare = without_rows(difference)
    try:
        missing, extra = (
            tuple(_hash(row, keys) for row in rows) for rows in (difference.missing_rows, difference.extra_rows)
        )
    except EvidenceError as failure:
        return replace(bare, note=f"no hashes of keys: {failure}")
    return replace(bare, missing_keys=missing, extra_keys=extra)


def _hash(row: Row, keys: Sequence[str]) -> str:
    values = [row[name] for name in keys or row]
    return keyed_hash(json.dumps(values, separators=(",", ":"), default=str).encode("ascii"))
