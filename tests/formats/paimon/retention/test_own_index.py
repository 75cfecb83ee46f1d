"""Index manifests that Nightkeep wrote prove by themselves that they are whole, whatever their size."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.appended import SMALL, VECTORS, Appended
from tests.formats.paimon.keeping import aged, expired, names, swept
from tests.retention.damage import pieces

from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.encodings.avro_container import AvroHeader, container_bytes
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.metadata.avro import FILE_NAME, _items, write_container
from nightkeep.formats.paimon.metadata.manifest_schemas import INDEX_MANIFEST
from nightkeep.formats.paimon.retention.evidence import Read, read_index_manifest
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.retention.orphans.sweep_request import SweepOrder
from nightkeep.storage import LocalStorage

NAME = "index-manifest-nk-0123456789abcdef-01234567-1"
DELETE = SweepOrder(SweepMode.DELETE, max_share=1.0)


def _records(number: int) -> list[dict[str, Any]]:
    """Entries of 60 vectors each: more than a few are larger than a block of other writers."""
    ranges = [{"f0": f"data-{at:036}-0.parquet", "f1": at, "f2": 22, "_CARDINALITY": 1} for at in range(60)]
    return [
        {
            "_VERSION": 1,
            "_KIND": 0,
            "_PARTITION": b"\0" * 4,
            "_BUCKET": bucket,
            "_INDEX_TYPE": "DELETION_VECTORS",
            "_FILE_NAME": f"index-{bucket}",
            "_FILE_SIZE": 9,
            "_ROW_COUNT": 60,
            "_DELETIONS_VECTORS_RANGES": ranges,
        }
        for bucket in range(number)
    ]


def _read(folder: Path, data: bytes) -> Read:
    (folder / "manifest").mkdir(exist_ok=True)
    (folder / "manifest" / NAME).write_bytes(data)
    found = read_index_manifest(LocalStorage(str(folder)), {"indexManifest": NAME}, may_be_empty=False)
    assert found is not None
    return found


@pytest.mark.parametrize("number", [0, 1, 15, 16, 17, 40, 300, 600])
def test_a_counted_index_manifest_is_whole_or_a_contradiction(tmp_path: Path, number: int) -> None:
    data = write_container(_records(number), INDEX_MANIFEST, name=NAME)
    assert _read(tmp_path, data).unproven is None
    head, blocks = pieces(data)
    for end in range(len(blocks)):
        with pytest.raises(CorruptMetadata, match=f"{number} entries"):
            _read(tmp_path, head + b"".join(blocks[:end]))


@pytest.mark.parametrize("number", [0, 1, 15, 16, 17, 40, 300, 600])
def test_an_index_manifest_of_an_earlier_release_is_whole_by_its_last_block(tmp_path: Path, number: int) -> None:
    """It states its name, and not its records."""
    header = AvroHeader(INDEX_MANIFEST, {FILE_NAME: NAME.encode()})
    data = container_bytes(_records(number), _items(INDEX_MANIFEST), CODECS["zstandard"], header)
    assert (_read(tmp_path, data).unproven is None) is (number not in (0, 16))
    head, blocks = pieces(data)
    for end in range(len(blocks)):
        assert _read(tmp_path, head + b"".join(blocks[:end])).unproven is not None


def test_a_large_index_manifest_of_ours_stops_neither_a_sweep_nor_an_expiry(
    paimon_java: PaimonJava, tmp_path: Path
) -> None:
    options = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1", "snapshot.time-retained": "1 ms"}
    table = Appended.create(paimon_java, tmp_path / "t", {**VECTORS, **SMALL, **options}, columns=[("n", "INT")])
    table.append(200, days=[f"day {day}" for day in range(20)])
    assert table.delete_where("n < 0").outcome is Outcome.VERIFIED
    newest = max((table.folder / "snapshot").glob("snapshot-*"), key=lambda path: path.stat().st_mtime_ns)
    own = table.folder / "manifest" / json.loads(newest.read_text())["indexManifest"]
    assert len(pieces(own.read_bytes())[1]) > 1
    before = table.rows()
    # What a commit that lost a race leaves.
    left = (f"manifest/{own.name}0", "index/index-nk-0123456789abcdef-0-aa-1")
    shutil.copyfile(own, table.folder / left[0])
    (table.folder / left[1]).write_bytes(b"left")
    aged(table.folder)
    there = names(table.folder) - {*left}
    done, orphans = swept(table.folder, DELETE)
    assert (done.outcome, orphans) == (Outcome.VERIFIED, sorted(left)), done.reason
    assert {name for name in names(table.folder) if not name.startswith("_nightkeep/")} == there
    table.append(5)
    assert expired(table.folder).outcome is Outcome.VERIFIED
    assert [row for row in table.rows() if row in before] == before
