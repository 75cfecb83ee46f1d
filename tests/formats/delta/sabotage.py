"""A staged candidate -> the same candidate, damaged in one way, its commit made to agree where a liar would.

Each act changes staged bytes of a hand-made table's candidate; acts choose the first partition that it touches.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64
from tests.formats.delta.hand_made import HandMade, removal

from nightkeep.model import Candidate

Action = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Staged:
    """The staged commit of one candidate, by what is in it."""

    made: HandMade
    candidate: Candidate

    @property
    def commit(self) -> Path:
        return self.made.folder / self.candidate.metadata

    @contextmanager
    def actions(self) -> Iterator[list[Action]]:
        """To be changed in place."""
        found = [json.loads(line) for line in self.commit.read_text().splitlines()]
        yield found
        self.commit.write_text("".join(f"{json.dumps(action)}\n" for action in found))

    @contextmanager
    def adds(self) -> Iterator[list[dict[str, Any]]]:
        with self.actions() as actions:
            yield [action["add"] for action in actions if "add" in action]

    @contextmanager
    def removes(self) -> Iterator[list[dict[str, Any]]]:
        with self.actions() as actions:
            yield [action["remove"] for action in actions if "remove" in action]

    @property
    def added(self) -> dict[str, Any]:
        """The first new file; None of what is changed in it is kept."""
        with self.adds() as (first, *_):
            return first

    @property
    def path(self) -> Path:
        return self.made.folder / unquote(self.added["path"])

    @property
    def untouched(self) -> dict[str, Any]:
        """A live file of a partition that the candidate does not touch."""
        days = {key.partition.removeprefix("day=") for key in self.candidate.units}
        return next(add for add in self.made.live().values() if add["partitionValues"]["day"] not in days)

    @contextmanager
    def stats(self) -> Iterator[dict[str, Any]]:
        """Of the first new file."""
        with self.adds() as (first, *_):
            told = json.loads(first["stats"])
            yield told
            first["stats"] = json.dumps(told)

    def rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Other rows in that file; its size and count are told as they are then, and no bounds are."""
        path = self.path
        rows = change(pq.read_table(path, partitioning=None))
        pq.write_table(rows, path, store_schema=False)
        with self.adds() as (first, *_):
            first |= {"size": path.stat().st_size, "stats": json.dumps({"numRecords": rows.num_rows})}


Act = Callable[[Staged], None]


def drop_a_row(staged: Staged) -> None:
    staged.rewrite(lambda rows: pa.concat_tables([rows.slice(0, 5), rows.slice(6)]))


def repeat_a_row(staged: Staged) -> None:
    staged.rewrite(lambda rows: pa.concat_tables([rows.slice(0, 6), rows.slice(5)]))


def repeat_one_row_and_drop_another(staged: Staged) -> None:
    """Every count stays as it was (ClickHouse PR #118951)."""
    staged.rewrite(lambda rows: rows.take([0, 0, *range(2, rows.num_rows)]))


def change_a_value(staged: Staged) -> None:
    staged.rewrite(lambda rows: _with(rows, price=[0.125, *rows.column("price").to_pylist()[1:]]))


def swap_values_of_two_rows(staged: Staged) -> None:
    def swapped(rows: pa.Table) -> pa.Table:
        prices = rows.column("price").to_pylist()
        return _with(rows, price=[prices[1], prices[0], *prices[2:]])

    staged.rewrite(swapped)


def write_null_for_empty(staged: Staged) -> None:
    staged.rewrite(lambda rows: _with(rows, note=[note or None for note in rows.column("note").to_pylist()]))


def write_empty_for_null(staged: Staged) -> None:
    staged.rewrite(lambda rows: _with(rows, note=[note or "" for note in rows.column("note").to_pylist()]))


def name_a_column_otherwise(staged: Staged) -> None:
    """Readers find nothing under the table's name and show nulls."""
    staged.rewrite(lambda rows: rows.rename_columns(["remark" if n == "note" else n for n in rows.column_names]))


def write_a_stray_column(staged: Staged) -> None:
    staged.rewrite(lambda rows: rows.append_column("stray", pa.nulls(rows.num_rows, pa.int32())))


def drop_a_vector_from_a_remove(staged: Staged) -> None:
    """For every reader the file is still live, with the vector or without (Trino #31253)."""
    with staged.removes() as removes:
        del next(remove for remove in removes if "deletionVector" in remove)["deletionVector"]


def put_another_vector_into_a_remove(staged: Staged) -> None:
    with staged.removes() as removes:
        vector = next(remove for remove in removes if "deletionVector" in remove)["deletionVector"]
        vector["offset"] += 1


def drop_a_remove(staged: Staged) -> None:
    with staged.actions() as actions:
        actions.remove(next(action for action in actions if "remove" in action))


def drop_an_add(staged: Staged) -> None:
    with staged.actions() as actions:
        actions.remove(next(action for action in actions if "add" in action))


def remove_what_is_not_there(staged: Staged) -> None:
    with staged.actions() as actions:
        first = next(action["remove"] for action in actions if "remove" in action)
        actions.append({"remove": first | {"path": "day=2026-11-01/gone.parquet"}})


def add_a_file_twice(staged: Staged) -> None:
    with staged.actions() as actions:
        actions.append(next(action for action in actions if "add" in action))


def hide_rows_of_a_new_file(staged: Staged) -> None:
    """By a vector over its first rows; the statistics count them all the same."""
    (vector,) = staged.made.vectors({"": BitMap64([0, 1])}).values()
    with staged.adds() as (first, *_):
        first["deletionVector"] = vector


def overrun_a_vector(staged: Staged) -> None:
    (vector,) = staged.made.vectors({"": BitMap64([1 << 20])}).values()
    with staged.adds() as (first, *_):
        first["deletionVector"] = vector


def move_a_file_to_another_partition(staged: Staged) -> None:
    with staged.adds() as (first, *_):
        first["partitionValues"] = {"day": staged.untouched["partitionValues"]["day"]}


def swap_two_partitions(staged: Staged) -> None:
    with staged.adds() as (first, second):
        first["partitionValues"], second["partitionValues"] = second["partitionValues"], first["partitionValues"]


def leave_out_a_partition_value(staged: Staged) -> None:
    """What a reader makes of it differs; here it is the partition without a day."""
    with staged.adds() as (first, *_):
        first["partitionValues"] = {}


def raise_a_minimum(staged: Staged) -> None:
    with staged.stats() as stats:
        stats["minValues"]["id"] += 1


def lower_a_minimum(staged: Staged) -> None:
    """Readers answer MIN from it."""
    with staged.stats() as stats:
        stats["minValues"]["price"] -= 55


def lower_a_maximum(staged: Staged) -> None:
    with staged.stats() as stats:
        stats["maxValues"]["note"] = "note 01"


def keep_the_statistics_of_an_input(staged: Staged) -> None:
    before = next(iter(staged.made.live().values()))
    with staged.adds() as (first, *_):
        told = json.loads(first["stats"])
        first["stats"] = json.dumps(json.loads(before["stats"]) | {"numRecords": told["numRecords"]})


def miscount_nulls(staged: Staged) -> None:
    with staged.stats() as stats:
        stats["nullCount"]["note"] += 1


def miscount_rows(staged: Staged) -> None:
    with staged.stats() as stats:
        stats["numRecords"] += 1


def miscount_bytes(staged: Staged) -> None:
    with staged.adds() as (first, *_):
        first["size"] += 1


def narrow_a_file_that_stayed(staged: Staged) -> None:
    """The rows of a file that was not rewritten would be skipped by filters from now on."""
    with staged.actions() as actions:
        add = staged.untouched
        told = json.loads(add["stats"])
        told["minValues"]["id"] += 1
        actions.append({"add": add | {"stats": json.dumps(told), "dataChange": False}})


def lose_a_file_of_another_partition(staged: Staged) -> None:
    with staged.actions() as actions:
        actions.append({"remove": removal(staged.untouched) | {"dataChange": False}})


def state_that_data_changed(staged: Staged) -> None:
    """Streams and change feeds would show every row again."""
    with staged.adds() as (first, *_):
        first["dataChange"] = True


def state_that_rows_were_deleted(staged: Staged) -> None:
    """By operation and actions alike, so that neither gives the other away."""
    with staged.actions() as actions:
        for action in actions:
            for kind, body in action.items():
                body |= {"operation": "DELETE"} if kind == "commitInfo" else {"dataChange": True}


def change_a_property(staged: Staged) -> None:
    with staged.actions() as actions:
        log = staged.made.folder / "_delta_log/00000000000000000000.json"
        (metadata,) = (json.loads(line) for line in log.read_text().splitlines() if '"metaData"' in line)
        metadata["metaData"]["configuration"]["delta.appendOnly"] = "true"
        actions.append(metadata)


def record_a_transaction(staged: Staged) -> None:
    with staged.actions() as actions:
        actions.append({"txn": {"appId": "stream", "version": 1}})


def forget_when_files_were_removed(staged: Staged) -> None:
    with staged.removes() as (first, *_):
        del first["deletionTimestamp"]


def state_that_files_were_removed_long_ago(staged: Staged) -> None:
    """So that a vacuum deletes them while readers of the version before still need them. The commit is of later."""
    with staged.actions() as actions:
        actions[0]["commitInfo"]["timestamp"] += 1_000
        for remove in (action["remove"] for action in actions if "remove" in action):
            remove["deletionTimestamp"] -= 30 * 24 * 3_600_000


def state_another_partition_of_a_removed_file(staged: Staged) -> None:
    with staged.removes() as (first, *_):
        first["partitionValues"]["day"] = "2026-12-24"


def state_less_of_a_removed_file(staged: Staged) -> None:
    with staged.removes() as (first, *_):
        first["extendedFileMetadata"] = False


def cut_a_file(staged: Staged) -> None:
    staged.path.write_bytes(staged.path.read_bytes()[:-10])


def remove_a_file(staged: Staged) -> None:
    staged.path.unlink()


def cut_the_commit(staged: Staged) -> None:
    staged.commit.write_bytes(staged.commit.read_bytes()[:-20])


# Row ids and times, for tables that have them.


def repeat_a_base_row_id(staged: Staged) -> None:
    with staged.adds() as (first, second, *_):
        second["baseRowId"] = first["baseRowId"] + 1


def reuse_row_ids_of_others(staged: Staged) -> None:
    with staged.adds() as (first, *_):
        first["baseRowId"] = 0


def forget_a_base_row_id(staged: Staged) -> None:
    with staged.adds() as (first, *_):
        del first["baseRowId"]


def claim_an_older_commit_version(staged: Staged) -> None:
    with staged.adds() as (first, *_):
        first["defaultRowCommitVersion"] = 1


def forget_the_high_water_mark(staged: Staged) -> None:
    with staged.actions() as actions:
        actions[:] = [action for action in actions if "domainMetadata" not in action]


def lose_the_row_ids_of_rows(staged: Staged) -> None:
    """Without the column every row would get a new id, as if it had been written today."""
    staged.rewrite(lambda rows: rows.drop_columns(["_row-id-col"]))


def swap_row_ids_of_two_rows(staged: Staged) -> None:
    def swapped(rows: pa.Table) -> pa.Table:
        ids = rows.column("_row-id-col").to_pylist()
        return _with(rows, **{"_row-id-col": [ids[1], ids[0], *ids[2:]]})

    staged.rewrite(swapped)


def turn_back_the_time(staged: Staged) -> None:
    with staged.actions() as actions:
        actions[0]["commitInfo"]["inCommitTimestamp"] -= 10


def state_the_time_too_late(staged: Staged) -> None:
    """In-commit timestamps are looked for in the first line alone."""
    with staged.actions() as actions:
        actions.append(actions.pop(0))


# Other vectors, for candidates that rebuild them.


def hide_other_rows(staged: Staged) -> None:
    """As many as before, so that every count agrees."""

    def others(rows: BitMap64) -> BitMap64:
        return (rows - BitMap64([rows.max()])) | BitMap64([_first_shown(rows)])

    _give_another_vector(staged, others)


def show_deleted_rows_again(staged: Staged) -> None:
    _give_another_vector(staged, lambda rows: rows - BitMap64([rows.min()]))


def hide_one_more_row(staged: Staged) -> None:
    _give_another_vector(staged, lambda rows: rows | BitMap64([_first_shown(rows)]))


def miscount_deleted_rows(staged: Staged) -> None:
    with staged.adds() as (first, *_):
        first["deletionVector"]["cardinality"] += 1


def lose_a_vector(staged: Staged) -> None:
    with staged.adds() as (first, *_):
        del first["deletionVector"]


def cut_a_vector(staged: Staged) -> None:
    with staged.adds() as (first, *_):
        first["deletionVector"]["sizeInBytes"] -= 1


def narrow_a_file_whose_vector_changed(staged: Staged) -> None:
    with staged.stats() as stats:
        # Below the greatest row that the vector leaves, whichever file comes first.
        stats["maxValues"]["id"] = stats["minValues"]["id"]


def _give_another_vector(staged: Staged, change: Callable[[BitMap64], BitMap64]) -> None:
    with staged.adds() as (first, *_):
        wanted = change(staged.made.deleted(first))
        (first["deletionVector"],) = staged.made.vectors({first["path"]: wanted}).values()


def _first_shown(deleted: BitMap64) -> int:
    """The first position of a file whose row the vector does not hide."""
    return next(position for position in range(len(deleted) + 1) if position not in deleted)


def _with(rows: pa.Table, **columns: list[Any]) -> pa.Table:
    for name, values in columns.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(name), pa.array(values, rows.schema.field(name).type))
    return rows
