"""The sort orders of table metadata -> values. Spec, "Sort Orders".

A data file names the order that its rows have by `sort_order_id`. The table's default order is what writers should use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nightkeep.errors import CorruptMetadata, kind_of
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, integer, objects, text

UNSORTED: Final = 0
"""The id of the order without fields."""
_DIRECTIONS: Final = {"asc": False, "desc": True}
_NULLS: Final = {"nulls-first": True, "nulls-last": False}


@dataclass(frozen=True, slots=True)
class SortField:
    """One field of an order: the values of its source columns, transformed. An order of one column has one source."""

    source_ids: tuple[int, ...]
    transform: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class SortOrder:
    """Fields by which rows are compared, the first one first."""

    order_id: int
    fields: tuple[SortField, ...]

    @property
    def mark(self) -> str:
        """A mark for names of files in this order. An order of the same fields has the same mark, whatever its id."""
        fields = [[list(each.source_ids), each.transform, each.descending, each.nulls_first] for each in self.fields]
        return f"c{hashlib.sha256(json.dumps(['order', *fields]).encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class SortOrders:
    """All sort orders of a table by id, and the id of its default order."""

    orders: Mapping[int, SortOrder]
    default_id: int

    @property
    def default(self) -> SortOrder | None:
        """The order that new files should have; None if rows need not be sorted."""
        order = self.orders.get(self.default_id)
        return order if order is not None and order.fields else None

    def alike(self, order: SortOrder) -> frozenset[int]:
        """The ids of all orders with the same fields."""
        return frozenset(each.order_id for each in self.orders.values() if each.fields == order.fields)


NO_ORDERS: Final = SortOrders({}, UNSORTED)


def sort_orders(metadata: Raw, *, table: str) -> SortOrders:
    """The sort orders in table metadata. Metadata of format version 1 may have none. Raises CorruptMetadata."""
    orders = [_order(each, table) for each in objects(metadata, "sort-orders", subject=table)]
    known = metadata.get("default-sort-order-id") is not None
    default = integer(metadata, "default-sort-order-id", subject=table) if known else UNSORTED
    by_id = {each.order_id: each for each in orders}
    if default != UNSORTED and default not in by_id:
        raise CorruptMetadata(f"{table}: sort order {default}", f"one of {sorted(by_id)}", "none")
    return SortOrders(by_id, default)


def _order(raw: Raw, table: str) -> SortOrder:
    subject = f"{table}: sort order {raw.get('order-id')}"
    number = integer(raw, "order-id", subject=subject)
    fields = (_field(each, subject) for each in objects(raw, "fields", subject=subject))
    # All values of the transform void are null.
    return SortOrder(number, tuple(each for each in fields if each.transform != "void"))


def _field(raw: Raw, subject: str) -> SortField:
    direction, nulls = (raw.get(name) for name in ("direction", "null-order"))
    if direction not in _DIRECTIONS or nulls not in _NULLS:
        raise CorruptMetadata(subject, "asc or desc, nulls-first or nulls-last", f"{direction!r}, {nulls!r}"[:80])
    transform = text(raw, "transform", subject=subject)
    return SortField(_sources(raw, subject), transform, _DIRECTIONS[str(direction)], _NULLS[str(nulls)])


def _sources(raw: Raw, subject: str) -> tuple[int, ...]:
    several = raw.get("source-ids")
    if several is None:
        return (integer(raw, "source-id", subject=subject),)
    if not isinstance(several, list) or not several:
        raise CorruptMetadata(f"{subject}: source-ids", "a list of field ids", kind_of(several))
    return tuple(integer({"source-id": each}, "source-id", subject=subject) for each in several)
