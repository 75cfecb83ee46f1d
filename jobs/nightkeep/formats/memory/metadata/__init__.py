"""Metadata of in-memory tables: bytes and JSON <-> values."""
