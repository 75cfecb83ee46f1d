"""Entries of a metastore -> format and place: what engines write, and what a hostile one may say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.metastores.entry import MetastoreEntry
from nightkeep.metastores.table_kind import OtherKind, PlacedTable, table_kind

ENTRIES = Path(__file__).with_name("entries.json")
"""As test_engines_in_a_metastore.py has the engines write them."""
EXPECTED = {
    "elsewhere.spaced": PlacedTable("delta", "/lake/else where/spaced"),
    "pdb.app": PlacedTable("paimon", "/lake/pai/pdb.db/app"),
    "pdb.ext": PlacedTable("paimon", "/lake/pai/pdb.db/ext"),
    "pdb.pk": PlacedTable("paimon", "/lake/pai/pdb.db/pk"),
    "shop.csv": OtherKind("csv"),
    "shop.events": PlacedTable("iceberg", ""),
    "shop.hiveon": PlacedTable("iceberg", ""),
    "shop.hiveparquet": OtherKind("parquet"),
    "shop.hivetext": OtherKind("text"),
    "shop.managed": PlacedTable("delta", "/lake/wh/shop.db/managed"),
    "shop.plain": OtherKind("parquet"),
    # The metastore's own location of this one is shop.db/external-__PLACEHOLDER__.
    "shop.renamed": PlacedTable("delta", "/lake/ext/e x"),
    "shop.v": OtherKind("view"),
}


def written() -> list[MetastoreEntry]:
    return [MetastoreEntry(**each) for each in json.loads(ENTRIES.read_text())]


def entry(location: str = "", kind: str = "EXTERNAL_TABLE", reader: str = "", **parameters: str) -> MetastoreEntry:
    return MetastoreEntry("shop", "orders", kind, location, parameters, {}, reader)


def test_what_the_engines_write_is_known() -> None:
    assert {".".join(each.parts): table_kind(each) for each in written()} == EXPECTED


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Athena's, and the Hive connector's.
        (entry("s3://b/t", table_type="DELTA"), PlacedTable("delta", "s3://b/t")),
        (entry("s3a://b/t/", storage_handler="io.delta.hive.DeltaStorageHandler"), PlacedTable("delta", "s3://b/t")),
        # Delta's UniForm: Iceberg's parameters on a table of Delta.
        (
            entry("/t", **{"spark.sql.sources.provider": "DELTA", "table_type": "ICEBERG", "metadata_location": "/m"}),
            PlacedTable("delta", "/t"),
        ),
        (entry("/t", metadata_location="/t/metadata/1.metadata.json"), PlacedTable("iceberg", "")),
        (entry("/t", table_type="iceberg"), PlacedTable("iceberg", "")),
        (
            entry("/t", storage_handler="org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"),
            PlacedTable("iceberg", ""),
        ),
        (entry("/t", reader="org.apache.paimon.hive.mapred.PaimonInputFormat"), PlacedTable("paimon", "/t")),
        (entry("/t", **{"spark.sql.sources.provider": "paimon"}), PlacedTable("paimon", "/t")),
        (entry("/t", table_type="PAIMON", paimon_location="oss://b/t"), PlacedTable("paimon", "oss://b/t")),
        # Iceberg's view has a metadata_location too.
        (entry("/v", "VIRTUAL_VIEW", table_type="ICEBERG-VIEW", metadata_location="/v/m"), OtherKind("view")),
        (entry("/v", "MATERIALIZED_VIEW"), OtherKind("view")),
        (entry("", "LINK"), OtherKind("link")),
        (
            entry("/t/_symlink_format_manifest", table_type="delta", reader="a.SymlinkTextInputFormat"),
            OtherKind("symlinks"),
        ),
        (entry("/t", table_type="PAIMON", metadata_location="/m"), OtherKind("iceberg and paimon")),
        (entry("/t", classification="json"), OtherKind("json")),
        (entry("/t"), OtherKind("unknown")),
        (entry("/t", table_type="\x1b[31m" * 9), OtherKind("unknown")),
        (entry("hdfs://name:8020/t", table_type="delta"), PlacedTable("delta", "hdfs://name:8020/t")),
    ],
)
def test_what_others_write_is_known(found: MetastoreEntry, expected: PlacedTable | OtherKind) -> None:
    assert table_kind(found) == expected


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("file:/lake/a b%20", "/lake/a b%20"),
        ("file:///lake/t/", "/lake/t"),
        ("file://localhost/lake/t", "/lake/t"),
        ("file://other/lake/t", ""),
        ("//lake//t", "/lake/t"),
        ("s3n://b/t", "s3://b/t"),
        ("/lake/../etc", ""),
        ("file:/lake/./t", ""),
        ("lake/t", ""),
        ("", ""),
        ("/lake/\0", ""),
        ("file:lake", ""),
        # A location is not a name to ask for again.
        ("thrift://other:9083/shop.orders", ""),
        ("glue://eu-central-1/", ""),
    ],
)
def test_a_place_is_absolute_and_not_decoded(location: str, place: str) -> None:
    assert table_kind(entry(location, table_type="PAIMON")) == PlacedTable("paimon", place)


def test_a_placeholder_is_no_place() -> None:
    found = entry("file:/wh/t-__PLACEHOLDER__", **{"spark.sql.sources.provider": "delta"})
    assert table_kind(found) == PlacedTable("delta", "")
    assert table_kind(replace(found, properties={"path": "s3a://b/t"})) == PlacedTable("delta", "s3://b/t")


WORDS = st.sampled_from(["delta", "DELTA", "iceberg", "PAIMON", "hudi", "", "\n", "x" * 99])
KEYS = st.sampled_from(["spark.sql.sources.provider", "table_type", "storage_handler", "metadata_location"])
PLACES = st.one_of(st.text(max_size=20), st.sampled_from(["/a", "file:/a", "s3a://b/c", "thrift://a:1/b.c", "/a/.."]))


@given(
    kind=st.sampled_from(["MANAGED_TABLE", "EXTERNAL_TABLE", "VIRTUAL_VIEW", "", "LINK"]),
    location=PLACES,
    path=st.none() | PLACES,
    parameters=st.dictionaries(KEYS, WORDS),
)
def test_any_entry_has_one_kind(kind: str, location: str, path: str | None, parameters: dict[str, str]) -> None:
    found = MetastoreEntry("d", "t", kind, location, parameters, {} if path is None else {"path": path})
    told = table_kind(found)
    if isinstance(told, OtherKind):
        assert told.name.isprintable() and 0 < len(told.name) <= 40
        return
    # Only what names a format makes a table one of it, and places are whole or none.
    stated = " ".join([*parameters, *parameters.values()]).lower()
    assert told.format in stated or (told.format == "iceberg" and "metadata_location" in stated)
    assert told.location == "" or told.location.startswith("/") or "://" in told.location
    assert ".." not in told.location.split("/") or "://" in told.location
    assert not told.location.startswith(("thrift://", "glue://"))
