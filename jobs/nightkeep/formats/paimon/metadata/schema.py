"""schema/schema-<n> -> PaimonSchema. A written schema never changes. It includes the table's options."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nightkeep.encodings.documents import parse_object
from nightkeep.errors import CorruptMetadata, RefusedTable, kind_of, reason_of
from nightkeep.formats.paimon.metadata.types import PaimonType, parse_type
from nightkeep.model.json_values import JsonObject, JsonValue

MAX_SCHEMA_VERSION = 3
_UNITS = {
    "": 1,
    "b": 1,
    "bytes": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "kibibytes": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "mebibytes": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
    "gibibytes": 1 << 30,
    "t": 1 << 40,
    "tb": 1 << 40,
    "tebibytes": 1 << 40,
}
_SECONDS = {
    "ms": 0.001,
    "milli": 0.001,
    "millisecond": 0.001,
    "milliseconds": 0.001,
    "s": 1,
    "sec": 1,
    "second": 1,
    "seconds": 1,
    "m": 60,
    "min": 60,
    "minute": 60,
    "minutes": 60,
    "h": 3600,
    "hour": 3600,
    "hours": 3600,
    "d": 86400,
    "day": 86400,
    "days": 86400,
}


@dataclass(frozen=True, slots=True)
class PaimonField:
    """A column. `id` survives renames and is never reused."""

    id: int
    name: str
    type: PaimonType


@dataclass(frozen=True, slots=True)
class PaimonSchema:
    """One schema version. `trimmed_keys`, by which files are sorted, are the primary keys without partition columns."""

    id: int
    fields: tuple[PaimonField, ...]
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: Mapping[str, str]

    @property
    def trimmed_keys(self) -> tuple[str, ...]:
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)

    def field(self, name: str) -> PaimonField:
        for field in self.fields:
            if field.name == name:
                return field
        names = ", ".join(field.name for field in self.fields)
        raise CorruptMetadata(f"schema/schema-{self.id}", f"a column named {name}", f"columns {names}")

    def select(self, names: tuple[str, ...]) -> tuple[PaimonField, ...]:
        return tuple(self.field(name) for name in names)

    def __reduce__(self) -> tuple[Callable[..., PaimonSchema], tuple[object, ...]]:
        # MappingProxyType does not pickle; tasks carry schemas to executors.
        return (_restore, (self.id, self.fields, self.partition_keys, self.primary_keys, dict(self.options)))


def _restore(id: int, fields: tuple[PaimonField, ...], *rest: object) -> PaimonSchema:
    partition_keys, primary_keys, options = rest
    return PaimonSchema(id, fields, partition_keys, primary_keys, MappingProxyType(options))  # type: ignore[arg-type]


def parse_schema(data: bytes, *, subject: str) -> PaimonSchema:
    """The schema from a schema file's JSON (A/schema/SchemaSerializer.java).

    Raises CorruptMetadata naming `subject`, and RefusedTable for an unknown version of the format.
    """
    document = parse_object(data, subject=subject)
    version = document.get("version", 1)
    if type(version) is not int or version not in range(1, MAX_SCHEMA_VERSION + 1):
        advice = f"we read versions up to {MAX_SCHEMA_VERSION}"
        shown = version if type(version) is int else kind_of(version)
        raise RefusedTable(subject, f"schema version {shown} is unknown", advice)
    try:
        return _schema(document, version)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ArithmeticError) as failure:
        raise CorruptMetadata(subject, "a Paimon schema", reason_of(failure)) from failure


def _schema(document: JsonObject, version: int) -> PaimonSchema:
    each = _objects(document["fields"])
    fields = tuple(PaimonField(_whole(f["id"]), _text(f["name"]), parse_type(f["type"])) for f in each)
    schema = PaimonSchema(
        _whole(document["id"]),
        fields,
        _texts(document["partitionKeys"]),
        _texts(document["primaryKeys"]),
        MappingProxyType(_options(document.get("options") or {}, version)),
    )
    columns = [field.name for field in fields]
    for names in (columns, schema.partition_keys, schema.primary_keys):
        if len(set(names)) != len(names) or not set(names) <= set(columns):
            raise ValueError("expected every column once, and keys that are columns")
    return schema


def _objects(value: JsonValue) -> Sequence[JsonObject]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise TypeError(f"expected a list of objects, found {kind_of(value)}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {kind_of(value)}")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list of texts, found {kind_of(value)}")
    return tuple(map(_text, value))


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"expected a whole number, found {kind_of(value)}")
    return value


def _options(options: JsonValue, version: int) -> dict[str, str]:
    if not isinstance(options, dict):
        raise TypeError(f"expected an object of options, found {kind_of(options)}")
    # SchemaSerializer: before version 3, an absent bucket or file.format means an older default.
    texts = {key: str(value) for key, value in options.items()}
    if version == 1:
        texts.setdefault("bucket", "1")
    if version <= 2:
        texts.setdefault("file.format", "orc")
    return texts


def option_bool(schema: PaimonSchema, key: str, default: bool = False) -> bool:  # noqa: FBT001, FBT002
    return schema.options.get(key, str(default)).strip().lower() == "true"


def has_vectors(schema: PaimonSchema) -> bool:
    """Whether replaced rows are marked in deletion vectors. Otherwise readers merge all levels."""
    return option_bool(schema, "deletion-vectors.enabled")


def keeps_first_row(schema: PaimonSchema) -> bool:
    """Whether the oldest row of a key stays, and no row replaces it."""
    return schema.options.get("merge-engine", "").lower() == "first-row"


def skips_level0(schema: PaimonSchema) -> bool:
    """Whether batch readers need no merge above level 0, and by default skip level 0.

    Above level 0 no key has two live rows then.
    """
    return has_vectors(schema) or keeps_first_row(schema)


def hides_level0(schema: PaimonSchema) -> bool:
    """Whether rows of level 0 wait for a compaction before batch readers see them (CoreOptions.batchScanSkipLevel0).

    Of tables with vectors, readers merge level 0 as well with deletion-vectors.merge-on-read.
    """
    if has_vectors(schema):
        return not option_bool(schema, "deletion-vectors.merge-on-read")
    return keeps_first_row(schema)


def has_fixed_buckets(schema: PaimonSchema) -> bool:
    """Whether a row's bucket is computed of its values: option bucket > 0."""
    return option_int(schema, "bucket", -1) > 0


def bucket_key(schema: PaimonSchema) -> tuple[str, ...]:
    """The columns that decide a row's bucket: `bucket-key`, else the trimmed primary key."""
    names = tuple(name.strip() for name in schema.options.get("bucket-key", "").split(",") if name.strip())
    return names or schema.trimmed_keys


def keeps_order(schema: PaimonSchema) -> bool:
    """Whether readers get a bucket's rows in the order of writing (option bucket-append-ordered). Never with keys."""
    ordered = option_bool(schema, "bucket-append-ordered", default=True)
    return not schema.primary_keys and has_fixed_buckets(schema) and ordered


def option_int(schema: PaimonSchema, key: str, default: int) -> int:
    text = schema.options.get(key, str(default)).strip()
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise CorruptMetadata(f"option {key}", "a whole number", text)
    return int(text)


def top_level(schema: PaimonSchema) -> int:
    """The highest level that compactions write: CoreOptions.numLevels less one."""
    return option_int(schema, "num-levels", option_int(schema, "num-sorted-run.compaction-trigger", 5) + 1) - 1


def option_bytes(schema: PaimonSchema, key: str, default: int | None = None) -> int | None:
    """A memory-size option (`128 mb`) in bytes, units as MemorySize.java reads them."""
    return _scaled(schema, key, default, units=_UNITS)


def option_millis(schema: PaimonSchema, key: str, default: int | None = None) -> int | None:
    """A duration option (`1 h`) in milliseconds, units as TimeUtils.java reads them."""
    scale = {unit: int(seconds * 1000) for unit, seconds in _SECONDS.items()} | {"": 1}
    return _scaled(schema, key, default, units=scale)


def _scaled(schema: PaimonSchema, key: str, default: int | None, *, units: Mapping[str, int]) -> int | None:
    text = schema.options.get(key)
    if text is None:
        return default
    match = re.fullmatch(r"\s*([0-9]{1,18})\s*([a-zA-Z]*)\s*", text)
    if not match or match[2].lower() not in units:
        raise CorruptMetadata(f"option {key}", f"a number and one of {', '.join(filter(None, units))}", text)
    return int(match[1]) * units[match[2].lower()]


def option_map(schema: PaimonSchema, key: str) -> dict[str, str]:
    """A map option (`0:avro,3:parquet`)."""
    pairs = [pair.split(":", 1) for pair in schema.options.get(key, "").split(",") if pair.strip()]
    return {left.strip(): right.strip() for left, right in pairs}


def level_formats(schema: PaimonSchema, num_levels: int) -> tuple[str, ...]:
    """File format by level."""
    per_level = option_map(schema, "file.format.per.level")
    default = schema.options.get("file.format", "parquet")
    return tuple(per_level.get(str(level), default).lower() for level in range(num_levels))
