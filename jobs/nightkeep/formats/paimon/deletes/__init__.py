"""Deleted rows of Paimon tables, as they are stored: bytes <-> row positions."""
