"""An Avro file of rows -> Arrow tables of chosen columns, decoded by Polars. Read as a whole: a file is one block here.

Java writes TIMESTAMP as `timestamp-*` and TIMESTAMP WITH LOCAL TIME ZONE as `local-timestamp-*`; both are numbers since
1970.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl
import pyarrow as pa

from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.encodings.avro_container import open_container, well_formed
from nightkeep.encodings.avro_schemas import AvroType, root_of
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.model.arrow_types import ChunkedArray

_BRANCH: Final = "nightkeep.branch"
"""The name of the field that holds the branch of a root union."""
_TIMES: Final[Mapping[str, pa.DataType]] = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    **dict.fromkeys(("timestamp-millis", "local-timestamp-millis"), pa.timestamp("ms")),
    **dict.fromkeys(("timestamp-micros", "local-timestamp-micros"), pa.timestamp("us")),
}


class AvroRows:
    """One file in memory, unpacked. Raises CorruptMetadata naming `subject` if it is no Avro file.

    `names` are its columns in order, `rows` is its number of rows.
    """

    def __init__(self, data: bytes, *, subject: str) -> None:
        self._subject = subject
        with well_formed(subject):
            container = open_container(data, CODECS, subject=subject)
            root = root_of(container.schema)
            schema, self._branch = root.record, root.branch
            self._times = {field["name"]: kind for field in schema["fields"] if (kind := _time_of(field["type"]))}
            # Polars knows fewer kinds of times than Avro has.
            bare = [
                {**field, "type": _bare(field["type"]) if field["name"] in self._times else field["type"]}
                for field in schema["fields"]
            ]
            # A union's value begins with the number of its branch. Polars reads records, so that is their first field.
            leading = [] if self._branch is None else [{"name": _BRANCH, "type": "int"}]
            self._block, self.rows = container.as_one_block({**schema, "fields": [*leading, *bare]})
        self.names = tuple(str(field["name"]) for field in schema["fields"])

    def read(self, names: Sequence[str]) -> pa.Table:
        """All rows of these columns, in the order of `names`, which are distinct and among the file's."""
        try:
            # Without a column Polars would not count rows.
            branches = [] if self._branch is None else [_BRANCH]
            frame = pl.read_avro(io.BytesIO(self._block), columns=[*branches, *(names or self.names[:1])])
        except pl.exceptions.PanicException as failure:
            raise RefusedTable(
                self._subject, f"an Avro file beyond what Polars reads: {reason_of(failure)}", "use Parquet files"
            ) from failure
        except (pl.exceptions.PolarsError, OSError, ValueError) as failure:
            raise CorruptMetadata(self._subject, "blocks of an Avro file", reason_of(failure)) from failure
        if len(frame) != self.rows:
            raise CorruptMetadata(self._subject, f"{self.rows} rows, as its blocks state", str(len(frame)))
        if self._branch is not None and not (frame[_BRANCH] == self._branch).all():
            raise CorruptMetadata(self._subject, "rows in each branch of its union", "null for a row")
        table = frame.to_arrow().select(list(names))
        for place, name in enumerate(names):
            column = _plain(table.column(name))
            if name in self._times:
                column = column.cast(self._times[name])
            table = table.set_column(place, name, column)
        return table


def _plain(column: ChunkedArray) -> ChunkedArray:
    """Texts and bytes in the types that Paimon's columns have."""
    kind = column.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return column.cast(pa.binary())
    return column


def _time_of(kind: AvroType) -> pa.DataType | None:
    if isinstance(kind, list):
        return next((time for branch in kind if (time := _time_of(branch))), None)
    return _TIMES.get(str(kind.get("logicalType"))) if isinstance(kind, dict) else None


def _bare(kind: AvroType) -> AvroType:
    """The type without its logical type."""
    if isinstance(kind, list):
        return [_bare(branch) for branch in kind]
    return kind["type"] if isinstance(kind, dict) and "logicalType" in kind else kind
