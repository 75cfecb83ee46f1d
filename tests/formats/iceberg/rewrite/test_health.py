"""The health of an Iceberg sample: counts against the summary that Iceberg Java wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples.working_copy import copy_tables, variables

from nightkeep.formats.iceberg.format import open_table
from nightkeep.model import Address, Operation, Request


def test_counts_are_those_of_the_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_tables(tmp_path / "warehouse")
    for variable, value in variables(tmp_path).items():
        monkeypatch.setenv(variable, value)
    for name in ("orders", "customers"):
        table = open_table(Address("iceberg", f"lake/shop.{name}", name))
        snapshot = table.snapshot()
        assert table.health is not None
        found = table.health(snapshot, Request(Operation.OPTIMIZE, 0))
        told = {key: int(value) for key, value in snapshot.summary.items() if key.startswith("total-")}
        assert found.files == told["total-data-files"]
        assert found.rows == told["total-records"]
        assert found.equality_deletes == told["total-equality-deletes"]
        assert found.deleted_rows == told["total-position-deletes"]
        assert (found.equality_files or 0) + (found.delete_files or 0) == told["total-delete-files"]
        assert (found.manifests, found.versions) == (
            len(snapshot.manifests),
            len(list(snapshot.metadata["snapshots"])),  # type: ignore[call-overload]
        )
        assert found.small_files == found.files
        few = table.health(snapshot, Request(Operation.OPTIMIZE, 0, min_bytes=1))
        assert few.small_files == 0
