"""A table without keys that Java and we cared for in turn: what a sweep finds, and what an expiry leaves."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.appended import SMALL, VECTORS, Appended
from tests.formats.paimon.keeping import aged, expired, names, orphans

from nightkeep.model import Outcome

NOW = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1", "snapshot.time-retained": "1 ms"}
COLUMNS = (("text", "STRING"), ("n", "INT"))


@pytest.mark.few(1)
@pytest.mark.parametrize("beside_data", ["false", "true"])
def test_a_table_with_several_vector_files(paimon_java: PaimonJava, tmp_path: Path, beside_data: str) -> None:
    options = {**VECTORS, **SMALL, "index-file-in-data-file-dir": beside_data}
    table = Appended.create(paimon_java, tmp_path / "t", options, columns=COLUMNS)
    for _ in range(2):
        for _ in range(3):
            table.append(20)
            table.delete(0.1, files=0.6)
        assert table.optimize().outcome is Outcome.VERIFIED
        table.delete(0.1)
    aged(table.folder)
    assert orphans(table.folder) == [] == paimon_java.delete_orphans(table.folder)["files"]
    for name, value in NOW.items():
        paimon_java.alter(table.folder, {"change": "set_option", "name": name, "value": value})
    before = table.rows()
    theirs = replace(table, folder=Path(shutil.copytree(table.folder, tmp_path / "theirs")))
    assert paimon_java.expire_as_configured(theirs.folder) > 0
    assert expired(table.folder).outcome is Outcome.VERIFIED
    assert table.rows() == theirs.rows() == before
    hints = {"snapshot/EARLIEST", "snapshot/LATEST"}
    assert names(table.folder) - hints == names(theirs.folder) - hints
    aged(table.folder)
    assert orphans(table.folder) == []


def test_what_an_earlier_attempt_left_is_an_orphan(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = Appended.create(paimon_java, tmp_path / "t", {**VECTORS, **SMALL}, columns=COLUMNS, partitioned=False)
    table.append(5)
    left = ("bucket-0/data-nk-0123456789abcdef-01234567-aa-0-p100.parquet", "index/index-nk-0123456789abcdef-0-aa-1")
    (table.folder / "index").mkdir()
    for name in left:
        (table.folder / name).write_bytes(b"left")
    aged(table.folder)
    assert orphans(table.folder) == sorted(left)
