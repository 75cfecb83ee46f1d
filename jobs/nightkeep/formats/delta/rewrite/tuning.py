"""Numbers that decide how files are rewritten, each with its reason."""

from __future__ import annotations

from typing import Final

TARGET_BYTES: Final = 256 << 20
"""Target size if neither the request nor `delta.targetFileSize` gives one. Databricks tunes tables below 2.5 TB to
this. delta-rs takes 100 MiB. delta-spark takes 1 GiB: that leaves few files in a partition, and skipping needs several.
"""
SMALL_SHARE: Final = 0.5
"""A file below this share of the target is small: two of them fit one file, so merging makes fewer files."""

PACKED_VECTOR_FILES: Final = 4
"""Vectors of a partition in this many files or more are packed into one: each file is opened for a few hundred bytes.
"""
LIVE_VECTOR_SHARE: Final = 0.5
"""A file of vectors is replaced once less than this share of it is in use."""
