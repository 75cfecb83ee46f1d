"""The variants of a new Parquet file -> groups that its footer annotates as variants, which Arrow does not do.

Arrow writes a footer last: what it writes after the rows is held back here, and written with the annotation. Nothing
else of the file changes, and no offset, as the footer follows all that it points to.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.encodings.parquet_footer import BYTE, STRUCT, Fields, footer_bytes, read_footer, structs
from nightkeep.model.arrow_types import has_type
from nightkeep.model.variant_type import is_variant

# parquet.thrift. FileMetaData: schema. SchemaElement: logicalType. LogicalType: VARIANT. VariantType:
# specification_version.
_SCHEMA, _LOGICAL, _VARIANT, _VERSION = 2, 10, 16, 1
_ANNOTATION: Final = (STRUCT, {_VARIANT: (STRUCT, {_VERSION: (BYTE, 1)})})
_MAGIC: Final = b"PAR1"
_TAIL: Final = 4 + len(_MAGIC)
"""A file ends with the length of its footer and these bytes."""


@contextmanager
def parquet_output(sink: BinaryIO, stored: pa.Schema, **settings: Any) -> Iterator[pq.ParquetWriter]:
    """A writer of rows of the columns `stored` to `sink`, which it leaves open; `settings` are ParquetWriter's.

    Columns of the type VARIANT, at any depth, are annotated as variants. The sink has the whole file once the context
    is left without an error.
    """
    if not any(has_type(field.type, is_variant) for field in stored):
        with pq.ParquetWriter(sink, stored, **settings) as writer:
            yield writer
        return
    held = _HeldEnd(sink)
    with pq.ParquetWriter(cast(BinaryIO, held), stored, **settings) as writer:
        yield writer
        held.hold()
    sink.write(_annotated(held.end.getvalue(), stored))


class _HeldEnd:
    """A file to Arrow. Passes bytes on to a sink, and from `hold` on keeps them in `end`."""

    closed = False

    def __init__(self, sink: BinaryIO) -> None:
        self._sink, self.end = sink, io.BytesIO()
        self.write: Callable[[Any], int] = sink.write

    def hold(self) -> None:
        self.write = self.end.write

    def tell(self) -> int:
        return self._sink.tell() + self.end.tell()

    def flush(self) -> None:
        """Who opened the sink flushes it."""

    def close(self) -> None:
        """Who opened the sink closes it."""


def _annotated(end: bytes, stored: pa.Schema) -> bytes:
    """The end of a Parquet file, with annotations in its footer."""
    footer = read_footer(pa.BufferReader(end))
    elements = iter(structs(footer, _SCHEMA))
    next(elements)
    for field in stored:
        _annotate(field.type, elements)
    length = int.from_bytes(end[-_TAIL : -len(_MAGIC)], "little")
    return end[: -_TAIL - length] + footer_bytes(footer)


def _annotate(kind: pa.DataType, elements: Iterator[Fields]) -> None:
    """Take the elements of a column, which the schema lists before those of its parts."""
    element = next(elements)
    if is_variant(kind):
        element[_LOGICAL] = _ANNOTATION
    if isinstance(kind, pa.ListType | pa.MapType):
        # The group of the entries.
        next(elements)
    for part in _parts(kind):
        _annotate(part, elements)


def _parts(kind: pa.DataType) -> Sequence[pa.DataType]:
    if isinstance(kind, pa.MapType):
        return [kind.key_type, kind.item_type]
    return [kind.field(place).type for place in range(kind.num_fields)]
