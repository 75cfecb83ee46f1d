"""Names of new files: those of Paimon Java with the same options, but for the part that is unique."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.paimon.keeping import aged, orphans
from tests.formats.paimon.upgrade import upgrade
from tests.support.extended import some_extended

from nightkeep.model import Operation, Outcome

COLUMNS = [("k", "INT NOT NULL"), ("n", "INT")]
KEYED = {"bucket": "1", "deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "2"}
APPEND = {"bucket": "-1", "compaction.min.file-num": "2"}
PACKED = {"file.suffix.include.compression": "true"}
UNIQUE = re.compile(
    r"(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|nk-[0-9a-f]+-[0-9a-z-]+?)-\d+(?:-[pc][0-9a-f]+)?\."
)
NAMES: Sequence[tuple[bool, Mapping[str, str]]] = (
    (True, {**PACKED, "changelog-producer": "lookup", "changelog-file.prefix": "c-", "data-file.prefix": "p_"}),
    (False, {**PACKED, "data-file.prefix": "part-"}),
    (True, {**PACKED, "file.compression.per.level": "0:lz4,5:snappy", "file.format": "orc"}),
    (True, {"data-file.prefix": "changelog-", "changelog-producer": "lookup"}),
    (False, {**PACKED, "file.format": "avro", "file.compression": "null"}),
    (False, {**PACKED, "file.compression": "SNAPPY"}),
    (False, {**PACKED, "file.compression": "none", "data-file.prefix": "x"}),
    (False, {**PACKED, "file.compression": "gzip"}),
    (False, {**PACKED, "file.format": "orc", "orc.compress": "snappy", "file.compression": "zlib"}),
    (False, {"file.compression": "snappy"}),
)


@pytest.mark.parametrize(("keyed", "options"), some_extended(NAMES, keep=3))
def test_names_are_those_of_java(
    paimon_java: PaimonJava, tmp_path: Path, keyed: bool, options: Mapping[str, str]
) -> None:
    table, operation = tmp_path / "t", Operation.UPGRADE if keyed else Operation.OPTIMIZE
    paimon_java.create(
        table, Layout(COLUMNS, ["k"] if keyed else [], options={**(KEYED if keyed else APPEND), **options})
    )
    for n in range(3):
        paimon_java.write(table, [("+I", k, n) for k in range(n, 6)], Writer(user="writer"))
    twin, rows = Path(shutil.copytree(table, tmp_path / "twin")), sorted(paimon_java.read(table).rows)
    before = names(table)
    assert upgrade(table, operation=operation, full=True).outcome is Outcome.VERIFIED
    paimon_java.compact(twin, Compaction(full=True))
    ours, theirs = (names(place) - before for place in (table, twin))
    assert ours and all("nk-" in name for name in ours)
    assert {UNIQUE.sub("*.", name) for name in ours} == {UNIQUE.sub("*.", name) for name in theirs}
    if not keyed:
        assert sorted(paimon_java.read(table).rows) == rows
    assert sorted(paimon_java.read(table).rows) == sorted(paimon_java.read(twin).rows)
    assert upgrade(table, operation=operation).outcome is Outcome.UNCHANGED
    left = next(iter(ours))
    unused = re.sub(r"nk-[0-9a-f]{16}", f"nk-{'0' * 16}", left)
    shutil.copy(table / left, table / unused)
    aged(table)
    assert orphans(table) == [unused]


def names(table: Path) -> set[str]:
    """Data files and changelog files."""
    return {str(path.relative_to(table)) for path in table.glob("bucket-*/*") if not path.name.startswith(".")}
