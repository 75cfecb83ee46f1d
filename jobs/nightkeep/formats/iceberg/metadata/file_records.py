"""data_file structs of manifests <-> content files and `raw`. Every value is checked once, when it is decoded.

`raw` is keyed by the spec's names. Its partition is a tuple in the order of the spec's fields; maps are dicts by field
id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from pyiceberg.types import DecimalType, IcebergType, UUIDType
from pyiceberg.utils.decimal import decimal_required_bytes

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata, kind_of, reason_of
from nightkeep.formats.iceberg.metadata.content_files import (
    ContentFile,
    Entry,
    FileContent,
    Manifest,
    ManifestContent,
    Status,
)
from nightkeep.formats.iceberg.metadata.conversions import decimal_of, unscaled_of
from nightkeep.formats.iceberg.metadata.locations import storage_name
from nightkeep.formats.iceberg.metadata.manifest_schema import (
    BLOCK_SIZE,
    MAPS,
    file_fields,
    partition_key,
    partition_types,
)
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema

PATH_FIELD: Final = 2147483546
"""The field id of file_path in position delete files (spec, "Reserved Field IDs")."""

Convert = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class FileDecoder:
    """Decodes the entries of one manifest. Missing values are inherited from the manifest's entry in the list."""

    manifest: Manifest
    partition: tuple[tuple[str, Convert], ...]

    @classmethod
    def of(cls, manifest: Manifest, schema: IcebergSchema) -> FileDecoder:
        spec = schema.spec(manifest.spec_id)
        types = partition_types(schema, manifest.spec_id)
        pairs = [(partition_key(f.field_id), _from_avro(kind)) for f, kind in zip(spec.fields, types, strict=True)]
        return cls(manifest, tuple(pairs))

    def rows(self, file: Record) -> int:
        return self._number(file, "record_count")

    def entry(self, status: Status, record: Record) -> Entry:
        """The entry of a decoded record. Raises CorruptMetadata naming the manifest."""
        try:
            return self._entry(status, record)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as failure:
            reason = reason_of(failure)
            raise CorruptMetadata(self.manifest.path, "manifest entries", reason) from failure

    def _entry(self, status: Status, record: Record) -> Entry:
        file = record["data_file"]
        path = _text(file, "file_path")
        raw = self._raw(file)
        # Manifests of version 1 have no content field: all their files are data files.
        content = FileContent(file.setdefault("content", 0))
        live = status is not Status.DELETED
        if live and (content is FileContent.DATA) != (self.manifest.content is ManifestContent.DATA):
            raise ValueError(f"{path}: content {content.name} in a manifest of {self.manifest.content.name}")
        snapshot_id = record.get("snapshot_id")
        sequence_number = self._inherited(record, "sequence_number", status)
        added = self._added(record, status)
        content_file = ContentFile(
            content=content,
            path=path,
            name=storage_name(path),
            format=_text(file, "file_format").lower(),
            spec_id=self.manifest.spec_id,
            partition=raw["partition"],
            rows=self._number(file, "record_count"),
            bytes=self._number(file, "file_size_in_bytes"),
            sequence_number=sequence_number,
            file_sequence_number=sequence_number if added is None else added,
            snapshot_id=self.manifest.snapshot_id if snapshot_id is None else _whole(snapshot_id, "snapshot_id"),
            equality_ids=_equality_ids(file, content),
            referenced=_referenced(file) if content is FileContent.POSITION_DELETES else None,
            content_offset=_optional_number(file, "content_offset"),
            content_bytes=_optional_number(file, "content_size_in_bytes"),
            first_row_id=_optional_number(file, "first_row_id"),
            sort_order_id=file.get("sort_order_id"),
            is_dated=added is not None,
            raw=raw,
        )
        if content_file.is_vector and live:
            _require_place(content_file, file)
        return Entry(status, content_file.snapshot_id, content_file)

    def _raw(self, file: Record) -> Record:
        """The record itself, converted in place: copying it would take as long as decoding it."""
        for name in MAPS:
            pairs = file.get(name)
            if pairs is not None:
                file[name] = {pair["key"]: pair["value"] for pair in pairs}
        values = file.get("partition") or {}
        file["partition"] = tuple([convert(values.get(key)) for key, convert in self.partition])
        for name in _FORGOTTEN & file.keys():
            del file[name]
        return file

    def _number(self, file: Record, name: str) -> int:
        value = file.get(name)
        if type(value) is not int or value < 0:
            raise CorruptMetadata(self.manifest.path, f"a {name} of 0 or more", kind_of(value))
        return value

    def _inherited(self, record: Record, name: str, status: Status) -> int:
        value = record.get(name)
        if value is not None:
            return _whole(value, name)
        # EXISTING entries must have their own number. Version 1 has no numbers: the manifest's 0 applies.
        if status is Status.EXISTING and self.manifest.sequence_number:
            raise ValueError(f"an EXISTING entry without {name}")
        return self.manifest.sequence_number

    def _added(self, record: Record, status: Status) -> int | None:
        """The file sequence number; None if a writer lost it on copying the entry (ContentFile.fileSequenceNumber)."""
        if record.get("file_sequence_number") is None and status is not Status.ADDED and self.manifest.sequence_number:
            return None
        return self._inherited(record, "file_sequence_number", status)


@dataclass(frozen=True, slots=True)
class FileEncoder:
    """Encodes `raw` as a record of the schema of the table's format version."""

    names: tuple[str, ...]
    partition: tuple[tuple[str, Convert], ...]

    @classmethod
    def of(cls, schema: IcebergSchema, spec_id: int) -> FileEncoder:
        pairs = zip(schema.spec(spec_id).fields, partition_types(schema, spec_id), strict=True)
        partition = tuple((partition_key(field.field_id), _to_avro(kind)) for field, kind in pairs)
        return cls(file_fields(schema.format_version), partition)

    def record(self, raw: Mapping[str, Any]) -> Record:
        """The Avro record of `raw`. Raises ValueError for a field that this format version does not have."""
        record = {name: raw.get(name) for name in self.names}
        if BLOCK_SIZE in record:
            record[BLOCK_SIZE] = record[BLOCK_SIZE] or _BLOCK_BYTES
        lost = [name for name in _LATER if name not in record and raw.get(name) is not None]
        if lost:
            raise ValueError(f"{raw['file_path']}: expected no {', '.join(lost)} in this format version")
        for name in MAPS:
            pairs = record[name]
            if pairs is not None:
                # Naming the union's branch keeps fastavro from testing every pair against each branch.
                record[name] = ("array", [{"key": key, "value": value} for key, value in pairs.items()])
        values: Sequence[object] = raw["partition"]
        pairs = zip(self.partition, values, strict=True)
        record["partition"] = {key: None if value is None else convert(value) for (key, convert), value in pairs}
        return record


_FORGOTTEN: Final = {f"_{name}" for name in ("block_size_in_bytes", "file_ordinal", "sort_columns", "distinct_counts")}
"""Fields of version 1 that later versions must not write. Avro names without a known field id get an underscore."""
_BLOCK_BYTES: Final = 64 << 20
"""What Java writes as the size of blocks (DataFiles.java, DEFAULT_BLOCK_SIZE)."""
_LATER: Final = ("first_row_id", "content_offset", "content_size_in_bytes")


def _same(value: object) -> object:
    return value


def _from_avro(kind: IcebergType) -> Convert:
    if isinstance(kind, DecimalType):
        scale = kind.scale
        return lambda value: None if value is None else decimal_of(value, scale)
    if isinstance(kind, UUIDType):
        return lambda value: UUID(value).bytes if isinstance(value, str) else value
    return _same


def _to_avro(kind: IcebergType) -> Convert:
    if isinstance(kind, DecimalType):
        size, scale = decimal_required_bytes(kind.precision), kind.scale
        return lambda value: unscaled_of(Decimal(value), scale).to_bytes(size, "big", signed=True)
    return _same


def _text(file: Record, name: str) -> str:
    value = file.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} {kind_of(value)}")
    return value


def _whole(value: object, name: str) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} {kind_of(value)}")
    return value


def _optional_number(file: Record, name: str) -> int | None:
    value = file.get(name)
    return None if value is None else _whole(value, name)


def _equality_ids(file: Record, content: FileContent) -> tuple[int, ...]:
    if content is not FileContent.EQUALITY_DELETES:
        return ()
    ids = file.get("equality_ids")
    if not ids:
        raise ValueError(f"{file['file_path']}: equality deletes without equality_ids")
    return tuple([_whole(field_id, "equality id") for field_id in ids])


def _referenced(file: Record) -> str | None:
    """The one data file that deletes apply to, or None (ContentFileUtil.referencedDataFileLocation).

    Equal bounds of file_path name it: these bounds are never truncated.
    """
    named = file.get("referenced_data_file")
    if named is not None:
        return _text(file, "referenced_data_file")
    lower, upper = (file.get(name) or {} for name in ("lower_bounds", "upper_bounds"))
    path: bytes | None = lower.get(PATH_FIELD)
    return path.decode() if path is not None and path == upper.get(PATH_FIELD) else None


def _require_place(file: ContentFile, raw: Record) -> None:
    if raw.get("referenced_data_file") is None or file.content_offset is None or not file.content_bytes:
        raise ValueError(f"{file.path}: a vector without its data file, offset and size")
