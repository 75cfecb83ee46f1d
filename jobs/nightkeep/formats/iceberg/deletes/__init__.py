"""Deleted rows of Iceberg tables, as they are stored: bytes <-> row positions."""
