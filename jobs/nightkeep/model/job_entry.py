"""What a job reports of one operation on one table: an entry of its result file, and of an XCom."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class JobEntry(TypedDict):
    """The entry as JSON holds it. The jobs write all keys; entries of earlier releases lack some.

    `document`: the address of the document, None if it could not be stored. `checked`: whether the job itself knows of
    a check, for entries without a document. `permanent`: a retry would fail for the same reason, such as a missing
    table or denied access. `nightkeep`: the version of the job. `emitted`: whether a task emitted the table's asset.
    """

    table: str
    operation: str
    outcome: str
    reason: NotRequired[str | None]
    document: NotRequired[str | None]
    committed_version: NotRequired[int | None]
    checked: NotRequired[bool]
    permanent: NotRequired[bool]
    nightkeep: NotRequired[str]
    emitted: NotRequired[bool]
