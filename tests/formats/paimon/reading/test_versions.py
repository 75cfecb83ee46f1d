"""Versions and tags as readers see them; what only concerns writers is no refusal, everything else is."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.formats.paimon.contents import SAMPLES

import nightkeep
from nightkeep.errors import CorruptMetadata, RefusedTable, UsageError
from nightkeep.formats.paimon.reading.versions import OF_WRITERS, find_version
from nightkeep.model import Address
from nightkeep.storage import open_storage


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "untouched", tmp_path / "untouched"))


def with_options(table: Path, options: Mapping[str, str]) -> Path:
    schema = max((table / "schema").glob("schema-*"))
    document = json.loads(schema.read_text())
    schema.write_text(json.dumps(document | {"options": document["options"] | options}))
    return table


WRITERS = {
    "changelog-producer": "full-compaction",
    "commit.callbacks": "some.Class",
    "record-level.expire-time": "1 d",
    "compaction.force-rewrite-all-files": "true",
    "lookup.remote-file.enabled": "true",
    "metadata.iceberg.storage": "table-location",
    "pk-vector.index.columns": "text",
    "pk-btree.index.columns": "text",
    "pk-bitmap.index.columns": "text",
    "pk-full-text.index.columns": "text",
    "row-tracking.enabled": "true",
    "visibility-callback.enabled": "true",
}


@pytest.mark.parametrize("option", WRITERS)
def test_what_concerns_writers_does_not_keep_readers_away(option: str, table: Path) -> None:
    with_options(table, {option: WRITERS[option]})
    assert nightkeep.read(f"paimon:{table}").read_all().num_rows == 300


def test_every_option_of_writers_is_tried() -> None:
    assert WRITERS.keys() >= OF_WRITERS


READERS = {
    "branch": "other",
    "query-auth.enabled": "true",
    "data-evolution.enabled": "true",
    "data-file.external-paths": "file:/elsewhere",
    "bucket": "-2",
    "type": "object-table",
    "pk-clustering-override": "true",
}


@pytest.mark.parametrize("option", READERS)
def test_what_readers_would_have_to_know_is_refused(option: str, table: Path) -> None:
    with_options(table, {"data-file.external-paths.strategy": "round-robin", option: READERS[option]})
    with pytest.raises(RefusedTable, match=r"is not handled"):
        nightkeep.read(f"paimon:{table}")


def test_a_table_that_was_never_written_has_no_rows(table: Path) -> None:
    for folder in ("snapshot", "manifest", "bucket-0", "bucket-1"):
        shutil.rmtree(table / folder)
    found = nightkeep.read(f"paimon:{table}").read_all()
    assert (found.num_rows, found.column_names) == (0, ["id", "text"])
    with pytest.raises(UsageError, match="expected no version, as the table was never written, found 1"):
        nightkeep.read(f"paimon:{table}", version=1)
    with pytest.raises(UsageError, match="expected no tag, as the table has none, found 'kept'"):
        nightkeep.read(f"paimon:{table}", tag="kept")


def test_a_snapshot_that_is_another_is_named(table: Path) -> None:
    shutil.copy(table / "snapshot" / "snapshot-1", table / "snapshot" / "snapshot-9")
    with pytest.raises(CorruptMetadata, match="snapshot-9: expected its own id, found 1"):
        nightkeep.read(f"paimon:{table}", version=9)


def test_a_tag_cannot_lead_out_of_the_table(table: Path) -> None:
    with pytest.raises((CorruptMetadata, UsageError), match="snapshot-1"):
        nightkeep.read(f"paimon:{table}", tag="x/../../snapshot/../../untouched/snapshot/snapshot-1")


def test_a_version_without_its_schema_is_named(table: Path) -> None:
    address = Address("paimon", str(table), "untouched")
    raw = json.loads((table / "snapshot" / "snapshot-1").read_text())
    (table / "snapshot" / "snapshot-1").write_text(json.dumps(raw | {"schemaId": 77}))
    with pytest.raises(CorruptMetadata, match=r"expected a schema among \[0\], found schema 77"):
        find_version(address, open_storage(address.location), 1)
