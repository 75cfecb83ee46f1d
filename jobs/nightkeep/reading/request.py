"""Options of a read -> a checked request. Unknown columns, views and versions are refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce

import pyarrow as pa

from nightkeep.errors import UsageError
from nightkeep.protocol.reading import ReadView
from nightkeep.reading.splits import ShownRows
from nightkeep.sql_text.rows.condition import And, Test
from nightkeep.sql_text.rows.parse import rows_where


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What to read of a table. `columns` None means all; `where` is a condition in Spark SQL.

    `version` and `tag` exclude each other; without both, the newest version. `view` None is the engine's own.
    """

    columns: tuple[str, ...] | None = None
    where: str | None = None
    version: int | None = None
    tag: str | None = None
    view: ReadView | None = None

    def __post_init__(self) -> None:
        if self.version is not None and self.tag is not None:
            raise UsageError(f"version and tag: expected one of the two, found {self.version} and {self.tag!r}")


class Incremental(StrEnum):
    """What is shown of the time between two versions."""

    DIFF = "diff"
    """The rows whose presence changed."""
    CHANGELOG = "changelog"
    """What the commits reported to streaming readers, one after the other."""


@dataclass(frozen=True, slots=True)
class ChangesSince:
    """Changes of the versions after `since`."""

    kind: Incremental
    since: int


def request_of(
    columns: Sequence[str] | str | None, where: str | None, version: int | None, tag: str | None, view: str | None
) -> ReadRequest:
    """Raises UsageError for a view that does not exist, and for version and tag together."""
    names = columns.split(",") if isinstance(columns, str) else columns
    chosen = None if names is None else tuple(name.strip() for name in names)
    try:
        seen = None if view is None else ReadView(view)
    except ValueError:
        raise UsageError(f"view: expected one of {', '.join(ReadView)}, found {view!r}") from None
    return ReadRequest(chosen, where, version, tag, seen)


def start_of(incremental: str | None, since: int | None) -> ChangesSince | None:
    """What an incremental read shows; None for a read of one version.

    Raises UsageError for one option without the other."""
    if incremental not in (None, *Incremental):
        raise UsageError(f"incremental: expected one of {', '.join(Incremental)}, found {incremental!r}")
    if incremental is None and since is None:
        return None
    if incremental is None or since is None:
        missing, given = ("since", "incremental") if since is None else ("incremental", "since")
        raise UsageError(f"{missing}: expected it with {given}, found none")
    return ChangesSince(Incremental(incremental), since)


def shown_rows(request: ReadRequest, columns: pa.Schema) -> ShownRows:
    """The columns and the condition, checked against the version's `columns`. Raises UsageError."""
    where = None if request.where is None else rows_where(request.where, columns)
    if request.columns is None:
        return ShownRows(columns, where)
    unknown = [name for name in request.columns if columns.get_field_index(name) < 0]
    if unknown or not request.columns or len(set(request.columns)) != len(request.columns):
        expected = f"some of {', '.join(columns.names)}, each once"
        raise UsageError(f"columns: expected {expected}, found {', '.join(request.columns) or 'none'}")
    return ShownRows(pa.schema([columns.field(name) for name in request.columns]), where)


def passing(shown: ShownRows, tests: Sequence[Test]) -> ShownRows:
    """Those of the rows that pass the tests too."""
    conditions = [*([] if shown.where is None else [shown.where]), *tests]
    return ShownRows(shown.schema, reduce(And, conditions) if conditions else None)
