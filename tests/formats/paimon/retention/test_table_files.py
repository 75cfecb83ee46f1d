"""Which names of a Paimon table's folder are of a kind that may go, and which are never touched."""

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.formats.paimon.contents import SAMPLES, opened
from tests.formats.paimon.keeping import names, retention

from nightkeep.errors import BeingCreated, RefusedTable
from nightkeep.retention.orphans.classify import classify

UUID = "c2d8813c-5e9f-4ab4-8fad-662173002a2f"
OURS = "nk-117e5f8cd5acfc0c-8fad6621-a1-0"
DAY = "dt=2026-11-01/bucket-0"

KINDS = {
    f"manifest/manifest-{UUID}-0": "manifest",
    f"manifest/manifest-{OURS}": "manifest",
    f"manifest/manifest-{UUID}-0.avro.sidecar": "manifest",
    f"manifest/manifest-list-{UUID}-0": "manifest-list",
    f"manifest/index-manifest-{UUID}-0": "index-manifest",
    f"manifest/.manifest-{UUID}-0.{UUID}.tmp": "temporary",
    f"index/index-{UUID}-3": "index",
    f"index/index-{OURS}": "index",
    f"index/btree-global-index-{UUID}.index": "index",
    f"statistics/stat-{UUID}-0": "statistics",
    f"{DAY}/data-{UUID}-0.parquet": "data",
    f"{DAY}/data-{OURS}.parquet": "data",
    f"{DAY}/data-{UUID}-0.zstd.parquet": "data",
    f"{DAY}/data-{UUID}-0.csv.gz": "data",
    f"{DAY}/data-{UUID}-0.blob": "data",
    f"{DAY}/data-{UUID}-0.vector.lance": "data",
    f"{DAY}/part_{UUID}-0.orc": "data",
    f"dt=2026-11-01/bucket-postpone/data-u-writer-s-0-w-{UUID}-0.avro": "data",
    f"dt=a b%2Fc\u00e9/bucket-17/data-{UUID}-0.parquet": "data",
    f"{DAY}/changelog-{UUID}-0.parquet": "changelog",
    f"{DAY}/data-{UUID}-0.parquet.index": "extra",
    f"{DAY}/data-{UUID}-1.index": "extra",
    f"{DAY}/data-{UUID}-0.parquet.17.lookup": "extra",
    f"{DAY}/index-{UUID}-0": "index",
    f"{DAY}/.data-{UUID}-0.parquet.{UUID}.tmp": "temporary",
    f"snapshot/.snapshot-8.{UUID}.tmp": "temporary",
    f"snapshot/.LATEST.{UUID}.tmp": "temporary",
    f"changelog/.changelog-8.{UUID}.tmp": "temporary",
    f"branch/branch-dev/snapshot/.snapshot-8.{UUID}.tmp": "temporary",
    f"snapshot/staged-{OURS}": "staged",
    f"snapshot/staged-{OURS}.tmp": "staged",
    f"branch/branch-dev/snapshot/staged-{OURS}": "staged",
}
UNTOUCHED = (
    "schema/schema-0",
    f"schema/.schema-1.{UUID}.tmp",
    "tag/tag-t",
    f"tag/.tag-t.{UUID}.tmp",
    "consumer/consumer-a",
    "service/primary-key-lookup",
    "snapshot/snapshot-1",
    "snapshot/snapshot-1.tmp",
    "snapshot/EARLIEST",
    "snapshot/LATEST",
    "changelog/changelog-1",
    "changelog/LATEST",
    "branch/branch-dev/schema/schema-0",
    "branch/branch-dev/tag/tag-t",
    "branch/branch-dev/snapshot/snapshot-1",
    f"{DAY}/data-{UUID}-0.managed.blob",
    f"{DAY}/report.parquet",
    f"{DAY}/_SUCCESS",
    f"{DAY}/sub/data-{UUID}-0.parquet",
    f"bucket-0/data-{UUID}-0.parquet",
    f"dt=1/hour=2/bucket-0/data-{UUID}-0.parquet",
    f"other=1/bucket-0/data-{UUID}-0.parquet",
    f"dt=1/bucket-x/data-{UUID}-0.parquet",
    f"dt=1/data-{UUID}-0.parquet",
    "manifest/notes.txt",
    "index/notes.txt",
    f"manifest/sub/manifest-{UUID}-0",
    "README.md",
    f"data-{UUID}-0.parquet",
    "_nightkeep/quarantine/x/0.file",
    "metadata/v1.metadata.json",
    "statistics/other",
    f"{DAY}/data-.parquet",
    "snapshot/other",
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The sample `orders` after its data files got another prefix."""
    copy = Path(shutil.copytree(SAMPLES / "orders", tmp_path / "orders"))
    schema = json.loads((copy / "schema/schema-0").read_bytes())
    schema |= {"id": 1, "options": schema["options"] | {"data-file.prefix": "part_"}}
    (copy / "schema/schema-1").write_text(json.dumps(schema))
    return copy


def _kinds(table: Path, found: list[str]) -> dict[str, str | None]:
    kinds = classify(pl.DataFrame({"name": found}), opened(table).retention.table_files())
    return dict(zip(kinds["name"], kinds["kind"], strict=True))


def test_every_name_is_of_its_kind(table: Path) -> None:
    assert _kinds(table, [*KINDS]) == KINDS


def test_other_names_are_of_none(table: Path) -> None:
    assert _kinds(table, [*UNTOUCHED]) == dict.fromkeys(UNTOUCHED)


def test_readers_of_regular_expressions_agree(table: Path) -> None:
    found = opened(table).retention.table_files()
    told = pa.array([*KINDS, *UNTOUCHED, "dt=1/_delta_log/x", "dt=1/schema/schema-0"])
    for pattern in (*(kind.pattern for place in found.places for kind in place.kinds), *found.foreign):
        whole = rf"\A(?:{pattern})\z"
        rust = pl.Series(told.to_pylist()).str.contains(whole).to_list()
        assert pc.match_substring_regex(told, whole).to_pylist() == rust
        assert [re.fullmatch(pattern, name) is not None for name in told.to_pylist()] == rust


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir()))
def test_samples_have_files_of_known_kinds_and_metadata(sample: str) -> None:
    kinds = _kinds(SAMPLES / sample, sorted(names(SAMPLES / sample)))
    metadata = {name for name, kind in kinds.items() if kind is None}
    assert metadata and all(re.match(r"(?:schema|snapshot)/(?:schema|snapshot|EARLIEST|LATEST)", n) for n in metadata)
    assert {"data", "manifest", "manifest-list"} <= {*kinds.values()}


@pytest.mark.parametrize(
    ("sign", "folder"),
    [
        ("dt=1/_delta_log/00000000000000000000.json", "dt=1/"),
        ("dt=1/bucket-0/_delta_log/00000000000000000000.json", "dt=1/bucket-0/"),
        ("dt=1/metadata/v3.metadata.json", "dt=1/"),
        ("dt=1/metadata/00001-x.gz.metadata.json", "dt=1/"),
        ("dt=1/inner/schema/schema-0", "dt=1/inner/"),
        ("dt=1/inner/.hoodie/hoodie.properties", "dt=1/inner/"),
        ("dt=1/inner/snapshot/snapshot-1", "dt=1/inner/"),
        ("dt=1/inner/metadata/version-hint.text", "dt=1/inner/"),
        ("index/inner/schema/schema-12", "index/inner/"),
        ("metadata/v3.metadata.json", None),
        ("_delta_log/00000000000000000000.json", None),
        ("schema/schema-0", None),
        ("branch/branch-dev/schema/schema-0", None),
        ("branch/branch-dev/snapshot/snapshot-1", None),
        ("snapshot/snapshot-1", None),
        ("branch/branch-dev/snapshot/inner/schema/schema-0", "branch/branch-dev/snapshot/inner/"),
    ],
)
def test_a_table_inside_of_the_table_is_reported(table: Path, sign: str, folder: str | None) -> None:
    found = classify(pl.DataFrame({"name": [sign]}), opened(table).retention.table_files())
    assert found["nested"].to_list() == [folder]


def test_data_in_a_folder_of_its_own(table: Path) -> None:
    schema = json.loads((table / "schema/schema-1").read_bytes())
    schema["options"]["data-file.path-directory"] = "da.ta"
    (table / "schema/schema-1").write_text(json.dumps(schema))
    inside, outside = f"da.ta/{DAY}/data-{UUID}-0.parquet", f"{DAY}/data-{UUID}-0.parquet"
    other = f"daxta/{DAY}/data-{UUID}-0.parquet"
    assert _kinds(table, [inside, outside, other]) == {inside: "data", outside: None, other: None}


def test_a_branch_without_schema_shows_nothing(table: Path) -> None:
    (table / "branch/branch-dev").mkdir(parents=True)
    with pytest.raises(BeingCreated, match=r"branch-dev/schema.*its creation has not ended"):
        opened(table).retention.table_files()
    # So far does Java get before it copies schemas.
    for folder, name in (("tag", "tag-t"), ("snapshot", "snapshot-1")):
        (table / "branch/branch-dev" / folder).mkdir()
        shutil.copy(next((table / "snapshot").glob("snapshot-*")), table / "branch/branch-dev" / folder / name)
    with pytest.raises(BeingCreated):
        opened(table).retention.roots(retention())


@pytest.mark.parametrize(
    ("sign", "format"),
    [
        ("_delta_log/00000000000000000000.json", "Delta"),
        (".hoodie/hoodie.properties", "Hudi"),
        (".hoodie/timeline/1.commit", "Hudi"),
    ],
)
def test_another_formats_table_in_the_same_folder_is_refused(sign: str, format: str, table: Path) -> None:
    (table / sign).parent.mkdir(parents=True)
    (table / sign).write_text("{}")
    with pytest.raises(RefusedTable, match=f"{re.escape(sign)} in its folder is the metadata of a table of {format}'s"):
        opened(table).retention.table_files()


def test_what_paimon_writes_for_iceberg_is_the_tables_own(table: Path) -> None:
    (table / "metadata").mkdir()
    (table / "metadata/v1.metadata.json").write_text("{}")
    assert opened(table).retention.table_files().home == ""


@pytest.fixture
def created(table: Path) -> Path:
    """A table of which there is a schema and nothing else."""
    for name in names(table):
        if not name.startswith("schema/"):
            (table / name).unlink()
    return table


def test_a_table_that_was_created_and_no_more_was_never_written(created: Path) -> None:
    (created / "README.md").write_text("about to be filled")
    assert opened(created).never_written()


@pytest.mark.parametrize(
    "left",
    [
        "snapshot/LATEST",
        "snapshot/snapshot-1",
        "tag/tag-t",
        "changelog/changelog-1",
        "branch/branch-dev/tag/tag-t",
        f"manifest/manifest-{UUID}-0",
        f"manifest/manifest-list-{UUID}-0",
        f"index/index-{UUID}-0",
        f"statistics/stat-{UUID}-0",
        f"{DAY}/data-{UUID}-0.parquet",
        f"{DAY}/part_{UUID}-0.orc",
        f"{DAY}/.data-{UUID}-0.parquet.{UUID}.tmp",
    ],
)
def test_a_table_that_lost_its_versions_was_written(left: str, created: Path) -> None:
    (created / left).parent.mkdir(parents=True, exist_ok=True)
    (created / left).write_text("{}")
    if left.startswith("branch/"):
        (created / "branch/branch-dev/schema").mkdir()
        (created / "branch/branch-dev/schema/schema-0").write_bytes((created / "schema/schema-0").read_bytes())
    assert not opened(created).never_written()
