"""One table, one order about files that no version needs -> a document that says how it went."""

from nightkeep.retention.check_afterwards import awaits_judging, judged
from nightkeep.retention.order import RetentionOrder
from nightkeep.retention.read_first import first_look
from nightkeep.retention.run_order import failed, upkeep, upkept

__all__ = ["RetentionOrder", "awaits_judging", "failed", "first_look", "judged", "upkeep", "upkept"]
