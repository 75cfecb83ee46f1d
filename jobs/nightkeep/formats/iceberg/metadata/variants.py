"""The type variant in Iceberg's schemas, which pyiceberg has not: its class, and its place in pyiceberg's visitors.

Iceberg table spec, "Semi-structured Types". A variant is no primitive type: no row is placed, ordered or deleted by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, cast

from pydantic import Field
from pyiceberg.schema import pre_order_visit, visit
from pyiceberg.typedef import IcebergRootModel, TableVersion
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType
from pyiceberg.utils.singleton import Singleton

NAME: Final = "variant"


class VariantType(Singleton, IcebergRootModel[str], IcebergType):  # type: ignore[misc]
    """Values of any type, each with its own. In JSON it is the text `variant`."""

    root: Literal["variant"] = Field(default=NAME)

    def __repr__(self) -> str:
        return "VariantType()"

    def __str__(self) -> str:
        return NAME

    def minimum_format_version(self) -> TableVersion:
        return 3


def register() -> None:
    """Let pyiceberg visit schemas with variants, as columns without fields of their own."""
    # pyiceberg states no type of these functions that another one could have.
    cast(Any, visit).register(VariantType, _visited)
    cast(Any, pre_order_visit).register(VariantType, _visited)


def variants(fields: Iterable[NestedField]) -> Iterator[NestedField]:
    """The variants among columns, at any depth: elements and values of a map too."""
    for field in fields:
        match field.field_type:
            case VariantType():
                yield field
            case StructType(fields=inner):
                yield from variants(inner)
            case ListType(element_field=element):
                yield from variants((element,))
            case MapType(key_field=key, value_field=value):
                yield from variants((key, value))


def _visited(kind: VariantType, visitor: Any) -> Any:
    return visitor.primitive(kind)
