"""A table that a catalog does not have -> the address of the one that may be meant, as the end of a message."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from pyiceberg.catalog import Catalog
from pyiceberg.typedef import Identifier

from nightkeep.errors import NightkeepError, did_you_mean, nearest_name
from nightkeep.formats.iceberg.catalog.failures import asking
from nightkeep.model.dotted import join_name


def near_table(opened: Catalog, catalog: str, identifier: Identifier) -> str:
    """The table of the same namespace whose name is near; where that has no tables, of a namespace whose own name is
    near. Empty where none is, and where the catalog does not list them: the message is about the one that was asked
    for."""
    namespace, name = identifier[:-1], identifier[-1]
    tables = _listed(catalog, lambda: opened.list_tables(namespace))
    if not tables:
        above, last = namespace[:-1], namespace[-1]
        beside = _listed(catalog, lambda: opened.list_namespaces(above))
        near = nearest_name(last, (each[-1] for each in beside))
        namespace = namespace if near is None else (*above, near)
        tables = [] if near is None else _listed(catalog, lambda: opened.list_tables(namespace))
    names = (each[-1] for each in tables)
    return did_you_mean(name, names, lambda near: f"iceberg:{catalog}/{join_name((*namespace, near))}")


def _listed(catalog: str, names: Callable[[], Iterable[Identifier]]) -> list[Identifier]:
    with suppress(NightkeepError), asking(f"catalog {catalog}", catalog):
        return [*names()]
    return []
