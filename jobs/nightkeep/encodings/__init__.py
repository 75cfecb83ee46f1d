"""Encodings that several table formats use: bytes <-> values, without their meaning in a table."""
