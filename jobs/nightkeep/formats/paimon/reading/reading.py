"""Address and store -> the functions that read a table's rows for people."""

from __future__ import annotations

import pyarrow as pa

from nightkeep.formats.paimon.metadata.batch_read import refuse_scan_options
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.reading import bounds, buckets, files, versions, views
from nightkeep.formats.paimon.reading.changelog import changelog_reads
from nightkeep.model import Address
from nightkeep.protocol import Bound
from nightkeep.protocol.reading import FileReads, TableReading
from nightkeep.storage import Storage


def reading_of(address: Address, storage: Storage) -> TableReading[PaimonSnapshot, Bucket]:
    return TableReading(
        snapshot=Bound(Bound(versions.find_version, address), storage),
        columns=columns,
        default_view=views.default_view,
        sections=views.sections,
        files=FileReads(
            spans=bounds.file_spans,
            partition=bounds.partition_spans,
            open=Bound(files.open_file, storage),
            hidden=Bound(files.hidden, storage),
            merged=Bound(files.merged, storage),
            narrowed=views.narrowed,
        ),
        content=views.content,
        may_hold=buckets.may_hold,
        changelog=changelog_reads(storage),
        require_newest=require_newest,
    )


def require_newest(snapshot: PaimonSnapshot) -> None:
    advice = "name a version, a tag or a view to read, or read it with its engine"
    refuse_scan_options(snapshot.table.name, snapshot.schema, advice)


def columns(snapshot: PaimonSnapshot) -> pa.Schema:
    return pa.schema([(field.name, field.type.arrow) for field in snapshot.schema.fields])
