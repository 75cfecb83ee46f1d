"""What a new file says of its rows and of its age, beside the files that were there before."""

from dataclasses import replace
from typing import Any

import pytest
from tests.formats.paimon.contents import SAMPLES, opened

from nightkeep.formats.paimon.gate.file_origin import origin_faults
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot


@pytest.fixture(scope="module")
def parent() -> PaimonSnapshot:
    return opened(SAMPLES / "orders").snapshot()


def faults(parent: PaimonSnapshot, *, source: int | None, younger_ms: int, kind: str = "COMPACT") -> list[str]:
    """Of one file in the place of a bucket's files, `younger_ms` younger than the oldest of them."""
    bucket = next(unit for unit in parent.units if len(unit.files) > 1)
    first = bucket.files[0]
    record: dict[str, Any] = {**first.record, "_FILE_SOURCE": source}
    oldest = min(file.created_ms for file in bucket.files)
    fresh = replace(first, name="data-nk-0.parquet", record=record, created_ms=oldest + younger_ms)
    units = tuple(replace(unit, files=(fresh,)) if unit is bucket else unit for unit in parent.units)
    candidate = replace(parent, units=units, raw={**parent.raw, "commitKind": kind})
    return list(origin_faults(parent, candidate, [unit.key for unit in parent.units]))


@pytest.mark.parametrize(("kind", "source"), [("COMPACT", 1), ("OVERWRITE", 0)])
def test_rows_of_old_files_are_compacted_and_changed_rows_are_appended(
    parent: PaimonSnapshot, kind: str, source: int
) -> None:
    assert faults(parent, source=source, younger_ms=0, kind=kind) == []
    (fault,) = faults(parent, source=1 - source, younger_ms=0, kind=kind)
    assert f"states source {1 - source}, expected {source}" in fault
    assert len(faults(parent, source=None, younger_ms=0, kind=kind)) == 1


def test_a_new_file_may_be_as_old_as_the_oldest_and_no_older(parent: PaimonSnapshot) -> None:
    assert faults(parent, source=1, younger_ms=0) == []
    (fault,) = faults(parent, source=1, younger_ms=-1)
    assert "before all that were there" in fault
