"""Address and catalog -> the functions that read a table's rows for people."""

from __future__ import annotations

from nightkeep.formats.iceberg.catalog.catalog import TableHandle
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.reading import files, versions
from nightkeep.model import Address
from nightkeep.protocol import Bound
from nightkeep.protocol.reading import FileReads, TableReading


def reading_of(address: Address, handle: TableHandle) -> TableReading[IcebergSnapshot, IcebergUnit]:
    return TableReading(
        snapshot=Bound(Bound(versions.find_version, address), handle),
        columns=files.columns,
        default_view=files.default_view,
        sections=files.sections,
        files=FileReads(
            spans=files.file_spans,
            partition=files.partition_spans,
            open=Bound(files.open_file, handle.storage),
            hidden=Bound(files.hidden, handle.storage),
            narrowed=files.narrowed,
        ),
        content=files.content,
        shown=files.shown,
    )
