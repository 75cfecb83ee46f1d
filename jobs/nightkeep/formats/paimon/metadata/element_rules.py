"""Options of a column of elements (ARRAY, MAP) -> how its merge function distinguishes elements, and what is not
handled.

Source: FieldCollectAgg, FieldMergeMapAgg, FieldNestedUpdateAgg and FieldNestedPartialUpdateAgg of Paimon 2.0.0, and
their factories.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot

_MICROS = 6
_DIFFERS = "Java distinguishes such values by where they are in memory"


class NullKeys(StrEnum):
    """`nested-key-null-strategy`: what becomes of a nested row with a null in its nested key."""

    MERGE = "merge"
    """Null is a value like others."""
    IGNORE = "ignore"
    """It is left out."""
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class ElementRule:
    """Of a column of elements. `rows`: the elements are ROWs, or other nested values.

    `key` and `sequence` are fields of the nested rows: of rows with one key the greatest by `sequence` stays, the last
    one of ties, or without `sequence` the last one. `limit`: no more rows are taken; only without `key`.
    """

    rows: bool = False
    key: tuple[str, ...] = ()
    sequence: tuple[str, ...] = ()
    null_keys: NullKeys = NullKeys.MERGE
    limit: int | None = None


def element_rule(schema: PaimonSchema, name: str, *, nested: bool) -> ElementRule:
    """The rule of an ARRAY or MAP column; `nested`: of nested rows. The schema has no feature of `merge_features`."""
    rows = schema.field(name).type.children[0].type.is_nested
    if not nested:
        return ElementRule(rows)
    limit = _option(schema, name, "count-limit")
    return ElementRule(
        rows=rows,
        key=_listed(schema, name, "nested-key"),
        sequence=_listed(schema, name, "nested-sequence-field"),
        null_keys=NullKeys((_option(schema, name, "nested-key-null-strategy") or NullKeys.MERGE).lower()),
        limit=None if limit is None else int(limit),
    )


def collect_fault(field: PaimonField, *, compares: bool) -> str | None:
    """Why a column cannot have `collect`; None if it can. `compares`: elements are distinguished, or taken back."""
    if field.type.root is not TypeRoot.ARRAY:
        return "it is of ARRAY columns"
    return _uncomparable(field.type.children[0].type, rows=True) if compares else None


def merge_map_fault(field: PaimonField) -> str | None:
    if field.type.root is not TypeRoot.MAP:
        return "it is of MAP columns"
    return _uncomparable(field.type.children[0].type, rows=False)


def nested_fault(schema: PaimonSchema, field: PaimonField, *, partial: bool, compares: bool) -> str | None:
    """Why a column cannot have `nested_update`, or with `partial` `nested_partial_update`."""
    if field.type.root is not TypeRoot.ARRAY or field.type.children[0].type.root is not TypeRoot.ROW:
        return "it is of ARRAY columns of ROW elements"
    element = field.type.children[0].type
    key, sequence = (_listed(schema, field.name, option) for option in ("nested-key", "nested-sequence-field"))
    if key:
        return _keyed_fault(schema, field, element, (*key, *sequence))
    alone = ("nested-sequence-field", "nested-key-null-strategy")
    if partial or any(_option(schema, field.name, option) is not None for option in alone):
        return "Paimon needs a nested-key for it"
    return _limit_fault(schema, field) or (_uncomparable(element, rows=True) if compares else None)


def _keyed_fault(schema: PaimonSchema, field: PaimonField, element: PaimonType, names: tuple[str, ...]) -> str | None:
    held = {child.name: child.type for child in element.children}
    if absent := [name for name in names if name not in held]:
        return f"its rows have no field {', '.join(absent)}"
    if _option(schema, field.name, "count-limit") is not None:
        return "with a nested-key, which rows are within count-limit depends on the order of a Java hash table"
    strategy = _option(schema, field.name, "nested-key-null-strategy")
    if strategy is not None and strategy.lower() not in set(NullKeys):
        return f"nested-key-null-strategy is one of {', '.join(NullKeys)}"
    return next((fault for name in names if (fault := _uncomparable(held[name], rows=False))), None)


def _limit_fault(schema: PaimonSchema, field: PaimonField) -> str | None:
    limit = _option(schema, field.name, "count-limit")
    return None if limit is None or limit.strip().isdecimal() else "count-limit is a number of rows"


def _uncomparable(kind: PaimonType, *, rows: bool) -> str | None:
    """Why values of a type cannot be distinguished; `rows`: fields of a ROW can."""
    if kind.root is TypeRoot.ROW and rows:
        return next((fault for child in kind.children if (fault := _uncomparable(child.type, rows=True))), None)
    if kind.is_nested or kind.root is TypeRoot.OTHER:
        return f"values of type {kind.root.value} within it are not compared"
    if kind.root in (TypeRoot.BINARY, TypeRoot.VARBINARY):
        return f"{kind} within it: {_DIFFERS}"
    if kind.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ) and (kind.precision or 0) > _MICROS:
        return f"{kind} within it: Spark has no nanoseconds, so that the check could not compare"
    return None


def _listed(schema: PaimonSchema, name: str, option: str) -> tuple[str, ...]:
    text = _option(schema, name, option)
    return () if text is None else tuple(part.strip() for part in text.split(","))


def _option(schema: PaimonSchema, name: str, option: str) -> str | None:
    return schema.options.get(f"fields.{name}.{option}")
