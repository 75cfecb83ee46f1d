"""Numbers that decide how files are rewritten, each with its reason."""

from __future__ import annotations

from typing import Final

TARGET_BYTES: Final = 256 << 20
"""A file's size where neither the request nor `delta.targetFileSize` says. Databricks tunes tables below 2.5 TB to
this; delta-rs takes 100 MiB, delta-spark 1 GiB, of which few make a partition, and skipping needs files to skip."""
SMALL_SHARE: Final = 0.5
"""Below this share of the target a file is small: two of them fit one file, so that merging makes fewer files."""

PACKED_VECTOR_FILES: Final = 4
"""Vectors of a partition in this many files or more are packed into one: each is opened for a few hundred bytes."""
LIVE_VECTOR_SHARE: Final = 0.5
"""A file of vectors is worth replacing once less than this share of it is in use."""
