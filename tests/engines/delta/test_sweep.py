"""Orphans of Delta tables: what delta-spark's VACUUM finds of files that are a table's own, and what it leaves behind.

After a sweep every engine reads every retained version as before.
"""

import shutil
import uuid
from pathlib import Path

import pytest
from tests.drivers.delta_spark import DeltaSpark
from tests.formats.delta.sweeping import aged, part, plant, swept, vacuum_would
from tests.support.extended import some_extended

from nightkeep.model import Outcome

GOLDEN = Path(__file__).parents[2] / "golden" / "delta"
NAMES = (
    "change_feed",
    "checkpoint_v1_parts",
    "checkpoint_v2_json",
    "mapping_name",
    "mapping_upgraded",
    "overwrite",
    "partition_paths",
    "random_prefixes",
    "row_tracking",
    "vectors",
    "vectors_of_partitions",
)


def copy(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / name / "table", folder / "a table %20 of \u00fc"))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", some_extended(NAMES, keep=3))
def test_orphans_are_those_of_a_vacuum_but_for_names_that_no_writer_gives(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    table = copy(name, tmp_path)
    aged(table, late=2)
    beside = sorted({path.parent for path in table.rglob("part-*.parquet")})
    ours = plant(
        table, *(str((folder / part()).relative_to(table)) for folder in beside), part(end=" \u00e4%20b.parquet")
    )
    ours |= plant(table, f"deletion_vector_{uuid.uuid4()}.bin", f"Ab/deletion_vector_{uuid.uuid4()}.bin")
    ours |= plant(table, f"_change_data/cdc-00000-{uuid.uuid4()}.c000.snappy.parquet")
    strangers = plant(table, "notes.txt", "backup/" + part(), "x=1/" + part(), "model.bin")
    plant(table, "_hidden/" + part(), ".hidden.parquet", f".{part()}.crc")
    plant(table, part(), f"deletion_vector_{uuid.uuid4()}.bin", days=6.9)
    log = plant(table, f"_delta_log/_commit_{uuid.uuid4()}.json.tmp", f"_delta_log/.7.json.{uuid.uuid4()}.tmp")
    would = vacuum_would(delta_spark, table)
    told, found = swept(table)
    assert told.outcome is Outcome.SKIPPED
    assert found - log == would - strangers
    assert ours | log <= found
    assert strangers <= would
