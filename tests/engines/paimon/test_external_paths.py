"""Tables whose data files are in external paths are refused by name, until Java has moved the files back."""

from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.paimon.keeping import aged, expired, live_names, names, orphans
from tests.formats.paimon.upgrade import upgrade

import nightkeep
from nightkeep.errors import RefusedTable
from nightkeep.model import Outcome

COLUMNS = [("k", "INT NOT NULL"), ("note", "STRING")]
OPTIONS = {
    "bucket": "1",
    "deletion-vectors.enabled": "true",
    "write-only": "true",
    "snapshot.num-retained.min": "1",
    "data-file.external-paths.strategy": "round-robin",
}


def test_files_outside_are_refused_until_java_has_moved_them_back(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table, outside = tmp_path / "t", tmp_path / "outside"
    outside.mkdir()
    options = {**OPTIONS, "data-file.external-paths": f"file://{outside}"}
    paimon_java.create(table, Layout(COLUMNS, ["k"], options=options))
    paimon_java.write(table, [("+I", k, f"{k}") for k in range(50)], Writer(user="writer"))
    (held,) = paimon_java.files(table)
    assert held.external_path and Path(held.external_path.removeprefix("file:")).is_relative_to(outside)

    def refused(feature: str) -> None:
        document = upgrade(table)
        assert document.outcome is Outcome.REFUSED and feature in str(document.reason)
        with pytest.raises(RefusedTable, match=feature):
            nightkeep.read(f"paimon:{table}")
        with pytest.raises(RefusedTable, match=feature):
            orphans(table)

    refused("option data-file.external-paths is not handled")
    paimon_java.alter(table, {"change": "remove_option", "name": "data-file.external-paths"})
    refused("a file outside the table's folder is not handled")

    rewritten = {"compaction.force-rewrite-all-files": "true"}
    paimon_java.compact(table, Compaction(full=True, user="compactor", options=rewritten))
    assert not any(file.external_path for file in paimon_java.files(table))
    paimon_java.expire(table)
    assert not [path for path in outside.rglob("*") if path.is_file()]
    paimon_java.write(table, [("+U", k, "later") for k in range(20)], Writer(user="writer"))
    assert upgrade(table).outcome is Outcome.VERIFIED
    assert nightkeep.read(f"paimon:{table}").read_all().num_rows == 50
    (table / "bucket-0" / "data-left-over.parquet").write_bytes(b"left")
    aged(table)
    assert orphans(table) == ["bucket-0/data-left-over.parquet"]
    assert expired(table, retain_last=1).outcome in (Outcome.VERIFIED, Outcome.UNCHANGED)
    assert {*live_names(table)} <= names(table)
