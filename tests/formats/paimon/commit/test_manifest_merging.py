"""Merged manifests against a plain application of all entries: the same files are live, and manifests stay few."""

from collections.abc import Sequence
from random import Random

import pytest

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.commit.manifest_merging import ManifestAccess, merged_manifests
from nightkeep.formats.paimon.metadata.entries import merge_entries
from nightkeep.formats.paimon.metadata.schema import PaimonSchema

ENTRY_BYTES = 10
ADD, DELETE = 0, 1
SMALL = {"manifest.target-file-size": "200 b", "manifest.merge-min-count": "4"}
FULL = {**SMALL, "manifest.full-compaction-threshold-size": "300 b"}


class Manifests:
    """Manifests in memory, of ENTRY_BYTES an entry."""

    def __init__(self) -> None:
        self._held: list[Sequence[Record]] = []
        self.reads = 0

    def read(self, meta: Record) -> Sequence[Record]:
        self.reads += 1
        return self._held[meta["_FILE_NAME"]]

    def write(self, entries: Sequence[Record]) -> Record:
        self._held.append(list(entries))
        added = sum(entry["_KIND"] == ADD for entry in entries)
        return {
            "_FILE_NAME": len(self._held) - 1,
            "_FILE_SIZE": ENTRY_BYTES * len(entries),
            "_NUM_ADDED_FILES": added,
            "_NUM_DELETED_FILES": len(entries) - added,
        }

    def live(self, metas: Sequence[Record]) -> set[str]:
        applied = merge_entries(entry for meta in metas for entry in self.read(meta))
        return {entry["_FILE"]["_FILE_NAME"] for entry in applied}

    def merged(self, metas: Sequence[Record], options: dict[str, str]) -> Sequence[Record]:
        schema = PaimonSchema(0, (), (), (), options)
        return merged_manifests(metas, schema, ManifestAccess(self.read, self.write))


def entry(kind: int, name: str, level: int = 0) -> Record:
    file = {"_FILE_NAME": name, "_LEVEL": level, "_EXTRA_FILES": []}
    return {"_KIND": kind, "_PARTITION": b"", "_BUCKET": 0, "_FILE": file}


@pytest.mark.parametrize("options", [{}, SMALL, FULL, {"manifest.full-compaction-threshold-size": "1 b"}])
def test_the_same_files_are_live_after_every_commit(options: dict[str, str]) -> None:
    for seed in range(20):
        random, files = Random(seed), Manifests()
        metas: Sequence[Record] = ()
        expected: dict[str, int] = {}
        for commit in range(60):
            gone = {name: expected.pop(name) for name in random.sample(sorted(expected), len(expected) // 3)}
            lifted = {name: level + 1 for name, level in gone.items() if random.random() < 0.5}
            new = lifted | {f"{commit} {n}": 0 for n in range(random.choice((1, 2, 9)))}
            changes = [entry(DELETE, *each) for each in gone.items()] + [entry(ADD, *each) for each in new.items()]
            expected |= new
            metas = [*files.merged(metas, options), files.write(changes)]
            assert files.live(metas) == set(expected), (seed, commit)
        if options == FULL:
            assert sum(meta["_FILE_SIZE"] for meta in metas) <= 400 + ENTRY_BYTES * (len(expected) + len(changes))
        # Below the full threshold, deletes of earlier manifests stay, as in Java.
        assert options == SMALL or len(metas) <= 31


def test_large_manifests_whose_files_are_live_are_not_read() -> None:
    files = Manifests()
    large = files.write([entry(ADD, f"l{n}") for n in range(30)])
    other = files.write([entry(ADD, f"o{n}") for n in range(30)])
    small = [files.write([entry(ADD, f"s{n}")]) for n in range(35)]
    merged = files.merged([large, *small, other], FULL)
    assert merged[:2] == [large, other]
    assert files.reads == len(small)
    assert [meta["_NUM_ADDED_FILES"] for meta in merged] == [30, 30, 20, 15]


def test_few_small_manifests_stay() -> None:
    files = Manifests()
    metas = [files.write([entry(ADD, f"{n}")]) for n in range(29)]
    assert (files.merged(metas, {}), files.reads) == (metas, 0)
    more = [*metas, files.write([entry(ADD, "last")])]
    assert files.merged(more, {"manifest-sort.enabled": "true", "manifest.merge-min-count": "2"}) == more
    (one,) = files.merged(more, {})
    assert one["_NUM_ADDED_FILES"] == 30


def test_a_file_that_is_added_twice_is_found() -> None:
    files = Manifests()
    metas = [files.write([entry(ADD, "same")]), files.write([entry(ADD, "same")])]
    with pytest.raises(CorruptMetadata, match="same: expected a new file"):
        files.merged(metas, {"manifest.merge-min-count": "2"})


def test_files_that_come_and_go_leave_no_manifest() -> None:
    files = Manifests()
    metas = [files.write([entry(ADD, "a")]), files.write([entry(DELETE, "a")])]
    assert files.merged(metas, {"manifest.merge-min-count": "2"}) == []
