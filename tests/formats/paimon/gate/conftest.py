"""The gate's own decoder, for the small files of tests too."""

import pytest

from nightkeep.encodings import polars_rows


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polars_rows, "LEAST_ROWS", 1)
