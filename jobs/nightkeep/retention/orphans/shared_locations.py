"""A table -> the same table without the places that other tables may share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from nightkeep.protocol.table_files import OpenFiles, TableFiles
from nightkeep.retention.orphans.classify import vouched


def vouched_table(table: OpenFiles, *, outside: bool) -> OpenFiles:
    """The table without its shared places, unless the caller vouches for those `outside`."""
    return replace(table, table_files=partial(_vouched, table.table_files, outside=outside))


def _vouched(table_files: Callable[[], TableFiles], *, outside: bool) -> TableFiles:
    return vouched(table_files(), outside=outside)
