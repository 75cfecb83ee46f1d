"""Numbers that decide how files are packed and clustered, each with its reason."""

from __future__ import annotations

from typing import Final

MAX_DELETED_RATIO: Final = 0.05
"""A file with a larger share of deleted rows is rewritten, so that readers do not read them again and again."""
SPLIT_SHARE: Final = 1.5
"""A file that is rewritten anyway is split above this share of the target, where two halves are nearer to it."""

COLUMN_BYTES: Final = 400
"""What a column adds to a file however few its rows are, about, where the files read do not show it: 260 to 500 in
small Parquet files that the engines write, 800 where the footer has the schema once more as JSON."""
MOST_COLUMN_BYTES: Final = 1024
"""More than this a column does not add: files that seem to show it differ in their rows."""

GROUPS_PER_FILE: Final = 16
"""Row groups of a clustered file. Its rows are in the order of the curve, so that a reader skips row groups as it skips
files: 16 of them are worth 16 times as many files, and with two columns a narrow range reads a fourth of each."""
MOST_GROUP_BYTES: Final = 8 << 20
"""The stored size of a row group in a clustered file at most: large against the cost of a request to a store."""
LEAST_GROUP_BYTES: Final = 32 << 10
"""Row groups are no smaller: each column of one takes about 100 bytes in the footer."""

CUBE_SHARE: Final = 2
"""A small cube is clustered again once this many times what has come since is as large: a row is rewritten as often as
the table doubles, not as often as something is appended."""
SMALL_CUBE_FILES: Final = 32
"""A cube of fewer files is small. Of a larger one, with 16 row groups in a file, a narrow range of one of two columns
reads 7 % at most. Over thirty nights of 24 files, 8 instead of 32 would write 1.0 instead of 1.5 times the bytes that
came, and queries would read 4.5 instead of 3.5 % of the table at the end, of 16 instead of 12 % of files: simulated.
"""
APART_READS: Final = 5
"""Larger cubes are clustered again once queries read this many times what they would if the cubes were one. With two
columns along which they all overlap that takes 25 of equal size, and a byte is rewritten once in 25 nights."""
MERGED_GAIN: Final = 0.02
"""And once a query reads less by this share of the bytes to rewrite, so that 100 queries pay for reading and writing
them."""
Z_TOUCHED: Final = 1.6
"""Of n parts along a curve of k columns a small range of one column touches about this many times n ** (-1 / k):
simulated for 100 files as 1.76, 1.55 and 1.44 for two to four columns."""

SAMPLE_ROWS: Final = 100_000
"""Rows that ranges are cut by: 100 for each of 1,000 range ids, as delta-spark takes; more do not skip more."""
SORT_RANGE_IDS: Final = 1 << 14
"""One column alone is cut finer, so that a range is small against any bucket; rows are sorted by value within."""
NOISE_BITS: Final = 8

BASE_BYTES: Final = 320 << 20
"""What a task's process holds before its first row, about: Python, Arrow and Polars, and some slack."""
WRITE_BYTES: Final = 320 << 20
"""What a FileWriter needs at most: a row group of 128 MiB, twice, while it is encoded and its statistics computed."""
LEAST_BYTES: Final = 4 << 20
"""Rows are held up to this, however small the budget: less would be spent on reading and writing pieces."""
MOST_BYTES: Final = (2 << 30) - (64 << 20)
"""Rows are held up to this, however large the budget: Arrow's strings count their bytes in 31 bits."""
KEY_BYTES: Final = 40
"""What sorting holds for each row beside the row: ids of its columns, its key, its place."""
CHUNK_BYTES: Final = 32 << 20
"""Rows are gathered in order in chunks of this many bytes of Arrow memory: large against the cost of a call."""
BATCH_BYTES: Final = 16 << 20
"""Rows are read in batches of about this many bytes of Arrow memory."""
DECODED: Final = 4
"""Arrow takes about this many times a file's bytes; a guess, for the size of batches only."""
LEAST_BATCH_ROWS: Final = 1 << 10
MOST_BATCH_ROWS: Final = 1 << 17
BUCKET_FILL: Final = 0.6
"""How full spilled buckets should be on average: ranges are cut by a sample, and rows are not equally long."""
MOST_BUCKETS: Final = 512
"""Each has an open file while rows are spilled, of which a process may have 1,024; larger ones are sorted in parts."""
NEAR_TARGET: Final = (0.7, 1.0)
"""A file between these shares of the target is near enough to keep the plan: rows in order take less room than they
did, and a file more is worth more to skipping than a full one."""
PROBE_ROWS: Final = 1 << 16
"""Files of fewer rows predict badly how large rows are in a larger one: then this many are encoded to see."""

WIDE_FACTOR: Final = 4
"""A unit of this many times a task's memory, in bytes of its files, goes through Spark's exchange: one core would
spend minutes on it (spilling, about 85 MB of files a CPU second), and the exchange has every core work on it."""
SOURCE_BYTES: Final = 128 << 20
"""What one task of the exchange reads: some seconds of work."""
PIECE_BYTES: Final = 8 << 20
"""Rows that travel as one piece: each passes through Spark's heap whole."""
LEAST_SOURCES: Final = 16
"""What a unit is read by at least, files permitting, so that many cores have work and end at about the same time."""
LEAST_SOURCE_BYTES: Final = 32 << 20
"""No more sources or parts than of this size: half a CPU second of work, where Spark takes 0.05 for the task."""
