"""Metadata of Delta tables: bytes and JSON <-> values."""
