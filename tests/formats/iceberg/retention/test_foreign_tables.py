"""Another table in a table's own folder, told by its metadata; and what is none of anybody's."""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.runs import configured, folder, opened
from tests.formats.iceberg.sweeping import UUID, aged, listed, planted, stored, swept

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.iceberg.metadata import metadata_beginning
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.retention.sweep import sweep_facts
from nightkeep.storage import LocalStorage

OTHER = "0123abcd-ffff-4000-8000-00000000beef"
DOCUMENT = {
    "format-version": 2,
    "location": 'file:/a "b"\\',
    "last-updated-ms": 17,
    "table-uuid": UUID,
    "properties": {"table-uuid": OTHER, "s": "\u00e4\u4e16 {[", "\\": "\t"},
    "refs": {},
    "flags": [True, False, None, -1.5e3],
}
packed = partial(gzip.compress, mtime=0)


@pytest.fixture
def table(golden: Callable[[str], Table], iceberg: Warehouse) -> Iterator[Table]:
    with configured(iceberg):
        yield golden("history_v2")


def other(table: Table, number: int = 0, name: str = "{:05}-" + UUID + ".metadata.json") -> Path:
    return folder(table) / "metadata" / name.format(number)


def table_of(folder: Path, data: bytes) -> str | None:
    """Of a file that is new each time."""
    path = folder / f"{len([*folder.iterdir()])}.metadata.json"
    path.write_bytes(data)
    storage = LocalStorage(str(folder))
    return metadata_beginning.table_id(storage, next(file for file in storage.list("") if file.name == path.name))


@pytest.mark.parametrize("place", [0, 20, 39])
def test_another_table_is_found_among_any_number_of_files_of_this_one(place: int, table: Table) -> None:
    """Its own versions are neither the first nor the last ones."""
    for number in range(40):
        document = {**table.document(), **({"table-uuid": OTHER} if number == place else {})}
        other(table, number).write_text(json.dumps(document))
    aged(folder(table))
    with pytest.raises(RefusedTable, match=rf"{place:05}-.* the metadata of another table, {OTHER}"):
        swept(table, SweepMode.DELETE)
    other(table, place).unlink()
    assert swept(table).orphans


@pytest.mark.parametrize(
    "data",
    [
        b"(\xb5/\xfd what zstd begins with",
        b"left behind",
        b'{"format-version": 2, x} and more of it',
        packed(b"no JSON"),
        b"\x1f\x8bno gzip",
        b"[]",
        b'{"format-version": 1}',
    ],
)
def test_metadata_that_nobody_can_read_stays_and_is_reported(data: bytes, table: Table) -> None:
    """The catalog names another metadata file, so a writer that was killed left this one."""
    before = listed(table)
    other(table).write_bytes(data)
    left = planted(table, f"metadata/{UUID}-m0.avro")
    aged(folder(table))
    found = swept(table, SweepMode.DELETE)
    name = stored(other(table))
    assert found.swept.outcome is Outcome.VERIFIED and frozenset(found.orphans) == left
    assert found.swept.unreadable == (name,)
    assert listed(table) == before | {name}
    facts = sweep_facts(found.swept, root="file:/")
    assert name in str(facts["notes"]) and "cannot be read" in str(facts["notes"])


@pytest.mark.parametrize("name", ["{:05}-" + UUID + ".gz.metadata.json", "v{}.metadata.json.gz"])
def test_compressed_metadata_of_another_table_is_found(name: str, table: Table) -> None:
    other(table, 7, name).write_bytes(packed(json.dumps({**table.document(), "table-uuid": OTHER}).encode()))
    with pytest.raises(RefusedTable, match=f"another table, {OTHER}"):
        opened(table).retention.table_files()


@pytest.mark.parametrize("pack", [bytes, packed])
def test_what_a_killed_writer_left_is_nobodys_wherever_it_ends(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    whole = pack(json.dumps(DOCUMENT, ensure_ascii=False).encode())
    assert table_of(tmp_path, whole) == UUID
    for end in range(len(whole)):
        assert table_of(tmp_path, whole[:end]) in (None, UUID)
    for zeros in (b"\0", b"\0" * 4096):
        assert table_of(tmp_path, zeros) is None
    if pack is bytes:
        assert table_of(tmp_path, whole[:60] + b"\0" * 100) is None


def test_a_file_that_another_tables_writer_did_not_finish_is_another_tables(table: Table) -> None:
    other(table).write_bytes(json.dumps({**DOCUMENT, "table-uuid": OTHER}).encode()[:-9])
    with pytest.raises(RefusedTable, match=OTHER):
        opened(table).retention.table_files()


@pytest.mark.parametrize(
    ("sign", "format"),
    [
        ("_delta_log/00000000000000000000.json", "Delta"),
        (".hoodie/hoodie.properties", "Hudi"),
        ("schema/schema-3", "Paimon"),
    ],
)
def test_another_formats_table_in_the_very_folder_is_refused(sign: str, format: str, table: Table) -> None:
    """As a conversion in place makes it: its files have names like ours."""
    theirs = folder(table) / f"data/part-00000-{UUID}-c000.snappy.parquet"
    for path in (theirs, folder(table) / sign):
        path.parent.mkdir(exist_ok=True)
        path.write_text("theirs")
    aged(folder(table))
    with pytest.raises(RefusedTable, match=rf"{re.escape(sign)} in its folder is .* a table of {format}'s"):
        swept(table, SweepMode.DELETE)
    (folder(table) / sign).rename(folder(table) / "README")
    (folder(table) / sign).parent.rmdir()
    assert str(theirs)[1:] in swept(table).orphans


def test_a_folder_that_is_called_schema_is_no_sign(table: Table) -> None:
    (folder(table) / "schema").mkdir()
    (folder(table) / "schema/schema-of-mine").write_text("x")
    assert opened(table).retention.table_files()


TEXTS = st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXTS | st.just("table-uuid"), each, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=6), st.data())
def test_the_beginning_of_a_file_reports_the_table_or_nothing(content: dict[str, Any], data: st.DataObject) -> None:
    """Against a reader of the whole, which knows what is nested."""
    content.pop("table-uuid", None)
    names = data.draw(st.permutations([*content, "table-uuid"]))
    document = {name: UUID if name == "table-uuid" else content[name] for name in names}
    written = json.dumps(document, indent=data.draw(st.sampled_from([None, 2])), ensure_ascii=data.draw(st.booleans()))
    found = metadata_beginning._UUID_FIRST.match(written.encode(errors="surrogatepass"))
    assert found is None or found[1].decode() == json.loads(written)["table-uuid"] == UUID


def test_long_files_are_read_as_a_whole_only_where_the_uuid_is_behind(tmp_path: Path) -> None:
    long = {"properties": {"p": "x" * metadata_beginning._WHOLE_BYTES}}
    assert table_of(tmp_path, json.dumps({**DOCUMENT, **long}).encode()) == UUID
    assert table_of(tmp_path, json.dumps({**long, **DOCUMENT}).encode()) == UUID
    with pytest.raises(CorruptMetadata):
        table_of(tmp_path, b" " * metadata_beginning._WHOLE_BYTES + b"none")
