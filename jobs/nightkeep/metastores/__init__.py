"""Metastores that name tables of several formats: Hive's and Glue. Imports no client of either."""

from nightkeep.metastores.listing import list_tables
from nightkeep.metastores.locating import located
from nightkeep.metastores.settings import settings_of

__all__ = ["list_tables", "located", "settings_of"]
