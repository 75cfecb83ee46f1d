"""The tables that Iceberg Java and iceberg-spark make for tests, by name: made anew where they are asked for."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg import golden_deletes, golden_shapes


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a table is made; `version` is the format's, None where the recipe has its own."""

    make: Callable[..., None]
    version: int | None

    @property
    def by_spark(self) -> bool:
        return next(iter(inspect.signature(self.make).parameters)) == "spark"

    @property
    def about(self) -> str:
        return inspect.getdoc(self.make) or ""

    def __call__(self, table: Table, java: IcebergJava, spark: Callable[[], IcebergSpark]) -> None:
        engine: Any = spark() if self.by_spark else java
        self.make(engine, table, *([] if self.version is None else [self.version]))


def _recipes() -> dict[str, Recipe]:
    found = {}
    for module in (golden_shapes, golden_deletes):
        for name, make in vars(module).items():
            if inspect.isfunction(make) and make.__module__ == module.__name__ and not name.startswith("_"):
                parameters = list(inspect.signature(make).parameters)
                if parameters[1:2] != ["table"]:
                    continue
                for version in (2, 3) if "version" in parameters else (None,):
                    found[name if version is None else f"{name}_v{version}"] = Recipe(make, version)
    return found


RECIPES: Mapping[str, Recipe] = _recipes()

GOLDEN = Path(__file__).parents[2] / "golden" / "iceberg"
WRITTEN_IN = Path("/var/tmp/nightkeep-golden")
"""The warehouse that the bytes in GOLDEN name; it need not be there."""

KEPT = (
    "transforms_v2",
    "transforms_v3",
    "partition_types_v2",
    "types_v3",
    "odd_paths_v2",
    "evolved_v2",
    "specs_deleted_v2",
    "upserts_of_two_keys_v2",
    "upserts_v3",
    "changelog_v2",
    "mixed_keys_v2",
    "null_keys_v3",
    "float_keys_v2",
    "positions",
    "vectors",
    "vectors_named_parquet",
    "upgraded",
    "lineage",
    "refs_v2",
    "statistics_v3",
    "history_v2",
    "merge_on_read_v2",
    "merge_on_read_v3",
    "avro_data_v3",
    "orc_data_v2",
)
"""Recipes whose bytes are in GOLDEN."""

NOT_READ_BY_JAVA = {"dropped_key": "1.12.0: Cannot find required field for ID 3; Spark reads it"}
NOT_READ_BY_DUCKDB = {
    "avro_data": "refuses the format",
    "orc_data": "refuses the format",
    "codecs": "1.5.5 ends on manifests in zstd",
    "nanoseconds": "has no timestamptz_ns",
    "odd_paths": "1.5.5 fails on deletes in a null partition",
    "widened_key": "1.5.5 fails on deletes of the narrower type",
    "float_keys": "1.5.5 takes 0.0 for -0.0",
    "defaulted_key": "1.5.5 takes null for the default of a key",
    "dropped_key": "1.5.5 crashes",
}
NOT_READ_BY_PYICEBERG = {"codecs": "needs a package for snappy", "avro_data": "reads no files in Avro"}
"""What is known of engines, by recipe without its version."""


def known(about: Mapping[str, str], name: str) -> bool:
    return name.removesuffix("_v2").removesuffix("_v3") in about
