"""Bucket edits -> the changelog manifest and its list, and what a snapshot states of them.

As C/operation/FileStoreCommitImpl.tryCommitOnce: one manifest, whose list is apart from those of data files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nightkeep.formats.paimon.metadata.entries import ADD
from nightkeep.formats.paimon.metadata.manifests import ManifestWriter
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit


def write_changelog(writer: ManifestWriter, edits: Sequence[BucketEdit]) -> Mapping[str, object]:
    """Fields of the snapshot's JSON; none if no edit has changes to report."""
    entries = [entry for edit in edits for entry in edit.entries(ADD, edit.changelog)]
    if not entries:
        return {}
    listed = writer.manifest_list([writer.manifest(entries)])
    return {
        "changelogManifestList": listed.name,
        "changelogManifestListSize": listed.bytes,
        "changelogRecordCount": sum(entry["_FILE"]["_ROW_COUNT"] for entry in entries),
    }
