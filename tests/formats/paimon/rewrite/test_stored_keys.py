"""Places of keys among ascending rows: the twin looks at every row."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.paimon.made_bucket import MadeBucket
from tests.support.examples import examples

from nightkeep.formats.paimon.rewrite.stored_keys import StoredKeys

KEYS = st.integers(0, 9)


@settings(max_examples=examples(60))
@given(st.sets(KEYS, min_size=1), KEYS, KEYS)
def test_places_are_those_of_every_row(keys: set[int], low: int, high: int) -> None:
    rows = sorted(keys)
    stored = StoredKeys(pa.table({"_KEY_k": pa.array(rows, pa.int32()), "more": rows}), MadeBucket().bucket())
    within = [key for key in rows if low <= key <= high]
    assert [stored.key(0), stored.key(-1)] == [((rows[0],),), ((rows[-1],),)]
    assert rows[stored.span((low,), (high,))] == rows[stored.within(((low,),), ((high,),))] == within
    assert stored.until(((high,),)) == sum(key <= high for key in rows)
