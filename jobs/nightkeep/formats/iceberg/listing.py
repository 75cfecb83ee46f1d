"""A catalog -> its tables, in all namespaces."""

from __future__ import annotations

from collections.abc import Iterator

from nightkeep.formats.iceberg.catalog.catalog import open_catalog
from nightkeep.formats.iceberg.catalog.failures import asking
from nightkeep.formats.iceberg.catalog.listed_names import listed_names
from nightkeep.limits import LISTED
from nightkeep.model.dotted import join_name
from nightkeep.model.listed_tables import ListedTable, UnlistedPlace


def list_tables(location: str, depth: int) -> Iterator[ListedTable | UnlistedPlace]:
    """The tables of the catalog that is called `location`. Raises AddressError, Unreachable, and RefusedTable for more
    names than the limit."""
    missed = list[UnlistedPlace]()
    with asking(f"catalog {location}", location):
        names = listed_names(
            open_catalog(location),
            lambda namespace, failure: missed.append(UnlistedPlace(join_name(namespace), str(failure))),
        )
        for seen, name in enumerate(names, start=1):
            LISTED.require(seen, location)
            yield ListedTable(tuple(name), f"{location}/{join_name(name)}")
    yield from missed
