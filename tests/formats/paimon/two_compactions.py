"""At a seam of a table without deletion vectors, Java compacts one copy and Nightkeep the other; both must agree.

Readers merge all levels before and after, so that a compaction must not change what Java reads. Where Java's own pick
would, ours takes all runs instead, and is then compared with a full compaction of that bucket.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.drivers.history import Compact, History, Key, Step, Values, expected, rows_by_key
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction
from tests.formats.paimon.two_engines import Copies, Place, Version, file_differences, row_differences, version_of
from tests.formats.paimon.upgrade import optimize

from nightkeep.records import RunDocument

EXTENDED = "taken with all older runs"


def compaction_seam(engine: PaimonJava, history: History, past: Sequence[Step], copies: Copies) -> list[str]:
    step, before = past[-1], version_of(engine, copies.base)
    assert isinstance(step, Compact)

    def read(table: Path) -> Mapping[Key, Values]:
        return rows_by_key(history, engine.read(table).rows)

    # The model keeps whole rows; of a table that merges them, what Java read before is the truth.
    truth = read(copies.base) if "merge-engine" in history.layout.options else expected(history, past)
    document = optimize(copies.ours, full=step.full)
    if document.outcome not in ("verified", "unchanged"):
        return [f"our outcome is {document.outcome}: {document.reason}"]
    _compact(engine, copies.java, before, full=step.full, extended=_extended(before, document))
    return [
        *row_differences("the model", truth, "Java", read(copies.java)),
        *row_differences("the model", truth, "ours", read(copies.ours)),
        *file_differences(before, version_of(engine, copies.java), version_of(engine, copies.ours)),
    ]


def _extended(before: Version, document: RunDocument) -> set[Place]:
    assert document.plan is not None
    files = (before.files[unit.input_files[0]] for unit in document.plan.units if EXTENDED in unit.reason)
    return {(str(file.partition), file.bucket) for file in files}


def _compact(engine: PaimonJava, table: Path, before: Version, *, full: bool, extended: set[Place]) -> None:
    if not extended:
        engine.compact(table, Compaction(full=full, user="compactor", single_pick=True))
        return
    for place, files in before.by_place().items():
        engine.compact(
            table,
            Compaction(
                full=place in extended,
                user="compactor",
                single_pick=True,
                partition=files[0].partition,
                buckets=[place[1]],
            ),
        )
