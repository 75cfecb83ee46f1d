"""One table, one order about files that no version needs -> a document that says how it went."""

from nightkeep.upkeep.afterwards import awaits_judging, judged
from nightkeep.upkeep.first_look import first_look
from nightkeep.upkeep.order import UpkeepOrder
from nightkeep.upkeep.ordered import failed, upkeep, upkept

__all__ = ["UpkeepOrder", "awaits_judging", "failed", "first_look", "judged", "upkeep", "upkept"]
