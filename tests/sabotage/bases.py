"""Tables that are sabotaged: each is made once, by an engine that starts when its first table is made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.paimon_java import PaimonJava
from tests.formats.iceberg.gate import test_sabotage as iceberg
from tests.formats.iceberg.runs import Kept, configured
from tests.formats.iceberg.sabotage import filled

from nightkeep.model import Address


@dataclass(frozen=True, slots=True)
class Published:
    """A damaged version that nobody judged."""

    address: Address
    base: int | None
    parent: int
    version: int
    same_rows: bool = True


@dataclass
class Bases:
    """Tables that are made once, and copied for each kind. Engines start when the first of their tables is made."""

    folder: Path
    stack: ExitStack
    made: dict[str, Any] = field(default_factory=dict)

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]

    @property
    def paimon_java(self) -> PaimonJava:
        java: PaimonJava = self.once("paimon java", lambda: self.stack.enter_context(PaimonJava()))
        return java

    @property
    def iceberg_java(self) -> IcebergJava:
        java: IcebergJava = self.once("iceberg java", lambda: self.stack.enter_context(IcebergJava()))
        return java

    def warehouse(self, name: str) -> Warehouse:
        """An Iceberg catalog that pyiceberg finds by its name."""
        warehouse = Warehouse(name, self.folder / name)
        self.stack.enter_context(configured(warehouse))
        return warehouse

    def paimon(self, name: str, make: Callable[[PaimonJava, Path], object]) -> Path:
        folder = self.folder / "bases" / name

        def made() -> Path:
            make(self.paimon_java, folder)
            return folder

        return Path(self.once(name, made))

    def iceberg(self, version: int) -> Kept:
        fill = partial(filled, self.iceberg_java, days=iceberg.DAYS, version=version)
        return self.iceberg_of(f"sabotaged{version}", fill)

    def iceberg_of(self, name: str, fill: Callable[[Table], object]) -> Kept:
        """The table of a catalog of its own."""

        def made() -> Kept:
            table = self.warehouse(name).table("shop.events")
            fill(table)
            return Kept.of(table)

        kept: Kept = self.once(f"iceberg {name}", made)
        return kept
