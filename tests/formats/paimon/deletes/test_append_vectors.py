"""Vector files of a table without keys, replaced again and again, against a dictionary of sets."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.formats.paimon.made_bucket import RUN, HeldStorage, MadeBucket, Row
from tests.support.examples import examples

from nightkeep.formats.paimon.deletes.append_vectors import VectorFiles, replace_vectors, vectors_of
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.metadata.vector_ranges import vector_ranges
from nightkeep.storage import Storage

NAMES = [f"data-{n}.parquet" for n in range(5)]
Marks = dict[str, set[int]]

steps = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(NAMES), st.sets(st.integers(0, 9), min_size=1), max_size=3),
        st.sets(st.sampled_from(NAMES), max_size=2),
    ),
    max_size=6,
)


@settings(max_examples=examples(60), deadline=None)
@given(steps, st.booleans(), st.sampled_from(["1 b", "60 b", "2 mb"]))
def test_every_file_keeps_the_vector_it_had_or_got(
    history: list[tuple[Marks, set[str]]], bitmap64: bool, most: str
) -> None:
    """Each step marks more rows of some files, and drops others from the table."""
    bucket, storage, naming = _bucket(bitmap64=bitmap64, most=most), HeldStorage(), PaimonNaming(RUN)
    expected: Marks = {}
    for marks, gone in history:
        live = {file.name for file in bucket.files}
        fresh = {n: BitMap64(expected.get(n, set()) | at) for n, at in marks.items() if n in live - gone}
        old, files = bucket, replace_vectors(cast(Storage, storage), bucket, fresh, gone=gone & live, naming=naming)
        expected = {n: set(at) for n, at in {**expected, **fresh}.items() if n in live - gone}
        bucket = _after(bucket, files, gone)
        assert _read(storage, bucket) == expected
        assert _untouched(old, files, fresh.keys() | gone)
        held = [where.data_file for where in bucket.vectors]
        assert len(held) == len(set(held))


def _untouched(bucket: Bucket, files: VectorFiles, changed: set[str]) -> bool:
    """Only vector files of a changed data file are replaced."""
    return all(
        any(where.data_file in changed for where in vector_ranges(record)) == (record["_FILE_NAME"] in files.removed)
        for record in bucket.index_records
    )


def _read(storage: HeldStorage, bucket: Bucket) -> Mapping[str, set[int]]:
    return {name: set(at) for name, at in vectors_of(cast(Storage, storage), bucket, set(NAMES)).items()}


def _bucket(*, bitmap64: bool, most: str) -> Bucket:
    options = {"deletion-vectors.bitmap64": str(bitmap64), "deletion-vector.index-file.target-size": most}
    made = MadeBucket(options)
    for _ in NAMES:
        made.add(0, [Row(n) for n in range(10)])
    return made.bucket()


def _after(bucket: Bucket, files: VectorFiles, gone: set[str]) -> Bucket:
    kept = tuple(record for record in bucket.index_records if record["_FILE_NAME"] not in files.removed)
    records = (*kept, *files.added)
    ranges = tuple(where for record in records for where in vector_ranges(record))
    left = tuple(file for file in bucket.files if file.name not in gone)
    return replace(bucket, files=left, index_records=records, vectors=ranges)


def test_a_small_target_makes_a_file_for_each_vector() -> None:
    storage, fresh = HeldStorage(), {name: BitMap64([1]) for name in NAMES}
    for most, count in (("1 b", 5), ("2 mb", 1)):
        bucket = _bucket(bitmap64=False, most=most)
        files = replace_vectors(cast(Storage, storage), bucket, fresh, gone=set(), naming=PaimonNaming(RUN))
        assert len(files.added) == len(files.paths) == count and not files.removed
