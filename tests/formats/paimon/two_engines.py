"""A history -> at every seam Java compacts one copy of the table and Nightkeep upgrades the other; both must agree.

Agreement is what readers and later compactions can tell: rows, what sits on which level, files kept, vectors.
"""

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from tests.drivers.history import Compact, History, Key, Step, Values, expected, play, rows_by_key
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, JavaFile, Scan
from tests.drivers.random_history import random_history
from tests.formats.paimon.stale_compactions import found
from tests.formats.paimon.upgrade import upgrade

from nightkeep.formats.paimon.data import columns, file_output
from nightkeep.formats.paimon.data.stored_rows import open_stored
from nightkeep.model.arrow_types import ChunkedArray

Place = tuple[str, int]
"""A bucket: its partition values as text, and its number."""

_FLOAT_TEXTS = ("NaN", "Infinity", "-Infinity", "-0.0")
_AT_THE_END = (Compact(full=False), Compact(full=True))


@dataclass(frozen=True, slots=True)
class Version:
    """What Java's readers say of a table's latest version: live files by name, vectors by data file."""

    folder: Path
    files: Mapping[str, JavaFile]
    vectors: Mapping[str, tuple[str, tuple[int, ...]]]
    total_rows: int

    def by_place(self) -> Mapping[Place, Sequence[JavaFile]]:
        found: defaultdict[Place, list[JavaFile]] = defaultdict(list)
        for file in self.files.values():
            found[str(file.partition), file.bucket].append(file)
        return found


@dataclass(frozen=True, slots=True)
class Copies:
    """A table as it was, and two copies to be compacted by Java and by us."""

    base: Path
    java: Path
    ours: Path


Seam = Callable[[PaimonJava, History, Sequence[Step], Copies], list[str]]
"""Compacts both copies as the last step asks, and says how they differ then."""


def check_history(
    engine: PaimonJava,
    seed: int,
    folder: Path,
    make: Callable[[int], History] = random_history,
    seam: Seam | None = None,
) -> None:
    """live_twice for the history of a seed; a failure says how to see it again."""
    with pytest.MonkeyPatch.context() as patch:
        if seed % 2:
            # Small tables reach what happens between row groups and between batches.
            patch.setattr(file_output, "ROW_GROUP_ROWS", 100)
            patch.setattr(file_output, "ORC_BATCH_ROWS", 50)
            patch.setattr(columns, "BATCH_ROWS", 37)
        try:
            live_twice(engine, make(seed), folder, seam or upgrade_seam)
        except Exception as failure:
            failure.add_note(
                f"again: NIGHTKEEP_SEEDS={seed}:{seed + 1} python -m pytest tests/engines/paimon/test_histories.py"
            )
            raise


def live_twice(engine: PaimonJava, history: History, folder: Path, seam: Seam) -> None:
    """Plays the history; raises AssertionError at the first seam where the engines differ.

    Life goes on in one copy or the other, so each engine writes, compacts and expires on top of the other's work.
    """
    random = Random(f"{history.seed}: whose copy lives on")
    table, past = folder / "table", list[Step]()
    engine.create(table, history.layout)
    for number, step in enumerate((*history.steps, *_AT_THE_END)):
        past.append(step)
        if not isinstance(step, Compact):
            play(engine, table, [step])
            continue
        java, ours = folder / f"{number}-java", folder / f"{number}-ours"
        shutil.copytree(table, java)
        shutil.copytree(table, ours)
        differences = seam(engine, history, past, Copies(table, java, ours))
        assert not differences, "\n  ".join([f"step {number} of {history}:", *differences])
        kept = random.choice((java, ours))
        for copy in {table, java, ours} - {kept}:
            shutil.rmtree(copy)
        table = kept
    # Correct compactions of either engine on top of the other's: none shows a row again.
    assert found(table) == (), str(history)


def upgrade_seam(engine: PaimonJava, history: History, past: Sequence[Step], copies: Copies) -> list[str]:
    """How Java's compaction and our upgrade of a table with vectors differ."""
    step, before, java, ours = past[-1], version_of(engine, copies.base), copies.java, copies.ours
    assert isinstance(step, Compact)
    _compact(engine, java, before, full=step.full)
    document = upgrade(ours, full=step.full)
    if document.outcome not in ("verified", "unchanged"):
        return [f"our outcome is {document.outcome}: {document.reason}"]
    theirs, mine = version_of(engine, java), version_of(engine, ours)

    def read(table: Path, options: Mapping[str, str]) -> Mapping[Key, Values]:
        return rows_by_key(history, engine.read(table, Scan(options=options)).rows)

    # The model keeps whole rows; of a table that merges them, Java's compaction is the truth.
    merged = read(java, MERGE_ON_READ)
    model = merged if "merge-engine" in history.layout.options else expected(history, past)
    return [
        *row_differences("the model", model, "Java merged", merged),
        *row_differences("the model", model, "ours merged", read(ours, MERGE_ON_READ)),
        *row_differences("Java raw", read(java, {}), "ours raw", read(ours, {})),
        *file_differences(before, theirs, mine),
        *_vector_differences(before, theirs, mine),
    ]


def version_of(engine: PaimonJava, table: Path) -> Version:
    snapshot = engine.snapshot(table) or {"totalRecordCount": 0}
    vectors = {
        name: (str(vector["kind"]), tuple(vector["positions"]))
        for entry in engine.vectors(table)
        for name, vector in entry.files.items()
    }
    return Version(table, {file.name: file for file in engine.files(table)}, vectors, snapshot["totalRecordCount"])


def _compact(engine: PaimonJava, table: Path, before: Version, *, full: bool) -> None:
    """One pick per bucket.

    A writer of Java's in gentle mode counts its own triggers until it lifts level 0, and a job that has just
    started has counted none; Nightkeep counts level-0 files instead. Buckets with enough of them are due.
    """
    options = engine.schema(table)["options"]
    gentle = options.get("lookup-compact") == "gentle" and not full
    trigger = int(options.get("num-sorted-run.compaction-trigger", "5"))
    interval = max(trigger, int(options.get("lookup-compact.max-interval", str(2 * trigger))))
    for (_, bucket), files in before.by_place().items() if gentle else ():
        due = sum(file.level == 0 for file in files) >= interval
        lookup = {"lookup-compact": "radical"} if due else {}
        engine.compact(
            table, Compaction(partition=files[0].partition, buckets=[bucket], single_pick=True, options=lookup)
        )
    if not gentle:
        engine.compact(table, Compaction(full=full, user="compactor", single_pick=True))


def row_differences(
    left_name: str, left: Mapping[Key, Values], right_name: str, right: Mapping[Key, Values]
) -> Iterator[str]:
    wrong = [key for key in left.keys() | right.keys() if left.get(key) != right.get(key)]
    if wrong:
        key = min(wrong, key=repr)
        yield f"{len(wrong)} rows differ; of key {key} {left_name} has {left.get(key)}, {right_name} {right.get(key)}"


def file_differences(before: Version, theirs: Version, mine: Version) -> Iterator[str]:
    if theirs.total_rows != mine.total_rows:
        yield f"totalRecordCount: Java {theirs.total_rows}, ours {mine.total_rows}"
    places = before.by_place().keys() | theirs.by_place().keys() | mine.by_place().keys()
    for place in sorted(places):
        java, ours, old = (version.by_place().get(place, ()) for version in (theirs, mine, before))
        known = {file.name for file in old}
        kept_java, kept_ours = ({f.name: f.level for f in files if f.name in known} for files in (java, ours))
        new_java, new_ours = ([f for f in files if f.name not in known] for files in (java, ours))
        if kept_java != kept_ours or _shape(new_java) != _shape(new_ours):
            yield (
                f"bucket {place} with {_layout(old)}: Java keeps {kept_java} and writes {_layout(new_java)}; "
                f"ours keeps {kept_ours} and writes {_layout(new_ours)}"
            )
            continue
        for level in _shape(new_ours):
            yield from _content_differences(
                place,
                [f for f in new_java if f.level == level],
                [f for f in new_ours if f.level == level],
                theirs.folder,
                mine.folder,
            )


def _shape(files: Sequence[JavaFile]) -> Mapping[int, int]:
    """Rows of new files by level."""
    rows: defaultdict[int, int] = defaultdict(int)
    for file in files:
        rows[file.level] += file.rows
    return dict(rows)


def _layout(files: Sequence[JavaFile]) -> str:
    return " ".join(f"L{f.level}:{f.rows}r/{f.size}b" for f in sorted(files, key=lambda f: f.level)) or "nothing"


def _content_differences(
    place: Place, java: Sequence[JavaFile], ours: Sequence[JavaFile], java_folder: Path, our_folder: Path
) -> Iterator[str]:
    """New files of one level hold the same keys, sequence numbers and kinds; values are compared by the reads."""
    left, right = _system_columns(java_folder, java), _system_columns(our_folder, ours)
    if not left.equals(right.cast(left.schema)):
        yield f"bucket {place} level {java[0].level}: keys or sequence numbers differ"
    target_is_small = len(java) > 1 or len(ours) > 1
    if target_is_small:
        return
    told_java = [_told(file) for file in java]
    # Java tells no bounds of binary columns in ORC files; more than Java tells is no difference.
    told_ours = [_told(file, of=_bounded(alike)) for file, alike in zip(ours, java, strict=True)]
    if told_java != told_ours:
        yield f"bucket {place} level {java[0].level}: Java says {told_java}, ours {told_ours}"


def _told(file: JavaFile, *, of: Set[str] | None = None) -> tuple[object, ...]:
    names = _bounded(file) if of is None else of
    stats = {name: told for name, told in (file.key_stats or {}).items() if name in names}
    return (
        file.rows,
        file.delete_rows,
        file.min_sequence,
        file.max_sequence,
        file.source,
        file.schema_id,
        file.min_key,
        file.max_key,
        stats,
        file.total_buckets,
    )


def _bounded(file: JavaFile) -> Set[str]:
    # Of floats we say less than Java, or more carefully: no bounds with NaN, and zeros of both signs.
    return {name for name, told in (file.key_stats or {}).items() if not _is_float(told)}


def _is_float(bounds: Sequence[object]) -> bool:
    return bounds[0] is None or any(isinstance(bound, float) or bound in _FLOAT_TEXTS for bound in bounds)


def _avro(path: Path) -> pa.Table:
    rows = open_stored(pa.memory_map(str(path)), path.name, subject=path.name)
    return rows.read(rows.names, range(len(rows.starts) - 1))


_READ: Mapping[str, Callable[[Path], pa.Table]] = {
    ".parquet": lambda path: pq.ParquetFile(path).read(),
    ".orc": lambda path: orc.ORCFile(path).read(),
    ".avro": _avro,
}


def _system_columns(folder: Path, files: Sequence[JavaFile]) -> "pa.Table":
    parts: list[pa.Table] = []
    for file in files:
        (path,) = folder.rglob(file.name)
        found = _READ[path.suffix](path)
        found = found.select([name for name in found.column_names if name.startswith("_")])
        parts.append(found.cast(parts[0].schema) if parts else found)
    rows = pa.concat_tables(parts).combine_chunks()
    # Rows of one snapshot may all have one number.
    named = pa.table({name: _bits(rows.column(name)) for name in rows.column_names})
    return named.sort_by([(name, "ascending") for name in ("_SEQUENCE_NUMBER", *named.column_names)])


def _bits(column: ChunkedArray) -> ChunkedArray:
    # NaN differs from itself.
    if not pa.types.is_floating(column.type):
        return column
    return pa.chunked_array([column.to_numpy().view(f"i{column.type.bit_width // 8}")])


def _vector_differences(before: Version, theirs: Version, mine: Version) -> Iterator[str]:
    nothing = ("", ())
    for name in sorted(before.files.keys() & theirs.files.keys() & mine.files.keys()):
        (java_kind, java), (our_kind, ours) = (v.vectors.get(name, nothing) for v in (theirs, mine))
        if java != ours:
            yield f"vector of {name}: Java has {java}, ours {ours}"
        # After bitmap64 is turned on, Java leaves a vector the kind it was; a rewrite of ours widens it.
        if java_kind != our_kind and (java_kind, our_kind) != ("BitmapDeletionVector", "Bitmap64DeletionVector"):
            yield f"vector of {name}: Java has a {java_kind}, ours is a {our_kind}"
    for version, whose in ((theirs, "Java"), (mine, "ours")):
        stale = version.vectors.keys() - version.files.keys()
        if stale and not stale <= before.vectors.keys():
            yield f"{whose} wrote vectors of files that do not exist: {sorted(stale)}"
