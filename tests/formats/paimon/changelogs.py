"""Changelogs of one compaction by Java and one of ours, on copies of one table -> how they differ.

Java's own streaming reader is asked what both say. A dict that follows them must come to what batch readers see.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.drivers.history import History, Step, rows_by_key
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import JavaFile
from tests.formats.paimon.two_compactions import compaction_seam
from tests.formats.paimon.two_engines import Copies, upgrade_seam

Key = tuple[Any, ...]
Change = tuple[Any, ...]
"""A kind and the values of a row."""


def newest(engine: PaimonJava, table: Path) -> int:
    snapshot = engine.snapshot(table)
    return 0 if snapshot is None else int(snapshot["id"])


def changes_by_key(changes: Sequence[Change], at: Sequence[int]) -> Mapping[Key, Sequence[Change]]:
    """Changes of each key in their order; `at` are the places of key columns among the values."""
    found: defaultdict[Key, list[Change]] = defaultdict(list)
    for kind, *values in changes:
        found[tuple(values[i] for i in at)].append((kind, *values))
    return found


def applied(rows: Mapping[Key, Change], changes: Sequence[Change], at: Sequence[int]) -> dict[Key, Change]:
    """The rows that a reader holds who follows the changes. AssertionError for a change that cannot be followed."""
    held = dict(rows)
    for kind, *values in changes:
        key, row = tuple(values[i] for i in at), tuple(values)
        if kind in ("-U", "-D"):
            assert held.pop(key) == row, (kind, row)
        else:
            assert key not in held, (kind, row)
            held[key] = row
    return held


def told_seam(engine: PaimonJava, history: History, past: Sequence[Step], copies: Copies) -> list[str]:
    """How Java's compaction and our upgrade differ, changes that they tell included."""
    differences = upgrade_seam(engine, history, past, copies)
    return [*differences, *changelog_differences(engine, history, copies)]


def told_by_full_seam(engine: PaimonJava, history: History, past: Sequence[Step], copies: Copies) -> list[str]:
    """How Java's compaction and ours of a table with changelog-producer = full-compaction differ, changes included.

    Where ours takes all runs and Java's does not, Java tells nothing: its copy is then compacted in full as well."""
    differences = compaction_seam(engine, history, past, copies)
    return [*differences, *changelog_differences(engine, history, copies)]


def changelog_differences(engine: PaimonJava, history: History, copies: Copies) -> Iterator[str]:
    java, ours = copies.java, copies.ours
    names = [name for name, _ in history.layout.columns]
    at = [names.index(name) for name in history.layout.primary_keys]
    since = newest(engine, copies.base)
    theirs, mine = (in_one_order(history, engine.changes(table, since=since + 1).rows) for table in (java, ours))
    left, right = changes_by_key(theirs, at), changes_by_key(mine, at)
    shown = rows_by_key(history, engine.read(java).rows)
    differ = {key for key in left.keys() | right.keys() if left.get(key) != right.get(key)}
    lies = {key for key in differ if _contradicts(left.get(key), right.get(key), shown.get(key))}
    repeats = {key for key in differ if _repeats(left.get(key), right.get(key))}
    wrong = differ - lies - repeats
    if wrong:
        key = min(wrong, key=repr)
        yield f"changes of {len(wrong)} keys differ; of {key} Java tells {left.get(key)}, ours {right.get(key)}"
    told = [_told(engine, table, since) for table in (java, ours)]
    if (told[0][0] - 2 * len(repeats), told[0][1]) != told[1]:
        yield f"Java's snapshots say {told[0]}, ours {told[1]}"
    places = [_by_place(engine, table, since) for table in (java, ours)]
    for place in sorted(places[0].keys() | places[1].keys()):
        shapes = [[_shape(file) for file in files.get(place, ())] for files in places]
        # Engines end files of a small target size at other rows.
        few = all(len(files.get(place, ())) < 2 for files in places)
        if shapes[0] != shapes[1] and few and not repeats:
            yield f"changelog of bucket {place}: Java says {shapes[0]}, ours {shapes[1]}"
        elif few and not lies and not repeats:
            for pair in zip(*(files.get(place, ()) for files in places), strict=True):
                yield from (f"statistics of changelog of bucket {place}: {each}" for each in _statistics_differ(*pair))


def in_one_order(history: History, changes: Sequence[Change]) -> Sequence[Change]:
    """The changes, with elements in an order of ours where they have none."""
    found = []
    for kind, *values in changes:
        (row,) = rows_by_key(history, [tuple(values)]).values()
        found.append((kind, *row))
    return found


def _contradicts(theirs: Sequence[Change] | None, ours: Sequence[Change] | None, shown: Change | None) -> bool:
    """Whether Java tells another row than its readers see, and we that one.

    Of a file that it lifts as it is, Java tells what a merge makes of each row alone. That is another row where a
    sequence group has no sequence. See test_an_upgraded_row_is_reported_as_readers_see_it.
    """
    if not theirs or not ours:
        return False
    return theirs[-1][1:] != shown and ours[-1][1:] == shown


def _repeats(theirs: Sequence[Change] | None, ours: Sequence[Change] | None) -> bool:
    """Whether Java tells a row again, and we are silent, because an array or map within it holds a null.

    See test_java_reports_rows_again_that_hold_nulls.
    """
    if not theirs or ours or [kind for kind, *_ in theirs] != ["-U", "+U"]:
        return False
    return theirs[0][1:] == theirs[1][1:] and any(isinstance(value, list) and _holds_null(value) for value in theirs[0])


def _holds_null(value: Any) -> bool:
    return value is None or (isinstance(value, list) and any(map(_holds_null, value)))


def _told(engine: PaimonJava, table: Path, since: int) -> tuple[int, bool]:
    new = [snapshot for snapshot in engine.snapshots(table) if snapshot["id"] > since]
    fields = ("changelogManifestList", "changelogManifestListSize", "changelogRecordCount")
    some = [all(snapshot.get(name) is not None for name in fields) for snapshot in new]
    none = [all(snapshot.get(name) is None for name in fields) for snapshot in new]
    assert all(a != b for a, b in zip(some, none, strict=True))
    return sum(snapshot.get("changelogRecordCount") or 0 for snapshot in new), any(some)


def _by_place(engine: PaimonJava, table: Path, since: int) -> Mapping[tuple[str, int], Sequence[JavaFile]]:
    found: defaultdict[tuple[str, int], list[JavaFile]] = defaultdict(list)
    for number in range(since + 1, newest(engine, table) + 1):
        for file in engine.changelog(table, snapshot=number):
            found[str(file.partition), file.bucket].append(file)
    return found


def _shape(file: JavaFile) -> tuple[object, ...]:
    prefix = file.name.partition("-")[0]
    return (
        prefix,
        file.level,
        file.rows,
        file.delete_rows,
        file.min_sequence,
        file.max_sequence,
        file.source,
        file.schema_id,
        file.min_key,
        file.max_key,
        file.total_buckets,
        file.extra_files,
        sorted(file.value_stats),
    )


def _statistics_differ(java: JavaFile, ours: JavaFile) -> Iterator[str]:
    for theirs, mine in ((java.key_stats or {}, ours.key_stats or {}), (java.value_stats, ours.value_stats)):
        for name in theirs.keys() & mine.keys():
            *bounds, nulls = theirs[name]
            # Of floats we say less than Java, or more carefully; of times with nanoseconds Java says nothing.
            told = [bound for bound in (*bounds, *mine[name][:2]) if bound is None or _is_float(bound)]
            if nulls != mine[name][2] or (not told and theirs[name] != mine[name]):
                yield f"{name}: {theirs[name]} and {mine[name]}"


def _is_float(bound: object) -> bool:
    return isinstance(bound, float) or bound in ("NaN", "Infinity", "-Infinity", "-0.0")
