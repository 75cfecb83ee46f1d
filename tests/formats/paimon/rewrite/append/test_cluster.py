"""Z-order and Hilbert clustering of a table without keys: in one task, through the exchange, and what is refused."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout
from tests.formats.paimon.appended import VECTORS, Appended
from tests.formats.paimon.contents import opened

from nightkeep.api.advice import advise
from nightkeep.clustering.clustered_files import FileLayout
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats.paimon.rewrite.append.optimize import LAYOUT, cluster_files, layout, mark_of
from nightkeep.model import Clustering, Curve, Operation, Outcome, Request
from nightkeep.protocol import Wide

COLUMNS = (("a", "INT"), ("b", "INT"), ("text", "STRING"))
TARGET = {"target_size": "5KB"}


@pytest.fixture
def table(paimon_java: PaimonJava, tmp_path: Path) -> Appended:
    """One partition, twelve files of a few hundred rows with vectors; `a` and `b` take any value in each of them.

    Clustering leaves about as many files, so that numbers of files that may hold a value are comparable.
    """
    table = Appended.create(paimon_java, tmp_path / "t", VECTORS, columns=COLUMNS, partitioned=False)
    for _ in range(12):
        table.append(350)
    table.delete(0.05)
    return table


@pytest.mark.few(2)
@pytest.mark.parametrize("curve", ["zorder", "hilbert"])
@pytest.mark.parametrize("through_exchange", [False, True])
def test_files_are_laid_along_a_curve(table: Appended, curve: str, through_exchange: bool) -> None:
    before = table.rows()
    wide = {"exchange_above": "1B"} if through_exchange else {}
    asked = {**TARGET, **wide, "clustering": {curve: ["a", "b"]}}
    document = table.optimize(**asked)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert table.rows() == before and not table.vectors() and len(table.files()) > 3
    skipping, overlap = (document.metrics.extra[name] for name in ("skipping", "overlap"))
    for name in ("a", "b"):
        assert skipping[name]["after"] > skipping[name]["before"] + 0.2, skipping
        assert overlap[name]["after"] < overlap[name]["before"] * 0.75, overlap
    assert table.optimize(**asked).outcome is Outcome.UNCHANGED
    table.append(10)
    again = table.optimize(**asked)
    assert again.outcome is Outcome.VERIFIED and again.plan is not None
    assert again.plan.units[0].input_files != () and len(again.plan.units[0].input_files) < 1 + len(table.files())


def test_java_reads_files_of_many_row_groups_with_a_page_index(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = Appended.create(paimon_java, tmp_path / "t", {}, columns=COLUMNS, partitioned=False)
    table.append(60_000)
    before = table.rows()
    document = table.optimize(target_size="512KB", clustering={"hilbert": ["a", "b"]})
    assert document.outcome is Outcome.VERIFIED, document.reason
    footers = [pq.read_metadata(path) for path in (tmp_path / "t").rglob("*-nk-*.parquet")]
    assert sum(footer.num_row_groups for footer in footers) > 8 * len(footers) > 0
    assert all(footer.row_group(0).column(0).has_column_index for footer in footers)
    assert table.rows() == before


def test_a_large_unit_goes_through_the_exchange(table: Appended) -> None:
    snapshot = opened(table.folder).snapshot()
    clustering = Clustering(("A", "b"), Curve.HILBERT)
    request = Request(Operation.OPTIMIZE, 0, clustering=clustering, wide_bytes=1)
    work = cluster_files(snapshot, snapshot.units[0], request)
    assert work is not None and [isinstance(task, Wide) for task in work.tasks] == [True, False]
    assert cluster_files(snapshot, snapshot.units[0], Request(Operation.OPTIMIZE, 0)) is None


def test_a_clustering_is_known_by_field_ids(table: Appended) -> None:
    schema = opened(table.folder).snapshot().schema
    marks = {
        mark_of(schema, FileLayout(0, Clustering(columns, Curve.Z)))
        for columns in (("a",), ("b",), ("a", "b"), ("b", "a"))
    }
    assert len(marks) == 4
    table.java.alter(table.folder, {"change": "rename_column", "name": "a", "to": "c"})
    renamed = opened(table.folder).snapshot().schema
    assert mark_of(renamed, FileLayout(0, Clustering(("c", "b"), Curve.Z))) in marks


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("day", "it is a partition column"),
        ("nothing", "the table has no such column"),
        ("text", "it has no statistics"),
    ],
)
def test_columns_that_cannot_be_clustered_by(
    paimon_java: PaimonJava, tmp_path: Path, column: str, message: str
) -> None:
    table = Appended.create(paimon_java, tmp_path / "t", {"fields.text.stats-mode": "none"}, columns=COLUMNS)
    table.append(3)
    with pytest.raises(UsageError, match=message):
        table.optimize(clustering={"zorder": [column]})
    columns = LAYOUT.columns(opened(table.folder).snapshot())
    # A partition column has statistics too, and is constant.
    assert [leaf.path for leaf in columns.indexed] == [("id",), ("day",), ("a",), ("b",)]
    assert columns.constant == ("day",)


def test_advice_is_for_tables_without_keys(table: Appended, paimon_java: PaimonJava, tmp_path: Path) -> None:
    advice = advise(f"paimon:{table.folder}", target_size="16KB")
    assert "cluster by" in str(advice)
    keyed = tmp_path / "keyed"
    paimon_java.create(keyed, Layout([("id", "INT NOT NULL")], ["id"], [], {"bucket": "1"}))
    paimon_java.write(keyed, [("+I", 1)])
    with pytest.raises(RefusedTable, match="rows of a table with a primary key are sorted by it"):
        layout(opened(keyed).snapshot())
