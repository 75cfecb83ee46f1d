"""The tables at the places of a policy. Imports nothing heavy: formats are loaded by name."""

from nightkeep.discovery.completed_policy import completed, knowing, places_for
from nightkeep.discovery.find_tables import ask_place, find_tables
from nightkeep.discovery.found import Found, FoundOther, FoundTable, Unlistable
from nightkeep.discovery.located_policy import located_all, located_some
from nightkeep.discovery.stored_found import keep_found, kept_found, last_found

__all__ = [
    "Found",
    "FoundOther",
    "FoundTable",
    "Unlistable",
    "ask_place",
    "completed",
    "find_tables",
    "keep_found",
    "kept_found",
    "knowing",
    "last_found",
    "located_all",
    "located_some",
    "places_for",
]
