"""Metadata of Paimon tables: bytes and JSON <-> values."""
