"""ORC files of slices: the rows are those of the slice, whatever is nested in them."""

import io
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from nightkeep.encodings.orc_writing import write_rows

STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string())])
KINDS = {
    "number": pa.int64(),
    "text": pa.string(),
    "list": pa.list_(pa.int64()),
    "map": pa.map_(pa.string(), pa.int64()),
    "struct": STRUCT,
    "struct of structs": pa.struct([("s", STRUCT), ("n", pa.int64())]),
    "struct of structs of structs": pa.struct([("s", pa.struct([("i", STRUCT)]))]),
    "struct of lists": pa.struct([("l", pa.list_(STRUCT))]),
    "list of structs": pa.list_(STRUCT),
    "list of structs of structs": pa.list_(pa.struct([("s", pa.struct([("i", STRUCT)]))])),
    "map of structs": pa.map_(pa.string(), STRUCT),
}


def made(kind: pa.DataType, random: Random) -> Any:
    """A value, or null in one of four."""
    if random.random() < 0.25:
        return None
    if isinstance(kind, pa.StructType):
        return {field.name: made(field.type, random) for field in kind}
    if isinstance(kind, pa.MapType):
        return [(f"k{at}", made(kind.item_type, random)) for at in range(random.randrange(3))]
    if isinstance(kind, pa.ListType):
        return [made(kind.value_type, random) for _ in range(random.randrange(3))]
    return random.randrange(99) if pa.types.is_integer(kind) else f"t{random.randrange(99)}"


def test_a_null_deep_in_structs_keeps_the_rows_after_it() -> None:
    inner = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    kind = pa.struct([("s", pa.struct([("i", inner)]))])
    rows = pa.table({"c": pa.array([{"s": {"i": None}}, {"s": {"i": {"a": 7}}}], kind)})
    assert written([rows]).to_pylist() == rows.to_pylist()


def written(pieces: Sequence[pa.Table]) -> pa.Table:
    sink = io.BytesIO()
    with orc.ORCWriter(sink, batch_size=16) as writer:
        for piece in pieces:
            write_rows(writer, piece, batch_rows=16)
    return orc.ORCFile(pa.BufferReader(sink.getvalue())).read()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_slices_are_written_as_their_rows(kind: pa.DataType, seed: int) -> None:
    """In every second case, no value has a null at the top: Arrow's writer loses nulls below it."""
    random = Random(seed)
    column = pa.array([each for _ in range(80) if (each := made(kind, random)) is not None or seed % 2], kind)
    whole = pa.table({"c": pa.chunked_array([column, column.slice(9)]), "n": range(2 * len(column) - 9)})
    pieces = [whole.slice(start, count) for start, count in ((1, 1), (0, 60), (13, 5), (50, 40), (60, 0))]
    assert written(pieces).to_pylist() == [row for piece in pieces for row in piece.to_pylist()]
