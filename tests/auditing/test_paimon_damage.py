"""Damage to what writers of Paimon committed, forged into published versions: an audit finds each, at its version."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.auditing.test_paimon import audit, commits, newest, unproven
from tests.formats.paimon import sabotage
from tests.formats.paimon.contents import SAMPLES
from tests.formats.paimon.sabotage import Staged
from tests.formats.paimon.upgrade import upgrade

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.entries import ADD, DELETE
from nightkeep.model import Candidate, Outcome

APPENDED, LIFTED, LAST = 5, 4, 7
"""Versions of the sample: one that appends, a compaction with vectors, and the last one, which appends."""


class Published(Staged):
    """A version that is published, with the parts of a candidate that are asked for here."""

    @classmethod
    def of(cls, table: Path, version: int) -> Published:
        return cls(table, cast(Candidate, SimpleNamespace(metadata=f"snapshot/snapshot-{version}", units=())))

    @contextmanager
    def file(self) -> Iterator[Record]:
        """The record of a file that the version adds, and of which it deletes rows if it does so of any."""
        with self.entries() as entries:
            added = [entry["_FILE"] for entry in entries if entry["_KIND"] == ADD]
            yield max(added, key=lambda file: file["_DELETE_ROW_COUNT"] or 0)

    @contextmanager
    def index(self) -> Iterator[Record]:
        with self.edited(self.document["indexManifest"]) as records:
            yield records[0]

    def rewrite_rows(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Other bytes of the file of `file`, whose size and count are stated as they are then."""
        with self.file() as file:
            (path,) = self.table.rglob(str(file["_FILE_NAME"]))
            rows = change(pq.read_table(path, partitioning=None))
            pq.write_table(rows, path, store_schema=False, store_decimal_as_integer=True)
            file |= {"_FILE_SIZE": path.stat().st_size, "_ROW_COUNT": rows.num_rows}


Forge = Callable[[Published], None]


def set_of_file(**fields: Callable[[Any], Any]) -> Forge:
    def forge(version: Published) -> None:
        with version.file() as file:
            file |= {f"_{name.upper()}": change(file[f"_{name.upper()}"]) for name, change in fields.items()}

    return forge


def count_a_null_more(version: Published) -> None:
    with version.file() as file:
        file["_VALUE_STATS"]["_NULL_COUNTS"][5] += 1


def raise_a_key_minimum(version: Published) -> None:
    with version.file() as file:
        file["_KEY_STATS"]["_MIN_VALUES"] = encode_row([99_998], (sabotage.KEY,))


def lower_a_key_maximum(version: Published) -> None:
    with version.file() as file:
        file["_KEY_STATS"]["_MAX_VALUES"] = encode_row([-1], (sabotage.KEY,))


def cut_texts(version: Published) -> None:
    with version.file() as file:
        sabotage._bound(file, "_MAX_VALUES", 2, "A")


def move_the_last_key(version: Published) -> None:
    with version.file() as file:
        file["_MAX_KEY"] = encode_row([99_999], (sabotage.KEY,))


def state_another_bucket(version: Published) -> None:
    with version.entries() as entries:
        entries[0]["_TOTAL_BUCKETS"] = max(1, entries[0]["_BUCKET"])
        entries[0]["_BUCKET"] = entries[0]["_TOTAL_BUCKETS"]


def add_twice(version: Published) -> None:
    with version.entries() as entries:
        entries.append(entries[0])


def add_what_is_live(version: Published) -> None:
    with Published.of(version.table, APPENDED).entries() as before, version.entries() as entries:
        entries.append(before[0])


def remove_what_is_gone(version: Published) -> None:
    with Published.of(version.table, LIFTED).entries() as before, version.entries() as entries:
        entries.append(next(entry for entry in before if entry["_KIND"] == DELETE))


def count_more_rows(version: Published) -> None:
    version.say(deltaRecordCount=version.document["deltaRecordCount"] + 1)


def count_changes(version: Published) -> None:
    version.say(changelogRecordCount=4)


def lose_a_manifest(version: Published) -> None:
    with version.edited(version.document["baseManifestList"]) as lines:
        del lines[-1]


def write_of_another_day(version: Published) -> None:
    version.rewrite_rows(lambda rows: sabotage._with(rows, dt=["2031-01-01"] * rows.num_rows))


def write_kinds_that_are_none(version: Published) -> None:
    version.rewrite_rows(lambda rows: sabotage._with(rows, _VALUE_KIND=[7] * rows.num_rows))


def turn_rows_round(version: Published) -> None:
    version.rewrite_rows(lambda rows: rows.take(list(range(rows.num_rows))[::-1]))


def number_rows_from_0(version: Published) -> None:
    version.rewrite_rows(lambda rows: sabotage._with(rows, _SEQUENCE_NUMBER=list(range(rows.num_rows))))


def state_other_bytes_of_vectors(version: Published) -> None:
    with version.index() as record:
        record["_FILE_SIZE"] += 1


def count_a_vector_more(version: Published) -> None:
    with version.index() as record:
        record["_ROW_COUNT"] += 1


def count_a_deleted_row_more(version: Published) -> None:
    with version.index() as record:
        record["_DELETIONS_VECTORS_RANGES"][0]["_CARDINALITY"] += 1


def damage_vectors(version: Published) -> None:
    with version.index() as record:
        path = version.table / "index" / record["_FILE_NAME"]
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def cut_a_list(version: Published) -> None:
    path = version.table / "manifest" / version.document["deltaManifestList"]
    path.write_bytes(path.read_bytes()[:-20])


def plus(number: int) -> Callable[[int], int]:
    return lambda value: value + number


FORGED: dict[str, tuple[int, Forge]] = {
    "rows": (APPENDED, set_of_file(row_count=plus(1))),
    "bytes": (APPENDED, set_of_file(file_size=plus(-1))),
    "deleted rows": (APPENDED, set_of_file(delete_row_count=plus(1))),
    "more deleted rows than rows": (APPENDED, set_of_file(delete_row_count=plus(1000))),
    "first sequence number": (APPENDED, set_of_file(min_sequence_number=plus(1))),
    "last sequence number": (APPENDED, set_of_file(max_sequence_number=plus(-1))),
    "sequence numbers downwards": (APPENDED, set_of_file(max_sequence_number=lambda value: -1)),
    "schema": (APPENDED, set_of_file(schema_id=plus(9))),
    "nulls": (APPENDED, count_a_null_more),
    "minimum of keys": (APPENDED, raise_a_key_minimum),
    "maximum of keys": (APPENDED, lower_a_key_maximum),
    "maximum of texts": (APPENDED, cut_texts),
    "last key": (APPENDED, move_the_last_key),
    "level": (APPENDED, set_of_file(level=lambda value: 5)),
    "bucket": (LAST, state_another_bucket),
    "added twice": (LAST, add_twice),
    "added again": (LAST, add_what_is_live),
    "removed again": (LAST, remove_what_is_gone),
    "rows of the commit": (APPENDED, count_more_rows),
    "changes of the commit": (APPENDED, count_changes),
    "a lost manifest": (LAST, lose_a_manifest),
    "rows of another partition": (APPENDED, write_of_another_day),
    "kinds of rows": (APPENDED, write_kinds_that_are_none),
    "keys out of order": (APPENDED, turn_rows_round),
    "sequence numbers of rows": (APPENDED, number_rows_from_0),
    "bytes of vectors": (LIFTED, state_other_bytes_of_vectors),
    "number of vectors": (LIFTED, count_a_vector_more),
    "deleted rows of a vector": (LIFTED, count_a_deleted_row_more),
    "a vector's checksum": (LIFTED, damage_vectors),
    "a list of manifests": (APPENDED, cut_a_list),
}


@pytest.mark.parametrize("kind", FORGED)
def test_forged_metadata_is_unsound(kind: str, tmp_path: Path) -> None:
    table = Path(shutil.copytree(SAMPLES / "orders", tmp_path / "orders"))
    version, forge = FORGED[kind]
    forge(Published.of(table, version))
    document = audit(table)
    assert document.outcome is Outcome.MISMATCH, document.reason
    wrong = {number: each for number, each in commits(document).items() if each["verdict"] == "unsound"}
    assert version == min(wrong), {number: each["why"] for number, each in wrong.items()}


def test_the_sample_itself_is_sound(tmp_path: Path) -> None:
    document = audit(Path(shutil.copytree(SAMPLES / "orders", tmp_path / "orders")))
    assert document.outcome is Outcome.VERIFIED, document.reason


def of_changelog(change: Callable[[pa.Table], pa.Table]) -> sabotage.Act:
    """The changelog of a unit with other rows, its counts stated as they are then, and no statistics."""

    def act(staged: Staged) -> None:
        (line,) = staged.records(staged.document["changelogManifestList"])
        with staged.edited(line["_FILE_NAME"]) as entries:
            file = entries[0]["_FILE"]
            (path,) = staged.table.rglob(file["_FILE_NAME"])
            rows = change(pq.read_table(path, partitioning=None))
            pq.write_table(rows, path, store_schema=False, store_decimal_as_integer=True)
            file |= {"_FILE_SIZE": path.stat().st_size, "_ROW_COUNT": rows.num_rows}
            count = sum(entry["_FILE"]["_ROW_COUNT"] for entry in entries)
        staged.say(changelogRecordCount=count)

    return act


def one_value_flipped(rows: pa.Table) -> pa.Table:
    kinds = rows.column("_VALUE_KIND").to_pylist()
    kinds[-1] = 3 if kinds[-1] in (0, 2) else 0
    return sabotage._with(rows, _VALUE_KIND=kinds)


CHANGES = {
    "a change less": lambda rows: rows.slice(1),
    "a change twice": lambda rows: pa.concat_tables([rows, rows.slice(rows.num_rows - 1)]),
    "a change of another kind": one_value_flipped,
    "no change": lambda rows: rows.slice(0, 0),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_changelog_that_misses_changes_is_unsound(kind: str, tmp_path: Path) -> None:
    table = Path(shutil.copytree(SAMPLES / "parcels", tmp_path / "parcels"))
    with unproven(table, of_changelog(CHANGES[kind])):
        upgrade(table)
    document = audit(table)
    assert document.outcome is Outcome.MISMATCH, document.reason
    wrong = commits(document)[newest(table)]
    assert wrong["verdict"] == "unsound" and "its changelog of" in wrong["why"], wrong


def test_a_changelog_of_a_compaction_is_sound(tmp_path: Path) -> None:
    table = Path(shutil.copytree(SAMPLES / "parcels", tmp_path / "parcels"))
    assert upgrade(table).outcome is Outcome.VERIFIED
    assert commits(audit(table))[newest(table)]["verdict"] == "proven"
