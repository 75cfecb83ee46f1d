"""Footer of a new file and its manifest entry -> faults of split offsets, column sizes and marks of variants. Pure.

Engines read a file in splits from offset to offset: what is before the first offset may be in no split.
Planners estimate by the sizes of columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.variants import variants
from nightkeep.model.arrow_types import ArrowField, field_id


def part_faults(footer: pq.FileMetaData | None, file: ContentFile) -> Iterator[str]:
    """As `footer_faults` for a Parquet file. The manifest states neither of a file of another format, whose footer is
    None: the writer does not know them, and engines split such a file by bytes."""
    if footer is not None:
        yield from footer_faults(footer, file)
        return
    stated = [name for name in ("split_offsets", "column_sizes") if file.raw.get(name)]
    if stated:
        yield f"{' and '.join(stated)}, expected none of a file that is not Parquet"


def footer_faults(footer: pq.FileMetaData, file: ContentFile) -> Iterator[str]:
    """Faults unless offsets are those of the row groups, and sizes those of the columns. Either may be missing."""
    offsets = file.raw.get("split_offsets")
    starts = [_start(footer.row_group(group).column(0)) for group in range(footer.num_row_groups)]
    if offsets is not None and offsets != sorted(starts):
        yield f"split offsets {offsets}, its row groups begin at {starts}"
    sizes = file.raw.get("column_sizes")
    if isinstance(sizes, Mapping):
        held = _sizes(footer)
        wrong = sorted(number for number, size in sizes.items() if held.get(number) != size)
        if wrong:
            yield f"sizes of columns {wrong} differ from those in its footer"


def variant_faults(footer: pq.FileMetaData, schema: IcebergSchema) -> Iterator[str]:
    """Faults unless each variant is a group that is annotated as one: some readers know it by nothing else."""
    groups = str(footer.schema)
    for field in variants(schema.current.fields):
        # The text has names as they are.
        if f" group field_id={field.field_id} {field.name} (Variant(1)) {{" not in groups:
            yield f"column {schema.current.find_column_name(field.field_id)} is not annotated as a variant"


def _start(column: pq.ColumnChunkMetaData) -> int:
    """A dictionary comes before the pages of data."""
    pages = [column.data_page_offset, column.dictionary_page_offset]
    return min(offset for offset in pages if offset)


def _sizes(footer: pq.FileMetaData) -> Mapping[int | None, int]:
    """Compressed bytes of each column that is no struct, list or map, by field id."""
    sizes: Counter[int | None] = Counter()
    numbers = list(_leaf_ids(list(footer.schema.to_arrow_schema())))
    for group in (footer.row_group(place) for place in range(footer.num_row_groups)):
        for place, number in enumerate(numbers):
            sizes[number] += group.column(place).total_compressed_size
    return sizes


def _leaf_ids(fields: Sequence[ArrowField]) -> Iterator[int | None]:
    for field in fields:
        below = _below(field.type)
        if below:
            yield from _leaf_ids(below)
        else:
            yield field_id(field)


def _below(kind: pa.DataType) -> Sequence[ArrowField]:
    if isinstance(kind, pa.MapType):
        return (kind.key_field, kind.item_field)
    if isinstance(kind, pa.ListType | pa.LargeListType):
        return (kind.value_field,)
    return list(kind) if isinstance(kind, pa.StructType) else ()
