"""What documents say of the rows that a caller asks to change: columns and a hash, and no value."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nightkeep.api.asked_rows import asked_condition, asked_keys, asked_values


def test_a_condition_is_recognised_by_its_columns_and_a_hash() -> None:
    asked = asked_condition("n >= 8 AND `odd name` = 'SECRET' OR s.at IS NULL")
    assert asked["columns"] == ["n", "odd name", "s"] and "SECRET" not in json.dumps(asked)
    assert asked == asked_condition("n >= 8 AND `odd name` = 'SECRET' OR s.at IS NULL")
    assert asked["hash"] != asked_condition("n >= 9 AND `odd name` = 'SECRET' OR s.at IS NULL")["hash"]
    assert asked_condition("no 'condition")["columns"] == []


def test_assignments_are_reported_by_the_columns_set_and_read() -> None:
    asked = asked_values(["a = b + 1", "c = 'SECRET'"])
    assert asked["columns"] == ["a", "b", "c"] and "SECRET" not in json.dumps(asked)
    assert asked["hash"] != asked_values(["a = b + 1 c", "= 'SECRET'"])["hash"]


@pytest.mark.parametrize("name", ["keys.parquet", "keys.csv", "keys.jsonl"])
def test_a_file_of_keys_is_recognised_by_its_columns_and_a_hash(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.table({"n": [1], "t": ["SECRET"]}), file)
    else:
        file.write_text("n,t\n1,SECRET\n" if name.endswith("csv") else '{"n": 1, "t": "SECRET"}\n')
    asked = asked_keys(file)
    assert asked["columns"] == ["n", "t"] and "SECRET" not in json.dumps(asked)
    assert asked_keys(tmp_path / "none.csv")["columns"] == []
