"""Every feature of the protocol: read as delta-spark reads it, or refused by name; and the page that says which."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from docs_tools.delta_features import document
from pyspark.sql.types import VariantVal
from tests.drivers.lake_rows import Rows, rows_of
from tests.formats.delta.hand_log import HandLog, vector
from tests.formats.delta.hand_log import add as added

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.delta.gate import scan
from nightkeep.formats.delta.metadata.features import FEATURES, refuse_features, refuse_reads, supported
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, load
from nightkeep.model import Address
from nightkeep.storage import LocalStorage

ROOT = Path(__file__).parents[4]
GOLDEN = Path(__file__).parents[3] / "golden" / "delta"
WRITTEN = {
    "allowColumnDefaults": ["constraints"],
    "appendOnly": ["append_only"],
    "changeDataFeed": ["change_feed"],
    "checkConstraints": ["constraints"],
    "checkpointProtection": ["protocol_checks"],
    "clustering": ["clustered"],
    "columnMapping": ["mapping_name", "mapping_id", "mapping_upgraded"],
    "deletionVectors": [
        "vectors",
        "vectors_of_partitions",
        "inline_vector",
        "random_prefixes",
        "optimize_vectors",
        "merge",
        "reorg_purge",
    ],
    "domainMetadata": ["clustered", "row_tracking"],
    "generatedColumns": ["constraints"],
    "identityColumns": ["constraints"],
    "inCommitTimestamp": ["in_commit_timestamps"],
    "invariants": ["constraints", "partition_types", "overwrite", "vacuum"],
    "materializePartitionColumns": ["optimize"],
    "rowTracking": ["row_tracking", "row_tracking_backfilled"],
    "timestampNtz": ["timestamp_ntz"],
    "typeWidening": ["type_widening"],
    "typeWidening-preview": ["type_widening"],
    "v2Checkpoint": ["checkpoint_v2_parquet", "checkpoint_v2_json"],
    "vacuumProtocolCheck": ["protocol_checks"],
}
"""Handled features by name -> tables that delta-spark wrote with them."""
UNWRITTEN = {"materializePartitionColumns", "typeWidening-preview"}
"""delta-spark's tables look as those with these features do, once the protocol says so: it materialises partition
columns anyway, and a preview is the feature."""
REFUSED = sorted(name for name, feature in FEATURES.items() if feature.refused)


VARIANTS = ("variantShredding", "variantShredding-preview", "variantType", "variantType-preview")
"""Handled features of the table that delta-spark wrote with a variant, whose rows no JSON holds as they are stored."""


def test_every_handled_feature_is_proven() -> None:
    assert WRITTEN.keys() | {*VARIANTS} == {name for name, feature in FEATURES.items() if feature.handled}


@pytest.mark.parametrize("feature", WRITTEN)
def test_a_handled_feature_reads_as_the_engine_reads_it(tmp_path: Path, feature: str) -> None:
    for name in WRITTEN[feature]:
        folder = tmp_path / name
        shutil.copytree(GOLDEN / name, folder)
        if feature in UNWRITTEN:
            name_feature(folder / "table" / "_delta_log", feature)
        snapshot, rows = read(folder / "table")
        assert feature in supported(snapshot.raw_protocol)
        assert rows == golden_rows(folder / "rows.json")


@pytest.mark.parametrize("feature", VARIANTS)
def test_variants_are_read_as_they_are_stored(tmp_path: Path, feature: str) -> None:
    table = Path(shutil.copytree(GOLDEN / "variant/table", tmp_path / "t"))
    if feature != "variantType":
        name_feature(table / "_delta_log", feature)
    storage = LocalStorage(str(table))
    snapshot = load(Address("delta", str(table), "golden"), storage)
    assert feature in supported(snapshot.raw_protocol)
    (unit,) = snapshot.units
    ((row,),) = (batch.to_pylist() for batch in scan.rows(storage, unit, scan.survivors(storage, unit)))
    assert (row["id"], VariantVal(**row["v"]).toJson()) == (1, '{"a":[1,"x"]}')


def name_feature(log: Path, feature: str) -> None:
    """Lets the table's protocol name a feature which its files look like; commits alone then tell the protocol."""
    for checkpoint in log.glob("*.checkpoint.*"):
        checkpoint.unlink()
    for commit in log.glob("[0-9]*.json"):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            if "protocol" in action:
                action["protocol"] = _naming(action["protocol"], feature)
        commit.write_text("".join(json.dumps(action) + "\n" for action in actions))


def _naming(told: dict[str, Any], feature: str) -> dict[str, Any]:
    previewed = feature.removesuffix("-preview")
    lists = {
        name: sorted({*told[name], feature} - {previewed})
        for name in ("readerFeatures", "writerFeatures")
        if previewed in told.get(name, ())
    }
    return {**told, "minWriterVersion": 7, "writerFeatures": sorted(supported(told) | {feature}), **lists}


def read(table: Path) -> tuple[DeltaSnapshot, Rows]:
    """The table's own columns of every surviving row."""
    storage = LocalStorage(str(table))
    snapshot = load(Address("delta", str(table), "golden"), storage)
    batches = [batch for unit in snapshot.units for batch in scan.rows(storage, unit, scan.survivors(storage, unit))]
    names = [field.name for field in snapshot.schema.fields]
    return snapshot, rows_of(pa.Table.from_batches(batches).select(names)).ordered()


def golden_rows(file: Path) -> Rows:
    return Rows.of(json.loads(file.read_text())).ordered()


# Refusals


def protocol(*features: str, reader: int = 3, writer: int = 7) -> dict[str, Any]:
    return {
        "minReaderVersion": reader,
        "minWriterVersion": writer,
        "readerFeatures": list(features),
        "writerFeatures": list(features),
    }


USED: Mapping[str, Mapping[str, Any]] = {
    "geospatial": {"type": "geometry(OGC:CRS84)"},
    "collations": {"type": "string", "metadata": {"__COLLATIONS": {"c": "spark.UTF8_LCASE"}}},
}
"""Features of types -> a column that uses them. "-preview" and "-dev" are the same."""
SET = {
    **{name: f"delta.enable{name[0].upper()}{name[1:]}" for name in FEATURES if name.startswith("iceberg")},
    "redirectReaderWriter-preview": "delta.redirectReaderWriter-preview",
    "redirectWriterOnly-preview": "delta.redirectWriterOnly-preview",
    "coordinatedCommits-preview": "delta.coordinatedCommits.commitCoordinator-preview",
}
"""Features -> the property that uses them."""


def listing(folder: Path, feature: str, *, used: bool) -> HandLog:
    """A table whose protocol lists the feature, and uses it."""
    column = USED.get(feature.partition("-")[0]) if used else None
    properties = {SET[feature]: "true"} if used and feature in SET else {}
    log = HandLog(folder, features=["deletionVectors", feature], configuration=properties)
    fields = [{"name": "c", "nullable": True, "metadata": {}, **column}] if column else []
    told = json.loads(json.dumps(log.head))
    whole = json.loads(told[1]["metaData"]["schemaString"])
    told[1]["metaData"]["schemaString"] = json.dumps({**whole, "fields": whole["fields"] + fields})
    log.commit(0, *told)
    return log


def refused(log: HandLog) -> None:
    told = log.load()
    refuse_features("hand", told.raw_protocol, told.raw_metadata, domains=told.domains)


@pytest.mark.parametrize("feature", REFUSED)
def test_a_refused_feature_is_named(tmp_path: Path, feature: str) -> None:
    log = listing(tmp_path, feature, used=True)
    with pytest.raises(RefusedTable, match=r"hand: (table feature|column c)") as found:
        refused(log)
    if "hand: table feature" in str(found.value):
        assert f"table feature {feature.partition('-')[0]}" in str(found.value)
        assert found.value.advice == FEATURES[feature].refused


@pytest.mark.parametrize("feature", [name for name in REFUSED if name.partition("-")[0] in USED or name in SET])
def test_a_feature_that_is_listed_and_not_used_refuses_nothing(tmp_path: Path, feature: str) -> None:
    refused(listing(tmp_path, feature, used=False))


@pytest.mark.parametrize("feature", ["quantum", "inCommitTimestamp-preview", "icebergCompatV2", "collations"])
def test_what_only_writers_must_know_refuses_no_read(tmp_path: Path, feature: str) -> None:
    log = listing(tmp_path, feature, used=True)
    assert log.load().version == 0
    with pytest.raises(RefusedTable, match=f"table feature {feature}"):
        refused(log)


@pytest.mark.parametrize("feature", ["catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview"])
def test_a_reader_must_know_where_commits_are(tmp_path: Path, feature: str) -> None:
    """Whatever list has the feature: a version that the log shows may be old."""
    with pytest.raises(RefusedTable, match=f"table feature {feature}"):
        listing(tmp_path, feature, used=True).load()


def test_a_newer_writer_version_refuses_no_read() -> None:
    refuse_reads("t", protocol(reader=3, writer=8), {})
    with pytest.raises(RefusedTable, match=r"\(4, 7\) is unknown"):
        refuse_reads("t", protocol(reader=4), {})


def test_an_unknown_feature_is_refused_by_name_wherever_it_is_listed() -> None:
    for told in (
        {**protocol(), "readerFeatures": ["quantum"]},
        {**protocol(), "writerFeatures": ["quantum"]},
        {**protocol(reader=1), "writerFeatures": ["quantum"]},
    ):
        with pytest.raises(RefusedTable, match="table feature quantum is unknown"):
            refuse_features("t", told, {})


@pytest.mark.parametrize(("reader", "writer"), [(4, 7), (3, 8), (99, 99)])
def test_a_newer_protocol_is_refused(reader: int, writer: int) -> None:
    with pytest.raises(RefusedTable, match=rf"protocol version \({reader}, {writer}\) is unknown"):
        refuse_features("t", protocol(reader=reader, writer=writer), {})


def test_data_files_of_other_formats_are_refused() -> None:
    refuse_features("t", protocol(), {"format": {"provider": "parquet"}})
    with pytest.raises(RefusedTable, match="data files in orc"):
        refuse_features("t", protocol(), {"format": {"provider": "orc"}})


LEGACY = {
    2: {"appendOnly", "invariants"},
    3: {"checkConstraints"},
    4: {"changeDataFeed", "generatedColumns"},
    5: set[str](),
    6: {"identityColumns"},
}
"""What each writer version added (PROTOCOL.md, "Writer Version Requirements"); column mapping goes by the reader's."""


@pytest.mark.parametrize("writer", range(1, 7))
@pytest.mark.parametrize("reader", [1, 2])
def test_old_versions_imply_their_features(reader: int, writer: int) -> None:
    told = {**protocol("ignored", reader=reader, writer=writer)}
    expected = {name for version, names in LEGACY.items() if version <= writer for name in names}
    assert supported(told) == expected | ({"columnMapping"} if reader == 2 else set())


def test_new_versions_imply_nothing() -> None:
    assert supported(protocol()) == set()
    assert supported({**protocol("x", reader=2)}) == {"x", "columnMapping"}


def test_lists_are_there_where_versions_ask_for_them() -> None:
    for name in ("readerFeatures", "writerFeatures"):
        with pytest.raises(CorruptMetadata, match=name):
            supported({**protocol(), name: None})


def test_a_vector_without_its_feature_is_no_version(tmp_path: Path) -> None:
    """delta-spark would not apply it, others would."""
    log = HandLog(tmp_path, features=[])
    log.commit(0, *log.head, added("x", deletionVector=vector("v")))
    with pytest.raises(CorruptMetadata, match="no deletion vector"):
        log.load()


def test_domains_of_other_features_are_kept() -> None:
    snapshot, _ = read(GOLDEN / "clustered/table")
    assert "delta.clustering" in snapshot.domains


# The page


def test_the_page_is_printed_from_the_table() -> None:
    assert (ROOT / "docs/delta-features.md").read_text() == document()


def test_the_page_names_tests_that_exist() -> None:
    for name, test in re.findall(r"^\| `([^`]+)` \|.*\| `([^`]+)` \|$", document(), re.MULTILINE):
        file, function = test.removesuffix(f"[{name}]").split("::")
        assert test.endswith(f"[{name}]") and f"def {function}(" in (ROOT / file).read_text()
