"""Ends of views: the twin compares all values."""

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.kernels.text_ends import end_values

# Few letters, so that values begin alike; a zero, which also follows what is short.
VALUES = st.lists(st.none() | st.text("\0aab\xff\u20ac", max_size=20), max_size=12)


def least_and_greatest(values: list[str | None]) -> list[bytes]:
    texts = sorted(value.encode() for value in values if value is not None)
    return [texts[0], texts[-1]] if texts else []


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
def test_the_ends_are_among_the_values_chosen(kind: pa.DataType) -> None:
    @settings(max_examples=examples(200))
    @given(VALUES, st.integers(0, 3), st.booleans())
    def check(values: list[str | None], skipped: int, of_polars: bool) -> None:
        texts = values if pa.types.is_string_view(kind) else [v if v is None else v.encode() for v in values]
        made = pl.Series(texts, dtype=pl.String if pa.types.is_string_view(kind) else pl.Binary)
        whole = made.to_arrow(compat_level=pl.CompatLevel.newest()) if of_polars else pa.array(texts, kind)
        found = [
            bytes(v.as_py(), "utf-8") if kind == pa.string_view() else v.as_py() for v in end_values(whole[skipped:])
        ]
        expected = least_and_greatest(values[skipped:])
        assert ([min(found), max(found)] if found else []) == expected
        firsts = {end[:4].ljust(4, b"\0") for end in expected}
        assert all(value[:4].ljust(4, b"\0") in firsts for value in found)

    check()
