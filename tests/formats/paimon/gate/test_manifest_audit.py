"""What lists say of manifests: merged ones are audited like new ones, and lines of older writers are no faults."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.formats.paimon.contents import SAMPLES
from tests.formats.paimon.gate.test_changes import with_options
from tests.formats.paimon.gate.test_sabotage import ONE_DAY, assert_stopped, before_the_gate
from tests.formats.paimon.sabotage import Staged
from tests.formats.paimon.upgrade import upgrade

from nightkeep.formats.paimon.gate.manifest_audit import partition_faults
from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.formats.paimon.metadata.values import Value
from nightkeep.model import Outcome

DAY = (parse_type("STRING"),)


@pytest.fixture
def merging(tmp_path: Path) -> Path:
    """Its next commit merges its manifests."""
    table = Path(shutil.copytree(SAMPLES / "orders", tmp_path / "orders"))
    return with_options(table, {"manifest.merge-min-count": "2"})


def test_merged_manifests_are_sound(merging: Path) -> None:
    document = upgrade(merging, **ONE_DAY)
    assert document.outcome is Outcome.VERIFIED, document.reason


def test_the_gate_catches_a_wrong_line_of_a_merged_manifest(merging: Path) -> None:
    def narrowed(staged: Staged) -> None:
        with staged.edited(staged.document["baseManifestList"]) as metas:
            (merged,) = (meta for meta in metas if "-nk-" in meta["_FILE_NAME"])
            merged["_PARTITION_STATS"]["_MAX_VALUES"] = merged["_PARTITION_STATS"]["_MIN_VALUES"]

    with before_the_gate(merging, narrowed):
        document = upgrade(merging, **ONE_DAY)
    assert_stopped(merging, document, "of partition column 0, which misses an entry")


def test_the_gate_catches_a_merged_entry_of_another_number_of_buckets(merging: Path) -> None:
    def rescaled(staged: Staged) -> None:
        (merged,) = (m for m in staged.records(staged.document["baseManifestList"]) if "-nk-" in m["_FILE_NAME"])
        with staged.edited(merged["_FILE_NAME"]) as entries:
            for entry in entries:
                entry["_TOTAL_BUCKETS"] = 64

    with before_the_gate(merging, rescaled):
        document = upgrade(merging, **ONE_DAY)
    assert_stopped(merging, document, "an entry of 64 buckets, the table has 2")


@pytest.mark.parametrize(
    ("rows", "low", "high", "nulls", "fault"),
    [
        (["a", None], "a", "a", 1, None),
        ([None], None, None, 1, None),
        (["b"], "a", "c", 0, None),
        (["b"], "a", "c", None, None),
        (["a", None], "a", "a", 0, "counts 0 nulls of partition column 0, its entries have 1"),
        (["b"], None, None, 0, "states None to None of partition column 0"),
        (["a", "c"], "b", "c", 0, "states b to c"),
        (["a", "c"], "a", "b", 0, "states a to b"),
    ],
)
def test_bounds_of_partitions_must_cover_every_entry(
    rows: Sequence[str | None], low: Value, high: Value, nulls: int | None, fault: str | None
) -> None:
    stats = {
        "_MIN_VALUES": encode_row([low], DAY),
        "_MAX_VALUES": encode_row([high], DAY),
        "_NULL_COUNTS": None if nulls is None else [nulls],
    }
    found = list(partition_faults(stats, [(row,) for row in rows], DAY))
    assert [fault in each for each in found] == [True] if fault else not found
