"""New data file and its manifest entry -> faults. Every number is computed again from the file's bytes.

Nothing that the rewrite reported is used. The file is decoded once, for this and for the fingerprint of its rows. One
batch is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import gt, lt
from typing import Any

import pyarrow as pa
from pyiceberg.types import IcebergType, NestedField, PrimitiveType, StructType, UnknownType
from pyroaring import BitMap64

from nightkeep.encodings.parquet_rows import only
from nightkeep.encodings.polars_rows import polars_batches
from nightkeep.formats.iceberg.data.columns import LINEAGE, IcebergFileReader, every_column
from nightkeep.formats.iceberg.gate.footer_audit import part_faults, variant_faults
from nightkeep.formats.iceberg.gate.order_audit import OrderCheck, order_check
from nightkeep.formats.iceberg.gate.partition_audit import partition_check
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.conversions import from_bytes
from nightkeep.formats.iceberg.metadata.file_formats import WRITTEN
from nightkeep.formats.iceberg.metadata.partition import identity
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit
from nightkeep.formats.iceberg.metadata.types import parquet_field
from nightkeep.formats.iceberg.metadata.variants import VariantType, variants
from nightkeep.gate.column_range import ColumnRange, is_exact, watched
from nightkeep.model.arrow_types import ArrowField, ChunkedArray, Scalar, field_id
from nightkeep.model.variant_type import Shredding, is_variant
from nightkeep.protocol import Show
from nightkeep.storage import Storage

_NEVER_SET = ("equality_ids", "referenced_data_file", "content_offset", "content_size_in_bytes", "key_metadata")
_LINEAGE = frozenset(field.field_id for field in LINEAGE.values())


def file_faults(storage: Storage, unit: IcebergUnit, file: ContentFile, *, live: BitMap64, show: Show) -> Iterator[str]:
    """Faults in the partition, the row count, the columns, the order and the statistics of `file`. Shows its `live`
    rows, with every column."""
    reader = IcebergFileReader(storage, unit.schema, file, decoder=polars_batches, shredding=Shredding.KEPT)
    yield from (f"{file.path}: {fault}" for fault in _stated_faults(reader, unit, file))
    leaves = stated_leaves(unit.schema)
    seen = {leaf.path: ColumnRange() for leaf in leaves}
    pieces = reader.pieces(every_column(unit.schema), range(len(reader.parts)))
    check = order_check(unit.schema, file)
    if isinstance(check, OrderCheck):
        pieces = check.watched(pieces)
    of_partition = partition_check(unit.schema, file) if unit.is_moved else None
    if of_partition is not None:
        pieces = of_partition.watched(pieces)
    for piece in only(watched(pieces, seen, added), live):
        for batch in piece.combine_chunks().to_batches():
            show(batch)
    if of_partition is not None:
        yield from of_partition.faults()
    if check is not None:
        yield from [check] if isinstance(check, str) else check.faults()
    for leaf in leaves:
        exact = is_exact(parquet_field(leaf.field).type)
        yield from claim_faults(file, leaf, seen[leaf.path], rows=reader.rows, exact=exact)


def _stated_faults(reader: IcebergFileReader, unit: IcebergUnit, file: ContentFile) -> Iterator[str]:
    # Properties may have changed since the plan: any format that is written is right.
    if file.format not in WRITTEN:
        yield f"of format {file.format}, expected {' or '.join(WRITTEN)}"
    unwanted = sorted(name for name in _NEVER_SET if file.raw.get(name) not in (None, [], ()))
    if unwanted:
        yield f"{', '.join(unwanted)}, expected none of a data file"
    if identity(file.spec_id, file.partition) != identity(unit.spec_id, unit.values):
        yield f"of partition {file.partition} of spec {file.spec_id}, expected {unit.values} of {unit.spec_id}"
    if file.rows == 0 or reader.rows != file.rows:
        yield f"{reader.rows} rows, expected some and as many as its manifest states, {file.rows}"
    bounded = sorted(each.field_id for each in variants(unit.schema.current.fields) if _has_bounds(file, each.field_id))
    if bounded:
        yield f"bounds of variants, fields {bounded}, expected none"
    yield from part_faults(reader.footer, file)
    if reader.footer is not None:
        yield from variant_faults(reader.footer, unit.schema)
    yield from _column_faults(reader.held, unit.schema)


def _has_bounds(file: ContentFile, number: int) -> bool:
    return any(file.bound(name, number) is not None for name in ("lower_bounds", "upper_bounds"))


@dataclass(frozen=True, slots=True)
class StatedLeaf:
    """A column, at the top or within structs, of primitive type or of variants: manifests have counts of these only,
    and bounds of those of primitive type."""

    path: tuple[str, ...]
    field: NestedField


def stated_leaves(schema: IcebergSchema) -> tuple[StatedLeaf, ...]:
    return tuple(_leaves(schema.current.as_struct(), ()))


def added(held: ColumnRange, values: ChunkedArray) -> ColumnRange:
    """The range with a chunk more; of variants only nulls are counted."""
    return held.with_nulls(values) if pa.types.is_nested(values.type) else held.with_chunk(values)


def claim_faults(
    file: ContentFile, leaf: StatedLeaf, seen: ColumnRange, *, rows: int | None, exact: bool
) -> Iterator[str]:
    """What the manifest states of a column and its values contradict. `rows` is None where not all rows were seen.
    `exact`: whether its bounds must be values."""
    faults = _claim_faults(seen, _Claims.of(file, leaf), rows, exact=exact)
    yield from (f"{file.path}: {'.'.join(leaf.path)} {fault}" for fault in faults)


def _leaves(struct: StructType, path: tuple[str, ...]) -> Iterator[StatedLeaf]:
    for field in struct.fields:
        if isinstance(field.field_type, StructType):
            yield from _leaves(field.field_type, (*path, field.name))
        elif isinstance(field.field_type, PrimitiveType | VariantType) and not isinstance(
            field.field_type, UnknownType
        ):
            yield StatedLeaf((*path, field.name), field)


def _column_faults(stored: Sequence[ArrowField], schema: IcebergSchema) -> Iterator[str]:
    """Faults in columns, matched by id. Readers take a missing column as null or as its default."""
    # Data files do not hold columns of type unknown.
    held = [field for field in schema.current.fields if not isinstance(field.field_type, UnknownType)]
    declared = {field.field_id: parquet_field(field) for field in held}
    by_id = {field_id(field): field for field in stored}
    unknown = sorted(str(number) for number in by_id.keys() - declared.keys() - _LINEAGE)
    missing = [field.name for number, field in declared.items() if number not in by_id]
    if unknown or missing or len(by_id) < len(stored):
        names = ", ".join(field.name for field in stored)
        yield f"columns {names}; missing {missing}, field ids not of the schema {unknown}"
    if schema.has_row_lineage and not by_id.keys() >= _LINEAGE:
        yield "no ids of its rows, expected those that they had"
    for number in declared.keys() & by_id.keys():
        own = declared[number]
        found, expected = _ids(by_id[number], own.type), _ids(own, own.type)
        if found != expected:
            yield f"column {own.name}: field ids {found}, expected {expected}"


def _ids(field: ArrowField, declared: pa.DataType) -> tuple[object, ...]:
    """Its id and those within. The parts of a variant, by the type that is `declared`, may be others in each file, and
    are counted only where they have an id."""
    kind: Any = field.type
    if is_variant(declared):
        below: tuple[object, ...] = tuple(_numbers(kind))
    elif pa.types.is_struct(kind):
        types = {child.name: child.type for child in declared} if isinstance(declared, pa.StructType) else {}
        below = tuple(sorted((child.name, _ids(child, types.get(child.name, child.type))) for child in kind))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        below = (_ids(kind.value_field, getattr(declared, "value_type", kind.value_type)),)
    elif pa.types.is_map(kind):
        below = (
            _ids(kind.key_field, getattr(declared, "key_type", kind.key_type)),
            _ids(kind.item_field, getattr(declared, "item_type", kind.item_type)),
        )
    else:
        below = ()
    return (field_id(field), *below)


def _numbers(kind: pa.DataType) -> Iterator[int]:
    """The ids of all fields within a type."""
    for place in range(kind.num_fields):
        number = field_id(kind.field(place))
        if number is not None:
            yield number
        yield from _numbers(kind.field(place).type)


@dataclass(frozen=True, slots=True)
class _Claims:
    """A column's counts and bounds in the manifest, each None if missing."""

    values: int | None
    nulls: int | None
    nans: int | None
    low: Any
    high: Any

    @classmethod
    def of(cls, file: ContentFile, leaf: StatedLeaf) -> _Claims:
        number, kind = leaf.field.field_id, leaf.field.field_type
        counts = [file.count(f"{what}_counts", number) for what in ("value", "null_value", "nan_value")]
        ends = [_end(file, f"{end}_bounds", number, kind=kind) for end in ("lower", "upper")]
        return cls(*counts, *ends)


def _end(file: ContentFile, name: str, number: int, *, kind: IcebergType) -> Any:
    """A bound; None if it is missing. Those of variants, which Java writes, are of fields within them."""
    data = None if isinstance(kind, VariantType) else file.bound(name, number)
    value = None if data is None else from_bytes(kind, data, subject=f"{file.path}: {name} of field {number}")
    return value.encode() if isinstance(value, str) else value


def _claim_faults(seen: ColumnRange, claims: _Claims, rows: int | None, *, exact: bool) -> Iterator[str]:
    """Faults, without values of rows, unless counts are exact and all values are within the bounds: readers skip files
    by them. `exact`: the bounds are values."""
    for what, claimed, counted in (
        ("values", claims.values, rows),
        ("nulls", claims.nulls, seen.nulls),
        ("NaNs", claims.nans, seen.nans),
    ):
        if rows is not None and claimed is not None and claimed != counted:
            yield f"has {counted} {what}, its manifest states {claimed}"
    least, greatest = _stored(seen.least), _stored(seen.greatest)
    if least is not None and claims.low is not None and least < claims.low:
        yield "has a value below its lower bound"
    if greatest is not None and claims.high is not None and greatest > claims.high:
        yield "has a value above its upper bound"
    if exact and (_is_beyond(least, claims.low, lt) or _is_beyond(greatest, claims.high, gt)):
        yield "has no value at one of its bounds, which readers take for a value"


def _is_beyond(end: Any, stated: Any, beyond: Callable[[Any, Any], bool]) -> bool:
    return stated is not None and (end is None or beyond(stated, end))


def _stored(value: Scalar | None) -> Any:
    """The value in the form of bounds: dates, times and timestamps as numbers, texts as their bytes, which need not be
    UTF-8."""
    if value is None or not value.is_valid:
        return None
    kind = value.type
    if isinstance(value, pa.BinaryScalar):
        return value.as_buffer().to_pybytes()
    if pa.types.is_date32(kind):
        return value.cast(pa.int32()).as_py()
    return value.cast(pa.int64()).as_py() if pa.types.is_temporal(kind) else value.as_py()
