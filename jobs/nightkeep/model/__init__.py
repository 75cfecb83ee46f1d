"""The values that every part of the package shares.

Every value is frozen, names the version that it was computed from, and is checked once, when it is created.
Nothing here imports heavy libraries, as DAGs and pages import it too.
"""

from nightkeep.model.identity import (
    Address,
    Curve,
    Fingerprint,
    Outcome,
    UnitKey,
    VerifyLevel,
    VersionIdentity,
    View,
    digest_of,
)
from nightkeep.model.operations import OPERATION_TABLE, RUN_OPERATIONS, Operation
from nightkeep.model.request import Clustering, Intent, Request, Run, Writers, run_token
from nightkeep.model.stages import (
    Candidate,
    CommitScope,
    Committed,
    Conflicted,
    Estimate,
    FileSizes,
    Mismatch,
    Plan,
    PlannedUnit,
    Rewrite,
    TaskCost,
    UnitProof,
    Verified,
)

__all__ = [
    "OPERATION_TABLE",
    "RUN_OPERATIONS",
    "Address",
    "Candidate",
    "Clustering",
    "CommitScope",
    "Committed",
    "Conflicted",
    "Curve",
    "Estimate",
    "FileSizes",
    "Fingerprint",
    "Intent",
    "Mismatch",
    "Operation",
    "Outcome",
    "Plan",
    "PlannedUnit",
    "Request",
    "Rewrite",
    "Run",
    "TaskCost",
    "UnitKey",
    "UnitProof",
    "Verified",
    "VerifyLevel",
    "VersionIdentity",
    "View",
    "Writers",
    "digest_of",
    "run_token",
]
