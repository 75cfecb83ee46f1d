"""Rows of new files come from their audit: the same rows as from a read of their own, and each file is opened once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from operator import add

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.formats.paimon.made_bucket import HeldStorage, MadeBucket, Row, buckets
from tests.support.examples import examples

from nightkeep.formats.paimon.gate.audit import unit_faults as audited
from nightkeep.formats.paimon.gate.audited_rows import AuditedRows
from nightkeep.formats.paimon.gate.file_audit import file_faults
from nightkeep.formats.paimon.gate.gate import unit_faults
from nightkeep.formats.paimon.gate.scan import rows as read_rows
from nightkeep.kernels.fingerprint import fingerprint
from nightkeep.model import Fingerprint


@dataclass
class Shown:
    """The sum of all rows that were shown."""

    total: Fingerprint = field(default_factory=Fingerprint)

    def __call__(self, batch: pa.RecordBatch) -> None:
        self.total += fingerprint(batch)


@dataclass
class CountedOpens(HeldStorage):
    """Counts how often each file is opened."""

    opened: Counter[str] = field(default_factory=Counter)

    def open(self, name: str) -> pa.NativeFile:
        self.opened[name] += 1
        return super().open(name)


@settings(max_examples=examples(60))
@given(buckets(), st.data())
def test_an_audit_shows_the_rows_that_a_read_of_their_own_finds(made: MadeBucket, data: st.DataObject) -> None:
    bucket = made.bucket()
    positions = {
        file.name: BitMap64(data.draw(st.sets(st.integers(0, file.rows - 1)), label=file.name)) for file in bucket.files
    }
    shown = Shown()
    for file in bucket.files:
        list(file_faults(made.storage, bucket, file, shown=AuditedRows(positions, shown)))
    expected = reduce(add, map(fingerprint, read_rows(made.storage, bucket, positions)), Fingerprint())
    assert shown.total == expected


@pytest.mark.parametrize("group_rows", [1, 2, 9])
def test_a_new_file_is_decoded_once_and_a_kept_one_only_where_its_rows_are_asked_for(group_rows: int) -> None:
    counted = CountedOpens()
    made = MadeBucket(held=counted)
    made.add(5, [Row(1, "a", 1), Row(2, None, 2), Row(4, "d", 3)], group_rows=group_rows)
    base = made.bucket()
    made.add(4, [Row(3, "c", 4), Row(5, "e", 5)], group_rows=group_rows)
    candidate = made.bucket()
    positions = {"data-0.parquet": BitMap64([1]), "data-1.parquet": BitMap64([0, 1])}
    shown = Shown()

    assert unit_faults(made.storage, base, candidate, positions, shown) == ()

    assert shown.total == reduce(add, map(fingerprint, read_rows(made.storage, candidate, positions)), Fingerprint())
    assert counted.opened["bucket-0/data-1.parquet"] == 2, "once by the audit, once by the read of this test"
    counted.opened.clear()
    assert unit_faults(made.storage, base, candidate, {"data-1.parquet": BitMap64([0, 1])}, shown) == ()
    assert counted.opened == {"bucket-0/data-1.parquet": 1}


def test_an_audit_alone_shows_nothing() -> None:
    made = MadeBucket()
    made.add(5, [Row(1, "a", 1)])
    base = made.bucket()
    made.add(4, [Row(2, "b", 2)])
    assert audited(made.storage, base, made.bucket()) == ()
