"""Defaults of nanosecond timestamps: JSON texts and numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.formats.iceberg.metadata.nano_defaults import nanos_of, text_of


@pytest.mark.parametrize(
    ("text", "zoned", "nanos"),
    [
        ("1970-01-01T00:00:00", False, 0),
        ("1970-01-01T00:00", False, 0),
        ("1969-12-31T23:59:59.999999999", False, -1),
        ("2026-11-01T00:00:00.000000001+00:00", True, 1_793_491_200_000_000_001),
        ("1970-01-01T00:00:01.5Z", True, 1_500_000_000),
    ],
)
def test_a_text_is_a_number(text: str, zoned: bool, nanos: int) -> None:
    assert nanos_of(text, zoned=zoned) == nanos


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.booleans())
def test_a_number_comes_back(nanos: int, zoned: bool) -> None:
    assert nanos_of(text_of(nanos, zoned=zoned), zoned=zoned) == nanos


@pytest.mark.parametrize(
    ("text", "zoned"),
    [
        ("1970-01-01T00:00:00", True),
        ("1970-01-01T00:00:00Z", False),
        ("1970-01-01T00:00:00+01:00", True),
        ("1970-01-01", False),
        ("1970-01-01T00:00:00.0123456789", False),
        ("2300-01-01T00:00:00", False),
        ("1970-13-01T00:00:00", False),
        (1.5, False),
        (True, False),
        (None, True),
    ],
)
def test_what_is_none_is_named(text: object, zoned: bool) -> None:
    with pytest.raises(ValueError):
        nanos_of(text, zoned=zoned)
