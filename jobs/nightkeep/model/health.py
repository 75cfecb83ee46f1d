"""Facts by which the need of maintenance is measured, by the same names in every format. From metadata alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """One version of a table. None: the format has no such thing, or its metadata does not state it.

    `files` and `bytes` are those of live data files, `small_files` those below the size at which
    files are left alone. `deleted_rows` are
    rows that files still have and readers leave out, as far as metadata counts them, of all `rows`. `delete_files` are
    position delete files and files of deletion vectors, `equality_files` those of equality deletes, with
    `equality_deletes` rows. `level0_*`: files, bytes and rows that batch readers do not see before an upgrade, and
    milliseconds since the oldest was written. `sorted_runs`: the most that a reader merges in one bucket. `manifests`
    and `versions` are those that the table keeps.
    """

    files: int
    bytes: int
    small_files: int
    rows: int | None = None
    deleted_rows: int | None = None
    delete_files: int | None = None
    equality_files: int | None = None
    equality_deletes: int | None = None
    level0_files: int | None = None
    level0_bytes: int | None = None
    level0_rows: int | None = None
    level0_age_ms: int | None = None
    sorted_runs: int | None = None
    manifests: int | None = None
    versions: int | None = None

    @property
    def small_share(self) -> float:
        """The share of small files, 0 for a table without files."""
        return self.small_files / self.files if self.files else 0.0

    @property
    def deleted_ratio(self) -> float | None:
        """The share of deleted rows. None if not all files state their rows."""
        if self.rows is None or self.deleted_rows is None:
            return None
        return self.deleted_rows / self.rows if self.rows else 0.0

    @property
    def metrics(self) -> Mapping[str, int | float | None]:
        """All of them by name, shares included."""
        stored = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**stored, "small_share": self.small_share, "deleted_ratio": self.deleted_ratio}
