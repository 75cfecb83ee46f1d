"""Columns with names of Iceberg's metadata columns: what hid rows from Java is refused by name, all else is done."""

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.json_lines import EngineError
from tests.formats.iceberg.runs import care_for, configured
from tests.support.extended import some_extended

from nightkeep.model import Operation, Outcome

POSITION = "the column _pos has the name of a metadata column"
LINEAGE = "has the name of a column that rewrites add"
NAMES = (
    "_pos",
    "_row_id",
    "_last_updated_sequence_number",
    "_POS",
    "_file",
    "_deleted",
    "_partition",
    "_spec_id",
    "file_path",
    "pos",
    "row",
    "content_offset",
)


def made(java: IcebergJava, table: Table, name: str, version: int) -> None:
    java.create(table, [("id", "long"), (name, "string")], Layout(format_version=version))
    for number in (0, 2, 4):
        java.append(table, [[number, "a"], [number + 1, "b"]])
    java.commit(table, java.equality_deletes(table, [[0], [3]], keys=["id"]))


def refusals(name: str, version: int) -> dict[Operation, str]:
    if name == "_pos":
        return {Operation.PERSIST_DELETES: POSITION}
    if version == 3 and name in ("_row_id", "_last_updated_sequence_number"):
        return {Operation.OPTIMIZE: LINEAGE}
    return {}


@pytest.mark.in_turn("version")
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", some_extended(NAMES, keep=3))
def test_a_reserved_name_hides_no_row(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, iceberg: Warehouse, name: str, version: int
) -> None:
    table = iceberg.table()
    with configured(iceberg):
        made(iceberg_java, table, name, version)
        before = iceberg_java.read(table)
        try:
            by_spark = iceberg_spark.read(table)
        except EngineError as failure:
            # It reads no table with such a column in any state.
            assert "reserved for Iceberg metadata columns" in str(failure)
            by_spark = None
        expected = refusals(name, version)
        for operation in (Operation.PERSIST_DELETES, Operation.OPTIMIZE):
            done = care_for(table, operation=operation)
            if operation in expected:
                assert (done.outcome, done.committed_version) == (Outcome.REFUSED, None)
                assert expected[operation] in str(done.reason)
            else:
                assert done.outcome is Outcome.VERIFIED, done.reason
            assert iceberg_java.read(table) == before
            assert by_spark is None or iceberg_spark.read(table) == by_spark


def test_java_reads_no_vector_beside_a_column_of_that_name(iceberg_java: IcebergJava, iceberg: Warehouse) -> None:
    """Why it is refused; with the first release of Iceberg that reads it, this test asks for the refusal to go."""
    table = iceberg.table()
    made(iceberg_java, table, "_pos", 2)
    file = iceberg_java.entries(table)[0]["file_path"]
    iceberg_java.commit(table, iceberg_java.position_deletes(table, [(file, 0)]))
    with pytest.raises(EngineError, match="multiple fields for name _pos"):
        iceberg_java.read(table)
