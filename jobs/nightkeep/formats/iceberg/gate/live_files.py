"""Snapshot -> its live files by identity; two descriptions of one file -> the fields in which they differ. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.partition import identity
from nightkeep.formats.iceberg.metadata.positional_deletes import Identity
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot


def live_files(snapshot: IcebergSnapshot) -> Mapping[Identity, ContentFile]:
    """Every live file, of data and of deletes."""
    every = (file for unit in snapshot.units for file in (*unit.files, *unit.positional, *unit.equality))
    return {file.identity: file for file in (*every, *snapshot.stray)}


def changed_fields(before: ContentFile, after: ContentFile) -> list[str]:
    """Names of fields that differ, of the file or of its `raw`, in order. A null field counts as absent."""
    fields = ContentFile.__dataclass_fields__
    named = [name for name in fields if _comparable(getattr(before, name)) != _comparable(getattr(after, name))]
    if before.first_row_id is None and "first_row_id" in named:
        # After an upgrade to row lineage, the next commit of any writer assigns ids to old rows.
        named.remove("first_row_id")
    raw = (_present(before.raw), _present(after.raw))
    return sorted(
        {*named, *(key for key in raw[0].keys() | raw[1].keys() if raw[0].get(key) != raw[1].get(key))} - {"raw"}
    )


def _present(raw: Mapping[str, object]) -> Mapping[str, object]:
    # An inherited row id becomes explicit when its entry moves to another manifest.
    fields = {key: value for key, value in raw.items() if value not in (None, {}, [], ()) and key != "first_row_id"}
    return {key: _comparable(value) for key, value in fields.items()}


def _comparable(value: object) -> object:
    """A value to compare partitions by: NaN equals NaN, and -0.0 differs from 0.0."""
    return identity(0, value) if isinstance(value, tuple) else value
