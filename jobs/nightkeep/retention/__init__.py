"""A table and a retention order -> the document of its run."""

from nightkeep.retention.check_afterwards import check_after_removal
from nightkeep.retention.order import RetentionOrder, policy_mode
from nightkeep.retention.read_first import read_metadata
from nightkeep.retention.run_order import apply_order, failed_retention, run_retention

__all__ = [
    "RetentionOrder",
    "apply_order",
    "check_after_removal",
    "failed_retention",
    "policy_mode",
    "read_metadata",
    "run_retention",
]
