"""Formats and codecs of data files: what is refused by name, and what is not."""

import pytest

from nightkeep.formats.paimon.metadata.file_formats import compression, format_features
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.types import parse_type

ZONED = "TIMESTAMP(3) WITH LOCAL TIME ZONE"


def schema(**options: str) -> PaimonSchema:
    fields = (
        PaimonField(0, "k", parse_type(f"{ZONED} NOT NULL")),
        PaimonField(1, "v", parse_type("INT")),
        PaimonField(2, "at", parse_type("TIMESTAMP(9)")),
    )
    return PaimonSchema(0, fields, (), ("k",), options)


LOOKUP = {"changelog-producer": "lookup"}


@pytest.mark.parametrize(
    ("options", "feature"),
    [
        ({"file.format": "lance"}, "option file.format with lance"),
        ({"file.format.per.level": "0:csv,3:orc"}, "option file.format.per.level with csv"),
        ({"file.format": "orc", "file.compression": "lzo"}, "codec lzo of orc files"),
        ({"file.format": "orc", "orc.compress": "BROTLI"}, "codec brotli of orc files"),
        ({"file.format.per.level": "4:orc", "file.compression.per.level": "4:gzip"}, "codec gzip of orc files"),
        ({"file.format": "orc", "orc.encrypt": "pii:v"}, "option orc.encrypt"),
        ({**LOOKUP, "changelog-file.format": "avro"}, "option changelog-file.format = avro is not handled"),
        (
            {**LOOKUP, "file.format": "orc", "changelog-file.format": "parquet"},
            "option changelog-file.format = parquet",
        ),
        ({**LOOKUP, "file.format.per.level": "0:orc", "changelog-file.format": "orc"}, "option changelog-file.format"),
        ({"file.format": "avro", "avro.codec": "xz"}, "codec xz of avro files"),
        ({"file.format.per.level": "0:avro"}, "column at of type TIMESTAMP(9) in Avro files"),
        ({"file.format": "orc"}, f"column k of type {ZONED} NOT NULL orders rows of ORC files"),
    ],
)
def test_what_is_not_handled_is_named(options: dict[str, str], feature: str) -> None:
    found = [name for name, advice in format_features(schema(**options)) if advice]
    assert any(name.startswith(feature) for name in found), found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"file.format": "PARQUET", "orc.encrypt": "pii:v"},
        {"file.format": "orc", "orc.timestamp-ltz.legacy.type": "false"},
        {"file.format.per.level": "0:parquet", "file.compression": "gzip"},
    ],
)
def test_what_is_handled_is_no_feature(options: dict[str, str]) -> None:
    assert [*format_features(schema(**options))] == []


def test_codecs_are_of_a_level_and_its_format() -> None:
    table = schema(
        **{
            "file.format.per.level": "5:orc",
            "orc.compress": "SNAPPY",
            "file.compression.per.level": "0:none",
            "file.compression.zstd-level": "3",
        }
    )
    assert [compression(table, level) for level in (0, 1, 5)] == [("none", None), ("zstd", 3), ("snappy", None)]


def test_a_table_without_keys_has_no_levels() -> None:
    nested = PaimonField(0, "v", parse_type({"type": "ARRAY", "element": "INT"}))
    assert not [*format_features(PaimonSchema(0, (nested,), (), (), {"file.format": "orc"}))]
    (found,) = format_features(PaimonSchema(0, (nested,), (), (), {"file.format.per.level": "0:orc"}))
    assert found[0] == "option file.format.per.level of a table without primary key is not handled"
