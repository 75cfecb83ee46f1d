"""Names of pages that no store permits: there is no such page, wherever the reports are."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from nightkeep_airflow import stored_files
from nightkeep_airflow.stored_files import StoredFiles

LONG = {
    "part": f"pages/{'n' * 256}.html",
    "bytes of a part": f"pages/{chr(233) * 128}.html",
    "key": f"{'d/' * 520}index.html",
}


class Refusing:
    """A bucket that answers a name as a store answers what it does not permit."""

    def read(self, name: str) -> NoReturn:
        raise OSError(f"KeyTooLongError: {name[:10]}")


@pytest.mark.parametrize("place", ["s3://bucket/nights", "hdfs://namenode:8020/nights", ""])
@pytest.mark.parametrize("name", LONG)
def test_a_name_that_is_too_long_is_no_page(
    tmp_path: Path, place: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_files, "report_store", lambda _: Refusing())
    assert StoredFiles(place or str(tmp_path)).read(LONG[name]) is None


def test_the_prefix_of_the_place_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_files, "report_store", lambda _: Refusing())
    name = f"{'d' * 200}/" * 4 + "index.html"
    with pytest.raises(OSError, match="KeyTooLongError"):
        StoredFiles("s3://bucket/nights").read(name)
    assert StoredFiles(f"s3://bucket/{'p' * 220}").read(name) is None
