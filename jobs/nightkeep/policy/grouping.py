"""PolicyFile -> the tables that share one Spark session."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

from nightkeep.errors import UsageError
from nightkeep.policy.effective import PolicyFile
from nightkeep.policy.spark_settings import SparkSettings


def groups(policy: PolicyFile, size: int | None = None) -> list[tuple[str, ...]]:
    """The names of all tables, in groups for one Spark session each, of at most `size`.

    A format with more tables than that has groups of even size. Formats share a group where they fit, as a session
    costs more to start than a small table does; tables whose policies set Spark otherwise share none. `size` is the
    file's `tables_per_session` if None. Formats and names are in file order. Paused and unusable tables are included:
    their outcome states why nothing was done.
    """
    alike: dict[SparkSettings, dict[str, list[str]]] = {}
    for table in policy.tables:
        of_format = alike.setdefault(spark_of(policy, table.name), {})
        of_format.setdefault(table.address.format, []).append(table.name)
    for unusable in policy.unusable:
        alike.setdefault((), {}).setdefault(unusable.format, []).append(unusable.name)
    most = size or policy.tables_per_session
    return [
        group
        for by_format in alike.values()
        for group in joined([group for names in by_format.values() for group in _even(names, most)], most)
    ]


def spark_of(policy: PolicyFile, table: str) -> SparkSettings:
    """The settings of Spark for a table; none for one without a valid policy."""
    try:
        return policy.effective(table).settings.spark
    except UsageError:
        return ()


def joined(groups: Iterable[tuple[str, ...]], most: int) -> list[tuple[str, ...]]:
    """The groups without empty ones, neighbours joined where they have at most `most` tables together."""
    together = list[tuple[str, ...]]()
    for group in filter(None, groups):
        if together and len(together[-1]) + len(group) <= most:
            together[-1] += group
        else:
            together.append(group)
    return together


def left_groups(policy: PolicyFile, groups: Sequence[Sequence[str]], left: Collection[str]) -> list[tuple[str, ...]]:
    """The groups of those tables that are left, in the fewest sessions: none is larger than the largest one was."""
    most, alike = max(map(len, groups), default=0), dict[SparkSettings, list[tuple[str, ...]]]()
    for group in groups:
        kept = tuple(table for table in group if table in left)
        if kept:
            alike.setdefault(spark_of(policy, kept[0]), []).append(kept)
    return [group for each in alike.values() for group in joined(each, most)]


def _even(names: Sequence[str], size: int) -> list[tuple[str, ...]]:
    count = -(-len(names) // size)
    cuts = [len(names) * i // count for i in range(count + 1)]
    return [tuple(names[start:end]) for start, end in itertools.pairwise(cuts)]
