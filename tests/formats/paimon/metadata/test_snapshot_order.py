"""Sequence numbers of rows that are as new as the snapshot of their commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.formats.paimon.contents import SAMPLES, opened

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.snapshot_order import file_sequence, refuse_unstamped_files
from nightkeep.model import Operation, Request

ORDERED = {"sequence.snapshot-ordering": "true"}
STOCK = opened(SAMPLES / "stock").snapshot()
SCHEMA = replace(STOCK.schema, options={**STOCK.schema.options, **ORDERED})
FILE = replace(STOCK.units[0].files[0], min_sequence=7, max_sequence=7)


def with_source(source: int | None, **changes: Any) -> Any:
    record: Mapping[str, Any] = {**FILE.record, "_FILE_SOURCE": source}
    return replace(FILE, record=record, **changes)


def test_appended_rows_have_the_number_in_their_metadata_alone() -> None:
    assert file_sequence(with_source(0), SCHEMA) == 7
    assert file_sequence(with_source(1, max_sequence=9), SCHEMA) is None
    assert file_sequence(with_source(0, max_sequence=9), STOCK.schema) is None


@pytest.mark.parametrize("file", [with_source(None), with_source(0, max_sequence=9)])
def test_files_of_before_the_option_are_refused(file: Any) -> None:
    unit = replace(STOCK.units[0], files=(file,))
    table = replace(STOCK, units=(unit,), schemas=replace(STOCK.schemas, current=SCHEMA))
    with pytest.raises(RefusedTable, match=r"option sequence\.snapshot-ordering = true and a file without the number"):
        refuse_unstamped_files(table, Request(Operation.UPGRADE, 0))
