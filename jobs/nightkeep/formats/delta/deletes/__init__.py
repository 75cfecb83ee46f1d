"""Deleted rows of Delta tables, as they are stored: bytes <-> row positions."""
