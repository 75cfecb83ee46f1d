"""The reader on tables that engines wrote: the rows that delta-spark read, whole, filtered and in the past."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from tests.drivers.lake_rows import Rows, rows_of
from tests.support.read_conditions import require_filters_agree

import nightkeep
from nightkeep.errors import CorruptMetadata, RefusedTable, UsageError
from nightkeep.formats.delta.reading.files import file_spans, partition_spans
from nightkeep.formats.delta.reading.versions import find_version
from nightkeep.model import Address
from nightkeep.storage import open_storage

GOLDEN = Path(__file__).parents[3] / "golden" / "delta"
SAMPLES = Path(__file__).parents[4] / "samples" / "delta" / "shop.db"
TABLES = sorted(path.parent.name for path in GOLDEN.glob("*/rows.json"))


@pytest.mark.few(12)
@pytest.mark.parametrize("name", TABLES)
def test_the_reader_shows_what_delta_spark_showed(name: str) -> None:
    expected = Rows.of(json.loads((GOLDEN / name / "rows.json").read_text()))
    address = f"delta:{GOLDEN / name / 'table'}"
    found = nightkeep.read(address).read_all()
    assert rows_of(found).ordered() == expected
    require_filters_agree(lambda where: nightkeep.read(address, where=where).read_all(), found, seed=len(name))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["clicks", "readings", "accounts"])
def test_filters_find_the_rows_of_samples(name: str) -> None:
    address = f"delta:{SAMPLES / name}"
    rows = nightkeep.read(address).read_all()
    assert require_filters_agree(lambda where: nightkeep.read(address, where=where).read_all(), rows, seed=3) > 5


def test_older_versions_are_read_and_others_are_refused() -> None:
    address = f"delta:{SAMPLES / 'clicks'}"
    counts = [nightkeep.read(address, version=version).read_all().num_rows for version in range(12, 16)]
    assert len(set(counts)) > 1
    with pytest.raises(UsageError, match=r"expected a version up to \d+, found 4711"):
        nightkeep.read(address, version=4711)
    with pytest.raises(UsageError, match="expected no tag, as Delta tables have none, found 'kept'"):
        nightkeep.read(address, tag="kept")
    with pytest.raises(RefusedTable, match="view read-optimized is not handled"):
        nightkeep.read(address, view="read-optimized")
    raw, merged = (nightkeep.read(address, view=view).read_all() for view in ("raw", "merge-on-read"))
    assert raw == merged


def test_partition_columns_alone_can_be_read() -> None:
    days = nightkeep.read(f"delta:{SAMPLES / 'clicks'}", columns=["day"]).read_all()
    assert days.num_rows == nightkeep.read(f"delta:{SAMPLES / 'clicks'}").read_all().num_rows
    one = nightkeep.read(f"delta:{SAMPLES / 'clicks'}", columns=["day"], where="day = '2026-11-02'").read_all()
    assert set(map(str, one.column("day").to_pylist())) == {"2026-11-02"}


def test_a_plan_states_what_statistics_leave_out() -> None:
    plan = nightkeep.read_plan(f"delta:{SAMPLES / 'readings'}", where="ts < TIMESTAMP '2000-01-01 00:00:00'")
    assert "32 of 32 files left out by statistics of files" in str(plan)
    days = nightkeep.read_plan(f"delta:{SAMPLES / 'clicks'}", where="day = DATE '2026-11-02'")
    assert "5 of 6 partitions left out by partition values" in str(days)


def test_bounds_of_floats_leave_out_nothing() -> None:
    address = Address("delta", str(SAMPLES / "readings"), "readings")
    snapshot = find_version(address, open_storage(address.location))
    (unit,) = snapshot.units
    floats = {(field.name,) for field in snapshot.schema.fields if pa.types.is_floating(field.type)}
    assert floats and not file_spans(unit, floats)
    assert partition_spans(unit, floats) == {}


def test_a_file_with_other_rows_than_the_log_states_is_named(tmp_path: Path) -> None:
    table = tmp_path / "accounts"
    shutil.copytree(SAMPLES / "accounts", table)
    log = max((table / "_delta_log").glob("*.json"))
    for path in (table / "_delta_log").glob("*.json"):
        path.write_text(path.read_text().replace('\\"numRecords\\":', '\\"numRecords\\":1'))
    assert log.exists()
    with pytest.raises(CorruptMetadata, match=r"expected 1\d+ rows as the log states"):
        nightkeep.read(f"delta:{table}").read_all()
