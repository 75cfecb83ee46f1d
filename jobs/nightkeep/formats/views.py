"""A table -> the view of its format on Spark. Only the code of this format is imported."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from nightkeep.errors import RefusedTable
from nightkeep.model import Address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from nightkeep.spark.view import TableView

_VIEWS: Final = {name: f"nightkeep.formats.{name}.spark.view" for name in ("delta", "iceberg", "paimon")}


def open_view(address: Address, spark: SparkSession) -> TableView:
    """The view of a table on Spark. Raises RefusedTable for a format or a feature that has none."""
    if address.format not in _VIEWS:
        names = ", ".join(_VIEWS)
        raise RefusedTable(address.name, f"{address.format} tables cannot be read back in Spark", f"we read {names}")
    relation: TableView = import_module(_VIEWS[address.format]).open_table(address, spark)
    return relation
