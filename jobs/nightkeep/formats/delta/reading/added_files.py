"""Commits -> what a sample of the files that they added contradicts of their add actions. Reads data files.

The size, the footer's rows and the vector of each chosen file, and as far as the bytes go its values: of a large file
those of one row group.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.deletes.vectors import read_vector, vector_file
from nightkeep.formats.delta.gate.file_audit import contradictions
from nightkeep.formats.delta.metadata.actions import Raw, parse_lines
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.head import head
from nightkeep.formats.delta.metadata.locations import located
from nightkeep.formats.delta.metadata.naming import commit_name
from nightkeep.formats.delta.metadata.schema import DeltaSchema, parse_schema
from nightkeep.formats.delta.metadata.snapshot import DeltaUnit, load, unit_of
from nightkeep.model import Address
from nightkeep.protocol.file_sample import SampleBudget
from nightkeep.protocol.past import FileSample
from nightkeep.storage import Storage

_SMALL_BYTES: Final = 32 << 20
"""The values of a file up to this size are read whole."""


def file_faults(
    table: Address, storage: Storage, commits: Sequence[int], sample: FileSample
) -> Mapping[int, tuple[str, ...]]:
    """As `protocol.past.PastReading.file_faults`."""
    budget = SampleBudget(sample)
    chance = budget.chance
    chosen = sorted(chance.sample(commits, min(len(commits), sample.files)))
    each = max(1, min(sample.of_commit, sample.files // max(len(chosen), 1)))
    adds = {version: _added(storage, version, chance, each) for version in chosen}
    schemas = _schemas(table, storage, [version for version in chosen if adds[version]])
    found: dict[int, tuple[str, ...]] = {}
    for version, schema in schemas.items():
        faults: list[str] = []
        for add in adds[version]:
            faults += _faults(table, storage, schema, add, budget)
        if faults:
            found[version] = tuple(faults)
    return found


def is_expired(table: Address, storage: Storage, failure: MissingFile) -> bool:
    """As `protocol.past.PastReading.is_expired`: VACUUM deletes what the newest version no longer has, while the log
    still has older versions."""
    name = failure.subject.rpartition("/")[2]
    files = (file for unit in load(table, storage, only_shows=True).units for file in unit.files)
    return not any(name == needed.rpartition("/")[2] for file in files for needed in _needed(file))


def _needed(file: DeltaDataFile) -> Iterator[str]:
    yield file.name
    if file.vector is not None:
        yield vector_file(file.vector) or file.vector.place


def _added(storage: Storage, version: int, chance: random.Random, most: int) -> Sequence[Raw]:
    """Some adds of a commit; none of one that the log has removed since."""
    name = commit_name(version)
    try:
        data = storage.read(name)
    except MissingFile:
        return ()
    adds = [body for kind, body in parse_lines(data, subject=name) if kind == "add"]
    return chance.sample(adds, min(len(adds), most))


def _schemas(table: Address, storage: Storage, versions: Sequence[int]) -> dict[int, DeltaSchema]:
    """The schema of each version whose metadata can be read. Between two versions of equal metadata it is the same."""
    if not versions:
        return {}
    ends = [_metadata(table, storage, version) for version in (versions[0], versions[-1])]
    if len(versions) > 2 and ends[0] != ends[1]:
        middle = len(versions) // 2
        return _schemas(table, storage, versions[:middle]) | _schemas(table, storage, versions[middle:])
    found = dict.fromkeys(versions, ends[0]) | {versions[-1]: ends[1]}
    return {
        version: parse_schema(both[1], both[0], table=table.name) for version, both in found.items() if both is not None
    }


def _metadata(table: Address, storage: Storage, version: int) -> tuple[Raw, Raw] | None:
    try:
        read = head(storage, table=table.name, version=version)
    except (MissingFile, RefusedTable):
        return None
    return read.protocol, read.metadata


def _faults(table: Address, storage: Storage, schema: DeltaSchema, add: Raw, budget: SampleBudget) -> Iterator[str]:
    try:
        unit = unit_of(schema, add, root=storage.root)
        (file,) = unit.files
        yield from _of_file(storage, unit, file, budget)
    except MissingFile as failure:
        if not is_expired(table, storage, failure):
            yield str(failure)
    except CorruptMetadata as failure:
        yield str(failure)
    except RefusedTable:
        # Values that do not fit their column, or a file in another kind of store: engines differ in what they read.
        return


def _of_file(storage: Storage, unit: DeltaUnit, file: DeltaDataFile, budget: SampleBudget) -> Iterator[str]:
    store, held_as = located(storage, file.path)
    with store.open(held_as) as source:
        size = source.size()
    if size != file.bytes:
        yield f"{file.path} has {size} bytes, the log states {file.bytes}"
        return
    reader = DeltaFileReader(store, unit, replace(file, name=held_as))
    if file.rows is not None and file.rows != reader.rows:
        yield f"{file.path} has {reader.rows} rows, the log states {file.rows}"
        return
    hidden = read_vector(storage, file)
    if hidden and hidden.max() >= reader.rows:
        yield f"the vector of {file.path} hides row {hidden.max()}, and the file has {reader.rows}"
    groups = _sampled_groups(reader, file, budget)
    if budget.takes(sum(reader.footer.row_group(group).total_byte_size for group in groups)):
        yield from contradictions(reader, unit, file, groups)


def _sampled_groups(reader: DeltaFileReader, file: DeltaDataFile, budget: SampleBudget) -> Sequence[int]:
    """All row groups of a small file, one of a large one."""
    groups = range(reader.footer.num_row_groups)
    return [budget.chance.choice(groups)] if groups and file.bytes > _SMALL_BYTES else groups
