"""The bounds that planning sees, against those that Java's own reader decodes."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.appended import VALUES, Appended
from tests.formats.paimon.contents import opened

from nightkeep.formats.paimon.rewrite.append.file_bounds import file_bounds
from nightkeep.formats.paimon.rewrite.append.optimize import LAYOUT

UNORDERED = ("FLOAT", "DOUBLE")
"""Java bounds NaN and zeros of both signs in its own way."""


def test_bounds_of_every_type_hold_the_values(paimon_java: PaimonJava, tmp_path: Path) -> None:
    options = {"metadata.stats-mode": "truncate(4)"}
    table = Appended.create(paimon_java, tmp_path / "t", options, partitioned=False)
    for _ in range(3):
        table.append(25)
    snapshot = opened(table.folder).snapshot()
    (bucket,) = snapshot.units
    columns = [field for field in snapshot.schema.fields if str(field.type) not in UNORDERED]
    bounds = file_bounds(snapshot.schemas, bucket.files, columns)
    for number, file in enumerate(bucket.files):
        rows = pq.read_table(table.folder / bucket.path(file))
        for column in columns:
            found, values = bounds[column.name,], rows.column(column.name).cast(column.type.arrow)
            assert found.rows[number] == len(values) - values.null_count
            low, high = found.lows[number], found.highs[number]
            if low.is_valid and found.rows[number]:
                assert not pc.any(pc.less(_ordered(values), _ordered(low))).as_py(), column
            if high.is_valid and found.rows[number]:
                assert not pc.any(pc.greater(_ordered(values), _ordered(high))).as_py(), column
    assert {kind for _, kind in VALUES} - set(UNORDERED)


def _ordered(values: object) -> object:
    kind = values.type  # type: ignore[attr-defined]
    return values.cast(pa.int8()) if pa.types.is_boolean(kind) else values  # type: ignore[attr-defined]


def test_a_column_that_files_lack_has_no_bounds(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = Appended.create(paimon_java, tmp_path / "t", {}, columns=[("v", "INT"), ("w", "INT")], partitioned=False)
    table.append(5)
    before = opened(table.folder).snapshot()
    paimon_java.alter(table.folder, {"change": "add_column", "name": "late", "type": "INT"})
    paimon_java.alter(table.folder, {"change": "change_type", "name": "v", "type": "BIGINT"})
    paimon_java.alter(table.folder, {"change": "change_type", "name": "w", "type": "STRING"})
    snapshot = opened(table.folder).snapshot()
    bounds = file_bounds(snapshot.schemas, snapshot.units[0].files, snapshot.schema.fields)
    assert bounds["v",].bounded.all() and bounds["v",].lows.type == pa.int64()
    assert not bounds["late",].bounded.any() and not bounds["w",].bounded.any()
    paimon_java.alter(table.folder, {"change": "rename_column", "name": "v", "to": "renamed"})
    paimon_java.alter(table.folder, {"change": "add_column", "name": "v", "type": "INT"})
    after, touched = opened(table.folder).snapshot(), [before.units[0].key]
    found, alone = (LAYOUT.layout_metrics(side, after, touched) for side in (before, after))
    assert list(found) == ["skipping", "overlap", "losing"] and found == alone
    overlap: Any = found["overlap"]
    assert overlap["renamed"]["before"] > 0 and overlap["v"]["before"] == overlap["late"]["before"] == 0
