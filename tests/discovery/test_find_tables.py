"""Places of a policy -> the tables that are there: samples of the engines, odd folders, stores and catalogs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.discovery.warehouses import (
    DELTA,
    DISCOVER,
    ICEBERG,
    PAIMON,
    SAMPLES,
    delta_table,
    paimon_table,
    place_samples,
    policy,
)
from tests.drivers.s3_server import Bucket
from tests.object_store.bucket_tables import upload

from nightkeep.discovery import Found, find_tables
from nightkeep.formats import open_table
from nightkeep.limits import LISTED
from nightkeep.storage import LocalStorage


def found(folder: Path, *entries: str) -> Found:
    lines = "".join(f"  - {entry}\n" for entry in entries)
    return find_tables(policy(folder, f"version: 1\ndiscover:\n{lines}").discoveries)


def names(told: Found) -> list[str]:
    return [each.name for each in told.tables]


def whys(told: Found) -> str:
    return "\n".join(each.why for each in told.unlistable)


def test_the_samples_are_found_and_can_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = find_tables(policy(place_samples(tmp_path, monkeypatch), DISCOVER).discoveries)
    expected = [f"shop.{name}" for name in PAIMON] + [f"lake.{name}" for name in DELTA]
    assert names(told) == [*expected, *(f"stream.{name}" for name in ICEBERG)] and not told.unlistable
    assert {each.found_in for each in told.tables} == {
        "discover paimon:warehouse/paimon",
        "discover delta:warehouse/delta/shop.db",
        "discover iceberg:lake",
    }
    for table in told.tables:
        assert open_table(table.address).snapshot().version >= 0
    assert Found.from_json(told.to_json()) == told  # type: ignore[arg-type]


def test_a_paimon_warehouse_has_tables_in_databases(tmp_path: Path) -> None:
    for place in ("w/a.db/t", "w/b.db/t", "w/b.db/t/nested.db/no", "w/no/t", "w/.db/no", "w/a.db/un named"):
        paimon_table(tmp_path / place)
    (tmp_path / "w/a.db/empty/schema").mkdir(parents=True)
    (tmp_path / "w/a.db/view/schema").mkdir(parents=True)
    (tmp_path / "w/a.db/view/schema/EARLIEST").touch()
    (tmp_path / "w/a.db/file").touch()
    (tmp_path / "w/a.db/link").symlink_to(tmp_path / "w/b.db/t")
    told = found(tmp_path, "{paimon: w}")
    assert names(told) == ["a.t", "a.un named", "b.t"] and not told.unlistable
    assert told.tables[1].location == f"{tmp_path}/w/a.db/un named"
    told = found(tmp_path, f"{{paimon: 'file://{tmp_path}/w', include: ['a.*', 'b.*'], exclude: ['a.t']}}")
    assert [each.location for each in told.tables] == [
        f"file://{tmp_path}/w/a.db/un%20named",
        f"file://{tmp_path}/w/b.db/t",
    ]


def test_delta_tables_are_looked_for_to_a_depth_and_never_inside_of_a_table(tmp_path: Path) -> None:
    for place in ("d/one", "d/a/two", "d/a/b/three", "d/a/b/c/four", "d/one/inner", "d/shop.db/five", "d/v1.0/six"):
        delta_table(tmp_path / place)
    for hidden in ("d/_staged/no", "d/.trash/no"):
        delta_table(tmp_path / hidden)
    # A circle, and a way out of the folder: links are not followed.
    (tmp_path / "d/a/circle").symlink_to(tmp_path / "d")
    (tmp_path / "d/out").symlink_to(tmp_path / "elsewhere")
    delta_table(tmp_path / "elsewhere/no")
    assert names(found(tmp_path, "{delta: d}")) == ["one", "a.two", "shop.five", "`v1.0`.six", "a.b.three"]
    assert names(found(tmp_path, "{delta: d, depth: 1}")) == ["one"]
    assert names(found(tmp_path, "{delta: d, depth: 4}"))[-1] == "a.b.c.four"
    assert names(found(tmp_path, "{delta: d/one}")) == ["one"]


def test_a_place_that_cannot_be_listed_costs_no_other_its_tables(tmp_path: Path) -> None:
    delta_table(tmp_path / "d/t")
    (tmp_path / "file").touch()
    told = found(
        tmp_path,
        "{paimon: gone}",
        "{delta: file}",
        "{iceberg: nowhere}",
        "{hive: 'thrift://127.0.0.1:1'}",
        "{delta: d}",
    )
    assert names(told) == ["t"]
    assert [each.name for each in told.unlistable] == [
        "discover paimon:gone",
        "discover delta:file",
        "discover iceberg:nowhere",
        "discover hive:thrift://127.0.0.1:1",
    ]
    why = whys(told).split("\n")
    assert why[0].startswith(f"discover paimon:gone: cannot be listed: {tmp_path}/gone: expected the folder")
    assert "catalog nowhere: expected its settings in .pyiceberg.yaml" in why[2]
    assert "no metastore answers: Connection refused" in why[3]


def test_a_folder_without_access_costs_no_other_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delta_table(tmp_path / "d/t")
    delta_table(tmp_path / "d/closed/no")
    paimon_table(tmp_path / "w/a.db/t")
    paimon_table(tmp_path / "w/closed.db/no")
    listed = LocalStorage.folders

    # Tests may run as root, to whom no folder is closed.
    def folders(storage: LocalStorage, folder: str) -> tuple[str, ...]:
        if folder.startswith("closed"):
            raise PermissionError(13, "Permission denied", folder)
        return listed(storage, folder)

    monkeypatch.setattr(LocalStorage, "folders", folders)
    told = found(tmp_path, "{delta: d}", "{paimon: w}")
    assert names(told) == ["t", "a.t"]
    assert [each.name for each in told.unlistable] == ["discover delta:d: closed", "discover paimon:w: closed.db"]
    assert whys(told).count("Permission denied") == 2


def test_a_place_with_more_folders_than_the_limit_ends_and_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        delta_table(tmp_path / f"d/{number}/t")
        paimon_table(tmp_path / f"w/a.db/t{number}")
    monkeypatch.setenv(LISTED.variable, "10")
    told = found(tmp_path, "{delta: d}", "{paimon: w}")
    assert not told.tables and whys(told).count("more than the limit of 10 (NIGHTKEEP_MAX_LISTED_FOLDERS)") == 2


def test_a_surprise_at_one_place_costs_no_other_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(location: str, depth: int) -> None:
        raise ZeroDivisionError("a bug")

    delta_table(tmp_path / "d/t")
    monkeypatch.setattr("nightkeep.formats.paimon.listing.list_tables", broken)
    told = found(tmp_path, "{paimon: w}", "{delta: d}")
    assert names(told) == ["t"] and "ZeroDivisionError: a bug" in whys(told)


def test_a_catalog_has_tables_in_all_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place_samples(tmp_path, monkeypatch)
    database = f"{tmp_path}/warehouse/iceberg/catalog.db"
    catalog = SqlCatalog("lake", uri=f"sqlite:///{database}")
    source = catalog.load_table(("shop", "orders")).metadata_location
    # Of these, the database knows no namespace `deep`.
    for namespace in (("deep", "er"), ("we.ird",)):
        catalog.create_namespace(namespace)
        catalog.register_table((*namespace, "orders"), source)
    catalog.close()
    told = found(tmp_path, "{iceberg: lake, exclude: ['*.customers']}")
    assert sorted(names(told)) == ["deep.er.orders", "shop.orders", "we.ird.orders"]


def test_tables_in_a_bucket_are_found(s3_bucket: Bucket, tmp_path: Path) -> None:
    for sample in ("paimon/shop.db/untouched", "delta/shop.db/accounts"):
        upload(SAMPLES / sample, s3_bucket, f"lake/{sample}")
    told = found(tmp_path, f"{{paimon: '{s3_bucket.uri}/lake/paimon'}}", f"{{delta: '{s3_bucket.uri}/lake/delta/'}}")
    assert names(told) == ["shop.untouched", "shop.accounts"] and not told.unlistable
    assert [each.location for each in told.tables] == [
        f"{s3_bucket.uri}/lake/paimon/shop.db/untouched",
        f"{s3_bucket.uri}/lake/delta/shop.db/accounts",
    ]
    assert [open_table(each.address).snapshot().version for each in told.tables]
    told = found(tmp_path, f"{{paimon: '{s3_bucket.uri}/gone'}}")
    assert "expected the files of a table, found none" in whys(told)


def test_a_table_that_moves_is_found_where_it_is(tmp_path: Path) -> None:
    delta_table(tmp_path / "d/old")
    assert names(found(tmp_path, "{delta: d}")) == ["old"]
    shutil.move(tmp_path / "d/old", tmp_path / "d/new")
    assert names(found(tmp_path, "{delta: d}")) == ["new"]
