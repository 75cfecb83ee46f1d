"""A table's options -> the formats and codecs of its data files, and what of them is not handled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.changelog import changelog_rules
from nightkeep.formats.paimon.metadata.merge_engine import ordering_fields
from nightkeep.formats.paimon.metadata.schema import (
    PaimonField,
    PaimonSchema,
    level_formats,
    option_bool,
    option_int,
    option_map,
)
from nightkeep.formats.paimon.metadata.types import MAX_DECIMAL_PRECISION, TypeRoot

FORMATS: Final = ("parquet", "orc", "avro")
_LEVELS: Final = 32
_CODECS: Final[Mapping[str, frozenset[str]]] = {
    "orc": frozenset({"none", "zlib", "snappy", "lz4", "zstd"}),
    "avro": frozenset({"null", "deflate", "snappy", "zstd", "zstandard"}),
}
"""Codecs that we write, where a format has others."""
_OWN_CODEC: Final[Mapping[str, str]] = {"orc": "orc.compress", "avro": "avro.codec"}
"""The option of a format that overrides file.compression."""
_LEGACY_TIMES: Final = "orc.timestamp-ltz.legacy.type"
_ENCRYPTED: Final = ("orc.encrypt", "orc.mask")


def format_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    """Features of the table's files that we do not handle, each with an advice."""
    formats = level_formats(schema, _LEVELS)
    for unknown in sorted(set(formats) - set(FORMATS)):
        option = "file.format" if schema.options.get("file.format", "parquet").lower() == unknown else _PER_LEVEL
        yield f"option {option} with {unknown} is not handled", f"files of {', '.join(FORMATS)} are read and written"
    for name, codec in sorted({(name, compression(schema, level)[0]) for level, name in enumerate(formats)}):
        if codec not in _CODECS.get(name, codec):
            yield f"codec {codec} of {name} files is not handled", f"{', '.join(sorted(_CODECS[name]))} are"
    yield from _changelog_features(schema, formats)
    yield from _append_features(schema)
    if "orc" in formats:
        yield from _orc_features(schema)
    if "avro" in formats:
        for field in schema.fields:
            if (field.type.precision or 0) > _AVRO_PRECISION.get(field.type.root, MAX_DECIMAL_PRECISION):
                yield f"column {field.name} of type {field.type} in Avro files", "Paimon has no such times there"


def _append_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    """Files of a table without primary key have no levels. Java ignores the option there."""
    if not schema.primary_keys and _PER_LEVEL in schema.options:
        yield f"option {_PER_LEVEL} of a table without primary key is not handled", "unset it, or set file.format"


def _changelog_features(schema: PaimonSchema, formats: Sequence[str]) -> Iterator[tuple[str, str]]:
    if changelog_rules(schema) is None:
        return
    own = schema.options.get("changelog-file.format")
    if own is not None and {own.lower()} != {*formats}:
        advice = "changes are written in the format of the data files; unset it"
        yield f"option changelog-file.format = {own} is not handled", advice


def type_advice(schema: PaimonSchema, field: PaimonField) -> str | None:
    """Why columns of this type are not handled; None if they are."""
    if any(leaf.root is TypeRoot.OTHER for leaf in field.type.leaves):
        return "its values cannot be held"
    if not field.type.is_nested:
        return None
    if field.name in {*schema.primary_keys, *ordering_fields(schema)}:
        return "nested values have no order"
    if any((leaf.precision or 0) > _MICROS and leaf.root in _TIMES for leaf in field.type.leaves):
        return f"nested times are of at most {_MICROS} digits"
    return "nested values of Avro files are not read" if "avro" in level_formats(schema, _LEVELS) else None


_MICROS: Final = 6
_TIMES: Final = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)


def _orc_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    for option in _ENCRYPTED:
        if option in schema.options:
            yield f"option {option} is not handled", "columns of ORC files are not decrypted"
    ordering = schema.select((*schema.trimmed_keys, *ordering_fields(schema))) if shifts_times(schema) else ()
    for field in ordering:
        if field.type.root is TypeRoot.TIMESTAMP_LTZ:
            yield f"column {field.name} of type {field.type} orders rows of ORC files", _SHIFTED


_AVRO_PRECISION: Final = {TypeRoot.TIMESTAMP: 6, TypeRoot.TIMESTAMP_LTZ: 6, TypeRoot.TIME: 3}
_PER_LEVEL: Final = "file.format.per.level"
_SHIFTED: Final = f"their times depend on the writer's time zone; if it was UTC, set {_LEGACY_TIMES} = false"


def shifts_times(schema: PaimonSchema) -> bool:
    """Whether ORC files store TIMESTAMP WITH LOCAL TIME ZONE shifted by the zone of the writer's JVM, the default.

    Readers of the same zone shift it back (OrcTimestampColumnVector.java), so that such values may be copied from file
    to file. What they stand for is known to these readers only.
    """
    return option_bool(schema, _LEGACY_TIMES, default=True)


def refuse_mixed_times(schema: PaimonSchema, field: PaimonField, file_format: str, *, subject: str) -> None:
    """Raise RefusedTable if times of `field` would be copied between ORC, where they are shifted, and other formats."""
    zoned = any(leaf.root is TypeRoot.TIMESTAMP_LTZ for leaf in field.type.leaves)
    if not zoned or not shifts_times(schema):
        return
    formats = {file_format, *level_formats(schema, _LEVELS)}
    if "orc" in formats and len(formats) > 1:
        raise RefusedTable(
            subject, f"column {field.name} of type {field.type} in files of {' and '.join(sorted(formats))}", _SHIFTED
        )


def format_of(name: str) -> str:
    """The format of a data file by the end of its name, as Paimon identifies it
    (DataFilePathFactory.formatIdentifier)."""
    return name.rpartition(".")[2]


def compression(schema: PaimonSchema, level: int, own: str | None = None) -> tuple[str, int | None]:
    """The codec of a level's files, and its compression level (zstd only). `own` is the option of some of them."""
    codec = option_map(schema, "file.compression.per.level").get(
        str(level), schema.options.get("file.compression", "zstd")
    )
    codec = codec if own is None else own
    option = _OWN_CODEC.get(level_formats(schema, level + 1)[level])
    codec = (schema.options.get(option, codec) if option else codec).lower()
    return codec, option_int(schema, "file.compression.zstd-level", 1) if codec == "zstd" else None
