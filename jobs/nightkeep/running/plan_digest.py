"""A plan -> a digest, by which a run carries out the plan that a dry run showed, and no other.

| operation | what its plan is |
|---|---|
| upgrade, persist-deletes, optimize | the files of each unit, the order of rows, the settings that decide the files |
| delete, update | these, the version, and the rows that are asked for, by their keyed hash |
| sweep | the orphan files, each with its size and time |
| expire | the versions, and the files that only they need |
| restore | the files that the run moved to quarantine and no purge deleted |
| release | the runs of the hold, and since when it stands |

Invariant: nothing is written to the table before the digests are compared. Where they differ, nothing is done.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Final

from nightkeep.errors import OtherPlan
from nightkeep.model import Operation, Request
from nightkeep.protocol import OpenPlan, Snapshot
from nightkeep.records.codec import encode
from nightkeep.running.run_log import RunLog

PLAN_DIGEST: Final = "plan_digest"
"""Key of a document."""
_OF_FILES: Final = ("where", "full", "target_bytes", "min_bytes", "max_deleted_ratio", "clustering", "respec")
_OF_ROWS: Final = (Operation.DELETE, Operation.UPDATE)


def digest_of_rewrite(log: RunLog, base: Snapshot, request: Request, plan: OpenPlan) -> str:
    """The digest of a plan that writes files anew."""
    rows = log.order.operation in _OF_ROWS
    units = sorted((unit.key.partition, str(unit.key.bucket), *sorted(unit.input_files)) for unit in plan.units)
    return _digest(
        log,
        {
            "units": units,
            "settings": {name: encode(getattr(request, name)) for name in _OF_FILES},
            # The condition itself could be guessed from a digest of it.
            "rows": dict(log.order.asked) if rows else None,
            "base": [base.version, str(base.identity)] if rows else None,
        },
    )


def digest_of_removal(log: RunLog, files: str, versions: Iterable[object] = ()) -> str:
    """The digest of what a sweep or an expiry removes. `files`: the digest of the files."""
    return _digest(log, {"files": files, "versions": [*versions]})


def digest_of_undo(log: RunLog, what: Iterable[object]) -> str:
    """The digest of what a restore moves back, or of the hold that a release removes."""
    return _digest(log, {"undone": [*what]})


def require_expected(log: RunLog, digest: str) -> None:
    """Add the digest to the document. Raises OtherPlan where the caller expects another plan.

    An attempt that continues what an earlier one began finds only what is left, which the earlier one compared."""
    log.extra[PLAN_DIGEST], expected = digest, log.order.expected_plan
    if expected is not None and digest not in expected.split(",") and log.earlier is None:
        raise OtherPlan(expected, digest)


def _digest(log: RunLog, content: dict[str, object]) -> str:
    whole = {"address": str(log.policy.address), "operation": str(log.order.operation), **content}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:32]
