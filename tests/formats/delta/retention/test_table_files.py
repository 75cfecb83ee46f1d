"""Names of files in a Delta table's folder, and whose each is."""

import re
from pathlib import Path

import pytest
from tests.formats.delta.hand_log import HandLog
from tests.formats.delta.runs import files, opened

from nightkeep.errors import RefusedTable
from nightkeep.model.sweep_rules import DAY_MS

UUID = "8f0e1d2c-3b4a-4958-8776-655443322110"
GOLDEN = Path(__file__).parents[3] / "golden" / "delta"
TABLES = {path.parent.name: path for path in sorted(GOLDEN.glob("*/table"))}


def kind(table: Path, name: str) -> str | None:
    (place,) = opened(table).retention.table_files().places
    return next((each.name for each in place.kinds if re.fullmatch(each.pattern, name)), None)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    log = HandLog(tmp_path / "table", {"id": "long", "p q": "string", "d": "date"}, ("p q", "d"))
    log.commit(0, *log.head)
    return log.folder


@pytest.mark.parametrize("name", TABLES)
def test_every_file_of_a_real_table_has_a_kind_and_none_of_its_log_has(name: str) -> None:
    for file in files(TABLES[name]):
        assert (kind(TABLES[name], file) is None) == file.startswith("_delta_log/"), file


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (f"part-00000-{UUID}.c000.snappy.parquet", "data"),
        (f"p q=a b%2F0/d=2026-11-01/part-00000-{UUID}.c000.zstd.parquet", "data"),
        (f"p%20q=%C3%BC/d=x/part-00001-{UUID}-c000.snappy.parquet", "data"),
        (f"p q=__HIVE_DEFAULT_PARTITION__/d=_x/20261121_010203_00004_abcde-{UUID}", "data"),
        ("p q=a/d=b/part-0.parquet#1", "data temporary"),
        (f"_change_data/p q=a/d=b/cdc-00000-{UUID}.c000.snappy.parquet", "change data"),
        (f"deletion_vector_{UUID}.bin", "deletion vector"),
        (f"nk-0123456789abcdef-0/deletion_vector_{UUID}.bin", "deletion vector"),
        (f"_delta_log/.staged-nk-0123456789abcdef-1-{UUID}.json", "staged commit"),
        (f"_delta_log/.staged-nk-0123456789abcdef-1-{UUID}.json.tmp", "staged commit"),
        (f"_delta_log/.staged-nk-0123456789abcdef-1-{UUID}.parquet", "staged checkpoint"),
        (f"_delta_log/.staged-nk-0123456789abcdef-1-{UUID}.parquet.tmp", "staged checkpoint"),
        (f"_delta_log/_commit_{UUID}.json.tmp", "log temporary"),
        (f"_delta_log/.00000000000000000007.json.{UUID}.tmp", "log temporary"),
        (f"_delta_log/..00000000000000000007.json.{UUID}.tmp.crc", "log temporary"),
        ("_delta_log/00000000000000000007.json#12", "log temporary"),
        ("_delta_log/00000000000000000007.json", None),
        (f"_delta_log/00000000000000000007.checkpoint.{UUID}.parquet", None),
        (f"_delta_log/_sidecars/{UUID}.parquet", None),
        (f"_delta_log/_staged_commits/00000000000000000007.{UUID}.json", None),
        ("_delta_log/_last_checkpoint", None),
        ("_delta_log/00000000000000000007.crc", None),
        ("notes.txt", None),
        (f"p q=a/part-00000-{UUID}.c000.snappy.parquet", None),
        (f"x=a/d=b/part-00000-{UUID}.c000.snappy.parquet", None),
        (f"Ab/part-00000-{UUID}.c000.snappy.parquet", None),
        (f"backup/p q=a/d=b/part-00000-{UUID}.c000.snappy.parquet", None),
        (f"_hidden/part-00000-{UUID}.c000.snappy.parquet", None),
        (f".part-00000-{UUID}.c000.snappy.parquet.crc", None),
        ("_part.parquet", None),
        ("metadata/v1.metadata.json", None),
        ("_nightkeep/quarantine/x/0.file", None),
        (f"a/b/deletion_vector_{UUID}.bin", None),
    ],
)
def test_a_name_shows_whose_a_file_is(name: str, found: str | None, table: Path) -> None:
    assert kind(table, name) == found


def test_random_prefixes_are_folders_where_the_table_has_them(tmp_path: Path) -> None:
    configuration = {"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "3"}
    log = HandLog(tmp_path / "table", configuration=configuration)
    log.commit(0, *log.head)
    assert kind(log.folder, f"aZ9/part-00000-{UUID}.parquet") == "data"
    assert kind(log.folder, f"aZ/part-00000-{UUID}.parquet") is None
    assert kind(log.folder, f"_change_data/aZ9/cdc-00000-{UUID}.parquet") == "change data"


def test_the_floor_is_that_of_vacuum(table: Path) -> None:
    found = opened(table).retention.table_files()
    assert (found.floor_ms, found.home) == (7 * DAY_MS, "")


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("p q=a/inner/_delta_log/00000000000000000000.json", "p q=a/inner"),
        ("ice/metadata/00000-x.metadata.json", "ice"),
        ("ice/metadata/00000-x.metadata.json.gz", "ice"),
        ("ice/metadata/version-hint.text", "ice"),
        ("db/t/schema/schema-0", "db/t"),
        ("db/t/snapshot/snapshot-1", "db/t"),
        ("hudi/.hoodie/hoodie.properties", "hudi"),
        ("_delta_log/00000000000000000000.json", None),
        ("metadata/v1.metadata.json", None),
    ],
)
def test_other_tables_are_known_by_their_metadata(name: str, folder: str | None, table: Path) -> None:
    found = [
        match[1] for pattern in opened(table).retention.table_files().foreign if (match := re.fullmatch(pattern, name))
    ]
    assert found == ([] if folder is None else [folder])


@pytest.mark.parametrize(
    ("sign", "format"),
    [
        (".hoodie/hoodie.properties", "Hudi"),
        (".hoodie/timeline/20261101.commit", "Hudi"),
        ("schema/schema-0", "Paimon"),
        ("metadata/v1.metadata.json", "Iceberg"),
        (f"metadata/00003-{UUID}.gz.metadata.json", "Iceberg"),
        (f"metadata/00003-{UUID}.metadata.json.gz", "Iceberg"),
    ],
)
def test_another_formats_table_in_the_same_folder_is_refused(sign: str, format: str, table: Path) -> None:
    (table / sign).parent.mkdir(parents=True)
    (table / sign).write_text("{}")
    with pytest.raises(RefusedTable, match=f"{re.escape(sign)} in its folder is the metadata of a table of {format}'s"):
        opened(table).retention.table_files()


@pytest.mark.parametrize("name", ["metadata/notes.txt", "schema/orders.json", "snapshot/snapshot-1"])
def test_what_only_looks_like_another_formats_is_not(name: str, table: Path) -> None:
    (table / name).parent.mkdir(parents=True)
    (table / name).write_text("{}")
    assert opened(table).retention.table_files().home == ""


@pytest.mark.parametrize("formats", ["iceberg", "hudi, Iceberg"])
def test_what_uniform_writes_for_iceberg_is_the_tables_own(formats: str, tmp_path: Path) -> None:
    log = HandLog(tmp_path / "table", configuration={"delta.universalFormat.enabledFormats": formats})
    log.commit(0, *log.head)
    (log.folder / "metadata").mkdir()
    (log.folder / "metadata/v1.metadata.json").write_text("{}")
    assert opened(log.folder).retention.table_files().home == ""
    (log.folder / ".hoodie").mkdir()
    (log.folder / ".hoodie/hoodie.properties").write_text("")
    with pytest.raises(RefusedTable, match="Hudi"):
        opened(log.folder).retention.table_files()
