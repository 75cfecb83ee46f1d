"""A location -> the table's and a branch; table metadata -> the same as a reader of one branch sees it. Pure.

Iceberg table spec, "Snapshot References". A branch shares schemas, specs, properties and files with the table, and has
only its newest snapshot of its own. `TABLE$branch_NAME` is Paimon's spelling.
"""

from __future__ import annotations

import re
from typing import Final

from nightkeep.errors import AddressError
from nightkeep.formats.iceberg.metadata.table_metadata import MAIN, Raw, ancestors, head, integer, refs

_MARKED: Final = re.compile(r"(.+)\$branch_([^`]*)", re.DOTALL)
"""A name within backquotes may have the mark, and then ends with a backquote."""


def location_and_branch(location: str) -> tuple[str, str]:
    """The location of a table, and the name of a branch: main by default. Raises AddressError for an empty name."""
    match = _MARKED.fullmatch(location)
    if match is None:
        return location, MAIN
    if not match[2].strip():
        raise AddressError(f"iceberg:{location}: expected the name of a branch after $branch_, found {match[2]!r}")
    return match[1], match[2]


def tip(raw: Raw, branch: str, *, subject: str) -> int | None:
    """The id of a branch's newest snapshot; None for a main without one, and for a branch that is not there."""
    if branch == MAIN:
        return head(raw, subject=subject).current
    ref = refs(raw, subject=subject).get(branch)
    return None if ref is None or ref.get("type") != "branch" else integer(ref, "snapshot-id", subject=subject)


def as_branch(raw: Raw, branch: str, *, subject: str) -> Raw:
    """The metadata, in which main is the branch. It is read and planned with, and never written.

    Raises AddressError if the table has no such branch.
    """
    if branch == MAIN:
        return raw
    number, named = tip(raw, branch, subject=subject), refs(raw, subject=subject)
    if number is None:
        known = ", ".join(sorted({MAIN, *(name for name, ref in named.items() if ref.get("type") == "branch")}))
        raise AddressError(f"{subject}: expected a branch of the table among {known}, found {branch!r}")
    seen: Raw = {**raw, "current-snapshot-id": number, "refs": {**named, MAIN: named[branch]}}
    snapshots = head(seen, subject=subject).snapshots
    line = [snapshots[each] for each in ancestors(seen, number, subject=subject)]
    log: list[Raw] = [
        {"timestamp-ms": integer(each, "timestamp-ms", subject=subject), "snapshot-id": each["snapshot-id"]}
        for each in reversed(line)
    ]
    return {**seen, "snapshot-log": log}
