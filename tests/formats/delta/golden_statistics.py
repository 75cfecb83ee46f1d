"""Tables whose files have telling statistics: a column per case, so that one file shows them all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.drivers.delta_spark import DeltaSpark, Writing, named

_TOP = "\U0010ffff"
_FACE = "\U0001f600"
_PREFIX = "a" * 32

TEXTS = {
    "exact": _PREFIX,
    "letter": _PREFIX + "b",
    "tilde": _PREFIX + "~",
    "delete": _PREFIX + "\x7f",
    "after_delete": _PREFIX + "\x80",
    "accent": "\u00e9" * 40,
    "han": "\u4e2d" * 33,
    "face": _PREFIX + _FACE + "z",
    "face_before": "a" * 31 + _FACE + "z",
    "faces": _FACE * 20,
    "many_faces": _FACE * 40,
    "private": _PREFIX + "\ue000" + "z",
    "top": _PREFIX + _TOP,
    "top_then_letter": _PREFIX + _TOP + "b",
    "tops_then_letter": _PREFIX + _TOP * 5 + "b" * 5,
    "only_tops": _TOP * 33,
    "sixty_tops": _TOP * 70,
    "empty": "",
    "escapes": 'q" b\\ n\n t\t c\x01 u\u2028',
}
"""Values at the edges of the prefix of 32 characters that statistics keep."""


def stats_strings(spark: DeltaSpark, table: Path) -> None:
    """Texts at the edges of the prefix, each alone in its column, so that minimum and maximum are of one value."""
    _write(spark, table, {name: ([text, None], pa.string()) for name, text in TEXTS.items()})


def stats_string_ranges(spark: DeltaSpark, table: Path) -> None:
    """UTF-8 and UTF-16 order these differently; which is least and greatest?"""
    cases = {
        "utf16": ["\uff5e", _FACE, "z"],
        "prefixes": [_PREFIX + "b", _PREFIX + "a", _PREFIX],
        "empty_and_null": ["", None, "a"],
        "nulls": [None, None, None],
    }
    _write(spark, table, {name: (values, pa.string()) for name, values in cases.items()})


def stats_numbers(spark: DeltaSpark, table: Path) -> None:
    """NaN, signed zeros, infinities, the smallest and greatest numbers, and how JSON spells them."""
    nan, inf = float("nan"), float("inf")
    doubles: dict[str, list[float | None]] = {
        "plain": [1.5, -2.25, 3],
        "nan": [nan, 1, None],
        "only_nan": [nan, nan, None],
        "infinite": [inf, -inf, 0],
        "zeros": [-0.0, 0.0, -0.0],
        "extreme": [1.7976931348623157e308, 5e-324, -1e21],
        "whole": [1e7, 12345678.0, 1e-3],
        "nulls": [None, None, None],
    }
    floats: dict[str, list[float | None]] = {"tenth": [0.1, 3.4028234663852886e38, 1.4e-45], "f_nan": [nan, -0.0, 1]}
    _write(
        spark,
        table,
        {name: (values, pa.float64()) for name, values in doubles.items()}
        | {name: (values, pa.float32()) for name, values in floats.items()}
        | {f"int{bits}": ([-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0], f"int{bits}") for bits in (8, 16, 32, 64)}
        | {"flag": ([True, False, None], pa.bool_()), "raw": ([b"\0", b"\xff", None], pa.binary())},
    )


def stats_decimals(spark: DeltaSpark, table: Path) -> None:
    """Numbers without quotes, with as many digits as the type has."""
    cases = {
        "price": (10, 2, ["-99999999.99", "1.10", "0"]),
        "whole": (18, 0, ["-1", "999999999999999999", "7"]),
        "long": (38, 10, ["-9999999999999999999999999999.0123456789", "0.0000000001", "1"]),
        "tiny": (38, 38, ["0.00000000000000000000000000000000000001", "-0.5", "0"]),
        "zeros": (5, 3, ["0", "0.000", "10"]),
    }
    columns = {name: pa.array(values).cast(pa.decimal128(p, s)) for name, (p, s, values) in cases.items()}
    spark.write(table, pa.table(columns))


def stats_times(spark: DeltaSpark, table: Path) -> None:
    """Before 1970, microseconds that milliseconds cut, years of five digits and of none."""
    literals = {
        "day": ("DATE'1969-12-31'", "DATE'2026-11-01'"),
        "far_day": ("DATE'0001-01-01'", "DATE'+12345-06-07'"),
        "early_day": ("DATE'-0044-03-15'", "DATE'9999-12-31'"),
        "at": ("TIMESTAMP'2026-11-01T06:07:08.123456Z'", "TIMESTAMP'2026-11-01T06:07:08.123999Z'"),
        "whole_at": ("TIMESTAMP'2026-11-01T06:07:08Z'", "TIMESTAMP'2026-11-01T06:07:00Z'"),
        "old_at": ("TIMESTAMP'1969-12-31T23:59:59.999999Z'", "TIMESTAMP'1969-12-31T23:59:59.000001Z'"),
        "far_at": ("TIMESTAMP'0001-01-01T00:00:00Z'", "TIMESTAMP'+12345-06-07T08:09:10.123456Z'"),
        "ntz": ("TIMESTAMP_NTZ'2026-11-01T06:07:08.123456'", "TIMESTAMP_NTZ'2026-11-01T06:07:08.123999'"),
        "whole_ntz": ("TIMESTAMP_NTZ'2026-11-01T06:07:08'", "TIMESTAMP_NTZ'2026-11-01T06:07:00'"),
        "old_ntz": ("TIMESTAMP_NTZ'1969-12-31T23:59:59.999999'", "TIMESTAMP_NTZ'1969-12-31T23:59:59.000001'"),
        "far_ntz": ("TIMESTAMP_NTZ'0001-01-01T00:00:00'", "TIMESTAMP_NTZ'+12345-06-07T08:09:10.123456'"),
    }
    rows = ", ".join(f"({', '.join(values)})" for values in zip(*literals.values(), strict=True))
    names = ", ".join(literals)
    with spark.configured({"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}):
        spark.sql(
            f"CREATE TABLE {named(table)} USING delta AS SELECT /*+ COALESCE(1) */ * FROM VALUES {rows} t({names})"
        )


def stats_nested(spark: DeltaSpark, table: Path) -> None:
    """Leaves of structs have statistics, arrays and maps a count of nulls."""
    inner = pa.struct([("name", pa.string()), ("flag", pa.bool_())])
    place = pa.struct([("x", pa.int32()), ("inner", inner), ("tags", pa.list_(pa.int32()))])
    values = [
        {"x": 1, "inner": {"name": "n", "flag": True}, "tags": [1]},
        {"x": None, "inner": None, "tags": None},
        None,
    ]
    columns = {
        "place": (values, place),
        "tags": ([[1, None], [], None], pa.list_(pa.int32())),
        "counts": ([[("a", 1)], [], None], pa.map_(pa.string(), pa.int32())),
        "places": ([[{"x": 1}], None, None], pa.list_(pa.struct([("x", pa.int32())]))),
    }
    _write(spark, table, columns)


def stats_first_columns(spark: DeltaSpark, table: Path) -> None:
    """Leaves are counted, so the third column of the limit is inside the struct."""
    _write(spark, table, _mixed(), **{"delta.dataSkippingNumIndexedCols": "3"})


def stats_no_columns(spark: DeltaSpark, table: Path) -> None:
    """A limit of none: the number of records is all there is."""
    _write(spark, table, _mixed(), **{"delta.dataSkippingNumIndexedCols": "0"})


def stats_named_columns(spark: DeltaSpark, table: Path) -> None:
    """Named columns win over the number."""
    names = {"delta.dataSkippingStatsColumns": "text,place.y", "delta.dataSkippingNumIndexedCols": "1"}
    _write(spark, table, _mixed(), **names)


def stats_default_columns(spark: DeltaSpark, table: Path) -> None:
    """More than 32 leaves; partition columns do not count."""
    columns = {f"c{n:02d}": ([n, None], pa.int32()) for n in range(40)}
    spark.write(table, _table(columns), Writing(partition_by=("c00",)))


def stats_short_prefix(spark: DeltaSpark, table: Path) -> None:
    """A prefix of five characters."""
    columns = {"text": (["abcdefg", "zyxwvut"], pa.string()), "short": (["abc", "zyxwv"], pa.string())}
    _write(spark, table, columns, **{"delta.dataSkippingStringPrefixLength": "5"})


def stats_after_delete(spark: DeltaSpark, table: Path) -> None:
    """Statistics of a file with a vector: bounds are loose, counts are of physical rows."""
    columns = {
        "id": (list(range(10)), pa.int32()),
        "text": (["a", None] * 5, pa.string()),
        "none": ([None] * 10, "int32"),
    }
    _write(spark, table, columns, **{"delta.enableDeletionVectors": "true"})
    spark.sql(f"DELETE FROM {named(table)} WHERE id = 0 OR id = 9")


def stats_absent(spark: DeltaSpark, table: Path) -> None:
    """No statistics at all, and then a DELETE with a vector, which computes them."""
    with spark.configured({"spark.databricks.delta.stats.collect": "false"}):
        columns = {"id": (list(range(10)), pa.int32())}
        _write(spark, table, columns, **{"delta.enableDeletionVectors": "true"})
        _write(spark, table, columns)
    spark.sql(f"DELETE FROM {named(table)} WHERE id = 3")


STATISTICS = (
    stats_strings,
    stats_string_ranges,
    stats_numbers,
    stats_decimals,
    stats_times,
    stats_nested,
    stats_first_columns,
    stats_no_columns,
    stats_named_columns,
    stats_default_columns,
    stats_short_prefix,
    stats_after_delete,
    stats_absent,
)


def _mixed() -> dict[str, tuple[Sequence[Any], Any]]:
    place = pa.struct([("x", pa.int32()), ("y", pa.int32()), ("z", pa.int32())])
    values = [{"x": 1, "y": 2, "z": 3}, {"x": 4, "y": None, "z": 6}]
    return {
        "id": ([1, 2], pa.int32()),
        "tags": ([[1], None], pa.list_(pa.int32())),
        "place": (values, place),
        "text": (["a", "b"], pa.string()),
    }


def _table(columns: dict[str, tuple[Sequence[Any], Any]]) -> pa.Table:
    return pa.table({name: pa.array(list(values), kind) for name, (values, kind) in columns.items()})


def _write(spark: DeltaSpark, table: Path, columns: dict[str, tuple[Sequence[Any], Any]], **properties: str) -> None:
    spark.write(table, _table(columns), Writing(properties=properties))
