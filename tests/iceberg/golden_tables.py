"""The tables that Iceberg Java and iceberg-spark make for tests, by name: made anew where they are asked for."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.engines.iceberg_java import IcebergJava
from tests.engines.iceberg_spark import IcebergSpark
from tests.engines.iceberg_tables import Table
from tests.iceberg import golden_deletes, golden_shapes


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
