"""The tables at the places of a policy. Imports nothing heavy: formats are loaded by name."""

from nightkeep.discovery.completed_policy import completed, knowing, places_for
from nightkeep.discovery.find_tables import find_tables
from nightkeep.discovery.found import Found, FoundTable, Unlistable
from nightkeep.discovery.stored_found import keep_found, kept_found

__all__ = [
    "Found",
    "FoundTable",
    "Unlistable",
    "completed",
    "find_tables",
    "keep_found",
    "kept_found",
    "knowing",
    "places_for",
]
