"""Metadata of Iceberg tables: bytes and JSON <-> values."""
