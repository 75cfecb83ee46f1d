"""Orphans in a file of JSON lines, and counted: by kind and by age, at each edge of an age."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from nightkeep.model.sweep_rules import AGES
from nightkeep.retention import orphan_list
from nightkeep.retention.orphan_list import iso, write_orphans
from nightkeep.retention.orphans.sets import ORPHANS

NOW_MS = 1_795_000_000_000


def batch(*rows: tuple[str, int, int, str]) -> pa.RecordBatch:
    """Name, bytes, age in milliseconds, kind."""
    return pa.RecordBatch.from_pylist(
        [{"name": n, "bytes": size, "modified_ms": NOW_MS - age, "kind": kind} for n, size, age, kind in rows], ORPHANS
    )


def test_every_orphan_is_a_line_and_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "new" / "orphans.jsonl"
    batches = [batch(("a", 1, 0, "data"), ("b", 2, 0, "manifest")), batch(("c", 4, 0, "data"))]
    found = write_orphans(path, batches, root="/lake/t/", now_ms=NOW_MS).to_json()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["path"], line["bytes"], line["kind"]) for line in lines] == [
        ("/lake/t/a", 1, "data"),
        ("/lake/t/b", 2, "manifest"),
        ("/lake/t/c", 4, "data"),
    ]
    assert lines == found["orphans"]
    assert (found["orphans_total"], found["orphans_bytes"]) == (3, 7)
    assert found["by_kind"] == {"data": {"files": 2, "bytes": 5}, "manifest": {"files": 1, "bytes": 2}}
    assert lines[0]["modified_at"] == iso(NOW_MS)
    assert [name.name for name in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("place", range(len(AGES)))
def test_a_file_is_of_the_age_that_it_has_reached(place: int, tmp_path: Path) -> None:
    start = 0 if place == 0 else AGES[place - 1][1]
    end = AGES[place][1]
    assert start is not None
    ages = [start, start + 1, *([] if end is None else [end - 1])]
    rows = [(f"f{at}", 10, age, "data") for at, age in enumerate(ages)]
    found = write_orphans(tmp_path / "orphans", [batch(*rows)], root="/t", now_ms=NOW_MS)
    assert found.to_json()["by_age"] == {AGES[place][0]: {"files": len(ages), "bytes": 10 * len(ages)}}


def test_a_document_names_the_first_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphan_list, "SHOWN", 3)
    batches = [batch(*((f"{n}{m}", 1, 0, "data") for m in range(2))) for n in range(4)]
    found = write_orphans(tmp_path / "orphans", batches, root="/t", now_ms=NOW_MS).to_json()
    assert [each["path"] for each in found["orphans"]] == ["/t/00", "/t/01", "/t/10"]  # type: ignore[attr-defined]
    assert found["orphans_total"] == 8 and len((tmp_path / "orphans").read_text().splitlines()) == 8


def test_a_list_that_is_cut_short_does_not_appear(tmp_path: Path) -> None:
    (tmp_path / "orphans").write_text("earlier")

    def broken() -> object:
        yield batch(("a", 1, 0, "data"))
        raise OSError("no answer")

    with pytest.raises(OSError, match="no answer"):
        write_orphans(tmp_path / "orphans", broken(), root="/t", now_ms=NOW_MS)  # type: ignore[arg-type]
    assert (tmp_path / "orphans").read_text() == "earlier"


def test_times_are_utc_to_the_millisecond() -> None:
    assert iso(1_500) == "1970-01-01T00:00:01.500+00:00"
