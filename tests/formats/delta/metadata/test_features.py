"""Every feature of the protocol: read as delta-spark reads it, or refused by name; and the page that says which."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.drivers.lake_rows import Rows, rows_of
from tests.formats.delta.hand_log import HandLog, vector
from tests.formats.delta.hand_log import add as added

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.delta.gate import scan
from nightkeep.formats.delta.metadata.features import FEATURES, document, refuse_deletes, refuse_features, supported
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, load
from nightkeep.model import Address, Operation
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


def test_every_handled_feature_is_proven() -> None:
    assert WRITTEN.keys() == {name for name, feature in FEATURES.items() if feature.handled}


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
        "minReaderVersion": reader, "minWriterVersion": writer, "readerFeatures": list(features),
        "writerFeatures": list(features),
    }  # fmt: skip


@pytest.mark.parametrize("feature", REFUSED)
def test_a_refused_feature_is_named(tmp_path: Path, feature: str) -> None:
    log = HandLog(tmp_path, features=["deletionVectors", feature])
    log.commit(0, *log.head)
    with pytest.raises(RefusedTable, match=f"hand: table feature {feature} is not handled; ") as refused:
        log.load()
    assert refused.value.advice == FEATURES[feature].refused


def test_variant_tables_of_the_engine_are_refused() -> None:
    with pytest.raises(RefusedTable, match="variantType"):
        read(GOLDEN / "variant/table")


def test_an_unknown_feature_is_refused_by_name_wherever_it_is_listed() -> None:
    for told in (
        {**protocol(), "readerFeatures": ["quantum"]}, {**protocol(), "writerFeatures": ["quantum"]},
        {**protocol(reader=1), "writerFeatures": ["quantum"]},
    ):  # fmt: skip
        with pytest.raises(RefusedTable, match="table feature quantum is unknown"):
            refuse_features("t", told, {}, None)


@pytest.mark.parametrize(("reader", "writer"), [(4, 7), (3, 8), (99, 99)])
def test_a_newer_protocol_is_refused(reader: int, writer: int) -> None:
    with pytest.raises(RefusedTable, match=rf"protocol version \({reader}, {writer}\) is unknown"):
        refuse_features("t", protocol(reader=reader, writer=writer), {}, None)


def test_data_files_of_other_formats_are_refused() -> None:
    refuse_features("t", protocol(), {"format": {"provider": "parquet"}}, None)
    with pytest.raises(RefusedTable, match="data files in orc"):
        refuse_features("t", protocol(), {"format": {"provider": "orc"}}, None)


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


def test_clustered_tables_are_read_and_not_clustered_otherwise() -> None:
    told = load(Address("delta", "", "t"), LocalStorage(str(GOLDEN / "clustered/table")))
    for operation in (None, Operation.PERSIST_DELETES):
        refuse_features("t", told.raw_protocol, told.raw_metadata, operation)
    with pytest.raises(RefusedTable, match=r"clustering is not handled; .*the engine's own OPTIMIZE"):
        refuse_features("t", told.raw_protocol, told.raw_metadata, Operation.OPTIMIZE)


def test_rows_are_deleted_only_where_the_table_allows_it() -> None:
    enabled = {"delta.enableDeletionVectors": "true"}
    kept = {"delta.appendOnly": "TRUE"}
    refuse_deletes("t", protocol("deletionVectors"), {"configuration": {**enabled, **kept}})
    with pytest.raises(RefusedTable, match=r"append-only.*delta\.appendOnly = false"):
        refuse_deletes("t", protocol("deletionVectors", "appendOnly"), {"configuration": {**enabled, **kept}})
    refuse_deletes("t", protocol("deletionVectors", "appendOnly"), {"configuration": enabled})
    for features, properties in ((("deletionVectors",), {}), ((), enabled)):
        with pytest.raises(RefusedTable, match="enableDeletionVectors"):
            refuse_deletes("t", protocol(*features), {"configuration": properties})


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
