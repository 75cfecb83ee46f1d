"""Columns whose type was changed to one of another kind: reads show what Java shows, operations are refused."""

from pathlib import Path
from typing import Any

import pytest
from tests.drivers.canonical import rows_from_arrow
from tests.drivers.json_lines import EngineError
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout, Writer
from tests.support.extended import some_extended

import nightkeep
from nightkeep.errors import RefusedTable

WHOLE = {
    "TINYINT": [-128, -1, 0, 5, 127, None],
    "SMALLINT": [-32768, -129, -1, 0, 128, 32767, None],
    "INT": [-(2**31), -32769, -200, 0, 1, 99999, 2**31 - 1, None],
    "BIGINT": [-(2**63), -(2**31) - 1, -1, 0, 300, 2**32 + 5, 2**53 + 1, 2**63 - 1, None],
}
FLOATS = [0.0, "-0.0", -1.9, 2.5, 300.7, 3e9, -3e9, 1e19, -1e19, 1e-40, "NaN", "Infinity", "-Infinity", None]
DECIMALS = ["0.0000", "-0.0049", "0.0050", "-0.0050", "1.2350", "1.2249", "-1.2350", "99.9950", "999999.9999"]
WIDE = ["0." + "0" * 17 + "1", "-" + "9" * 20 + "." + "9" * 18, "1" * 20 + "." + "5" * 18, "0." + "0" * 18, None]
TEXTS = [
    "",
    "ab",
    "abc",
    "abcdef",
    "  x ",
    "\u00e4\u00f6\u00fc\u20ac\U0001d11ez",
    "\U0001d11e\U0001d11e\U0001d11e\U0001d11e",
    None,
]
SHORT = ["", "ab", "abcde", "\u00e4\u00f6\u20ac\U0001d11ez", None]
NUMBERS = ["0", "-0", "+7", "007", "-128", "127.99", "-.5", "5.", None]
POINTED = ["0", "-0", "+7", "007.50", "-1.235", "1.225", "99.995", "123456789012.5", None]
EXACT = ["0", "-0.0", "+1.5", "1e3", "-2.5E-3", ".5", "5.", "0.1", "16777217", "1e-46", "NaN", "-Infinity", None]
BYTES = ["", "00", "616263", "6162636465", "c3a4", None]
DAYS = ["0001-01-01", "1500-03-01", "1969-12-31", "1970-01-01", "2024-02-29", "9999-12-31", None]
TIMES = ["1969-12-31T23:59:59.999999", "1970-01-01T00:00:00.000001", "2024-02-29T13:00:00.000000"]

PAIRS: list[tuple[str, str, list[Any]]] = [
    *(
        (old, new, values)
        for old, values in WHOLE.items()
        for new in (
            "TINYINT",
            "SMALLINT",
            "INT",
            "BIGINT",
            "FLOAT",
            "DOUBLE",
            "DECIMAL(3, 0)",
            "DECIMAL(5, 4)",
            "DECIMAL(38, 18)",
            "STRING",
            "VARCHAR(3)",
            "CHAR(4)",
        )
    ),
    *((old, "BOOLEAN", WHOLE[old]) for old in ("TINYINT", "SMALLINT", "INT", "BIGINT")),
    *((old, new, FLOATS) for old in ("FLOAT", "DOUBLE") for new in (*WHOLE, "FLOAT", "DOUBLE")),
    *(
        ("DECIMAL(10, 4)", new, [*DECIMALS, None])
        for new in (
            *WHOLE,
            "FLOAT",
            "DOUBLE",
            "DECIMAL(10, 2)",
            "DECIMAL(4, 2)",
            "DECIMAL(3, 0)",
            "DECIMAL(38, 4)",
            "DECIMAL(38, 37)",
            "STRING",
            "VARCHAR(3)",
            "CHAR(9)",
        )
    ),
    *(
        ("DECIMAL(38, 18)", new, WIDE)
        for new in (
            *WHOLE,
            "FLOAT",
            "DOUBLE",
            "DECIMAL(38, 17)",
            "DECIMAL(20, 0)",
            "DECIMAL(38, 0)",
            "DECIMAL(38, 38)",
            "STRING",
            "VARCHAR(5)",
        )
    ),
    *(
        (old, new, SHORT if old == "CHAR(5)" else TEXTS)
        for old in ("VARCHAR(10)", "STRING", "CHAR(5)")
        for new in ("VARCHAR(3)", "CHAR(3)", "CHAR(7)", "STRING", "BYTES", "BINARY(4)", "VARBINARY(3)")
    ),
    *(("STRING", new, NUMBERS) for new in WHOLE),
    ("STRING", "BIGINT", ["-9223372036854775808", "9223372036854775807.9", "."]),
    *(("STRING", new, EXACT) for new in ("FLOAT", "DOUBLE")),
    *(("STRING", new, POINTED) for new in ("DECIMAL(4, 2)", "DECIMAL(10, 0)", "DECIMAL(38, 18)")),
    ("STRING", "BOOLEAN", ["t", "TRUE", "Yes", "y", "1", "f", "False", "NO", "n", "0", None]),
    *(
        ("BOOLEAN", new, [True, False, None])
        for new in (*WHOLE, "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "DECIMAL(2, 2)", "STRING", "VARCHAR(3)", "CHAR(6)")
    ),
    *(
        (old, new, BYTES)
        for old in ("BYTES", "VARBINARY(8)", "BINARY(5)")
        for new in ("BYTES", "BINARY(3)", "BINARY(7)", "VARBINARY(2)", "STRING", "VARCHAR(2)")
    ),
    *(("DATE", new, DAYS) for new in ("STRING", "TIMESTAMP(3)", "TIMESTAMP(6)")),
]
"""An old type, a new one, and values of the old one."""


def by_key(rows: list[list[object]]) -> list[list[object]]:
    return sorted(rows, key=lambda row: int(str(row[0])))


@pytest.mark.parametrize("file_format", some_extended(["parquet", "orc"], keep=1))
def test_each_pair_of_types_is_read_as_java_reads_it(paimon_java: PaimonJava, tmp_path: Path, file_format: str) -> None:
    pairs = [(f"v{n}", *pair) for n, pair in enumerate(PAIRS) if pair[0] != pair[1]]
    longest = max(len(values) for *_, values in pairs)
    columns = [values + [None] * (longest - len(values)) for *_, values in pairs]
    rows = [("+I", n, *row) for n, row in enumerate(zip(*columns, strict=True))]
    table, options = tmp_path / "t", {"bucket": "-1", "file.format": file_format}
    columns_then = [("k", "INT"), *((name, old) for name, old, *_ in pairs)]
    paimon_java.create(table, Layout(columns_then, options=options))
    paimon_java.write(table, rows, Writer(user="w"))
    paimon_java.alter(table, *({"change": "change_type", "name": name, "type": new} for name, _, new, _ in pairs))
    theirs = by_key([list(row) for row in paimon_java.read(table).rows])
    shown = nightkeep.read(f"paimon:{table}").read_all()
    ours = by_key(rows_from_arrow(shown, ["INT", *(new for _, _, new, _ in pairs)]))
    for place, (_, old, new, _) in enumerate(pairs, 1):
        assert [repr(row[place]) for row in ours] == [repr(row[place]) for row in theirs], (old, new)


MERGED = [("k", "INT"), ("v", "BIGINT"), ("d", "DECIMAL(6, 2)"), ("s", "STRING")]


@pytest.mark.parametrize("engine", some_extended(["deduplicate", "aggregation"], keep=1))
def test_conditions_and_merges_go_by_converted_values(paimon_java: PaimonJava, tmp_path: Path, engine: str) -> None:
    """The files' statistics are of the older types: by them no file has a 5, a null or the text 12."""
    options = {"bucket": "1", "merge-engine": engine, "write-only": "true", "file.format": "parquet"}
    if engine == "aggregation":
        options |= {"fields.v.aggregate-function": "sum", "fields.d.aggregate-function": "max"}
    table = tmp_path / "t"
    paimon_java.create(table, Layout(MERGED, ["k"], options=options))
    paimon_java.write(table, [("+I", 1, 2**32 + 5, "1234.56", "1"), ("+I", 2, 7, "1.00", "22")], Writer(user="w"))
    paimon_java.write(table, [("+I", 1, 2**32 + 5, "1200.00", "12"), ("+I", 3, 9, "3.00", "3")], Writer(user="w"))
    changes = {"v": "INT", "d": "DECIMAL(4, 2)", "s": "INT"}
    paimon_java.alter(table, *({"change": "change_type", "name": n, "type": t} for n, t in changes.items()))
    paimon_java.write(table, [("+I", 2, 8, "2.00", 23)], Writer(user="w"))
    wanted = {row[0]: list(row) for row in paimon_java.read(table).rows}
    types = ["INT", *changes.values()]

    def found(where: str | None) -> dict[int, list[object]]:
        shown = nightkeep.read(f"paimon:{table}", where=where).read_all()
        return {row[0]: row for row in rows_from_arrow(shown, types)}

    assert found(None) == wanted
    assert found(f"v = {wanted[1][1]}") == {1: wanted[1]}
    assert found("d IS NULL") == {1: wanted[1]}
    assert found("s = 12") == {1: wanted[1]}
    assert found("s > 22") == {2: wanted[2]}


@pytest.mark.parametrize(
    ("old", "new", "value"),
    some_extended(
        [
            ("STRING", "INT", "x1"),
            ("STRING", "TINYINT", "128"),
            ("STRING", "BOOLEAN", "maybe"),
            ("STRING", "DOUBLE", "1,5"),
            ("STRING", "DECIMAL(4, 2)", "1.2.3"),
        ],
        keep=1,
    ),
)
def test_a_text_that_java_cannot_convert_is_an_error(
    paimon_java: PaimonJava, tmp_path: Path, old: str, new: str, value: str
) -> None:
    table = made(paimon_java, tmp_path, old, new, [value])
    with pytest.raises(EngineError):
        paimon_java.read(table)
    with pytest.raises(RefusedTable, match="column v: expected values of"):
        nightkeep.read(f"paimon:{table}").read_all()


@pytest.mark.parametrize(
    ("old", "new", "value"),
    some_extended(
        [
            ("TIMESTAMP(6)", "DATE", TIMES[0]),
            ("DOUBLE", "STRING", 1e-5),
            ("FLOAT", "DECIMAL(5, 2)", 1.005),
            ("TIMESTAMP(6)", "TIMESTAMP(3)", TIMES[0]),
            ("TIMESTAMP(3)", "STRING", TIMES[0][:23]),
            ("STRING", "DATE", "2024-01-01"),
            ("DATE", "VARCHAR(9)", "2024-01-01"),
            ("TIMESTAMP(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", TIMES[0][:23]),
        ],
        keep=1,
    ),
)
def test_a_pair_whose_conversion_depends_on_java_is_refused_by_name(
    paimon_java: PaimonJava, tmp_path: Path, old: str, new: str, value: object
) -> None:
    try:
        table = made(paimon_java, tmp_path, old, new, [value])
    except EngineError:
        # Java allows no such change.
        return
    with pytest.raises(RefusedTable) as refused:
        nightkeep.read(f"paimon:{table}").read_all()
    assert f"column v was written as {old} and is now {new}" in str(refused.value)


def test_a_bucket_is_not_skipped_by_a_key_of_another_type(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Java places a row by the bytes of its bucket key: those of an INT and of a BIGINT differ below 0."""
    table = tmp_path / "t"
    paimon_java.create(table, Layout([("k", "INT")], options={"bucket": "5", "bucket-key": "k"}))
    paimon_java.write(table, [("+I", number) for number in range(-20, 0)], Writer(user="w"))
    paimon_java.alter(table, {"change": "change_type", "name": "k", "type": "BIGINT"})
    for number in range(-20, 0):
        assert nightkeep.read(f"paimon:{table}", where=f"k = {number}").read_all()["k"].to_pylist() == [number]


def made(java: PaimonJava, folder: Path, old: str, new: str, values: list[object]) -> Path:
    table = folder / "t"
    java.create(table, Layout([("k", "INT"), ("v", old)], options={"bucket": "-1", "write-only": "true"}))
    java.write(table, [("+I", k, v) for k, v in enumerate(values)], Writer(user="w"))
    java.alter(table, {"change": "change_type", "name": "v", "type": new})
    return table
