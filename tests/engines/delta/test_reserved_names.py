"""Columns with names that delta-spark reserves once rows are deleted by vectors: ours refuses where its own does."""

from pathlib import Path

import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.json_lines import EngineError
from tests.formats.delta.lake import request
from tests.formats.delta.runs import opened

from nightkeep.errors import RefusedTable
from nightkeep.formats.delta.rewrite.delete import refuse_deletes
from nightkeep.model import Operation


@pytest.mark.few(1)
@pytest.mark.parametrize("mode", ["none", "name"])
@pytest.mark.parametrize("name", ["_metadata", "_METADATA", "__delta_internal_is_row_deleted"])
def test_a_reserved_name_refuses_deletes(delta_spark: DeltaSpark, tmp_path: Path, name: str, mode: str) -> None:
    table = tmp_path / "t"
    properties = f"'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = '{mode}'"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (id BIGINT, `{name}` STRING) USING delta TBLPROPERTIES ({properties})",
        f"INSERT INTO {named(table)} SELECT id, 'a' FROM range(0, 5, 1, 1)",
    )
    with pytest.raises(RefusedTable, match=f"the column {name} has a name"):
        refuse_deletes(opened(table).snapshot(), request(Operation.DELETE, rows="id = 2"))
    with pytest.raises(EngineError):
        delta_spark.sql(f"DELETE FROM {named(table)} WHERE id = 2", f"SELECT * FROM {named(table)}")
