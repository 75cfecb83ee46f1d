"""A process that is missing, late, out of memory or ended: the reason is said, and the next read begins another."""

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.other_readers.engines import other_reader

from nightkeep.model.check_values import ReaderName
from nightkeep.other_readers import engine_script
from nightkeep.other_readers.reader_process import OtherReader, ReaderProcess, RowsSeen, VersionRead

pytestmark = pytest.mark.slow

CLICKS = Path(__file__).parents[2] / "samples/delta/shop.db/clicks"
SCHEMA = pa.schema([("click_id", pa.int64())])


def clicks(version: int = 2, table: Path = CLICKS) -> VersionRead:
    return VersionRead("delta", str(table), version)


def read_once(reader: OtherReader) -> RowsSeen:
    with ReaderProcess(reader) as process:
        return process.read(clicks(), SCHEMA)


def test_of_nested_failures_the_innermost_is_named() -> None:
    panic = RuntimeError("External error\ncaused by\nParquet error: EOF in t/a.parquet\n   0: backtrace")
    assert engine_script._sentence(panic) == "Parquet error: EOF in t/a.parquet"
    outer = ValueError("cannot scan")
    outer.__cause__ = OSError(2, "No such file", "t/a.parquet")
    assert engine_script._sentence(outer) == "FileNotFoundError: [Errno 2] No such file: 't/a.parquet'"


def test_a_python_that_is_not_there() -> None:
    seen = read_once(OtherReader(ReaderName.DUCKDB, "no/such/python"))
    assert seen.ended and seen.reason.startswith("expected a Python at no/such/python, found none")


def test_a_package_that_is_not_there() -> None:
    seen = read_once(OtherReader(ReaderName.DUCKDB, sys.executable))
    assert seen.ended and seen.reason.endswith("has no duckdb: ModuleNotFoundError: No module named 'duckdb'")


def test_a_program_that_is_no_python() -> None:
    seen = read_once(OtherReader(ReaderName.DUCKDB, "/bin/false"))
    assert seen.ended and "its process ended with status" in seen.reason


def test_what_a_process_cannot_read_leaves_it_to_read_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    with ReaderProcess(other_reader(ReaderName.DELTALAKE)) as process:
        gone = process.read(clicks(99), SCHEMA)
        assert gone.rows is None and not gone.ended and gone.reason.startswith("DeltaError"), gone
        other = process.read(clicks(), SCHEMA)
        assert (other.rows, other.reason[:34]) == (None, "columns: expected click_id, found ")
        with monkeypatch.context() as patch:
            patch.setenv("NIGHTKEEP_MAX_READER_SECONDS", "0")
            assert process.read(clicks(), SCHEMA) == RowsSeen(None, "its process was ended after 0 seconds", ended=True)
        again = process.read(clicks(99), SCHEMA)
        assert again == gone and process.engine == "deltalake 1.6.6"


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTKEEP_MAX_READER_BYTES", str(24 << 20))
    seen = read_once(other_reader(ReaderName.DELTALAKE))
    assert seen.rows is None and seen.ended, seen
