"""A table -> its newest document of a kind: what `--last` of a command means."""

from __future__ import annotations

from collections.abc import Callable

from nightkeep.api.call_context import CallContext
from nightkeep.errors import UsageError
from nightkeep.model import Operation
from nightkeep.pages import leftovers
from nightkeep.records import RunDocument, table_documents


def newest_commit(context: CallContext, table: str) -> RunDocument:
    """The newest document of a run that published a version on top of another one. Raises UsageError if there is
    none."""
    return _newest(
        context,
        table,
        tuple(each for each in Operation if each.rewrites),
        lambda document: document.base_version is not None and document.committed_version is not None,
        "a run that published a version",
    )


def newest_quarantine(context: CallContext, table: str) -> RunDocument:
    """The newest document of a run that moved files to quarantine. Raises UsageError if there is none."""
    return _newest(
        context,
        table,
        (Operation.SWEEP, Operation.EXPIRE),
        lambda document: (left := leftovers(document)) is not None and left.brings_back is not None,
        "a run that moved files to quarantine",
    )


def _newest(
    context: CallContext,
    table: str,
    operations: tuple[Operation, ...],
    is_meant: Callable[[RunDocument], bool],
    expected: str,
) -> RunDocument:
    name = context.chosen(table).address.name
    documents = table_documents(context.reports, name).newest_first(*operations)
    found = next((each for each in documents if is_meant(each)), None)
    if found is None:
        raise UsageError(f"--last: expected {expected} of {name} in {context.reports}, found none")
    return found
