"""Which rows have expired: three implementations and a twin that goes by one row at a time agree on every value."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.formats.paimon.made_bucket import MadeBucket, Row

from nightkeep.formats.paimon.gate.expired_rows import unexpired
from nightkeep.formats.paimon.metadata.own_commits import EXPIRY_CLOCK, expiry_clock
from nightkeep.formats.paimon.metadata.record_expiry import RecordAge, record_age
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, Schemas
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.formats.paimon.rewrite.expired_rows import are_expired, expired_positions, may_expire, without_expired

KINDS = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "TIMESTAMP(0)": pa.timestamp("ms"),
    "TIMESTAMP(3)": pa.timestamp("ms"),
    "TIMESTAMP(6)": pa.timestamp("us"),
    "TIMESTAMP(9)": pa.timestamp("ns"),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": pa.timestamp("ms", "UTC"),
}
PER_SECOND = {"ms": 1000, "us": 10**6, "ns": 10**9}
SECONDS = st.integers(-3, 3) | st.integers(10**9 - 3, 10**9 + 3)


def schema(kind: str, expire: str = "10 s") -> PaimonSchema:
    fields = (PaimonField(0, "k", parse_type("INT NOT NULL")), PaimonField(1, "t", parse_type(kind)))
    options = {"record-level.expire-time": expire, "record-level.time-field": "t"}
    return PaimonSchema(0, fields, (), ("k",), options)


def twin(value: int | None, kind: str, limit: int) -> bool:
    """RecordLevelExpire.java, with Java's division."""
    if value is None:
        return False
    seconds = value
    if kind == "BIGINT" and value >= 1_000_000_000_000:
        seconds = value // 1000
    if kind.startswith("TIMESTAMP"):
        millis = value * 1000 // PER_SECOND[KINDS[kind].unit]
        seconds = abs(millis) // 1000 * (1 if millis >= 0 else -1)
    return seconds < limit


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_the_rewrite_and_the_gate_agree_with_a_twin(kind: str, data: st.DataObject) -> None:
    offsets = st.sampled_from([-1, 0, 1, 999, -999, 1000, -1000])
    scale = PER_SECOND[KINDS[kind].unit] if kind.startswith("TIMESTAMP") else data.draw(st.sampled_from([1, 1000]))
    scale = 1 if kind == "INT" else scale
    times = st.none() | st.builds(lambda at, by: at * scale + by, SECONDS, offsets)
    values = data.draw(st.lists(times, max_size=8))
    clock_ms = data.draw(SECONDS) * 1000 + 10_000 + data.draw(st.integers(0, 999))
    age = record_age(schema(kind))
    assert age is not None
    expected = [twin(value, kind, age.limit(clock_ms)) for value in values]
    column = pa.array(values, pa.int64() if kind != "INT" else pa.int32()).cast(KINDS[kind])
    assert are_expired(pa.chunked_array([column]), age, clock_ms).tolist() == expected
    rows = pa.table({"k": pa.array(range(len(values)), pa.int32()), "t": column})
    staying = [at for at, gone in enumerate(expected) if not gone]
    assert without_expired(rows, schema(kind), clock_ms).column("k").to_pylist() == staying
    for batch in rows.combine_chunks().to_batches():
        assert unexpired(_unit(schema(kind)), batch, clock_ms).column("k").to_pylist() == staying


def test_the_age_is_in_whole_seconds_and_only_of_tables_with_keys() -> None:
    field = schema("INT").field("t")
    assert record_age(schema("INT", "1500 ms")) == RecordAge(field, 1)
    assert record_age(replace(schema("INT"), primary_keys=())) is None
    assert record_age(replace(schema("INT"), options={})) is None


def test_files_that_may_hold_old_rows_are_known_by_their_least_time() -> None:
    made = _made()
    old, young = made.add(5, [Row(1), Row(5)]), made.add(5, [Row(7), Row(9)])
    assert may_expire(made.bucket(), 18_000) == {old, young}
    assert may_expire(made.bucket(), 17_999) == {old}
    assert may_expire(made.bucket(), 11_999) == frozenset()


def test_positions_are_of_old_rows_that_no_vector_hides() -> None:
    made = _made()
    name = made.add(5, [Row(1), Row(2), Row(3), Row(9)], hidden=[1])
    found = expired_positions(made.storage, made.bucket(), made.bucket().files, made.vectors(), clock_ms=14_000)
    assert found == {name: BitMap64(np.array([0, 2], np.uint64))}
    assert not expired_positions(made.storage, made.bucket(), made.bucket().files, made.vectors(), clock_ms=9_000)


def test_a_commit_states_its_clock() -> None:
    raw = {"commitKind": "COMPACT", "properties": {EXPIRY_CLOCK: "1700000000000"}}
    assert expiry_clock(raw) == 1_700_000_000_000
    assert expiry_clock(raw | {"commitKind": "APPEND"}) is None
    assert expiry_clock(raw | {"properties": {EXPIRY_CLOCK: "-1"}}) is None
    assert expiry_clock({"commitKind": "COMPACT"}) is None


def _made() -> MadeBucket:
    """The key is the time as well."""
    return MadeBucket({"record-level.expire-time": "10 s", "record-level.time-field": "k"})


def _unit(of: PaimonSchema) -> Bucket:
    return replace(_made().bucket(), schemas=Schemas(of, {0: of}))
