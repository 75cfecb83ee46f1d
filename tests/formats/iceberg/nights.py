"""One table of a catalog that Java, our writer and nights of both kinds change; Java says what is in it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.drivers.lake_rows import Rows
from tests.formats.iceberg import runs
from tests.formats.iceberg.catalog_world import address_of
from tests.formats.iceberg.optimized_lake import OptimizedLake

from nightkeep.api.changes import Workers, apply_batch
from nightkeep.formats.iceberg.upsert.batch import ChangeBatch, ChangeMode
from nightkeep.formats.iceberg.upsert.sink import Applied
from nightkeep.model import Operation, Outcome
from nightkeep.records import RunDocument

Changes = Sequence[tuple[str, Mapping[str, Any]]]
_NUMBERS = count()


@dataclass(frozen=True)
class Nights(OptimizedLake):
    @property
    def rows(self) -> Rows:
        return self.java.read(self.table)

    def upgrade(self) -> None:
        self.alter({"change": "set_properties", "properties": {"format-version": "3"}})

    def alter(self, *changes: Mapping[str, Any]) -> None:
        self.java.alter(self.table, *changes)

    def apply(
        self, changes: Changes, *keys: str, mode: ChangeMode = ChangeMode.UPSERT, batch_id: str | None = None
    ) -> Applied:
        """A batch by our writer; keys absent from a change are null."""
        name = batch_id or f"batch {next(_NUMBERS)}"
        file = self.table.warehouse.folder / f"{name}.jsonl"
        file.write_text("".join(json.dumps({**row, "_change_type": kind}) + "\n" for kind, row in changes))
        return apply_batch(address_of(self.table), ChangeBatch(name, (str(file),), mode, keys=keys), Workers())

    def persist(self, **settings: Any) -> RunDocument:
        """One run of persist-deletes, after which Java shows the same rows with the same ids and numbers."""
        before = self.shown()
        done = runs.care_for(
            self.table, run_id=f"persist {next(_NUMBERS)}", operation=Operation.PERSIST_DELETES, **settings
        )
        assert done.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), (done.outcome, done.reason)
        assert self.shown() == before
        return done

    def require_positions_only(self) -> None:
        """What conversions promise: no equality delete, one place of positions for a data file, of the right kind."""
        assert self.live(2) == []
        held = [task["deletes"] for task in self.java.tasks(self.table)]
        assert all(len(each) <= 1 for each in held)
        kinds = {each["file_format"].lower() for each in self.live(1)}
        assert kinds <= ({"puffin"} if self.snapshot.schema.has_row_lineage else {"parquet", "orc"})
        assert self.persist().outcome is Outcome.UNCHANGED
