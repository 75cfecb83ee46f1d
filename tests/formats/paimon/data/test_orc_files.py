"""ORC data files of a bucket: what of their values Paimon's readers show, and what is refused."""

from collections.abc import Mapping
from datetime import datetime
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.data import file_output
from nightkeep.formats.paimon.data.columns import KIND, SEQUENCE, PaimonFileReader
from nightkeep.formats.paimon.data.write import PaimonFileWriter, WrittenPaimonFile
from nightkeep.formats.paimon.metadata.binary_row import decode_row
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, Schemas, data_file
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.model import Run, UnitKey
from nightkeep.storage import LocalStorage

ZONED = "TIMESTAMP(6) WITH LOCAL TIME ZONE"
NUMBERS = count()
RUN = Run("made", "f" * 16, "ab" * 4, 1_767_268_800_000)


def bucket(columns: Mapping[str, str], **options: str) -> Bucket:
    fields = tuple(PaimonField(n, name, parse_type(text)) for n, (name, text) in enumerate(columns.items()))
    schema = PaimonSchema(0, fields, (), ("id",), {"file.format": "orc", **options})
    return Bucket(UnitKey("", 0), {}, b"", "bucket-0", 1, (), (), None, Schemas(schema, {0: schema}))


def written(folder: Path, made: Bucket, values: Mapping[str, list[object]]) -> PaimonFileReader:
    """A file that our writer made, opened by our reader."""
    file = new_file(folder, made, values)
    (key,) = made.schemas.current.select(("id",))
    return PaimonFileReader(LocalStorage(str(folder)), made, data_file(file.record, [key.type]))


def new_file(folder: Path, made: Bucket, values: Mapping[str, list[object]]) -> WrittenPaimonFile:
    fields = {field.name: field.type.arrow for field in made.schemas.current.fields}
    rows = len(values["id"])
    chunk = pa.table(
        {
            "_KEY_id": pa.array(values["id"], fields["id"]),
            SEQUENCE: pa.array(range(rows), pa.int64()),
            KIND: pa.array([0] * rows, pa.int8()),
            **{name: pa.array(column, fields[name]) for name, column in values.items()},
        }
    )
    naming = PaimonNaming(RUN, UnitKey(f"made {next(NUMBERS)}", 0))
    writer = PaimonFileWriter(LocalStorage(str(folder)), made, naming, level=5, now_ms=0)
    (file,) = writer.write([chunk], target_bytes=1 << 30)
    return file


def test_types_and_field_ids_are_those_of_paimon(tmp_path: Path) -> None:
    made = bucket(
        {
            "id": "INT NOT NULL",
            "char": "CHAR(4)",
            "time": "TIME(3)",
            "bytes": "BINARY(2)",
            "amount": "DECIMAL(30, 4)",
            "at": "TIMESTAMP(9)",
            "zoned": ZONED,
        }
    )
    reader = written(
        tmp_path,
        made,
        {"id": [1], "char": ["ab"], "time": [5], "bytes": [b"xy"], "amount": [None], "at": [7], "zoned": [9]},
    )

    schema = orc.ORCFile(str(tmp_path / reader.subject)).schema
    ids = {field.name: (field.metadata or {}).get(b"paimon.id") for field in schema}
    assert ids["_KEY_id"] == b"1073741823" and ids[SEQUENCE] == b"2147483646" and ids[KIND] == b"2147483645"
    assert [ids[name] for name in ("id", "char", "zoned")] == [b"0", b"1", b"6"]
    assert schema.field("time").type == pa.int32()
    assert (
        reader.read(["time", "at", "zoned"]).to_pydict()
        == pa.table(
            {
                "time": pa.array([5], pa.time32("ms")),
                "at": pa.array([7], pa.timestamp("ns")),
                "zoned": pa.array([9], pa.timestamp("us", "UTC")),
            }
        ).to_pydict()
    )


def test_blanks_at_the_end_of_char_values_are_left_out_as_java_does(tmp_path: Path) -> None:
    made = bucket({"id": "INT NOT NULL", "char": "CHAR(4)", "text": "VARCHAR(9)"})
    reader = written(tmp_path, made, {"id": [1, 2], "char": ["ab  ", " c"], "text": ["ab  ", " c"]})

    assert reader.read(["char", "text"]).to_pydict() == {"char": ["ab", " c"], "text": ["ab  ", " c"]}


def test_rows_are_taken_by_position_across_stripes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_output, "ORC_BATCH_ROWS", 100)
    made = bucket({"id": "INT NOT NULL"}, **{"file.compression": "none", "orc.stripe.size": "1 b"})
    reader = written(tmp_path, made, {"id": list(range(1000))})

    assert len(reader.starts) > 3
    wanted = np.array([0, 99, 100, 555, 999])
    taken = pa.concat_tables(reader.taken(["id"], wanted))
    assert taken.column("id").to_pylist() == wanted.tolist()


def test_a_fraction_of_a_second_before_1970_is_not_written(tmp_path: Path) -> None:
    made = bucket({"id": "INT NOT NULL", "at": "TIMESTAMP(6)"})
    whole = written(tmp_path, made, {"id": [1], "at": [datetime(1950, 1, 1, 1, 1, 1)]})
    assert whole.read(["at"]).column("at").to_pylist() == [datetime(1950, 1, 1, 1, 1, 1)]

    with pytest.raises(RefusedTable, match="column at: times before 1970 with a fraction of a second"):
        written(tmp_path, made, {"id": [1], "at": [datetime(1950, 1, 1, 1, 1, 1, 5)]})


@pytest.mark.parametrize("legacy", [True, False])
def test_bounds_of_times_that_readers_shift_are_not_reported(tmp_path: Path, *, legacy: bool) -> None:
    made = bucket({"id": "INT NOT NULL", "zoned": ZONED}, **{"orc.timestamp-ltz.legacy.type": str(legacy).lower()})
    stats = new_file(tmp_path, made, {"id": [1], "zoned": [datetime(2026, 1, 1)]}).record["_VALUE_STATS"]

    _, low = decode_row(stats["_MIN_VALUES"], [field.type for field in made.schemas.current.fields])
    assert (low is None) is legacy
    assert stats["_NULL_COUNTS"] == [0, 0]


@pytest.mark.parametrize("levels", ["0:parquet", "3:parquet"])
def test_times_that_readers_shift_in_orc_files_alone_are_not_moved_between_formats(tmp_path: Path, levels: str) -> None:
    made = bucket({"id": "INT NOT NULL", "zoned": ZONED})
    written(tmp_path, made, {"id": [1], "zoned": [datetime(2026, 1, 1)]}).read(["zoned"])
    mixed = bucket({"id": "INT NOT NULL", "zoned": ZONED}, **{"file.format.per.level": levels})
    reader = written(tmp_path, mixed, {"id": [1], "zoned": [datetime(2026, 1, 1)]})

    assert reader.read(["id"]).num_rows == 1
    with pytest.raises(RefusedTable, match=r"column zoned .* in files of orc and parquet"):
        reader.read(["zoned"])
