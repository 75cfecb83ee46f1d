"""The latest version's rows before and after a removal of files -> the verdict of Great Expectations. On Spark.

Starts only from the address and the version's number, like the check of a published version.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from nightkeep.checking.expectations import expect_kept
from nightkeep.checking.unit_fingerprints import measure
from nightkeep.checking.unit_sample import sample
from nightkeep.errors import MissingFile
from nightkeep.formats.views import open_view
from nightkeep.model import Address, Fingerprint, View
from nightkeep.model.check_values import Content, KeptRow
from nightkeep.records.check_report import ExpectationResult
from nightkeep.spark.query_settings import planned_for
from nightkeep.spark.view import Side, TableView

__all__ = ["Content", "KeptRow", "content", "judge"]


def content(address: Address, *, spark: SparkSession, byte_budget: int, version: int | None = None) -> Content:
    """The content of a version, the latest by default; of a sample of its units if they are larger than the budget.

    The same version and budget give the same sample. Raises RefusedTable for a table that Spark cannot read, and
    MissingFile for a version that no longer exists.
    """
    relation = open_view(address, spark)
    number = relation.latest() if version is None else version
    loaded = relation.version(number)
    if loaded is None:
        raise MissingFile(f"{address.name}: version {number}", "it to be read again", "it does not exist any more")
    # The content is read twice, before and after the removal; the budget is for both reads.
    units = sample(sorted(loaded.units), loaded, loaded, byte_budget)
    seen = _views(relation)
    with planned_for(spark, len(seen) * loaded.rows_listed):
        (measured,) = measure(relation, [([Side(number, view) for view in seen], units)])
    views = {
        view: sum((facts.content for facts in of_units.values()), Fingerprint())
        for view, of_units in zip(seen, measured, strict=True)
    }
    coverage = f"{len(units)} of {len(loaded.units)} units of version {number} compared"
    row_counts = [loaded.units[unit].rows for unit in units]
    rows = {relation.published: sum(n for n in row_counts if n is not None)} if None not in row_counts else {}
    return Content(number, views, "; ".join([coverage, *relation.notes]), rows)


def judge(before: Content | None, after: Content | None, files: KeptRow) -> tuple[ExpectationResult, ...]:
    """The verdict of Great Expectations on the files, and on both contents if they were measured."""
    compared = [] if before is None or after is None else [*_rows(before, after)]
    return expect_kept([*compared, files])


def _views(relation: TableView) -> tuple[View, ...]:
    """The views to measure: what published readers see, and the merged rows, which include files that readers do not
    see yet. Only a table with keys can be merged."""
    return tuple(dict.fromkeys((relation.published, *([View.MERGED] if relation.keys else []))))


def _rows(before: Content, after: Content) -> Iterator[KeptRow]:
    for view, held in before.views.items():
        holds = after.views[view]
        yield KeptRow(
            unit="table",
            comparison=f"version {before.version}, {view.value}",
            base_rows=held.rows,
            candidate_rows=holds.rows,
            base_hash_a=f"{held.sum_a:016x}",
            candidate_hash_a=f"{holds.sum_a:016x}",
            base_hash_b=f"{held.sum_b:016x}",
            candidate_hash_b=f"{holds.sum_b:016x}",
            expected_rows=after.rows.get(view),
        )
