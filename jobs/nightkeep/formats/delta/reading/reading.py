"""Address and store -> the functions that read a table's rows for people."""

from __future__ import annotations

from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.reading import files, versions
from nightkeep.model import Address
from nightkeep.protocol import Bound
from nightkeep.protocol.reading import FileReads, TableReading
from nightkeep.storage import Storage


def reading_of(address: Address, storage: Storage) -> TableReading[DeltaSnapshot, DeltaUnit]:
    return TableReading(
        snapshot=Bound(Bound(versions.find_version, address), storage),
        columns=files.columns,
        default_view=files.default_view,
        sections=files.sections,
        files=FileReads(
            spans=files.file_spans,
            partition=files.partition_spans,
            open=Bound(files.open_file, storage),
            hidden=Bound(files.hidden, storage),
            narrowed=files.narrowed,
        ),
        content=files.content,
        collated=files.collated,
    )
