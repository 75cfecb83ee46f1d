"""A snapshot's row counts -> what they mean, by the release that counted.

Paimon 0.5 adds the rows of removed files to `deltaRecordCount` where later releases subtract them, and adds that to
`totalRecordCount`. Later releases go on from its total. So a total may exceed the live rows by twice the rows that its
compactions removed. Its manifests are known by their schema: until 0.7 their files have no `_DELETE_ROW_COUNT`.
"""

from __future__ import annotations

from collections.abc import Iterable

from nightkeep.encodings.avro_schemas import Schema
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.model import Request


def counts_removed_rows(schemas: Iterable[Schema], *, stated: int, found: int) -> bool:
    """Whether the stated number of rows exceeds the one found as in Paimon 0.5, which may have written manifests of
    these schemas."""
    return stated > found and (stated - found) % 2 == 0 and any(map(_may_be_of_0_5, schemas))


def total_rows(snapshot: PaimonSnapshot) -> int:
    """The snapshot's total, without what Paimon 0.5 counted too much."""
    stated = int(str(snapshot.raw["totalRecordCount"]))
    found = sum(file.rows for unit in snapshot.units for file in unit.files)
    return found if counts_removed_rows(snapshot.entry_schemas, stated=stated, found=found) else stated


def require_totals(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises CorruptMetadata for files that hold more rows than their snapshot counts: a task is sized by its files'
    row counts. No release counts too few. The gate requires equality of both."""
    stated = int(str(snapshot.raw["totalRecordCount"]))
    files = [(file.rows, unit.path(file)) for unit in snapshot.units for file in unit.files]
    if (found := sum(rows for rows, _ in files)) > stated:
        rows, path = max(files)
        shown = f"{found} rows in its files, {rows} of them in {path}"
        subject = f"{snapshot.table.name}/snapshot/snapshot-{snapshot.version}"
        raise CorruptMetadata(subject, f"{stated} rows, as its totalRecordCount states", shown)


def _may_be_of_0_5(entry: Schema) -> bool:
    kinds = [field["type"] for field in entry["fields"] if field["name"] == "_FILE"]
    records = [kind for each in kinds for kind in (each if isinstance(each, list) else [each]) if kind != "null"]
    return all("_DELETE_ROW_COUNT" not in {field["name"] for field in record["fields"]} for record in records)
