"""Metadata files of golden tables that were copied over each other: no sweep deletes a live file."""

from pathlib import Path

import pytest
from tests.formats.iceberg.damaged import NAMES, iceberg_worlds
from tests.retention.copies import copied


@pytest.mark.parametrize(
    ("names", "some"), [(NAMES[:2], True), pytest.param(NAMES, False, marks=pytest.mark.extended)], ids=["some", "all"]
)
def test_no_copy_of_metadata_makes_a_live_file_an_orphan(tmp_path: Path, names: tuple[str, ...], *, some: bool) -> None:
    for world in iceberg_worlds(tmp_path, names):
        found = copied(world, some=some)
        assert not found.failures, (world.name, str(found), found.failures)
