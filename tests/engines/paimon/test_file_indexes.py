"""Tables with file indexes that Java wrote: what we write beside them is read right with pushed filters."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, Scan, Writer
from tests.formats.paimon.keeping import aged, expired, live_names, names, orphans
from tests.formats.paimon.upgrade import optimize, upgrade
from tests.support.extended import some_extended

import nightkeep
from nightkeep.model import Outcome
from nightkeep.records import RunDocument

COLUMNS = [("k", "INT NOT NULL"), ("code", "INT"), ("note", "STRING")]
INDEXES = {
    "file-index.bloom-filter.columns": "note",
    "file-index.bitmap.columns": "code",
    "file-index.range-bitmap.columns": "code",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
    "snapshot.time-retained": "0 ms",
    "write-only": "true",
}
NOTE = "new files carry no file index"


@dataclass(frozen=True)
class Kind:
    """A kind of table, and how it is maintained."""

    options: Mapping[str, str]
    care: Callable[..., RunDocument]
    keys: tuple[str, ...] = ("k",)


KINDS: Mapping[str, Kind] = {
    "beside the files": Kind({"deletion-vectors.enabled": "true", "file-index.in-manifest-threshold": "1 b"}, upgrade),
    "within the manifests": Kind(
        {"deletion-vectors.enabled": "true", "file-index.in-manifest-threshold": "1 mb"}, upgrade
    ),
    "merged": Kind({"num-sorted-run.compaction-trigger": "2", "file-index.in-manifest-threshold": "1 b"}, optimize),
    "without keys": Kind({"compaction.min.file-num": "2", "file-index.in-manifest-threshold": "1 b"}, optimize, ()),
}


def write(engine: PaimonJava, table: Path, keys: range, step: int) -> None:
    engine.write(table, [("+I", k, k % 5 + 10 * step, f"note {step} {k}") for k in keys], Writer(user="writer"))


def found(engine: PaimonJava, table: Path, field: str, value: Any, op: str = "eq") -> list[tuple[Any, ...]]:
    condition = {"op": op, "field": field, "values": [value]}
    return sorted(engine.read(table, Scan(filter=condition, options=MERGE_ON_READ)).rows)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", some_extended(KINDS, keep=2))
def test_filters_find_the_rows_of_files_with_and_without_an_index(
    name: str, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    kind = KINDS[name]
    table = tmp_path / "t"
    layout = Layout(COLUMNS, kind.keys, options={**INDEXES, **kind.options, "bucket": "1" if kind.keys else "-1"})
    paimon_java.create(table, layout)
    write(paimon_java, table, range(3000), 0)
    paimon_java.compact(table, Compaction(full=True, user="compactor"))
    write(paimon_java, table, range(100, 160), 1)
    write(paimon_java, table, range(150, 3050, 50), 2)
    beside = {each for each in names(table) if each.endswith(".index")}
    assert bool(beside) == (name != "within the manifests")
    truth = sorted(paimon_java.read(table, Scan(options=MERGE_ON_READ)).rows)

    def right(truth: list[tuple[Any, ...]]) -> bool:
        """Whether each filter finds its rows, in Java and in ours, also of values that were replaced or never were."""
        for value in ("note 0 7", "note 0 150", "note 1 120", "note 2 150", "absent"):
            wanted = [row for row in truth if row[2] == value]
            ours = nightkeep.read(f"paimon:{table}", where=f"note = '{value}'").read_all().to_pylist()
            if found(paimon_java, table, "note", value) != wanted or [(*row.values(),) for row in ours] != wanted:
                return False
        codes = {code: [row for row in truth if row[1] == code] for code in (0, 10, 20, 99)}
        above = [row for row in truth if row[1] >= 12]
        return found(paimon_java, table, "code", 12, "ge") == above and all(
            found(paimon_java, table, "code", code) == rows for code, rows in codes.items()
        )

    document = kind.care(table)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert document.plan is not None and any(NOTE in note for note in document.plan.notes), document.plan
    assert sorted(paimon_java.read(table).rows) == truth and right(truth)
    # Files that stay keep their index, also where they change their level.
    kept = [file for file in paimon_java.files(table) if file.extra_files]
    assert {f"{file.name}.index" for file in kept} >= {extra for file in kept for extra in file.extra_files}
    if "deletion-vectors.enabled" in kind.options:
        # Java does skip by it: statistics alone would not do, as the text is between others.
        between = {"op": "eq", "field": "note", "values": ["note 0 7x"]}
        assert paimon_java.read(table, Scan(filter=between)).scanned < 200
    assert {*live_names(table)} <= names(table)
    # Indexes of files that are gone go with them, by our expiry and by Java's.
    java = Path(shutil.copytree(table, tmp_path / "java"))
    (table / "bucket-0" / "data-left-over.parquet.index").write_bytes(b"index")
    aged(table)
    assert orphans(table) == ["bucket-0/data-left-over.parquet.index"]
    (table / "bucket-0" / "data-left-over.parquet.index").unlink()
    assert expired(table).outcome is Outcome.VERIFIED
    paimon_java.expire(java)
    left = {each for each in names(table) if each.endswith(".index")}
    assert left == {each for each in names(java) if each.endswith(".index")} < beside or not beside
    assert right(truth)
    # Java's next compaction gives the new file an index again.
    paimon_java.compact(table, Compaction(full=True, user="compactor"))
    write(paimon_java, table, range(5), 3)
    assert kind.care(table).outcome in (Outcome.VERIFIED, Outcome.UNCHANGED)
    assert right(sorted(paimon_java.read(table, Scan(options=MERGE_ON_READ)).rows))
