"""The location of a table that a metastore has by its name <-> the metastore, and the table's database and name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nightkeep.model.dotted import join_name, split_name

_SERVER: Final = r"thrift://[A-Za-z0-9._\-\[\]:]+:[0-9]{1,5}"
HIVE: Final = re.compile(rf"{_SERVER}(,{_SERVER})*")
"""Hive metastores with the same content. The first that answers is asked."""
GLUE: Final = re.compile(r"glue://[a-z0-9-]+")
_BEGIN: Final = re.compile(rf"({HIVE.pattern}|{GLUE.pattern})/(.*)", re.DOTALL)
_SCHEMES: Final = ("thrift://", "glue://")
EXPECTED: Final = "thrift://HOST:PORT/DATABASE.TABLE or glue://REGION/DATABASE.TABLE"


@dataclass(frozen=True, slots=True)
class MetastoreTable:
    """A table by its name. `metastore` is `thrift://HOST:PORT` or `glue://REGION`."""

    metastore: str
    database: str
    name: str

    def __str__(self) -> str:
        return f"{self.metastore}/{join_name((self.database, self.name))}"


def metastore_table(location: str) -> MetastoreTable | None:
    """The table that a location names; None for any other location. Raises ValueError for a name that is not whole."""
    if not location.startswith(_SCHEMES):
        return None
    match = _BEGIN.fullmatch(location)
    if match is None:
        raise ValueError(f"{EXPECTED}, found {location!r}")
    parts = split_name(match.groups()[-1])
    if len(parts) != 2:
        raise ValueError(f"{EXPECTED}, found {location!r}")
    return MetastoreTable(match[1], *parts)


def catalog_and_name(location: str) -> tuple[str, str]:
    """The parts of an Iceberg table's location: its catalog, which may be a metastore's address, and its name."""
    match = _BEGIN.fullmatch(location)
    if match is not None:
        return match[1], match.groups()[-1]
    catalog, _, name = location.partition("/")
    return catalog, name
