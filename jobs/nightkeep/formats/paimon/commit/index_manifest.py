"""Parent and edits -> the entries of the candidate's index manifest (C/manifest/IndexManifestFileHandler.java)."""

from __future__ import annotations

from collections.abc import Sequence

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.snapshot import VECTORS_INDEX, PaimonSnapshot


def index_records(parent: PaimonSnapshot, edits: Sequence[BucketEdit]) -> list[Record] | None:
    """The whole index manifest with the edits' vector files in place of the old ones; None if no vector file changes.

    Of a table with keys, a new entry replaces those of its bucket. Of a table without keys, entries go by file name.
    """
    if not any(edit.index_record is not None or edit.index_removed or edit.index_added for edit in edits):
        return None
    fresh = {(edit.partition_bytes, edit.bucket): edit.index_record for edit in edits if edit.index_record is not None}
    removed = {name for edit in edits for name in edit.index_removed}
    kept = [
        record
        for record in parent.index_records
        if record["_INDEX_TYPE"] != VECTORS_INDEX
        or not ((record["_PARTITION"], record["_BUCKET"]) in fresh or record["_FILE_NAME"] in removed)
    ]
    return [*kept, *fresh.values(), *(record for edit in edits for record in edit.index_added)]
