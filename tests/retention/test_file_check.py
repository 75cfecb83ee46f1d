"""Files of retained versions that are there, gone, cut or damaged; footers of every kind that formats write."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.retention.toy_table import NOW, Toy
from tests.support.optional_keys import with_optional_keys

from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.table_files import Reach, Retention, Root, files_table
from nightkeep.retention.file_check import FileCheck, check_files
from nightkeep.retention.orphans.memory_sets import MemorySets

RETENTION = Retention(NOW, 7 * DAY_MS)
DATA = ("data/a.dat", "data/b c%20.dat", "data/c.dat")


def look(table: Toy, *, salt: str = "run", sample: int = 200) -> FileCheck:
    return check_files(table.retention, RETENTION, sets=MemorySets, salt=salt, sample=sample)


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """Two versions that share a file."""
    table = Toy.at(tmp_path / "toy")
    table.write(*DATA, "data/orphan.dat")
    table.commit(1, *DATA[:2])
    table.commit(2, *DATA[1:])
    return table


def test_all_is_there(toy: Toy) -> None:
    found = look(toy)
    assert (found.roots, found.files, found.faults) == (2, 7, 0)
    assert found.opened == 7


def test_a_file_that_is_gone_is_missing_in_every_version_that_needs_it(toy: Toy) -> None:
    (toy.folder / DATA[1]).unlink()
    found = look(toy)
    assert (found.missing, found.resized, found.examples) == (1, 0, (f"{DATA[1]} is not there",))


def test_a_file_that_was_cut_has_another_size(toy: Toy) -> None:
    (toy.folder / DATA[0]).write_text("cut")
    assert (look(toy).missing, look(toy).resized) == (0, 1)


def test_metadata_that_is_gone_is_a_missing_file(toy: Toy) -> None:
    (toy.folder / "meta/l-1.json").unlink()
    found = look(toy)
    assert found.missing == 1
    assert "meta/l-1.json" in found.examples[0]


def test_metadata_that_cannot_be_read_is_no_answer(toy: Toy) -> None:
    (toy.folder / "meta/l-1.json").write_text("{")
    with pytest.raises(CorruptMetadata):
        look(toy)


def expires(toy: Toy, *numbers: int) -> Callable[[int], None]:
    """Snapshots that vanish one after the other, each with a file, right after the roots were listed."""
    pending = list(numbers)

    def one(look: int) -> None:
        if look % 2 == 0 and pending:
            toy.forget(pending.pop(0))

    return one


def test_a_version_that_expires_meanwhile_is_looked_at_no_more(toy: Toy) -> None:
    def lost(root: Root) -> None:
        if root.id == "meta/s-1.json" and (toy.folder / DATA[0]).exists():
            (toy.folder / DATA[0]).unlink()
            toy.forget(1)

    toy.before_reach = lost
    found = look(toy)
    assert (found.roots, found.faults) == (1, 0)


def test_versions_that_keep_expiring_are_no_answer(toy: Toy) -> None:
    for number in (3, 4, 5):
        toy.commit(number, DATA[0])
    (toy.folder / DATA[0]).unlink()
    toy.before_roots = expires(toy, 3, 4, 5)
    with pytest.raises(MissingFile, match="some gone in each of 3 looks"):
        look(toy)


def test_the_sample_rotates_and_reaches_everything(toy: Toy) -> None:
    opened: set[str] = set()
    toy.storage = Noting(toy.storage, opened)  # type: ignore[assignment]
    sizes = set()
    for night in range(40):
        before = len(opened)
        sizes.add(look(toy, salt=f"night {night}", sample=2).opened)
        assert len(opened) - before <= 2
    # Two versions may give one file twice.
    assert sizes == {1, 2}
    assert opened == {*DATA, *(f"meta/{kind}-{n}.json" for kind in "sl" for n in (1, 2))}


class Noting:
    """A store that notes which files are opened."""

    def __init__(self, store: object, opened: set[str]) -> None:
        self._store, self._opened = store, opened

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def open(self, name: str) -> pa.NativeFile:
        self._opened.add(name)
        return self._store.open(name)  # type: ignore[attr-defined, no-any-return]


# ---- footers ----


def parquet(path: Path) -> None:
    pq.write_table(pa.table({"id": range(1000), "text": ["x" * 50] * 1000}), path)


def avro(path: Path) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
    with open(path, "wb") as sink:
        fastavro.writer(sink, schema, [{"id": n} for n in range(100)], codec="deflate")


def puffin(path: Path) -> None:
    payload = json.dumps({"blobs": [], "properties": {}}).encode()
    path.write_bytes(
        b"PFA1" + b"blob" * 100 + b"PFA1" + payload + struct.pack("<i4s", len(payload), bytes(4)) + b"PFA1"
    )


WRITERS = {".parquet": parquet, ".avro": avro, ".puffin": puffin}


def opened(folder: Path, suffix: str) -> FileCheck:
    """A look at one file, whose size metadata does not tell."""
    table = Toy.at(folder)

    class One(Toy):
        def roots(self, retention: Retention) -> tuple[Root, ...]:
            return (Root("only", None),)

        def reach(self, root: Root) -> Reach:
            return Reach(files_table([f"data/one{suffix}"]))

    return look(One(table.storage))


@pytest.mark.parametrize("suffix", WRITERS)
class TestFooter:
    @pytest.fixture
    def file(self, tmp_path: Path, suffix: str) -> Path:
        (tmp_path / "data").mkdir()
        WRITERS[suffix](tmp_path / f"data/one{suffix}")
        return tmp_path / f"data/one{suffix}"

    def test_that_is_whole_is_read(self, file: Path, suffix: str) -> None:
        found = opened(file.parents[1], suffix)
        assert (found.opened, found.unreadable) == (1, ())

    @pytest.mark.parametrize("size", [0, 3, 4, 11, 20])
    def test_that_was_cut_is_named(self, file: Path, suffix: str, size: int) -> None:
        file.write_bytes(file.read_bytes()[:size])
        (named,) = opened(file.parents[1], suffix).unreadable
        assert named.startswith(f"data/one{suffix}: ")

    def test_that_is_of_another_kind_is_named(self, file: Path, suffix: str) -> None:
        other = next(writer for name, writer in WRITERS.items() if name != suffix)
        other(file)
        assert len(opened(file.parents[1], suffix).unreadable) == 1

    def test_that_is_noise_is_named(self, file: Path, suffix: str) -> None:
        data, chance = file.read_bytes(), random.Random(7)
        for _ in range(20):
            file.write_bytes(data[:4] + chance.randbytes(len(data) - 4))
            assert len(opened(file.parents[1], suffix).unreadable) == 1


def test_a_puffin_file_may_be_named_as_a_data_file(tmp_path: Path) -> None:
    """Flink's writers of Iceberg name all of their files alike."""
    (tmp_path / "data").mkdir()
    puffin(tmp_path / "data/one.parquet")
    found = opened(tmp_path, ".parquet")
    assert (found.opened, found.unreadable) == (1, ())
    avro(tmp_path / "data/one.parquet")
    (named,) = opened(tmp_path, ".parquet").unreadable
    assert "expected b'PAR1' or b'PFA1' at its beginning, found b'Obj\\x01'" in named


def test_maps_with_optional_keys_are_no_damage(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/one.parquet").write_bytes(with_optional_keys([]))
    found = opened(tmp_path, ".parquet")
    assert (found.opened, found.unreadable) == (1, ())
