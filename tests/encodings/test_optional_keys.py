"""Files whose maps have optional keys: read with the entries that were written, whatever is around them."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.optional_keys import MAP_KEY_VALUE, SCHEMA, with_optional_keys

from nightkeep.encodings.open_parquet import open_parquet

ENTRY = {"key": st.text(max_size=2), "value": st.none() | st.lists(st.integers(0, 9), max_size=2)}
ENTRIES = st.none() | st.lists(st.fixed_dictionaries(ENTRY), max_size=3)
ROWS = st.lists(st.fixed_dictionaries({"top": ENTRIES, "row": st.none() | st.fixed_dictionaries({"in": ENTRIES})}))


@settings(max_examples=examples(40))
@given(ROWS, st.sampled_from([{}, {"row_group_size": 2}, {"data_page_version": "2.0"}, {"called": MAP_KEY_VALUE}]))
def test_entries_are_those_that_were_written(rows: list[dict[str, Any]], written: dict[str, Any]) -> None:
    parquet, _ = open_parquet(pa.BufferReader(with_optional_keys(rows, **written)), shows_entries=True)
    assert parquet.read().to_pylist() == pa.Table.from_pylist(rows, SCHEMA).to_pylist()


def test_only_who_asks_gets_entries() -> None:
    with pytest.raises(pa.ArrowInvalid, match="Map keys must be annotated as required"):
        open_parquet(pa.BufferReader(with_optional_keys([])))


def test_maps_with_required_keys_stay_maps() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}), sink)
    parquet, _ = open_parquet(pa.BufferReader(sink.getvalue()), shows_entries=True)
    assert pa.types.is_map(parquet.schema_arrow.field("m").type)


@pytest.mark.parametrize("cut", [1, 9, 40])
def test_damaged_footers_are_recognised_by_arrow(cut: int) -> None:
    with pytest.raises((pa.ArrowInvalid, OSError)):
        open_parquet(pa.BufferReader(with_optional_keys([])[:-cut]), shows_entries=True)
