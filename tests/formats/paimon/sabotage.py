"""A staged candidate -> the same candidate, damaged in one way, its metadata made to agree where a liar would.

Each act takes the table's folder and the candidate, changes staged bytes, and says what the damage was done to.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64
from tests.formats.paimon.contents import opened
from tests.support.table_storage import storage_of

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.deletes.bucket_vectors import read_vectors, vector_kind
from nightkeep.formats.paimon.deletes.vectors import encode_vectors
from nightkeep.formats.paimon.metadata.avro import read_container, write_container
from nightkeep.formats.paimon.metadata.binary_row import decode_row, encode_row
from nightkeep.formats.paimon.metadata.entries import ADD, DELETE
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.model import Candidate


@dataclass(frozen=True, slots=True)
class Staged:
    """The staged files of one candidate, by what they are; acts choose the `number`-th unit that it touches."""

    table: Path
    candidate: Candidate
    number: int = 0

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.table / self.candidate.metadata).read_bytes())
        return found

    def say(self, **fields: object) -> None:
        (self.table / self.candidate.metadata).write_text(json.dumps(self.document | fields))

    @property
    def bucket(self) -> Bucket:
        return opened(self.table).staged(self.candidate).by_key[self.candidate.units[self.number]]

    @property
    def others(self) -> list[Bucket]:
        """Buckets that the candidate does not touch."""
        return [b for b in opened(self.table).staged(self.candidate).units if b.key not in self.candidate.units]

    @contextmanager
    def entries(self) -> Iterator[list[Record]]:
        """The entries of the delta manifest, to be changed in place."""
        meta = self.records(self.document["deltaManifestList"])[0]
        with self.edited(meta["_FILE_NAME"]) as entries:
            yield entries
        added = sum(entry["_KIND"] == ADD for entry in entries)
        levels = [entry["_FILE"]["_LEVEL"] for entry in entries]
        with self.line() as meta:
            meta |= {"_NUM_ADDED_FILES": added, "_NUM_DELETED_FILES": len(entries) - added}
            meta |= {"_MIN_LEVEL": min(levels), "_MAX_LEVEL": max(levels)}
        delta = sum(e["_FILE"]["_ROW_COUNT"] * (1 if e["_KIND"] == ADD else -1) for e in entries)
        before = self.document["totalRecordCount"] - self.document["deltaRecordCount"]
        self.say(deltaRecordCount=delta, totalRecordCount=before + delta)

    @contextmanager
    def line(self) -> Iterator[Record]:
        """What the delta list says of its manifest."""
        with self.edited(self.document["deltaManifestList"]) as (meta,):
            yield meta

    @contextmanager
    def added(self) -> Iterator[Record]:
        """The _FILE record of the file that the candidate adds to the unit."""
        place = (self.bucket.partition_bytes, self.bucket.key.bucket)
        with self.entries() as entries:
            mine = (entry for entry in entries if (entry["_PARTITION"], entry["_BUCKET"]) == place)
            yield next(entry["_FILE"] for entry in mine if entry["_KIND"] == ADD)

    @property
    def path(self) -> Path:
        """That file. If there are several, they are in the order of their entries."""
        name, *_ = (file.name for file in self.bucket.files if "nk-" in file.name)
        return self.table / self.bucket.folder / name

    def rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Other rows in that file; its size and count are told as they are then, and no statistics are."""
        path = self.path
        rows = change(pq.read_table(path))
        pq.write_table(rows, path, store_schema=False, store_decimal_as_integer=True, compression="zstd")
        with self.added() as file:
            file |= {"_FILE_SIZE": path.stat().st_size, "_ROW_COUNT": rows.num_rows}
            file |= {"_VALUE_STATS_COLS": [], "_VALUE_STATS": NO_STATISTICS}

    @contextmanager
    def vectors(self) -> Iterator[dict[str, BitMap64]]:
        """The unit's vectors, to be changed."""
        bucket = self.bucket
        found = dict(read_vectors(storage_of(opened(self.table)), bucket))
        yield found
        data, ranges = encode_vectors(sorted(found.items()), vector_kind(bucket))
        (self.table / "index" / bucket.index_files[0]).write_bytes(data)
        items = [{"f0": r.data_file, "f1": r.offset, "f2": r.length, "_CARDINALITY": r.cardinality} for r in ranges]
        with self.index_entry(bucket) as record:
            record |= {"_FILE_SIZE": len(data), "_ROW_COUNT": len(ranges), "_DELETIONS_VECTORS_RANGES": items}

    @contextmanager
    def index_entry(self, bucket: Bucket) -> Iterator[Record]:
        with self.edited(self.document["indexManifest"]) as records:
            yield next(record for record in records if record["_FILE_NAME"] in bucket.index_files)

    def records(self, name: str) -> tuple[Record, ...]:
        return read_container((self.table / "manifest" / name).read_bytes(), subject=name).records

    @contextmanager
    def edited(self, name: str) -> Iterator[list[Record]]:
        path = self.table / "manifest" / name
        container = read_container(path.read_bytes(), subject=name)
        records = list(container.records)
        yield records
        path.write_bytes(write_container(records, container.schema, container.codec))
        self._say_size(name, path.stat().st_size)

    def _say_size(self, name: str, size: int) -> None:
        """Of a list in the snapshot, of a manifest in its list."""
        lists = {each: self.document.get(each) for each in LISTS}
        for each, listed in lists.items():
            if listed == name:
                self.say(**{f"{each}Size": size})
            elif listed is not None and any(record["_FILE_NAME"] == name for record in self.records(listed)):
                with self.edited(listed) as records:
                    next(record for record in records if record["_FILE_NAME"] == name)["_FILE_SIZE"] = size


LISTS = ("baseManifestList", "deltaManifestList", "changelogManifestList")
NO_STATISTICS: Record = {"_MIN_VALUES": encode_row([], []), "_MAX_VALUES": encode_row([], []), "_NULL_COUNTS": []}
Act = Callable[[Staged], None]


def drop_a_row(staged: Staged) -> None:
    staged.rewrite(lambda rows: pa.concat_tables([rows.slice(0, 5), rows.slice(6)]))


def repeat_a_row(staged: Staged) -> None:
    staged.rewrite(lambda rows: pa.concat_tables([rows.slice(0, 6), rows.slice(5)]))


def flip_a_bit(staged: Staged) -> None:
    def flipped(rows: pa.Table) -> pa.Table:
        texts = rows.column("customer_id").to_pylist()
        texts[5] = texts[5][:-1] + chr(ord(texts[5][-1]) ^ 1)
        return _with(rows, customer_id=texts)

    staged.rewrite(flipped)


def swap_values_of_two_rows(staged: Staged) -> None:
    def swapped(rows: pa.Table) -> pa.Table:
        amounts = rows.column("amount").to_pylist()
        amounts[5], amounts[6] = amounts[6], amounts[5]
        return _with(rows, amount=amounts)

    staged.rewrite(swapped)


def swap_values_of_two_columns(staged: Staged) -> None:
    def swapped(rows: pa.Table) -> pa.Table:
        left, right = rows.column("customer_id").to_pylist(), rows.column("status").to_pylist()
        left[5], right[5] = right[5], left[5]
        return _with(rows, customer_id=left, status=right)

    staged.rewrite(swapped)


def swap_null_and_empty(staged: Staged) -> None:
    staged.rewrite(lambda rows: _with(rows, note=[note or "" for note in rows.column("note").to_pylist()]))


def write_rows_out_of_order(staged: Staged) -> None:
    staged.rewrite(lambda rows: rows.take([0, 2, 1, *range(3, rows.num_rows)]))


def write_a_retract(staged: Staged) -> None:
    staged.rewrite(lambda rows: _with(rows, _VALUE_KIND=[3, *rows.column("_VALUE_KIND").to_pylist()[1:]]))


def lose_a_vector(staged: Staged) -> None:
    with staged.vectors() as vectors:
        del vectors[min(vectors)]


def shift_a_vector(staged: Staged) -> None:
    with staged.vectors() as vectors:
        name = min(vectors)
        vectors[name] = BitMap64(position + 1 for position in vectors[name])


def move_a_vector(staged: Staged) -> None:
    """As many rows stay hidden, of another file."""
    with staged.vectors() as vectors:
        vectors[staged.path.name] = BitMap64(range(len(vectors.pop(min(vectors)))))


def overrun_a_vector(staged: Staged) -> None:
    with staged.vectors() as vectors:
        vectors[min(vectors)].add(1 << 20)


def raise_a_minimum(staged: Staged) -> None:
    with staged.added() as file:
        _bound(file, "_MIN_VALUES", 2, "C-01500")


def lower_a_maximum(staged: Staged) -> None:
    with staged.added() as file:
        _bound(file, "_MAX_VALUES", 3, "packed")


def lower_a_minimum(staged: Staged) -> None:
    """Readers answer MIN from it."""
    with staged.added() as file:
        values = list(decode_row(file["_VALUE_STATS"]["_MIN_VALUES"], ORDERS))
        file["_VALUE_STATS"]["_MIN_VALUES"] = encode_row([values[0], -5, *values[2:]], ORDERS)


def miscount_nulls(staged: Staged) -> None:
    with staged.added() as file:
        file["_VALUE_STATS"]["_NULL_COUNTS"][5] += 1


def widen_the_keys(staged: Staged) -> None:
    with staged.added() as file:
        file["_MAX_KEY"] = encode_row([99_999], (KEY,))


def narrow_the_keys(staged: Staged) -> None:
    with staged.added() as file:
        file["_MIN_KEY"] = encode_row([decode_row(file["_MIN_KEY"], (KEY,))[0] + 1], (KEY,))  # type: ignore[operator]


def raise_the_last_sequence_number(staged: Staged) -> None:
    with staged.added() as file:
        file["_MAX_SEQUENCE_NUMBER"] += 1


def miscount_rows(staged: Staged) -> None:
    with staged.added() as file:
        file["_ROW_COUNT"] += 1


def miscount_the_version(staged: Staged) -> None:
    staged.say(totalRecordCount=staged.document["totalRecordCount"] + 1)


def forget_the_delete_count(staged: Staged) -> None:
    with staged.added() as file:
        file["_DELETE_ROW_COUNT"] = None


def put_it_on_a_level_with_others(staged: Staged) -> None:
    with staged.added() as file:
        file["_LEVEL"] = 5


def narrow_a_file_that_stayed(staged: Staged) -> None:
    """The rows of a file that was not rewritten would be skipped by filters from now on."""
    (old, *_) = (file for file in staged.bucket.files if "nk-" not in file.name)
    narrowed = {**old.record, "_VALUE_STATS": dict(old.record["_VALUE_STATS"])}
    _bound(narrowed, "_MIN_VALUES", 2, "C-01500")
    with staged.entries() as entries:
        place = {"_PARTITION": staged.bucket.partition_bytes, "_BUCKET": staged.bucket.key.bucket}
        entries += [
            {**entries[0], **place, "_KIND": kind, "_FILE": file}
            for kind, file in ((DELETE, old.record), (ADD, narrowed))
        ]


def lose_a_file_of_another_bucket(staged: Staged) -> None:
    other = next(b for b in staged.others if b.files)
    with staged.entries() as entries:
        place = {"_PARTITION": other.partition_bytes, "_BUCKET": other.key.bucket}
        entries.append({**entries[0], **place, "_KIND": DELETE, "_FILE": other.files[-1].record})


def lose_the_vectors_of_another_bucket(staged: Staged) -> None:
    other = next(b for b in staged.others if b.vectors)
    with staged.edited(staged.document["indexManifest"]) as records:
        records[:] = [record for record in records if record["_FILE_NAME"] not in other.index_files]


def _of_the_day(day: str) -> Record:
    values = encode_row([day], ORDERS[:1])
    return {"_MIN_VALUES": values, "_MAX_VALUES": values, "_NULL_COUNTS": [0]}


def list_other_partitions(staged: Staged) -> None:
    with staged.line() as meta:
        meta["_PARTITION_STATS"] = _of_the_day("2026-12-24")


def list_other_partitions_of_a_manifest_that_stayed(staged: Staged) -> None:
    with staged.edited(staged.document["baseManifestList"]) as metas:
        metas[0]["_PARTITION_STATS"] = _of_the_day("2026-12-24")


def list_other_buckets(staged: Staged) -> None:
    with staged.line() as meta:
        meta |= {"_MIN_BUCKET": 77, "_MAX_BUCKET": 78}


def list_other_levels(staged: Staged) -> None:
    with staged.line() as meta:
        meta |= {"_MIN_LEVEL": 0, "_MAX_LEVEL": 0}


def list_fewer_bytes_of_a_manifest(staged: Staged) -> None:
    with staged.line() as meta:
        meta["_FILE_SIZE"] //= 2


def state_fewer_bytes_of_a_list(staged: Staged) -> None:
    staged.say(baseManifestListSize=10)


def state_another_number_of_buckets(staged: Staged) -> None:
    with staged.entries() as entries:
        for entry in entries:
            entry["_TOTAL_BUCKETS"] += 1


def state_which_columns_are_there(staged: Staged) -> None:
    with staged.added() as file:
        file["_WRITE_COLS"] = ["dt", "order_id"]


def state_that_there_is_an_index(staged: Staged) -> None:
    with staged.added() as file:
        file["_EXTRA_FILES"] = ["data.index"]


def state_that_it_was_appended(staged: Staged) -> None:
    with staged.added() as file:
        file["_FILE_SOURCE"] = 0


def state_that_it_was_made_long_ago(staged: Staged) -> None:
    with staged.added() as file:
        file["_CREATION_TIME"] = 1


def commit_by_another_name(staged: Staged) -> None:
    staged.say(commitUser="writer")


def turn_back_the_time(staged: Staged) -> None:
    staged.say(timeMillis=1)


def raise_the_watermark(staged: Staged) -> None:
    staged.say(watermark=1 << 60)


def set_a_property(staged: Staged) -> None:
    staged.say(properties={"sequence.generation.max-sequence-number": "0"})


def cut_a_file(staged: Staged) -> None:
    path = staged.path
    path.write_bytes(path.read_bytes()[:-10])


def remove_a_file(staged: Staged) -> None:
    staged.path.unlink()


def cut_a_manifest(staged: Staged) -> None:
    path = staged.table / "manifest" / staged.document["deltaManifestList"]
    path.write_bytes(path.read_bytes()[:-20])


KEY = parse_type("BIGINT NOT NULL")


def _with(rows: pa.Table, **columns: list[Any]) -> pa.Table:
    for name, values in columns.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(name), pa.array(values, rows.schema.field(name).type))
    return rows


def _bound(file: Record, side: str, column: int, value: str) -> None:
    """Another minimum or maximum of one column of `orders`."""
    values = list(decode_row(file["_VALUE_STATS"][side], ORDERS))
    values[column] = value
    file["_VALUE_STATS"][side] = encode_row(values, ORDERS)


ORDERS = tuple(
    map(
        parse_type,
        ("STRING NOT NULL", "BIGINT NOT NULL", "STRING", "STRING", "DECIMAL(12, 2)", "STRING", "TIMESTAMP(6)"),
    )
)
