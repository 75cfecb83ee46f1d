"""PolicyFile -> the tables that share one Spark session."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from nightkeep.policy.effective import PolicyFile


def groups(policy: PolicyFile, size: int | None = None) -> list[tuple[str, ...]]:
    """The names of all tables, in groups for one Spark session each, of at most `size`.

    A format with more tables than that has groups of even size. Formats share a group where they fit, as a session
    costs more to start than a small table does. `size` is the file's `tables_per_session` if None. Formats and names
    are in file order. Paused and unusable tables are included: their outcome states why nothing was done.
    """
    by_format: dict[str, list[str]] = {}
    for table in policy.tables:
        by_format.setdefault(table.address.format, []).append(table.name)
    for unusable in policy.unusable:
        by_format.setdefault(unusable.format, []).append(unusable.name)
    most, joined = size or policy.tables_per_session, list[tuple[str, ...]]()
    for group in (group for names in by_format.values() for group in _even(names, most)):
        if joined and len(joined[-1]) + len(group) <= most:
            joined[-1] += group
        else:
            joined.append(group)
    return joined


def _even(names: Sequence[str], size: int) -> list[tuple[str, ...]]:
    count = -(-len(names) // size)
    cuts = [len(names) * i // count for i in range(count + 1)]
    return [tuple(names[start:end]) for start, end in itertools.pairwise(cuts)]
